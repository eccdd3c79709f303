"""The rows that newton.py works on: samples first where rows are far more than features, at last all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmkit.data import Floats, Ints, Rows
from svmkit.engine.rng import permutation

#: Samples, smallest first: rows to a feature, rows at least, and the s with which the next takes over; and how many times the
#: rows there must be for one to be worth while.
_SAMPLES, _WORTH = ((8, 1024, 2.0), (48, 4096, 32.0)), 6


class Part(NamedTuple):
    """Rows of the problem, numbers ``used``, features renumbered 1, 2, …; ``upper``: C, of a sample as much as of all rows."""

    used: Ints
    rows: Rows
    y: Floats
    upper: Floats

    def take(self, index: Ints, share: float) -> Part:
        """Those numbered ``index``, which are a ``share`` of the part: C is divided by it."""
        return Part(self.used[index], self.rows.take(index), self.y[index], self.upper[index] / share)


def samples(whole: Part, d: int, seed: int) -> tuple[Part, list[tuple[float, Part]]]:
    """What to begin with, and what comes after: each sample has all rows of the one before."""
    n, order = len(whole.used), permutation(seed, 0, len(whole.used))
    first, wider = whole, list[tuple[float, Part]]()
    for each, least, last_s in _SAMPLES[::-1]:
        few = max(each * d, least)
        if n >= _WORTH * few:
            wider.insert(0, (last_s, first))
            first = whole.take(np.sort(order[:few]), few / n)
    return first, wider
