"""Compiled loops of the online SVM (solvers/lasvm.py): examples are learned one after another by steps over a set S.

Arrays are those of engine/slots.py. PROCESS lets a staged example join S and steps with the extreme partner, REPROCESS steps
between the extremes; gradients and extremes are brought up to date in one pass a step.
"""

from __future__ import annotations

from math import nan
from typing import Any

from numpy import float64

from svmkit._jit import ORDERED, REASSOCIATED, both_precisions, compiled, helper
from svmkit.engine.larger import larger, smaller
from svmkit.engine.slots import (
    ALPHA,
    AT,
    DELTA_MAX,
    DIAGONAL,
    EPS,
    EVALUATIONS,
    EXAMPLE_C,
    EXAMPLE_LABEL,
    EXAMPLE_ROW,
    FIRST,
    GRADIENT,
    HUGE,
    IDLE,
    KEEP_WITHIN,
    LABEL,
    LATER,
    LEAST,
    LEAVING,
    LOW,
    LOWER,
    MOST,
    MOST_MEMBERS,
    N_STAGED,
    N_ZEROS,
    NEAREST,
    PHASE,
    PLACE,
    RESPONSE,
    REST,
    ROOM,
    ROW,
    SECOND,
    SEEN,
    SINCE,
    SIZE,
    STAGED_PLACE,
    STEPS,
    TOP,
    TOP_LOW,
    TOP_UP,
    UP,
    UPPER,
    ZEROS,
    join,
    leave,
    ready,
    settle,
)

#: Values of ``counts[PHASE]``: what comes next for the example under way.
_NEXT, _PROCESS, _REPROCESS, _LEAVE = range(4)
#: Members of one class kept while there is none of the other.
_SEEDS = 5
#: The least curvature that a step reckons with, as in LIBSVM.
_TAU = 1e-12
#: An example's REPROCESSes end where so many, and so many a member of S, have not brought the extremes nearer by that factor:
#: rounding may keep them apart for ever.
_IDLE, _IDLE_A_MEMBER, _NEARER = 10_000, 100, 0.8
#: The share of a step, and of a bound, by which only rounding keeps α from that bound.
_NEAR_BY_STEP, _NEAR_BY_BOUND = 1e-12, 2.0**-50
#: Members with α = 0 may stay that are nearer to violating than this share of the violation in S, which is to be lowered yet.
_NEAR = 1 / 3
#: The types of ``reals, slots, kept, slot_of, counts, numbers``.
_SLOTS = "f8[:, :], i8[:, :], i8[:, :], i8[:], i8[:], f8[:]"
#: Slots between looks at the extremes: their gradients are still in the first-level cache.
_STRETCH = 256


@helper(REASSOCIATED)
def _move(Ki: Any, Kj: Any, step: Any, g: Any, up: Any, low: Any, top: Any, counts: Any, numbers: Any) -> None:
    """g −= step (K_i − K_j), and the extremes of the result."""
    most, least = -HUGE, HUGE
    most_at, least_at = 0, 0
    for begin in range(0, top, _STRETCH):
        some = g[begin : min(begin + _STRETCH, top)]  # indices that begin at 0 are what LLVM turns into vectors
        rise, fall, may_rise, may_fall = Ki[begin:], Kj[begin:], up[begin:], low[begin:]
        here_most, here_least = -HUGE, HUGE
        for t in range(len(some)):
            value = some[t] - step * (float64(rise[t]) - float64(fall[t]))
            some[t] = value
            here_most = larger(here_most, value + may_rise[t])
            here_least = smaller(here_least, value + may_fall[t])
        if here_most > most:
            most, most_at = here_most, begin
        if here_least < least:
            least, least_at = here_least, begin
    _name_extremes(g, up, low, top, most, most_at, least, least_at, counts, numbers)


@helper(REASSOCIATED)
def _look(g: Any, up: Any, low: Any, top: Any, counts: Any, numbers: Any) -> None:
    """The extremes as they are."""
    most, least = -HUGE, HUGE
    for t in range(top):
        most = larger(most, g[t] + up[t])
        least = smaller(least, g[t] + low[t])
    _name_extremes(g, up, low, top, most, 0, least, 0, counts, numbers)


@helper()
def _name_extremes(
    g: Any, up: Any, low: Any, top: Any, most: Any, most_at: Any, least: Any, least_at: Any, counts: Any, numbers: Any
) -> None:
    """Writes them down with their slots, the first of equals; −1 where a side is empty."""
    counts[TOP_UP], counts[TOP_LOW] = -1, -1
    numbers[MOST], numbers[LEAST] = -HUGE, HUGE
    if most > -HUGE:
        t = most_at
        while t < top - 1 and not (g[t] + up[t] >= most):
            t += 1
        counts[TOP_UP], numbers[MOST] = t, most
    if least < HUGE:
        t = least_at
        while t < top - 1 and not (g[t] + low[t] <= least):
            t += 1
        counts[TOP_LOW], numbers[LEAST] = t, least


@helper()
def _name_extreme(s: Any, reals: Any, counts: Any, numbers: Any) -> None:
    """Writes slot s down where it goes beyond the extremes known so far."""
    g = reals[GRADIENT, s]
    if reals[UP, s] == 0.0 and (counts[TOP_UP] < 0 or g > numbers[MOST]):
        counts[TOP_UP], numbers[MOST] = s, g
    if reals[LOW, s] == 0.0 and (counts[TOP_LOW] < 0 or g < numbers[LEAST]):
        counts[TOP_LOW], numbers[LEAST] = s, g


@helper(REASSOCIATED)
def _dot(row: Any, alpha: Any, top: Any) -> Any:
    total = 0.0
    for t in range(top):
        total += float64(row[t]) * alpha[t]
    return total


@helper()
def _threshold(counts: Any, numbers: Any) -> Any:
    """b of f = Σ α K + b: the middle of the extremes, the one there is, or 0."""
    if counts[TOP_UP] >= 0 and counts[TOP_LOW] >= 0:
        return 0.5 * (numbers[MOST] + numbers[LEAST])
    if counts[TOP_UP] >= 0:
        return numbers[MOST]
    return numbers[LEAST] if counts[TOP_LOW] >= 0 else 0.0


@helper()
def _at_bound(a: Any, lower: Any, upper: Any, step: Any) -> Any:
    """α after a step, or the bound that only rounding keeps it from; a share of the box would be too much with a huge C."""
    near = _NEAR_BY_STEP * step
    if a > upper - max(near, _NEAR_BY_BOUND * upper):
        return upper
    return lower if a < lower + max(near, -_NEAR_BY_BOUND * lower) else a


@helper()
def _exchange(step: Any, K: Any, stage: Any, reals: Any, slots: Any, counts: Any, numbers: Any) -> None:
    """α of FIRST rises and that of SECOND falls by ``step``; the extremes are then those of the other slots."""
    i, j = counts[FIRST], counts[SECOND]
    reals[ALPHA, i] = _at_bound(reals[ALPHA, i] + step, reals[LOWER, i], reals[UPPER, i], step)
    reals[ALPHA, j] = _at_bound(reals[ALPHA, j] - step, reals[LOWER, j], reals[UPPER, j], step)
    for s in (i, j):
        reals[UP, s], reals[LOW, s] = -HUGE, HUGE
    Ki = K[slots[PLACE, i]] if slots[PLACE, i] >= 0 else stage[STAGED_PLACE - slots[PLACE, i]]
    Kj = K[slots[PLACE, j]] if slots[PLACE, j] >= 0 else stage[STAGED_PLACE - slots[PLACE, j]]
    _move(Ki, Kj, step, reals[GRADIENT], reals[UP], reals[LOW], counts[TOP], counts, numbers)


@helper()
def _step(K: Any, stage: Any, staged: Any, reals: Any, slots: Any, kept: Any, counts: Any, numbers: Any) -> Any:
    """The step of the pair (FIRST, SECOND), if it violates by more than eps; False where a row is missing."""
    i, j = counts[FIRST], counts[SECOND]
    g = reals[GRADIENT]
    if i < 0 or j < 0 or not (g[i] - g[j] > numbers[EPS]):
        return True
    if not ready(K, stage, staged, slots, kept, counts):
        return False
    value = K[slots[PLACE, i], j] if slots[PLACE, i] >= 0 else stage[STAGED_PLACE - slots[PLACE, i], j]
    curvature = reals[DIAGONAL, i] + reals[DIAGONAL, j] - 2.0 * float64(value)
    room_i, room_j = reals[UPPER, i] - reals[ALPHA, i], reals[ALPHA, j] - reals[LOWER, j]
    step = min((g[i] - g[j]) / max(curvature, _TAU), room_i, room_j)
    _exchange(step, K, stage, reals, slots, counts, numbers)
    if curvature > _TAU and step < room_i and step < room_j:
        g[j] = g[i]  # which of the two is the extreme must not be for rounding to say
    for s in (i, j):
        settle(s, reals, slots, counts)
        _name_extreme(s, reals, counts, numbers)
    return True


@helper()
def _retire(K: Any, stage: Any, staged: Any, reals: Any, slots: Any, kept: Any, slot_of: Any, counts: Any, numbers: Any) -> Any:
    """The oldest member of the larger class leaves S. Its α goes to the extremes that may take it, so Σ α stays.

    False where a row is missing.
    """
    if counts[LEAVING] < 0:
        more, oldest_up, oldest_down = 0, -1, -1
        for s in range(counts[TOP]):
            since = slots[SINCE, s]
            if since < LATER and reals[LABEL, s] > 0.0:
                more += 1
                oldest_up = s if oldest_up < 0 or since < slots[SINCE, oldest_up] else oldest_up
            elif since < LATER:
                more -= 1
                oldest_down = s if oldest_down < 0 or since < slots[SINCE, oldest_down] else oldest_down
        r = oldest_up if more > 0 else oldest_down
        counts[LEAVING] = r
        reals[UP, r], reals[LOW, r] = -HUGE, HUGE
        up, most, low, least = counts[TOP_UP], numbers[MOST], counts[TOP_LOW], numbers[LEAST]
        _look(reals[GRADIENT], reals[UP], reals[LOW], counts[TOP], counts, numbers)
        if up != r:  # it stays, though another may equal it
            counts[TOP_UP], numbers[MOST] = up, most
        if low != r:
            counts[TOP_LOW], numbers[LEAST] = low, least
    r = counts[LEAVING]
    while reals[ALPHA, r] != 0.0:
        rises = reals[ALPHA, r] < 0.0
        other = counts[TOP_LOW] if rises else counts[TOP_UP]
        if other < 0:
            reals[ALPHA, r] = 0.0  # what rounding has left of it
            break
        counts[FIRST], counts[SECOND] = (r, other) if rises else (other, r)
        if not ready(K, stage, staged, slots, kept, counts):
            return False
        room = reals[ALPHA, other] - reals[LOWER, other] if rises else reals[UPPER, other] - reals[ALPHA, other]
        _exchange(min(abs(reals[ALPHA, r]), room), K, stage, reals, slots, counts, numbers)
        settle(other, reals, slots, counts)
        _name_extreme(other, reals, counts, numbers)
    settle(r, reals, slots, counts)
    leave(r, reals, slots, kept, slot_of, counts)
    counts[LEAVING] = -1
    return True


@helper()
def _clean(reals: Any, slots: Any, kept: Any, slot_of: Any, counts: Any, numbers: Any) -> None:
    """Members with α = 0 that do not violate leave S, as long as it has members that α can move between; those near violating
    stay, where S has room.

    Where MOST ≤ LEAST, as with every α at a bound, any b between them is as good for S; the two that they are of stay, for
    without them b would be what the example that came last made of it.
    """
    if counts[TOP_UP] < 0 or counts[TOP_LOW] < 0:
        return
    stale, between = False, numbers[MOST] <= numbers[LEAST]
    within = 0.0
    if counts[SIZE] <= counts[ROOM] and not between:
        share = counts[SIZE] / counts[SEEN]  # about how likely one that has come is to be a support vector in the end
        within = min(numbers[KEEP_WITHIN] * share, _NEAR * (numbers[MOST] - numbers[LEAST]))
    above, below = numbers[MOST] + within, numbers[LEAST] - within
    for at in range(counts[N_ZEROS] - 1, -1, -1):
        s = slots[ZEROS, at]
        g, y = reals[GRADIENT, s], reals[LABEL, s]
        extreme = s == counts[TOP_UP] or s == counts[TOP_LOW]
        if ((y < 0.0 and g >= above) or (y > 0.0 and g <= below)) and not (between and extreme):
            stale = stale or extreme
            leave(s, reals, slots, kept, slot_of, counts)
    if stale:
        _look(reals[GRADIENT], reals[UP], reals[LOW], counts[TOP], counts, numbers)


@helper()
def _enter(
    p: Any, stage: Any, Q: Any, first: Any, examples: Any, staged: Any, reals: Any, slots: Any, slot_of: Any, counts: Any,
    numbers: Any,
) -> None:  # fmt: skip
    """The first half of PROCESS: staged example p joins S, and FIRST, SECOND are the pair it makes (−1: none)."""
    counts[FIRST], counts[SECOND], counts[REST] = -1, -1, 0
    examples[RESPONSE, p] = nan
    if slot_of[staged[EXAMPLE_ROW, p]] >= 0:
        return
    response = _dot(stage[p], reals[ALPHA], counts[TOP])
    counts[SEEN] += 1
    counts[REST] = counts[N_ZEROS]
    counts[EVALUATIONS] += counts[SIZE] - counts[REST]
    if counts[SIZE] > 0:
        examples[RESPONSE, p] = response + _threshold(counts, numbers)
    y = examples[EXAMPLE_LABEL, p]
    partner = counts[TOP_LOW] if y > 0.0 else counts[TOP_UP]
    if examples[EXAMPLE_C, p] <= 0.0 or (partner < 0 and counts[SIZE] >= _SEEDS):
        return
    g = y - response
    s = join(p, g, stage, Q, first, examples, staged, reals, slots, slot_of, counts)
    _name_extreme(s, reals, counts, numbers)
    counts[FIRST], counts[SECOND] = (s, partner) if y > 0.0 else (partner, s)


@helper()
def _use_rest(used: Any, counts: Any) -> None:
    """The REST counts where it is ``used``."""
    if used:
        counts[EVALUATIONS] += counts[REST]
        counts[REST] = 0


def _learn(
    K: Any, stage: Any, Q: Any, first: Any, examples: Any, staged: Any, reals: Any, slots: Any, kept: Any, slot_of: Any,
    counts: Any, numbers: Any, last: Any, budget: Any,
) -> Any:  # fmt: skip
    """Learns staged examples up to number ``last`` − 1 in at most ``budget`` steps: PROCESS, then REPROCESS once, and again
    while the extremes lie further apart than DELTA_MAX and come nearer; then members leave that are too many. Each REPROCESS
    is a step.

    Returns 1 where it needs a row of K that is missing, that of FIRST or SECOND; called again with it, it goes on. ``Q`` are
    the kernel values among the staged examples from ``first`` on.
    """
    while (budget > 0 or counts[PHASE] == _LEAVE) and counts[AT] < last:
        if counts[PHASE] == _LEAVE:
            if counts[SIZE] <= counts[MOST_MEMBERS]:
                counts[PHASE] = _NEXT
                counts[AT] += 1
            elif not _retire(K, stage, staged, reals, slots, kept, slot_of, counts, numbers):
                return 1
            continue
        if counts[PHASE] == _NEXT:
            _enter(counts[AT], stage, Q, first, examples, staged, reals, slots, slot_of, counts, numbers)
            counts[PHASE], counts[IDLE], numbers[NEAREST] = _PROCESS, 0, HUGE
        if counts[PHASE] == _PROCESS:
            if not _step(K, stage, staged, reals, slots, kept, counts, numbers):
                return 1
            s = slot_of[staged[EXAMPLE_ROW, counts[AT]]]
            _use_rest(s >= 0 and reals[ALPHA, s] != 0.0, counts)
            counts[PHASE] = _REPROCESS
            counts[FIRST], counts[SECOND] = counts[TOP_UP], counts[TOP_LOW]
        violates = numbers[MOST] - numbers[LEAST] > numbers[EPS]
        if not _step(K, stage, staged, reals, slots, kept, counts, numbers):
            return 1
        _clean(reals, slots, kept, slot_of, counts, numbers)
        _use_rest(slot_of[staged[EXAMPLE_ROW, counts[AT]]] >= 0, counts)
        counts[STEPS] += 1
        budget -= 1
        counts[FIRST], counts[SECOND] = counts[TOP_UP], counts[TOP_LOW]
        apart = numbers[MOST] - numbers[LEAST]
        counts[IDLE] += 1
        if apart < _NEARER * numbers[NEAREST]:
            counts[IDLE], numbers[NEAREST] = 0, apart
        if not violates or apart <= numbers[DELTA_MAX] or counts[IDLE] > _IDLE + _IDLE_A_MEMBER * counts[SIZE]:
            counts[PHASE] = _LEAVE
    return 0


def _adopt(
    stage: Any, Q: Any, first: Any, examples: Any, staged: Any, reals: Any, slots: Any, slot_of: Any, counts: Any, alpha: Any,
    g: Any,
) -> None:  # fmt: skip
    """Staged examples join S with the coefficients and gradients given, without steps."""
    while counts[AT] < counts[N_STAGED]:
        p = counts[AT]
        counts[SEEN] += 1
        counts[EVALUATIONS] += counts[SIZE]
        s = join(p, g[p - first], stage, Q, first, examples, staged, reals, slots, slot_of, counts)
        reals[ALPHA, s] = alpha[p - first]
        settle(s, reals, slots, counts)
        counts[AT] += 1


@compiled(f"void({_SLOTS})", ORDERED)
def refresh(reals: Any, slots: Any, kept: Any, slot_of: Any, counts: Any, numbers: Any) -> None:
    """Everything that follows from α and g, which others have changed; then members that cannot violate leave."""
    for s in range(counts[TOP]):
        if slot_of[slots[ROW, s]] == s:
            settle(s, reals, slots, counts)
    _look(reals[GRADIENT], reals[UP], reals[LOW], counts[TOP], counts, numbers)
    _clean(reals, slots, kept, slot_of, counts, numbers)


def _respond(values: Any, alpha: Any, top: Any, out: Any) -> None:
    """out[p] += Σ_s values[s, p] α_s."""
    for s in range(top):
        a = alpha[s]
        if a != 0.0:
            for p in range(len(out)):
                out[p] += a * float64(values[s, p])


learn = both_precisions(_learn, f"i8(R[:, :], R[:, :], R[:, :], i8, f8[:, :], i8[:, :], {_SLOTS}, i8, i8)")
adopt = both_precisions(
    _adopt, "void(R[:, :], R[:, :], i8, f8[:, :], i8[:, :], f8[:, :], i8[:, :], i8[:], i8[:], f8[:], f8[:])"
)
respond = both_precisions(_respond, "void(R[:, :], f8[:], i8, f8[:])")
