"""Rows of sparse arrays and of dense matrices copied together, against slices and NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svmkit import gather as gathering
from svmkit.gather import gather, gather_dense


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


@pytest.mark.parametrize("shape", [(6, 5), (6, 0), (0, 5)])
@pytest.mark.parametrize("index", [[], [3], [5, 0, 0, 2, 1, 4, 3], [-1, 0, -2]])
def test_rows_of_a_matrix_are_copied_on_any_number_of_threads(
    shape: tuple[int, int], index: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "_PIECE_NONZEROS", 7)
    matrix = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    numbers = np.array(index if len(matrix) else [], dtype=np.int64)
    copied = gather_dense(matrix, numbers)
    assert np.array_equal(copied, matrix[numbers])
    assert copied.dtype == np.float32


def test_numbers_that_are_none_are_copied_as_they_are() -> None:
    data = np.array([np.nan, -0.0, np.inf])
    _, _, copied = gather(np.array([0, 3]), np.array([0]), np.zeros(3, np.int32), data)
    assert copied.tobytes() == data.tobytes()
