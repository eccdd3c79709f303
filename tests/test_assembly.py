"""The model of all machines together, whose basis rows may be no training rows."""

from __future__ import annotations

import numpy as np
import pytest
from golden_data import dataset_of

from svmkit import assembly
from svmkit.assembly import assemble
from svmkit.config import TrainConfig
from svmkit.data import Rows
from svmkit.fit import fit
from svmkit.io.model_libsvm import model_text
from svmkit.model import decision_values
from svmkit.problem import LINEAR, Kernel, Solution, of_other_rows
from svmkit.trained import uncertified


def test_rows_of_no_coefficient_take_no_place_wherever_they_come_from() -> None:
    """Of machines on training rows and on others, with some coefficients of 0."""
    training = Rows.from_dense(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]]))
    own = Rows.from_dense(np.array([[5.0, 7.0], [2.0, 9.0], [4.0, 1.0]]))
    found = [
        Solution(np.arange(2), np.array([0.0, -1.0]), 0.25),
        of_other_rows(own, np.array([0.0, 0.5, 2.0]), 0.5),
        of_other_rows(own.part(0, 1), np.zeros(1), 0.75),
    ]
    machines = [uncertified(np.array(pair), each) for pair, each in zip([(0, 1), (0, 2), (1, 2)], found, strict=True)]
    members = [np.array([each]) for each in range(3)]
    model, sv_index = assemble(training, "c_svc", Kernel(LINEAR), np.arange(3), members, machines, "ovo")
    assert sv_index.tolist() == [-1, -1, 1]
    assert model.rows.to_dense()[:, 1:].tolist() == [[2, 9], [4, 1], [0, 2]]
    sums = [0.0 - training.to_dense()[:, 2] * 2.0, training.to_dense() @ own.to_dense().T @ found[1].coef, np.zeros(3)]
    expected = [each - one.rho for each, one in zip(sums, found, strict=True)]
    assert decision_values(model, training).T.tolist() == [each.tolist() for each in expected]


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
