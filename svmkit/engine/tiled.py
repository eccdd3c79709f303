"""The loops of table.py for rows of many nonzeros: features a tile at a time, to keep the table in the first-level cache.

A table of 784 features by 128 columns is 400 KB, and every nonzero of a row reads a line of 512 bytes of it from the second
level. Here 32 rows go through a tile of 64 features (32 KB) together; their unfinished sums wait in a buffer of 16 KB. The
features that most rows have (table.py) have tiles of their own, which rows go through two at a time. A tile's part of a sum is
added up by itself first, so a value may differ from table.py's in its last bits; but the rows of one problem keep one form, and
so do their values.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import ORDERED, both_precisions, helper
from svmkit.engine.columns import APPLY, BLOCK, HEAD, PACKED, pair_products, pair_squares, row_products, scatter
from svmkit.engine.inner import kernel_values, weighted_sum

#: Rows that go through the tiles together, and features to a tile.
CHUNK_ROWS = 32
TILE_FEATURES = 64
_sum_1 = weighted_sum[1]


def _chunk_of(pair_products: Any) -> Any:
    @helper(ORDERED)
    def chunk_values(
        kind: Any, coef0: Any, degree: Any, lanes: Any, dense: Any,
        indptr: Any, indices: Any, data: Any, half: Any, rows: Any, i0: Any, i1: Any,
        W: Any, h: Any, cursor: Any, sums: Any,
    ) -> None:  # fmt: skip
        """sums[(i − i0)·columns + c] = K(rows[i], column c) for i in i0 … i1−1, at most CHUNK_ROWS of them, which is even."""
        n_features, columns = W.shape  # lines of 1, 2, 4 or 8 registers
        even = i1 - i0 + (i1 - i0) % 2
        for i in range(i1 - i0):
            cursor[i] = indptr[rows[i0 + i]]
        if i1 - i0 < even:  # the last row is its own second
            cursor[even - 1] = cursor[even - 2]
        for place in range(even * columns):
            sums[place] = 0
        for first in range(0, dense, TILE_FEATURES):
            count = min(TILE_FEATURES, dense - first)
            for i in range(0, even, 2):
                k, l, place = cursor[i] + first, cursor[i + 1] + first, i * columns
                pair_products(lanes, W, first, count, data, k, l, sums, place, place + columns)
        for i in range(i1 - i0):
            cursor[i] += dense
        for first in range(dense, n_features, TILE_FEATURES):
            for i in range(i0, i1):
                k, end, limit, place = cursor[i - i0], indptr[rows[i] + 1], first + TILE_FEATURES, (i - i0) * columns
                cursor[i - i0] = row_products(lanes, W, indices, data, k, end, limit, sums, place)
        for i in range(i0, i1):
            for c in range(0, columns, lanes):
                kernel_values(sums, (i - i0) * columns + c, c, half[rows[i]], h, kind, coef0, degree)

    return chunk_values


def _apply_of(chunk_values: Any) -> Any:
    def apply_tiled(
        kind: Any, coef0: Any, degree: Any, lanes: Any, dense: Any,
        indptr: Any, indices: Any, data: Any, half: Any, rows: Any, r0: Any, r1: Any,
        b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any,
        weights: Any, stride: Any, out: Any, W: Any, h: Any, cursor: Any, sums: Any,
    ) -> None:  # fmt: skip
        """As table.py's ``apply_table``; ``rows`` lists the rows."""
        width = W.shape[1]
        for c0 in range(0, len(columns), width):
            scatter(b_indptr, b_indices, b_data, b_half, dense, columns, c0, min(c0 + width, len(columns)), W, h)
            for i0 in range(r0, r1, CHUNK_ROWS):
                i1 = min(i0 + CHUNK_ROWS, r1)
                chunk_values(kind, coef0, degree, lanes, dense, indptr, indices, data, half, rows, i0, i1, W, h, cursor, sums)
                for i in range(i0, i1):
                    for j in range(out.shape[1]):
                        total = 0.0
                        for c in range(0, width, lanes):
                            total += _sum_1(sums[(i - i0) * width + c :], weights, j * stride + c0 + c)
                        out[i, j] += total

    return apply_tiled


def _block_of(chunk_values: Any) -> Any:
    def block_tiled(
        kind: Any, coef0: Any, degree: Any, lanes: Any, dense: Any,
        indptr: Any, indices: Any, data: Any, half: Any, rows: Any, r0: Any, r1: Any,
        b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any, c_begin: Any, c_end: Any,
        out: Any, W: Any, h: Any, cursor: Any, sums: Any,
    ) -> None:  # fmt: skip
        """As table.py's ``block_table``."""
        width = W.shape[1]
        for c0 in range(c_begin, c_end, width):
            c1 = min(c0 + width, c_end)
            scatter(b_indptr, b_indices, b_data, b_half, dense, columns, c0, c1, W, h)
            for i0 in range(r0, r1, CHUNK_ROWS):
                i1 = min(i0 + CHUNK_ROWS, r1)
                chunk_values(kind, coef0, degree, lanes, dense, indptr, indices, data, half, rows, i0, i1, W, h, cursor, sums)
                for i in range(i0, i1):
                    line, place = out[i, c0:c1], (i - i0) * width
                    for c in range(len(line)):
                        line[c] = sums[place + c]

    return block_tiled


_SIGNATURES = (
    HEAD + "i8, " + PACKED + "i8[:], i8, i8, " + APPLY + "R[:, :], R[:], i8[:], R[:])",
    HEAD + "i8, " + PACKED + "i8[:], i8, i8, " + BLOCK + "R[:, :], R[:], i8[:], R[:])",
)
_products, _distances = _chunk_of(pair_products), _chunk_of(pair_squares)
apply_tiled = both_precisions(_apply_of(_products), _SIGNATURES[0])
block_tiled = both_precisions(_block_of(_products), _SIGNATURES[1])
#: As table.py's ``apply_distances`` and ``block_distances``.
apply_tiled_distances = both_precisions(_apply_of(_distances), _SIGNATURES[0], name="apply_tiled_distances")
block_tiled_distances = both_precisions(_block_of(_distances), _SIGNATURES[1], name="block_tiled_distances")
