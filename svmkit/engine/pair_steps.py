"""Compiled pair steps of sequential minimal optimisation, one for one those of LIBSVM's svm-train.

    min ½ αᵀQα + pᵀα   s.t.  sᵀα = const,  0 ≤ α ≤ upper,    until m(α) − M(α) < eps over all variables

Everything that decides a rounding or a tie is fixed: Q's entries are rounded to float32, its diagonal and the gradient G are
float64, ties go to the later position, and positions change only when shrinking moves variables that cannot move to the back.
Positions, not variables, index every vector below.

    I_up  = {k: s_k = +1, α_k < upper_k} ∪ {k: s_k = −1, α_k > 0},  I_low the same with the signs swapped
    m(α)  = max −s_k G_k over I_up,   M(α) = min −s_k G_k over I_low

Shrinking leaves out variables at a bound that would gain nothing with any partner, and the end rebuilds their gradients. Paper:
Fan, Chen & Lin, JMLR 6 (2005) for the choice of the pair; Chang & Lin, ACM TIST 2 (2011) 27 for the rest.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit._jit import compiled, helper
from svmkit.data import Floats, Ints
from svmkit.engine.reference import REFERENCE_TYPES, Reference
from svmkit.engine.row_cache import ROW_CACHE_TYPES, RowCache, exchange_columns, fetch

#: The curvature used in place of one that is not positive.
_TAU = 1e-12

#: Bits of ``Variables.room``: the variable is in I_up, in I_low; FREE is both.
UP, LOW = 1, 2
FREE = UP | LOW

#: Entries of ``counts``.
STEPS, ACTIVE, COUNTDOWN, UNSHRUNK, SHRINKING, PHASE, FIRST, SECOND, N_EVENTS, N_COUNTS = range(10)
#: Values of ``counts[PHASE]``.
FRESH, RUNNING, OPTIMAL, CAPPED = range(4)
#: Entries of ``numbers``.
EPS, GAP = range(2)
#: What one step, with the end of the run, may log at most, and the size of the log's buffer.
EVENTS_A_STEP, EVENT_ROOM = 8, 4096
#: What is logged: a look at what can be shrunk, all variables made active; and that never to shrink might be faster.
DOT, STAR, WARNING = ord("."), ord("*"), ord("w")


class Variables(NamedTuple):
    """The QP in the order of positions, all (m,): position k holds variable ``number[k]``, which belongs to ``row[k]``.

    ``bound_grad`` is Σ upper_j Q_kj over j at the upper bound. ``swaps`` (2m,) is scratch: the pairs a shrinking exchanges.
    """

    sign: Floats
    linear: Floats
    upper: Floats
    diag: Floats
    alpha: Floats
    grad: Floats
    bound_grad: Floats
    room: NDArray[np.uint8]
    number: Ints
    row: Ints
    swaps: Ints


@compiled(
    f"void({REFERENCE_TYPES}, f8[:], f8[:], f8[:], f8[:], f8[:], f8[:], f8[:], u1[:], i8[:], i8[:], i8[:],"
    f"{ROW_CACHE_TYPES}, i8[:], f8[:], u1[:], i8)"
)
def advance(  # type: ignore[no-untyped-def]
    kind, gamma, coef0, degree, data, indices, indptr, sqnorm, gram, serial, scatter,
    sign, linear, upper, diag, alpha, grad, bound_grad, room, number, row, swaps,
    block, filled, owner, slot, newer, older, values, evaluated,
    counts, numbers, events, budget,
):  # fmt: skip
    """Steps until ``budget`` of them are taken, the run ends or the log is full; cut anywhere, the steps are the same."""
    ref = Reference(kind, gamma, coef0, degree, data, indices, indptr, sqnorm, gram, serial, scatter)
    var = Variables(sign, linear, upper, diag, alpha, grad, bound_grad, room, number, row, swaps)
    cache = RowCache(block, filled, owner, slot, newer, older, values, evaluated)
    m = len(alpha)
    if counts[PHASE] == FRESH:
        _initialise(ref, var, cache)
        counts[PHASE] = RUNNING
    limit = max(10_000_000, 100 * m)
    target = min(counts[STEPS] + budget, limit)
    while counts[STEPS] < target and counts[N_EVENTS] <= len(events) - EVENTS_A_STEP:
        if not _next_pair(ref, var, cache, counts, numbers, events):
            counts[PHASE] = OPTIMAL
            return
        _step(ref, var, cache, counts)
        counts[STEPS] += 1
    if counts[STEPS] >= limit:  # in the call that gets there: whoever asks for no more than that many steps makes no other
        if counts[ACTIVE] < m:
            _rebuild_gradient(ref, var, cache, counts, events)
        counts[PHASE] = CAPPED


@helper()
def _row(ref: Reference, var: Variables, cache: RowCache, k: int, length: int) -> int:
    """Where in ``cache.block`` the row of Q of position k begins, up to column ``length``."""
    return fetch(ref, cache, var.sign, var.number, var.row, k, length)  # type: ignore[no-any-return]


@helper()
def _initialise(ref: Reference, var: Variables, cache: RowCache) -> None:
    """G = p + Qα of the starting α."""
    m = len(var.alpha)
    for k in range(m):
        if var.alpha[k] <= 0.0:
            continue
        at = _row(ref, var, cache, k, m)
        for t in range(m):
            var.grad[t] += var.alpha[k] * cache.block[at + t]
        if var.alpha[k] >= var.upper[k]:
            _add_bound_grad(var, cache, at, var.upper[k])


@helper()
def _set_room(var: Variables, k: int) -> None:
    rises = LOW if var.sign[k] < 0.0 else UP
    room = 0
    if var.alpha[k] < var.upper[k]:
        room |= rises
    if var.alpha[k] > 0.0:
        room |= FREE - rises
    var.room[k] = room


@helper()
def _add_bound_grad(var: Variables, cache: RowCache, at: int, factor: float) -> None:
    for t in range(len(var.bound_grad)):
        var.bound_grad[t] += factor * cache.block[at + t]


@helper()
def _next_pair(
    ref: Reference, var: Variables, cache: RowCache, counts: Ints, numbers: Floats, events: NDArray[np.uint8]
) -> bool:
    """Shrinks when it is due, then puts the pair to change into ``counts``; False where the tolerance is met by all."""
    m = len(var.alpha)
    counts[COUNTDOWN] -= 1
    if counts[COUNTDOWN] == 0:
        counts[COUNTDOWN] = min(m, 1000)
        if counts[SHRINKING]:
            _shrink(ref, var, cache, counts, numbers, events)
        _log(counts, events, DOT)
    if _choose(ref, var, cache, counts, numbers):
        return True
    _rebuild_gradient(ref, var, cache, counts, events)
    if _choose(ref, var, cache, counts, numbers):
        counts[COUNTDOWN] = 1  # shrink again at once
        return True
    return False


@helper()
def _log(counts: Ints, events: NDArray[np.uint8], event: int) -> None:
    events[counts[N_EVENTS]] = event
    counts[N_EVENTS] += 1


@helper()
def _choose(ref: Reference, var: Variables, cache: RowCache, counts: Ints, numbers: Floats) -> bool:
    """The paper's WSS 2: i is the steepest in I_up, j the one in I_low with which the objective falls most, to second order."""
    active = counts[ACTIVE]
    i, most = -1, -math.inf
    for k in range(active):
        if var.room[k] & UP and -var.sign[k] * var.grad[k] >= most:
            i, most = k, -var.sign[k] * var.grad[k]
    j, best, least = -1, math.inf, -math.inf
    if i >= 0:
        at = _row(ref, var, cache, i, active)
        for k in range(active):
            if not var.room[k] & LOW:
                continue
            slope = var.sign[k] * var.grad[k]
            least = max(least, slope)
            gain = most + slope
            if gain > 0.0:
                curvature = var.diag[i] + var.diag[k] - 2.0 * var.sign[i] * var.sign[k] * cache.block[at + k]
                change = -(gain * gain) / (curvature if curvature > 0.0 else _TAU)
                if change <= best:
                    j, best = k, change
    counts[FIRST], counts[SECOND] = i, j
    numbers[GAP] = most + least
    return j >= 0 and most + least >= numbers[EPS]


@helper()
def _step(ref: Reference, var: Variables, cache: RowCache, counts: Ints) -> None:
    """Minimises over the chosen pair and carries the change into the gradient."""
    m, active = len(var.alpha), counts[ACTIVE]
    i, j = counts[FIRST], counts[SECOND]
    at_i = _row(ref, var, cache, i, active)
    at_j = _row(ref, var, cache, j, active)
    old_i, old_j = var.alpha[i], var.alpha[j]
    q_ij = cache.block[at_i + j]
    if var.sign[i] != var.sign[j]:
        curvature = var.diag[i] + var.diag[j] + 2.0 * q_ij
        delta = (-var.grad[i] - var.grad[j]) / (curvature if curvature > 0.0 else _TAU)
        new_i, new_j = _clip_difference(old_i + delta, old_j + delta, old_i - old_j, var.upper[i], var.upper[j])
    else:
        curvature = var.diag[i] + var.diag[j] - 2.0 * q_ij
        delta = (var.grad[i] - var.grad[j]) / (curvature if curvature > 0.0 else _TAU)
        new_i, new_j = _clip_sum(old_i - delta, old_j + delta, old_i + old_j, var.upper[i], var.upper[j])
    var.alpha[i], var.alpha[j] = new_i, new_j
    change_i, change_j = new_i - old_i, new_j - old_j
    for t in range(active):
        var.grad[t] += cache.block[at_i + t] * change_i + cache.block[at_j + t] * change_j
    for k, old in ((i, old_i), (j, old_j)):
        _set_room(var, k)
        was_upper, is_upper = old >= var.upper[k], var.alpha[k] >= var.upper[k]
        if counts[SHRINKING] and was_upper != is_upper:
            at = _row(ref, var, cache, k, m)
            _add_bound_grad(var, cache, at, var.upper[k] if is_upper else -var.upper[k])


@helper()
def _clip_difference(a: float, b: float, difference: float, upper_a: float, upper_b: float) -> tuple[float, float]:
    """(a, b) moved along a − b = difference into the box; the value at a bound is the bound itself."""
    if difference > 0.0:
        if b < 0.0:
            a, b = difference, 0.0
    elif a < 0.0:
        a, b = 0.0, -difference
    if difference > upper_a - upper_b:
        if a > upper_a:
            a, b = upper_a, upper_a - difference
    elif b > upper_b:
        a, b = upper_b + difference, upper_b
    return a, b


@helper()
def _clip_sum(a: float, b: float, total: float, upper_a: float, upper_b: float) -> tuple[float, float]:
    """(a, b) moved along a + b = total into the box; the value at a bound is the bound itself."""
    if total > upper_a:
        if a > upper_a:
            a, b = upper_a, total - upper_a
    elif b < 0.0:
        a, b = total, 0.0
    if total > upper_b:
        if b > upper_b:
            a, b = total - upper_b, upper_b
    elif a < 0.0:
        a, b = 0.0, total
    return a, b


@helper()
def _shrink(ref: Reference, var: Variables, cache: RowCache, counts: Ints, numbers: Floats, events: NDArray[np.uint8]) -> None:
    """Moves variables at a bound, that would gain nothing with any partner, behind the active ones."""
    most, least = -math.inf, -math.inf
    for k in range(counts[ACTIVE]):
        slope = var.sign[k] * var.grad[k]
        if var.room[k] & UP:
            most = max(most, -slope)
        if var.room[k] & LOW:
            least = max(least, slope)
    if not counts[UNSHRUNK] and most + least <= numbers[EPS] * 10.0:
        counts[UNSHRUNK] = 1
        _rebuild_gradient(ref, var, cache, counts, events)
    n_swaps, k, active = 0, 0, counts[ACTIVE]
    while k < active:
        if _idle(var, k, most, least):
            active -= 1
            while active > k and _idle(var, active, most, least):
                active -= 1
            if active > k:
                _exchange(var, k, active)
                var.swaps[2 * n_swaps], var.swaps[2 * n_swaps + 1] = k, active
                n_swaps += 1
        k += 1
    counts[ACTIVE] = active
    exchange_columns(cache, var.swaps, n_swaps)


@helper()
def _idle(var: Variables, k: int, most: float, least: float) -> bool:
    slope = var.sign[k] * var.grad[k]
    return bool((var.room[k] == LOW and -slope > most) or (var.room[k] == UP and slope > least))


@helper()
def _exchange(var: Variables, a: int, b: int) -> None:
    var.sign[a], var.sign[b] = var.sign[b], var.sign[a]
    var.linear[a], var.linear[b] = var.linear[b], var.linear[a]
    var.upper[a], var.upper[b] = var.upper[b], var.upper[a]
    var.diag[a], var.diag[b] = var.diag[b], var.diag[a]
    var.alpha[a], var.alpha[b] = var.alpha[b], var.alpha[a]
    var.grad[a], var.grad[b] = var.grad[b], var.grad[a]
    var.bound_grad[a], var.bound_grad[b] = var.bound_grad[b], var.bound_grad[a]
    var.room[a], var.room[b] = var.room[b], var.room[a]
    var.number[a], var.number[b] = var.number[b], var.number[a]
    var.row[a], var.row[b] = var.row[b], var.row[a]


@helper()
def _rebuild_gradient(ref: Reference, var: Variables, cache: RowCache, counts: Ints, events: NDArray[np.uint8]) -> None:
    """Gradients of the shrunk variables from bound_grad and the free ones, by whichever rows are fewer; then all are active."""
    m, active = len(var.alpha), counts[ACTIVE]
    if active < m:
        for t in range(active, m):
            var.grad[t] = var.bound_grad[t] + var.linear[t]
        n_free = 0
        for k in range(active):
            n_free += var.room[k] == FREE
        if 2 * n_free < active:
            _log(counts, events, WARNING)
        if n_free * m > 2 * active * (m - active):
            for t in range(active, m):
                at = _row(ref, var, cache, t, active)
                for k in range(active):
                    if var.room[k] == FREE:
                        var.grad[t] += var.alpha[k] * cache.block[at + k]
        else:
            for k in range(active):
                if var.room[k] == FREE:
                    at = _row(ref, var, cache, k, m)
                    for t in range(active, m):
                        var.grad[t] += var.alpha[k] * cache.block[at + t]
    counts[ACTIVE] = m
    _log(counts, events, STAR)
