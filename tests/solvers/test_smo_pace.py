"""When a run of block SMO turns to Newton steps, or ends, by work and violations made up and on data that defy pair steps."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import points, problem

from svmkit.engine import reviews
from svmkit.engine.active import ActiveSet, Variables
from svmkit.engine.kernels import Engine
from svmkit.problem import LINEAR, RBF, Kernel, Problem
from svmkit.solvers import smo, smo_pace
from svmkit.solvers.base import run
from svmkit.solvers.smo_pace import Pace
from svmkit.solvers.smo_state import spent
from svmkit.trace import Limits, Status


@pytest.fixture
def active() -> Variables:
    """Forty variables, a quarter of them free."""
    X, y = points(40, 3, seed=1)
    case = problem(X, y, Kernel(RBF, 0.5), 1.0)
    whole = ActiveSet(Engine(case.rows, case.kernel, "f8"), case.dual()).whole
    whole.beta[::4] = 0.5 * case.y[::4]
    return whole


def begun(violation: float) -> Pace:
    pace = Pace(40, 1e-3)
    pace.note(violation)
    return pace


def test_work_on_the_way_to_the_minimum_says_nothing_of_the_pace_there(active: Variables) -> None:
    pace = begun(10.0)
    assert not pace.newton_is_quicker(5.0, 1e15, active)
    assert not pace.newton_is_quicker(0.3, 1e15 + 1e6, active)  # near, for the first time
    assert not pace.newton_is_quicker(0.2, 1e15 + 2e6, active)
    assert pace.newton_is_quicker(0.19, 1.02e15, active)


def test_a_violation_that_grows_again_begins_the_count_anew(active: Variables) -> None:
    pace = begun(10.0)
    assert not pace.newton_is_quicker(0.3, 0.0, active)
    assert not pace.newton_is_quicker(8.0, 1e15, active)
    assert not pace.newton_is_quicker(0.3, 1e15, active)


def test_newton_steps_wait_for_rounds_that_halve_the_violation_slowly(active: Variables) -> None:
    """Ten halvings quicker than a step's cost leave them to rounds; each try asks for more."""
    for each, quicker in ((1e6, False), (1e9, True)):
        pace, work = begun(10.0), 0.0
        for violation in 0.4 * np.exp2(-np.arange(5.0)):
            work += each
            found = pace.newton_is_quicker(float(violation), work, active)
        assert found == quicker
    for _ in range(40):
        pace.newton_was_tried()
    assert not pace.newton_is_quicker(0.4 / 64, work + 1e9, active)


def test_without_free_variables_there_is_nothing_to_solve_for(active: Variables) -> None:
    pace = begun(10.0)
    active.beta[:] = 0.0
    assert not pace.newton_is_quicker(0.3, 0.0, active)
    assert not pace.newton_is_quicker(0.2, 1e15, active)


def test_the_pace_is_that_of_the_last_halving(active: Variables) -> None:
    """Not of a smaller fall, and no longer of the halving before, which ends at half of where it began."""
    pace = begun(10.0)
    assert not pace.newton_is_quicker(0.25, 0.0, active)
    assert pace.newton_is_quicker(0.2, 1e12, active)
    assert pace.newton_is_quicker(0.19, 1e12 + 1e3, active)
    assert pace.newton_is_quicker(0.125, 1e12 + 2e3, active)
    assert not pace.newton_is_quicker(0.05, 1e12 + 3e3, active)


@pytest.mark.parametrize(("work", "quicker"), [(3e9, False), (3e10, True)])
def test_rounds_that_halve_the_violation_seven_times_are_quick(work: float, quicker: bool, active: Variables) -> None:
    pace = begun(10.0)
    assert not pace.newton_is_quicker(0.256, 0.0, active)
    assert pace.newton_is_quicker(0.002, work, active) == quicker


def test_newton_steps_are_for_as_many_free_variables_as_pivots_take(active: Variables, monkeypatch: pytest.MonkeyPatch) -> None:
    for most, quicker in ((9, False), (10, True)):
        monkeypatch.setattr(smo_pace, "MOST_FREE", most)
        pace = begun(10.0)
        assert not pace.newton_is_quicker(0.3, 0.0, active)
        assert pace.newton_is_quicker(0.2, 1e12, active) == quicker


def test_newton_steps_cost_little_after_much_work_that_led_far_off(active: Variables) -> None:
    pace, work = begun(10.0), 1e12
    assert pace.newton_costs_little(0.011, work, active)
    assert not pace.newton_costs_little(0.01, work, active)
    assert not pace.newton_costs_little(0.011, 1e9, active)
    active.beta[:] = 0.0
    assert not pace.newton_costs_little(0.011, work, active)


def test_violations_that_were_wrong_are_nothing_to_fall_below() -> None:
    pace = begun(10.0)
    pace.note(0.002)
    looks = [k * reviews._STEPS for k in range(1, 12)]
    assert not any(pace.review(steps) for steps in looks[:4])
    pace.was_wrong()
    pace.note(0.2)
    assert [pace.review(steps) for steps in looks[4:9]] == [False] * 4 + [True]


def test_other_ways_are_taken_once() -> None:
    """Such a claim by a run that has stalled, or by one that has done as much as the way would take."""
    pace = begun(10.0)
    assert [pace.claim_w(), pace.claim_w()] == [True, False]
    assert [pace.claim_interior(), pace.claim_interior()] == [True, False]
    assert not pace.claim_w_if_quicker(1e300, 1, 1)
    assert not pace.claim_interior_if_quicker(1e300)
    assert not pace.claim_rank(1e300)


def test_other_ways_wait_for_the_work_that_they_would_take() -> None:
    pace = begun(10.0)
    inside = pace.work_before_interior(0)
    by_w = smo_pace._W_SHARE * smo_pace._W_STEPS * pace.w_step_work(120, 3)
    assert not pace.claim_interior_if_quicker(0.99 * inside)
    assert not pace.claim_w_if_quicker(0.99 * by_w, 120, 3)
    assert pace.claim_interior_if_quicker(1.01 * inside)
    assert pace.work_before_w(120, 3) == by_w
    assert pace.claim_w_if_quicker(1.01 * by_w, 120, 3)
    assert pace.work_before_w(120, 3) == np.inf


def test_whether_k_is_of_low_rank_is_asked_once_and_makes_the_interior_come_sooner() -> None:
    pace = Pace(20_000, 1e-3)
    assert not pace.claim_rank(0.99 * smo_pace._BEFORE_RANK)
    assert [pace.claim_rank(1.01 * smo_pace._BEFORE_RANK), pace.claim_rank(1e300)] == [True, False]
    of_low_rank = pace.interior_step_work(80)
    assert of_low_rank < pace.interior_step_work(400) < 0.01 * pace.interior_step_work(0)
    assert pace.work_before_interior(80) == smo_pace._INTERIOR_STEPS * of_low_rank


def with_times(seed: int, start: float, span: int) -> Problem:
    """One feature is a number such as a time in seconds, which says nothing and dwarfs the others; linear."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([start + rng.integers(0, span, 3000), rng.normal(size=(3000, 4))])
    y = np.where(X[:, 1] + 0.5 * rng.normal(size=3000) > 0, 1.0, -1.0)
    return problem(X, y, Kernel(LINEAR), 100.0)


def test_where_rounding_hides_the_optimum_of_linear_machines_pair_steps_end() -> None:
    """Float32 steps that by their own arithmetic are done, and are not, are no progress."""
    found = run(smo, with_times(3, 1e7, 16666), smo.Options(), eps=1e-3, limits=Limits(max_iter=20_000_000))
    assert found.status in (Status.CONVERGED, Status.STALLED)
    assert found.certificate.gap <= 1e-6 * found.certificate.primal


def test_rounds_of_a_step_each_count_for_what_they_take() -> None:
    """Calls are short, another way is soon looked for, and after it a hurried look or two end the run: rounds that had a step
    each were 200,000 once. Of some of these seeds rounds still do, a long way.
    """
    most = 0
    for seed in (3, 4, 9, 18):
        state = smo.start(with_times(seed, 1.6e9, 2592000), smo.Options(), 1e-3, 0)
        rounds, before_w = 0, 0
        while not smo.advance(state, 10_000).stalled:
            most, rounds = max(most, state.rounds - rounds), state.rounds
            before_w = before_w or spent(state) * (state.to_w is not None)
        assert 0 < before_w < 100_000
        assert spent(state) < before_w + 2.5 * reviews._HURRIED_STEPS
    assert 10_000 // smo._ROUND_STEPS - 20 <= most <= 10_000 // smo._ROUND_STEPS + 1


def test_a_violation_within_eps_that_ends_nothing_is_no_fall() -> None:
    pace = Pace(40, 1e-3)
    stalled = []
    for steps in range(5_000_000, 25_000_001, 5_000_000):
        pace.note(0.1)
        pace.note(0.0)
        stalled.append(pace.review(steps))
    assert stalled == [False] * 4 + [True]
