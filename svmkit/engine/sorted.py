"""The loops of table.py for many features and sparse rows: columns sorted by feature, work only where both rows have one.

A table with a line for each of 40,000 features would live in main memory. Sorted, a row's nonzero meets just the columns that
have its feature; a thousand columns go at a time.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import ORDERED, both_precisions, helper
from svmkit.engine.columns import APPLY, BLOCK, HEAD, PACKED, sort_by_feature
from svmkit.engine.vector import kernel_values, weighted_sum_1


@helper(ORDERED)
def _sorted_values(
    lanes: Any, n_registers: Any, first: Any, who: Any, what: Any, indices: Any, data: Any, k0: Any, k1: Any,
    hx: Any, h: Any, kind: Any, coef0: Any, degree: Any, values: Any,
) -> None:  # fmt: skip
    """Kernel values of one row against all columns of the block."""
    for c in range(lanes * n_registers):
        values[c] = 0
    for k in range(k0, k1):
        f = indices[k]
        x = data[k]
        for place in range(first[f], first[f + 1]):
            values[who[place]] += x * what[place]
    for c in range(0, lanes * n_registers, lanes):
        kernel_values(values, c, c, hx, h, kind, coef0, degree)


def _apply_sorted(
    kind: Any, coef0: Any, degree: Any, lanes: Any,
    indptr: Any, indices: Any, data: Any, half: Any, r0: Any, r1: Any,
    b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any,
    weights: Any, stride: Any, out: Any, first: Any, who: Any, what: Any, h: Any, values: Any,
) -> None:  # fmt: skip
    """As ``_apply_table``; ``len(values)`` columns at a time."""
    for c0 in range(0, len(columns), len(values)):
        c1 = min(c0 + len(values), len(columns))
        n = (c1 - c0 + lanes - 1) // lanes
        sort_by_feature(b_indptr, b_indices, b_data, b_half, columns, c0, c1, first, who, what, h)
        for r in range(r0, r1):
            k0, k1 = indptr[r], indptr[r + 1]
            _sorted_values(
                lanes, n, first, who, what, indices, data, k0, k1, half[r], h, kind, coef0, degree, values
            )  # fmt: skip
            for j in range(out.shape[1]):
                total = 0.0
                for c in range(0, lanes * n, lanes):
                    total += weighted_sum_1(values[c:], weights, j * stride + c0 + c)
                out[r, j] += total


def _block_sorted(
    kind: Any, coef0: Any, degree: Any, lanes: Any,
    indptr: Any, indices: Any, data: Any, half: Any, rows: Any, r0: Any, r1: Any,
    b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any, c_begin: Any, c_end: Any,
    out: Any, first: Any, who: Any, what: Any, h: Any, values: Any,
) -> None:  # fmt: skip
    """As ``_block_table``."""
    for c0 in range(c_begin, c_end, len(values)):
        c1 = min(c0 + len(values), c_end)
        n = (c1 - c0 + lanes - 1) // lanes
        sort_by_feature(b_indptr, b_indices, b_data, b_half, columns, c0, c1, first, who, what, h)
        for i in range(r0, r1):
            r = rows[i]
            k0, k1 = indptr[r], indptr[r + 1]
            _sorted_values(
                lanes, n, first, who, what, indices, data, k0, k1, half[r], h, kind, coef0, degree, values
            )  # fmt: skip
            line = out[i, c0:c1]
            for c in range(len(line)):
                line[c] = values[c]


_SORTED = "i8[:], i4[:], R[:], R[:], R[:])"
apply_sorted = both_precisions(_apply_sorted, HEAD + PACKED + "i8, i8, " + APPLY + _SORTED)
block_sorted = both_precisions(_block_sorted, HEAD + PACKED + "i8[:], i8, i8, " + BLOCK + _SORTED)
