"""What the loops over rows share: a block of columns made ready, a row multiplied with it, values weighted, values turned.

In all loops ``indptr, indices, data, half`` are packed rows (packed.py: scaled values and half squared norms), names with
``b_`` the rows whose numbers ``columns`` lists. A register holds ``lanes`` columns.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import ORDERED, both_precisions, compiled, helper
from svmkit.engine import inner

#: Signature pieces, R for the float type: kind, coef0, degree, lanes; packed rows; what apply and block then take.
HEAD = "void(i8, R, i8, i8, "
PACKED = "i8[:], i4[:], R[:], R[:], "
APPLY = PACKED + "i8[:], f8[:], i8, f8[:, :], "
BLOCK = PACKED + "i8[:], i8, i8, R[:, :], "

#: Lines of a table that are filled together.
SPREAD_LINES = 16
#: Rows of a block that are turned into pieces of its columns together.
TURNED_ROWS = 64


@helper(ORDERED)
def scatter(
    b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, dense: Any, columns: Any, c0: Any, c1: Any, W: Any, h: Any
) -> None:
    """Columns c0 … c1−1 of the list into the table's columns 0 …, zeros elsewhere.

    The first ``dense`` nonzeros of each are of features 0 … dense−1: some lines of these are filled across all columns before
    the next, since columns one by one would go through the whole table each.
    """
    for first in range(0, dense, SPREAD_LINES):
        lines = W[first : min(first + SPREAD_LINES, dense)]
        for c in range(c1 - c0):
            k = b_indptr[columns[c0 + c]] + first
            for f in range(len(lines)):
                lines[f, c] = b_data[k + f]
        lines[:, c1 - c0 :] = 0
    W[dense:] = 0
    h[:] = 0
    for c in range(c0, c1):
        row = columns[c]
        h[c - c0] = b_half[row]
        for k in range(b_indptr[row] + dense, b_indptr[row + 1]):
            W[b_indices[k], c - c0] = b_data[k]


def _by_width(one: Any, two: Any, four: Any, eight: Any) -> Any:
    """An intrinsic of inner.py for lines of 1, 2, 4 or 8 registers."""

    @helper(ORDERED, inline=True)
    def by_width(lanes: Any, W: Any, *rest: Any) -> Any:
        columns = W.shape[1]
        if columns == 8 * lanes:
            return eight(W, *rest)
        if columns == 4 * lanes:
            return four(W, *rest)
        if columns == 2 * lanes:
            return two(W, *rest)
        return one(W, *rest)

    return by_width


row_products = _by_width(*inner.row_products.values())
pair_products = _by_width(*inner.pair_products.values())
pair_squares = _by_width(*inner.pair_squares.values())
_sum_1, _sum_2, _sum_4, _sum_8 = inner.weighted_sum.values()


@helper(ORDERED)
def weighted(lanes: Any, values: Any, n_columns: Any, weights: Any, w0: Any) -> Any:
    """Σ_c values[c] · weights[w0 + c]; both go on to 1, 2, 4 or a multiple of 8 registers, weights with zeros."""
    total, c = 0.0, 0
    while n_columns - c > 4 * lanes:
        total += _sum_8(values[c:], weights, w0 + c)
        c += 8 * lanes
    left = n_columns - c
    if left > 2 * lanes:
        total += _sum_4(values[c:], weights, w0 + c)
    elif left > lanes:
        total += _sum_2(values[c:], weights, w0 + c)
    elif left > 0:
        total += _sum_1(values[c:], weights, w0 + c)
    return total


def _turn(values: Any, first: Any, out: Any) -> None:
    """out[c, first + r] = values[r, c], a few rows at a time, so that what is read in one go is written in one go."""
    n_rows, n_columns = values.shape
    for r0 in range(0, n_rows, TURNED_ROWS):
        few = values[r0 : min(r0 + TURNED_ROWS, n_rows)]
        for c in range(n_columns):
            line = out[c, first + r0 : first + r0 + len(few)]
            for r in range(len(few)):
                line[r] = few[r, c]


def _mirror(K: Any, c0: Any, c1: Any) -> None:
    """K[c, r] = K[r, c] for c in c0 … c1−1 and r below c0, of the corner of a larger array."""
    for r0 in range(0, c0, TURNED_ROWS):
        few = K[r0 : min(r0 + TURNED_ROWS, c0)]
        for c in range(c0, c1):
            line = K[c, r0 : r0 + len(few)]
            for r in range(len(few)):
                line[r] = few[r, c]


mirror = both_precisions(_mirror, "void(R[:, :], i8, i8)")
#: By the float types of ``values`` and ``out``.
turn = {
    (real, kept): compiled(f"void({real}[:, :], i8, {kept}[:, :])", name=f"turn_{real}_{kept}")(_turn)
    for real, kept in (("f4", "f4"), ("f8", "f8"), ("f8", "f4"))
}
