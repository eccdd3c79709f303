"""Probabilities: against the genuine svm-predict -b 1, and the coupling against the problem it solves."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from golden_data import GOLDEN, MODELS, data_of, numbers, read_rows
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from svmkit import calibrate, parallel
from svmkit.calibrate import (
    couple,
    laplace_width,
    most_probable,
    one_class_probability,
    probabilities,
    sigmoid,
    supports_probability,
)
from svmkit.data import Floats, Ints
from svmkit.engine import coupling
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
    t = sharpness * np.random.default_rng(seed).normal(size=(n, k * (k - 1) // 2))
    return np.clip(1 / (1 + np.exp(-t)), 1e-7, 1 - 1e-7)


def matrix_of(won: Floats, k: int) -> Floats:
    """r (k, k) of one row of pairs."""
    r = np.zeros((k, k))
    r[np.triu_indices(k, 1)] = won
    return r + np.tril(1 - r.T, -1)


def coupled_exactly(r: Floats) -> Floats:
    """The minimum of Σ (r_ji p_i − r_ij p_j)² on Σ p = 1, by its linear equations."""
    k = len(r)
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = quadratic(r)
    system[:k, k] = system[k, :k] = 1.0
    return np.asarray(np.linalg.solve(system, np.eye(k + 1)[k])[:k])


def quadratic(r: Floats) -> Floats:
    return np.asarray(np.diag((r**2).sum(axis=0)) - r * r.T)


def coupled_slowly(r: Floats, rounds: int) -> Floats:
    """By coordinates, each moved to its optimum and all divided by their sum, until Qp is level."""
    k, Q = len(r), quadratic(r)
    p = np.full(k, 1.0 / k)
    for _ in range(rounds):
        if np.abs(Q @ p - p @ Q @ p).max() < 0.005 / k:
            break
        for t in range(k):
            p[t] += (p @ Q @ p - Q[t] @ p) / Q[t, t]
            p /= p.sum()
    return p


@given(st.integers(3, 9), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 3.0]))
def test_coupling_meets_its_tolerance(k: int, seed: int, sharpness: float) -> None:
    won = random_pairs(k, 6, seed, sharpness)
    p, unsettled = couple(won, k)
    assert_allclose(p.sum(axis=1), 1.0)
    assert (p >= 0).all()
    assert len(unsettled) == 0  # four rounds or five are enough
    for row in range(6):
        r = matrix_of(won[row], k)
        Q = quadratic(r)
        assert np.abs(Q @ p[row] - p[row] @ Q @ p[row]).max() <= 0.005 / k + 1e-12
        if k == 3 and sharpness < 1:
            assert_allclose(p[row], coupled_exactly(r), atol=0.02)


@pytest.mark.parametrize(("k", "rounds"), [(3, 1), (3, 100), (7, 0), (7, 2), (7, 100), (40, 100)])
def test_coupling_goes_by_coordinates(k: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "_rounds", lambda k: rounds)
    won = random_pairs(k, 30, 3, 2.0)
    p, unsettled = couple(won, k)
    assert_allclose(p, [coupled_slowly(matrix_of(each, k), rounds) for each in won], rtol=1e-9)
    assert len(unsettled) == (30 if rounds < 3 else 0)


def test_coupling_of_consistent_pairs_gives_them_back() -> None:
    p = np.array([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]])
    won = np.stack([p[:, i] / (p[:, i] + p[:, j]) for i, j in ((0, 1), (0, 2), (1, 2))], axis=1)
    assert_allclose(couple(won, 3)[0], p, atol=0.01)


def test_rows_that_do_not_settle_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair probabilities are known that take more rounds than allowed; so no round is allowed here."""
    monkeypatch.setattr(calibrate, "_rounds", lambda k: 0)
    said: list[str] = []
    model = read_model(str(GOLDEN / "three.s0t2.b1.model"))
    probabilities(model, np.zeros((2, 3)), said.append)
    assert said == [calibrate.COUPLING_LIMIT] * 2


@pytest.mark.parametrize(("k", "rounds"), [(3, 100), (100, 100), (101, 101)])
def test_rounds_are_libsvms(k: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which no row is known to need."""
    allowed: list[int] = []

    def none_settles(won: Floats, k: int, rounds: int) -> tuple[Floats, Ints]:
        allowed.append(rounds)
        return np.full((1, k), 1.0 / k), np.array([rounds])

    monkeypatch.setattr(calibrate, "couple_pairs", none_settles)
    assert couple(random_pairs(k, 1, 0, 2.0), k)[1].tolist() == [0]
    assert allowed == [rounds]


def test_neither_rows_nor_threads_disturb_each_other(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    monkeypatch.setattr(coupling, "_PIECE_VALUES", 16)
    won = random_pairs(4, 30, 1, 2.0)
    parallel.use_threads(1)
    one_by_one = np.concatenate([couple(won[i : i + 1], 4)[0] for i in range(30)])
    for count in (1, 3):
        parallel.use_threads(count)
        assert_array_equal(couple(won, 4)[0], one_by_one)


def test_coupling_keeps_no_matrix_a_row() -> None:
    k, n = 60, 300
    won = random_pairs(k, n, 2, 1.0)
    couple(won[:1], k)
    tracemalloc.start()
    couple(won, k)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * k * k * 8 / 10
