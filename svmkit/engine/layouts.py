"""Which loops over kernel values suit rows, and which precision does: by the features they have, and by their values.

Where features are few there is a table of them, wide rows with few nonzeros are sorted by feature, special values have loops of
their own (table.py, tiled.py, sorted.py, binary.py, pixels.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from svmkit._llvm import cpu_has
from svmkit.data import Ints, Rows
from svmkit.engine import binary, pixels, rounding
from svmkit.engine.apart import any_far
from svmkit.engine.sorted import FREQUENT
from svmkit.engine.tiled import TILE_FEATURES
from svmkit.engine.words import units_of
from svmkit.problem import PRECOMPUTED, RBF, Kernel

Real = Literal["f4", "f8"]
#: Which loops suit the rows: see table.py, tiled.py, sorted.py, binary.py, pixels.py.
Form = Literal["table", "tiled", "sorted", "binary", "pixels"]

#: From this many features on a block's table no longer fits the cache; columns are then sorted by feature instead.
TABLE_FEATURES = 4096
#: But where rows have more than this share of all features: a lookup costs as much as an entry of a table for each column that
#: has the feature.
_CROWDED_SHARE = 1 / 16
#: So many features have a table of 64 MB at most (AVX-512; of other CPUs 32). Tables of more are no larger than the rows.
_WIDEST_TABLE, _NONZEROS_A_LINE = 1 << 17, 64
#: From this many nonzeros of a row to a tile of features on, where a table is larger than the first-level cache (one and a half
#: tiles), working tile by tile pays: with AVX-512 a fifth on MNIST, two fifths on dense rows. Other CPUs' tables have half the
#: columns, for which a tile is begun as often.
TILED_NONZEROS = 12 if cpu_has("avx512f") else 20
#: Columns that must have a feature for it to have a line in sorted.py's table: of 16 columns such a line takes one step.
_FREQUENT_SHARE = 1 / 32
#: Rows of a basis that must have a feature for every row to have a place for it.
_DENSE_SHARE = 2 / 3
#: Nonzeros whose features are counted in one go, at least.
_COUNTED = 1 << 18


class Layout(NamedTuple):
    """How rows are packed: for the loops of which ``form``, and what these are told, each of what concerns it.

    pixels         ``units``, as in words.py
    sorted         the ``frequent`` features, which are numbered first
    binary         whether rows have ``few`` ones
    table, tiled   the ``dense`` features, for which every row has a place; and whether an rbf value takes the ``differences``
                   of these in place of products
    """

    form: Form
    units: float = 0.0
    frequent: tuple[int, ...] = ()
    few: bool = False
    dense: tuple[int, ...] = ()
    differences: bool = False


def suited(left: Rows, basis: Rows, kernel: Kernel) -> tuple[Real, Layout]:
    """The precision that serves for training, and the loops that suit rows against those of a basis in it."""
    both = (left,) if left is basis else (left, basis)
    layout = _layout_in_float32(both, kernel)
    return ("f8", layout_of(left, basis, kernel, "f8")) if layout is None else ("f4", layout)


def layout_of(left: Rows, basis: Rows, kernel: Kernel, real: Real, may_differ: bool = True) -> Layout:
    """Which loops suit rows against those of a basis: by their features, how crowded these are, and what the values are.

    The special loops need both to be of their kind; otherwise the basis decides, unless the others are too wide: a few of these
    may be asked for again, and should have the same values. Where products are too coarse, differences are taken, in float32
    unless they may not.
    """
    both = (left,) if left is basis else (left, basis)
    return (
        (_layout_in_float32(both, kernel) if real == "f4" and may_differ else None)
        or special_layout(both, kernel, real if may_differ else "f8")  # not those that take text for whole numbers
        or _layout_of_far(both, kernel, real)
        or _layout_for_products(both)
    )


def _layout_in_float32(both: Sequence[Rows], kernel: Kernel) -> Layout | None:
    """The loops whose float32 values are near enough, if there are such; precomputed ones are as given.

    Inner products that are counted, or of whole numbers (binary.py, pixels.py), are exact.
    """
    if kernel.kind == PRECOMPUTED:
        return None
    special, form, longest_sum = special_layout(both, kernel, "f4"), _form_of(both), _longest_sum(both)
    if rounding.products_serve(both, kernel, longest_sum, exact=special is not None):
        return special or _layout_for_products(both)
    if kernel.kind == RBF and form != "sorted":
        for most in both[::-1]:
            dense = _common(most, both)
            if dense and rounding.differences_serve(both, kernel, dense, longest_sum, others_first=form == "table"):
                return Layout(form, dense=dense, differences=True)
    return None


def _layout_of_far(both: Sequence[Rows], kernel: Kernel, real: Real) -> Layout | None:
    """The float64 loops that take differences of dense features, where rows are far from the origin in these alone."""
    if kernel.kind != RBF or real == "f4" or (form := _form_of(both)) == "sorted" or not any_far(both, kernel.gamma):
        return None
    dense = _common(both[-1], both)
    serve = dense and not any_far(both, kernel.gamma, without=dense)
    return Layout(form, dense=dense, differences=True) if serve else None


def _layout_for_products(both: Sequence[Rows]) -> Layout:
    form, basis = _form_of(both), both[-1]
    if form == "sorted":
        return Layout(form, frequent=_frequent(basis))
    pairs = cpu_has("avx512f")  # as many registers as the sums of two rows take
    return Layout(form, dense=_common(basis, both) if pairs else ())


def _form_of(both: Sequence[Rows]) -> Form:
    basis, widest = both[-1], max(rows.n_features for rows in both)
    if widest >= TABLE_FEATURES:
        crowded = len(basis.indices) > _CROWDED_SHARE * basis.n * widest
        if not crowded or widest > max(_WIDEST_TABLE, len(basis.indices) // _NONZEROS_A_LINE):
            return "sorted"
    width = basis.n_features + 1
    filled = len(basis.indices) * TILE_FEATURES > TILED_NONZEROS * basis.n * width
    return "tiled" if filled and 2 * width > 3 * TILE_FEATURES else "table"


def _longest_sum(both: Sequence[Rows]) -> int:
    """How many numbers are added to one another at most: of all features, or of a tile and then of the tiles."""
    width = max(rows.n_features for rows in both) + 1
    return TILE_FEATURES + width // TILE_FEATURES + 2 if _form_of(both) == "tiled" else width


def special_layout(both: Sequence[Rows], kernel: Kernel, real: Real) -> Layout | None:
    """The special loops for both, if they are the same."""
    last = _special_of(both[-1], kernel, real)
    first = last if last is None or len(both) == 1 else _special_of(both[0], kernel, real)
    if first is None or last is None or first._replace(few=last.few) != last:
        return None
    return first._replace(few=first.few and last.few)


def _special_of(rows: Rows, kernel: Kernel, real: Real) -> Layout | None:
    """Counting for rbf where every value is 1, and not too many to a row; or small whole numbers. Both with AVX2."""
    if rows.n_features >= TABLE_FEATURES or rows.precomputed or rows.form == "dense":
        return None
    longest = int(np.diff(rows.indptr).max(initial=0))
    if kernel.kind == RBF and longest <= binary.MOST_ONES and cpu_has(binary.NEEDED) and bool((rows.data == 1.0).all()):
        return Layout("binary", few=real == "f4" and longest <= binary.FEW_ONES and cpu_has(binary.WIDE))
    units = units_of(rows, kernel, exact=real == "f8") if cpu_has(pixels.NEEDED) else 0.0
    return Layout("pixels", units) if units else None


def _common(most: Rows, both: Sequence[Rows]) -> tuple[int, ...]:
    """The features that ``most`` rows have; none where some of ``both`` have so few that the places would be far more."""
    found = np.flatnonzero(_occurrences(most) > _DENSE_SHARE * most.n)
    if any(_DENSE_SHARE * len(found) * rows.n > len(rows.indices) for rows in both):
        return ()
    return tuple(found.tolist())


def _occurrences(rows: Rows) -> Ints:
    """How many rows have each feature, (n_features + 1,); some at a time, since ``bincount`` makes longer integers of them."""
    counts = np.zeros(rows.n_features + 1, np.int64)
    step = max(_COUNTED, len(counts))
    for first in range(0, len(rows.indices), step):
        counts += np.bincount(rows.indices[first : first + step], minlength=len(counts))
    return counts


def _frequent(rows: Rows) -> tuple[int, ...]:
    """The features, at most FREQUENT, that so many rows have that a line of a table is shorter than looking them up."""
    counts = _occurrences(rows)
    often = np.flatnonzero(counts >= _FREQUENT_SHARE * max(rows.n, 1))
    most = often[np.argsort(-counts[often], kind="stable")[:FREQUENT]]
    return tuple(np.sort(most).tolist())
