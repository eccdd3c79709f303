"""Compiled loops of the dual solvers: extremes of F, the choice of a block, and steps inside a dense block.

In the β form (solvers/smo.py): lower ≤ β ≤ upper, up = {β < upper}, low = {β > lower}, F = −(gradient), to be made equal on the
free variables. LLVM does not vectorise the search for a largest float with its place. So a float is mapped to an integer of the
same order with its place in the low bits, and integers are compared: five times faster on a block of 1024.

Steps in a block keep its F in the precision of its K. In float32 that is half the memory, which then stays in the first-level
cache, and twice the numbers to a register. F serves to choose steps and to end them: it comes less some number near those that
matter (``block_F``), and less another when these have moved far, so that what is rounded away is small against the violation.
The caller has F from Δβ afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import float32, float64, int32, int64
from numpy.typing import NDArray

from svmkit._jit import ORDERED, REASSOCIATED, Compiled, both_precisions, compiled, helper
from svmkit.data import Floats
from svmkit.engine.larger import larger, smaller
from svmkit.engine.layouts import Real
from svmkit.engine.llvm import reinterpret
from svmkit.engine.space import aligned

#: Places in a block take 12 bits of a key.
LARGEST_BLOCK = 4096
_PLACE = int64(LARGEST_BLOCK - 1)
_PLACE32 = int32(LARGEST_BLOCK - 1)
#: All bits of a key of 64 but its sign, and the least such key.
_MAGNITUDE = int64(0x7FFFFFFFFFFFFFFF)
_LEAST = int64(-0x8000000000000000)
#: Beyond all F: the extremes of an empty set.
_HUGE = 1e300
#: The largest F in float32, so that it and what it changes by stay finite.
_MOST = 1e34
#: A key of 32 bits has 19 for a value, in quarters of eps: so many eps either way, which is its window. When the largest F is
#: ``_FAR_EPS`` away from 0, half way to the window's end, it becomes the new 0.
_WINDOW_EPS, _FAR_EPS = 65_535.0, 32_768.0
_WINDOW_MIDDLE, _WINDOW_END = (float32(times * 4.0 * LARGEST_BLOCK * _WINDOW_EPS) for times in (1.0, 2.0))
#: Inside a block, steps go on until the violation is this share of the whole one; in float32 at least of this share, below
#: which the rounding of F shows.
_INNER_SHARE, _LEAST_SHARE = 0.1, 2.0**-16
#: The least curvature that a step reckons with, as in LIBSVM.
_TAU = 1e-12
#: Levels that variables are sorted into when a block is chosen, by how far they lie beyond the edge.
_LEVELS = 1024
#: The types of F, β and its box.
_V = "f8[:], f8[:], f8[:], f8[:], "


_float64_bits = reinterpret("float64", "int64")
_float32_bits = reinterpret("float32", "int32")
_bits_float32 = reinterpret("int32", "float32")


@helper(ORDERED)
def _key64(value: Any, place: Any, _eps: Any) -> Any:
    """An integer ordered as ``value``, to 40 bits of it, with ``place`` in its low bits."""
    bits = _float64_bits(value)
    return ((bits ^ ((bits >> int64(63)) & _MAGNITUDE)) & ~_PLACE) | int64(place)


@helper(ORDERED)
def _key32(value: Any, place: Any, eps: Any) -> Any:
    """An integer ordered as ``value``, to a quarter of ``eps``, with ``place`` in its low bits; those past the window tie."""
    scaled = float32(value) * float32(4.0 * LARGEST_BLOCK / eps) + _WINDOW_MIDDLE
    return int32((int32(min(max(scaled, float32(0.0)), _WINDOW_END)) & ~_PLACE32) | int32(place))


#: By the precision of F: its type, a key and the least one, and what keeps a variable out of a set, beyond all F.
_ORDERS: dict[str, Any] = {
    "f8": (float64, _key64, _LEAST, float64(_HUGE)),
    "f4": (float32, _key32, int32(0), float32(1e36)),
}


def block_F(F: Floats, middle: float, real: Real) -> NDArray[Any]:
    """F for steps in a block of precision ``real``: in float32 less ``middle``, between m and M; 0 for single coordinates."""
    if real == "f8":
        return F
    room = aligned(len(F), "f4")
    with np.errstate(over="ignore"):
        np.clip(F - middle, -_MOST, _MOST, out=room, casting="same_kind")
    return room


def inner_eps(eps: float, violation: float, whole: bool, real: Real) -> float:
    """What the violation in a block of precision ``real`` is to come down to; ``whole``: it holds all variables."""
    least = 0.5 * eps if whole else max(0.5 * eps, _INNER_SHARE * violation)
    return least if real == "f8" else max(least, _LEAST_SHARE * violation)


def diagonal_of(K: NDArray[Any], n: int) -> NDArray[Any]:
    """The first ``n`` entries of K's diagonal."""
    room = aligned(n, K.dtype.str)
    room[:] = np.diagonal(K)[:n]
    return room


@compiled(f"void({_V}f8[:])", ORDERED)
def extremes(F: Any, beta: Any, lower: Any, upper: Any, out: Any) -> None:
    """out[0] = m, the largest F over up; out[1] = M, the smallest over low; ∓1e300 where the set is empty.

    F that overflowing kernel values made nan is left out.
    """
    m = -_HUGE
    M = _HUGE
    for i in range(len(F)):
        m = larger(m, F[i] if (beta[i] < upper[i]) & (F[i] > -_HUGE) else -_HUGE)
        M = smaller(M, F[i] if (beta[i] > lower[i]) & (F[i] < _HUGE) else _HUGE)
    out[0] = m
    out[1] = M


@helper(ORDERED)
def _level(excess: Any, scale: Any, may_move: Any) -> Any:
    """Which of _LEVELS equal steps ``excess`` reaches; −1 where there is none or the variable cannot move."""
    step = int32(min(excess * scale, _LEVELS - 1.0))
    return step if (excess > 0.0) & may_move else int32(-1)


@helper(ORDERED)
def _take_highest(level: Any, other: Any, wanted: Any, chosen: Any, n: Any) -> Any:
    """Adds up to ``wanted`` variables of the highest levels, of the last of these some at even distances; the new length.

    They have no level on either side from then on.
    """
    if wanted <= 0:
        return n
    lowest, end = int32(-1), int32(_LEVELS)
    reached, above = int32(len(level)), int32(0)  # the variables from either level on; the latter are fewer than wanted
    while end - lowest > 1:
        middle = int32((lowest + end) // 2)
        count = int32(0)
        for i in range(len(level)):
            count = int32(count + (int32(1) if level[i] >= middle else int32(0)))
        if count >= wanted:
            lowest, reached = middle, count
        else:
            end, above = middle, count
    equal, spare = int64(reached - above), int64(wanted - above) if lowest >= 0 else int64(0)
    seen = int64(0)
    for i in range(len(level)):
        if level[i] >= lowest:
            if level[i] == lowest:
                seen += 1
                if seen * spare // equal == (seen - 1) * spare // equal:
                    continue
            level[i] = other[i] = -1
            chosen[n] = i
            n += 1
    return n


@compiled(f"i8({_V}i8[:], i8, f8, f8, f8, i4[:], i4[:], i8[:])", ORDERED)
def choose_block(
    F: Any, beta: Any, lower: Any, upper: Any, previous: Any, size: Any, up_edge: Any, low_edge: Any, width: Any,
    rises: Any, falls: Any, chosen: Any,
) -> Any:  # fmt: skip
    """Numbers of at most ``size`` variables into ``chosen``; returns how many.

    Half may stay from ``previous`` (−1: dropped since), free ones first, the latest first; then the worst of up (F > up_edge)
    and of low (F < low_edge) to 1/1024 of ``width``, half each, either filling what the other leaves. No F lies more than
    ``width`` beyond its edge. ``rises`` and ``falls`` (n,) are work space.
    """
    scale = (_LEVELS - 1.0) / width
    for i in range(len(F)):
        rises[i] = _level(F[i] - up_edge, scale, beta[i] < upper[i])
        falls[i] = _level(low_edge - F[i], scale, beta[i] > lower[i])
    n = 0
    for free_pass in range(2):
        for place in range(len(previous) - 1, -1, -1):
            i = previous[place]
            if i >= 0 and 2 * n < size:
                free = lower[i] < beta[i] and beta[i] < upper[i]
                if free == (free_pass == 0):
                    rises[i] = falls[i] = -1
                    chosen[n] = i
                    n += 1
    n = _take_highest(rises, falls, (size - n) // 2, chosen, n)
    n = _take_highest(falls, rises, size - n, chosen, n)
    return _take_highest(rises, falls, size - n, chosen, n)


@helper()
def _at_hand(source: Any, K: Any, i: Any) -> None:
    """Row i of K is there."""


@helper(ORDERED)
def _moved(F: Any, change: Any, difference: Any, base: Any) -> Any:
    """F after a step, less ``base``: that and what the step changes may be large, and are added up in one rounding first."""
    return F - (change * difference + base)


@helper(REASSOCIATED)
def _widest(Fi: Any, F: Any, low: Any) -> Any:
    """Fi less the smallest F over low, at least 0, in single precision."""
    widest = int32(0)
    for t in range(len(F)):
        widest = max(widest, _float32_bits(float32(max(Fi - (F[t] + low[t]), 0.0))))
    return float64(_bits_float32(widest))


def pair_steps_over(make: Any, real: str = "f8") -> Any:
    """Pair steps that call ``make(source, K, i)`` before they read row i of K, which is of precision ``real``."""
    number, key, least, huge = _ORDERS[real]
    zero, half, has_window = number(0.0), number(0.5), real == "f4"

    @helper(REASSOCIATED)
    def pair_steps(
        source: Any, K: Any, diagonal: Any, F: Any, beta: Any, lower: Any, upper: Any, up: Any, low: Any, eps: Any, budget: Any
    ) -> Any:
        """Second-order pair steps in a block until its m − M < eps (5/4 of it, in float32); returns how many, fewer than
        ``budget`` when it is.

        i has the largest F over up, in float32 to eps/4; j over low the largest (F_i − F_j)²/(K_ii + K_jj − 2 K_ij) (Fan, Chen
        & Lin, eq. 12), searched to 11 bits. K is the block's corner of a larger array; ``up``, ``low`` (n,) are work space: 0
        where the variable is in the set, ∓huge where it is not.
        """
        n = len(F)
        if n == 0:
            return 0
        for t in range(n):
            up[t] = zero if beta[t] < upper[t] else -huge
            low[t] = zero if beta[t] > lower[t] else huge
        top = least
        for t in range(n):
            top = max(top, key(F[t] + up[t], t, eps))
        steps = 0
        while steps < budget:
            i = int64(top) & _PLACE
            if up[i] < zero:
                break
            Fi = F[i]
            make(source, K, i)
            Ki = K[i]
            half_i, best = half * diagonal[i], int32(0)
            for t in range(n):
                rise = float32(max(Fi - (F[t] + low[t]), zero))
                half_curvature = max(float32(half * diagonal[t] + (half_i - Ki[t])), float32(0.5 * _TAU))
                gain = int32(_float32_bits(rise * rise / half_curvature) & ~_PLACE32)
                best = max(best, int32(gain | int32(t)))
            j = int64(best & _PLACE32)
            rise = Fi - (F[j] + low[j])
            if low[j] > zero or not (rise > zero and (rise >= eps or _widest(Fi, F, low) >= eps)):
                break
            curvature64 = max(float64(diagonal[i]) + float64(diagonal[j]) - 2.0 * float64(Ki[j]), _TAU)
            step = (float64(Fi) - float64(F[j])) / curvature64
            room_i = upper[i] - beta[i]
            room_j = beta[j] - lower[j]
            step = min(step, room_i, room_j)
            beta[i] = upper[i] if step == room_i else beta[i] + step
            beta[j] = lower[j] if step == room_j else beta[j] - step
            up[i] = zero if beta[i] < upper[i] else -huge
            low[i] = zero if beta[i] > lower[i] else huge
            up[j] = zero if beta[j] < upper[j] else -huge
            low[j] = zero if beta[j] > lower[j] else huge
            make(source, K, j)
            Kj = K[j]
            change = number(step)
            new = Fi - change * (Ki[i] - Kj[i])
            top = least
            if has_window and abs(new) > number(_FAR_EPS * eps):
                for t in range(n):
                    f = _moved(F[t], change, Ki[t] - Kj[t], new)
                    F[t] = f
                    top = max(top, key(f + up[t], t, eps))
            else:
                for t in range(n):
                    f = F[t] - change * (Ki[t] - Kj[t])
                    F[t] = f
                    top = max(top, key(f + up[t], t, eps))
            steps += 1
        return steps

    return pair_steps


@helper(ORDERED)
def _pull(F: Any, beta: Any, lower: Any, upper: Any) -> Any:
    """How far the projected gradient is from 0; 0 where F is nan."""
    rises, falls = (beta < upper) & (F > 0.0), (beta > lower) & (F < 0.0)
    return F if rises else -F if falls else 0.0


def coordinate_steps_over(make: Any, real: str = "f8") -> Any:
    """Steps of single coordinates that call ``make(source, K, i)`` before they read row i of K, of precision ``real``."""
    number, key, least, _ = _ORDERS[real]

    @helper()
    def coordinate_steps(
        source: Any, K: Any, diagonal: Any, F: Any, beta: Any, lower: Any, upper: Any, up: Any, low: Any, eps: Any, budget: Any
    ) -> Any:
        """Without an equality: single-coordinate steps until the block's largest projected gradient is at most eps (5/4 of
        it, in float32).

        The coordinate of the largest projected gradient, in float32 to eps/4, moves by F/K_ii, clipped; to a bound where K_ii
        is not positive. Returns as pair steps do; ``up`` and ``low`` are not used.
        """
        n = len(F)
        steps = 0
        while steps < budget:
            top = least
            for t in range(n):
                top = max(top, key(_pull(F[t], beta[t], lower[t], upper[t]), t, eps))
            i = int64(top) & _PLACE
            if n == 0 or not (_pull(F[i], beta[i], lower[i], upper[i]) > eps):
                break
            wanted = beta[i] + F[i] / max(float64(diagonal[i]), _TAU)
            new = min(max(wanted, lower[i]), upper[i])
            step = new - beta[i]
            if step == 0.0:
                break
            beta[i] = new
            make(source, K, i)
            Ki = K[i]
            change = number(step)
            for t in range(n):
                F[t] -= change * Ki[t]
            steps += 1
        return steps

    return coordinate_steps


def _at_hand_steps(over: Any, real: str) -> Compiled:
    """Steps ``over`` rows that are there."""
    steps = over(_at_hand, real)

    def block_steps(
        K: Any, diagonal: Any, F: Any, beta: Any, lower: Any, upper: Any, up: Any, low: Any, eps: Any, budget: Any
    ) -> Any:
        return steps(0, K, diagonal, F, beta, lower, upper, up, low, eps, budget)

    signature = "i8(R[:, :], R[:], R[:], f8[:], f8[:], f8[:], R[:], R[:], f8, i8)".replace("R", real)
    return compiled(signature, REASSOCIATED, f"{over.__name__.removesuffix('_over')}_{real}")(block_steps)


def _ordered_steps(K: Any, diagonal: Any, F: Any, beta: Any, lower: Any, upper: Any, order: Any, at: Any, budget: Any) -> Any:
    """Without an equality: a step of each of the coordinates order[at], order[at + 1] …, at most ``budget`` of them.

    A coordinate moves by F/K_ii, clipped; where K_ii is not positive to the bound that F points to. K may be the corner of a
    larger array. Returns how many of the coordinates moved.
    """
    n = len(F)
    moved = 0
    for place in range(at, min(at + budget, len(order))):
        i = order[place]
        if diagonal[i] > 0.0:
            new = min(max(beta[i] + F[i] / diagonal[i], lower[i]), upper[i])
        else:
            new = upper[i] if F[i] > 0.0 else lower[i] if F[i] < 0.0 else beta[i]
        step = new - beta[i]
        if step != 0.0:
            beta[i] = new
            moved += 1
            Ki = K[i]
            for t in range(n):
                F[t] -= step * float64(Ki[t])
    return moved


pair_steps = {real: _at_hand_steps(pair_steps_over, real) for real in _ORDERS}
coordinate_steps = {real: _at_hand_steps(coordinate_steps_over, real) for real in _ORDERS}
ordered_steps = both_precisions(_ordered_steps, f"i8(R[:, :], f8[:], {_V}i8[:], i8, i8)")
