"""The rows that newton.py works on: samples first where rows are far more than features, at last all of them."""

from __future__ import annotations

from math import nan
from typing import NamedTuple

import numpy as np

from svmkit.data import Floats, Ints, Rows
from svmkit.engine.rng import permutation


class Size(NamedTuple):
    """A sample: rows to a feature, at least ``least`` of them, where there are ``worth`` times as many; the s it begins with,
    and all rows begin with, if they come next."""

    each: int
    least: int
    worth: int
    s: float
    s_of_all: float


#: Smallest first.
_SAMPLES = (Size(8, 1024, 6, 0.5, 2.0), Size(48, 4096, 6, 2.0, 32.0), Size(192, 16384, 4, 16.0, 32.0))


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


def samples(whole: Part, d: int, seed: int) -> tuple[Part, list[tuple[float, Part]]]:
    """What to begin with, and what comes after, each with its s: each sample has all rows of the one before."""
    n, order = len(whole.used), permutation(seed, 0, len(whole.used))
    first, s, wider = whole, nan, list[tuple[float, Part]]()
    for size in _SAMPLES[::-1]:
        few = max(size.each * d, size.least)
        if n >= size.worth * few:
            wider.insert(0, (size.s_of_all if first is whole else s, first))
            first, s = whole.among(np.sort(order[:few]), few / n), size.s
    return first, wider
