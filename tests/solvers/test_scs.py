"""SCS against a plain run on a dense matrix with the same draws: the same points and count of kernel values."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
import pytest
from oracle import kernel_matrix, optimum, primal_objective
from zoo import named, points, problem, unbiased

from svmkit.certificate import certify
from svmkit.data import Floats
from svmkit.engine.conjugate import GapChecks, Line, search
from svmkit.engine.rng import permutation
from svmkit.problem import LINEAR, RBF, Kernel, Problem
from svmkit.solvers import scs, wolfe
from svmkit.solvers.base import run
from svmkit.trace import Progress, Status

EVERY = 10**9


def naive(case: Problem, options: scs.Options, seed: int, iterations: int) -> tuple[list[Floats], int, int]:
    """α over all examples after each iteration, the kernel values a run needs, and how many points were accepted."""
    K, y, n = kernel_matrix(case), case.y, case.n
    lam, omega = 1 / case.upper.sum(), case.upper / case.upper.mean()
    order, most, widest = permutation(seed, 0, n), min(n, options.sample), np.sqrt(2 / lam)
    S = order[: min(most, options.first)]
    radius, last, counted, accepted = widest, np.inf, len(S) ** 2, 0
    alpha, where, p, mean, seen = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), []

    def hinges(at: Floats, examples: Floats) -> Floats:
        is_in = np.isin(np.arange(n), examples)
        return np.where(is_in & (y * (K @ at) < 1), omega * y, 0.0)

    for k in range(1, iterations + 1):
        s = len(S)
        hinge = hinges(where, S)
        g = lam * where - hinge / s
        theta = np.array([1.0, 0.0])
        if k > 1:
            between = g - p
            theta[0] = min(1.0, max(0.0, -(p @ K @ between) / max(between @ K @ between, 1e-300)))
            theta[1] = 1.0 - theta[0]
        p, mean = theta[0] * g + theta[1] * p, theta[0] * hinge + theta[1] * mean
        f = lam / 2 * alpha @ K @ alpha + (omega * np.maximum(0, 1 - y * (K @ alpha)))[S].mean()
        dual = y @ mean / s - mean @ K @ mean / (2 * lam * s * s)
        if theta[1] > 0 and p @ K @ p / (2 * lam) < 0.6 * (f - dual):
            p, mean = g, hinge
        square = p @ K @ p
        line = Line((y * (K @ alpha))[S], (-y * (K @ p))[S], omega[S] / s, lam, -alpha @ K @ p, square)
        longest = radius / np.sqrt(square)
        shortest = (1e-12 if last == np.inf else options.least) * longest
        t, tried = search(line, last, shortest, longest, options.m1, options.m2)
        if t > 0:
            radius = min(radius, options.delta * t * np.sqrt(square)) if last == np.inf else radius
            last = t
        trial = alpha - tried * p

        new = order[s : min(most, s + ceil(options.growth * s))]
        S = np.concatenate([S, new])
        counted += len(new) * len(S)
        good = False
        if t > 0 and np.sqrt(square) > options.eta2 * lam * radius:
            T = permutation(seed, 1 + k, n)[: min(n, max(1, round(options.validation * len(S))))]
            counted += np.count_nonzero(~np.isin(T, S)) * np.count_nonzero((alpha != 0) | (trial != alpha))
            loss = omega * (np.maximum(0, 1 - y * (K @ trial)) - np.maximum(0, 1 - y * (K @ alpha)))
            quadratic = lam / 2 * (trial @ K @ trial - alpha @ K @ alpha)
            on_S, on_T = quadratic + loss[S].mean(), quadratic + loss[T].mean()
            good = on_S < 0 and on_T <= options.eta1 * on_S
        if good:
            alpha, radius, accepted = trial, min(options.factor * radius, widest), accepted + 1
        else:
            radius /= options.factor
        where = alpha if t > 0 else trial
        renewed = mean + hinges(alpha, new)
        p, mean = p + mean / s - renewed / len(S), renewed
        seen.append(alpha)
    return seen, counted, accepted


CASES = [
    (scs.Options(first=10), 0.05),
    (scs.Options(first=10), 1.0),
    (scs.Options(first=25, growth=0.1, sample=60), 20.0),
    (scs.Options(first=10, growth=0.5, validation=0.5, eta1=0.1, delta=1.0, least=0.05), 1.0),
]


@pytest.mark.parametrize(("options", "C"), CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_points_are_those_of_a_plain_run(options: scs.Options, C: float, seed: int) -> None:
    case = unbiased(120, C * np.random.default_rng(1).uniform(0.5, 2.0, 120))
    expected, counted, accepted = naive(case, options, seed, 25)
    state = scs.start(case, options, 1e-12, seed)
    for alpha in expected:
        progress = scs.advance(state, 1)
        mine = np.zeros(case.n)
        mine[state.gram.rows] = state.alpha.coef
        assert mine == pytest.approx(alpha, abs=1e-7 * np.abs(alpha).max() + 1e-12)
    assert progress.steps == 25
    assert progress.kernel_evaluations == counted
    assert 3 <= accepted < 25  # both ways were taken


def to_the_end(state: Any) -> Progress:
    while not (progress := scs.advance(state, EVERY)).ended:
        pass
    return progress


def test_a_call_ends_where_the_sample_has_grown() -> None:
    """Iterations of a larger sample take longer, and limits on time are looked at between calls."""
    state = scs.start(unbiased(300, 1.0), scs.Options(first=10, sample=70), 1e-3, 0)
    sizes = [10]
    while sizes[-1] < 70:
        assert scs.advance(state, EVERY).steps == len(sizes)
        sizes.append(len(state.gram.rows))
    assert sizes == sorted(set(sizes))
    assert scs.advance(state, 5).steps == len(sizes) - 1 + 5


def test_the_sample_keeps_to_its_limit() -> None:
    case = unbiased(300, 1.0)
    state = scs.start(case, scs.Options(first=10, sample=70), 1e-3, 0)
    to_the_end(state)
    assert len(state.gram.rows) == len(np.unique(state.gram.rows)) == 70
    assert scs.solution(state).n_support <= 70


def test_nothing_is_claimed_of_examples_outside_the_sample() -> None:
    """f_S may be minimal, and f far from it."""
    case = unbiased(300, 1.0)
    for sample, converges in ((200, False), (299, False), (300, True), (1000, True)):
        progress = to_the_end(state := scs.start(case, scs.Options(first=10, sample=sample), 0.05, 0))
        assert (scs.solution(state).alpha is not None) == converges
        assert (progress.done, progress.completed) == (converges, not converges)
        assert progress.gap <= 0.05  # of f_S


def test_a_small_gap_of_a_sample_that_still_grows_ends_nothing() -> None:
    state = scs.start(unbiased(300, 1.0), scs.Options(first=10), 0.9, 0)
    assert to_the_end(state).done
    assert len(state.gram.rows) == 300


def test_where_no_step_is_long_enough_the_point_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the validation sample sees that the point tried is better."""
    state = scs.start(unbiased(300, 1.0), scs.Options(first=30), 1e-3, 0)
    search, seen = scs._search, []
    monkeypatch.setattr(scs, "_search", lambda *given: (0.0, search(*given)[0]))
    monkeypatch.setattr(scs, "_validated", lambda state, move: not seen.append(move))
    radius = state.radius
    scs.advance(state, 1)
    assert not state.alpha.coef.any()
    assert state.at.coef.any()
    assert state.radius < radius


def test_at_lambda_1_the_closed_form_is_reached() -> None:
    """Kernel values at most 1 and λ ≥ 1: f* = 1 − mean y_i y_j K_ij/2λ, here over the whole training set."""
    for seed in range(3):
        case = unbiased(400, 1 / 400)
        K, y = kernel_matrix(case), case.y
        state = scs.start(case, scs.Options(first=20), 1e-3, seed)
        assert to_the_end(state).done
        alpha = np.zeros(400)
        alpha[state.gram.rows] = state.alpha.coef
        best = 1 - (y @ K @ y) / (2 * 400**2)
        assert best - 1e-12 <= primal_objective(K, case, alpha, 0.0) <= best + 1e-3 * (1 - best)


@pytest.mark.parametrize("name", ["rbf", "class weights", "300 rows, linear", "separable, rbf", "unscaled, linear"])
def test_the_gap_bounds_the_distance_to_the_optimum(name: str) -> None:
    case = replace(named(name), bias="none")
    K = kernel_matrix(case)
    best = optimum(case, K)
    state = scs.start(case, scs.Options(), 1e-2, 0)
    progress = to_the_end(state)
    alpha = np.zeros(case.n)
    alpha[state.gram.rows] = state.alpha.coef
    primal = primal_objective(K, case, alpha, 0.0)
    assert len(state.gram.rows) == case.n
    assert primal - best <= progress.gap * primal + 1e-9 * best
    assert state.bound / state.lam <= best * (1 + 1e-9)
    assert progress.done == (progress.gap <= 1e-2)
    found = certify(case, scs.solution(state))
    assert found.gap / min(found.primal, case.upper.sum() - found.dual) <= progress.gap + 1e-5  # after one more step, at most


def test_float32_kernels_are_not_taken_at_their_word() -> None:
    """At a cost where the hinge's float32 error outweighs the optimum, a run ends without a claim."""
    X, y = points(2100, 3, seed=4, noise=0.0)
    X[:, 0] += 3 * y
    case = replace(problem(X, y, Kernel(RBF, 0.1), 1e8), bias="none")
    state = scs.start(case, scs.Options(), 1e-3, 0)
    progress = to_the_end(state)
    found = certify(case, scs.solution(state))
    assert state.gram.engine.packed.real == "f4"
    assert not progress.done or found.gap <= 1e-3 * found.primal


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_where_rounding_hides_the_gap_the_run_goes_on(seed: int) -> None:
    """Separable, with large features: the optimum is some millionth of f(0), and sums of responses lose that much."""
    X = 1e3 * np.random.default_rng(seed).normal(size=(100, 4))
    y = np.where(np.arange(100) % 2 > 0, 1.0, -1.0)
    X[:, 0] = 1e3 * y
    result = run(scs, replace(problem(X, y, Kernel(LINEAR)), bias="none"), scs.Options(), eps=1e-3)
    assert result.status is Status.CONVERGED
    assert result.certificate.gap <= 1e-3 * result.certificate.primal


def test_an_indefinite_kernel_ends_without_a_claim() -> None:
    case = replace(named("precomputed, indefinite"), bias="none")
    progress = to_the_end(scs.start(case, scs.Options(), 1e-3, 0))
    assert progress.completed
    assert not progress.done


@pytest.mark.parametrize("solver", [scs, wolfe])
def test_a_look_that_catches_an_indefinite_kernel_ends_the_run(solver: Any) -> None:
    case = replace(named("precomputed, indefinite"), bias="none")
    state = solver.start(case, solver.Options(), 1e-3, 0)
    while not solver.advance(state, 1).ended:
        assert not state.checks.indefinite
    assert state.checks.indefinite


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_a_run_ends_where_the_radius_has_shrunk_to_nothing(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """No point is accepted: the radius halves each time, from that of the first step, to 1e-9 of it, whatever the features'
    scale."""
    monkeypatch.setattr(scs, "_validated", lambda *given: False)
    X, y = points(60, 3, seed=5)
    case = replace(problem(scale * X, y, Kernel(LINEAR), 1.0), bias="none")
    state = scs.start(case, scs.Options(), 1e-9, 0)
    progress = to_the_end(state)
    assert (progress.completed, progress.n_support) == (True, 0)
    assert progress.steps == 30  # halvings to less than 1e-9


def test_features_may_have_any_scale() -> None:
    """Far beyond 1 the objective is next to nothing but its hinges, whatever the scale."""
    X, y = points(200, 3, seed=5, noise=0.3)
    primal = []
    for scale in (1e3, 1e6, 1e9):
        case = replace(problem(scale * X, y, Kernel(LINEAR), 1.0), bias="none")
        primal.append(run(scs, case, scs.Options(), eps=1e-3).certificate.primal)
    assert max(primal) <= 1.02 * min(primal)


def test_no_point_is_accepted_that_the_larger_sample_gains_nothing_from() -> None:
    """Whatever the validation sample says of it: an η₁ so large asks more of it than any gain."""
    case = unbiased(300, 1.0)
    for seed in range(5):
        state = scs.start(case, scs.Options(first=3, growth=1.0, eta1=1e9), 1e-3, seed)
        assert to_the_end(state).n_support == 0


@pytest.mark.parametrize(("solver", "taken"), [(scs, "steps"), (wolfe, "iterations")])
def test_looks_that_end_nothing_count_against_the_iterations(solver: Any, taken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one at the last iteration is the last."""
    monkeypatch.setattr(GapChecks, "take", lambda self, f, bound, bound_at, eps: 1.0)
    state = solver.start(unbiased(60, 1.0), solver.Options(iterations=4), 1e9, 0)
    for _ in range(10):
        progress = solver.advance(state, 1)
    assert (progress.completed, getattr(state, taken)) == (True, 4)


@pytest.mark.parametrize("solver", [scs, wolfe])
def test_a_run_stalls_where_a_look_finds_nothing_gained(solver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, and has ended."""

    def take(checks: GapChecks, *_: Any) -> float:
        checks.stalled = True
        return 1.0

    monkeypatch.setattr(GapChecks, "take", take)
    state = solver.start(unbiased(60, 1.0), solver.Options(), 1e9, 0)
    progress = solver.advance(state, EVERY)
    assert (progress.stalled, progress.done, progress.completed) == (True, False, False)
    assert solver.advance(state, EVERY) == progress


@pytest.mark.parametrize("key", ["growth", "validation", "eta1", "eta2", "delta", "least"])
@pytest.mark.parametrize("value", [0.0, 1e9])
def test_options_at_their_ends(key: str, value: float) -> None:
    state = scs.start(unbiased(20, 1.0), scs.Options(first=5, **{key: value}), 1e-3, 0)
    progress = to_the_end(state)
    assert progress.done or progress.completed
