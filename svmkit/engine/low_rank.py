"""A kernel matrix that is of low rank up to rounding, K ≈ LLᵀ: its factor by pivots, products with it, and (K + D)⁻¹.

Factor   partial Cholesky; the next pivot is the row of whose K_ii the largest share is left, less ‖L_i‖²; n·r kernel
         values, n·r²/2 multiplications. What is left of K, positive semidefinite, is at most a share, which is asked for, of
         √(K_ii K_jj)
Solution with D small on a few variables f and not on the others s: M = I + L_sᵀD_s⁻¹L_s, of order r, takes the latter, and
         D_f + L_f M⁻¹L_fᵀ the former, neither less well conditioned than K + D; n·r²/2 multiplications
Memory   L, n·r doubles, twice as many while it is made, and in a step r² for every 4096 rows
Paper    Fine & Scheinberg, JMLR 2 (2001) 243–264; they keep to stable updates of a product form, for any D

Kernels that are smooth over all of the data are of low rank: rbf in few features with a small gamma, polynomials. There pair
steps crawl.
"""

from __future__ import annotations

import numpy as np

from svmkit import parallel
from svmkit.data import Floats, Ints
from svmkit.engine.cholesky import NotDefinite, inverse_of_triangle
from svmkit.engine.kernels import Engine

#: Where pivots have left more than this share of the diagonals' sum after a quarter of the columns, all of them will not do.
_TOO_MUCH = 0.01
#: The least share of K_ii to leave: ten times what rounding does.
LEAST_SHARE = 1e-13
#: Below this share of K_ii D_i is small, of at most r variables: no more can be free of their bounds and stay so.
_SMALL = 1e-8
#: Rows to a piece of a sum over rows; results depend on it, but not on the number of threads.
_STRETCH = 4096


def factor(engine: Engine, most: int, share: float) -> Floats | None:
    """L (n, r) for K of the engine's rows, in float64 and positive semidefinite, that leaves at most a ``share`` of K_ii; None
    where ``most`` columns leave more, or values overflow.
    """
    diagonal = engine.diagonal()
    if not np.isfinite(diagonal).all():
        return None
    every, total = np.arange(len(diagonal)), float(diagonal.sum())
    left, least = diagonal.copy(), share * diagonal
    columns = np.empty((most, len(diagonal)))
    for rank in range(most + 1):
        pivot = int(np.argmax(np.divide(left, diagonal, out=np.zeros_like(left), where=left > least)))
        if left[pivot] <= least[pivot]:
            return np.ascontiguousarray(columns[:rank].T)
        if rank == most or (4 * rank >= most and left.sum() > _TOO_MUCH * total):
            return None
        parallel.stay()
        known = columns[:rank]
        new = (engine.block(every[pivot : pivot + 1], every)[0] - known[:, pivot] @ known) / np.sqrt(left[pivot])
        left -= new * new
        left[pivot] = 0.0
        columns[rank] = new
    return None


class LowRank:
    """K = LLᵀ among variables, as ``Interior`` takes it; ``diagonal`` (n,) is that of the kernel itself."""

    def __init__(self, L: Floats, diagonal: Floats) -> None:
        """L (n, r), r at least 1."""
        self._L, self.diagonal = L, diagonal

    def product(self, beta: Floats) -> Floats:
        """Kβ."""
        return spread(self._L, gathered(self._L, beta))

    def shifted(self, D: Floats, ridge: float) -> ShiftedLowRank:
        """What solves with K + D and a ``ridge`` of so many times its diagonal."""
        return ShiftedLowRank(self._L, self.diagonal, D, ridge)


class ShiftedLowRank:
    """(LLᵀ + D + ridge·(diagonal + D))⁻¹. Raises NotDefinite where rounding leaves no factor."""

    def __init__(self, L: Floats, diagonal: Floats, D: Floats, ridge: float) -> None:
        D = D + ridge * (diagonal + D)
        if not np.isfinite(D).all():
            raise NotDefinite
        self._L, self._free = L, _smallest(D, diagonal, L.shape[1])
        self._inverse = 1.0 / D
        self._inverse[self._free] = 0.0
        M = np.eye(L.shape[1]) + _weighted_gram(L, np.sqrt(self._inverse))
        free = L[self._free]
        try:
            self._root = inverse_of_triangle(np.linalg.cholesky(M))  # M⁻¹ = rootᵀ root
            self._V = self._root @ free.T
            schur = self._V.T @ self._V
            schur.flat[:: len(schur) + 1] += D[self._free]
            self._scale = 1.0 / np.sqrt(schur.diagonal())
            schur *= self._scale * self._scale[:, None]
            schur.flat[:: len(schur) + 1] = 1.0 + ridge
            self._schur_root = inverse_of_triangle(np.linalg.cholesky(schur))
        except np.linalg.LinAlgError:
            raise NotDefinite from None

    def solve(self, right: Floats) -> Floats:
        """The solution for ``right`` (n,)."""
        known = self._root @ gathered(self._L, right * self._inverse)
        missing = self._scale * (right[self._free] - self._V.T @ known)
        free = self._scale * (self._schur_root.T @ (self._schur_root @ missing))
        found = (right - spread(self._L, self._root.T @ (known + self._V @ free))) * self._inverse
        found[self._free] = free
        return found


def gathered(L: Floats, weights: Floats) -> Floats:
    """Lᵀ weights (r,)."""
    sums = np.empty((-(-len(L) // _STRETCH), L.shape[1]))

    def piece(first: int, last: int) -> None:
        sums[first // _STRETCH] = weights[first:last] @ L[first:last]

    parallel.run_stretches(piece, len(L), _STRETCH)
    total: Floats = sums.sum(axis=0)
    return total


def spread(L: Floats, u: Floats) -> Floats:
    """L u (n,)."""
    out = np.empty(len(L))

    def piece(first: int, last: int) -> None:
        np.dot(L[first:last], u, out=out[first:last])

    parallel.run_stretches(piece, len(L), _STRETCH)
    return out


def _weighted_gram(L: Floats, roots: Floats) -> Floats:
    """Lᵀ diag(roots²) L."""
    sums = np.empty((-(-len(L) // _STRETCH), L.shape[1], L.shape[1]))

    def piece(first: int, last: int) -> None:
        some = roots[first:last, None] * L[first:last]
        np.dot(some.T, some, out=sums[first // _STRETCH])

    parallel.run_stretches(piece, len(L), _STRETCH)
    total: Floats = sums.sum(axis=0)
    return total


def _smallest(D: Floats, diagonal: Floats, most: int) -> Ints:
    """The variables, ``most`` of them at most, whose D is small against their diagonal."""
    small = np.flatnonzero(_SMALL * diagonal > D)
    if len(small) > most:
        ratio = D[small] / diagonal[small]
        small = np.sort(small[np.argpartition(ratio, most)[:most]])
    return small
