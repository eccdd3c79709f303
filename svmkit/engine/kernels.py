"""The kernel engine: blocks K[R, S], fused products K[R, S]·v, the diagonal, over packed rows; it counts what it evaluates.

Values come in float32 for training (where the data allow an error of 1e-6 √(K_ii K_jj)) and in float64 for all that is
reported: predictions, certificates, the solvers' final check. Sums are float64 always. Nothing is cached: on cheap rows a
recomputed value costs less than one read back from memory.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit import parallel
from svmkit.data import Floats, Ints, Rows
from svmkit.engine import linear
from svmkit.engine.apart import FAR_HALF, put_apart
from svmkit.engine.binary import BYTES, apply_binary, apply_few, block_binary, block_few
from svmkit.engine.columns import mirror, turn
from svmkit.engine.layouts import TABLE_FEATURES, Form, Layout, Real, layout_of, suited
from svmkit.engine.packed import Packed, pack, packed_in_parts, prepared, renumbered
from svmkit.engine.pixels import COLUMNS, apply_pixels, block_pixels
from svmkit.engine.sorted import apply_sorted, block_sorted
from svmkit.engine.space import (
    aligned,
    binary_space,
    kept,
    lanes,
    pixel_space,
    sorted_space,
    table_columns,
    table_space,
    tiled_space,
)
from svmkit.engine.table import apply_distances, apply_pairs, apply_table, block_distances, block_pairs, block_table
from svmkit.engine.tiled import apply_tiled, apply_tiled_distances, block_tiled, block_tiled_distances
from svmkit.features import feature_names, renamed
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, Kernel

#: Held while evaluations are counted: blocks are made on several threads.
_COUNTING = Lock()
#: Kernel values a piece of work should hold at least, so that it costs far more than its start.
PIECE_VALUES = 250_000
#: Pieces at most, but where each would hold more kernel values than this: between pieces work can be left.
_PIECES, _LONG_PIECE_VALUES = 64, 1 << 28
#: A row against fewer columns takes no less time than against so many.
LEAST_COLUMNS = 64
#: Nonzeros of a piece's rows: 8 bytes each in float32.
PIECE_NONZEROS: dict[Form, int] = {"table": 1 << 17, "tiled": 1 << 19, "sorted": 1 << 18, "binary": 1 << 16, "pixels": 1 << 16}
#: As PIECE_VALUES, where values are stored. The quicker the loops, the more it takes to be worth waking a thread.
BLOCK_PIECE_VALUES: dict[Form, int] = {"table": 300_000, "tiled": 65_536, "sorted": 65_536, "binary": 600_000, "pixels": 65_536}
#: Rows whose values against some 64 columns stay in the second-level cache until they are turned.
STRIP_ROWS = 2048
#: Nonzeros of rows on the left, and of the basis of ``cross_apply``, that are packed at a time: 32 MB of scaled values, enough
#: to be cut into long pieces; smaller arrays, once freed, would stay with glibc. Rows of that basis at least: all on the left
#: are packed once more for every part of it.
APPLIED_NONZEROS, LEAST_BASIS = 1 << 22, 1024


class Engine:
    """Kernel values among the rows of one problem; ``evaluations`` counts those asked for. ``block`` serves several threads at
    once, all else one at a time.
    """

    def __init__(
        self, rows: Rows, kernel: Kernel, real: Real | None = None, layout: Layout | None = None, may_move: bool = True
    ) -> None:
        """``layout`` is heeded only with ``real``; both suit the rows where not given, which may be moved (centred.py)."""
        self.rows, self.kernel, self.evaluations = rows, kernel, 0
        self._prepared = partial(prepared, kernel, rows) if may_move else partial(renumbered, rows)
        (narrow,) = self._prepared()
        if real is None:
            real, layout = suited(narrow, narrow, kernel)
        self.real, self._layout = real, layout or layout_of(narrow, narrow, kernel, real)
        self.packed = pack(narrow, kernel, real, self._layout)

    @cached_property
    def packed(self) -> Packed:
        """The rows as the loops take them, packed again where they were put away."""
        (narrow,) = self._prepared()
        return pack(narrow, self.kernel, self.real, self._layout)

    def put_away(self) -> None:
        """Gives back the memory of the packed rows, if that is much; for work that needs memory and not them."""
        if len(self.rows.data) >= APPLIED_NONZEROS:
            self.__dict__.pop("packed", None)

    def diagonal(self) -> Floats:
        """K(x_i, x_i) (n,) in float64; not counted."""
        return diagonal(self.rows, self.kernel)

    def apply(self, left: Packed, columns: Ints, weights: Floats, out: Floats) -> None:
        """out (left.n,) += Σ_c K(left, row columns[c])·weights[c]; ``left`` is ``packed`` or rows taken from it.

        With ``weights`` (columns, k), ``out`` is (left.n, k): k products for the same kernel values.
        """
        self.evaluations += left.n * len(columns)
        one = weights.ndim == 1
        weights, out = (weights[:, None], out[:, None]) if one else (weights, out)
        _accumulate(self.kernel, left, self.packed, columns, weights, out)

    def block(self, rows: Ints, columns: Ints, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """K[rows, columns] in the training precision, in a new array or the corner of ``out``; on any thread."""
        with _COUNTING:
            self.evaluations += len(rows) * len(columns)
        if out is None:
            out = np.empty((len(rows), len(columns)), dtype=self.real)
        _fill(self.kernel, self.packed, rows, self.packed, columns, out)
        return out

    def whole_rows(self, numbers: Ints, out: NDArray[Any]) -> None:
        """out (len(numbers), n) = K[numbers, every row], in the training precision or rounded to float32.

        For few rows across all columns: ``block`` would fill one table of columns after another for the sake of those rows.
        """
        self.evaluations += len(numbers) * self.packed.n
        _fill_across(self.kernel, self.packed, numbers, out)


def stream_engine(rows: Rows, kernel: Kernel, n_features: int) -> Engine:
    """For examples that come a few at a time: no kernel value depends on which they come with, as those of ``Engine`` may.

    All are float64, from one of two loops, as ``n_features`` says: these give the same values, and the same sums of up to 1024
    of them, of more perhaps another last bit. A table has no more lines than features that occur, whatever their numbers.
    """
    layout = Layout("table" if n_features < TABLE_FEATURES else "sorted")
    if layout.form == "table" and rows.n_features >= TABLE_FEATURES:
        rows = renamed(rows, feature_names(rows))
    return Engine(rows, kernel, "f8", layout, may_move=False)


def diagonal(rows: Rows, kernel: Kernel) -> Floats:
    """K(x_i, x_i) (n,) in float64; nan at a precomputed row whose values are not known."""
    if kernel.kind == PRECOMPUTED:
        return np.ascontiguousarray(rows.gram[np.arange(rows.n), rows.serial - 1])
    if kernel.kind == RBF:
        return np.ones(rows.n)
    square = rows.sqnorms()
    if kernel.kind == LINEAR:
        return square
    with np.errstate(over="ignore", invalid="ignore"):
        argument = kernel.gamma * square + kernel.coef0
        values: Floats = argument**kernel.degree if kernel.kind == POLYNOMIAL else np.tanh(argument)
    return values


def cross_apply(
    left: Rows, basis: Rows, kernel: Kernel, weights: Floats, real: Real = "f8", may_differ: bool = True,
    numbers: Ints | None = None,
) -> Floats:  # fmt: skip
    """K(left, basis) @ weights, (left.n, weights.shape[1]), kernel values in float64 unless told otherwise, sums always; the
    block is never stored. float32 gives way to float64 where it is too coarse; without ``may_differ`` it does not, and rbf
    values come from inner products of the ``prepared`` rows. Of ``left`` only the rows ``numbers``, where these are given.

    Basis rows whose weights are 0 take no time, and rows are copied some at a time: to leave rows out, give ``numbers`` and
    weights of 0 rather than copies. With the linear kernel it is left · (basisᵀ weights): O(nonzeros) for each column of
    weights.
    """
    parts = prepared(kernel, left) if basis is left else prepared(kernel, left, basis)
    if kernel.kind == LINEAR:
        return linear.products(parts[0], parts[-1], weights)[slice(None) if numbers is None else numbers]
    used = np.flatnonzero(weights.any(axis=1))
    if kernel.kind == PRECOMPUTED:
        return _of_a_matrix(left, basis.serial[used] - 1, weights[used], np.arange(left.n) if numbers is None else numbers)
    if real == "f4" and may_differ:
        real, layout = suited(parts[0], parts[-1], kernel)
    else:
        layout = layout_of(parts[0], parts[-1], kernel, real, may_differ)
    out = np.zeros((left.n if numbers is None else len(numbers), weights.shape[1]))
    chosen, how = None if len(used) == basis.n else used, (kernel, real, layout)
    for here, columns in packed_in_parts(parts[-1], chosen, APPLIED_NONZEROS, LEAST_BASIS, *how):
        for there, some in packed_in_parts(parts[0], numbers, APPLIED_NONZEROS, 1, *how):
            _accumulate(kernel, some, columns, np.arange(columns.n), weights[used[here]], out[there])
            del some  # before the next are packed
        del columns
    return out


def _of_a_matrix(left: Rows, columns: Ints, weights: Floats, numbers: Ints) -> Floats:
    """``cross_apply`` of precomputed kernel values, few of them copied at a time."""
    step = max(1, APPLIED_NONZEROS // max(1, len(columns)))
    parts = (numbers[first : first + step, None] for first in range(0, len(numbers), step))
    return np.concatenate([np.empty((0, weights.shape[1])), *(left.gram[some, columns] @ weights for some in parts)])


def afresh(rows: Rows, kernel: Kernel, *points: Floats) -> tuple[list[Floats], int]:
    """K·p of each of ``points`` (n,), by float64 kernel values; and how many of these count for it.

    What a run has added up has its rounding, and that of float32 values: much, where C is large.
    """
    weights = np.column_stack(points)
    columns = [np.ascontiguousarray(column) for column in cross_apply(rows, rows, kernel, weights).T]
    return columns, rows.n * int(np.count_nonzero(weights.any(axis=1)))


def products_by_group(left: Rows, basis: Rows, kernel: Kernel, starts: Ints, weights: Floats) -> Floats:
    """``cross_apply`` to each group of basis rows by itself, (groups, left.n, weights.shape[1]), of which one at a time is
    packed, and ``left`` only once, where they are packed: the linear kernel goes by way of w.

    Group g is the rows ``starts[g] … starts[g + 1] − 1``.
    """
    out = np.zeros((len(starts) - 1, left.n, weights.shape[1]))
    groups = list(pairwise(starts.tolist()))
    if kernel.kind == LINEAR:
        for g, (a, b) in enumerate(groups):
            out[g] = cross_apply(left, basis.part(a, b), kernel, weights[a:b])
        return out
    narrow, own = prepared(kernel, left, basis)
    layout = layout_of(narrow, own, kernel, "f8")
    for there, some in packed_in_parts(narrow, None, APPLIED_NONZEROS, 1, kernel, "f8", layout):
        for g, (a, b) in enumerate(groups):
            columns = pack(own.part(a, b), kernel, "f8", layout)
            _accumulate(kernel, some, columns, np.arange(b - a), weights[a:b], out[g, there])
    return out


class Columns:
    """Rows packed once a layout, to be the columns of many blocks K(left, rows) in float64, on any thread."""

    def __init__(self, rows: Rows, kernel: Kernel, layout: Layout | None = None) -> None:
        """With the ``layout``, or that which suits each block's rows, upon which last digits may depend."""
        self.rows, self.kernel, self._layout = rows, kernel, layout
        self._packed: dict[Layout, Packed] = {}

    def block(self, left: Rows) -> Floats:
        """K(left, rows), (left.n, rows.n)."""
        narrow, own = prepared(self.kernel, left, self.rows)
        layout = self._layout or layout_of(narrow, own, self.kernel, "f8")
        basis = self._packed.get(layout) if own is self.rows else None
        if basis is None:
            basis = pack(own, self.kernel, "f8", layout)
            if own is self.rows:
                self._packed[layout] = basis
        out = np.empty((left.n, own.n))
        _fill(self.kernel, pack(narrow, self.kernel, "f8", layout), np.arange(left.n), basis, np.arange(own.n), out)
        return out


# --- how the work is cut and which loop does it ---------------------------------------------------------------------------


def _accumulate(kernel: Kernel, left: Packed, basis: Packed, columns: Ints, weights: Floats, out: Floats) -> None:
    """out (left.n, k) += K(left, basis[columns]) @ weights (columns, k), by pieces of rows."""
    if len(columns) == 0:
        return
    if kernel.kind == PRECOMPUTED:
        out += left.gram[:, basis.serial[columns] - 1] @ weights
        return
    if left.far or basis.far:
        _accumulate_apart(kernel, left, basis, columns, weights, out)
        return
    real, form, width = left.real, left.form, _width(left, basis)
    stride = -(-len(columns) // 128) * 128  # weights are read a block of columns at a time, the last one whole too
    padded = aligned((weights.shape[1], stride), "f8")
    padded[:, : len(columns)] = weights.T
    padded[:, len(columns) :] = 0.0
    product = (padded.reshape(-1), stride, out)
    head, own, rest = _kernel_arguments(kernel, real), _arrays(left), (*_arrays(basis), columns, *product)
    places = left.places

    def piece(r0: int, r1: int) -> None:
        if form == "sorted":
            apply_sorted[real](*head, *own, places, r0, r1, *rest, *sorted_space(basis, columns, real, width))
        elif form == "tiled":
            loops = apply_tiled_distances if left.differences else apply_tiled
            loops[real](*head, left.dense, *own, places, r0, r1, *rest, *tiled_space(real, width, len(columns)))
        elif form == "binary":
            lists = (left.indptr, left.indices, r0, r1, basis.indptr, basis.indices, columns)
            apply = apply_few if left.few else apply_binary[real]
            apply(lanes(real), *lists, *product, *binary_space(kernel, left, width, len(columns)))
        elif form == "pixels":
            space = pixel_space(real, width, len(columns))
            apply_pixels[real](*head, left.factor, *own, r0, r1, *rest, *space)
        else:
            loops = apply_distances if left.differences else apply_pairs if left.dense else apply_table
            loops[real](*head, left.dense, *own, r0, r1, *rest, *table_space(real, width, len(columns)))

    _for_row_pieces(left, len(columns), piece)


def _accumulate_apart(kernel: Kernel, left: Packed, basis: Packed, columns: Ints, weights: Floats, out: Floats) -> None:
    """``_accumulate`` where some pairs have a far row: rows with such pairs by blocks, the others as ever."""
    places = left.places
    far = left.half[places] > FAR_HALF if (basis.half[columns] <= FAR_HALF).all() else np.ones(left.n, dtype=bool)
    near, weights = np.flatnonzero(~far), np.ascontiguousarray(weights)
    sums = out[near]
    _accumulate(kernel, replace(left.take(near), far=False), replace(basis, far=False), columns, weights, sums)
    out[near] = sums
    parts = np.array_split(np.flatnonzero(far), max(1, int(far.sum()) * len(columns) // PIECE_VALUES))
    shape, turned = (len(parts[0]), len(columns)), np.ascontiguousarray(weights.T)

    def piece(number: int) -> None:
        rows = parts[number]
        space: Floats = kept("apart", shape, lambda: np.empty(shape))
        values = space[: len(rows)]
        _fill(kernel, left, places[rows], basis, columns, values)
        for j in range(out.shape[1]):
            out[rows, j] += np.einsum("rc,c->r", values, turned[j])

    parallel.run_pieces(piece, len(parts))


def _fill(kernel: Kernel, left: Packed, rows: Ints, basis: Packed, columns: Ints, out: NDArray[Any]) -> None:
    """K(left[rows], basis[columns]) into the corner of ``out``, by pieces of columns."""
    if kernel.kind == PRECOMPUTED:
        out[: len(rows), : len(columns)] = left.gram[np.ix_(rows, basis.serial[columns] - 1)]
        return
    step = {"binary": 4 * BYTES, "pixels": COLUMNS}.get(left.form, table_columns(left.real))
    n_steps = -(-len(columns) // step)
    n_pieces = min(n_steps, max(1, len(rows) * len(columns) // BLOCK_PIECE_VALUES[left.form]))
    if left.form == "sorted":  # a row's features are looked up once a piece
        n_pieces = min(n_pieces, parallel.threads())
    symmetric = left.form == "tiled" and left is basis and rows is columns  # in other forms a value costs no more than its copy

    def piece(number: int) -> None:
        number = n_pieces - 1 - number  # in a symmetric block the last are the longest
        c0 = n_steps * number // n_pieces * step
        c1 = min(n_steps * (number + 1) // n_pieces * step, len(columns))
        _fill_piece(kernel, left, rows[:c1] if symmetric else rows, basis, columns, c0, c1, out)
        if symmetric:
            mirror[left.real](out, c0, c1)

    parallel.run_pieces(piece, n_pieces)


def _fill_piece(
    kernel: Kernel, left: Packed, rows: Ints, basis: Packed, columns: Ints, c0: int, c1: int, out: NDArray[Any]
) -> None:
    """Columns c0 … c1−1 of ``_fill``, by the loop that suits the rows."""
    real, form, width = left.real, left.form, _width(left, basis)
    head, rest = _kernel_arguments(kernel, real), (*_arrays(left), rows, 0, len(rows), *_arrays(basis), columns, c0, c1, out)
    if form == "sorted":
        block_sorted[real](*head, *rest, *sorted_space(basis, columns, real, width))
    elif form == "tiled":
        loops = block_tiled_distances if left.differences else block_tiled
        loops[real](*head, left.dense, *rest, *tiled_space(real, width, c1 - c0))
    elif form == "binary":
        lists = (left.indptr, left.indices, rows, 0, len(rows), basis.indptr, basis.indices, columns)
        block = block_few if left.few else block_binary[real]
        block(*lists, c0, c1, out, *binary_space(kernel, left, width, c1 - c0))
    elif form == "pixels":
        block_pixels[real](*head[:3], left.factor, *rest, *pixel_space(real, width, c1 - c0))
    else:
        loops = block_distances if left.differences else block_pairs if left.dense else block_table
        loops[real](*head, left.dense, *rest, *table_space(real, width, c1 - c0))
    if left.far or basis.far:
        put_apart(*_arrays(left), rows, *_arrays(basis), columns, c0, c1, out)


def _fill_across(kernel: Kernel, packed: Packed, numbers: Ints, out: NDArray[Any]) -> None:
    """K(packed[numbers], packed) into ``out``: blocks of all rows, by strips of them, against ``numbers``; then turned."""
    if kernel.kind == PRECOMPUTED:
        out[:] = packed.gram[np.ix_(numbers, packed.serial - 1)]
        return
    count = len(numbers)
    if count == 0:
        return

    def piece(r0: int, r1: int) -> None:
        for first in range(r0, r1, STRIP_ROWS):
            rows = np.arange(first, min(first + STRIP_ROWS, r1))
            values = np.empty((len(rows), count), packed.real)
            _fill_piece(kernel, packed, rows, packed, numbers, 0, count, values)
            turn[packed.real, out.dtype.str[1:]](values, first, out)

    _for_row_pieces(packed, count, piece)


def _width(left: Packed, basis: Packed) -> int:
    """Places for every feature number of either."""
    return max(left.n_features, basis.n_features) + 1


def _for_row_pieces(left: Packed, n_columns: int, work: Any) -> None:
    """Calls ``work(r0, r1)`` for pieces of the rows, on all threads.

    A piece's rows should be many, since each piece spreads the columns out for itself, and stay in the second-level cache while
    it goes through the columns; but where a tile of the table serves many rows (tiled.py) these are read seldom, and need not.
    A row's value does not depend on the cuts.
    """
    n_rows = left.n
    n_pieces = max(left.nonzeros // PIECE_NONZEROS[left.form], min(n_rows // 64, 2 * parallel.threads()))
    values = n_rows * max(n_columns, LEAST_COLUMNS)
    n_pieces = max(1, min(max(_PIECES, values // _LONG_PIECE_VALUES), n_pieces, values // PIECE_VALUES))
    if n_pieces > 1:
        n_pieces = -(-n_pieces // parallel.threads()) * parallel.threads()  # the last ones end together
    parallel.run_ranges(work, n_rows, n_pieces)


def _arrays(packed: Packed) -> tuple[Ints, NDArray[np.int32], NDArray[Any], NDArray[Any]]:
    return packed.indptr, packed.indices, packed.data, packed.half


def _kernel_arguments(kernel: Kernel, real: Real) -> tuple[int, float, int, int]:
    return kernel.kind, kernel.coef0, kernel.degree, lanes(real)
