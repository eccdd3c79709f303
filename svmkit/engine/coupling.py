"""Class probabilities from those of pairs of classes, row by row: pairwise coupling (calibrate.py says what it solves)."""

from __future__ import annotations

from typing import Any

import numpy as np

from svmkit import parallel
from svmkit._jit import ORDERED, REASSOCIATED, compiled, helper
from svmkit.data import Floats, Ints

#: Numbers of Q that a piece of the work holds at least.
_PIECE_VALUES = 1 << 16


def couple_pairs(won: Floats, k: int, rounds: int) -> tuple[Floats, Ints]:
    """Class probabilities (n, k) from P(i | i or j) of the pairs i < j, ``won`` (n, pairs); rounds each row took (n,)."""
    p, taken = np.empty((len(won), k)), np.empty(len(won), np.int64)

    def piece(first: int, last: int) -> None:
        _couple(won, first, last, rounds, np.empty((k, k)), np.empty(k), p, taken)

    parallel.run_ranges(piece, len(won), parallel.pieces_of(len(won) * k * k, _PIECE_VALUES))
    return p, taken


@helper(REASSOCIATED)
def _dot(a: Any, b: Any) -> Any:
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@compiled("void(f8[:, :], i8, i8, i8, f8[:, :], f8[:], f8[:, :], i8[:])", ORDERED)
def _couple(won: Any, r0: Any, r1: Any, rounds: Any, Q: Any, Qp: Any, p: Any, taken: Any) -> None:
    """A round moves each p_t to its optimum with the others held, then renormalises: Qp and pᵀQp follow by rank-one updates."""
    k = len(Qp)
    for r in range(r0, r1):
        own = p[r]
        own[:] = 1.0 / k
        Q[:] = 0.0
        pair = 0
        for i in range(k):
            for j in range(i + 1, k):
                first, second = won[r, pair], 1.0 - won[r, pair]
                Q[i, i] += second * second
                Q[j, j] += first * first
                Q[i, j] = Q[j, i] = -first * second
                pair += 1
        taken[r] = rounds
        for count in range(rounds):
            for t in range(k):
                Qp[t] = _dot(Q[t], own)
            pQp = _dot(own, Qp)
            error = 0.0
            for t in range(k):
                error = max(error, abs(Qp[t] - pQp))
            if error < 0.005 / k:
                taken[r] = count
                break
            for t in range(k):
                step = (pQp - Qp[t]) / Q[t, t]
                scale = 1.0 / (1.0 + step)
                pQp = (pQp + step * (step * Q[t, t] + 2.0 * Qp[t])) * scale * scale
                own[t] += step
                line = Q[t]
                for j in range(k):
                    Qp[j] = (Qp[j] + step * line[j]) * scale
                    own[j] *= scale
