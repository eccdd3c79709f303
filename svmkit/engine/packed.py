"""Rows as the loops over kernel values take them: scaled for one kernel, in one precision, for what layouts.py says of them.

Scaled (vector.py) they leave of a kernel value one dot product and one function of it; features with huge numbers are numbered
anew, since the loops' work space has a place for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit import parallel
from svmkit._jit import both_precisions
from svmkit.data import Floats, Ints, Rows, row_blocks
from svmkit.engine.apart import FAR_HALF
from svmkit.engine.centred import centred
from svmkit.engine.layouts import TABLE_FEATURES, Form, Layout, Real, special_layout, suited
from svmkit.engine.sorted import FREQUENT
from svmkit.engine.tiled import TILE_FEATURES
from svmkit.engine.words import PER_WORD_LOG2, pack_words
from svmkit.features import feature_names, renamed
from svmkit.gather import gather
from svmkit.problem import LINEAR, PRECOMPUTED, RBF, Kernel

#: Nonzeros that a piece of the packing holds at least.
_PIECE_NONZEROS = 1 << 18
#: Nonzeros of rows, in the mean, that are read as quickly one here and one there as in order.
_LONG_ROW = 64


@dataclass(frozen=True)
class Packed:
    """Rows scaled for one kernel and precision (vector.py): ``data`` s·x, ``half`` s²‖x‖²/2, of rbf; or a precomputed kernel's.

    ``far``: some values take differences (apart.py), which counting never does. In pixels' form ``indices``, ``data``, ``half``
    and ``factor`` are ``groups``, ``words``, ``own`` and ``factor`` of words.py, and ``n_features`` is the last group. In the
    sorted form numbers of features are higher by FREQUENT, but for the frequent ones, which come first. ``few``: as in Layout.
    The first ``dense`` entries of each row, zeros among them, are of the features 0 … dense−1; with ``differences`` these are
    s/√2·x, and have no part in ``half``. ``numbers``: which of the rows in the arrays these are; None: all.
    """

    real: Real
    form: Form
    n_features: int
    indptr: Ints
    indices: NDArray[np.int32]
    data: NDArray[Any]
    half: NDArray[Any]
    gram: Floats
    serial: Ints
    far: bool = False
    few: bool = False
    dense: int = 0
    differences: bool = False
    factor: float = 0.0
    numbers: Ints | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1 if self.numbers is None else len(self.numbers)

    @property
    def places(self) -> Ints:
        """Where in the arrays each row stands."""
        return np.arange(self.n) if self.numbers is None else self.numbers

    @property
    def nonzeros(self) -> int:
        """Entries of all rows."""
        if self.numbers is None:
            return len(self.indices)
        return int((self.indptr[1:][self.numbers] - self.indptr[:-1][self.numbers]).sum())

    def take(self, index: Ints) -> Packed:
        """The rows numbered ``index``, packed anew so that loops over them read memory in order.

        Long rows, of forms whose loops take row by row as listed, stay where they are: they are most of the memory there is.
        """
        if self.form in ("tiled", "sorted") and len(self.indices) >= _LONG_ROW * (len(self.indptr) - 1):
            return replace(self, numbers=self.places[index])
        indptr, indices, data = gather(self.indptr, index, self.indices, self.data)
        precomputed = len(self.serial) > 0
        gram, serial = (self.gram[index], self.serial[index]) if precomputed else (self.gram, self.serial)
        return replace(self, indptr=indptr, indices=indices, data=data, half=self.half[index], gram=gram, serial=serial)


def prepared(kernel: Kernel, *parts: Rows) -> tuple[Rows, ...]:
    """Rows as they are to be packed: renumbered and, where rounding would tell, moved to the origin (centred.py).

    Those of the special loops stay: their inner products are exact, and some might lose their form.
    """
    narrow = renumbered(*parts)
    moved = centred(kernel, *narrow)
    return narrow if moved[-1] is narrow[-1] or special_layout(narrow, kernel, "f4") else moved


def renumbered(*parts: Rows) -> tuple[Rows, ...]:
    """The same rows, their columns renumbered 1, 2, … where the largest index far exceeds the nonzeros (hashed features).

    Work space has a place for every feature number; nothing else depends on the numbers but their order.
    """
    if max(rows.n_features for rows in parts) <= TABLE_FEATURES + 4 * sum(len(rows.data) for rows in parts):
        return parts
    names = feature_names(*parts)
    return tuple(renamed(rows, names) for rows in parts)


def pack(rows: Rows, kernel: Kernel, real: Real, layout: Layout, overwrite: bool = False) -> Packed:
    """``rows`` scaled for ``kernel`` in the given precision, for the loops that ``layout_of`` has found to suit.

    They may be where ``rows`` are, if these are not needed any more: ``overwrite``.
    """
    if layout.form == "pixels":
        return _pack_pixels(rows, kernel, real, layout.units)
    scale = {LINEAR: 1.0, RBF: sqrt(2.0 * kernel.gamma / log(2.0)), PRECOMPUTED: 1.0}.get(kernel.kind, sqrt(kernel.gamma))
    data, indptr, indices, n_features = np.empty(len(rows.data), dtype=real), rows.indptr, rows.indices, rows.n_features
    dense_scale = sqrt(0.5) * scale if layout.differences else scale
    in_place = _dense_come_first(rows, layout)
    if layout.dense and not in_place:
        n_features = max(n_features, *layout.dense)
        indptr, indices, data = _with_dense_first(rows, (dense_scale, scale), real, layout, n_features)
    elif layout.form == "sorted":
        number = np.arange(FREQUENT, FREQUENT + n_features + 1, dtype=np.int32)
        number[[f for f in layout.frequent if f <= n_features]] = [i for i, f in enumerate(layout.frequent) if f <= n_features]
        indices, n_features = np.empty(len(data), np.int32), n_features + FREQUENT
        _number_anew[real](rows.indptr, rows.indices, rows.data, scale, number, FREQUENT, indices, data)
    else:
        factor = dense_scale if in_place else scale
        if overwrite and real == "f8":
            data = rows.data

        def multiply(r0: int, r1: int) -> None:
            here = slice(indptr[r0], indptr[r1])
            with np.errstate(over="ignore"):  # numbers beyond float32 are infinite in it; each thread is told for itself
                np.multiply(rows.data[here], factor, out=data[here], casting="same_kind")  # in float64, rounded once

        parallel.run_ranges(multiply, rows.n, parallel.pieces_of(len(data), _PIECE_NONZEROS))
    half = np.zeros(rows.n, dtype=real)
    if kernel.kind == RBF and layout.form == "binary":
        half[:] = 0.5 * np.diff(rows.indptr) * scale**2
    elif kernel.kind == RBF:
        skipped = len(layout.dense) * layout.differences

        def halve(r0: int, r1: int) -> None:
            if layout.form == "tiled":
                _halve_squares_in_tiles[real](indptr, indices, data, r0, r1, skipped, len(layout.dense), half)
            else:
                _halve_squares[real](indptr, data, r0, r1, skipped, half)

        parallel.run_ranges(halve, rows.n, parallel.pieces_of(len(data), _PIECE_NONZEROS))
    return Packed(
        real=real,
        form=layout.form,
        n_features=n_features,
        indptr=indptr,
        indices=indices,
        data=data,
        half=half,
        gram=rows.gram,
        serial=rows.serial,
        far=real == "f8" and layout.form != "binary" and bool((half > FAR_HALF).any()),
        few=layout.few,
        dense=len(layout.dense),
        differences=layout.differences,
    )


def packed_in_parts(
    rows: Rows, numbers: Ints | None, most: int, least: int, kernel: Kernel, real: Real, layout: Layout
) -> Iterator[tuple[slice, Packed]]:
    """The rows, or those of ``numbers``, packed in parts of about ``most`` nonzeros, or ``least`` rows where these have more;
    and where each part is among them.
    """
    ends = rows.indptr if numbers is None else np.concatenate([[0], np.cumsum(np.diff(rows.indptr)[numbers])])
    for first, last in row_blocks(ends, max(most, least * int(ends[-1]) // max(1, len(ends) - 1))):
        if numbers is None:
            yield slice(first, last), pack(rows.part(first, last), kernel, real, layout)
        else:
            yield slice(first, last), pack(rows.take(numbers[first:last]), kernel, real, layout, overwrite=True)


def _first_number(layout: Layout) -> int | None:
    """The first of the dense features where they, and all behind them, may keep their numbers: they are 0, 1 …, or 1, 2 …, and
    tiled.py reads no numbers of entries that have a place. (apart.py does; those it compares are numbered alike.)
    """
    dense = layout.dense
    keep = layout.form == "tiled" and dense and dense[0] <= 1 and dense[-1] - dense[0] == len(dense) - 1
    return dense[0] if keep else None


def _dense_come_first(rows: Rows, layout: Layout) -> bool:
    """Whether each of ``rows`` begins with all the dense features, and numbers may stay: then there is nothing to move."""
    width, first = len(layout.dense), _first_number(layout)
    if first is None or rows.n == 0 or int(np.diff(rows.indptr).min()) < width:
        return False
    if layout.differences and len(rows.data) > rows.n * width:  # of two scales
        return False
    starts = rows.indptr[:-1]
    begin, end = rows.indices[starts], rows.indices[starts + width - 1]
    return bool((begin == first).all() and (end == first + width - 1).all())


def _with_dense_first(
    rows: Rows, scales: tuple[float, float], real: Real, layout: Layout, n_features: int
) -> tuple[Ints, NDArray[np.int32], NDArray[Any]]:
    """``indptr``, ``indices`` and ``data`` of rows with a place for each of the dense features, which are numbered from 0 or
    from ``_first_number`` on; the others come behind them in the old order. ``scales``: of these features, and of the others.
    """
    dense, first = layout.dense, _first_number(layout) or 0
    is_dense = np.zeros(n_features + 1, dtype=bool)
    is_dense[list(dense)] = True
    number = np.where(is_dense, np.cumsum(is_dense) - 1, len(dense) + np.cumsum(~is_dense) - 1)
    most = rows.n * len(dense) + len(rows.data)  # room that is not used takes no memory
    indptr, indices, data = np.zeros(rows.n + 1, np.int64), np.empty(most, np.int32), np.empty(most, dtype=real)
    _place_dense[real](rows.indptr, rows.indices, rows.data, *scales, number, len(dense), first, indptr, indices, data)
    return indptr, indices[: indptr[-1]], data[: indptr[-1]]


def _place(
    indptr: Any, indices: Any, data: Any, dense_scale: Any, scale: Any, number: Any, dense: Any, first: Any,
    new_indptr: Any, new_indices: Any, new_data: Any,
) -> None:  # fmt: skip
    """Each row with its features numbered anew, those below ``dense`` at their number's place, and its values scaled.

    Those have the numbers from ``first`` on in ``new_indices``.
    """
    for r in range(len(indptr) - 1):
        start = new_indptr[r]
        for f in range(dense):
            new_indices[start + f] = first + f
            new_data[start + f] = 0.0
        place = start + dense
        for k in range(indptr[r], indptr[r + 1]):
            f = number[indices[k]]
            if f < dense:
                new_data[start + f] = dense_scale * data[k]
            else:
                new_indices[place] = f
                new_data[place] = scale * data[k]
                place += 1
        new_indptr[r + 1] = place


_place_dense = both_precisions(_place, "void(i8[:], i4[:], f8[:], f8, f8, i8[:], i8, i8, i8[:], i4[:], R[:])")


def _number(indptr: Any, indices: Any, data: Any, scale: Any, number: Any, few: Any, new_indices: Any, new_data: Any) -> None:
    """Each row with its features numbered anew, those below ``few`` first, else in the old order, and its values scaled."""
    for r in range(len(indptr) - 1):
        place = indptr[r]
        for late in range(2):
            for k in range(indptr[r], indptr[r + 1]):
                f = number[indices[k]]
                if (f >= few) == (late == 1):
                    new_indices[place] = f
                    new_data[place] = scale * data[k]
                    place += 1


_number_anew = both_precisions(_number, "void(i8[:], i4[:], f8[:], f8, i4[:], i8, i4[:], R[:])")


def _squares(indptr: Any, data: Any, r0: Any, r1: Any, skipped: Any, half: Any) -> None:
    """Half of ⟨x, x⟩ of rows r0 … r1−1, added up as the loops over rows add up ⟨x, z⟩: so that it is the same to the bit where
    x = z, and K(x, x) is 1. The first ``skipped`` entries have no part.
    """
    for r in range(r0, r1):
        total = half.dtype.type(0.0)
        for k in range(indptr[r] + skipped, indptr[r + 1]):
            total += data[k] * data[k]
        half[r] = half.dtype.type(0.5) * total


_halve_squares = both_precisions(_squares, "void(i8[:], R[:], i8, i8, i8, R[:])")


def _squares_in_tiles(
    indptr: Any, indices: Any, data: Any, r0: Any, r1: Any, skipped: Any, dense: Any, half: Any
) -> None:  # fmt: skip
    """The same as tiled.py adds up: in tiles, of which one ends with the ``dense`` features."""
    for r in range(r0, r1):
        total = part = half.dtype.type(0.0)
        limit = 0
        for k in range(indptr[r] + skipped, indptr[r + 1]):
            place = k - indptr[r]
            f = place if place < dense else indices[k]
            if f >= limit:
                total += part
                part = half.dtype.type(0.0)
                if f < dense:
                    limit = min(dense, (f // TILE_FEATURES + 1) * TILE_FEATURES)
                else:
                    limit = dense + ((f - dense) // TILE_FEATURES + 1) * TILE_FEATURES
            part += data[k] * data[k]
        half[r] = half.dtype.type(0.5) * (total + part)


_halve_squares_in_tiles = both_precisions(_squares_in_tiles, "void(i8[:], i4[:], R[:], i8, i8, i8, i8, R[:])")


def training_precision(rows: Rows, kernel: Kernel) -> Real:
    """float32 where its kernel values among rows stay as near the float64 ones as rounding.py says, else float64."""
    (narrow,) = prepared(kernel, rows)
    return suited(narrow, narrow, kernel)[0]


def _pack_pixels(rows: Rows, kernel: Kernel, real: Real, units: float) -> Packed:
    words = pack_words(rows, kernel, units)
    return Packed(
        real=real,
        form="pixels",
        n_features=rows.n_features >> PER_WORD_LOG2,
        indptr=words.indptr,
        indices=words.groups,
        data=words.words,
        half=words.own,
        gram=rows.gram,
        serial=rows.serial,
        factor=words.factor,
    )
