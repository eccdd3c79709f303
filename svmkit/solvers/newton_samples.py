"""The rows that newton.py works on: samples first where rows are far more than features, at last all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmkit.data import Floats, Ints, Rows
from svmkit.engine.rng import permutation

#: Samples of so many values at most are copied: all steps on them are in caches, or nearly.
_COPIED = 1 << 24
#: Samples, smallest first: rows to a feature, rows at least, and the s with which the next takes over; and how many times the
#: rows there must be for one to be worth while.
_SAMPLES, _WORTH = ((8, 1024, 2.0), (48, 4096, 32.0)), 6


class Part(NamedTuple):
    """Rows of the problem, numbers ``used``, features renumbered 1, 2, …; ``upper``: C, of a sample as much as of all rows.

    They are the ``rows`` numbered ``which``, or all of these.
    """

    used: Ints
    rows: Rows
    y: Floats
    upper: Floats
    which: Ints | None = None

    def among(self, index: Ints, share: float = 1.0) -> Part:
        """Of a part of all its rows those numbered ``index``, a ``share`` of it, by which C is divided."""
        return Part(self.used[index], self.rows, self.y[index], self.upper[index] / share, index)

    def copied(self) -> Part:
        """The same with rows of its own."""
        return self if self.which is None else self._replace(rows=self.rows.take(self.which), which=None)


def samples(whole: Part, d: int, seed: int) -> tuple[Part, list[tuple[float, Part]]]:
    """What to begin with, and what comes after: each sample has all rows of the one before."""
    n, order = len(whole.used), permutation(seed, 0, len(whole.used))
    first, wider = whole, list[tuple[float, Part]]()
    for each, least, last_s in _SAMPLES[::-1]:
        few = max(each * d, least)
        if n >= _WORTH * few:
            wider.insert(0, (last_s, first))
            first = whole.among(np.sort(order[:few]), few / n)
            first = first.copied() if few * d <= _COPIED else first
    return first, wider
