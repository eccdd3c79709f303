"""How near the optimum scs and wolfe end on 8,000 rows of a9a and, 8 against the rest, 10,000 of MNIST."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from svmkit import solvers
from svmkit.certificate import certify
from svmkit.engine.kernels import cross_apply
from svmkit.io.libsvm_data import read_dataset
from svmkit.problem import RBF, Kernel, Problem
from svmkit.solvers.base import run

DATA = Path(os.environ.get("SVMKIT_DATA", "datasets/cache"))


def real(name: str, C: float | None) -> Problem:
    """The problem without a bias; without C, λ = 1."""
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} is not there")
    n, gamma = {"a9a": (8000, 0.05), "mnist": (10_000, 0.01)}[name]
    whole = read_dataset(str(DATA / name)).take(np.arange(n))
    rows, y = whole.rows, whole.y
    if name == "mnist":
        rows, y = rows._replace(data=rows.data / 255.0), np.where(y == 8, 1.0, -1.0)
    return Problem(rows, y, np.full(n, C or 1.0 / n), Kernel(RBF, gamma), "none")


def primal(name: str, case: Problem) -> float:
    solver = solvers.solver(name)
    return run(solver, case, solver.Options(), eps=1e-3).certificate.primal


@pytest.mark.slow
@pytest.mark.parametrize("data", ["a9a", "mnist"])
@pytest.mark.parametrize("name", ["scs", "wolfe"])
def test_at_lambda_1_the_closed_form_is_reached(name: str, data: str) -> None:
    case = real(data, None)
    response = cross_apply(case.rows, case.rows, case.kernel, case.y[:, None] / case.n)[:, 0]
    best = 1.0 - float(np.mean(case.y * response)) / 2
    assert best - 1e-9 <= primal(name, case) <= best + 1e-2 * min(1.0 - best, 0.1 * best)


@pytest.mark.slow
@pytest.mark.parametrize("data", ["a9a", "mnist"])
@pytest.mark.parametrize("name", ["scs", "wolfe"])
def test_at_C_1_the_exact_optimum_is_near(name: str, data: str) -> None:
    case = real(data, 1.0)
    smo = solvers.solver("smo")
    exact = certify(case, run(smo, case, smo.Options(), eps=1e-3).solution)
    assert exact.dual <= primal(name, case) <= 1.002 * exact.primal
