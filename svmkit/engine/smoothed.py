"""The hinge loss smoothed around a centre, over all rows: what a step of an augmented Lagrangian looks at, in one pass.

A row with p_i = ⟨w, x_i⟩ lacks z_i = 1 − y_i (p_i + b) of its margin. Around the centre a′ the loss is C_i times the largest
a z_i − (a − a′_i)²/2s over 0 ≤ a ≤ 1; that a is clip(pulled_i, 0, 1) with pulled_i = a′_i + s z_i, and α_i = C_i a_i is the
slope. Sums are made piece by piece, whatever the number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svmkit import parallel
from svmkit._jit import REASSOCIATED, compiled
from svmkit.data import Floats

#: Rows of a piece.
_PIECE_ROWS = 16384
#: Places in a piece's sums.
_BALANCE, _TOTAL, _WAY, _N_SUMS = range(4)


class Look(NamedTuple):
    """``pulled, theta, change`` (n,): θ_i = s C_i where the loss bends, else 0; y_i times what α_i has changed by.

    ``balance``: yᵀα; ``total``: Σ α; ``way``: Σ (α_i − C_i a′_i)² / (s C_i).
    """

    pulled: Floats
    theta: Floats
    change: Floats
    balance: float
    total: float
    way: float


def look(products: Floats, b: float, s: float, centre: Floats, upper: Floats, y: Floats, alpha: Floats) -> Look:
    """How the loss stands at these ``products`` p (n,) and b; ``alpha`` (n,) becomes its slope. ``upper`` is C > 0."""
    n = len(y)
    pulled, theta, change = np.empty(n), np.empty(n), np.empty(n)
    sums = np.zeros((-(-n // _PIECE_ROWS), _N_SUMS))

    def piece(r0: int, r1: int) -> None:
        _look(products, b, s, centre, upper, y, alpha, pulled, theta, change, r0, r1, sums[r0 // _PIECE_ROWS])

    parallel.run_stretches(piece, n, _PIECE_ROWS)
    balance, total, way = sums.sum(axis=0).tolist()
    return Look(pulled, theta, change, balance, total, way / s)


def slope(pulled: Floats, along: Floats, upper: Floats, y: Floats, s: float, t: float) -> float:
    """The derivative of the loss by t where all p_i + b have moved by t·``along``_i since ``pulled``."""
    sums = np.zeros(-(-len(y) // _PIECE_ROWS))

    def piece(r0: int, r1: int) -> None:
        sums[r0 // _PIECE_ROWS] = _slope(pulled, along, upper, y, s, t, r0, r1)

    parallel.run_stretches(piece, len(y), _PIECE_ROWS)
    return float(sums.sum())


@compiled("void(f8[:], f8, f8, f8[:], f8[:], f8[:], f8[:], f8[:], f8[:], f8[:], i8, i8, f8[:])", REASSOCIATED)
def _look(
    products: Any, b: Any, s: Any, centre: Any, upper: Any, y: Any, alpha: Any, pulled: Any, theta: Any, change: Any,
    r0: Any, r1: Any, sums: Any,
) -> None:  # fmt: skip
    balance, total, way = 0.0, 0.0, 0.0
    for i in range(r0, r1):
        at = centre[i] + s * (1.0 - y[i] * (products[i] + b))
        now = upper[i] * min(max(at, 0.0), 1.0)
        moved = now - upper[i] * centre[i]
        pulled[i] = at
        theta[i] = s * upper[i] if 0.0 < at < 1.0 else 0.0
        change[i] = y[i] * (now - alpha[i])
        alpha[i] = now
        balance += y[i] * now
        total += now
        way += moved * moved / upper[i]
    sums[_BALANCE], sums[_TOTAL], sums[_WAY] = balance, total, way


@compiled("f8(f8[:], f8[:], f8[:], f8[:], f8, f8, i8, i8)", REASSOCIATED)
def _slope(pulled: Any, along: Any, upper: Any, y: Any, s: Any, t: Any, r0: Any, r1: Any) -> Any:
    total = 0.0
    for i in range(r0, r1):
        up = -y[i] * along[i]
        total += up * upper[i] * min(max(pulled[i] + t * s * up, 0.0), 1.0)
    return total
