"""Cholesky factor of a matrix, A + ridge·I = L Lᵀ, by blocks, each asked for when it is needed.

Only L is kept, in blocks of rows up to their diagonal: n²/2 doubles. Work is cut into pieces that do not depend on the number
of threads; products inside a piece are BLAS's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from svmkit import parallel
from svmkit.data import Reals

#: Rows to a block, unless told; right-hand sides to a piece; rows of a triangle that LAPACK inverts as one.
_BLOCK, _SIDES, _TRIANGLE = 384, 64, 64


class NotDefinite(Exception):
    """The matrix has no Cholesky factor: its kernel is not positive semidefinite, or the ridge too small for rounding."""


class Factor:
    """L for A (n, n) + ridge·I, where ``part(r0, r1, c0, c1)`` is A[r0:r1, c0:c1]; n³/6 multiplications. Raises NotDefinite.

    All is done in ``real`` numbers, which are those of A. With fewer rows to a ``block`` threads have more to share; but each
    block below the diagonal has gone through an inverse, where more is lost of a matrix that rounding nearly makes singular.
    """

    def __init__(
        self,
        part: Callable[[int, int, int, int], Reals],
        n: int,
        ridge: float,
        real: type[np.floating[Any]] = np.float64,
        block: int = _BLOCK,
    ) -> None:
        if not np.isfinite(ridge):  # kernel values overflow, and so do sums of them
            raise NotDefinite
        self.n = n
        self._cuts = [(r0, min(r0 + block, self.n)) for r0 in range(0, self.n, block)]
        self._blocks: list[Reals] = [np.empty((r1 - r0, r1), dtype=real) for r0, r1 in self._cuts]
        self._inverses: list[Reals] = []  # of the blocks on the diagonal
        for k, (c0, c1) in enumerate(self._cuts):
            try:
                corner = np.linalg.cholesky(self._reduced(part, k, k) + ridge * np.eye(c1 - c0, dtype=real))
            except np.linalg.LinAlgError:
                raise NotDefinite from None
            inverse = inverse_of_triangle(corner)
            self._blocks[k][:, c0:] = corner
            self._inverses.append(inverse)

            def below(piece: int, k: int = k, c0: int = c0, c1: int = c1, inverse: Reals = inverse) -> None:
                i = k + 1 + piece
                self._blocks[i][:, c0:c1] = self._reduced(part, i, k) @ inverse.T

            parallel.run_pieces(below, len(self._cuts) - k - 1)

    def _reduced(self, part: Callable[[int, int, int, int], Reals], i: int, k: int) -> Reals:
        """Block (i, k) of the matrix less what the columns to the left account for."""
        (r0, r1), (c0, c1) = self._cuts[i], self._cuts[k]
        left: Reals = part(r0, r1, c0, c1) - self._blocks[i][:, :c0] @ self._blocks[k][:, :c0].T
        return left

    def forward(self, right: Reals) -> Reals:
        """L⁻¹ right, for right (n, k)."""
        out = right.copy()

        def solve(first: int, last: int) -> None:
            some = out[:, first:last]
            for (r0, r1), block, inverse in zip(self._cuts, self._blocks, self._inverses, strict=True):
                some[r0:r1] = inverse @ (some[r0:r1] - block[:, :r0] @ some[:r0])

        parallel.run_stretches(solve, right.shape[1], _SIDES)
        return out

    def backward(self, right: Reals) -> Reals:
        """L⁻ᵀ right, for right (n, k)."""
        out = right.copy()
        for (r0, r1), block, inverse in zip(reversed(self._cuts), self._blocks[::-1], self._inverses[::-1], strict=True):
            out[r0:r1] = inverse.T @ out[r0:r1]
            out[:r0] -= block[:, :r0].T @ out[r0:r1]
        return out


def inverse_of_triangle(lower: Reals) -> Reals:
    """L⁻¹, by halves: most of its n³/3 multiplications are BLAS's products. A general inverse takes three times as many."""
    n = len(lower)
    if n <= _TRIANGLE:
        whole: Reals = np.linalg.inv(lower)
        return whole
    half = n // 2
    out = np.zeros_like(lower)
    out[:half, :half] = upper_left = inverse_of_triangle(lower[:half, :half])
    out[half:, half:] = lower_right = inverse_of_triangle(lower[half:, half:])
    out[half:, :half] = -(lower_right @ (lower[half:, :half] @ upper_left))
    return out
