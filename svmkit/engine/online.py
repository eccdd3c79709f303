"""Compiled loops of the online SVM (solvers/lasvm.py): examples are learned one after another by steps over a set S.

Each member of S has a slot for as long as it stays: signed coefficient α in [lower, upper], gradient g = y − Σ_S α_s K_is, and
``up``, ``low`` that are 0 where α may rise, fall, and ∓huge where not, so that extremes need no branch. Free slots have both
huge and α = 0. A few examples, learned next, are staged: ``stage[p, s]`` is K(example p, occupant of slot s), kept true as
occupants come; the row of one that has joined S is its staged one, and moves to the store ``K`` when the stage is emptied.

``K[r, s]`` are rows of the slots ``kept[OWNER, r]``. Entries of examples that have joined since the stage was filled are
missing until the row is used: ``kept[DONE, r]`` is how many of them it has. No result depends on where a row lies or what is
staged.
"""

from __future__ import annotations

from math import nan
from typing import Any

from numpy import float64

from svmkit._jit import ORDERED, REASSOCIATED, compiled, helper
from svmkit.engine.columns import both_precisions

#: Rows of ``reals`` (8, slots), of ``slots`` (5, slots): FREE and ZEROS are lists, of free slots and of members with α = 0.
ALPHA, GRADIENT, LOWER, UPPER, UP, LOW, LABEL, DIAGONAL = range(8)
ROW, PLACE, ZERO_AT, FREE, ZEROS = range(5)
#: Rows of ``examples`` (4, staged): label, C, K(x, x), and out: f just before it was learned. Of ``staged`` (4, staged): the
#: row, the slot it took or −1, then two lists: of those that joined in order, and scratch.
EXAMPLE_LABEL, EXAMPLE_C, EXAMPLE_DIAGONAL, RESPONSE = range(4)
EXAMPLE_ROW, SLOT, JOINED, STAYED = range(4)
#: Rows of ``kept`` (4, rows of K): slot or −1, joined examples whose entry it has, time of last use, list of free rows.
OWNER, DONE, TICK, FREE_ROW = range(4)
#: Places in ``counts`` and in ``numbers``. FIRST, SECOND are the pair of the step under way, TOP_UP, TOP_LOW the slots of the
#: extremes.
(TOP, N_FREE, N_ZEROS, SIZE, N_JOINED, N_STAGED, AT, PHASE, FIRST, SECOND, TOP_UP, TOP_LOW, TIME, N_FREE_ROWS, STEPS,
 EVALUATIONS) = range(16)  # fmt: skip
N_COUNTS = 16
MOST, LEAST, EPS, DELTA_MAX = range(4)
HUGE = 1e300
#: PLACE of a slot without a row; p staged: STAGED − p.
NOWHERE, _STAGED = -1, -2
_NEXT, _PROCESS, _REPROCESS = range(3)
#: Members of one class kept while there is none of the other.
_SEEDS = 5
_TAU = 1e-12
#: The share of its box within which α is at a bound.
_NEAR = 1e-12
#: Slots between looks at the extremes: their gradients are still in the first-level cache.
_STRETCH = 256


@helper(REASSOCIATED)
def _move(Ki: Any, Kj: Any, step: Any, g: Any, up: Any, low: Any, top: Any, counts: Any, numbers: Any) -> None:
    """g −= step (K_i − K_j), and the extremes of the result."""
    most, least = -HUGE, HUGE
    most_at, least_at = 0, 0
    for begin in range(0, top, _STRETCH):
        end = min(begin + _STRETCH, top)
        here_most, here_least = -HUGE, HUGE
        for t in range(begin, end):
            value = g[t] - step * (float64(Ki[t]) - float64(Kj[t]))
            g[t] = value
            high, deep = value + up[t], value + low[t]
            here_most = high if high > here_most else here_most
            here_least = deep if deep < here_least else here_least
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
        high, deep = g[t] + up[t], g[t] + low[t]
        most = high if high > most else most
        least = deep if deep < least else least
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
def _settle(s: Any, reals: Any, slots: Any, counts: Any) -> None:
    """Brings ``up``, ``low`` and the list of zeros in line with α of slot s."""
    a = reals[ALPHA, s]
    reals[UP, s] = 0.0 if a < reals[UPPER, s] else -HUGE
    reals[LOW, s] = 0.0 if a > reals[LOWER, s] else HUGE
    at = slots[ZERO_AT, s]
    if a == 0.0 and at < 0:
        slots[ZEROS, counts[N_ZEROS]] = s
        slots[ZERO_AT, s] = counts[N_ZEROS]
        counts[N_ZEROS] += 1
    elif a != 0.0 and at >= 0:
        counts[N_ZEROS] -= 1
        last = slots[ZEROS, counts[N_ZEROS]]
        slots[ZEROS, at] = last
        slots[ZERO_AT, last] = at
        slots[ZERO_AT, s] = -1


@helper()
def _join(
    p: Any,
    g: Any,
    stage: Any,
    Q: Any,
    first: Any,
    examples: Any,
    staged: Any,
    reals: Any,
    slots: Any,
    slot_of: Any,
    counts: Any,
) -> Any:
    """Gives staged example p a slot, with α = 0; returns it."""
    if counts[N_FREE] > 0:
        counts[N_FREE] -= 1
        s = slots[FREE, counts[N_FREE]]
    else:
        s = counts[TOP]
        counts[TOP] += 1
    y, C = examples[EXAMPLE_LABEL, p], examples[EXAMPLE_C, p]
    reals[ALPHA, s], reals[GRADIENT, s], reals[LABEL, s] = 0.0, g, y
    reals[LOWER, s], reals[UPPER, s] = min(0.0, C * y), max(0.0, C * y)
    reals[DIAGONAL, s] = examples[EXAMPLE_DIAGONAL, p]
    slots[ROW, s], slots[PLACE, s], slots[ZERO_AT, s] = staged[EXAMPLE_ROW, p], _STAGED - p, -1
    slot_of[slots[ROW, s]] = s
    _settle(s, reals, slots, counts)
    for other in range(counts[N_STAGED]):
        if other >= p:
            stage[other, s] = Q[other - first, p - first]
        elif staged[SLOT, other] >= 0:
            stage[other, s] = stage[p, staged[SLOT, other]]  # not true of one that has left, and not used
    staged[SLOT, p] = s
    staged[JOINED, counts[N_JOINED]] = p
    counts[N_JOINED] += 1
    counts[SIZE] += 1
    return s


@helper()
def _leave(s: Any, reals: Any, slots: Any, kept: Any, slot_of: Any, counts: Any) -> None:
    """Frees slot s, whose α is 0."""
    counts[N_ZEROS] -= 1
    last, at = slots[ZEROS, counts[N_ZEROS]], slots[ZERO_AT, s]
    slots[ZEROS, at] = last
    slots[ZERO_AT, last] = at
    slots[ZERO_AT, s] = -1
    reals[UP, s], reals[LOW, s] = -HUGE, HUGE
    slot_of[slots[ROW, s]] = -1
    place = slots[PLACE, s]
    if place >= 0:
        kept[OWNER, place] = -1
        kept[FREE_ROW, counts[N_FREE_ROWS]] = place
        counts[N_FREE_ROWS] += 1
    slots[PLACE, s] = NOWHERE
    slots[FREE, counts[N_FREE]] = s
    counts[N_FREE] += 1
    counts[SIZE] -= 1


@helper()
def _complete(s: Any, K: Any, stage: Any, staged: Any, slots: Any, kept: Any, counts: Any) -> None:
    """Fills in what the row of slot s misses, if it is in the store, and notes its use."""
    place = slots[PLACE, s]
    if place >= 0:
        for number in range(kept[DONE, place], counts[N_JOINED]):
            p = staged[JOINED, number]
            K[place, staged[SLOT, p]] = stage[p, s]
        kept[DONE, place] = counts[N_JOINED]
        kept[TICK, place] = counts[TIME]
        counts[TIME] += 1


@helper()
def _at_bound(a: Any, lower: Any, upper: Any) -> Any:
    """α, or the bound that only rounding keeps it from."""
    near = _NEAR * (upper - lower)
    return upper if a > upper - near else lower if a < lower + near else a


@helper()
def _step(K: Any, stage: Any, staged: Any, reals: Any, slots: Any, kept: Any, counts: Any, numbers: Any) -> Any:
    """The step of the pair (FIRST, SECOND), if it violates by more than eps; False where a row is missing."""
    i, j = counts[FIRST], counts[SECOND]
    g = reals[GRADIENT]
    if i < 0 or j < 0 or not (g[i] - g[j] > numbers[EPS]):
        return True
    if slots[PLACE, i] == NOWHERE or slots[PLACE, j] == NOWHERE:
        return False
    _complete(i, K, stage, staged, slots, kept, counts)
    _complete(j, K, stage, staged, slots, kept, counts)
    Ki = K[slots[PLACE, i]] if slots[PLACE, i] >= 0 else stage[_STAGED - slots[PLACE, i]]
    Kj = K[slots[PLACE, j]] if slots[PLACE, j] >= 0 else stage[_STAGED - slots[PLACE, j]]
    curvature = reals[DIAGONAL, i] + reals[DIAGONAL, j] - 2.0 * float64(Ki[j])
    room_i, room_j = reals[UPPER, i] - reals[ALPHA, i], reals[ALPHA, j] - reals[LOWER, j]
    step = min((g[i] - g[j]) / max(curvature, _TAU), room_i, room_j)
    reals[ALPHA, i] = _at_bound(reals[ALPHA, i] + step, reals[LOWER, i], reals[UPPER, i])
    reals[ALPHA, j] = _at_bound(reals[ALPHA, j] - step, reals[LOWER, j], reals[UPPER, j])
    for s in (i, j):
        reals[UP, s], reals[LOW, s] = -HUGE, HUGE
    _move(Ki, Kj, step, g, reals[UP], reals[LOW], counts[TOP], counts, numbers)
    if curvature > _TAU and step < room_i and step < room_j:
        g[j] = g[i]  # which of the two is the extreme must not be for rounding to say
    for s in (i, j):
        _settle(s, reals, slots, counts)
        _name_extreme(s, reals, counts, numbers)
    return True


@helper()
def _clean(reals: Any, slots: Any, kept: Any, slot_of: Any, counts: Any, numbers: Any) -> None:
    """Members with α = 0 that cannot violate leave S, as long as it has members that α can move between."""
    if counts[TOP_UP] < 0 or counts[TOP_LOW] < 0:
        return
    stale = False
    for at in range(counts[N_ZEROS] - 1, -1, -1):
        s = slots[ZEROS, at]
        g, y = reals[GRADIENT, s], reals[LABEL, s]
        if (y < 0.0 and g >= numbers[MOST]) or (y > 0.0 and g <= numbers[LEAST]):
            stale = stale or s == counts[TOP_UP] or s == counts[TOP_LOW]
            _leave(s, reals, slots, kept, slot_of, counts)
    if stale:
        _look(reals[GRADIENT], reals[UP], reals[LOW], counts[TOP], counts, numbers)


@helper()
def _enter(
    p: Any, stage: Any, Q: Any, first: Any, examples: Any, staged: Any, reals: Any, slots: Any, slot_of: Any, counts: Any,
    numbers: Any,
) -> None:  # fmt: skip
    """The first half of PROCESS: staged example p joins S, and FIRST, SECOND are the pair it makes (−1: none)."""
    counts[FIRST], counts[SECOND] = -1, -1
    examples[RESPONSE, p] = nan
    if examples[EXAMPLE_C, p] <= 0.0 or slot_of[staged[EXAMPLE_ROW, p]] >= 0:
        return
    response = _dot(stage[p], reals[ALPHA], counts[TOP])
    counts[EVALUATIONS] += counts[SIZE]
    if counts[SIZE] > 0:
        examples[RESPONSE, p] = response + _threshold(counts, numbers)
    y = examples[EXAMPLE_LABEL, p]
    partner = counts[TOP_LOW] if y > 0.0 else counts[TOP_UP]
    if partner < 0 and counts[SIZE] >= _SEEDS:
        return
    g = y - response
    s = _join(p, g, stage, Q, first, examples, staged, reals, slots, slot_of, counts)
    _name_extreme(s, reals, counts, numbers)
    counts[FIRST], counts[SECOND] = (s, partner) if y > 0.0 else (partner, s)


def _learn(
    K: Any, stage: Any, Q: Any, first: Any, examples: Any, staged: Any, reals: Any, slots: Any, kept: Any, slot_of: Any,
    counts: Any, numbers: Any, last: Any, budget: Any,
) -> Any:  # fmt: skip
    """Learns staged examples up to number ``last`` − 1 in at most ``budget`` steps: PROCESS, then REPROCESS once, and again
    while the extremes lie further apart than DELTA_MAX. Each REPROCESS is a step.

    Returns 1 where it needs a row of K that is missing, that of FIRST or SECOND; called again with it, it goes on. ``Q`` are
    the kernel values among the staged examples from ``first`` on.
    """
    while budget > 0 and counts[AT] < last:
        if counts[PHASE] == _NEXT:
            _enter(counts[AT], stage, Q, first, examples, staged, reals, slots, slot_of, counts, numbers)
            counts[PHASE] = _PROCESS
        if counts[PHASE] == _PROCESS:
            if not _step(K, stage, staged, reals, slots, kept, counts, numbers):
                return 1
            counts[PHASE] = _REPROCESS
            counts[FIRST], counts[SECOND] = counts[TOP_UP], counts[TOP_LOW]
        violates = numbers[MOST] - numbers[LEAST] > numbers[EPS]
        if not _step(K, stage, staged, reals, slots, kept, counts, numbers):
            return 1
        _clean(reals, slots, kept, slot_of, counts, numbers)
        counts[STEPS] += 1
        budget -= 1
        counts[FIRST], counts[SECOND] = counts[TOP_UP], counts[TOP_LOW]
        if not violates or numbers[MOST] - numbers[LEAST] <= numbers[DELTA_MAX]:
            counts[PHASE] = _NEXT
            counts[AT] += 1
    return 0


def _adopt(
    stage: Any, Q: Any, first: Any, examples: Any, staged: Any, reals: Any, slots: Any, slot_of: Any, counts: Any, alpha: Any,
    g: Any,
) -> None:  # fmt: skip
    """Staged examples join S with the coefficients and gradients given, without steps."""
    while counts[AT] < counts[N_STAGED]:
        p = counts[AT]
        counts[EVALUATIONS] += counts[SIZE]
        s = _join(p, g[p - first], stage, Q, first, examples, staged, reals, slots, slot_of, counts)
        reals[ALPHA, s] = alpha[p - first]
        _settle(s, reals, slots, counts)
        counts[AT] += 1


def _refresh(reals: Any, slots: Any, kept: Any, slot_of: Any, counts: Any, numbers: Any) -> None:
    """Everything that follows from α and g, which others have changed; then members that cannot violate leave."""
    for s in range(counts[TOP]):
        if slot_of[slots[ROW, s]] == s:
            _settle(s, reals, slots, counts)
    _look(reals[GRADIENT], reals[UP], reals[LOW], counts[TOP], counts, numbers)
    _clean(reals, slots, kept, slot_of, counts, numbers)


@helper()
def _row_for(s: Any, slots: Any, kept: Any, counts: Any) -> Any:
    """A row of the store for slot s: a free one, else the one not used for longest."""
    if counts[N_FREE_ROWS] > 0:
        counts[N_FREE_ROWS] -= 1
        place = kept[FREE_ROW, counts[N_FREE_ROWS]]
    else:
        place = 0
        for r in range(kept.shape[1]):
            if kept[TICK, r] < kept[TICK, place]:
                place = r
        slots[PLACE, kept[OWNER, place]] = NOWHERE
    kept[OWNER, place], kept[TICK, place], kept[DONE, place] = s, counts[TIME], counts[N_JOINED]
    counts[TIME] += 1
    slots[PLACE, s] = place
    return place


def _put_row(K: Any, values: Any, s: Any, slots: Any, kept: Any, counts: Any) -> None:
    """Stores the row of slot s, complete."""
    place = _row_for(s, slots, kept, counts)
    for t in range(counts[TOP]):
        K[place, t] = values[t]


def _close_stage(staged: Any, slots: Any, kept: Any, counts: Any) -> Any:
    """Gives members whose rows are staged places in the store; returns how many they are, listed in STAYED.

    ``spread`` then does the rest; until then DONE of such a place is −1 − p, p staged, and of others 0.
    """
    n = 0
    for place in range(kept.shape[1]):
        kept[DONE, place] = 0
    for number in range(counts[N_JOINED]):
        p = staged[JOINED, number]
        s = staged[SLOT, p]
        if slots[PLACE, s] == _STAGED - p:
            staged[STAYED, n] = p
            n += 1
            kept[DONE, _row_for(s, slots, kept, counts)] = -1 - p
    counts[N_JOINED], counts[N_STAGED], counts[AT] = 0, 0, 0
    return n


def _spread(K: Any, stage: Any, staged: Any, kept: Any, top: Any, n: Any, first: Any, last: Any) -> None:
    """Rows first … last − 1 of the store: staged ones move in, the others get their entries for the ``n`` that have stayed."""
    for place in range(first, last):
        s = kept[OWNER, place]
        if s >= 0 and kept[DONE, place] < 0:
            p = -1 - kept[DONE, place]
            for t in range(top):
                K[place, t] = stage[p, t]
        elif s >= 0:
            for number in range(n):
                p = staged[STAYED, number]
                K[place, staged[SLOT, p]] = stage[p, s]
        kept[DONE, place] = 0


def _respond(values: Any, alpha: Any, top: Any, out: Any) -> None:
    """out[p] += Σ_s values[s, p] α_s."""
    for s in range(top):
        a = alpha[s]
        if a != 0.0:
            for p in range(len(out)):
                out[p] += a * float64(values[s, p])


_SLOTS = "f8[:, :], i8[:, :], i8[:, :], i8[:], i8[:], f8[:]"
learn = both_precisions(_learn, f"i8(R[:, :], R[:, :], R[:, :], i8, f8[:, :], i8[:, :], {_SLOTS}, i8, i8)")
adopt = both_precisions(
    _adopt, "void(R[:, :], R[:, :], i8, f8[:, :], i8[:, :], f8[:, :], i8[:, :], i8[:], i8[:], f8[:], f8[:])"
)
put_row = both_precisions(_put_row, "void(R[:, :], R[:], i8, i8[:, :], i8[:, :], i8[:])")
close_stage = compiled("i8(i8[:, :], i8[:, :], i8[:, :], i8[:])")(_close_stage)
spread = both_precisions(_spread, "void(R[:, :], R[:, :], i8[:, :], i8[:, :], i8, i8, i8, i8)")
respond = both_precisions(_respond, "void(R[:, :], f8[:], i8, f8[:])")
refresh = compiled(f"void({_SLOTS})", ORDERED)(_refresh)
