"""A Gram matrix that grows: K over a set of rows that only ever gains members, each pair evaluated once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from svmkit import parallel
from svmkit._jit import both_precisions
from svmkit.data import Floats, Ints
from svmkit.engine.kernels import Engine

#: Members whose sums a piece of a product holds: they stay in the first-level cache.
_PIECE = 1024


def _add_rows(K: Any, places: Any, weights: Any, first: Any, last: Any, out: Any) -> None:
    """out[j] += Σ_c weights[c]·K[places[c], j] for first ≤ j < last."""
    for c in range(len(places)):
        row = K[places[c]]
        weight = weights[c]
        for j in range(first, last):
            out[j] += weight * float64(row[j])


_add = both_precisions(_add_rows, "void(R[:, :], i8[:], f8[:], i8, i8, f8[:])")


class GrowingGram:
    """K[S, S] for a growing set S of at most ``most`` of an engine's rows, in its training precision.

    Memory is that of ``most``² values at most, and a quarter as much beside it while they move to their last room. Adding t
    rows to s costs t·(s + t) kernel values, counted by the engine. ``rows`` (s,) are the members in order of arrival.
    """

    def __init__(self, engine: Engine, most: int) -> None:
        self.engine = engine
        self.most = most
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
            size = max(new, 2 * old)
            size = size if 2 * size <= self.most else self.most  # the last move is from half the rows at most
            room = np.empty((size, size), dtype=self._room.dtype)
            room[:old, :old] = self.values
            self._room = room
        self.rows = np.concatenate([self.rows, rows])
        self.engine.block(rows, self.rows, self._room[old:])
        self._room[:old, old:new] = self._room[old:new, :old].T

    def apply(self, places: Ints, weights: Floats, out: Floats, first: int = 0) -> None:
        """out (s,) += K[S, rows[places]] @ weights at the members from place ``first`` on; no kernel value is evaluated.

        Sums in float64. K is symmetric, so its rows are read in memory order.
        """
        last = len(self.rows)
        n_pieces = -(-(last - first) // _PIECE)

        def piece(number: int) -> None:
            start = first + number * _PIECE
            _add[self.engine.packed.real](self._room, places, weights, start, min(start + _PIECE, last), out)

        parallel.run_pieces(piece, n_pieces)
