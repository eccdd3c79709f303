"""Compiled loop of robust stochastic approximation on linear f(x) = ⟨w, x⟩ + b, b free or absent, with averaged iterates.

    min  (λ/2)‖w‖² + (1/n) Σ ω_i max(0, 1 − y_i f(x_i))    over ‖w‖ ≤ 1/√λ, |b| ≤ B

Step j = 1, 2, …: draw i; with [·] 1 where y_i f(x_i) < 1, else 0,

    w ← Π((1 − η λ) w + η ω_i [·] y_i x_i),   b ← Π(b + η ω_i [·] y_i),
    η = min(rate/√j, 1/(2λ)),  or 1/(λj) where there is no b;

the average of the iterates from step ``burn_in`` on gives each the weight η. w = scale·v, and Σ η w_j = S·v − late with S the
sum of η·scale so far, where a change δ of v adds δ·S to ``late``: a step touches the values of its example alone.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from numpy import uint64

from svmkit._jit import ORDERED, helper
from svmkit.engine.linear import ADD, DOT, ENDS, SMALLEST_SCALE, both_forms, own_units
from svmkit.engine.prefetch import ASK_FOR_ROW, prefetch

#: Places in ``sums``: w = scale·v; S; ‖v‖²; the sum of the averaged iterates' weights; b; its weighted sum.
SCALE, SCALE_SUM, V_NORM2, WEIGHTS, INTERCEPT, INTERCEPT_SUM = range(6)
#: On a stream also: weights and weighted sum of b of the window before; the largest ‖x‖²; sum and number of ω²(‖x‖² + 1).
WEIGHTS_BEFORE, INTERCEPT_BEFORE, LARGEST, SQUARES, SEEN = range(6, 11)

#: Steps ahead at which an example's place and values are asked for.
_FAR, _NEAR = 8, 4


@helper(ORDERED)
def _length(j: Any, lam: Any, rate: Any) -> Any:
    """η of step j; a ``rate`` of 0 asks for 1/(λj)."""
    return min(rate / sqrt(float(j)), 0.5 / lam) if rate > 0 else 1.0 / (lam * j)


@helper(ORDERED)
def _change(
    j: Any, y: Any, omega: Any, response: Any, square: Any, eta: Any, lam: Any, bound: Any, free: Any, sums: Any
) -> Any:
    """How much of y·x the step j adds to v, 0 where the margin is kept; scale, ‖v‖² and b are brought up to date.

    ``response`` is ⟨v, x⟩. Without b the first step's factor is 0, and w with it.
    """
    wrong = y * (sums[SCALE] * response + sums[INTERCEPT]) < 1
    if j > 1 or free:
        sums[SCALE] *= 1.0 - eta * lam
    if not wrong:
        return 0.0
    size = eta * omega / sums[SCALE]
    sums[V_NORM2] += size * (2.0 * y * response + size * square)
    if free:
        sums[INTERCEPT] = min(max(sums[INTERCEPT] + eta * omega * y, -bound), bound)
    return size


@helper(ORDERED)
def _settle(sums: Any, eta: Any, lam: Any, averaged: Any) -> None:
    """The end of a step: w's projection, and its part in the average."""
    norm2 = lam * sums[SCALE] * sums[SCALE] * sums[V_NORM2]
    if norm2 > 1:
        sums[SCALE] *= 1.0 / sqrt(norm2)
    if averaged:
        sums[SCALE_SUM] += eta * sums[SCALE]
        sums[INTERCEPT_SUM] += eta * sums[INTERCEPT]
        sums[WEIGHTS] += eta


@helper(ORDERED)
def _renew(v: Any, late_v: Any, a: Any, late_a: Any, sums: Any) -> None:
    """v and a ← scale times these, with S = 0 from now on and S·v − late as it was."""
    scale, scale_sum = sums[SCALE], sums[SCALE_SUM]
    own_units(v, late_v, scale, scale_sum)
    own_units(a, late_a, scale, scale_sum)
    sums[V_NORM2] *= scale * scale
    sums[SCALE], sums[SCALE_SUM] = 1.0, 0.0


@helper(ORDERED)
def _next_window(v: Any, late: Any, before: Any, sums: Any) -> None:
    """The present window becomes the one before."""
    for e in range(len(v)):
        before[e] = sums[SCALE_SUM] * v[e] - late[e]
        late[e] = 0.0
    sums[WEIGHTS_BEFORE], sums[INTERCEPT_BEFORE] = sums[WEIGHTS], sums[INTERCEPT_SUM]
    sums[SCALE_SUM], sums[WEIGHTS], sums[INTERCEPT_SUM] = 0.0, 0.0, 0.0


def _steps_loop(ends: Any, dot_row: Any, add_row: Any, ask_for_row: Any) -> Any:
    def steps_loop(
        indptr: Any, indices: Any, data: Any, square: Any, y: Any, omega: Any,
        v: Any, late_v: Any, a: Any, late_a: Any, sums: Any,
        drawn: Any, lam: Any, rate: Any, bound: Any, burn_in: Any, done: Any,
) -> None:  # fmt: skip
        """A step for each of the examples ``drawn``, ``done`` came before. ``bound`` is B, or 0 where there is no b.

        ``square`` (n,) ‖x_i‖²; ``v`` (features,), ``a`` (n,) with v = Σ a_i y_i x_i; ``late_v``, ``late_a`` as long as these.
        """
        for s in range(len(drawn)):
            if s + _FAR < len(drawn):
                far = drawn[s + _FAR]
                ask_for_row(far, drawn[s + _NEAR], indptr, indices, data)
                for values in (square, y, omega, a, late_a):
                    prefetch(values, uint64(far))
            i, j = drawn[s], done + s + 1
            k0, k1 = ends(indptr, i)
            response = dot_row(indices, data, k0, k1, v)
            eta = _length(j, lam, rate)
            size = _change(j, y[i], omega[i], response, square[i], eta, lam, bound, rate > 0, sums)
            if size > 0:
                add_row(indices, data, k0, k1, size * y[i], v)
                a[i] += size
                if sums[SCALE_SUM] > 0:
                    add_row(indices, data, k0, k1, size * y[i] * sums[SCALE_SUM], late_v)
                    late_a[i] += size * sums[SCALE_SUM]
            _settle(sums, eta, lam, j >= burn_in)
            if sums[SCALE] < SMALLEST_SCALE:
                _renew(v, late_v, a, late_a, sums)

    return steps_loop


def _stream_loop(dot_row: Any, add_row: Any) -> Any:
    def stream_loop(
        indptr: Any, indices: Any, data: Any, square: Any, y: Any, omega: Any, v: Any, late: Any, before: Any, sums: Any,
        lam: Any, step: Any, bound: Any, free: Any, draws: Any, done: Any, decision: Any,
    ) -> None:  # fmt: skip
        """One step for each row, ``done`` came before; ``decision`` gets f(x) by the average just before it was learned.

        That average is over two windows of steps, which begin at powers of two: the one before, its weighted sum ``before``,
        and the present one. ``bound`` 0 stands for 1 + max ‖x‖/√λ so far; D_G comes from the first ``draws`` rows.
        """
        for i in range(len(y)):
            j = done + i + 1
            k0, k1 = indptr[i], indptr[i + 1]
            response = dot_row(indices, data, k0, k1, v)
            weights = sums[WEIGHTS] + sums[WEIGHTS_BEFORE]
            if weights > 0:
                summed = (
                    sums[SCALE_SUM] * response - dot_row(indices, data, k0, k1, late) + dot_row(indices, data, k0, k1, before)
                )
                decision[i] = (summed + sums[INTERCEPT_SUM] + sums[INTERCEPT_BEFORE]) / weights
            else:
                decision[i] = 0.0
            if j & (j - 1) == 0:
                _next_window(v, late, before, sums)
            sums[LARGEST] = max(sums[LARGEST], square[i])
            if j <= draws:
                sums[SQUARES] += omega[i] * omega[i] * (square[i] + 1.0)
                sums[SEEN] += 1.0
            widest = bound if bound > 0 else 1.0 + sqrt(sums[LARGEST] / lam)
            rate = step * sqrt((1.0 / lam + widest * widest) * sums[SEEN] / sums[SQUARES]) if free else 0.0
            eta = _length(j, lam, rate)
            size = _change(j, y[i], omega[i], response, square[i], eta, lam, widest, free, sums)
            if size > 0:
                add_row(indices, data, k0, k1, size * y[i], v)
                if sums[SCALE_SUM] > 0:
                    add_row(indices, data, k0, k1, size * y[i] * sums[SCALE_SUM], late)
            _settle(sums, eta, lam, True)
            if sums[SCALE] < SMALLEST_SCALE:
                _renew(v, late, v[:0], late[:0], sums)

    return stream_loop


#: By the form of the rows; the arguments are those of the loops above.
steps = both_forms(_steps_loop, f"void(ROWS, {'f8[:], ' * 8}i8[:], f8, f8, f8, i8, i8)", "steps", ENDS, DOT, ADD, ASK_FOR_ROW)
stream = both_forms(_stream_loop, f"void(ROWS, {'f8[:], ' * 7}f8, f8, f8, i8, i8, i8, f8[:])", "stream", DOT, ADD)
