"""Metrics: against scikit-learn's and against counting."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from golden_data import GOLDEN, TOOLS, needs_tools, numbers
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics as reference

from svmkit import metrics
from svmkit.data import Floats, Ints

answers = st.lists(st.tuples(st.sampled_from([3.0, -1.0, 2.0]), st.sampled_from([3.0, -1.0, 2.0])), min_size=1, max_size=30)
ORDER = np.array([3.0, -1.0, 2.0])


@given(answers)
def test_classification_figures_equal_scikit_learns(pairs: list[tuple[float, float]]) -> None:
    truth, predicted = (np.array(side) for side in zip(*pairs, strict=True))
    assert metrics.accuracy(truth, predicted) == reference.accuracy_score(truth, predicted)
    assert metrics.error(truth, predicted) == reference.zero_one_loss(truth, predicted, normalize=False) / len(pairs)
    table = metrics.confusion(truth, predicted, ORDER)
    assert_array_equal(table[:-1], reference.confusion_matrix(truth, predicted, labels=ORDER))
    assert not table[-1].any()


def test_labels_outside_the_model() -> None:
    truth, called = np.array([1.0, 7.0, math.nan, 2.0, 1.5]), np.array([1.0, 2.0, 2.0, 2.0, 1.0])
    assert_array_equal(metrics.confusion(truth, called, np.array([2, 1])), [[1, 0], [0, 1], [1, 1]])
    assert metrics.accuracy(truth, called) == 0.4


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=40))
def test_auc_counts_pairs(examples: list[tuple[bool, int]]) -> None:
    positive = np.array([p for p, _ in examples])
    decisions = np.array([float(d) for _, d in examples])
    above = [
        float(a > b) + 0.5 * float(a == b)
        for p, a in zip(positive, decisions, strict=True)
        for q, b in zip(positive, decisions, strict=True)
        if p and not q
    ]
    assert_allclose(metrics.auc(positive, decisions), np.mean(above) if above else math.nan)
    if above:
        assert_allclose(metrics.auc(positive, decisions), reference.roc_auc_score(positive, decisions))


def test_auc_of_values_that_are_none_is_none() -> None:
    positive = np.array([True, False, True, False])
    assert math.isnan(metrics.auc(positive, np.array([1.0, 0.0, math.nan, 0.5])))
    assert metrics.auc(positive, np.array([math.inf, 0.0, 1.0, -math.inf])) == 1.0


def test_pairwise_auc_is_the_mean_over_class_pairs() -> None:
    draw = np.random.default_rng(0)
    truth, labels = draw.choice([4.0, 1.0, 6.0, 9.0], 60), np.array([4, 1, 6])  # the model does not know 9
    decisions = draw.normal(size=(60, 3)).round(1)  # some are tied
    each = []
    for column, (a, b) in enumerate([(4, 1), (4, 6), (1, 6)]):
        of_pair = np.isin(truth, [a, b])
        each.append(reference.roc_auc_score(truth[of_pair] == a, decisions[of_pair, column]))
    assert_allclose(auc_of_pairs(truth, labels, decisions), np.mean(each))
    assert math.isnan(auc_of_pairs(np.full(5, 4.0), labels, decisions[:5]))
    assert math.isnan(auc_of_pairs(np.full(5, 4.0), labels[:1], decisions[:5, :0]))


def auc_of_pairs(truth: Floats, labels: Ints, decisions: Floats) -> float:
    return metrics.pairwise_auc(truth, labels, metrics.own_decisions(truth, labels, decisions))


def test_regression_figures() -> None:
    draw = np.random.default_rng(1)
    truth = draw.normal(size=40)
    predicted = truth + draw.normal(size=40)
    assert_allclose(metrics.mean_squared_error(truth, predicted), reference.mean_squared_error(truth, predicted))
    assert_allclose(metrics.squared_correlation(truth, predicted), np.corrcoef(truth, predicted)[0, 1] ** 2)
    for constant in (np.ones(40), np.full(40, 0.1)):
        assert math.isnan(metrics.squared_correlation(truth, constant))
        assert math.isnan(metrics.squared_correlation(constant, truth))
    assert math.isnan(metrics.squared_correlation(np.ones(1), np.zeros(1)))
    assert metrics.mean_squared_error(np.array([1e155]), np.zeros(1)) == math.inf
    for size in (1e-100, 1e78, 1e155):
        assert_allclose(metrics.squared_correlation(size * truth, size * predicted), np.corrcoef(truth, predicted)[0, 1] ** 2)
    lines = [np.random.default_rng(seed).normal(size=40) for seed in range(20)]
    for x in lines:  # of which rounding would put some above 1
        assert 1 - 1e-12 < metrics.squared_correlation(3.0 * x + 1.0, x) <= 1.0
    assert metrics.squared_correlation(1e15 + np.arange(3.0), np.arange(3.0)) == 1
    assert math.isnan(metrics.squared_correlation(np.array([1.7e308, 1.7e308, -1.7e308]), np.arange(3.0)))


def test_nothing_is_nan() -> None:
    nothing = np.empty(0)
    assert math.isnan(metrics.accuracy(nothing, nothing))
    assert math.isnan(metrics.error(nothing, nothing))
    assert math.isnan(metrics.mean_squared_error(nothing, nothing))
    assert math.isnan(metrics.squared_correlation(nothing, nothing))


@needs_tools
@pytest.mark.parametrize(("name", "model"), [("two", "two.s0t2"), ("value", "value.s3t2")])
def test_figures_are_those_svm_predict_prints(name: str, model: str, tmp_path: Path) -> None:
    argv = [TOOLS / "svm-predict", GOLDEN / f"{name}.t", GOLDEN / f"{model}.model", tmp_path / "o"]
    printed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    truth = np.array([float(line.split()[0]) for line in (GOLDEN / f"{name}.t").read_text().splitlines()])
    predicted = numbers(tmp_path / "o")[:, 0]
    if name == "two":
        assert printed.startswith(f"Accuracy = {100 * metrics.accuracy(truth, predicted):g}% ")
    else:
        assert f"Mean squared error = {metrics.mean_squared_error(truth, predicted):g} " in printed
        assert f"Squared correlation coefficient = {metrics.squared_correlation(truth, predicted):g} " in printed
