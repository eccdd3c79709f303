"""Kernel rows kept for steps that use one at a time: those to come are evaluated together, the oldest make room for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from svmkit._jit import helper
from svmkit.data import Floats, Ints
from svmkit.engine.kernels import Engine

#: Rows evaluated together at most: many times faster than one by one.
TOGETHER = 64
#: Rows are kept in float32 where the largest diagonal value lies between these: its error is small against a step's.
_SMALLEST, _LARGEST = 1e-20, 1e30


class KeptRows:
    """``K`` (slots, n): rows of an engine's kernel matrix, in the precision ``real``; ``slot_of`` (n,): where a row is, −1
    where it is not kept; ``unused`` (slots,): 1 until a step has used the row. ``together`` rows are evaluated at a time.
    """

    def __init__(self, engine: Engine, diagonal: Floats, cache_mb: float, least: int) -> None:
        """Room for ``cache_mb``, all rows, or the ``least`` that must be there at once."""
        n, largest = len(diagonal), float(np.abs(diagonal).max(initial=0.0))
        self.real = "f4" if _SMALLEST < largest < _LARGEST else engine.real
        room = int(cache_mb * 2**20 / (n * np.dtype(self.real).itemsize))
        self.together = min(n, max(least, min(room, TOGETHER)))
        slots = min(max(room, self.together), n + self.together)  # all, and room to evaluate more, where there is memory for it
        self.K = np.empty((slots, n), self.real)
        self.slot_of, self.unused = np.full(n, -1), np.zeros(slots, np.int64)
        self.engine, self._row_in, self._oldest = engine, np.full(slots, -1), 0

    def make_room(self) -> None:
        """The oldest rows are kept no more, but for those that ``fill`` has no need to replace."""
        if self._oldest + self.together > len(self.K):
            self._oldest = 0
        old = self._row_in[self._oldest : self._oldest + self.together]
        self.slot_of[old[old >= 0]] = -1

    def fill(self, found: Ints) -> None:
        """Evaluates the rows ``found``, at most ``together``, none of which is kept, where ``make_room`` has made room."""
        at, count = self._oldest, len(found)
        old = self._row_in[at : at + self.together].copy()
        stays = count + np.flatnonzero(old[count:] >= 0)  # they need not make room
        self.slot_of[old[stays]] = at + stays
        new = found[self.slot_of[found] < 0]
        end = at + len(new)
        self._row_in[at : at + count] = -1
        self.engine.whole_rows(new, self.K[at:end])
        self._row_in[at:end], self.slot_of[new], self.unused[at:end] = new, np.arange(at, end), 1
        self._oldest = end


@helper()
def want(i: Any, slot_of: Any, found: Any, count: Any) -> Any:
    """Adds row i to the first ``count`` of ``found``, if there is room and it is neither kept nor there; how many there are."""
    if count < len(found) and slot_of[i] == -1:
        slot_of[i] = -2
        found[count] = i
        count += 1
    return count


@helper()
def wanted(slot_of: Any, found: Any, count: Any) -> Any:
    """Takes off the marks of ``want``; ``count``."""
    for k in range(count):
        slot_of[found[k]] = -1
    return count
