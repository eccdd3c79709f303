"""Loops over rows against a table of columns: blocks of kernel values, and K·v with the block never stored.

Columns are taken a block of at most ``W.shape[1]`` at a time and scattered into the table ``W`` (features, columns). Features
that most rows have come first, and all rows have a place for them; where there are such, a product takes rows two at a time.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import ORDERED, both_precisions, helper
from svmkit.engine.columns import APPLY, BLOCK, HEAD, PACKED, scatter
from svmkit.engine.inner import WIDTHS, pair_distances, pair_values_8, row_values, weighted_sum


@helper(ORDERED)
def _registers_for(n_columns: Any, lanes: Any, widest: Any) -> Any:
    """Registers (1, 2, 4, 8) of the narrowest block that holds ``n_columns``, at most ``widest`` columns."""
    registers = 1
    while lanes * registers < min(n_columns, widest):
        registers *= 2
    return registers


def _product_loop(row_values: Any, weighted_sum: Any) -> Any:
    """The loop over rows for one block width: kernel values of a row stay in the first-level cache until summed."""

    @helper(ORDERED)
    def product_loop(
        kind: Any, coef0: Any, degree: Any, dense: Any, indptr: Any, indices: Any, data: Any, half: Any, r0: Any, r1: Any,
        weights: Any, stride: Any, c0: Any, out: Any, W: Any, h: Any, values: Any,
    ) -> None:  # fmt: skip
        for r in range(r0, r1):
            row_values(W, indices, data, indptr[r], indptr[r + 1], half[r], h, kind, coef0, degree, values)
            for j in range(out.shape[1]):
                out[r, j] += weighted_sum(values, weights, j * stride + c0)

    return product_loop


def _pair_product_loop(pair_values: Any, weighted_sum: Any) -> Any:
    """The same two rows at a time."""

    @helper(ORDERED)
    def pair_product_loop(
        kind: Any, coef0: Any, degree: Any, dense: Any, indptr: Any, indices: Any, data: Any, half: Any, r0: Any, r1: Any,
        weights: Any, stride: Any, c0: Any, out: Any, W: Any, h: Any, values: Any,
    ) -> None:  # fmt: skip
        first, second = values[: W.shape[1]], values[W.shape[1] :]
        for r in range(r0, r1, 2):
            s = min(r + 1, r1 - 1)  # the last row may be its own second
            k, l = indptr[r], indptr[s]
            pair_values(
                W, dense, indices, data, k, indptr[r + 1], half[r], l, indptr[s + 1], half[s], h, kind, coef0, degree,
                first, second,
            )  # fmt: skip
            for j in range(out.shape[1]):
                one = weighted_sum(first, weights, j * stride + c0)  # both before either is stored: weights are loaded once
                other = weighted_sum(second, weights, j * stride + c0)
                out[r, j] += one
                if s > r:
                    out[s, j] += other

    return pair_product_loop


def _block_loop(row_values: Any, registers: int) -> Any:
    """As ``_product_loop``, the values written out: straight into place, but for columns that do not fill the registers.

    A slice of ``out`` is taken first, since LLVM makes vector stores of ``line[c]`` but not of ``out[i, c0 + c]``.
    """

    @helper(ORDERED)
    def block_loop(
        kind: Any, coef0: Any, degree: Any, lanes: Any, dense: Any, indptr: Any, indices: Any, data: Any, half: Any, rows: Any,
        r0: Any, r1: Any, c0: Any, c1: Any, out: Any, W: Any, h: Any, values: Any,
    ) -> None:  # fmt: skip
        for i in range(r0, r1):
            r = rows[i]
            line = out[i, c0:c1]
            full = len(line) == lanes * registers
            target = line if full else values
            row_values(W, indices, data, indptr[r], indptr[r + 1], half[r], h, kind, coef0, degree, target)
            if not full:
                for c in range(len(line)):
                    line[c] = values[c]

    return block_loop


def _pair_block_loop(pair_values: Any, registers: int) -> Any:
    """The same two rows at a time."""

    @helper(ORDERED)
    def pair_block_loop(
        kind: Any, coef0: Any, degree: Any, lanes: Any, dense: Any, indptr: Any, indices: Any, data: Any, half: Any, rows: Any,
        r0: Any, r1: Any, c0: Any, c1: Any, out: Any, W: Any, h: Any, values: Any,
    ) -> None:  # fmt: skip
        full = c1 - c0 == lanes * registers
        for i in range(r0, r1, 2):
            j = min(i + 1, r1 - 1)
            r, s = rows[i], rows[j]
            first = out[i, c0:c1] if full else values[: W.shape[1]]
            second = out[j, c0:c1] if full else values[W.shape[1] :]
            k, l = indptr[r], indptr[s]
            pair_values(
                W, dense, indices, data, k, indptr[r + 1], half[r], l, indptr[s + 1], half[s], h, kind, coef0, degree,
                first, second,
            )  # fmt: skip
            if not full:
                for c in range(c1 - c0):
                    out[i, c0 + c], out[j, c0 + c] = first[c], second[c]

    return pair_block_loop


def _apply_of(one: Any, two: Any, four: Any, eight: Any) -> Any:
    def apply_table(
        kind: Any, coef0: Any, degree: Any, lanes: Any, dense: Any,
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
            scatter(b_indptr, b_indices, b_data, b_half, dense, columns, c, end, W, h)
            if registers == 8:
                eight(kind, coef0, degree, dense, indptr, indices, data, half, r0, r1, weights, stride, c, out, W, h, values)
            elif registers == 4:
                four(kind, coef0, degree, dense, indptr, indices, data, half, r0, r1, weights, stride, c, out, W, h, values)
            elif registers == 2:
                two(kind, coef0, degree, dense, indptr, indices, data, half, r0, r1, weights, stride, c, out, W, h, values)
            else:
                one(kind, coef0, degree, dense, indptr, indices, data, half, r0, r1, weights, stride, c, out, W, h, values)
            c = end

    return apply_table


def _block_of(one: Any, two: Any, four: Any, eight: Any) -> Any:
    def block_table(
        kind: Any, coef0: Any, degree: Any, lanes: Any, dense: Any,
        indptr: Any, indices: Any, data: Any, half: Any, rows: Any, r0: Any, r1: Any,
        b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any, c_begin: Any, c_end: Any,
        out: Any, W: Any, h: Any, values: Any,
    ) -> None:  # fmt: skip
        """out[i, c] = K(rows[i], columns[c]) for i in r0 … r1−1, c in c_begin … c_end−1."""
        c = c_begin
        while c < c_end:
            registers = _registers_for(c_end - c, lanes, W.shape[1])
            end = min(c + lanes * registers, c_end)
            scatter(b_indptr, b_indices, b_data, b_half, dense, columns, c, end, W, h)
            if registers == 8:
                eight(kind, coef0, degree, lanes, dense, indptr, indices, data, half, rows, r0, r1, c, end, out, W, h, values)
            elif registers == 4:
                four(kind, coef0, degree, lanes, dense, indptr, indices, data, half, rows, r0, r1, c, end, out, W, h, values)
            elif registers == 2:
                two(kind, coef0, degree, lanes, dense, indptr, indices, data, half, rows, r0, r1, c, end, out, W, h, values)
            else:
                one(kind, coef0, degree, lanes, dense, indptr, indices, data, half, rows, r0, r1, c, end, out, W, h, values)
            c = end

    return block_table


apply_1, apply_2, apply_4, apply_8 = (_product_loop(row_values[n], weighted_sum[n]) for n in WIDTHS)
block_1, block_2, block_4, block_8 = (_block_loop(row_values[n], n) for n in WIDTHS)
_APPLY = HEAD + "i8, " + PACKED + "i8, i8, " + APPLY + "R[:, :], R[:], R[:])"
_BLOCK = HEAD + "i8, " + PACKED + "i8[:], i8, i8, " + BLOCK + "R[:, :], R[:], R[:])"
apply_table = both_precisions(_apply_of(apply_1, apply_2, apply_4, apply_8), _APPLY)
block_table = both_precisions(_block_of(block_1, block_2, block_4, block_8), _BLOCK)
#: The same where there are dense features.
apply_pairs = both_precisions(
    _apply_of(apply_1, apply_2, apply_4, _pair_product_loop(pair_values_8, weighted_sum[8])), _APPLY, name="apply_pairs"
)
block_pairs = both_precisions(
    _block_of(block_1, block_2, block_4, _pair_block_loop(pair_values_8, 8)), _BLOCK, name="block_pairs"
)
#: Where squares of the dense features' differences take the place of their products.
apply_distances = both_precisions(
    _apply_of(*(_pair_product_loop(pair_distances[n], weighted_sum[n]) for n in WIDTHS)), _APPLY, name="apply_distances"
)
block_distances = both_precisions(
    _block_of(*(_pair_block_loop(pair_distances[n], n) for n in WIDTHS)), _BLOCK, name="block_distances"
)
