"""Where coordinate ascent goes on after a sweep: along the sweep's move and the one before, to the best point of their plane.

Sweeps alone crawl along the valleys of an ill-conditioned K; with each sweep's move made best together with the one before they
come as much faster as conjugate gradients do than steepest descent.

Maximises  W(β + t₁ d₁ + t₂ d₂) over t₁, t₂, for W with gradient F = y − Kβ, which along a move d changes by −K d
Papers     Bertrand & Massias, AISTATS 2021, extrapolate coordinate descent; Knyazev, SIAM Journal on Scientific Computing 23
           (2001), takes the best point of the plane
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt
from typing import NamedTuple

import numpy as np

from svmkit.data import Floats

#: Two moves whose directions differ by less, as a squared sine, are one.
_APART = 1e-10
#: What a gain must exceed, as a share of Σ|β|: a violation is then near rounding, where sweeps must be able to come to rest.
_LEAST_GAIN = 2.0**-70
#: Each of the numbers added up is rounded by such a share.
_ROUNDING = 2.0**-52


class Move(NamedTuple):
    """What β and F (m,) have changed by."""

    beta: Floats
    F: Floats


def farther(F: Floats, moves: Sequence[Move]) -> Move | None:
    """From where the gradient is ``F`` to the best point of the line or plane of one or two moves; None where there is none."""
    curvature = [-float(move.beta @ move.F) for move in moves]
    if not all(c > 0.0 and isfinite(c) for c in curvature):
        return None
    norms = [sqrt(c) for c in curvature]
    lengths = [float(F @ move.beta) / norm for move, norm in zip(moves, norms, strict=True)]
    if len(moves) == 2:
        first, second = moves
        cosine = -0.5 * (float(first.beta @ second.F) + float(second.beta @ first.F)) / norms[0] / norms[1]
        apart = 1.0 - cosine * cosine
        if apart > _APART:
            lengths = [(lengths[0] - cosine * lengths[1]) / apart, (lengths[1] - cosine * lengths[0]) / apart]
        else:
            moves, lengths = moves[:1], lengths[:1]
    lengths = [length / norm for length, norm in zip(lengths, norms, strict=False)]
    if not all(map(isfinite, lengths)):
        return None
    return Move(
        sum((t * move.beta for t, move in zip(lengths, moves, strict=True)), np.zeros_like(F)),
        sum((t * move.F for t, move in zip(lengths, moves, strict=True)), np.zeros_like(F)),
    )


def noise(more: Move, largest: float) -> float:
    """What rounding leaves in F where it has gone along ``more`` and come back in part; ``largest`` is the largest |K_ii|.

    Along a move that K does not bend, but for rounding, the best point lies at no end, and the box takes nearly all of it.
    """
    return _ROUNDING * max(largest * float(np.abs(more.beta).sum()), float(np.abs(more.F).max(initial=0.0)))


def gains(beta: Floats, F: Floats, move: Move) -> bool:
    """Whether W rises by ``move`` from β with gradient ``F``, by more than next to nothing."""
    return float((F + 0.5 * move.F) @ move.beta) > _LEAST_GAIN * float(np.abs(beta).sum())
