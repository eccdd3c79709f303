"""Cholesky factor of a matrix, A + ridge·I = L Lᵀ, by blocks, each asked for when it is needed.

Only L is kept, in blocks of rows up to their diagonal: n²/2 doubles. Work is cut into pieces that do not depend on the number
of threads; products inside a piece are BLAS's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from svmkit import parallel
from svmkit.data import Floats

#: Rows to a block; right-hand sides to a piece.
_BLOCK, _SIDES = 384, 64


class NotDefinite(Exception):
    """The matrix has no Cholesky factor: its kernel is not positive semidefinite, or the ridge too small for rounding."""


class Factor:
    """L for A (n, n) + ridge·I, where ``part(r0, r1, c0, c1)`` is A[r0:r1, c0:c1]; n³/6 multiplications. Raises NotDefinite."""

    def __init__(self, part: Callable[[int, int, int, int], Floats], n: int, ridge: float) -> None:
        if not np.isfinite(ridge):  # kernel values overflow, and so do sums of them
            raise NotDefinite
        self.n = n
        self._cuts = [(r0, min(r0 + _BLOCK, self.n)) for r0 in range(0, self.n, _BLOCK)]
        self._blocks: list[Floats] = [np.empty((r1 - r0, r1)) for r0, r1 in self._cuts]
        self._inverses: list[Floats] = []  # of the blocks on the diagonal
        for k, (c0, c1) in enumerate(self._cuts):
            try:
                corner = np.linalg.cholesky(self._reduced(part, k, k) + ridge * np.eye(c1 - c0))
            except np.linalg.LinAlgError:
                raise NotDefinite from None
            inverse = np.linalg.inv(corner)
            self._blocks[k][:, c0:] = corner
            self._inverses.append(inverse)

            def below(piece: int, k: int = k, c0: int = c0, c1: int = c1, inverse: Floats = inverse) -> None:
                i = k + 1 + piece
                self._blocks[i][:, c0:c1] = self._reduced(part, i, k) @ inverse.T

            parallel.run_pieces(below, len(self._cuts) - k - 1)

    def _reduced(self, part: Callable[[int, int, int, int], Floats], i: int, k: int) -> Floats:
        """Block (i, k) of the matrix less what the columns to the left account for."""
        (r0, r1), (c0, c1) = self._cuts[i], self._cuts[k]
        left: Floats = part(r0, r1, c0, c1) - self._blocks[i][:, :c0] @ self._blocks[k][:, :c0].T
        return left

    def forward(self, right: Floats) -> Floats:
        """L⁻¹ right, for right (n, k)."""
        out = right.copy()

        def solve(first: int, last: int) -> None:
            some = out[:, first:last]
            for (r0, r1), block, inverse in zip(self._cuts, self._blocks, self._inverses, strict=True):
                some[r0:r1] = inverse @ (some[r0:r1] - block[:, :r0] @ some[:r0])

        parallel.run_stretches(solve, right.shape[1], _SIDES)
        return out

    def backward(self, right: Floats) -> Floats:
        """L⁻ᵀ right, for right (n, k)."""
        out = right.copy()
        for (r0, r1), block, inverse in zip(reversed(self._cuts), self._blocks[::-1], self._inverses[::-1], strict=True):
            out[r0:r1] = inverse.T @ out[r0:r1]
            out[:r0] -= block[:, :r0].T @ out[r0:r1]
        return out
