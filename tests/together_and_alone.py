"""Machines trained together against each trained alone, for the tests of what trains them together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from svmkit import fit as fit_module
from svmkit.fit import FitResult
from svmkit.io.model_libsvm import model_text
from svmkit.solvers import smo

KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear", "C": 0.02},
    "polynomial": {"kernel": "polynomial", "gamma": 0.2, "coef0": 1.0, "degree": 2, "C": 0.1},
    "rbf": {},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01},
}


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes smo train each machine by itself."""
    names = ("SUMMARY", "PAPER", "EXACT", "BIASES", "WARM", "Options", "start", "advance", "solution")
    solver = SimpleNamespace(**{name: getattr(smo, name) for name in names})
    monkeypatch.setattr(fit_module, "solver_named", lambda name: solver)


def assert_same(found: FitResult, expected: FitResult) -> None:
    assert model_text(found.model) == model_text(expected.model)
    for one, other in zip(found.machines, expected.machines, strict=True):
        assert (one.status, one.steps, one.kernel_evaluations) == (other.status, other.steps, other.kernel_evaluations)
        assert np.array_equal(one.solution.origin, other.solution.origin)
        assert np.array_equal(one.solution.coef, other.solution.coef)
        assert one.solution.rho == other.solution.rho
        assert not one.solution.own.n
        ours, theirs = one.certificate, other.certificate
        scale = 1e-12 * max(1.0, abs(theirs.primal))
        assert_allclose([ours.primal, ours.dual, ours.gap], [theirs.primal, theirs.dual, theirs.gap], atol=scale, rtol=1e-12)
        assert_allclose([ours.violation, ours.noise], [theirs.violation, theirs.noise], atol=1e-13, rtol=1e-12)
