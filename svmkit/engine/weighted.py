"""Equations of Newton steps on w: H = I + XᵀΘX of rows with weights, and what a step asks of it.

By features H takes n·d² multiplications in BLAS, d³ to solve and memory for a few d × d matrices; by rows, where these are
fewer, XXᵀ takes their place. H has no eigenvalue below 1, so it is made and solved in float32, which takes half as long, where
what that rounds is little beside I: the step then leads down, and nearly where Newton's would. Else in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import numpy as np

from svmkit import parallel
from svmkit.data import Bools, Floats, Ints, Reals, Rows
from svmkit.engine import linear
from svmkit.engine.cholesky import Factor, NotDefinite

#: Values of rows taken at a time. From so many rows on they are cut into two pieces, from the second number on into four, as
#: there may be threads for; each piece adds up a matrix of its own, so more of them cost more.
_VALUES, _TWO_PIECES, _FOUR_PIECES = 1 << 20, 512, 8192
#: The largest θ_i ‖x_i‖² for which a step may be solved for by rows: beyond it features far smaller than others would be lost,
#: which a matrix over features scales.
_MOST_BY_ROWS = 1e7
#: A sum of squares may have been so many times what it is, before rounding of what went counts.
_LARGEST_PEAK = 64.0
#: Added to the unit diagonal of the scaled matrix, so that rounding leaves it invertible.
_RIDGE = 1e-13
#: Float32 rounds each sum of products by about 2⁻²⁴ of what it adds up. So H is off by about a tenth of I while Σ θ_i ‖x_i‖²,
#: of all rows that have been added or taken off, is at most this. Of rows that are all but the same, the roundings are so, too,
#: and add up to a few times I: a step that then leads up gets no length, and ends its round.
_MOST_ROUNDED = 0.1 * 2.0**24
#: A weight whose root float32 cannot hold is larger.
_LARGEST_WEIGHT = 1e76
#: From so many unknowns on float32 is worth while, and the Cholesky factor takes less time than np.linalg.solve; of that, rows
#: to a block at least, and blocks at most.
_MANY, _LEAST_BLOCK, _BLOCKS = 384, 96, 20
#: Rows with a weight are copied where they are at most one in so many, or as many as there are features.
_FEW_ROWS = 4


class Solved(NamedTuple):
    """H⁻¹·slope, H⁻¹XᵀΘ1 and 1ᵀΘ1 − 1ᵀΘX H⁻¹XᵀΘ1 for H = I + XᵀΘX."""

    down: Floats
    across: Floats
    corner: float


def rows_with_weight(rows: Rows, theta: Floats, which: Ints | None = None) -> tuple[Rows, Floats]:
    """The rows whose weight is not 0, and it; all of them where they are so many that a copy would take much memory.

    ``theta`` are the weights of the rows numbered ``which``, the others' are 0; or of all.
    """
    some, few = np.flatnonzero(theta), max(rows.n // _FEW_ROWS, rows.n_features - 1)
    if len(some) <= few:
        return rows.take(some if which is None else which[some]), theta[some]
    if which is None:
        return rows, theta
    weights = np.zeros(rows.n)
    weights[which] = theta
    return rows, weights


def solve_weighted(rows: Rows, theta: Floats, slope: Floats, gram: Callable[[], Reals]) -> Solved | None:
    """For rows with weights Θ > 0 and a slope (d + 1,), place 0 unused; None where that leaves the range of its numbers.

    ``gram`` makes XᵀΘX, if it is needed, in a new array of either precision, which is used up.
    """
    by_rows = len(theta) < rows.n_features and (theta * rows.sqnorms()).max(initial=0.0) <= _MOST_BY_ROWS
    return _by_rows(rows, theta, slope) if by_rows else _by_features(rows, theta, slope, gram())


def _by_features(rows: Rows, theta: Floats, slope: Floats, gram: Reals) -> Solved | None:
    """By H itself, d × d."""
    border = linear.fold(rows, theta, len(slope))
    both = _solve(gram, np.ones(len(slope) - 1), np.column_stack([slope, border])[1:])
    if both is None:
        return None
    down, across = np.zeros((2, len(slope)))
    down[1:], across[1:] = both.T
    # as the sum of squares it is: the difference is lost to rounding where X spans nearly 1
    rest = 1.0 - linear.dots(rows, across)
    return Solved(down, across, float(theta @ rest**2) + float(across @ across))


def _by_rows(rows: Rows, theta: Floats, slope: Floats) -> Solved | None:
    """By M = XXᵀ + Θ⁻¹, smaller where rows are fewer than features: H⁻¹ = I − XᵀM⁻¹X and H⁻¹XᵀΘ = XᵀM⁻¹."""
    X = rows.to_dense()
    both = _solve(X @ X.T, 1.0 / theta, np.column_stack([X @ slope, np.ones(len(theta))]))
    if both is None:
        return None
    pulled, across = X.T @ both[:, 0], X.T @ both[:, 1]
    return Solved(slope - pulled, across, float(both[:, 1].sum()))


def _solve(matrix: Reals, diagonal: Floats, right: Floats) -> Floats | None:
    """(matrix + diag(diagonal))⁻¹ right, scaled to a unit diagonal; None where that leaves the range of ``matrix``'s numbers.

    ``matrix`` is overwritten.
    """
    matrix.flat[:: len(matrix) + 1] += diagonal
    scale = 1.0 / np.sqrt(matrix.diagonal())
    matrix *= scale
    matrix *= scale[:, None]
    matrix.flat[:: len(matrix) + 1] += _RIDGE
    right = (scale[:, None] * right).astype(matrix.dtype)
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return None
    solved: Floats = scale[:, None] * _of_unit_diagonal(matrix, right).astype(np.float64)
    return solved


def _of_unit_diagonal(matrix: Reals, right: Reals) -> Reals:
    """matrix⁻¹ right; by the Cholesky factor, on all threads, where it is worth while and rounding leaves it one."""
    if len(matrix) >= _MANY:
        try:
            n, block = len(matrix), max(_LEAST_BLOCK, len(matrix) // _BLOCKS)
            factor = Factor(lambda r0, r1, c0, c1: matrix[r0:r1, c0:c1], n, 0.0, matrix.dtype.type, block)
            return factor.backward(factor.forward(right))
        except NotDefinite:
            pass
    solved: Reals = np.linalg.solve(matrix, right)
    return solved


class SetGram:
    """s·Σ weights_i x_i x_iᵀ (d, d) over a set of the rows, for sets that change little from one to the next.

    Rows that have come are added and those that went are taken off. What rounding leaves of these stays, so the sum is made
    anew where half of the set has changed, or a sum of squares has been far larger since: of a few rows with huge values, too;
    or where s has grown and with it what float32 has rounded. Those it may be over are the rows numbered ``which``, or all.
    """

    def __init__(self, rows: Rows, weights: Floats, which: Ints | None = None) -> None:
        self._rows, self._weights, self._which = rows, weights, which
        self.inside = np.zeros(len(weights), dtype=bool)
        self._sum, self._peak = np.zeros((0, 0)), np.zeros(0)
        self._rounded = 0.0  # Σ weights_i ‖x_i‖² of what came to the sum, or went, in float32

    def over(self, inside: Bools, rows: Rows, weights: Floats, s: float) -> Reals:
        """That over the rows where ``inside`` (n,): those are ``rows`` with their ``weights``, others among them have 0.

        In float32 where what that rounds is little beside I. Leavable: the set is then the one before.
        """
        changed, most = np.flatnonzero(inside != self.inside), _MOST_ROUNDED / s
        with parallel.leavable():
            few = 2 * len(changed) < np.count_nonzero(inside)
            if not (few and self._rounded <= most and self._brought_up(changed, inside[changed], most)):
                squares = _squares(rows, weights)
                self._sum = weighted_gram(rows, weights, np.float32 if squares <= most else np.float64)
                self._rounded = squares if squares <= most else 0.0
                self._peak = self._sum.diagonal().copy()
        self.inside = inside
        scaled = s * self._sum
        return scaled.astype(np.float32) if self._rounded and float(self._sum.trace()) <= most else scaled

    def renumber(self, which: Ints | None, weights: Floats, inside: Bools) -> None:
        """Goes on with other rows, among them those of the set, which are where ``inside``."""
        self._which, self._weights, self.inside = which, weights, inside

    @np.errstate(over="ignore", invalid="ignore")
    def _brought_up(self, changed: Ints, came: Bools, most: float) -> bool:
        """Adds and takes off the rows ``changed``; whether the sum is as good as new."""
        rows = self._rows.take(changed if self._which is None else self._which[changed])
        weights = self._weights[changed]
        rounded = self._rounded + _squares(rows, weights)
        real = np.float32 if rounded <= most else np.float64
        more = self._sum + weighted_gram(rows, np.where(came, weights, 0.0), real)
        self._sum = more - weighted_gram(rows, np.where(came, 0.0, weights), real)
        self._rounded = rounded if rounded <= most else self._rounded
        self._peak = np.maximum(self._peak, more.diagonal())
        return bool((self._peak <= _LARGEST_PEAK * self._sum.diagonal()).all())


@np.errstate(over="ignore", invalid="ignore")
def _squares(rows: Rows, weights: Floats) -> float:
    """Σ weights_i ‖x_i‖², of which float32 would round its share; infinite where that is of no use, or cannot hold them."""
    if rows.form == "sparse" or rows.n_features < _MANY or weights.max(initial=0.0) > _LARGEST_WEIGHT:
        return inf
    X = rows.matrix()
    return float(weights @ np.einsum("ij,ij->i", X, X))


def weighted_gram(rows: Rows, weights: Floats, real: type[np.floating[Any]] = np.float64) -> Floats:
    """Σ_i weights_i x_i x_iᵀ (d, d) over features 1 … d = ``rows.n_features``; ``weights`` (n,) ≥ 0, 0 costs nothing.

    Products are made in ``real`` numbers, and sums of many in float64. Not finite where it leaves their range.
    """
    d = rows.n_features
    pieces = 1 if rows.n < _TWO_PIECES else 2 if rows.n < _FOUR_PIECES else 4
    cuts = np.linspace(0, rows.n, pieces + 1).astype(np.int64).tolist()
    sums = np.zeros((pieces, d, d))
    roots = np.sqrt(weights).astype(real)

    def piece(number: int) -> None:
        first, last = cuts[number], cuts[number + 1]
        step = max(1, _VALUES // max(d, 1))
        for r0 in range(first, last, step):
            parallel.stay()
            r1 = min(r0 + step, last)
            used = np.flatnonzero(roots[r0:r1])
            if len(used):
                some = _dense(rows, r0, r1, used).astype(real, copy=False)
                some *= roots[r0:r1][used][:, None]
                with np.errstate(over="ignore", invalid="ignore"):
                    sums[number] += some.T @ some

    parallel.run_pieces(piece, pieces)
    total: Floats = sums.sum(axis=0) if pieces > 1 else sums[0]
    return total


def _dense(rows: Rows, first: int, last: int, used: Ints) -> Reals:
    """Those rows of first … last − 1 that ``used`` numbers, (k, d), in a new array."""
    if rows.form == "dense":
        return rows.matrix()[first:last][used]
    part: Floats = rows.part(first, last).to_dense()[used, 1:]
    return part
