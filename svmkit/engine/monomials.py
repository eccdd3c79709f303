"""Features in which a polynomial kernel is linear, (gamma x·z + coef0)^degree = ⟨φ(x), φ(z)⟩, for rows of few features.

φ(x) has a place for every monomial of that degree in x's features (and, where coef0 > 0, in 1), times the root of its
multinomial coefficient. Where features are not scaled the monomials are all but collinear, so they are turned: of the
matrix Φ (n, D) of all rows' φ, Φᵀ = Q R with the columns pivoted, Rᵀ = ΦQ has the same inner products, and its columns fall in
size from the first to the last. Its pivots are rows of the data whose φ span those of all: what is linear in the features
is an expansion over them.

Memory    3½ n·D doubles while they are made, 1½ n·D kept
Time      n·D² multiplications
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb, factorial, prod, sqrt
from typing import NamedTuple

import numpy as np

from svmkit.data import Floats, Ints, Rows
from svmkit.engine.lapack import pivoted_qr, solve_upper
from svmkit.features import narrowed
from svmkit.problem import POLYNOMIAL, Kernel


class Turned(NamedTuple):
    """``rows`` (n, r) with features 1 … r; ``pivots`` (r,): numbers of rows, of which ``corner`` (r, r) is the lower triangle
    that their features are."""

    rows: Rows
    pivots: Ints
    corner: Floats

    def expansion(self, w: Floats) -> Floats:
        """The coefficients (r,) of the pivots with which Σ_j coef_j φ(x_j) = ``w`` (r,)."""
        return solve_upper(self.corner.T, w) if len(w) else w


def count(n_features: int, kernel: Kernel) -> int:
    """D for rows in which so many features occur; 0 where the kernel has no such features."""
    if kernel.kind != POLYNOMIAL or kernel.degree < 1 or kernel.coef0 < 0.0 or kernel.gamma <= 0.0:
        return 0
    return comb(n_features + (kernel.coef0 > 0.0) + kernel.degree - 1, kernel.degree)


def monomials(rows: Rows, kernel: Kernel) -> Floats:
    """Φ (n, D), for sparse ``rows``; not finite where it leaves float64's range."""
    narrow, names = narrowed(rows)
    factors = sqrt(kernel.gamma) * narrow._replace(n_features=max(0, len(names) - 1)).to_dense()[:, : len(names)].T
    if kernel.coef0 > 0.0:
        factors = np.vstack([np.full(rows.n, sqrt(kernel.coef0)), factors])
    every = list(combinations_with_replacement(range(len(factors)), kernel.degree))
    found = np.empty((len(every), rows.n))
    with np.errstate(over="ignore", invalid="ignore"):
        for column, chosen in zip(found, every, strict=True):
            ways = factorial(kernel.degree) // prod(factorial(chosen.count(each)) for each in set(chosen))
            column[:] = sqrt(ways)
            for each in chosen:
                column *= factors[each]
    return found.T


def turned(rows: Rows, kernel: Kernel, least: float) -> Turned | None:
    """The features of ``rows``, turned, but for columns that have fallen below ``least`` times the first: these are rounding
    from 2⁻⁵² on, and kernel values in float64 do not show them from its root on. None where they leave float64's range.
    """
    found = monomials(rows, kernel)
    if not np.isfinite(found).all():
        return None
    R, order = pivoted_qr(found.T)
    sizes = np.abs(R.diagonal())
    rank = int(np.count_nonzero(sizes > least * sizes.max(initial=0.0)))
    features = np.empty((rows.n, rank))
    features[order] = R[:rank].T
    numbers = np.tile(np.arange(1, rank + 1, dtype=np.int32), rows.n)
    as_rows = Rows(features.reshape(-1), numbers, rank * np.arange(rows.n + 1, dtype=np.int64), rank)
    return Turned(as_rows, order[:rank], R[:rank, :rank].T.copy())
