"""The model of machines whose basis rows are no training rows."""

from __future__ import annotations

import numpy as np

from svmkit.assembly import assemble
from svmkit.certificate import UNKNOWN
from svmkit.data import Rows
from svmkit.model import decision_values
from svmkit.problem import LINEAR, Kernel, Solution
from svmkit.solvers.base import SolverResult
from svmkit.trace import Status
from svmkit.trained import Trained


def test_rows_of_no_coefficient_take_no_place_wherever_they_come_from() -> None:
    """Of training rows and of others some have coefficient 0."""
    training = Rows.from_dense(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]]))
    basis = Rows.from_dense(np.array([[5.0, 7.0], [1.0, 0.0], [2.0, 9.0], [3.0, 1.0], [4.0, 1.0]]))
    coef, origin, rho = np.array([0.0, 0.0, 0.5, -1.0, 2.0]), np.array([-1, 0, -1, 2, -1]), 0.25
    found = SolverResult(Solution(basis, origin, coef, rho), Status.COMPLETED, UNKNOWN, 0, 0, 0.0)
    members = [np.array([0, 2]), np.array([1])]
    model, sv_index = assemble(
        training, "c_svc", Kernel(LINEAR), np.array([1, -1]), members, [Trained(np.arange(3), found, 0.0)], "ovo"
    )
    assert sv_index.tolist() == [2, -1, -1]
    assert model.rows.to_dense()[:, 1:].tolist() == [[3, 1], [2, 9], [4, 1]]
    expected = training.to_dense() @ basis.to_dense().T @ coef - rho
    assert decision_values(model, training)[:, 0].tolist() == expected.tolist()
