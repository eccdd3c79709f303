"""Which rows are the same as an earlier one, found through a table of their contents: one pass, O(nonzeros)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import int64, uint64

from svmkit._jit import compiled
from svmkit.data import Floats, Ints, Rows

#: Odd numbers whose bits are as good as random.
_SPREAD, _MIX = uint64(0x9E3779B97F4A7C15), uint64(0xD6E8FEB86659FD93)
_HALF = uint64(32)


def first_alike(rows: Rows, y: Floats) -> Ints:
    """For each of sparse ``rows`` the first one with the same features, values to the last bit, and ``y`` (n,)."""
    first = np.empty(rows.n, np.int64)
    table = np.full(1 << (2 * rows.n).bit_length(), -1, np.int64)
    _first_alike(rows.indptr, rows.indices, rows.data.view(np.uint64), y, table, first)
    return first


@compiled("void(i8[:], i4[:], u8[:], f8[:], i8[:], i8[:])")
def _first_alike(indptr: Any, indices: Any, bits: Any, y: Any, table: Any, first: Any) -> None:
    """``table``: −1 in a power of two of places, more than rows; row i goes to the first free one from its hash on."""
    last = len(table) - 1
    for i in range(len(first)):
        begin, end = indptr[i], indptr[i + 1]
        h = uint64(1 if y[i] > 0.0 else 2)
        for k in range(begin, end):
            h = (h ^ bits[k] ^ (uint64(indices[k]) * _SPREAD)) * _MIX
            h ^= h >> _HALF
        h *= _MIX  # the last value's high bits, too, reach the low ones
        h ^= h >> _HALF
        at = int64(h & uint64(last))
        while True:
            j = table[at]
            if j < 0:
                table[at] = first[i] = i
                break
            same = y[i] == y[j] and indptr[j + 1] - indptr[j] == end - begin
            k, l = begin, indptr[j]
            while same and k < end:
                same = indices[k] == indices[l] and bits[k] == bits[l]
                k, l = k + 1, l + 1
            if same:
                first[i] = j
                break
            at = (at + 1) & last


def shared_out(sums: Floats, place: Ints, upper: Floats, most: Floats) -> Floats:
    """α (n,) of 0 ≤ α_i ≤ ``upper``_i whose sums over the examples of each ``place`` are ``sums``, the first filled first.

    All at their bounds where the sum is ``most``, that of the bounds; so one at most lies between 0 and its bound.
    """
    alpha = np.empty(len(place))
    _share_out(sums, sums.copy(), (sums >= most).astype(np.uint8), place, upper, alpha)
    return alpha


@compiled("void(f8[:], f8[:], u1[:], i8[:], f8[:], f8[:])")
def _share_out(sums: Any, left: Any, full: Any, place: Any, upper: Any, alpha: Any) -> None:
    for i in range(len(alpha)):
        g = place[i]
        if full[g] or left[g] >= upper[i]:
            alpha[i] = upper[i]
        else:  # what rounding leaves is no share
            alpha[i] = left[g] if left[g] > 2.0**-40 * sums[g] else 0.0
        left[g] -= alpha[i]
