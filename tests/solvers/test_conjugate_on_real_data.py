"""How near the optimum scs and wolfe end on 8,000 rows of a9a and, 8 against the rest, 10,000 of MNIST."""

from __future__ import annotations

import numpy as np
import pytest
from real_data import real

from svmkit import solvers
from svmkit.certificate import certify
from svmkit.engine.kernels import cross_apply
from svmkit.problem import Problem
from svmkit.solvers.base import run


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
