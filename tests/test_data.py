"""Rows: what is done piece by piece comes out as if done at once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from svmkit import data
from svmkit.data import Rows, row_blocks

RNG = np.random.default_rng(2)
MATRIX = RNG.normal(size=(60, 9)) * (RNG.random((60, 9)) < 0.4) * (RNG.random((60, 1)) < 0.8)
ROWS = Rows.from_dense(MATRIX)
MATRIX = ROWS.to_dense()
AT_ONCE = ROWS.sqnorms()
GRAM = ROWS._replace(gram=RNG.normal(size=(60, 4)), serial=np.arange(60) % 4 + 1)


@pytest.fixture(params=[1, 7, 1 << 20])
def at_a_time(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    size: int = request.param
    monkeypatch.setattr(data, "_SQUARED_AT_A_TIME", size)
    return size


@pytest.mark.parametrize(
    "index", [np.arange(60), RNG.permutation(60), RNG.integers(0, 60, 200), np.array([5]), np.empty(0, int)]
)
def test_take(at_a_time: int, index: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    taken = GRAM.take(index)
    assert_array_equal(taken.to_dense(), MATRIX[index])
    assert_array_equal(taken.gram, GRAM.gram[index])
    assert_array_equal(taken.serial, GRAM.serial[index])
    assert (taken.data.dtype, taken.indices.dtype, taken.indptr.dtype) == (np.float64, np.int32, np.int64)


@pytest.mark.parametrize(("first", "last"), [(0, 60), (0, 0), (13, 40), (59, 60), (60, 60)])
def test_part_shares_its_arrays(first: int, last: int) -> None:
    part = GRAM.part(first, last)
    assert_array_equal(part.to_dense(), MATRIX[first:last])
    assert_array_equal(part.gram, GRAM.gram[first:last])
    assert_array_equal(part.serial, GRAM.serial[first:last])
    assert np.shares_memory(part.data, GRAM.data) or len(part.data) == 0
    assert not ROWS.part(first, last).precomputed


def test_sqnorms(at_a_time: int) -> None:
    assert_array_equal(ROWS.sqnorms(), AT_ONCE)
    assert_allclose(AT_ONCE, (MATRIX**2).sum(axis=1), rtol=1e-14)
    assert_array_equal(Rows.from_dense(np.zeros((3, 2))).sqnorms(), np.zeros(3))
    assert Rows.from_dense(np.array([[1e200, 1.0], [0.0, 2.0]])).sqnorms().tolist() == [np.inf, 4.0]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("lengths", [[], [0], [0, 0, 0, 0], [9, 0, 0, 1, 1, 1, 0, 7], [3] * 20])
def test_row_blocks_follow_one_another(size: int, lengths: list[int]) -> None:
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    blocks = list(row_blocks(indptr, size))
    assert [r for first, last in blocks for r in range(first, last)] == list(range(len(lengths)))
    for first, last in blocks:
        assert last - first == 1 or indptr[last] - indptr[first] <= size
        assert last - first <= size
