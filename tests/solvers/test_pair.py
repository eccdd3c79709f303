"""The pair solver: steps and kernel values of a naive run of the same method, limits, and odd ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracle import beta_of, kernel_matrix, naive_pairs
from zoo import named, points, problem, sixty_fourths

from svmkit.certificate import certify
from svmkit.data import Floats
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, SIGMOID, DualQP, Kernel, Problem
from svmkit.solvers import pair
from svmkit.trace import Progress

EVERY = 10**9


@pytest.mark.parametrize(
    "name", ["linear", "polynomial", "precomputed", "class weights", "sparse, rbf", "300 rows, linear", "400 sparse rows, rbf"]
)
def test_steps_and_kernel_values_of_a_naive_run(name: str) -> None:
    """Each row of Q that a run without shrinking looks at is computed once; the diagonal does not count."""
    case = named(name)
    naive = naive_pairs(case, kernel_matrix(case), 1e-3)
    state = pair.start(case, pair.Options(shrinking=False), 1e-3, 0)
    progress = pair.advance(state, EVERY)
    report = pair.report(state)
    assert (progress.steps, report.iterations) == (naive.iterations, naive.iterations)
    assert progress.kernel_evaluations == case.n * len(naive.rows_used)
    assert report.objective == pytest.approx(naive.objective, rel=1e-12)
    assert report.rho == pytest.approx(naive.rho, rel=1e-9)
    np.testing.assert_allclose(beta_of(case, pair.solution(state)), naive.beta, rtol=1e-6, atol=1e-9)


def test_no_kernel_value_is_computed_twice_while_rows_grow() -> None:
    """Shrinking asks for the first part of rows, later for the rest; until the gradient is rebuilt nothing is forgotten."""
    X, y = sixty_fourths()
    state = pair.start(problem(X, y, Kernel(LINEAR), 8.0), pair.Options(), 1e-3, 0)
    grown, before = 0, state.cache.filled.copy()
    while True:
        progress = pair.advance(state, 1)
        if "*" in state.said:
            break
        filled = state.cache.filled
        assert progress.kernel_evaluations == filled.sum()
        grown += int(np.count_nonzero((before > 0) & (filled > before)))
        before = filled.copy()
    assert grown > 10


def run(case: Problem, cache_mb: float = 100.0, budget: int = EVERY) -> tuple[Progress, pair.State]:
    state = pair.start(case, pair.Options(cache_mb=cache_mb), 1e-3, 0)
    progress = pair.advance(state, budget)
    while not (progress.done or progress.stalled):
        progress = pair.advance(state, budget)
    return progress, state


def test_report_does_not_depend_on_cutting_or_cache() -> None:
    X, y = sixty_fourths()
    case = problem(X, y, Kernel(RBF, 0.5), 64.0)
    progress, whole = run(case)
    for cut, state in (run(case, budget=1), run(case, budget=997)):
        assert cut == progress
        assert pair.report(state) == pair.report(whole)
    two_rows, cached = run(case, cache_mb=1e-9)
    assert pair.report(cached) == pair.report(whole)
    assert two_rows.kernel_evaluations > 2 * progress.kernel_evaluations
    assert len(cached.cache.owner) == 2


class Started(Problem):
    """A problem whose dual does not start at zero."""

    alpha: Floats

    def dual(self) -> DualQP:
        return replace(super().dual(), start=self.alpha)


def test_a_start_at_the_answer_is_the_answer() -> None:
    case = named("300 rows, rbf")
    _, state = run(case)
    started = Started(case.rows, case.y, case.upper, case.kernel)
    object.__setattr__(started, "alpha", beta_of(case, pair.solution(state)) * case.y)
    progress, again = run(started)
    assert progress.done
    assert progress.steps == 0
    assert pair.report(again).objective == pytest.approx(pair.report(state).objective, rel=1e-12)
    assert pair.report(again).rho == pytest.approx(pair.report(state).rho, rel=1e-9)


def test_the_limit_of_iterations_is_a_stall() -> None:
    """An eps that rounding keeps out of reach: svm-train's limit of 10⁷ iterations, with a dot for every n of them."""
    case = named("linear, C 100")
    state = pair.start(case, pair.Options(shrinking=False), 1e-300, 0)
    progress = pair.advance(state, EVERY)
    assert (progress.done, progress.stalled) == (False, True)
    assert progress.steps == 10_000_000
    assert pair.report(state).progress == "." * ((10_000_000 - 1) // case.n)
    assert pair.advance(state, EVERY) == progress


def test_the_limit_of_iterations_makes_every_gradient_good_again() -> None:
    """Also for a caller that asks for just the steps up to it: the objective is that of all variables, shrunk ones too."""
    X, y = sixty_fourths()
    case = problem(X, y, Kernel(LINEAR), 64.0)
    state = pair.start(case, pair.Options(), 1e-3, 0)
    state.counts[pair.loops.STEPS] = 10_000_000 - 30_000
    assert not pair.advance(state, 29_999).stalled
    assert state.counts[pair.loops.ACTIVE] < case.n
    assert pair.advance(state, 1).stalled
    report, dual = pair.report(state), certify(case, pair.solution(state)).dual
    assert report.progress.endswith("*")
    assert report.objective == pytest.approx(-dual, rel=1e-6)


@pytest.mark.parametrize("kernel", [Kernel(LINEAR), Kernel(POLYNOMIAL, 1.0, 0.0, 9)], ids=lambda kernel: kernel.name)
def test_overflow_is_never_called_converged(kernel: Kernel) -> None:
    X, y = points(20, 3, seed=1)
    progress = pair.advance(pair.start(problem(X * 1e160, y, kernel), pair.Options(), 1e-3, 0), EVERY)
    assert (progress.done, progress.stalled) == (False, True)


def test_variables_without_room_are_no_bounded_support_vectors_and_say_nothing_of_rho() -> None:
    X, y = points(20, 3, seed=1)
    _, state = run(problem(X, y, Kernel(RBF, 0.5), np.where(np.arange(20) < 6, 0.0, 0.1)))
    report = pair.report(state)
    assert report.n_bounded == np.count_nonzero(state.variables.alpha == 0.1) > 0
    state = pair.start(problem(X, y, Kernel(RBF, 0.5), 0.0), pair.Options(), 1e-3, 0)
    assert pair.solution(state).rho == 0.0


def test_a_rho_of_0_has_no_sign() -> None:
    """All slopes of free variables are −0 here; svm-train adds them to 0, and prints 0."""
    X, y = np.array([[-1.0, 0.0673], [2.0, 0.0], [3.0, 1.42], [0.0, 0.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    case = replace(problem(X, y, Kernel(SIGMOID, 1024.0)), upper=np.array([1.0, 10.0, 10.0, 1.0]))
    _, state = run(case)
    assert str(pair.report(state).rho) == "0.0"
