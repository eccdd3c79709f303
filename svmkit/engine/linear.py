"""Loops for the linear kernel, where w is at hand: a product with K costs O(nonzeros).

K·v over any columns is X·w with w = Σ_c v_c x_c. In all loops ``indptr, indices, data`` are rows and w has a place for every
feature number; sums are float64. Places are unsigned: of a signed one numba asks each time whether it counts from the end, and
the loops take half as long again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import float64, int64, uint32, uint64
from numpy.typing import NDArray

from svmkit import parallel
from svmkit._jit import ORDERED, REASSOCIATED, Compiled, compiled, helper
from svmkit.data import Floats, Ints, Rows
from svmkit.engine.prefetch import ASK_FOR_ROW
from svmkit.features import feature_names

#: Arguments ``indptr, indices, data`` of rows in either form.
ROWS = {"sparse": "i8[:], i4[:], f8[:]", "dense": "i8[:], i4[:], f4[:]"}

_ONE, _TWO, _THREE = uint64(1), uint64(2), uint64(3)
#: Rows ahead at which those in no order of theirs are asked for.
_FAR, _NEAR = 16, 8
#: Rows a thread takes at least.
PIECE_ROWS = 4096
#: From so many columns on w's are worked on together, and numbers of them held at a time, 16 MB.
_LEAST_TOGETHER, _HELD_TOGETHER = 16, 1 << 21


@helper(ORDERED)
def dot_row(indices: Any, data: Any, k0: Any, k1: Any, w: Any) -> Any:
    """w · row. Four sums: one alone would wait for its own last addition."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    k, end = uint64(k0), uint64(k1)
    while k + _THREE < end:
        a += w[uint32(indices[k])] * data[k]
        b += w[uint32(indices[k + _ONE])] * data[k + _ONE]
        c += w[uint32(indices[k + _TWO])] * data[k + _TWO]
        d += w[uint32(indices[k + _THREE])] * data[k + _THREE]
        k += _TWO + _TWO
    while k < end:
        a += w[uint32(indices[k])] * data[k]
        k += _ONE
    return (a + b) + (c + d)


@helper(ORDERED)
def dot_ones(indices: Any, data: Any, k0: Any, k1: Any, w: Any) -> Any:
    """``dot_row`` of a row whose values are all 1, to the bit."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    k, end = uint64(k0), uint64(k1)
    while k + _THREE < end:
        a += w[uint32(indices[k])]
        b += w[uint32(indices[k + _ONE])]
        c += w[uint32(indices[k + _TWO])]
        d += w[uint32(indices[k + _THREE])]
        k += _TWO + _TWO
    while k < end:
        a += w[uint32(indices[k])]
        k += _ONE
    return (a + b) + (c + d)


@helper(ORDERED)
def add_ones(indices: Any, data: Any, k0: Any, k1: Any, step: Any, w: Any) -> None:
    """``add_row`` of a row whose values are all 1."""
    for k in range(uint64(k0), uint64(k1)):
        w[uint32(indices[k])] += step


@helper(REASSOCIATED)
def dot_dense(indices: Any, data: Any, k0: Any, k1: Any, w: Any) -> Any:
    """w · row, in registers of several sums."""
    total = 0.0
    start = uint64(k0)
    for j in range(uint64(k1) - start):
        total += w[j] * float64(data[start + j])
    return total


@helper(ORDERED)
def add_row(indices: Any, data: Any, k0: Any, k1: Any, step: Any, w: Any) -> None:
    """w += step · row."""
    for k in range(uint64(k0), uint64(k1)):
        w[uint32(indices[k])] += step * data[k]


@helper(ORDERED)
def add_dense(indices: Any, data: Any, k0: Any, k1: Any, step: Any, w: Any) -> None:
    """w += step · row."""
    start = uint64(k0)
    for j in range(uint64(k1) - start):
        w[j] += step * float64(data[start + j])


@helper()
def _ends_sparse(indptr: Any, i: Any) -> Any:
    return indptr[uint64(i)], indptr[uint64(i) + _ONE]


@helper()
def _ends_dense(indptr: Any, i: Any) -> Any:
    width = indptr[_ONE] - indptr[uint64(0)]
    k0 = indptr[uint64(0)] + int64(i) * width
    return k0, k0 + width


#: For rows in either form, ``k0, k1 = ends(indptr, i)`` of row i. Dense rows are as long as each other: where one begins is
#: known without waiting for memory.
ENDS = {"sparse": _ends_sparse, "dense": _ends_dense}
#: For rows in either form, ``dot(indices, data, k0, k1, w)`` and ``add(indices, data, k0, k1, step, w)``.
DOT = {"sparse": dot_row, "dense": dot_dense}
ADD = {"sparse": add_row, "dense": add_dense}


def both_forms(loop_of: Callable[..., Any], signature: str, name: str, *parts: dict[str, Any]) -> dict[str, Compiled]:
    """The loops that ``loop_of`` makes of each of ``parts`` for rows in either form; ROWS in the signature: theirs."""
    return {
        form: compiled(signature.replace("ROWS", rows), ORDERED, f"{name}_{form}")(loop_of(*(part[form] for part in parts)))
        for form, rows in ROWS.items()
    }


#: Where steps keep w = scale·v: below this scale v is put in w's own units, which costs a pass over v. Each step that a
#: projection shortens makes S·v − late lose digits, at most those of 1/SMALLEST_SCALE.
SMALLEST_SCALE = 1e-3


@helper(ORDERED)
def own_units(v: Any, late: Any, scale: Any, scale_sum: Any) -> None:
    """v ← scale·v, and late so that S·v − late with S = ``scale_sum`` is from now on as it was with S = 0.

    ``late`` is as long as v, or empty where no average is kept.
    """
    for e in range(len(late)):
        late[e] -= scale_sum * v[e]
    for e in range(len(v)):
        v[e] *= scale


def average(v: Floats, late: Floats, scale_sum: float, weights: float, before: Floats | float = 0.0) -> Floats:
    """The average of iterates, (S·v − late + ``before``)/``weights`` with S = ``scale_sum``; infinite or nan where they
    overflowed.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found: Floats = (scale_sum * v - late + before) / weights
    return found


def iterate(v: Floats, late: Floats, scale: float, scale_sum: float, weights: float) -> Floats:
    """The average of iterates, or before there is one the last of them, scale·v."""
    return average(v, late, scale_sum, weights) if weights > 0 else scale * v


def arrays(rows: Rows) -> tuple[Ints, NDArray[np.int32], NDArray[Any]]:
    """What loops take of ``rows``."""
    return rows.indptr, rows.indices, rows.data


def places(rows: Rows, w: Floats) -> Floats:
    """``w`` as the loops want it: their dense rows begin at place 0, and feature numbers at 1."""
    return w[1:] if rows.form == "dense" else w


def _dots_loop(dot: Any) -> Any:
    def dots_loop(indptr: Any, indices: Any, data: Any, r0: Any, r1: Any, w: Any, out: Any) -> None:
        for r in range(r0, r1):
            out[r] = dot(indices, data, indptr[r], indptr[r + 1], w)

    return dots_loop


def _fold_loop(ends: Any, add: Any, ask_for_row: Any) -> Any:
    def fold_loop(indptr: Any, indices: Any, data: Any, which: Any, k0: Any, k1: Any, weights: Any, w: Any) -> None:
        for k in range(k0, k1):
            if k + _FAR < k1:
                ask_for_row(which[k + _FAR], which[k + _NEAR], indptr, indices, data)
            first, last = ends(indptr, which[k])
            add(indices, data, first, last, weights[k], w)

    return fold_loop


def _dots_of_loop(ends: Any, dot: Any, ask_for_row: Any) -> Any:
    def dots_of_loop(indptr: Any, indices: Any, data: Any, which: Any, k0: Any, k1: Any, w: Any, out: Any) -> None:
        for k in range(k0, k1):
            if k + _FAR < k1:
                ask_for_row(which[k + _FAR], which[k + _NEAR], indptr, indices, data)
            first, last = ends(indptr, which[k])
            out[k] = dot(indices, data, first, last, w)

    return dots_of_loop


_fold = both_forms(_fold_loop, "void(ROWS, i8[:], i8, i8, f8[:], f8[:])", "fold", ENDS, ADD, ASK_FOR_ROW)
_dots = both_forms(_dots_loop, "void(ROWS, i8, i8, f8[:], f8[:])", "dots", DOT)
_dots_of = both_forms(_dots_of_loop, "void(ROWS, i8[:], i8, i8, f8[:], f8[:])", "dots_of", ENDS, DOT, ASK_FOR_ROW)


def fold(rows: Rows, weights: Floats, width: int, which: Ints | None = None) -> Floats:
    """w = Σ_i weights[i] x_i (width,), ``width`` above every feature number; over the rows numbered ``which``, or all."""
    some = np.flatnonzero(weights)  # so that the CPU can be told which row comes next
    weights, which = weights[some], some if which is None else which[some]
    cuts = _cuts(len(some)) if rows.form == "dense" else [0, len(some)]  # a piece has a w of its own, as long as a row
    parts = np.zeros((len(cuts) - 1, width))

    def piece(i: int) -> None:
        _fold[rows.form](*arrays(rows), which, cuts[i], cuts[i + 1], weights, places(rows, parts[i]))

    parallel.run_pieces(piece, len(cuts) - 1)
    w: Floats = parts.sum(axis=0)
    return w


def dots(rows: Rows, w: Floats, which: Ints | None = None) -> Floats:
    """X·w (n,); of the rows numbered ``which``, where they lie, or of all."""
    out = np.empty(rows.n if which is None else len(which))
    cuts = _cuts(len(out))

    def piece(i: int) -> None:
        where = cuts[i], cuts[i + 1], places(rows, w), out
        if which is None:
            _dots[rows.form](*arrays(rows), *where)
        else:
            _dots_of[rows.form](*arrays(rows), which, *where)

    parallel.run_pieces(piece, len(cuts) - 1)
    return out


def products(left: Rows, basis: Rows, weights: Floats) -> Floats:
    """X·w (left.n, k) for each w = Σ_i weights[i, j] z_i of k columns; to the bit ``dots`` of ``fold`` of each."""
    k, width = weights.shape[1], max(left.n_features, basis.n_features) + 1
    out = np.empty((left.n, k))
    if k >= _LEAST_TOGETHER and left.form == basis.form == "sparse":
        _products_together(left, basis, weights, width, out)
        return out
    for j in range(k):
        out[:, j] = dots(left, fold(basis, weights[:, j], width))
    return out


def _products_together(left: Rows, basis: Rows, weights: Floats, width: int, out: Floats) -> None:
    """Some columns of w at a time stand side by side, a line a feature of the basis: a feature is looked up once for them."""
    names = feature_names(basis)
    place = np.zeros(width, np.int32)
    place[names] = np.arange(1, len(names) + 1)
    k, step = weights.shape[1], max(_LEAST_TOGETHER, _HELD_TOGETHER // (len(names) + 1))
    n_pieces = parallel.pieces_of(left.n * min(k, step), PIECE_ROWS)
    for first in range(0, k, step):
        some = np.ascontiguousarray(weights[:, first : first + step])
        table = np.zeros((len(names) + 1, some.shape[1]))
        _fold_together(*arrays(basis), some, place, table)

        def piece(r0: int, r1: int, first: int = first, table: Floats = table) -> None:
            _dots_together(*arrays(left), r0, r1, place, table, np.empty(4 * table.shape[1]), first, out)

        parallel.run_ranges(piece, left.n, n_pieces)


@compiled("void(i8[:], i4[:], f8[:], f8[:, :], i4[:], f8[:, :])", ORDERED)
def _fold_together(indptr: Any, indices: Any, data: Any, weights: Any, place: Any, table: Any) -> None:
    for r in range(len(weights)):
        for k in range(uint64(indptr[r]), uint64(indptr[r + 1])):
            line = table[uint32(place[uint32(indices[k])])]
            for j in range(len(line)):
                line[j] += weights[r, j] * data[k]


@compiled("void(i8[:], i4[:], f8[:], i8, i8, i4[:], f8[:, :], f8[:], i8, f8[:, :])", ORDERED)
def _dots_together(
    indptr: Any, indices: Any, data: Any, r0: Any, r1: Any, place: Any, table: Any, sums: Any, first: Any, out: Any
) -> None:
    """Products go to the four sums of ``dot_row``; those with features that the basis lacks would add 0."""
    n = table.shape[1]
    for r in range(r0, r1):
        sums[:] = 0.0
        k0, k1 = indptr[r], indptr[r + 1]
        fours = k0 + (k1 - k0) // 4 * 4
        for k in range(k0, k1):
            p = place[uint32(indices[uint64(k)])]
            if p > 0:
                line, x = table[uint32(p)], data[uint64(k)]
                at = (k - k0) % 4 * n if k < fours else 0
                own = sums[at : at + n]
                for j in range(n):
                    own[j] += line[j] * x
        for j in range(n):
            out[r, first + j] = (sums[j] + sums[n + j]) + (sums[2 * n + j] + sums[3 * n + j])


def _cuts(n: int) -> list[int]:
    cuts: list[int] = np.linspace(0, n, 1 + max(1, min(64, n // PIECE_ROWS))).astype(np.int64).tolist()
    return cuts


#: Feature numbers below this have a place of their own in w, among them all that a map may have; larger ones as they come.
_DIRECT = (1 << 20) + 1


class FeaturePlaces:
    """A place in w for every feature met on a stream, ``width`` so far; hashed features take no room for their numbers."""

    def __init__(self) -> None:
        self.width = 0
        self._far = np.empty(0, dtype=np.int32)
        self._place = np.empty(0, dtype=np.int32)

    def place(self, rows: Rows) -> Rows:
        """``rows`` with places in place of feature numbers; they need not ascend."""
        if rows.n_features < _DIRECT:
            self.width = max(self.width, rows.n_features + 1)
            return rows
        far = np.flatnonzero(rows.indices >= _DIRECT)
        names, which = np.unique(rows.indices[far], return_inverse=True)
        at = np.searchsorted(self._far, names)
        new = np.searchsorted(self._far, names, side="right") == at
        if new.any():  # a pass over all that are known, which more and more rows do without
            places = np.arange(np.count_nonzero(new), dtype=np.int32) + np.int32(_DIRECT + len(self._far))
            self._place = np.insert(self._place, at[new], places)
            self._far = np.insert(self._far, at[new], names[new])
            at = np.searchsorted(self._far, names)
        self.width = _DIRECT + len(self._far)
        indices = rows.indices.copy()
        indices[far] = self._place[at][which]
        return rows._replace(indices=indices)

    def as_rows(self, w: Floats) -> Rows:
        """w as one row over the features themselves; none where it is 0."""
        near = np.flatnonzero(w[:_DIRECT])
        far = np.flatnonzero(w[self._place])
        indices = np.concatenate([near, self._far[far]]).astype(np.int32)
        count = min(1, len(indices))
        return Rows(
            data=np.concatenate([w[near], w[self._place[far]]]),
            indices=indices,
            indptr=np.array([0, len(indices)][: count + 1]),
            n_features=int(indices.max(initial=0)),
        )


def grown(values: Floats, size: int) -> Floats:
    """``values`` with zeros behind them, at least ``size`` in all; room doubles, so that growing costs little."""
    if len(values) >= size:
        return values
    return np.concatenate([values, np.zeros(max(size, 2 * len(values)) - len(values))])
