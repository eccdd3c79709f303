"""Fused products of some rows with some columns, a few of each at a time: the same as of them alone, at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from zoo import sparse_matrix

from svmkit.data import Rows
from svmkit.engine import kernels, packed
from svmkit.engine.kernels import cross_apply
from svmkit.engine.packed import Packed, pack
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, SIGMOID, Kernel


@pytest.mark.parametrize("size", [1, 500, 3000])
@pytest.mark.parametrize("n_features", [20, 300, 5000])
def test_a_few_rows_and_columns_at_a_time(n_features: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some rows are long, some short: those of a few rows alone would suit other loops than all of them do. Kernel values are
    the same to the bit, as weights of one 1 show; sums are of a few columns at a time.
    """
    lengths = np.minimum(n_features, np.arange(70) ** 2 % 200)
    matrix = np.where(np.arange(n_features) < lengths[:, None], np.random.default_rng(6).random((70, n_features)), 0.0)
    left, basis = Rows.from_dense(matrix), Rows.from_dense(sparse_matrix(150, n_features, 0.1, seed=7))
    kernel, weights = Kernel(RBF, 0.02), np.random.default_rng(8).normal(size=(150, 2))
    for a, b in ((left, basis), (left, left), (basis, left)):
        ones, some = np.eye(b.n)[:, ::7].copy(), weights[: b.n]
        values, sums = cross_apply(a, b, kernel, ones), cross_apply(a, b, kernel, some)
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "APPLIED_NONZEROS", size)
            patch.setattr(kernels, "LEAST_BASIS", 1)
            assert np.array_equal(cross_apply(a, b, kernel, ones), values)
            assert_allclose(cross_apply(a, b, kernel, some), sums, rtol=0, atol=1e-15 * np.abs(some).sum())


@pytest.mark.parametrize(
    "kernel",
    [Kernel(LINEAR), Kernel(POLYNOMIAL, 0.3, 1.0, 3), Kernel(RBF, 0.3), Kernel(SIGMOID, 0.3, 0.2), Kernel(PRECOMPUTED)],
    ids=lambda kernel: kernel.name,
)
@pytest.mark.parametrize("size", [1, 100, 1 << 22])
def test_of_some_rows_with_some_weights(kernel: Kernel, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in any order, twice too."""
    rng = np.random.default_rng(11)
    rows = Rows.from_dense(sparse_matrix(90, 30, 0.3, seed=12))
    if kernel.kind == PRECOMPUTED:
        rows = Rows.from_dense(np.zeros((90, 1)))._replace(gram=rng.normal(size=(90, 90)), serial=rng.permutation(90) + 1)
    numbers, used = rng.integers(90, size=60), np.sort(rng.permutation(90)[:50])
    weights = np.zeros((90, 2))
    weights[used] = rng.normal(size=(50, 2))
    weights[used[:5], 1] = 0.0
    expected = np.hstack([cross_apply(rows.take(numbers), rows.take(used), kernel, weights[used, j : j + 1]) for j in (0, 1)])
    monkeypatch.setattr(kernels, "APPLIED_NONZEROS", size)
    monkeypatch.setattr(kernels, "LEAST_BASIS", 1)
    close = {"rtol": 0, "atol": 1e-13 * np.abs(expected).max()}
    assert_allclose(cross_apply(rows, rows, kernel, weights, numbers=numbers), expected, **close)
    assert_allclose(cross_apply(rows, rows, kernel, weights)[numbers], expected, **close)
    nobody = np.zeros((90, 2))
    assert not cross_apply(rows, rows, kernel, nobody, numbers=numbers).any()


def test_long_rows_of_the_basis_are_not_packed_by_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows on the left are packed once more for every part of it."""
    rows, sizes = Rows.from_dense(np.random.default_rng(13).random((100, 10))), []

    def noted(some: Rows, *how: Any) -> Packed:
        sizes.append(some.n)
        return pack(some, *how)

    monkeypatch.setattr(packed, "pack", noted)
    monkeypatch.setattr(kernels, "APPLIED_NONZEROS", 200)
    monkeypatch.setattr(kernels, "LEAST_BASIS", 50)
    cross_apply(rows, rows, Kernel(RBF, 0.1), np.ones((100, 1)))
    assert sizes == 2 * [50, *5 * [20]]
