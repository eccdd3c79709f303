"""Compiled loops of the perceptron, an example after another: in a block of them, within a budget, or on w itself.

Where y f(x) ≤ ``margin``, β ← β + ω y; ω = 0 stands for an example never to be used. S are the examples with a coefficient. The
mean of f over the steps so far is f − late / steps, where late sums each change times the number of steps before it.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import ORDERED, both_precisions, compiled, helper
from svmkit.engine.linear import add_row, dot_row

#: Places in ``counts``: steps; examples in S; mistakes, of which a stream makes no use; kernel values used.
STEPS, SUPPORTS, MISTAKES, VALUES, COUNTS = range(5)
#: What a stream knows of an example: label, weight, coefficient, that times the steps before, f at it and the sum over S of
#: late coefficients there, whether it is in S.
Y, OMEGA, COEF, LATE, F, LATE_F, INSIDE, FIELDS = range(8)


def _block_steps(
    K: Any, y: Any, omega: Any, f: Any, change: Any, late: Any, held: Any, counts: Any, margin: Any, first: Any, last: Any
) -> None:
    """Examples first … last − 1 of a block, any number of support vectors; ``held``: whether it was in S before."""
    for a in range(first, last):
        counts[VALUES] += counts[SUPPORTS]
        if omega[a] > 0 and y[a] * f[a] <= margin:
            step = omega[a] * y[a]
            change[a] += step
            late[a] += step * counts[STEPS]
            counts[SUPPORTS] += 1 - held[a]
            counts[MISTAKES] += 1
            for b in range(len(f)):
                f[b] += step * K[a, b]
        counts[STEPS] += 1


def _budget_steps(
    K: Any, y: Any, omega: Any, coef: Any, f: Any, inside: Any, block: Any, before: Any, counts: Any,
    margin: Any, budget: Any, first: Any, last: Any,
) -> None:  # fmt: skip
    """Examples first … last − 1 of a block, given by their slots; ``before`` gets f at each; beyond the budget one leaves S."""
    for p in range(first, last):
        a = block[p]
        counts[VALUES] += counts[SUPPORTS]
        before[p] = f[a]
        if omega[a] > 0 and y[a] * f[a] <= margin:
            step = omega[a] * y[a]
            coef[a] += step
            if inside[a] == 0.0:
                counts[SUPPORTS] += 1
            counts[MISTAKES] += 1
            inside[a] = 1.0
            for b in range(len(f)):
                f[b] += step * K[a, b]
            if counts[SUPPORTS] > budget:
                _one_leaves(K, y, coef, f, inside, a)
                counts[SUPPORTS] -= 1
        counts[STEPS] += 1


@helper(ORDERED)
def _one_leaves(K: Any, y: Any, coef: Any, f: Any, inside: Any, newest: Any) -> None:
    """The member of S that is right by most without itself leaves; of equals ``newest``, or else the first."""
    out = newest
    most = y[out] * (f[out] - coef[out] * K[out, out])
    for b in range(len(f)):
        right = y[b] * (f[b] - coef[b] * K[b, b])
        if inside[b] != 0.0 and right > most:
            out = b
            most = right
    for b in range(len(f)):
        f[b] -= coef[out] * K[out, b]
    coef[out] = 0.0
    inside[out] = 0.0


_STEPS = "void(R[:, :], f8[:], f8[:], f8[:], f8[:], "
block_steps = both_precisions(_block_steps, _STEPS + "f8[:], i8[:], i8[:], f8, i8, i8)")
budget_steps = both_precisions(_budget_steps, _STEPS + "f8[:], i8[:], f8[:], i8[:], f8, i8, i8, i8)")


@compiled("void(f8[:, :], f8[:, :], f8[:], i8[:], f8, i8)", ORDERED)
def stream_steps(K: Any, table: Any, before: Any, counts: Any, margin: Any, average: Any) -> None:
    """All examples of a block of a stream, none of them in S before; ``before`` gets f, or its mean, at each."""
    n = len(before)
    for a in range(n):
        counts[VALUES] += counts[SUPPORTS]
        steps = counts[STEPS]
        f = table[F, a]
        before[a] = f - table[LATE_F, a] / steps if average and steps > 0 else f
        if table[OMEGA, a] > 0 and table[Y, a] * f <= margin:
            step = table[OMEGA, a] * table[Y, a]
            table[COEF, a] = step
            table[LATE, a] = step * steps
            table[INSIDE, a] = 1.0
            counts[SUPPORTS] += 1
            for b in range(a + 1, n):
                table[F, b] += step * K[a, b]
                table[LATE_F, b] += step * steps * K[a, b]
        counts[STEPS] = steps + 1


@compiled("void(i8[:], i4[:], f8[:], f8[:], f8[:], f8[:], f8[:], f8[:], i8[:], f8, i8)", ORDERED)
def linear_steps(
    indptr: Any, indices: Any, data: Any, y: Any, omega: Any, w: Any, late: Any, before: Any, counts: Any,
    margin: Any, average: Any,
) -> None:  # fmt: skip
    """All rows, on w; ``before`` gets f, or its mean, at each."""
    for i in range(len(y)):
        first, last = indptr[i], indptr[i + 1]
        counts[VALUES] += 1
        steps = counts[STEPS]
        f = dot_row(indices, data, first, last, w)
        before[i] = f
        if average and steps > 0:
            before[i] = f - dot_row(indices, data, first, last, late) / steps
        if last > first and y[i] * f <= margin:
            step = omega[i] * y[i]
            add_row(indices, data, first, last, step, w)
            if average:
                add_row(indices, data, first, last, step * steps, late)
            counts[SUPPORTS] += 1
        counts[STEPS] = steps + 1
