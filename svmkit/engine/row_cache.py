"""The last rows of Q that were used, in float32, for solvers that take one row at a time and keep positions in an order of
their own: position k holds variable ``number[k]``, which belongs to training row ``row[k]`` and has sign ``sign[k]``.

Rows sit in slots, least recently used first out, and are filled from the left as far as was ever asked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit._jit import helper
from svmkit.data import Floats, Ints
from svmkit.engine.reference import Reference, fill_row

#: The types of ``RowCache``'s fields, for signatures of compiled functions that take them one by one.
ROW_CACHE_TYPES = "f4[:], i8[:], i8[:], i8[:], i8[:], i8[:], f8[:], i8[:]"


class RowCache(NamedTuple):
    """Rows of length m in slots.

    ``block`` (slots · m,), ``filled`` (slots,) columns known, ``owner`` (slots,) variable or −1, ``slot`` (m,) slot of a
    variable or −1, ``newer`` and ``older`` (slots + 1,) the order of use, a ring closed by the entry past the last slot,
    ``values`` (m,) scratch, ``evaluated`` (1,) how many kernel values were computed.
    """

    block: NDArray[np.float32]
    filled: Ints
    owner: Ints
    slot: Ints
    newer: Ints
    older: Ints
    values: Floats
    evaluated: Ints


def make_cache(m: int, cache_mb: float) -> RowCache:
    """An empty cache for rows of length m in about ``cache_mb`` MB; two rows at least."""
    slots = min(m, max(2, int(cache_mb * 2**20 / (4 * m))))
    return RowCache(
        block=np.empty(slots * m, dtype=np.float32),
        filled=np.zeros(slots, dtype=np.int64),
        owner=np.full(slots, -1, dtype=np.int64),
        slot=np.full(m, -1, dtype=np.int64),
        newer=np.roll(np.arange(slots + 1), -1),
        older=np.roll(np.arange(slots + 1), 1),
        values=np.empty(m),
        evaluated=np.zeros(1, dtype=np.int64),
    )


@helper()
def fetch(ref: Reference, cache: RowCache, sign: Floats, number: Ints, row: Ints, k: int, length: int) -> int:
    """Where in ``block`` the row of position k begins, its first ``length`` columns filled. It and the row fetched before it
    stay where they are until the next fetch."""
    m, end = len(number), len(cache.owner)
    slot = cache.slot[number[k]]
    if slot < 0:
        slot = cache.newer[end]
        if cache.owner[slot] >= 0:
            cache.slot[cache.owner[slot]] = -1
        cache.owner[slot], cache.slot[number[k]], cache.filled[slot] = number[k], slot, 0
    older, newer = cache.older[slot], cache.newer[slot]
    cache.newer[older], cache.older[newer] = newer, older
    newest = cache.older[end]
    cache.newer[newest], cache.older[slot], cache.newer[slot], cache.older[end] = slot, newest, end, slot
    at, begin = slot * m, cache.filled[slot]
    if begin < length:
        fill_row(ref, row[k], row, begin, length, cache.values)
        for t in range(begin, length):
            cache.block[at + t] = sign[k] * sign[t] * cache.values[t]
        cache.evaluated[0] += length - begin
        cache.filled[slot] = length
    return at  # type: ignore[no-any-return]


@helper()
def exchange_columns(cache: RowCache, swaps: Ints, n_swaps: int) -> None:
    """Follows exchanges of positions (swaps[2s] < swaps[2s + 1]) in every row kept.

    A row that knows only the first of two columns ends before it from then on.
    """
    m = len(cache.values)
    for slot in range(len(cache.owner)):
        at, filled = slot * m, cache.filled[slot]
        for s in range(n_swaps):
            a, b = swaps[2 * s], swaps[2 * s + 1]
            if b < filled:
                cache.block[at + a], cache.block[at + b] = cache.block[at + b], cache.block[at + a]
            elif a < filled:
                filled = a
        cache.filled[slot] = filled
