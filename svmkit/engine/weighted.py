"""XᵀΘX of rows in float64, for solvers that keep w itself: n·d² multiplications in BLAS, memory for a few d × d matrices."""

from __future__ import annotations

import numpy as np

from svmkit import parallel
from svmkit.data import Floats, Ints, Rows

#: Values of rows taken at a time, and pieces the rows are cut into: each adds up a matrix of its own.
_VALUES, _PIECES = 1 << 20, 4


def weighted_gram(rows: Rows, weights: Floats) -> Floats:
    """Σ_i weights_i x_i x_iᵀ (d, d) over features 1 … d = ``rows.n_features``; ``weights`` (n,) ≥ 0, 0 costs nothing.

    Not finite where it leaves the range of doubles.
    """
    d = rows.n_features
    cuts = np.linspace(0, rows.n, _PIECES + 1).astype(np.int64).tolist()
    sums = np.zeros((_PIECES, d, d))
    roots = np.sqrt(weights)

    def piece(number: int) -> None:
        first, last = cuts[number], cuts[number + 1]
        step = max(1, _VALUES // max(d, 1))
        for r0 in range(first, last, step):
            r1 = min(r0 + step, last)
            used = np.flatnonzero(roots[r0:r1])
            if len(used):
                some = _dense(rows, r0, r1, used)
                some *= roots[r0:r1][used][:, None]
                with np.errstate(over="ignore", invalid="ignore"):
                    sums[number] += some.T @ some

    parallel.run_pieces(piece, _PIECES)
    total: Floats = sums.sum(axis=0)
    return total


def _dense(rows: Rows, first: int, last: int, used: Ints) -> Floats:
    """Those rows of first … last − 1 that ``used`` numbers, (k, d)."""
    if rows.form == "dense":
        return rows.matrix()[first:last][used].astype(np.float64)
    part: Floats = rows.part(first, last).to_dense()[used, 1:]
    return part
