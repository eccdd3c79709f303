"""Probabilities: against the genuine svm-predict -b 1, and the coupling against the problem it solves."""

from __future__ import annotations

import numpy as np
import pytest
from golden_data import GOLDEN, MODELS, data_of, numbers, read_rows
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from svmkit import calibrate
from svmkit.calibrate import (
    couple,
    laplace_width,
    most_probable,
    one_class_probability,
    probabilities,
    sigmoid,
    supports_probability,
)
from svmkit.data import Floats
from svmkit.errors import ModelError
from svmkit.io.model_libsvm import read_model
from svmkit.model import decision_values

CLASSIFIERS = [name for name in MODELS if name.endswith(".b1") and not name.startswith("value")]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities_equal_svm_predicts(name: str) -> None:
    model = read_model(str(GOLDEN / f"{name}.model"))
    theirs = numbers(GOLDEN / f"{name}.prob", skip=1)
    assert model.labels is not None
    assert (GOLDEN / f"{name}.prob").read_text().split("\n")[0].split()[1:] == [str(label) for label in model.labels]
    decisions = decision_values(model, read_rows(data_of(name))[1])
    ours = probabilities(model, decisions)
    assert_allclose(ours, theirs[:, 1:], rtol=6e-6)  # six digits were written
    assert_array_equal(most_probable(model, decisions, ours), theirs[:, 0])


def test_widths_of_regression_models() -> None:
    for name in ("value.s3t2.b1", "value.s4t2.b1"):
        text = (GOLDEN / f"{name}.model").read_text()
        model = read_model(str(GOLDEN / f"{name}.model"))
        assert f"probA {laplace_width(model):.17g}\n" in text
        with pytest.raises(ModelError, match="does not support"):
            probabilities(model, np.zeros((1, 1)))


def test_a_model_without_probabilities_says_so() -> None:
    for name in ("two.s0t2", "two.s2t2"):
        model = read_model(str(GOLDEN / f"{name}.model"))
        assert not supports_probability(model)
        with pytest.raises(ModelError, match="Model does not support probability estimates"):
            probabilities(model, np.zeros((1, 1)))
        with pytest.raises(ModelError, match="Model does not support probability estimates"):
            laplace_width(model)


def test_a_decision_value_that_is_no_number_is_the_least_chance_as_in_svm_predict() -> None:
    """svm-train writes such models, of nu-SVC where nu is nearly infeasible."""
    names = [name for name in MODELS if name.startswith("two") and name.endswith("b1")]
    assert names
    for name in names:
        model = read_model(str(GOLDEN / f"{name}.model"))
        if model.labels is not None:
            assert_array_equal(probabilities(model, np.array([[np.nan]])), [[1e-7, 1.0 - 1e-7]])


def test_pair_probabilities_stay_a_little_away_from_0_and_1_as_in_svm_predict() -> None:
    """Decision values whose sigmoids are 1 and 0, but for 1e-15."""
    two = read_model(str(GOLDEN / "two.s0t2.b1.model"))
    first = np.array([1.0 - 1e-7, 1e-7])
    assert_array_equal(probabilities(two, np.array([[30.0], [-30.0]])), np.stack([first, 1.0 - first], axis=1))


def test_sigmoid_far_out() -> None:
    values = np.array([[-1e300, -800.0, 0.0, 800.0, 1e300]])
    assert_array_equal(sigmoid(values, np.array([-1.0]), np.array([0.0])), [[0.0, 0.0, 0.5, 1.0, 1.0]])


def test_one_class_marks() -> None:
    marks = np.arange(10) / 10.0 - 0.35
    values = np.array([-9.0, -0.36, -0.3, 0.0, 0.1, 0.54, 0.56, 9.0])
    assert_allclose(one_class_probability(values, marks), [0.001, 0.001, 0.1, 0.4, 0.5, 0.9, 0.999, 0.999])
    assert_allclose(one_class_probability(marks, marks), [*np.arange(1, 10) / 10, 0.999])  # a mark begins its tenth


def random_pairs(k: int, n: int, seed: int, sharpness: float) -> Floats:
    t = sharpness * np.random.default_rng(seed).normal(size=(n, k, k))
    r = np.clip(1 / (1 + np.exp(-np.triu(t, 1))), 1e-7, 1 - 1e-7)
    upper = np.triu(np.ones((k, k)), 1)
    return np.asarray(r * upper + (1 - r.transpose(0, 2, 1)) * upper.T)


def coupled_exactly(r: Floats) -> Floats:
    """The minimum of Σ (r_ji p_i − r_ij p_j)² on Σ p = 1, by its linear equations."""
    k = len(r)
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = -r * r.T
    for i in range(k):
        system[i, i] = sum(r[j, i] ** 2 for j in range(k) if j != i)
    system[:k, k] = system[k, :k] = 1.0
    return np.asarray(np.linalg.solve(system, np.eye(k + 1)[k])[:k])


@given(st.integers(3, 9), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 3.0]))
def test_coupling_meets_its_tolerance(k: int, seed: int, sharpness: float) -> None:
    r = random_pairs(k, 6, seed, sharpness)
    p, unsettled = couple(r)
    assert_allclose(p.sum(axis=1), 1.0)
    assert (p >= 0).all()
    assert len(unsettled) == 0  # four rounds or five are enough
    for row in range(6):
        Q = -r[row] * r[row].T + np.diag((r[row] ** 2).sum(axis=0))
        assert np.abs(Q @ p[row] - p[row] @ Q @ p[row]).max() <= 0.005 / k + 1e-12
        if k == 3 and sharpness < 1:
            assert_allclose(p[row], coupled_exactly(r[row]), atol=0.02)


def test_coupling_of_consistent_pairs_gives_them_back() -> None:
    p = np.array([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]])
    r = p[:, :, None] / (p[:, :, None] + p[:, None, :]) * (1 - np.eye(3))
    assert_allclose(couple(r)[0], p, atol=0.01)


def test_rows_that_do_not_settle_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair probabilities are known that take more rounds than allowed; so no round is allowed here."""
    monkeypatch.setattr(calibrate, "_rounds", lambda k: 0)
    said: list[str] = []
    model = read_model(str(GOLDEN / "three.s0t2.b1.model"))
    probabilities(model, np.zeros((2, 3)), said.append)
    assert said == [calibrate.COUPLING_LIMIT] * 2


@pytest.mark.parametrize(("k", "rounds"), [(3, 100), (100, 100), (101, 101)])
def test_rounds_are_libsvms(k: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(calibrate, "_round", lambda Q, p, Qp, pQp: taken.append(1) or p)  # nothing settles by that
    unsettled = couple(random_pairs(k, 1, 0, 2.0))[1]
    assert (len(taken), unsettled.tolist()) == (rounds, [0])


def test_rows_do_not_disturb_each_other() -> None:
    r = random_pairs(4, 30, 1, 2.0)
    together = couple(r)[0]
    assert_array_equal(together, np.concatenate([couple(r[i : i + 1])[0] for i in range(30)]))
