"""Cholesky factor of a kernel matrix, K + ridge·I = L Lᵀ, by panels of columns, evaluated as they are needed.

Only L's panels are kept, each from its diagonal down: n²/2 doubles. Work is cut into pieces of rows that do not depend on the
number of threads; products inside a piece are BLAS's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from svmkit import parallel
from svmkit.data import Floats, Ints
from svmkit.engine.kernels import Engine

#: Columns to a panel, rows to a piece of one.
_PANEL, _PIECE = 256, 512


class NotDefinite(Exception):
    """The matrix has no Cholesky factor: its kernel is not positive semidefinite, or the ridge too small for rounding."""


class Factor:
    """L for K[rows, rows] + ridge·I; n³/3 multiplications, n²/2 kernel values. Raises NotDefinite."""

    def __init__(self, engine: Engine, rows: Ints, ridge: float) -> None:
        self.n = len(rows)
        self._starts = range(0, self.n, _PANEL)
        self._panels: list[Floats] = []
        self._inverses: list[Floats] = []
        for k0 in self._starts:
            k1 = min(k0 + _PANEL, self.n)
            panel = engine.block(rows[k0:], rows[k0:k1]).astype(np.float64)
            panel[np.arange(k1 - k0), np.arange(k1 - k0)] += ridge
            self._append(k0, panel)

    def _append(self, k0: int, panel: Floats) -> None:
        """Takes the earlier panels out of the matrix's own columns and divides by the diagonal block's factor."""
        width = panel.shape[1]
        above = [
            (before[k0 - j0 :], before[k0 - j0 : k0 - j0 + width].T)
            for j0, before in zip(self._starts, self._panels, strict=False)
        ]

        def subtract(r0: int, r1: int) -> None:
            for below, across in above:
                panel[r0:r1] -= below[r0:r1] @ across

        _in_pieces(len(panel), subtract)
        try:
            diagonal = np.linalg.cholesky(panel[:width])
        except np.linalg.LinAlgError:
            raise NotDefinite from None
        inverse = np.linalg.inv(diagonal)

        def divide(r0: int, r1: int) -> None:
            panel[r0:r1] = panel[r0:r1] @ inverse.T

        _in_pieces(len(panel), divide)
        panel[:width] = diagonal
        self._panels.append(panel)
        self._inverses.append(inverse)

    def forward(self, right: Floats) -> Floats:
        """L⁻¹ right, for right (n, k)."""
        out = right.copy()
        for k0, panel, inverse in zip(self._starts, self._panels, self._inverses, strict=True):
            k1 = k0 + panel.shape[1]
            out[k0:k1] = inverse @ out[k0:k1]

            def subtract(r0: int, r1: int, k0: int = k0, k1: int = k1, panel: Floats = panel) -> None:
                out[k1 + r0 : k1 + r1] -= panel[k1 - k0 + r0 : k1 - k0 + r1] @ out[k0:k1]

            _in_pieces(self.n - k1, subtract)
        return out

    def backward(self, right: Floats) -> Floats:
        """L⁻ᵀ right, for right (n, k)."""
        out = right.copy()
        for k0, panel, inverse in zip(reversed(self._starts), reversed(self._panels), reversed(self._inverses), strict=True):
            k1 = k0 + panel.shape[1]
            out[k0:k1] = inverse.T @ (out[k0:k1] - panel[k1 - k0 :].T @ out[k1:])
        return out


def _in_pieces(n: int, work: Callable[[int, int], None]) -> None:
    """``work(r0, r1)`` for rows 0 … n − 1, a piece of _PIECE at a time."""
    parallel.run_pieces(lambda i: work(i * _PIECE, min((i + 1) * _PIECE, n)), -(-n // _PIECE))
