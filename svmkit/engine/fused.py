"""Compiled loops over rows: blocks of kernel values, and K·v with the block never stored.

Each body is compiled for float32 and float64. ``indptr, indices, data, half`` are packed rows (kernels.py: scaled values and
half squared norms); names with ``b_`` the rows whose numbers ``columns`` lists, taken a block of at most ``W.shape[1]`` at a
time: scattered into the table ``W`` (features, columns), or, when rows are sparse and features many, sorted by feature. A
register holds ``lanes`` columns.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import ORDERED, compiled, helper
from svmkit.engine.vector import (
    kernel_values,
    row_values_1,
    row_values_2,
    row_values_4,
    row_values_8,
    weighted_sum_1,
    weighted_sum_2,
    weighted_sum_4,
    weighted_sum_8,
)


@helper(ORDERED)
def _registers_for(n_columns: Any, lanes: Any, widest: Any) -> Any:
    """Registers (1, 2, 4, 8) of the narrowest block that holds ``n_columns``, at most ``widest`` columns."""
    registers = 1
    while lanes * registers < min(n_columns, widest):
        registers *= 2
    return registers


@helper(ORDERED)
def _scatter(b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any, c0: Any, c1: Any, W: Any, h: Any) -> None:
    """Columns c0 … c1−1 of the list into the table's columns 0 …, zeros elsewhere."""
    W[:] = 0
    h[:] = 0
    for c in range(c0, c1):
        row = columns[c]
        h[c - c0] = b_half[row]
        for k in range(b_indptr[row], b_indptr[row + 1]):
            W[b_indices[k], c - c0] = b_data[k]


def _product_loop(row_values: Any, weighted_sum: Any) -> Any:
    """The loop over rows for one block width: kernel values of a row stay in the first-level cache until summed."""

    @helper(ORDERED)
    def product_loop(
        kind: Any, coef0: Any, degree: Any, indptr: Any, indices: Any, data: Any, half: Any, r0: Any, r1: Any,
        weights: Any, stride: Any, c0: Any, out: Any, W: Any, h: Any, values: Any,
    ) -> None:  # fmt: skip
        for r in range(r0, r1):
            row_values(W, indices, data, indptr[r], indptr[r + 1], half[r], h, kind, coef0, degree, values)
            for j in range(out.shape[1]):
                out[r, j] += weighted_sum(values, weights, j * stride + c0)

    return product_loop


def _block_loop(row_values: Any) -> Any:
    """As ``_product_loop``, the values written out."""

    @helper(ORDERED)
    def block_loop(
        kind: Any, coef0: Any, degree: Any, indptr: Any, indices: Any, data: Any, half: Any, rows: Any, r0: Any, r1: Any,
        c0: Any, c1: Any, out: Any, W: Any, h: Any, values: Any,
    ) -> None:  # fmt: skip
        for i in range(r0, r1):
            r = rows[i]
            row_values(W, indices, data, indptr[r], indptr[r + 1], half[r], h, kind, coef0, degree, values)
            for c in range(c1 - c0):
                out[i, c0 + c] = values[c]

    return block_loop


_product_1 = _product_loop(row_values_1, weighted_sum_1)
_product_2 = _product_loop(row_values_2, weighted_sum_2)
_product_4 = _product_loop(row_values_4, weighted_sum_4)
_product_8 = _product_loop(row_values_8, weighted_sum_8)
_block_1 = _block_loop(row_values_1)
_block_2 = _block_loop(row_values_2)
_block_4 = _block_loop(row_values_4)
_block_8 = _block_loop(row_values_8)


def _apply(
    kind: Any, coef0: Any, degree: Any, lanes: Any,
    indptr: Any, indices: Any, data: Any, half: Any, r0: Any, r1: Any,
    b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any,
    weights: Any, stride: Any, out: Any, W: Any, h: Any, values: Any,
) -> None:  # fmt: skip
    """out[r, j] += Σ_c K(row r, columns[c]) · weights[j·stride + c] for r in r0 … r1−1; ``weights`` padded with zeros."""
    n_columns = len(columns)
    c = 0
    while c < n_columns:
        registers = _registers_for(n_columns - c, lanes, W.shape[1])
        end = min(c + lanes * registers, n_columns)
        _scatter(b_indptr, b_indices, b_data, b_half, columns, c, end, W, h)
        if registers == 8:
            _product_8(kind, coef0, degree, indptr, indices, data, half, r0, r1, weights, stride, c, out, W, h, values)
        elif registers == 4:
            _product_4(kind, coef0, degree, indptr, indices, data, half, r0, r1, weights, stride, c, out, W, h, values)
        elif registers == 2:
            _product_2(kind, coef0, degree, indptr, indices, data, half, r0, r1, weights, stride, c, out, W, h, values)
        else:
            _product_1(kind, coef0, degree, indptr, indices, data, half, r0, r1, weights, stride, c, out, W, h, values)
        c = end


def _block(
    kind: Any, coef0: Any, degree: Any, lanes: Any,
    indptr: Any, indices: Any, data: Any, half: Any, rows: Any, r0: Any, r1: Any,
    b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any, c_begin: Any, c_end: Any,
    out: Any, W: Any, h: Any, values: Any,
) -> None:  # fmt: skip
    """out[i, c] = K(rows[i], columns[c]) for i in r0 … r1−1, c in c_begin … c_end−1."""
    c = c_begin
    while c < c_end:
        registers = _registers_for(c_end - c, lanes, W.shape[1])
        end = min(c + lanes * registers, c_end)
        _scatter(b_indptr, b_indices, b_data, b_half, columns, c, end, W, h)
        if registers == 8:
            _block_8(kind, coef0, degree, indptr, indices, data, half, rows, r0, r1, c, end, out, W, h, values)
        elif registers == 4:
            _block_4(kind, coef0, degree, indptr, indices, data, half, rows, r0, r1, c, end, out, W, h, values)
        elif registers == 2:
            _block_2(kind, coef0, degree, indptr, indices, data, half, rows, r0, r1, c, end, out, W, h, values)
        else:
            _block_1(kind, coef0, degree, indptr, indices, data, half, rows, r0, r1, c, end, out, W, h, values)
        c = end


@helper(ORDERED)
def _sort_by_feature(
    b_indptr: Any,
    b_indices: Any,
    b_data: Any,
    b_half: Any,
    columns: Any,
    c0: Any,
    c1: Any,
    first: Any,
    who: Any,
    what: Any,
    h: Any,
) -> None:
    """Columns c0 … c1−1 by feature: entries ``first[f] … first[f + 1]`` of (who: column − c0, what: value)."""
    first[:] = 0
    for c in range(c0, c1):
        row = columns[c]
        h[c - c0] = b_half[row]
        for k in range(b_indptr[row], b_indptr[row + 1]):
            first[b_indices[k] + 2] += 1
    for f in range(2, len(first)):
        first[f] += first[f - 1]
    for c in range(c0, c1):
        row = columns[c]
        for k in range(b_indptr[row], b_indptr[row + 1]):
            f = b_indices[k] + 1
            place = first[f]
            who[place] = c - c0
            what[place] = b_data[k]
            first[f] = place + 1


@helper(ORDERED)
def _wide_values(
    n_registers: Any, lanes: Any, first: Any, who: Any, what: Any, indices: Any, data: Any, k0: Any, k1: Any,
    hx: Any, h: Any, kind: Any, coef0: Any, degree: Any, values: Any,
) -> None:  # fmt: skip
    """Kernel values of one row against all columns sorted by feature: work only where both rows have the feature."""
    for c in range(lanes * n_registers):
        values[c] = 0
    for k in range(k0, k1):
        f = indices[k]
        x = data[k]
        for place in range(first[f], first[f + 1]):
            values[who[place]] += x * what[place]
    for g in range(n_registers):
        kernel_values(values, lanes * g, hx, h, kind, coef0, degree)


def _apply_wide(
    kind: Any, coef0: Any, degree: Any, lanes: Any,
    indptr: Any, indices: Any, data: Any, half: Any, r0: Any, r1: Any,
    b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any,
    weights: Any, stride: Any, out: Any, first: Any, who: Any, what: Any, h: Any, values: Any,
) -> None:  # fmt: skip
    """As ``_apply``, for many features; ``len(values)`` columns at a time."""
    n_columns = len(columns)
    for c0 in range(0, n_columns, len(values)):
        c1 = min(c0 + len(values), n_columns)
        n_registers = (c1 - c0 + lanes - 1) // lanes
        h[:] = 0
        _sort_by_feature(b_indptr, b_indices, b_data, b_half, columns, c0, c1, first, who, what, h)
        for r in range(r0, r1):
            _wide_values(
                n_registers,
                lanes,
                first,
                who,
                what,
                indices,
                data,
                indptr[r],
                indptr[r + 1],
                half[r],
                h,
                kind,
                coef0,
                degree,
                values,
            )
            for j in range(out.shape[1]):
                total = 0.0
                for g in range(n_registers):
                    total += weighted_sum_1(values[lanes * g :], weights, j * stride + c0 + lanes * g)
                out[r, j] += total


def _block_wide(
    kind: Any, coef0: Any, degree: Any, lanes: Any,
    indptr: Any, indices: Any, data: Any, half: Any, rows: Any, r0: Any, r1: Any,
    b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any, c_begin: Any, c_end: Any,
    out: Any, first: Any, who: Any, what: Any, h: Any, values: Any,
) -> None:  # fmt: skip
    """As ``_block``, for many features."""
    for c0 in range(c_begin, c_end, len(values)):
        c1 = min(c0 + len(values), c_end)
        n_registers = (c1 - c0 + lanes - 1) // lanes
        h[:] = 0
        _sort_by_feature(b_indptr, b_indices, b_data, b_half, columns, c0, c1, first, who, what, h)
        for i in range(r0, r1):
            r = rows[i]
            _wide_values(
                n_registers,
                lanes,
                first,
                who,
                what,
                indices,
                data,
                indptr[r],
                indptr[r + 1],
                half[r],
                h,
                kind,
                coef0,
                degree,
                values,
            )
            for c in range(c1 - c0):
                out[i, c0 + c] = values[c]


def _for(real: str, body: Any, signature: str) -> Any:
    """``body`` compiled with ``real`` (f4 or f8) in place of R in its signature."""
    return compiled(signature.replace("R", real), ORDERED, name=f"{body.__name__}_{real}")(body)


_HEAD = "void(i8, R, i8, i8, "
_PACKED = "i8[:], i4[:], R[:], R[:], "
_SORTED = "i8[:], i4[:], R[:], R[:], R[:])"
_TABLE = "R[:, :], R[:], R[:])"
_APPLY = _PACKED + "i8, i8, " + _PACKED + "i8[:], f8[:], i8, f8[:, :], "
_BLOCK = _PACKED + "i8[:], i8, i8, " + _PACKED + "i8[:], i8, i8, R[:, :], "

apply_table = {real: _for(real, _apply, _HEAD + _APPLY + _TABLE) for real in ("f4", "f8")}
apply_wide = {real: _for(real, _apply_wide, _HEAD + _APPLY + _SORTED) for real in ("f4", "f8")}
block_table = {real: _for(real, _block, _HEAD + _BLOCK + _TABLE) for real in ("f4", "f8")}
block_wide = {real: _for(real, _block_wide, _HEAD + _BLOCK + _SORTED) for real in ("f4", "f8")}
