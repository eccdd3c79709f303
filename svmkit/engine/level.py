"""Levels of water over the responses of two classes: the inner problem of the stochastic batch perceptron (solvers/sbp.py).

Examples stand sorted by class, positives first. Water covers the responses below an edge so that the covered examples' weighted
shortfall is a given volume. Without a bias there is one edge for all. With a bias each class is a basin with its own edge, u
and v; the bias b lowers one as it raises the other, u = level − b, v = level + b, and stands where the level is highest: there
both basins have the same weight under water. Where only a part of a response's weight may count, it sits on the edge itself.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from svmkit._jit import REASSOCIATED, compiled, helper
from svmkit.data import Floats

#: Entries of ``numbers``. The scale of w; ‖w‖²; η_0; ν; the edges of both classes, and the share of the weight on them that
#: counts; half the width of the windows about them, and weight to a unit of width there; the mean covered response; Σ scale
#: over the steps since sums were last brought up to date; the largest weight of either class.
SCALE, NORM2, ETA, NU, EDGE, EDGE_NEGATIVE, ON_EDGE, ON_EDGE_NEGATIVE, REACH, DENSITY, MEAN, SCALES = range(12)
HEAVIEST, HEAVIEST_NEGATIVE, N_NUMBERS = range(12, 15)
#: Entries of ``counts``: steps taken; examples of the positive class; basins; draws a step; seed; rows first used.
STEP, POSITIVES, BASINS, BATCH, SEED, ROWS, N_COUNTS = range(7)

#: More than any response; beyond it everything is under water.
HIGHEST = 1e250
#: Responses looked at together, and how many should lie in both windows.
CHUNK, FEW, MANY = 64, 24, 96
#: Steps towards both edges, at most, before they are looked for among the responses near by.
MOST_STEPS = 40
#: Newton's method finds the level to this share of its size, and an edge is a response where they differ by this share.
PRECISION, ROUNDING = 1e-11, 1e-14


@helper(REASSOCIATED)
def _covered(c: Any, weight: Any, begin: Any, end: Any, level: Any) -> Any:
    """Weight and weighted sum of the responses below ``level`` among c[begin:end].

    Loops run over slices, here and below: an index that might be negative, to numba, keeps a loop from being vectorised.
    """
    own, weights = c[begin:end], weight[begin:end]
    mass, total = 0.0, 0.0
    for i in range(len(own)):
        w = weights[i] if own[i] < level else 0.0
        mass += w
        total += w * own[i]
    return mass, total


@helper()
def _find_edge(c: Any, weight: Any, numbers: Any) -> None:
    """The edge of one basin, by Newton's method from where it was.

    The volume below an edge is convex and piecewise linear in it, so that from the first edge above the answer on the steps go
    down to it and end.
    """
    n, edge = len(c), numbers[EDGE]
    volume, mean = numbers[NU] * n / numbers[SCALE], 0.0
    for _ in range(100):
        mass, total = _covered(c, weight, 0, n, edge)
        if mass == 0.0:
            mass, total = _covered(c, weight, 0, n, HIGHEST)
        mean = total / mass
        new = mean + volume / mass
        settled = abs(new - edge) <= PRECISION * (abs(new) + volume / n)
        edge = new
        if settled:
            break
    numbers[EDGE], numbers[EDGE_NEGATIVE], numbers[MEAN] = edge, edge, mean


@helper(REASSOCIATED)
def _gather(c: Any, weight: Any, begin: Any, end: Any, low: Any, high: Any, near: Any, near_weight: Any) -> Any:
    """The responses among c[begin:end] from ``low`` to below ``high`` into ``near``, from ``begin``; where they end there.

    Whole chunks are passed over where they hold none: comparing in vectors is much faster than one by one.
    """
    count, first = begin, begin
    while first < end:
        inside = 1.0
        if first + CHUNK <= end:
            chunk = c[first : first + CHUNK]
            inside = 0.0
            for k in range(CHUNK):
                inside += (1.0 if chunk[k] >= low else 0.0) * (1.0 if chunk[k] < high else 0.0)
        if inside > 0.0:
            for i in range(first, min(first + CHUNK, end)):
                if low <= c[i] < high:
                    near[count], near_weight[count] = c[i], weight[i]
                    count += 1
        first += CHUNK
    return count


@helper(REASSOCIATED)
def _next_edge(c: Any, begin: Any, end: Any, high: Any) -> Any:
    """How far the edge may rise above the window's last response: to ``high``, or for ever where none lies beyond."""
    own, above = c[begin:end], 0.0
    for i in range(len(own)):
        above += 1.0 if own[i] >= high else 0.0
    return high if above > 0.0 else HIGHEST


@helper()
def _sort(values: Any, weight: Any, begin: Any, end: Any) -> None:
    """Shell's sort of values[begin:end], rising, ``weight`` along with it."""
    gap = 1
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            value, w = values[i], weight[i]
            j = i
            while j >= begin + gap and values[j - gap] > value:
                values[j], weight[j] = values[j - gap], weight[j - gap]
                j -= gap
            values[j], weight[j] = value, w
        gap //= 3


@helper()
def _share_on_edge(near: Any, weight: Any, begin: Any, end: Any, below: Any, covered: Any, edge: Any) -> Any:
    """The share of the weight at ``edge`` itself that makes up ``covered``, ``below`` lying under the window."""
    at = 0.0
    for i in range(begin, end):
        below += weight[i] if near[i] < edge else 0.0
        at += weight[i] if near[i] == edge else 0.0
    return min(1.0, max(0.0, (covered - below) / at)) if at > 0.0 else 0.0


@helper()
def _but_for_rounding(edge: Any, last: Any, following: Any, height: Any) -> Any:
    """``edge``, or the response that it would be: beside one it would cover all of its weight or none."""
    near = ROUNDING * (abs(height) + abs(edge))
    return last if abs(edge - last) <= near else following if abs(following - edge) <= near else edge


@helper()
def _edges_near(c: Any, weight: Any, split: Any, volume: Any, u: Any, v: Any, reach: Any, near: Any, numbers: Any) -> Any:
    """Both edges from the responses within ``reach`` of u and v; how many these are, or −1 where the edges lie further off.

    As the weight k covered in either class grows, both edges rise from response to response, and with them the volume under
    them, k(u + v) − Σ weight · c. A response that is covered in part holds its edge.
    """
    n = len(c)
    value, mass = near[0], near[1]
    base_p, sum_p = _covered(c, weight, 0, split, u - reach)
    base_n, sum_n = _covered(c, weight, split, n, v - reach)
    end_i = _gather(c, weight, 0, split, u - reach, u + reach, value, mass)
    end_j = _gather(c, weight, split, n, v - reach, v + reach, value, mass)
    _sort(value, mass, 0, end_i)
    _sort(value, mass, split, end_j)
    i, j, done_p, done_n, k, total = 0, split, base_p, base_n, max(base_p, base_n), sum_p + sum_n
    u_last, v_last = u - reach, v - reach
    while i < end_i and done_p < k:
        u_last = value[i]
        total += min(mass[i], k - done_p) * u_last
        if done_p + mass[i] > k:
            break
        done_p += mass[i]
        i += 1
    while j < end_j and done_n < k:
        v_last = value[j]
        total += min(mass[j], k - done_n) * v_last
        if done_n + mass[j] > k:
            break
        done_n += mass[j]
        j += 1
    if (i == end_i and done_p < k) or (j == end_j and done_n < k):
        return -1
    first = True
    while True:
        u_next = value[i] if i < end_i else _next_edge(c, 0, split, u + reach)
        v_next = value[j] if j < end_j else _next_edge(c, split, n, v + reach)
        if k * (u_next + v_next) - total >= volume:
            break
        if i == end_i or j == end_j:
            return -1
        more = min(done_p + mass[i], done_n + mass[j])
        total += (more - k) * (u_next + v_next)
        u_last, v_last, k, first = u_next, v_next, more, False
        if done_p + mass[i] <= k:
            done_p += mass[i]
            i += 1
        if done_n + mass[j] <= k:
            done_n += mass[j]
            j += 1
    height = (volume + total) / k
    if first and height < u_last + v_last:
        return -1
    u = 0.5 * (max(u_last, height - v_next) + min(u_next, height - v_last))
    if u_last == u_next:
        u = u_last
    elif v_last == v_next:
        u = height - v_last
    v = v_last if v_last == v_next else height - u
    u, v = _but_for_rounding(u, u_last, u_next, height), _but_for_rounding(v, v_last, v_next, height)
    numbers[EDGE], numbers[EDGE_NEGATIVE], numbers[MEAN] = u, v, total / (2.0 * k)
    numbers[ON_EDGE] = _share_on_edge(value, mass, 0, end_i, base_p, k, u)
    numbers[ON_EDGE_NEGATIVE] = _share_on_edge(value, mass, split, end_j, base_n, k, v)
    return end_i + end_j - split


@helper()
def _find_edges(c: Any, weight: Any, near: Any, numbers: Any, counts: Any) -> None:
    """Both basins' edges: Newton's method from where they were, then exactly, among the responses near by.

    Newton's steps rise both edges to the volume, and tilt them, one down and the other up, to equal weights. A step of sbp may
    have moved nearly all responses alike, or some far, so that the weight to a unit of width is judged anew from tilt to tilt,
    and a tilt is at most twice as long as the last, or half as long where that went too far. Where these steps led astray, the
    edges are looked for about where they were, further and further away.
    """
    split, volume, n = counts[POSITIVES], numbers[NU] * len(c) / numbers[SCALE], len(c)
    u, v, reach = numbers[EDGE], numbers[EDGE_NEGATIVE], max(numbers[REACH], 1e-9 * volume / n)
    density, longest, off_before, tilt = numbers[DENSITY], 4.0 * reach, 0.0, 0.0
    for _ in range(MOST_STEPS):
        mass_p, total_p = _covered(c, weight, 0, split, u)
        mass_n, total_n = _covered(c, weight, split, n, v)
        if mass_p + mass_n == 0.0:
            mass_p, total_p = _covered(c, weight, 0, split, HIGHEST)
            mass_n, total_n = _covered(c, weight, split, n, HIGHEST)
        rise, off = (volume + total_p + total_n - mass_p * u - mass_n * v) / (mass_p + mass_n), mass_p - mass_n
        if tilt != 0.0 and density > 0.0:
            density = min(max((off_before - off) / tilt, 0.25 * density), 4.0 * density)
        longest *= 0.5 if off * off_before < 0.0 else 2.0
        tilt = min(max(off / density if density > 0.0 else off, -longest), longest)
        u, v, off_before = u + rise - tilt, v + rise + tilt, off
        if abs(rise) + abs(tilt) < 0.25 * reach:
            break
    count = -1
    for _ in range(500):
        count = _edges_near(c, weight, split, volume, u, v, reach, near, numbers)
        if count >= 0:
            break
        reach *= 4.0
        u, v = numbers[EDGE], numbers[EDGE_NEGATIVE]
    numbers[DENSITY] = count / (2.0 * reach)
    numbers[REACH] = reach * (min(0.7, MANY / count) if count > MANY else 1.5 if count < FEW else 1.0)


@helper()
def adjust_level(c: Any, weight: Any, near: Any, numbers: Any, counts: Any) -> None:
    """The edges, and MEAN, for c and the NU in ``numbers``, from where they were; ``near`` (2, n) is work space."""
    if counts[BASINS] == 1:
        _find_edge(c, weight, numbers)
    else:
        _find_edges(c, weight, near, numbers, counts)


@compiled("void(f8[:], f8[:], f8[:, :], f8[:], i8[:])")
def find_level(c: Any, weight: Any, near: Any, numbers: Any, counts: Any) -> None:
    """``adjust_level`` on its own."""
    adjust_level(c, weight, near, numbers, counts)


class Fill(NamedTuple):
    """A level found by sorting: ``level``, ``b`` in the middle of the best ones, the volume under it."""

    level: float
    b: float
    volume: float


#: For w = 0: that of ``fill_margin`` where s = 0 is best, so that its level 1/s is infinite.
NO_LEVEL = Fill(inf, 0.0, inf)


def fill_volume(c: Floats, weight: Floats, positives: int, basins: int, volume: float) -> Fill:
    """The level under which ``volume`` lies, for any responses, from scratch and exactly. O(n log n)."""
    pieces = _pieces(c, weight, positives, basins)
    m = int(np.argmax(pieces.mass * pieces.top - pieces.total >= volume))
    return _filled(pieces, m, (volume + pieces.total[m]) / pieces.mass[m])


def fill_margin(c: Floats, weight: Floats, positives: int, basins: int, push: float) -> Fill:
    """The level 1/s, and b, for the s > 0 and b/s that minimise push·s²/2 + Σ weight·max(0, 1 − s(c + y b)), likewise.

    There level · Σ weight·c = push over what is covered. NO_LEVEL where s = 0 is best.
    """
    pieces = _pieces(c, weight, positives, basins)
    with np.errstate(invalid="ignore"):  # no weight times an infinite edge
        reached = (pieces.total > 0) & (pieces.top * pieces.total >= basins * push)
    m = int(np.argmax(reached))
    if not reached[m]:
        return NO_LEVEL
    return _filled(pieces, m, max(float(pieces.bottom[m]), basins * push / pieces.total[m]))


class _Pieces(NamedTuple):
    """Piece m: ``mass`` of each class is covered, ``total`` is its Σ weight·c, and the edges of the basins, ``low`` to ``high``
    (basins, pieces), add up to between ``bottom`` and ``top``.
    """

    mass: Floats
    total: Floats
    low: Floats
    high: Floats
    bottom: Floats
    top: Floats


def _pieces(c: Floats, weight: Floats, positives: int, basins: int) -> _Pieces:
    parts = [slice(0, len(c))] if basins == 1 else [slice(0, positives), slice(positives, len(c))]
    orders = [np.argsort(c[part]) for part in parts]
    rising = [c[part][order] for part, order in zip(parts, orders, strict=True)]
    masses = [np.cumsum(weight[part][order]) for part, order in zip(parts, orders, strict=True)]
    mass = np.unique(np.concatenate(masses))
    mass = mass[mass <= min(found[-1] for found in masses)]
    low = np.array([part[np.searchsorted(found, mass)] for part, found in zip(rising, masses, strict=True)])
    high = np.array(
        [np.append(part, inf)[np.searchsorted(found, mass, "right")] for part, found in zip(rising, masses, strict=True)]
    )
    bottom = low.sum(axis=0)
    return _Pieces(mass, np.cumsum(np.diff(mass, prepend=0.0) * bottom), low, high, bottom, high.sum(axis=0))


def _filled(pieces: _Pieces, m: int, height: float) -> Fill:
    """Piece m with edges that add up to ``height``."""
    basins, b = len(pieces.low), 0.0
    if basins == 2:
        (u, v), (next_u, next_v) = pieces.low[:, m], pieces.high[:, m]
        b = height / 2 - 0.5 * (max(u, height - next_v) + min(next_u, height - v))
    return Fill(float(height / basins), float(b), float(pieces.mass[m] * height - pieces.total[m]))
