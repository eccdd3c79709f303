"""Equations of Newton steps on w: H = I + XᵀΘX of rows with weights, in float64, and what a step asks of it.

By features H takes n·d² multiplications in BLAS, d³ to solve and memory for a few d × d matrices; by rows, where these are
fewer, XXᵀ takes their place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from svmkit import parallel
from svmkit.data import Bools, Floats, Ints, Rows
from svmkit.engine import linear

#: Values of rows taken at a time; pieces the rows are cut into at most, and rows of a piece at least: each piece adds up a
#: matrix of its own.
_VALUES, _PIECES, _PIECE_ROWS = 1 << 20, 4, 512
#: The largest θ_i ‖x_i‖² for which a step may be solved for by rows: beyond it features far smaller than others would be lost,
#: which a matrix over features scales.
_MOST_BY_ROWS = 1e7
#: A sum of squares may have been so many times what it is, before rounding of what went counts.
_LARGEST_PEAK = 64.0
#: Added to the unit diagonal of the scaled matrix, so that rounding leaves it invertible.
_RIDGE = 1e-13
#: Rows with a weight are copied where they are at most one in so many, or as many as there are features.
_FEW_ROWS = 4


class Solved(NamedTuple):
    """H⁻¹·slope, H⁻¹XᵀΘ1 and 1ᵀΘ1 − 1ᵀΘX H⁻¹XᵀΘ1 for H = I + XᵀΘX."""

    down: Floats
    across: Floats
    corner: float


def rows_with_weight(rows: Rows, theta: Floats) -> tuple[Rows, Floats]:
    """The rows whose weight is not 0, and it; all of them where they are so many that a copy would take much memory."""
    some, few = np.flatnonzero(theta), max(rows.n // _FEW_ROWS, rows.n_features - 1)
    return (rows.take(some), theta[some]) if len(some) <= few else (rows, theta)


def solve_weighted(rows: Rows, theta: Floats, slope: Floats, gram: Callable[[], Floats]) -> Solved | None:
    """For rows with weights Θ > 0 and a slope (d + 1,), place 0 unused; None where that leaves float64's range.

    ``gram`` makes XᵀΘX, if it is needed, in a new array, which is used up.
    """
    by_rows = len(theta) < rows.n_features and (theta * rows.sqnorms()).max(initial=0.0) <= _MOST_BY_ROWS
    return _by_rows(rows, theta, slope) if by_rows else _by_features(rows, theta, slope, gram())


def _by_features(rows: Rows, theta: Floats, slope: Floats, gram: Floats) -> Solved | None:
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


def _solve(matrix: Floats, diagonal: Floats, right: Floats) -> Floats | None:
    """(matrix + diag(diagonal))⁻¹ right, scaled to a unit diagonal; None where that leaves float64's range.

    ``matrix`` is overwritten.
    """
    matrix.flat[:: len(matrix) + 1] += diagonal
    scale = 1.0 / np.sqrt(matrix.diagonal())
    matrix *= scale
    matrix *= scale[:, None]
    matrix.flat[:: len(matrix) + 1] += _RIDGE
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return None
    solved: Floats = scale[:, None] * np.linalg.solve(matrix, scale[:, None] * right)
    return solved


class SetGram:
    """Σ weights_i x_i x_iᵀ (d, d) over a set of the rows, for sets that change little from one to the next.

    Rows that have come are added and those that went are taken off. What rounding leaves of these stays, so the sum is made
    anew where half of the set has changed, or a sum of squares has been far larger since: of a few rows with huge values, too.
    """

    def __init__(self, rows: Rows, weights: Floats) -> None:
        self._rows, self._weights = rows, weights
        self._inside = np.zeros(rows.n, dtype=bool)
        self._sum, self._peak = np.zeros((0, 0)), np.zeros(0)

    def over(self, inside: Bools, rows: Rows, weights: Floats) -> Floats:
        """The sum over the rows where ``inside`` (n,): those are ``rows`` with their ``weights``, others among them have 0.

        Leavable: the set is then the one before.
        """
        changed = np.flatnonzero(inside != self._inside)
        with parallel.leavable():
            if not (2 * len(changed) < np.count_nonzero(inside) and self._brought_up(changed, inside[changed])):
                self._sum = weighted_gram(rows, weights)
                self._peak = self._sum.diagonal().copy()
        self._inside = inside
        return self._sum

    @np.errstate(over="ignore", invalid="ignore")
    def _brought_up(self, changed: Ints, came: Bools) -> bool:
        """Adds and takes off the rows ``changed``; whether the sum is as good as new."""
        more = self._sum + self._of(changed[came])
        self._sum = more - self._of(changed[~came])
        self._peak = np.maximum(self._peak, more.diagonal())
        return bool((self._peak <= _LARGEST_PEAK * self._sum.diagonal()).all())

    def _of(self, some: Ints) -> Floats:
        return weighted_gram(self._rows.take(some), self._weights[some])


def weighted_gram(rows: Rows, weights: Floats) -> Floats:
    """Σ_i weights_i x_i x_iᵀ (d, d) over features 1 … d = ``rows.n_features``; ``weights`` (n,) ≥ 0, 0 costs nothing.

    Not finite where it leaves the range of doubles.
    """
    d = rows.n_features
    pieces = max(1, min(_PIECES, rows.n // _PIECE_ROWS))
    cuts = np.linspace(0, rows.n, pieces + 1).astype(np.int64).tolist()
    sums = np.zeros((pieces, d, d))
    roots = np.sqrt(weights)

    def piece(number: int) -> None:
        first, last = cuts[number], cuts[number + 1]
        step = max(1, _VALUES // max(d, 1))
        for r0 in range(first, last, step):
            parallel.stay()
            r1 = min(r0 + step, last)
            used = np.flatnonzero(roots[r0:r1])
            if len(used):
                some = _dense(rows, r0, r1, used)
                some *= roots[r0:r1][used][:, None]
                with np.errstate(over="ignore", invalid="ignore"):
                    sums[number] += some.T @ some

    parallel.run_pieces(piece, pieces)
    total: Floats = sums.sum(axis=0) if pieces > 1 else sums[0]
    return total


def _dense(rows: Rows, first: int, last: int, used: Ints) -> Floats:
    """Those rows of first … last − 1 that ``used`` numbers, (k, d)."""
    if rows.form == "dense":
        return rows.matrix()[first:last][used].astype(np.float64)
    part: Floats = rows.part(first, last).to_dense()[used, 1:]
    return part
