"""Wolfe's method against a plain run on a dense matrix: the same points and count; what it says of gap and end is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracle import kernel_matrix, optimum, primal_objective, sums_at
from zoo import named, points, problem, unbiased

from svmkit.certificate import certify
from svmkit.data import Floats
from svmkit.engine import gram
from svmkit.engine.conjugate import Line, least_norm, search
from svmkit.problem import LINEAR, RBF, Kernel, Problem
from svmkit.solvers import wolfe
from svmkit.solvers.base import run
from svmkit.trace import Status

EVERY = 10**9


def naive(case: Problem, iterations: int, bundle: int) -> tuple[list[Floats], int]:
    """α after each iteration, and kernel values: one product for each change of v. All norms from the dense matrix.

    Ends early at the optimum.
    """
    K, y, n = kernel_matrix(case), case.y, case.n
    lam, weight = 1 / case.upper.sum(), case.upper / case.upper.sum()
    alpha, where, last, counted = np.zeros(n), np.zeros(n), np.inf, 0
    v, U, V, theta, seen = np.zeros(n), [], [], np.empty(0), []
    for _ in range(iterations):
        new = np.where(y * (K @ where) < 1, weight * y, 0.0)
        counted += n * np.count_nonzero(new != v)
        v = new
        if len(U) == bundle:
            order = np.argsort(theta, kind="stable")
            out, kept = order[: bundle // 2 + 1], np.sort(order[bundle // 2 + 1 :])
            share = theta[out].sum()
            mix = theta[out] / share if share > 0 else np.full(len(out), 1 / len(out))
            U = [mix @ np.array(U)[out], *[U[j] for j in kept]]
            V = [mix @ np.array(V)[out], *[V[j] for j in kept]]
            theta = np.append(share, theta[kept])
        U, V = [*U, lam * where - v], [*V, v]
        theta = np.append(theta, 0.0) if len(U) > 1 else np.ones(1)
        f = lam / 2 * alpha @ K @ alpha + weight @ np.maximum(0, 1 - y * (K @ alpha))
        while True:
            theta = least_norm(np.array(U) @ K @ np.array(U).T, theta)
            p, mean = theta @ np.array(U), theta @ np.array(V)
            square, dual = p @ K @ p, y @ mean - mean @ K @ mean / (2 * lam)
            if len(U) == 1 or square / (2 * lam) >= 0.6 * (f - dual):
                break
            U, V, theta = U[-1:], V[-1:], np.ones(1)
        if f - dual < 1e-9 * f:
            break
        line = Line(y * (K @ alpha), -y * (K @ p), weight, lam, -alpha @ K @ p, square)
        longest = 2 * np.sqrt(2 / lam / square)
        t, tried = search(line, last, 1e-10 * longest, longest, 0.1, 0.02)
        alpha, where = alpha - t * p, alpha - tried * p
        last = t if t > 0 else last
        seen.append(alpha)
    return seen, counted


@pytest.mark.parametrize("cache_mb", [1.0, 0.005, 0.0], ids=["columns are kept", "not all fit", "none are kept"])
@pytest.mark.parametrize("bundle", [2, 5, 20])
@pytest.mark.parametrize("C", [0.05, 1.0, 10.0])
def test_the_points_are_those_of_a_plain_run(C: float, bundle: int, cache_mb: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gram, "_DEAR_NONZEROS", 0)
    case = unbiased(60, C * np.random.default_rng(1).uniform(0.5, 2.0, 60))
    expected, counted = naive(case, 25, bundle)
    state = wolfe.start(case, wolfe.Options(bundle=bundle, cache_mb=cache_mb), 1e-12, 0)
    for alpha in expected:
        progress = wolfe.advance(state, 1)
        assert state.alpha == pytest.approx(alpha, abs=1e-6 * np.abs(alpha).max())
    assert progress.steps == len(expected)
    assert progress.kernel_evaluations == counted
    if cache_mb == 1.0 and C > 0.05:
        assert state.columns.engine.evaluations < counted
    if cache_mb == 0.0:
        assert state.columns.engine.evaluations == counted


def test_at_lambda_1_the_closed_form_is_found_at_once() -> None:
    """Kernel values at most 1 and λ ≥ 1: α_i = y_i/(λn), f* = 1 − mean y_i y_j K_ij/2λ."""
    for lam in (1.0, 4.0):
        case = unbiased(200, 1 / (lam * 200))
        K, y = kernel_matrix(case), case.y
        state = wolfe.start(case, wolfe.Options(), 1e-9, 0)
        progress = wolfe.advance(state, EVERY)
        assert progress.done
        assert state.alpha == pytest.approx(y / (lam * 200), rel=1e-9)
        best = 1 - (y @ K @ y) / (2 * lam * 200**2)
        assert lam * primal_objective(K, case, state.alpha, 0.0) == pytest.approx(best, rel=1e-12)
        assert progress.kernel_evaluations == 2 * 200 * 200  # one product, and one in float64 to be sure


@pytest.mark.parametrize("name", ["rbf", "class weights", "300 rows, linear", "separable, rbf", "unscaled, linear"])
def test_the_gap_bounds_the_distance_to_the_optimum(name: str) -> None:
    case = replace(named(name), bias="none")
    K = kernel_matrix(case)
    best = optimum(case, K)
    state = wolfe.start(case, wolfe.Options(), 1e-4, 0)
    ended = False
    while not ended:
        progress = wolfe.advance(state, 5)
        ended = progress.done or progress.completed
        primal = primal_objective(K, case, state.alpha, 0.0)
        if state.iterations:
            assert state.bound / state.lam <= best * (1 + 1e-8)
            assert primal >= best * (1 - 1e-8)
    found = certify(case, wolfe.solution(state))
    assert found.gap / min(found.primal, case.upper.sum() - found.dual) == pytest.approx(progress.gap, rel=1e-4, abs=1e-5)
    assert progress.done == (progress.gap <= 1e-4)


def test_a_first_product_that_is_under_way_gives_a_model_already() -> None:
    X, y = points(3000, 3, seed=8)
    case = replace(problem(X, y, Kernel(RBF, 0.5), 1.0), bias="none")
    state = wolfe.start(case, wolfe.Options(), 1e-3, 0)
    assert wolfe.solution(state).n_support == 0
    progress = wolfe.advance(state, 1)
    found = wolfe.solution(state)
    assert progress.kernel_evaluations == 3000 * found.n_support < 3000**2
    response = sums_at(case.rows, case, found)
    assert 0.5 * found.coef @ response[found.origin] + np.maximum(0, 1 - y * response).sum() < 0.9 * 3000
    assert np.mean(y * response > 0) > 0.7
    assert state.iterations == 0
    assert not state.alpha.any()


def test_float32_kernels_are_not_taken_at_their_word() -> None:
    """At a cost where the hinge's float32 error outweighs the optimum, a run ends without a claim."""
    X, y = points(2100, 3, seed=4, noise=0.0)
    X[:, 0] += 3 * y
    case = replace(problem(X, y, Kernel(RBF, 0.1), 1e8), bias="none")
    state = wolfe.start(case, wolfe.Options(), 1e-3, 0)
    progress = wolfe.advance(state, EVERY)
    found = certify(case, wolfe.solution(state))
    assert state.columns.engine.packed.real == "f4"
    assert progress.done == (found.gap <= 1e-3 * min(found.primal, case.upper.sum() - found.dual))


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_where_float32_hides_the_gap_the_run_goes_on_in_float64(C: float) -> None:
    """Features of some hundreds: the bound that float32 values make lies above the optimum."""
    X, y = points(2100, 4, seed=5, noise=0.1)
    case = replace(problem(np.abs(X) * 300 + 300, y, Kernel(LINEAR), C), bias="none")
    assert wolfe.start(case, wolfe.Options(), 1e-3, 0).columns.engine.packed.real == "f4"
    result = run(wolfe, case, wolfe.Options(), eps=1e-3)
    assert result.status is Status.CONVERGED
    assert result.certificate.gap <= 1e-3 * result.certificate.primal


def test_an_indefinite_kernel_ends_without_a_claim() -> None:
    case = replace(named("precomputed, indefinite"), bias="none")
    progress = wolfe.advance(wolfe.start(case, wolfe.Options(), 1e-3, 0), EVERY)
    assert progress.completed
    assert not progress.done


@pytest.mark.parametrize("iterations", [1, 2, 7])
def test_at_the_last_iteration_the_gap_is_that_of_the_solution(iterations: int) -> None:
    case = unbiased(60, 1.0)
    state = wolfe.start(case, wolfe.Options(iterations=iterations), 1e-9, 0)
    progress = wolfe.advance(state, EVERY)
    assert (progress.completed, state.iterations) == (True, iterations)
    found = certify(case, wolfe.solution(state))
    assert found.gap / min(found.primal, case.upper.sum() - found.dual) == pytest.approx(progress.gap, rel=1e-9)


def test_what_products_have_added_up_certifies_nothing() -> None:
    """Responses go with the solution where float64 kernel values have made them, at the end alone."""
    case = unbiased(60, 1.0)
    state = wolfe.start(case, wolfe.Options(), 1e-3, 0)
    while not (progress := wolfe.advance(state, 1)).done:
        assert wolfe.solution(state).responses is None
    assert progress.steps > 3
    assert wolfe.solution(state).responses == pytest.approx(kernel_matrix(case) @ state.alpha, rel=1e-12)
