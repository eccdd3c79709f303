"""Blocks of the kernel matrix that grow: K over a set of rows that only ever gains members, or K between it and all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from svmkit import parallel
from svmkit._jit import both_precisions
from svmkit.data import Floats, Ints, Rows
from svmkit.engine.kernels import Engine, afresh
from svmkit.problem import PRECOMPUTED, Kernel

#: Members whose sums a piece of a product holds: they stay in the first-level cache.
_PIECE = 1024
#: A column is kept when it has been used so often: in a descent most hinges turn on once, and off for good. And only of rows
#: with so many nonzeros in the mean, of which a value costs more than one read back.
_USES, _DEAR_NONZEROS = 3, 40
#: Values that a piece of a copy holds.
_COPIED = 1 << 20
#: Up to so many rows float64 costs nothing worth saving.
_FEW = 2000


def _add_rows(K: Any, places: Any, weights: Any, first: Any, last: Any, out: Any) -> None:
    """out[j] += Σ_c weights[c]·K[places[c], j] for first ≤ j < last."""
    for c in range(len(places)):
        row = K[places[c]]
        weight = weights[c]
        for j in range(first, last):
            out[j] += weight * float64(row[j])


_add = both_precisions(_add_rows, "void(R[:, :], i8[:], f8[:], i8, i8, f8[:])")


def gram_engine(rows: Rows, kernel: Kernel) -> Engine:
    """The engine for such blocks; of few rows in float64."""
    return Engine(rows, kernel, "f8" if rows.n <= _FEW else None)


class GrowingGram:
    """K[S, S] for a growing set S of at most ``most`` of an engine's rows, in its training precision.

    Memory is that of ``most``² values at most, and a quarter as much beside it while they move to their last room. Adding t
    rows to s costs t·(s + t) kernel values, counted by the engine. ``rows`` (s,) are the members in order of arrival.
    """

    def __init__(self, engine: Engine, most: int) -> None:
        self.engine = engine
        self.most = most
        self.rows: Ints = np.empty(0, dtype=np.int64)
        self._room: NDArray[Any] = np.empty((0, 0), dtype=engine.real)

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
            _copy(self.values, room[:old])
            self._room = room
        members = np.concatenate([self.rows, rows])
        self.engine.block(rows, members, self._room[old:])
        _copy(self._room[old:new, :old].T, self._room[:old, old:])
        self.rows = members

    def apply(self, places: Ints, weights: Floats, out: Floats, first: int = 0) -> None:
        """out (s,) += K[S, rows[places]] @ weights at the members from place ``first`` on; no kernel value is evaluated.

        Sums in float64. K is symmetric, so its rows are read in memory order.
        """
        _add_kept(self._room, places, weights, first, len(self.rows), out)

    def product(self, weights: Floats) -> Floats:
        """K[S, S] @ weights (s,), where these are not 0."""
        out, used = np.zeros(len(weights)), np.flatnonzero(weights)
        self.apply(used, weights[used], out)
        return out

    def products_in_float64(self, *weights: Floats) -> list[Floats]:
        """K[S, S] @ each of ``weights`` (s,), from float64 kernel values: those that are kept, or else new ones."""
        if self._room.dtype == float64:
            return [self.product(each) for each in weights]
        found, evaluations = afresh(self.engine.rows.take(self.rows), self.engine.kernel, *weights)
        self.engine.evaluations += evaluations
        return found


def _copy(values: NDArray[Any], room: NDArray[Any]) -> None:
    """``values`` (k, m) to the first m columns of ``room`` (k, ≥ m), on all threads."""
    k, m = values.shape

    def some(first: int, last: int) -> None:
        room[first:last, :m] = values[first:last]

    parallel.run_stretches(some, k, max(1, _COPIED // max(1, m)))


class KeptColumns:
    """K[:, S] for a growing set S of an engine's n rows: those that products use again and again, as many as fit."""

    def __init__(self, engine: Engine, cache_mb: float) -> None:
        """Keeps nothing yet, and later at most ``cache_mb`` MB in the engine's training precision."""
        n, real = engine.packed.n, np.dtype(engine.real)
        worth_it = len(engine.rows.data) >= _DEAR_NONZEROS * n and engine.kernel.kind != PRECOMPUTED
        most = min(n, int(cache_mb * 2**20 / (n * real.itemsize))) if worth_it else 0
        self.engine = engine
        self._room = np.empty((most, n), real)
        self._count = 0
        self._place = np.full(n, -1)
        self._uses = np.zeros(n, np.int64)

    def apply(self, columns: Ints, weights: Floats, out: Floats) -> None:
        """out (n,) += K[:, columns] @ weights; sums in float64. ``columns`` (k,) are different rows."""
        new = columns[(self._place[columns] < 0) & (self._uses[columns] >= _USES)][: len(self._room) - self._count]
        if len(new):
            self.engine.whole_rows(new, self._room[self._count : self._count + len(new)])
            self._place[new] = np.arange(self._count, self._count + len(new))
            self._count += len(new)
        self._uses[columns] += 1
        places = self._place[columns]
        kept = places >= 0
        _add_kept(self._room, places[kept], weights[kept], 0, len(out), out)
        self.engine.apply(self.engine.packed, columns[~kept], weights[~kept], out)


def _add_kept(K: NDArray[Any], places: Ints, weights: Floats, first: int, last: int, out: Floats) -> None:
    """out[j] += Σ_c weights[c]·K[places[c], j] for first ≤ j < last, on all threads."""
    add = _add[K.dtype.str[1:]]
    parallel.run_stretches(lambda a, b: add(K, places, weights, first + a, first + b, out), last - first, _PIECE)
