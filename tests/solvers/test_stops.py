"""Why a run ends: at its limits, and not before."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from svmkit.solvers import base
from svmkit.solvers.stops import Stops, given_up
from svmkit.trace import Limits, Progress, Status


@pytest.mark.parametrize(("now", "expected"), [(np.nextafter(2.0, 0.0), None), (2.0, Status.TIME_LIMIT)])
def test_the_time_is_up_when_the_limit_is_reached(now: float, expected: Status | None) -> None:
    limits = Limits(time_limit_s=2.0)
    assert given_up(limits, lambda: False, now) is expected
    assert Stops(limits, lambda: False).status(Progress(1, 1), now) is expected


def test_a_gap_may_be_twice_what_the_violation_leaves_or_not_known() -> None:
    gaps = np.array([0.0, 3.0, np.nextafter(3.0, 4.0), np.inf, np.nan])
    assert base.is_close(gaps, 0.5, 3.0).tolist() == [True, True, False, False, True]


def test_the_work_at_a_streams_end_goes_in_calls_that_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of steps of 10 ms each: signals are heard between calls."""
    now_s, budgets = 0.0, list[int]()

    def finish(state: None, budget: int) -> Progress:
        nonlocal now_s
        now_s += 0.01 * budget
        budgets.append(budget)
        return Progress(0, 0, completed=sum(budgets) >= 100)

    monkeypatch.setattr(base, "time", SimpleNamespace(perf_counter=lambda: now_s))
    assert base.finish(SimpleNamespace(finish=finish), None, lambda: False) is not None
    assert max(budgets) * 0.01 < 2 * base.CALL_S
