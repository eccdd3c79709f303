"""rbf values of rows far from the origin, from differences: ‖x‖² + ‖z‖² − 2 x·z has lost them in rounding.

In float64 the exponent of that form is off by some 2^−52 (h_x + h_z), h as in vector.py: with a time stamp of 1.6e9 among the
features and gamma 1 by a thousand. So where either row has h above ``FAR_HALF``, its value is 2^(−‖s x − s z‖²/2), summed in
ascending order of the packed feature numbers until it is 0 for certain. Which way a value is computed depends on its two rows
alone, and it is symmetric, so a pair of packed rows keeps the one value it has on every path.

That is for rows some of which have the features that make them far. Where most rows have these, loops in vectors take their
differences, of all pairs (layouts.py), and ``half`` and far are told of the other features.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import Any

import numpy as np

from svmkit._jit import compiled, helper
from svmkit.data import Rows
from svmkit.engine.larger import larger

#: Below this the usual form is off by 2^−30 times the root of the number of features, at most.
FAR_HALF = 2.0**21
#: 2^(−_ZERO_FROM/2) is 0. So is a value of the usual form that is at most ``_ZERO``, where no h is above ``_FARTHEST``.
#: From h = ``_LARGEST`` on squares are near the end of float64's range.
_ZERO_FROM, _ZERO, _FARTHEST, _LARGEST = 2200.0, 2.0**-1000, 2.0**40, 1e300
_HALF_LOG2 = 0.5 * log(2.0)

#: Values that are looked at together.
_STRETCH = 32

_ROWS = "i8[:], i4[:], f8[:], f8[:], "


def any_far(both: Sequence[Rows], gamma: float, without: Sequence[int] = ()) -> bool:
    """Whether any row is far, by its features but those left out; none is where a difference's square might overflow."""
    halves, most = gamma / log(2.0), 0.0
    for rows in both:
        if halves * _square_at_most(rows) <= FAR_HALF:
            continue
        if without:
            left_out = np.zeros(max(rows.n_features, *without) + 1, dtype=bool)
            left_out[list(without)] = True
            rows = rows._replace(data=np.where(left_out[rows.indices], 0.0, rows.data))
        most = max(most, halves * float(rows.sqnorms().max(initial=0.0)))
    return FAR_HALF < most < _LARGEST


def _square_at_most(rows: Rows) -> float:
    """What no row's squared norm exceeds, in less time than these take."""
    longest = float(np.diff(rows.indptr).max(initial=0))
    largest = max(float(rows.data.max(initial=0.0)), -float(rows.data.min(initial=0.0)))
    return longest * largest * largest


@helper()
def _value(indptr: Any, indices: Any, data: Any, r: Any, b_indptr: Any, b_indices: Any, b_data: Any, q: Any) -> Any:
    k, k_end = indptr[r], indptr[r + 1]
    m, m_end = b_indptr[q], b_indptr[q + 1]
    square = 0.0
    while (k < k_end or m < m_end) and square < _ZERO_FROM:
        if k < k_end and m < m_end and indices[k] == b_indices[m]:
            difference = data[k] - b_data[m]
            k += 1
            m += 1
        elif m == m_end or (k < k_end and indices[k] < b_indices[m]):
            difference = data[k]
            k += 1
        else:
            difference = b_data[m]
            m += 1
        square += difference * difference
    return exp(-_HALF_LOG2 * square)


@compiled("void(" + _ROWS + "i8[:], " + _ROWS + "i8[:], i8, i8, f8[:, :])")
def put_apart(
    indptr: Any, indices: Any, data: Any, half: Any, rows: Any,
    b_indptr: Any, b_indices: Any, b_data: Any, b_half: Any, columns: Any, c0: Any, c1: Any, out: Any,
) -> None:  # fmt: skip
    """out[i, c] = K(rows[i], columns[c]) for c in c0 … c1−1 in place of the usual value, over pairs with a far row.

    Far rows are far from one another too, mostly: then whole stretches of the usual values are 0, and stay.
    """
    farthest = 0.0
    for c in range(c0, c1):
        farthest = larger(farthest, b_half[columns[c]])
    for i in range(len(rows)):
        r = rows[i]
        if max(half[r], farthest) <= FAR_HALF:
            continue
        usual = max(half[r], farthest) <= _FARTHEST
        for first in range(c0, c1, _STRETCH):
            line = out[i, first : min(first + _STRETCH, c1)]
            most = 0.0
            for c in range(len(line)):
                most = larger(most, line[c])
            if usual and most <= _ZERO:
                continue
            for c in range(len(line)):
                q = columns[first + c]
                far = max(half[r], b_half[q])
                if far > FAR_HALF and not (far <= _FARTHEST and line[c] <= _ZERO):
                    line[c] = _value(indptr, indices, data, r, b_indptr, b_indices, b_data, q)
