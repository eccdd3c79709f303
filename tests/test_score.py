"""How answers compare with labels: counted up by parts, the same as of all at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from svmkit import metrics
from svmkit.data import Floats
from svmkit.score import Score


def scored(truth: Floats, answers: Floats, cuts: list[int]) -> Score:
    """The score of examples that are added in parts, cut there."""
    score = Score()
    for one, other in zip(np.split(truth, cuts), np.split(answers, cuts), strict=True):
        score.add(one, other)
    return score


@pytest.mark.parametrize("cuts", [[], [1], [0, 17, 17, 499]])
def test_figures_are_those_of_all_examples(cuts: list[int]) -> None:
    rng = np.random.default_rng(3)
    truth = rng.normal(size=500)
    answers = truth + rng.normal(size=500)
    score, whole = scored(truth, answers, cuts), scored(truth, answers, [])
    assert (score.mean_squared_error, score.squared_correlation) == (whole.mean_squared_error, whole.squared_correlation)
    assert_allclose(score.mean_squared_error, metrics.mean_squared_error(truth, answers))
    assert_allclose(score.squared_correlation, metrics.squared_correlation(truth, answers))
    labels, said = np.sign(truth), np.sign(answers)
    counted = scored(labels, said, cuts)
    assert (counted.n, counted.right) == (500, int((labels == said).sum()))


def test_unknown_labels_are_not_right() -> None:
    assert scored(np.array([math.nan, 1.0]), np.array([math.nan, 1.0]), []).right == 1


def test_of_nothing_figures_are_nan() -> None:
    score = Score()
    assert (score.n, score.right) == (0, 0)
    assert math.isnan(score.mean_squared_error)
    assert math.isnan(score.squared_correlation)


def test_figures_beyond_all_bounds() -> None:
    score = scored(np.array([1e155, 0.0]), np.array([0.0, 1e200]), [])
    assert score.mean_squared_error == math.inf
    assert math.isnan(score.squared_correlation)
