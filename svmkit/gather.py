"""Some rows of compressed sparse arrays, copied together in one compiled pass, or of a dense matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit import parallel
from svmkit._jit import compiled

#: Nonzeros that a piece of the copying holds at least.
_PIECE_NONZEROS = 1 << 16


def gather(
    indptr: NDArray[np.int64], index: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """``indptr``, ``indices`` and ``data`` of the rows numbered ``index``, in that order; data of 4 or 8 bytes each."""
    starts = indptr[:-1][index]
    new_indptr = np.zeros(len(index) + 1, dtype=np.int64)
    np.cumsum(indptr[1:][index] - starts, out=new_indptr[1:])
    new_indices, new_data = np.empty(new_indptr[-1], np.int32), np.empty(new_indptr[-1], data.dtype)
    bits = np.dtype(f"u{data.itemsize}")
    arrays = starts, indices, data.view(bits), new_indptr, new_indices, new_data.view(bits)
    n_pieces = parallel.pieces_of(int(new_indptr[-1]), _PIECE_NONZEROS)
    parallel.run_ranges(lambda first, last: _copy[data.itemsize](first, last, *arrays), len(index), n_pieces)
    return new_indptr, new_indices, new_data


def gather_dense(matrix: NDArray[np.float32], index: NDArray[np.int64]) -> NDArray[np.float32]:
    """The rows of ``matrix`` numbered ``index``, in that order."""
    out = np.empty((len(index), matrix.shape[1]), matrix.dtype)

    def copy(first: int, last: int) -> None:  # by way of another array it would go with mode "raise", the default
        np.take(matrix, index[first:last], axis=0, out=out[first:last], mode="wrap")

    parallel.run_ranges(copy, len(index), parallel.pieces_of(out.size, _PIECE_NONZEROS))
    return out


def _copy_rows(
    first_row: Any, last_row: Any, starts: Any, indices: Any, data: Any, new_indptr: Any, new_indices: Any, new_data: Any
) -> None:
    """Each row r of the new arrays, first_row … last_row−1, is that from ``starts[r]`` on in the old ones."""
    for r in range(first_row, last_row):
        first, size = new_indptr[r], new_indptr[r + 1] - new_indptr[r]
        for k in range(size):
            new_indices[first + k] = indices[starts[r] + k]
        for k in range(size):
            new_data[first + k] = data[starts[r] + k]


_copy = {
    size: compiled(f"void(i8, i8, i8[:], i4[:], u{size}[:], i8[:], i4[:], u{size}[:])", name=f"copy_rows_{size}")(_copy_rows)
    for size in (4, 8)
}
