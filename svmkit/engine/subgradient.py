"""Compiled loops of stochastic subgradient steps on the λ-form, for a kernel (inside a block of examples) and for linear f.

    min  (λ/2)‖w‖² + (1/n) Σ ω_i max(0, 1 − y_i ⟨w, φ(x_i)⟩)

One step, with A the examples drawn (k of them) whose margin is below 1:

    w ← (1 − 1/t) w + (1/(λ t k)) Σ_A ω_i y_i φ(x_i),     then, if asked, w ← w · min(1, 1/(√λ ‖w‖)),     t ← t + 1

At t = 1, w = 0 and the first factor is 0. With ``hold``, t stays after a step in which A was empty. Averages give the iterate
after step t a weight: 0 (none is kept), 1, or t.

Kernel: w = kept·w₀ + Σ change_a φ_a with w₀ the iterate at the block's begin, so that everything outside the block is touched
once a block. Linear: w = scale·v, and an average is Σ_t (weight·scale)·v_t = S·v − late with S the sum of weight·scale so far,
where a change δ of v adds δ·S to ``late``: a step touches the nonzeros of its examples alone.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

from numpy import uint64

from svmkit._jit import ORDERED, both_precisions, helper
from svmkit.engine.linear import ADD, DOT, ENDS, SMALLEST_SCALE, both_forms, own_units
from svmkit.engine.prefetch import ASK_FOR_ROW, prefetch

#: How iterates are averaged.
NO_AVERAGE, UNIFORM, BY_STEP = range(3)

#: The stream of random numbers that examples are drawn by.
DRAWS = 0

#: Places in ``sums`` of the kernel loop: share of w₀ in w; its weighted sum; the weights' sum; ‖w‖².
KEPT, KEPT_SUM, WEIGHTS, NORM2 = range(4)
#: Places in ``sums`` of the linear loop: w = scale·v; S; the weights' sum (2); ‖v‖².
SCALE, SCALE_SUM, V_NORM2 = 0, 1, 3
#: More places in the ``sums`` of a stream.
V_CONSTANT, LATE_CONSTANT, STREAM_SUMS = range(4, 7)
#: Draws ahead at which an example's place and values are asked for.
AHEAD, _NEAR = 8, 4
#: Places in ``counts``: t; examples with a margin below 1; supports (kernel); kernel values on demand (kernel).
T, HITS, SUPPORTS, ON_DEMAND = range(4)


class Flags(NamedTuple):
    """λ and the choices of a run, as the loops take them."""

    lam: float
    average: int
    project: int
    hold: int


@helper(ORDERED)
def _weight(average: Any, t: Any) -> Any:
    if average == NO_AVERAGE:
        return 0.0
    return 1.0 if average == UNIFORM else float(t)


def _block_steps(
    K: Any, place: Any, y: Any, omega: Any, c: Any, change: Any, summed: Any, held: Any, sums: Any, counts: Any, hits: Any,
    lam: Any, average: Any, project: Any, hold: Any, first: Any, last: Any,
) -> None:  # fmt: skip
    """Steps first … last − 1 of a block; step s takes the ``len(hits)`` examples from place[s·len(hits)] on.

    For the block's q distinct examples: ``K`` (q, q), ``c`` their responses to w, ``change`` their coefficients' part in w from
    this block, ``summed`` its weighted sum, ``held`` whether they have a coefficient, ``omega`` 0 for one never to be used.
    """
    k = len(hits)
    for s in range(first, last):
        n_hits = 0
        counts[ON_DEMAND] += k * counts[SUPPORTS]
        for j in range(k):
            a = place[s * k + j]
            if omega[a] > 0 and y[a] * c[a] < 1:
                hits[n_hits] = a
                n_hits += 1
        t = counts[T]
        _scale_block(1.0 - 1.0 / t, c, change, sums)
        for j in range(n_hits):
            a = hits[j]
            delta = y[a] * omega[a] / (lam * t * k)
            sums[NORM2] += delta * (2.0 * c[a] + delta * K[a, a])
            for b in range(len(c)):
                c[b] += delta * K[a, b]
            change[a] += delta
            counts[SUPPORTS] += 1 - held[a]
            held[a] = 1
        counts[HITS] += n_hits
        if project and lam * sums[NORM2] > 1:
            _scale_block(1.0 / sqrt(lam * sums[NORM2]), c, change, sums)
        if n_hits > 0 or not hold:
            counts[T] += 1
        weight = _weight(average, t)
        if weight > 0:
            sums[KEPT_SUM] += weight * sums[KEPT]
            sums[WEIGHTS] += weight
            for b in range(len(c)):
                summed[b] += weight * change[b]


@helper(ORDERED)
def _scale_block(factor: Any, c: Any, change: Any, sums: Any) -> None:
    """w ← factor·w."""
    sums[KEPT] *= factor
    sums[NORM2] *= factor * factor
    for b in range(len(c)):
        c[b] *= factor
        change[b] *= factor


block_steps = both_precisions(
    _block_steps, "void(R[:, :], i8[:], f8[:], f8[:], f8[:], f8[:], f8[:], i8[:], f8[:], i8[:], i8[:], f8, i8, i8, i8, i8, i8)"
)


@helper(ORDERED, inline=True)
def settle(sums: Any, counts: Any, n_hits: Any, lam: Any, average: Any, project: Any, hold: Any) -> None:
    """The end of a step on w = scale·v: its projection, its part in the average, and the next t."""
    counts[HITS] += n_hits
    norm2 = sums[SCALE] * sums[SCALE] * sums[V_NORM2]
    if project and lam * norm2 > 1:
        sums[SCALE] *= 1.0 / sqrt(lam * norm2)
    weight = _weight(average, counts[T])
    sums[SCALE_SUM] += weight * sums[SCALE]
    sums[WEIGHTS] += weight
    if n_hits > 0 or not hold:
        counts[T] += 1


@helper(ORDERED)
def renew(v: Any, late_v: Any, sums: Any) -> None:
    """v ← scale·v, with S = 0 from now on and S·v − late as it was."""
    own_units(v, late_v, sums[SCALE], sums[SCALE_SUM])
    sums[V_NORM2] *= sums[SCALE] * sums[SCALE]
    sums[SCALE], sums[SCALE_SUM] = 1.0, 0.0


def _linear_loop(ends: Any, dot_row: Any, add_row: Any, ask_for_row: Any) -> Any:
    def loop(
        indptr: Any, indices: Any, data: Any, square: Any, y: Any, omega: Any,
        v: Any, a: Any, late_v: Any, late_a: Any, sums: Any, counts: Any, hits: Any,
        drawn: Any, lam: Any, average: Any, project: Any, hold: Any,
    ) -> None:  # fmt: skip
        """A step for each ``len(hits)`` of the examples ``drawn``, but for the last AHEAD of these, which come after.

        ``square`` (n,) ‖x_i‖²; ``v`` (features,), ``a`` (n,) with v = Σ a_i y_i x_i; ``late_v, late_a`` likewise.
        """
        k = len(hits)
        for s in range((len(drawn) - AHEAD) // k):
            n_hits = 0
            dot = 0.0
            for j in range(k):
                at = s * k + j
                i, far = drawn[at], drawn[at + AHEAD]
                ask_for_row(far, drawn[at + _NEAR], indptr, indices, data)
                for values in (square, y, omega, a, late_a):
                    prefetch(values, uint64(far))
                if square[i] > 0:
                    k0, k1 = ends(indptr, i)
                    response = dot_row(indices, data, k0, k1, v)
                    if y[i] * sums[SCALE] * response < 1:
                        if n_hits == 0:
                            dot = response
                        hits[n_hits] = i
                        n_hits += 1
            t = counts[T]
            if t > 1:
                sums[SCALE] *= 1.0 - 1.0 / t
            for j in range(n_hits):
                i = hits[j]
                k0, k1 = ends(indptr, i)
                size = omega[i] / (lam * t * k * sums[SCALE])
                if project:
                    if j > 0:
                        dot = dot_row(indices, data, k0, k1, v)
                    sums[V_NORM2] += size * (2.0 * y[i] * dot + size * square[i])
                add_row(indices, data, k0, k1, size * y[i], v)
                a[i] += size
                if average != NO_AVERAGE:
                    add_row(indices, data, k0, k1, size * y[i] * sums[SCALE_SUM], late_v)
                    late_a[i] += size * sums[SCALE_SUM]
            settle(sums, counts, n_hits, lam, average, project, hold)
            if sums[SCALE] < SMALLEST_SCALE:
                own_units(a, late_a, sums[SCALE], sums[SCALE_SUM])
                renew(v, late_v, sums)

    return loop


#: For rows in either form.
linear_steps = both_forms(
    _linear_loop, f"void(ROWS, {'f8[:], ' * 8}i8[:], i8[:], i8[:], f8, i8, i8, i8)", "linear_steps", ENDS, DOT, ADD, ASK_FOR_ROW
)


def _stream_loop(dot: Any, add: Any) -> Any:
    def stream_loop(
        indptr: Any, indices: Any, data: Any, square: Any, y: Any, omega: Any, v: Any, late_v: Any,
        sums: Any, counts: Any, hits: Any, before: Any,
        constant: Any, lam: Any, average: Any, project: Any, hold: Any, n_steps: Any,
    ) -> None:  # fmt: skip
        """``n_steps`` steps, each of the next ``len(hits)`` rows; then what is left of them is answered only.

        ``before`` gets f of each row by the average, or where none is kept by w, before the step that it is learned in.
        sums[V_CONSTANT] and sums[LATE_CONSTANT] stand for v and late_v at a feature ``constant`` that every row has.
        """
        k = len(hits)
        for s in range(n_steps + 1):
            n_hits = 0
            dot_first = 0.0
            for i in range(s * k, min((s + 1) * k, len(y))):
                response = dot(indices, data, indptr[i], indptr[i + 1], v) + constant * sums[V_CONSTANT]
                before[i] = sums[SCALE] * response
                if y[i] * before[i] < 1 and square[i] > 0:
                    if n_hits == 0:
                        dot_first = response
                    hits[n_hits] = i
                    n_hits += 1
                if sums[WEIGHTS] > 0:
                    late = dot(indices, data, indptr[i], indptr[i + 1], late_v) + constant * sums[LATE_CONSTANT]
                    before[i] = (sums[SCALE_SUM] * response - late) / sums[WEIGHTS]
            if s == n_steps:
                break
            t = counts[T]
            if t > 1:
                sums[SCALE] *= 1.0 - 1.0 / t
            for j in range(n_hits):
                i = hits[j]
                size = omega[i] / (lam * t * k * sums[SCALE])
                if project:
                    if j > 0:
                        dot_first = dot(indices, data, indptr[i], indptr[i + 1], v) + constant * sums[V_CONSTANT]
                    sums[V_NORM2] += size * (2.0 * y[i] * dot_first + size * square[i])
                add(indices, data, indptr[i], indptr[i + 1], size * y[i], v)
                sums[V_CONSTANT] += size * y[i] * constant
                if average != NO_AVERAGE:
                    add(indices, data, indptr[i], indptr[i + 1], size * y[i] * sums[SCALE_SUM], late_v)
                    sums[LATE_CONSTANT] += size * y[i] * sums[SCALE_SUM] * constant
            settle(sums, counts, n_hits, lam, average, project, hold)
            if sums[SCALE] < SMALLEST_SCALE:
                sums[LATE_CONSTANT] -= sums[SCALE_SUM] * sums[V_CONSTANT]
                sums[V_CONSTANT] *= sums[SCALE]
                renew(v, late_v, sums)

    return stream_loop


stream_steps = both_forms(
    _stream_loop, f"void(ROWS, {'f8[:], ' * 6}i8[:], i8[:], f8[:], f8, f8, i8, i8, i8, i8)", "stream_steps", DOT, ADD
)
