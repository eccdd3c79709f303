"""Why a run ends: at its limits, and not before; and what is made of that, once there is a certificate."""

from __future__ import annotations

from math import nan
from types import SimpleNamespace

import numpy as np
import pytest

from svmkit.certificate import Certificate
from svmkit.problem import as_expansion
from svmkit.solvers import base
from svmkit.solvers.stops import Patience, Stops, given_up, is_close, of_a_gap, verdict
from svmkit.trace import Limits, Progress, Status


@pytest.mark.parametrize(("now", "expected"), [(np.nextafter(2.0, 0.0), None), (2.0, Status.TIME_LIMIT)])
def test_the_time_is_up_when_the_limit_is_reached(now: float, expected: Status | None) -> None:
    limits = Limits(time_limit_s=2.0)
    assert given_up(limits, lambda: False, now) is expected
    assert Stops(limits, lambda: False).status(Progress(1, 1), now) is expected


def test_a_gap_may_be_twice_what_the_violation_leaves_or_not_known() -> None:
    gaps = np.array([0.0, 3.0, np.nextafter(3.0, 4.0), np.inf, np.nan])
    assert is_close(gaps, 0.5, 3.0).tolist() == [True, True, False, False, True]


@pytest.mark.parametrize(
    ("even", "allowed", "taken", "call_s", "expected"),
    [
        (False, 8, 8, 0.101, 4),
        (False, 3, 3, 0.101, 1),  # cut for another reason: half of what took so long
        (False, 1, 1, 9.0, 1),
        (False, 8, 8, 0.05, 8),
        (False, 8, 8, 0.03, 8),
        (False, 8, 8, 0.0249, 16),
        (False, 8, 8, 0.003, 64),
        (False, 8, 8, 0.0001, 512),
        (True, 8, 8, 0.0001, 16),
        (False, 8, 2, 0.0001, 128),
        (False, 8, 0, 0.0001, 64),
        (False, 7, 7, 0.0001, 8),  # cut for another reason: it says nothing of 8
    ],
)
def test_how_many_steps_the_next_call_takes(even: bool, allowed: int, taken: int, call_s: float, expected: int) -> None:
    budget = base._Budget(even)
    budget.steps = 8
    budget.heed(allowed, taken, call_s)
    assert budget.steps == expected


def test_the_work_at_a_streams_end_goes_in_calls_that_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of steps of 10 ms each: signals are heard between calls."""
    now_s, budgets = 0.0, list[int]()

    def finish(state: None, budget: int) -> Progress:
        nonlocal now_s
        now_s += 0.01 * budget
        budgets.append(budget)
        return Progress(0, 0, completed=sum(budgets) >= 100)

    monkeypatch.setattr(base, "time", SimpleNamespace(perf_counter=lambda: now_s))
    found = base.finish(SimpleNamespace(finish=finish), None, lambda: False)
    assert found is not None
    assert found.ended
    assert max(budgets) * 0.01 < 2 * base.CALL_S


def test_the_work_at_a_streams_end_is_done_in_few_calls_where_steps_are_quick() -> None:
    left, calls = 100_000, 0

    def finish(state: None, budget: int) -> Progress:
        nonlocal left, calls
        left, calls = left - budget, calls + 1
        return Progress(0, 0, completed=left <= 0)

    found = base.finish(SimpleNamespace(finish=finish), None, lambda: False)
    assert found is not None
    assert found.ended
    assert calls < 100


def test_a_run_that_has_both_converged_and_used_its_epochs_up_has_converged() -> None:
    stops = Stops(Limits(), lambda: False)
    assert stops.status(Progress(9, 9, done=True, completed=True), 0.0) is Status.CONVERGED
    assert stops.status(Progress(9, 9, completed=True, stalled=True), 0.0) is Status.COMPLETED


def test_patience_asks_of_few_examples_after_the_first_step_not_before() -> None:
    watch = Patience(2, lambda found: 0.5, 10)
    assert watch.steps_left(0) == 1
    assert not watch.is_over(0, lambda: pytest.fail("nothing has been learned"))


def test_patience_counts_errors_that_are_known_since_the_lowest() -> None:
    errors = iter([0.3, nan, nan, 0.3, nan, 0.2, 0.2, nan, 0.4])
    watch, over = Patience(2, lambda found: next(errors), 16), list[bool]()
    points = [as_expansion(np.full(1, float(step)), 0.0) for step in range(1, 10)]
    while len(over) < len(points):
        over.append(watch.is_over(watch.steps_left(0), lambda: points[len(over)]))
    assert over == [False] * 8 + [True]
    assert watch.best is points[5]


@pytest.mark.parametrize(
    ("status", "violation", "noise", "gap", "expected"),
    [
        (Status.CONVERGED, 1e-3, 0.0, 0.0, Status.CONVERGED),
        (Status.CONVERGED, 1.9e-3, 1.0, 0.0, Status.CONVERGED),  # rounding counts as far as eps
        (Status.CONVERGED, 2.1e-3, 1.0, 0.0, Status.STALLED),
        (Status.CONVERGED, 1.1e-3, 0.0, 0.0, Status.STALLED),
        (Status.CONVERGED, 0.0, 0.0, 0.021, Status.STALLED),  # 2 eps Σ C is 0.02
        (Status.STALLED, 1e-3, 0.0, 0.0, Status.CONVERGED),
        (Status.STALLED, 1e-3, 0.0, 0.021, Status.STALLED),
        (Status.COMPLETED, 1e-3, 0.0, 0.0, Status.COMPLETED),
        (Status.COMPLETED, 1.1e-3, 0.0, 0.0, Status.MAX_ITER),
        (Status.COMPLETED, nan, 0.0, nan, Status.MAX_ITER),
        (Status.TIME_LIMIT, 0.0, 0.0, 0.0, Status.TIME_LIMIT),
    ],
)
def test_the_verdict_on_an_exact_solver(status: Status, violation: float, noise: float, gap: float, expected: Status) -> None:
    certificate = Certificate(primal=gap, dual=0.0, gap=gap, violation=violation, noise=noise)
    assert verdict(status, certificate, 1e-3, np.full(5, 2.0)) is expected


@pytest.mark.parametrize(
    ("status", "gap", "expected"),
    [
        (Status.CONVERGED, 2e-3, Status.CONVERGED),
        (Status.CONVERGED, 2e-3 * (1.0 + 5e-7), Status.CONVERGED),  # sums in another order
        (Status.CONVERGED, 2.1e-3, Status.STALLED),
        (Status.CONVERGED, nan, Status.COMPLETED),
        (Status.STALLED, 2e-3, Status.CONVERGED),
        (Status.STALLED, 2.1e-3, Status.STALLED),
        (Status.STALLED, nan, Status.STALLED),
        (Status.COMPLETED, 0.0, Status.COMPLETED),
        (Status.TIME_LIMIT, 0.0, Status.TIME_LIMIT),
    ],
)
def test_the_verdict_on_a_solver_that_goes_by_its_gap(status: Status, gap: float, expected: Status) -> None:
    certificate = Certificate(primal=2.0, dual=2.0 - gap, gap=gap, violation=1.0)
    assert of_a_gap(status, certificate, 1e-3) is expected


def test_costs_near_the_end_of_doubles_make_no_warning() -> None:
    certificate = Certificate(primal=0.0, dual=0.0, gap=0.0, violation=0.0)
    assert verdict(Status.CONVERGED, certificate, 1e-3, np.full(5, 1e308)) is Status.CONVERGED
