"""The loops of table.py for many features and sparse rows: columns sorted by feature, work only where both rows have one.

A table with a line for each of 40,000 features would live in main memory. Sorted, a row's nonzero meets just the columns that
have its feature; a thousand columns go at a time. But in text most such meetings are over some hundred words that most rows
have. So the features that many columns have are numbered first (packed.py), below ``FREQUENT``, and only they have a table; its
part of a sum comes first, for some rows together, and the rest is added to it.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import ORDERED, both_precisions, helper
from svmkit.engine.columns import APPLY, BLOCK, HEAD, PACKED, row_products, weighted
from svmkit.engine.inner import kernel_values

#: Lines of the table.
FREQUENT = 192
#: Rows whose sums are worked on together, while a part of the table is in the first-level cache.
CHUNK_ROWS = 16


@helper(ORDERED)
def _spread(b_indptr: Any, b_indices: Any, b_data: Any, columns: Any, c0: Any, c1: Any, W: Any) -> None:
    """The frequent features of columns c0 … c1−1 into the table, part by part, zeros elsewhere."""
    W[:] = 0
    width = W.shape[1]
    for c in range(c0, c1):
        part, k, end = (c - c0) // width, b_indptr[columns[c]], b_indptr[columns[c] + 1]
        while k < end and b_indices[k] < FREQUENT:
            W[part * FREQUENT + b_indices[k], c - c0 - part * width] = b_data[k]
            k += 1


@helper(ORDERED)
def _sort(
    b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any, c0: Any, c1: Any,
    first: Any, who: Any, what: Any, h: Any,
) -> None:  # fmt: skip
    """Columns c0 … c1−1 by feature, from number FREQUENT on: entries ``first[f] … first[f + 1]`` of (who: column − c0, what:
    value).
    """
    first[:] = 0
    h[:] = 0
    for c in range(c0, c1):
        row = columns[c]
        h[c - c0] = b_half[row]
        for k in range(b_indptr[row], b_indptr[row + 1]):
            if b_indices[k] >= FREQUENT:
                first[b_indices[k] + 2] += 1
    for f in range(2, len(first)):
        first[f] += first[f - 1]
    for c in range(c0, c1):
        row = columns[c]
        for k in range(b_indptr[row], b_indptr[row + 1]):
            f = b_indices[k] + 1
            if f > FREQUENT:
                place = first[f]
                who[place] = c - c0
                what[place] = b_data[k]
                first[f] = place + 1


@helper(ORDERED)
def _chunk_values(
    kind: Any, coef0: Any, degree: Any, lanes: Any,
    indptr: Any, indices: Any, data: Any, half: Any, rows: Any, i0: Any, i1: Any, n_columns: Any,
    W: Any, first: Any, who: Any, what: Any, h: Any, cursor: Any, sums: Any,
) -> None:  # fmt: skip
    """sums[(i − i0)·len(h) + c] = K(rows[i], column c) for i in i0 … i1−1, at most CHUNK_ROWS of them."""
    width, stride = W.shape[1], len(h)
    for place in range((i1 - i0) * stride):
        sums[place] = 0
    for part in range((n_columns + width - 1) // width):
        lines = W[part * FREQUENT : (part + 1) * FREQUENT]
        for i in range(i0, i1):
            k, end, place = indptr[rows[i]], indptr[rows[i] + 1], (i - i0) * stride + part * width
            cursor[i - i0] = row_products(lanes, lines, indices, data, k, end, FREQUENT, sums, place)
    for i in range(i0, i1):
        own = sums[(i - i0) * stride : (i - i0 + 1) * stride]
        for k in range(cursor[i - i0], indptr[rows[i] + 1]):
            f, x = indices[k], data[k]
            for place in range(first[f], first[f + 1]):
                own[who[place]] += x * what[place]
        for c in range(0, n_columns, lanes):
            kernel_values(own, c, c, half[rows[i]], h, kind, coef0, degree)


def _apply_sorted(
    kind: Any, coef0: Any, degree: Any, lanes: Any,
    indptr: Any, indices: Any, data: Any, half: Any, rows: Any, r0: Any, r1: Any,
    b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any,
    weights: Any, stride: Any, out: Any,
    W: Any, first: Any, who: Any, what: Any, h: Any, cursor: Any, sums: Any,
) -> None:  # fmt: skip
    """As ``apply_table``, ``len(h)`` columns at a time; ``rows`` lists the rows."""
    for c0 in range(0, len(columns), len(h)):
        c1 = min(c0 + len(h), len(columns))
        _spread(b_indptr, b_indices, b_data, columns, c0, c1, W)
        _sort(b_indptr, b_indices, b_data, b_half, columns, c0, c1, first, who, what, h)
        for i0 in range(r0, r1, CHUNK_ROWS):
            i1 = min(i0 + CHUNK_ROWS, r1)
            _chunk_values(
                kind, coef0, degree, lanes, indptr, indices, data, half, rows, i0, i1, c1 - c0,
                W, first, who, what, h, cursor, sums,
            )  # fmt: skip
            for i in range(i0, i1):
                values = sums[(i - i0) * len(h) : (i - i0 + 1) * len(h)]
                for j in range(out.shape[1]):
                    out[i, j] += weighted(lanes, values, c1 - c0, weights, j * stride + c0)


def _block_sorted(
    kind: Any, coef0: Any, degree: Any, lanes: Any,
    indptr: Any, indices: Any, data: Any, half: Any, rows: Any, r0: Any, r1: Any,
    b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any, c_begin: Any, c_end: Any,
    out: Any, W: Any, first: Any, who: Any, what: Any, h: Any, cursor: Any, sums: Any,
) -> None:  # fmt: skip
    """As ``block_table``."""
    for c0 in range(c_begin, c_end, len(h)):
        c1 = min(c0 + len(h), c_end)
        _spread(b_indptr, b_indices, b_data, columns, c0, c1, W)
        _sort(b_indptr, b_indices, b_data, b_half, columns, c0, c1, first, who, what, h)
        for i0 in range(r0, r1, CHUNK_ROWS):
            i1 = min(i0 + CHUNK_ROWS, r1)
            _chunk_values(
                kind, coef0, degree, lanes, indptr, indices, data, half, rows, i0, i1, c1 - c0,
                W, first, who, what, h, cursor, sums,
            )  # fmt: skip
            for i in range(i0, i1):
                line, place = out[i, c0:c1], (i - i0) * len(h)
                for c in range(len(line)):
                    line[c] = sums[place + c]


_SPACE = "R[:, :], i8[:], i4[:], R[:], R[:], i8[:], R[:])"
apply_sorted = both_precisions(_apply_sorted, HEAD + PACKED + "i8[:], i8, i8, " + APPLY + _SPACE)
block_sorted = both_precisions(_block_sorted, HEAD + PACKED + "i8[:], i8, i8, " + BLOCK + _SPACE)
