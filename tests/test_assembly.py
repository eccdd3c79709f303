"""The model of all machines together, whose basis rows may be no training rows."""

from __future__ import annotations

import numpy as np
import pytest
from golden_data import dataset_of

from svmkit import assembly
from svmkit.assembly import assemble
from svmkit.certificate import UNKNOWN
from svmkit.config import TrainConfig
from svmkit.data import Rows
from svmkit.fit import fit
from svmkit.io.model_libsvm import model_text
from svmkit.model import decision_values
from svmkit.problem import LINEAR, Kernel, Solution
from svmkit.solvers.base import SolverResult
from svmkit.trace import Status
from svmkit.trained import trained_alone


def test_rows_of_no_coefficient_take_no_place_wherever_they_come_from() -> None:
    """Of training rows and of others some have coefficient 0."""
    training = Rows.from_dense(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]]))
    basis = Rows.from_dense(np.array([[5.0, 7.0], [1.0, 0.0], [2.0, 9.0], [3.0, 1.0], [4.0, 1.0]]))
    coef, origin, rho = np.array([0.0, 0.0, 0.5, -1.0, 2.0]), np.array([-1, 0, -1, 2, -1]), 0.25
    found = SolverResult(Solution(basis, origin, coef, rho), Status.COMPLETED, UNKNOWN, 0, 0, 0.0)
    members = [np.array([0, 2]), np.array([1])]
    machines = [trained_alone(training, np.arange(3), found, 0.0)]
    model, sv_index = assemble(training, "c_svc", Kernel(LINEAR), np.array([1, -1]), members, machines, "ovo")
    assert sv_index.tolist() == [2, -1, -1]
    assert model.rows.to_dense()[:, 1:].tolist() == [[3, 1], [2, 9], [4, 1]]
    expected = training.to_dense() @ basis.to_dense().T @ coef - rho
    assert decision_values(model, training)[:, 0].tolist() == expected.tolist()


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_coefficients_may_be_put_in_place_a_few_machines_at_a_time(multiclass: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, config = dataset_of("three"), TrainConfig(solver="pair", multiclass=multiclass)
    expected = model_text(fit(data, config).model)
    for n in (1, 40):
        monkeypatch.setattr(assembly, "_AT_A_TIME", n)
        assert model_text(fit(data, config).model) == expected


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_where_a_row_has_no_coefficient_it_is_0_or_minus_0_as_the_class_is_the_first_or_second(multiclass: str) -> None:
    model = fit(dataset_of("three"), TrainConfig(multiclass=multiclass)).model
    own, column = np.repeat(np.arange(3), np.diff(model.class_starts))[:, None], np.arange(model.coef.shape[1])
    nothing = model.coef == 0
    assert nothing.any(axis=0).all()
    assert (np.signbit(model.coef) == ((column < own) & (multiclass == "ovo")))[nothing].all()
