"""Rows of sparse arrays copied together, against Python's slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svmkit.gather import gather


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("index", [[], [3], [5, 0, 0, 2, 1], [2, 2], [-1, 0, -2], list(range(6))])
def test_rows_are_copied_in_the_order_asked_for(kind: Any, index: list[int]) -> None:
    indptr = np.array([0, 3, 3, 4, 40, 41, 47])
    indices = np.arange(47, dtype=np.int32) * 7
    data = (np.arange(47) - 20).astype(kind)
    new_indptr, new_indices, new_data = gather(indptr, np.array(index, dtype=np.int64), indices, data)
    rows = [slice(indptr[r % 6], indptr[r % 6 + 1]) for r in index]
    assert np.diff(new_indptr).tolist() == [row.stop - row.start for row in rows]
    assert new_indices.tolist() == [x for row in rows for x in indices[row].tolist()]
    assert new_data.tolist() == [x for row in rows for x in data[row].tolist()]
    assert new_data.dtype == kind
    assert new_indices.dtype == np.int32


def test_numbers_that_are_none_are_copied_as_they_are() -> None:
    data = np.array([np.nan, -0.0, np.inf])
    _, _, copied = gather(np.array([0, 3]), np.array([0]), np.zeros(3, np.int32), data)
    assert copied.tobytes() == data.tobytes()
