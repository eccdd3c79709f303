"""What block SMO ends with: which β of a stalled run, and how far float32 values may have led it astray by then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
import zoo

from svmkit.certificate import certify
from svmkit.problem import POLYNOMIAL, RBF, Kernel, Problem, Solution
from svmkit.solvers import smo, smo_newton, smo_pace, smo_state


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("where", ["calmest", "current"])
def test_the_calmest_and_the_last_are_among_what_a_stalled_run_returns_to(where: str, bias: str) -> None:
    """Though nobody had noted their objective on the way."""
    problem = replace(zoo.noisy(300, C=100.0), bias=bias)
    state = smo.start(problem, smo.Options(working_set=32), 1e-3, 0)
    smo.advance(state, 4000)
    good, bad = smo_state.current_beta(state), 0.5 * problem.y * problem.upper
    for beta in (good, bad):
        smo_state.take(state, beta)
    smo_state.note(state)
    worse = certify(problem, smo.solution(state)).primal
    if where == "calmest":
        state.calmest = good.copy()
    else:
        smo_state.take(state, good)
    smo_state.return_to_the_best(state)
    assert np.array_equal(smo_state.current_beta(state), good)
    assert certify(problem, smo.solution(state)).primal < worse


@pytest.mark.parametrize("bias", ["free", "none"])
def test_newton_steps_count_as_moves(bias: str) -> None:
    """The margin of the last check grows with how far β has gone on float32 values."""
    problem = replace(zoo.noisy(300, C=10.0), bias=bias)
    state = smo.start(problem, smo.Options(working_set=32), 1e-6, 0)
    smo.advance(state, 3000)
    smo_state.take(state, smo_state.current_beta(state))
    before, moved = smo_state.current_beta(state), state.drift2
    assert smo_newton.newton(state)
    change = smo_state.current_beta(state) - before
    assert change.any()
    assert state.drift2 - moved == pytest.approx(float(change @ change), rel=1e-6)


def led_astray() -> Problem:
    """By float32 values its end is at thirty times eps by float64 ones."""
    X, y = zoo.points(1200, 6, seed=1200, noise=0.3)
    return zoo.problem(X, y, Kernel(RBF, 0.02), 1e4)


def test_where_float32_values_led_far_off_newton_steps_in_float64_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of rounds that come down once more: the same optimum, after fewer pair steps."""
    problem = led_astray()
    K, steps, turned = oracle.kernel_matrix(problem), [], []
    monkeypatch.setattr(smo_newton, "use_float64", lambda state: turned.append(len(steps)) or smo_state.use_float64(state))
    for share in (np.inf, 0.0):
        monkeypatch.setattr(smo_pace, "_LITTLE", share)
        state = smo.start(problem, smo.Options(), 1e-3, 0)
        while not (progress := smo.advance(state, 10**9)).done:
            assert not progress.stalled
        beta = oracle.beta_of(problem, smo.solution(state))
        assert oracle.violation(K, problem, beta) <= 1e-3 + 1e-6
        steps.append(progress.steps)
    assert turned == [0]
    assert steps[0] < steps[1]


def test_without_shrinking_nothing_is_dropped_for_newton_steps_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    turned: list[int] = []
    monkeypatch.setattr(smo_pace, "_LITTLE", np.inf)
    monkeypatch.setattr(smo_newton, "newton", lambda state: turned.append(len(state.variables.active.beta)))
    for shrinking in (True, False):
        state = smo.start(led_astray(), smo.Options(shrinking=shrinking), 1e-3, 0)
        while len(turned) < 1 + (not shrinking):
            assert not smo.advance(state, 1000).done
    assert turned[0] < turned[1] == 1200


def test_what_float32_values_said_before_a_check_is_no_least_violation() -> None:
    """Else the run, sent back to a violation far above it, would seem to have stalled."""
    problem = zoo.noisy(300, C=100.0)
    state = smo.start(problem, smo.Options(working_set=32), 1e-3, 0)
    smo.advance(state, 1000)
    smo_state.take(state, smo_state.current_beta(state))
    state.pace.note(0.0011)
    smo_newton.check_end(state)
    assert state.violation > 1.0
    state.pace.note(state.violation)
    assert not any(state.pace.review(k * 5_000_000) for k in range(1, 5))
    state.pace.note(0.9)
    assert not state.pace.review(5 * 5_000_000)


def test_what_is_noted_is_better_by_its_objective_or_as_good_and_calmer() -> None:
    problem = zoo.noisy(300, C=100.0)
    state = smo.start(problem, smo.Options(working_set=32), 1e-3, 0)
    smo.advance(state, 4000)
    good, bad = smo_state.current_beta(state), 0.5 * problem.y * problem.upper
    smo_state.take(state, good)
    assert smo_state.note(state)
    violation = state.violation
    state.violation = 2.0 * violation
    assert not smo_state.note(state)
    state.violation = 0.5 * violation
    assert smo_state.note(state)
    for calm in (1.0, 0.0):
        smo_state.take(state, bad)
        state.violation *= calm
        assert not smo_state.note(state)
    assert state.best is not None
    assert np.array_equal(state.best.beta, good)


def test_of_a_run_cut_short_w_is_the_solution_only_where_it_is_the_better_one() -> None:
    problem = zoo.noisy(300, C=100.0)
    state = smo.start(problem, smo.Options(working_set=32), 1e-3, 0)
    smo.advance(state, 4000)
    expected = certify(problem, smo.solution(state)).primal
    state.by_w = Solution(np.arange(0), np.zeros(0), 0.0)
    assert expected < certify(problem, state.by_w).primal
    assert certify(problem, smo.solution(state)).primal == expected


def test_in_float64_a_run_has_all_its_chances_again_and_then_none() -> None:
    state = smo.start(zoo.noisy(), smo.Options(working_set=64), 1e-3, 0)
    assert state.variables.engine.packed.real == "f4"
    state.idle = True
    while not state.checks.fail(1.0):
        pass
    smo_state.use_float64(state)
    assert state.variables.engine.packed.real == "f8"
    assert (state.idle, state.stalled) == (False, False)
    assert not state.checks.fail(1.0)
    smo_state.use_float64(state)
    assert state.stalled


def test_an_objective_that_is_no_number_is_the_worst() -> None:
    """Where kernel values overflow, and ‖w‖² is infinite less infinite."""
    X, y = np.array([[1e200], [2e200], [-1.0]]), np.array([1.0, -1.0, 1.0])
    problem = zoo.problem(X, y, Kernel(POLYNOMIAL, 1.0, 0.0, 3))
    assert np.isnan(certify(problem, found := Solution(np.arange(3), y, 0.0)).primal)
    assert smo_state.primal_of(problem, found) == np.inf


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        ([0.0, 0.0], -0.5),  # both may rise: F is 0.5 at most
        ([2.0, 2.0], 0.25),  # both may fall
        ([0.0, 2.0], -0.125),
        ([0.0, 1.0], 0.25),  # free
    ],
)
def test_rho_lies_between_the_bounds_that_there_are(beta: list[float], expected: float) -> None:
    F, zero, two = np.array([0.5, -0.25]), np.zeros(2), np.full(2, 2.0)
    assert smo_state.rho_of(F, np.array(beta), zero, two) == expected
    assert smo_state.rho_of(F, zero, zero, zero) == 0.0
