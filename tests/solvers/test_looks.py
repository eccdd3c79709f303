"""Certificates that take long: somebody listens meanwhile, and they are given up where training is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from zoo import named

from svmkit.problem import Solution
from svmkit.solvers import looks, smo
from svmkit.solvers.base import SolverResult, run
from svmkit.trace import Progress, Status, TraceRow

CASE = named("rbf")


def trained(**listeners: Any) -> SolverResult:
    return run(smo, CASE, smo.Options(), eps=1e-3, **listeners)


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every look takes long, and ends with the test."""
    ended, whole = threading.Event(), looks.certify
    monkeypatch.setattr(looks, "_LONG", 0)
    monkeypatch.setattr(looks, "_PATIENCE_S", 0.2)
    monkeypatch.setattr(looks, "certify", lambda *given: (ended.wait(60), whole(*given))[1])
    yield
    ended.set()


def test_a_long_certificate_is_that_of_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = trained()
    monkeypatch.setattr(looks, "_LONG", 0)
    found = trained()
    assert (found.status, found.certificate) == (Status.CONVERGED, expected.certificate)


def test_a_solution_whose_certificate_is_given_up_is_kept(stuck: None) -> None:
    """What is told goes on until then."""
    told: list[Progress] = []

    def heard(now: float, progress: Progress) -> None:
        told.append(progress)

    found = trained(interrupted=lambda: len(told) > 0 and told[-1].done, on_progress=heard)
    assert found.status is Status.INTERRUPTED
    assert found.solution.n_support > 0
    assert np.isnan([found.certificate.primal, found.certificate.gap, found.certificate.violation]).all()
    assert len([progress for progress in told if progress.done]) > 2


def test_a_row_of_the_trace_that_is_given_up_is_left_out(stuck: None) -> None:
    rows: list[TraceRow] = []
    found = trained(interrupted=lambda: True, on_trace=rows.append)
    assert (found.status, len(rows)) == (Status.INTERRUPTED, 1)  # of nothing, before the first step
    begun: list[int] = []
    found = trained(
        interrupted=lambda: len(begun) > 0, on_trace=rows.append, on_progress=lambda now, progress: begun.append(progress.steps)
    )
    assert found.status is Status.INTERRUPTED
    assert np.isnan(rows[-1].primal)
    assert len(rows) == 2


def held_up(ended: threading.Event, began: list[int]) -> Callable[[Solution], float]:
    """A held-out error that is not known until the test has ended."""

    def error(found: Solution) -> float:
        began.append(1)
        ended.wait(60)
        return 0.5

    return error


def test_a_held_out_error_that_is_given_up_is_not_known() -> None:
    """What is told goes on until then."""
    ended, began, told, rows = threading.Event(), [], [], []
    found = trained(
        interrupted=lambda: len(told) > 4,
        on_progress=lambda now, progress: told.extend(began),
        on_trace=rows.append,
        holdout_error=held_up(ended, began),
    )
    ended.set()
    assert found.status is Status.INTERRUPTED
    assert np.isnan([row.holdout_error for row in rows]).all()
    assert np.isfinite([row.primal for row in rows]).all()


def test_what_the_certificate_has_taken_of_the_time_for_last_looks_the_error_does_not_get(stuck: None) -> None:
    ended, began, told, rows = threading.Event(), [], [], []
    trained(
        interrupted=lambda: len(told) > 0,
        on_progress=lambda now, progress: told.append(len(began)),
        on_trace=rows.append,
        holdout_error=held_up(ended, began),
    )
    ended.set()
    assert len(began) == 1
    assert told.count(1) == 1
    assert np.isnan([rows[-1].primal, rows[-1].holdout_error]).all()


def test_while_nothing_has_been_evaluated_rows_follow_the_time() -> None:
    rows: list[TraceRow] = []
    seen = looks.Looks(CASE, rows.append, None, lambda: False)
    nothing = smo.solution(smo.start(CASE, smo.Options(), 1e-3, 0))
    for now, evaluations in ((1.0, 0), (1.1, 0), (1.2, 1), (1.6, 2), (1.8, 3)):
        seen.maybe(now, Progress(1, evaluations), lambda: nothing)
    assert [(row.seconds, row.kernel_evaluations) for row in rows] == [(1.0, 0), (1.2, 1), (1.8, 3)]
