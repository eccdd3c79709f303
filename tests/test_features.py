"""Features that occur, and their places: by a table or by search, the same."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit.data import Rows, dense_rows
from svmkit.features import narrowed, places_of


@pytest.mark.parametrize("largest", [8, 2**31 - 1])
def test_features_that_occur_are_found_by_table_or_by_search(largest: int) -> None:
    X = np.zeros((9, 8))
    X[[0, 0, 1, 3, 3, 4, 6, 6, 7, 8], [1, 7, 0, 1, 3, 7, 7, 3, 1, 0]] = 1.0  # features 1, 2, 4 and 8
    rows = Rows.from_dense(X)
    rows = rows._replace(indices=np.where(rows.indices == 8, largest, rows.indices).astype(np.int32), n_features=largest)
    narrow, names = narrowed(rows)
    assert names.tolist() == [1, 2, 4, largest]
    assert np.array_equal(names[narrow.indices], rows.indices)
    assert names.dtype == narrow.indices.dtype == np.int32


def test_of_dense_rows_all_features_occur() -> None:
    rows = dense_rows(np.zeros((2, 3), np.float32))
    narrow, names = narrowed(rows)
    assert narrow is rows
    assert names.dtype == np.int32
    assert names.tolist() == [1, 2, 3]


def test_places_among_more_than_are_wanted() -> None:
    assert places_of(np.array([0, 3, 5, 9]), np.array([5, 3, 5, 9, 3, 5, 5, 3, 3, 9, 0])).tolist() == [
        2,
        1,
        2,
        3,
        1,
        2,
        2,
        1,
        1,
        3,
        0,
    ]
    assert places_of(np.array([0, 3, 5, 9]), np.array([9])).tolist() == [3]
    assert places_of(np.array([], np.int64), np.array([], np.int64)).tolist() == []
