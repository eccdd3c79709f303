"""Rows far from the origin: in features that most of them have differences are taken in vectors, in float64, in others pair by
pair.
"""

from __future__ import annotations

import numpy as np
import pytest
from zoo import sparse_matrix

from svmkit.data import NO_ROWS, Rows
from svmkit.engine import apart, layouts
from svmkit.engine.kernels import Engine, cross_apply
from svmkit.problem import RBF, Kernel

KERNEL = Kernel(RBF, 0.5)


def exact(X: np.ndarray, kernel: Kernel = KERNEL) -> np.ndarray:
    return np.exp(-kernel.gamma * ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))


def spread_rows(n: int, width: int) -> np.ndarray:
    """Numbers of some size from one end of their range to the other, many near one another; and small ones that few have."""
    rng = np.random.default_rng(41)
    X = rng.normal(size=(n, width)) * (rng.random((n, width)) < 0.3) / np.sqrt(width)
    X[:, :3] = rng.integers(0, 5, (n, 3)) * 4e5 + rng.normal(size=(n, 3))
    return X


@pytest.mark.parametrize("width", [6, 200])  # a table of all features, and tile by tile
def test_dense_features_take_differences(width: int) -> None:
    X = spread_rows(300, width)
    rows, every = Rows.from_dense(X), np.arange(300)
    engine, K = Engine(rows, KERNEL), exact(X)
    assert (engine.packed.real, engine.packed.differences, engine.packed.far) == ("f8", True, False)
    assert ((K > 1e-3) & (K < 1.0)).sum() > 100
    found = engine.block(every, every)
    assert np.abs(found - K).max() < 1e-9  # scaling moves 1.6e6 by 1e-10
    assert np.array_equal(found, found.T)
    weights = np.random.default_rng(42).normal(size=(300, 2))
    assert np.abs(cross_apply(rows, rows, KERNEL, weights) - found @ weights).max() < 1e-12


def test_rows_far_in_another_feature_are_looked_at_pair_by_pair() -> None:
    X = spread_rows(60, 6)
    X[::7, 5] = 1e6
    engine = Engine(Rows.from_dense(X), KERNEL)
    assert engine.packed.far
    assert np.abs(engine.block(np.arange(60), np.arange(60)) - exact(X)).max() < 1e-9


def test_squares_that_overflow_are_no_differences_in_vectors() -> None:
    X = np.array([[1e154, 1.0], [1e154, 2.0], [-1e154, 1.0]])
    engine = Engine(Rows.from_dense(X), KERNEL)
    assert not engine.packed.differences
    K = engine.block(np.arange(3), np.arange(3))
    assert K[0] == pytest.approx([1.0, np.exp(-0.5), 0.0], rel=1e-12)


def test_values_of_far_rows_that_are_0_as_usual() -> None:
    """Where h = 5e6 the usual form errs by 1e-9: enough to tell that a value is 0."""
    X = sparse_matrix(40, 6, 0.9, seed=19, scale=300.0)
    X[20:] = X[:20] + np.linspace(0, 0.05, 20)[:, None]
    rows, kernel = Rows.from_dense(X), Kernel(RBF, 20.0)
    engine = Engine(rows, kernel, "f8", layouts.Layout("table"))
    assert engine.packed.far
    K = engine.block(np.arange(40), np.arange(40))
    expected = exact(X, kernel)
    assert ((expected > 1e-3) & (expected < 1)).sum() > 20
    assert np.abs(K - expected).max() < 1e-12


@pytest.mark.parametrize("without", [(), (1, 3)])
def test_whether_any_row_is_far_goes_by_the_largest_square(without: tuple[int, ...]) -> None:
    """Of random rows, many within a factor of 30 of where far begins, and none or some of their features left out."""
    rng, answers = np.random.default_rng(5), []
    for _ in range(200):
        X = rng.normal(size=(7, 9)) * (rng.random((7, 9)) < 0.6) * 10.0 ** rng.uniform(1, 5)
        kept = np.delete(X, [f - 1 for f in without], axis=1)
        far = bool((kept**2).sum(axis=1).max() / np.log(2.0) > apart.FAR_HALF)
        assert apart.any_far((Rows.from_dense(X[:2]), Rows.from_dense(X)), 1.0, without) == far
        answers.append(far)
    assert 20 < sum(answers) < 180
    assert not apart.any_far((Rows.from_dense(np.zeros((3, 2))), NO_ROWS), 1e300)
