"""A Gram matrix that grows: K over a set of rows that only ever gains members, each pair evaluated once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Ints
from svmkit.engine.kernels import Engine


class GrowingGram:
    """K[S, S] for a growing set S of an engine's rows, in its training precision.

    Memory is that of the square of at most twice the set's size; adding t rows to s costs t·(s + t) kernel values, counted by
    the engine. ``rows`` (s,) are the members in order of arrival.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.rows: Ints = np.empty(0, dtype=np.int64)
        self._room: NDArray[Any] = np.empty((0, 0), dtype=engine.packed.real)

    @property
    def values(self) -> NDArray[Any]:
        """K[rows, rows] (s, s): a view, good until the next ``extend``."""
        s = len(self.rows)
        return self._room[:s, :s]

    def extend(self, rows: Ints) -> None:
        """Adds ``rows`` to the set; a row may be added again and then stands twice."""
        old, new = len(self.rows), len(self.rows) + len(rows)
        if new > len(self._room):
            room = np.empty((max(new, 2 * old), max(new, 2 * old)), dtype=self._room.dtype)
            room[:old, :old] = self.values
            self._room = room
        self.rows = np.concatenate([self.rows, rows])
        added = self.engine.block(rows, self.rows)
        self._room[old:new, :new] = added
        self._room[:old, old:new] = added[:, :old].T
