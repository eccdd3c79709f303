"""Certificates that take long: somebody listens meanwhile, and they are given up where training is."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from zoo import named

from svmkit import parallel
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
    monkeypatch.setattr(parallel, "_PATIENCE_S", 0.2)
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
