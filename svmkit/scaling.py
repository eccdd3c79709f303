"""Linear scaling of features and labels, as svm-scale does it: each feature's range in the data becomes lower … upper.

A value that is not written in a row is 0, and counts. A feature whose range is a single point says nothing and is left out.
Index 0 is no proper feature: where a row lacks it, it is neither counted as 0 nor filled in. Features that occur nowhere take
no room: those that do have places 0, 1, … by which rows are renumbered (``Scaling.placed``) before they are scaled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Bools, Dataset, Floats, Ints, Rows, row_blocks
from svmkit.features import feature_names, places_of

#: Values that are looked at in one go, at least.
_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class LabelRange:
    """Labels from ``minimum … maximum`` go to ``lower … upper``."""

    lower: float
    upper: float
    minimum: float
    maximum: float


@dataclass(frozen=True)
class Scaling:
    """Values of feature ``index[k]`` go from ``minimum[k] … maximum[k]`` to ``lower … upper``; equal ends leave it out.

    The arrays are (m,), ``index`` ascends from 0. ``known`` marks features whose range was measured or is listed in a range
    file; the ends of the others are 0. ``labels`` is None where labels stay.
    """

    lower: float
    upper: float
    index: Ints
    minimum: Floats
    maximum: Floats
    known: Bools
    labels: LabelRange | None = None

    def covering(self, features: Ints) -> Scaling:
        """The same with places for ``features`` too; new ones are not known."""
        index = np.union1d(self.index, features)
        wider = unmeasured(self.lower, self.upper, index, self.labels)
        place = places_of(index, self.index)
        wider.minimum[place], wider.maximum[place], wider.known[place] = self.minimum, self.maximum, self.known
        return wider

    def placed(self, rows: Rows) -> Rows:
        """``rows``, all of whose features have a place, by their places."""
        return rows._replace(indices=places_of(self.index, rows.indices), n_features=len(self.index) - 1)


def unmeasured(lower: float, upper: float, index: Ints, labels: LabelRange | None = None) -> Scaling:
    """The scaling of features of which nothing is known."""
    m = len(index)
    return Scaling(lower, upper, index, np.zeros(m), np.zeros(m), np.zeros(m, dtype=bool), labels)


def scaled(scaling: Scaling, dataset: Dataset) -> Dataset:
    """``dataset``, all of whose features have a place, with its rows by their places and its labels scaled."""
    return replace(dataset, rows=scaling.placed(dataset.rows), y=scale_labels(scaling, dataset.y))


def occurring(rows: Rows) -> Ints:
    """The features that ``rows`` store, ascending, and 0."""
    return np.union1d([0], feature_names(rows)).astype(np.int64)


def measure(rows: Rows, lower: float = -1.0, upper: float = 1.0) -> Scaling:
    """The scaling that takes each feature's range in ``rows`` to ``lower … upper``."""
    nothing = unmeasured(lower, upper, occurring(rows))
    rows, width = nothing.placed(rows), len(nothing.index)
    minimum, maximum = np.full(width, np.inf), np.full(width, -np.inf)
    np.minimum.at(minimum, rows.indices, rows.data)
    np.maximum.at(maximum, rows.indices, rows.data)
    missing = _missing_somewhere(rows)
    minimum[missing] = np.minimum(minimum[missing], 0.0)
    maximum[missing] = np.maximum(maximum[missing], 0.0)
    known = minimum <= maximum
    return replace(nothing, minimum=np.where(known, minimum, 0.0), maximum=np.where(known, maximum, 0.0), known=known)


def of_both(one: Scaling, other: Scaling) -> Scaling:
    """What was measured on some rows, and on others, of all of them: a feature that either has nowhere is 0 there, but for
    index 0.
    """
    one, other = one.covering(other.index), other.covering(one.index)
    minimum, maximum = np.minimum(one.minimum, other.minimum), np.maximum(one.maximum, other.maximum)
    if one.known[0] != other.known[0]:
        has_it = one if one.known[0] else other
        minimum[0], maximum[0] = has_it.minimum[0], has_it.maximum[0]
    return replace(one, minimum=minimum, maximum=maximum, known=one.known | other.known)


class Survey(NamedTuple):
    """Of all parts: the range of each feature and, where asked for, of labels; how many values are stored; the labels."""

    scaling: Scaling
    n_values: int
    y: Floats


def survey(parts: Iterable[Dataset], lower: float, upper: float, labels: tuple[float, float] | None) -> Survey:
    """Measures ``parts``, of which there may be none; ``labels`` are the limits of these, if they are to be scaled."""
    scaling, n_values, ys = None, 0, [np.empty(0)]
    for part in parts:
        own = measure(part.rows, lower, upper)
        scaling = own if scaling is None else of_both(scaling, own)
        n_values += len(part.rows.data)
        ys.append(part.y)
    y = np.concatenate(ys)
    scaling = unmeasured(lower, upper, np.array([0])) if scaling is None else scaling
    if labels is not None and len(y):
        scaling = replace(scaling, labels=measure_labels(y, *labels))
    return Survey(scaling, n_values, y)


def measure_labels(y: Floats, lower: float, upper: float) -> LabelRange:
    """The scaling that takes the range of ``y`` (n,), n ≥ 1, to ``lower … upper``."""
    return LabelRange(lower, upper, float(y.min()), float(y.max()))


def scale_values(scaling: Scaling, place: Ints | NDArray[np.int32], values: Floats) -> Floats:
    """``values`` of the features at ``place``, scaled; a range's ends become the limits exactly, a feature left out 0."""
    return _line_through(values, scaling.minimum[place], scaling.maximum[place], scaling.lower, scaling.upper)


def scale_labels(scaling: Scaling, y: Floats) -> Floats:
    """Labels (n,), scaled where the scaling has a range for them. A single label becomes the lower limit."""
    at = scaling.labels
    if at is None:
        return y
    single = at.minimum == at.maximum
    return np.full(len(y), at.lower) if single else _line_through(y, at.minimum, at.maximum, at.lower, at.upper)


def label_warning(scaling: Scaling, y: Floats) -> str | None:
    """What to tell of labels (n,) outside of a range that is one point, by which nothing can be scaled; None of others."""
    at = scaling.labels
    beside = 0 if at is None or at.minimum != at.maximum else int((y != at.minimum).sum())
    if at is None or beside == 0:
        return None
    return f"its range of labels is one point, {at.minimum:g}; {beside:,} other labels become {at.lower:g} as well"


def scaled_zeros(scaling: Scaling) -> Floats:
    """What a value that a row lacks becomes, for every place (m,); 0 at index 0, which is not filled in."""
    m = len(scaling.index)
    zeros = scale_values(scaling, np.arange(m), np.zeros(m))
    zeros[0] = 0.0
    return zeros


def unscalable(rows: Rows, scaling: Scaling) -> Ints:
    """Features of which some value in ``rows`` (placed), or a missing one, is scaled to no finite number; ascending."""
    lost = ~np.isfinite(scaled_zeros(scaling)) & _missing_somewhere(rows)
    for some in _blocks(rows):
        lost[some.indices[~np.isfinite(scale_values(scaling, some.indices, some.data))]] = True
    return scaling.index[lost]


def count_nonzeros(rows: Rows, scaling: Scaling) -> int:
    """How many values ``rows`` (placed) would store once scaled."""
    filled_below, count = np.concatenate([[0], np.cumsum(scaled_zeros(scaling) != 0)]), 0
    for some in _blocks(rows):
        before, after = gaps(some)
        run = some.indices > before
        inside = (filled_below[some.indices[run]] - filled_below[before[run]]).sum()
        behind = (filled_below[-1] - filled_below[after]).sum()
        count += int(inside + behind + np.count_nonzero(scale_values(scaling, some.indices, some.data)))
    return count


def _blocks(rows: Rows) -> Iterator[Rows]:
    """Some of the rows at a time: what is made of all their values would take many times their room."""
    return (rows.part(first, last) for first, last in row_blocks(rows.indptr, max(_AT_A_TIME, rows.n_features)))


def gaps(rows: Rows) -> tuple[Ints, Ints]:
    """Where runs of missing features begin: before each stored value (nnz,), and after each row's last (n,).

    Value k of a row is preceded by the missing features ``before[k] … index[k] − 1``, a row is followed by
    ``after[r] … n_features``; runs may be empty. A run starts at 1 or after the value before.
    """
    following = np.concatenate([[1], rows.indices.astype(np.int64) + 1])
    before = following[:-1].copy()
    filled = np.diff(rows.indptr) > 0
    before[rows.indptr[:-1][filled]] = 1
    after = np.where(filled, following[rows.indptr[1:]], 1)
    return before, after


def _missing_somewhere(rows: Rows) -> Bools:
    """Whether some row lacks the feature, (n_features + 1,)."""
    width = rows.n_features + 1
    change = np.zeros(width, np.int64)
    for some in _blocks(rows):
        before, after = gaps(some)
        run = some.indices > before
        starts = np.concatenate([before[run], after[after < width]])
        change += np.bincount(starts, minlength=width) - np.bincount(some.indices[run], minlength=width)
    missing: Bools = np.cumsum(change) > 0
    return missing


def _line_through(values: Floats, minimum: Floats | float, maximum: Floats | float, lower: float, upper: float) -> Floats:
    """lower + (upper − lower)(v − minimum)/(maximum − minimum), exact at both ends; 0 where these are one point."""
    with np.errstate(over="ignore", invalid="ignore"):
        span = np.subtract(maximum, minimum)
        single = span == 0
        out = lower + (upper - lower) * (values - minimum) / np.where(single, 1.0, span)
    out = np.where(values == minimum, lower, np.where(values == maximum, upper, out))
    return np.where(single, 0.0, out)
