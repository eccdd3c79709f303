"""Slots of an online SVM's set S, and the rows of kernel values that belong to them; engine/online.py has the steps.

Each member of S has a slot for as long as it stays: signed coefficient α in [lower, upper], gradient g = y − Σ_S α_s K_is, and
``up``, ``low`` that are 0 where α may rise, fall, and ∓huge where not, so that extremes need no branch. Free slots have both
huge and α = 0. A few examples, learned next, are staged: ``stage[p, s]`` is K(example p, occupant of slot s), kept true as
occupants come; the row of one that has joined S is its staged one, and moves to the store ``K`` when the stage is emptied.

``K[r, s]`` are rows of the slots ``kept[OWNER, r]``. Entries of examples that have joined since the stage was filled are
missing until the row is used: ``kept[DONE, r]`` is how many of them it has. No result depends on where a row lies or what is
staged.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import both_precisions, compiled, helper

#: Rows of ``reals`` (8, slots), of ``slots`` (6, slots): FREE and ZEROS are lists, of free slots and of members with α = 0;
#: SINCE is when the member joined, LATER without one.
ALPHA, GRADIENT, LOWER, UPPER, UP, LOW, LABEL, DIAGONAL = range(8)
ROW, PLACE, ZERO_AT, FREE, ZEROS, SINCE = range(6)
#: Rows of ``examples`` (4, staged): label, C, K(x, x), and out: f just before it was learned. Of ``staged`` (4, staged): the
#: row, the slot it took or −1, then two lists: of those that joined in order, and scratch.
EXAMPLE_LABEL, EXAMPLE_C, EXAMPLE_DIAGONAL, RESPONSE = range(4)
EXAMPLE_ROW, SLOT, JOINED, STAYED = range(4)
#: Rows of ``kept`` (4, rows of K): slot or −1, joined examples whose entry it has, time of last use, list of free rows.
OWNER, DONE, TICK, FREE_ROW = range(4)
#: Places in ``counts`` and in ``numbers``. FIRST, SECOND are the pair of the step under way, TOP_UP, TOP_LOW the slots of the
#: extremes; of more than MOST_MEMBERS one, LEAVING, goes. IDLE steps for the example under way have not brought the extremes
#: much nearer than NEAREST. Members with α = 0 may stay near violating, within KEEP_WITHIN · SIZE / SEEN, the examples that
#: have come, while SIZE is at most ROOM. REST are those whose kernel values with the example under way have not been used.
(TOP, N_FREE, N_ZEROS, SIZE, N_JOINED, N_STAGED, AT, PHASE, FIRST, SECOND, TOP_UP, TOP_LOW, TIME, N_FREE_ROWS, STEPS,
 EVALUATIONS, MOST_MEMBERS, LEAVING, IDLE, ROOM, REST, SEEN, N_COUNTS) = range(23)  # fmt: skip
MOST, LEAST, EPS, DELTA_MAX, NEAREST, KEEP_WITHIN = range(6)
HUGE = 1e300
LATER = 1 << 62
#: PLACE of a slot without a row; of one whose row is that of p staged, STAGED_PLACE − p.
NOWHERE, STAGED_PLACE = -1, -2


@helper()
def settle(s: Any, reals: Any, slots: Any, counts: Any) -> None:
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
def join(
    p: Any, g: Any, stage: Any, Q: Any, first: Any, examples: Any, staged: Any, reals: Any, slots: Any, slot_of: Any,
    counts: Any,
) -> Any:  # fmt: skip
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
    slots[ROW, s], slots[PLACE, s], slots[ZERO_AT, s] = staged[EXAMPLE_ROW, p], STAGED_PLACE - p, -1
    slots[SINCE, s] = counts[TIME]
    counts[TIME] += 1
    slot_of[slots[ROW, s]] = s
    settle(s, reals, slots, counts)
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
def leave(s: Any, reals: Any, slots: Any, kept: Any, slot_of: Any, counts: Any) -> None:
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
    slots[PLACE, s], slots[SINCE, s] = NOWHERE, LATER
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
def ready(K: Any, stage: Any, staged: Any, slots: Any, kept: Any, counts: Any) -> Any:
    """Whether the rows of FIRST and SECOND are there; they are then complete."""
    i, j = counts[FIRST], counts[SECOND]
    if slots[PLACE, i] == NOWHERE or slots[PLACE, j] == NOWHERE:
        return False
    _complete(i, K, stage, staged, slots, kept, counts)
    _complete(j, K, stage, staged, slots, kept, counts)
    return True


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


@compiled("i8(i8[:, :], i8[:, :], i8[:, :], i8[:])")
def close_stage(staged: Any, slots: Any, kept: Any, counts: Any) -> Any:
    """Gives members whose rows are staged places in the store; returns how many they are, listed in STAYED.

    ``spread`` then does the rest; until then DONE of such a place is −1 − p, p staged, and of others 0.
    """
    n = 0
    for place in range(kept.shape[1]):
        kept[DONE, place] = 0
    for number in range(counts[N_JOINED]):
        p = staged[JOINED, number]
        s = staged[SLOT, p]
        if slots[PLACE, s] == STAGED_PLACE - p:
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


put_row = both_precisions(_put_row, "void(R[:, :], R[:], i8, i8[:, :], i8[:, :], i8[:])")
spread = both_precisions(_spread, "void(R[:, :], R[:, :], i8[:, :], i8[:, :], i8, i8, i8, i8)")
