"""Steps of the stochastic batch perceptron on responses kept for every example (solvers/sbp.py has the algorithm).

The iterate is w = scale · ŵ; ``c`` and ``alpha``, edges and means belong to ŵ. An example is drawn from counter-based random
numbers of its step, so that draws to come can be foretold: a draw looks at nothing but the covered set.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from numpy import int64

from svmkit._jit import REASSOCIATED, both_precisions, compiled, helper
from svmkit.engine.kept_rows import want, wanted
from svmkit.engine.level import (
    BASINS,
    BATCH,
    DENSITY,
    EDGE,
    EDGE_NEGATIVE,
    ETA,
    HEAVIEST,
    HEAVIEST_NEGATIVE,
    MEAN,
    NORM2,
    ON_EDGE,
    ON_EDGE_NEGATIVE,
    POSITIVES,
    REACH,
    ROWS,
    SCALE,
    SCALES,
    SEED,
    STEP,
    adjust_level,
)
from svmkit.engine.rng import below, uniform

#: The largest steps are this share of 1/(m t).
FORGETTING = 0.7
#: Responses that stay in the second-level cache while rows are added to them.
TILE = 32768
#: Draws of one step are numbered from multiples of this.
DRAWS = int64(1) << int64(32)
LAST = DRAWS - 1


@helper()
def _draw(c: Any, weight: Any, numbers: Any, counts: Any, step: Any, number: Any) -> Any:
    """The covered example that draw ``number`` of ``step`` falls on: class by class evenly with two basins, then by weight."""
    n, split, seed, first = len(c), counts[POSITIVES], counts[SEED], number * DRAWS
    begin, end = 0, n
    if counts[BASINS] == 2:
        begin, end = (0, split) if uniform(seed, step, first) < 0.5 else (split, n)
    edge, edge_negative = numbers[EDGE], numbers[EDGE_NEGATIVE]
    share, heaviest = numbers[ON_EDGE], numbers[HEAVIEST]
    if begin == split:
        share, heaviest = numbers[ON_EDGE_NEGATIVE], numbers[HEAVIEST_NEGATIVE]
    for trial in range(16 + (end - begin) // 64):
        place = first + 3 * trial
        i = begin + below(seed, step, place + 1, end - begin)
        if weight[i] < heaviest and uniform(seed, step, place + 2) * heaviest >= weight[i]:
            continue
        mine = edge if i < split else edge_negative
        if c[i] < mine or (c[i] == mine and uniform(seed, step, place + 3) < share):
            return i
    return _draw_by_scan(
        c, weight, begin, end, edge_negative if begin == split else edge, share, uniform(seed, step, first + LAST)
    )


@helper()
def _draw_by_scan(c: Any, weight: Any, begin: Any, end: Any, edge: Any, share: Any, at: Any) -> Any:
    """The covered example of c[begin:end] at the share ``at`` of their weight; the lowest where rounding covers none."""
    left, lowest, last = 0.0, begin, -1
    for i in range(begin, end):
        left += at * weight[i] * (1.0 if c[i] < edge else share if c[i] == edge else 0.0)
        lowest = i if c[i] < c[lowest] else lowest
    for i in range(begin, end):
        part = 1.0 if c[i] < edge else share if c[i] == edge else 0.0
        if part * weight[i] > 0.0:
            left -= part * weight[i]
            last = i
            if left < 0.0:
                return i
    return last if last >= 0 else lowest


@helper(REASSOCIATED)
def _add_row(c: Any, row: Any, begin: Any, end: Any, factor: Any) -> None:
    own, values = c[begin:end], row[begin:end]
    for i in range(len(own)):
        own[i] += factor * values[i]


@helper()
def _take_step(
    K: Any, slot_of: Any, unused: Any, owed: Any, c: Any, alpha: Any, sums: Any, diagonal: Any,
    numbers: Any, counts: Any, drawn: Any,
) -> None:  # fmt: skip
    """w ← w + (η/batch) Σ y_i φ(x_i) over the examples drawn, back into the unit ball, and the level of what comes out."""
    step, batch, split, scale = counts[STEP] + 1, counts[BATCH], counts[POSITIVES], numbers[SCALE]
    eta = numbers[ETA] / sqrt(step)
    mean = scale * numbers[MEAN]
    if mean > 0.0:
        eta = min(eta, FORGETTING / (mean * step))
    share = eta / batch
    rise, length = 0.0, 0.0
    for k in range(batch):
        i = drawn[k]
        slot = slot_of[i]
        if diagonal[i] == 0.0:
            continue
        rise += scale * c[i]
        for j in drawn[:batch]:
            length += (K[slot, j] if (i < split) == (j < split) else -K[slot, j]) if diagonal[j] != 0.0 else 0.0
    numbers[NORM2] = max(0.0, numbers[NORM2] + 2.0 * share * rise + share * share * length)
    for k in range(batch):
        i = drawn[k]
        if diagonal[i] == 0.0:
            continue
        slot, factor, sign = slot_of[i], share / scale, 1.0 if i < split else -1.0
        alpha[i] += factor
        sums[i] -= factor * numbers[SCALES]
        owed[slot] -= sign * factor * numbers[SCALES]
        counts[ROWS] += unused[slot]
        unused[slot] = 0
        _add_row(c, K[slot], 0, split, sign * factor)
        _add_row(c, K[slot], split, len(c), -sign * factor)
    if numbers[NORM2] > 1.0:
        numbers[SCALE] /= sqrt(numbers[NORM2])
        numbers[NORM2] = 1.0
    numbers[SCALES] += numbers[SCALE]
    counts[STEP] = step


@compiled("void(f8[:], f8[:], f8[:], f8[:], f8[:])")
def fold(c: Any, alpha: Any, sums: Any, sums_c: Any, numbers: Any) -> None:
    """The sums brought up to date but for what is owed to the responses', and the scale multiplied into ŵ."""
    scale, scales = numbers[SCALE], numbers[SCALES]
    for i in range(len(c)):
        sums[i] += alpha[i] * scales
        sums_c[i] += c[i] * scales
        alpha[i] *= scale
        c[i] *= scale
    for entry in (EDGE, EDGE_NEGATIVE, REACH, MEAN):
        numbers[entry] *= scale
    numbers[DENSITY] /= scale
    numbers[SCALE], numbers[SCALES] = 1.0, 0.0


@compiled("i8(f8[:], f8[:], f8[:], f8[:], i8[:], i8[:], i8, i8[:])")
def foresee(
    c: Any, weight: Any, diagonal: Any, numbers: Any, counts: Any, slot_of: Any, steps: Any, found: Any
) -> Any:  # fmt: skip
    """The first examples that the next ``steps`` steps would draw, were nothing to change, and that have no row; how many."""
    count = 0
    for step in range(counts[STEP] + 1, counts[STEP] + 1 + steps):
        for number in range(counts[BATCH]):
            i = _draw(c, weight, numbers, counts, step, number)
            if diagonal[i] != 0.0:
                count = want(i, slot_of, found, count)
    return wanted(slot_of, found, count)


def _take_steps(
    K: Any, slot_of: Any, unused: Any, owed: Any, c: Any, alpha: Any, sums: Any, weight: Any, diagonal: Any,
    near: Any, numbers: Any, counts: Any, drawn: Any, budget: Any,
) -> Any:  # fmt: skip
    """At most ``budget`` steps, ending early before one that draws an example whose row is not in ``K``; how many."""
    for done in range(budget):
        for number in range(counts[BATCH]):
            i = _draw(c, weight, numbers, counts, counts[STEP] + 1, number)
            if slot_of[i] < 0 and diagonal[i] != 0.0:
                return done
            drawn[number] = i
        _take_step(K, slot_of, unused, owed, c, alpha, sums, diagonal, numbers, counts, drawn)
        adjust_level(c, weight, near, numbers, counts)
    return budget


take_steps = both_precisions(
    _take_steps, "i8(R[:, :], i8[:], i8[:], f8[:], f8[:], f8[:], f8[:], f8[:], f8[:], f8[:, :], f8[:], i8[:], i8[:], i8)", False
)


def _add_owed(K: Any, slots: Any, owed: Any, split: Any, begin: Any, end: Any, out: Any) -> None:
    """out[begin:end] += Σ over ``slots`` of owed·y·K[slot], tile by tile."""
    for first in range(begin, end, TILE):
        last = min(first + TILE, end)
        for slot in slots:
            cut = min(max(split, first), last)
            _add_row(out, K[slot], first, cut, owed[slot])
            _add_row(out, K[slot], cut, last, -owed[slot])


add_owed = both_precisions(_add_owed, "void(R[:, :], i8[:], f8[:], i8, i8, i8, f8[:])", False)
