"""Where a round of newton.py has led, as a feasible point: α with yᵀα = 0, w and rho made from it, and their violation of KKT.

The smoothed loss gives α_i = C_i a_i, whose yᵀα is 0 only at the end of all steps. What is missing is shared among the rows
between the bounds, by the room that each has to the nearer one, so none leaves the box.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmkit.certificate import kkt_violation
from svmkit.data import Floats, Ints, Rows
from svmkit.engine import linear
from svmkit.problem import Bias

#: What the sum yᵀα does not show, as a share of Σα; and the share of C_i by which a row may be off its bound and yet be at it.
_ROUNDING, _AT_BOUND = 2.0**-50, 1e-9


class Point(NamedTuple):
    """α (n,) that meets yᵀα = 0, w and rho made from it, and by how much they violate KKT; the s they were found with."""

    alpha: Floats
    w: Floats
    rho: float
    violation: float
    s: float


def point_at(rows: Rows, y: Floats, upper: Floats, a: Floats, bias: Bias, s: float, which: Ints | None = None) -> Point | None:
    """The point of α = ``upper`` ∘ ``a``, 0 ≤ a ≤ 1, brought to yᵀα = 0 where the bias is free; None where the rows between
    the bounds have no room for that. Of the rows numbered ``which``, or of all."""
    alpha = upper * a
    if bias == "free":
        unseen = _ROUNDING * float(alpha.sum())
        alpha = _at_bounds(alpha, upper, unseen)
        excess, room = float(y @ alpha), np.minimum(alpha, upper - alpha)
        if not abs(excess) <= max(unseen, float(room.sum())):
            return None
        if abs(excess) > unseen:
            alpha -= y * room * (excess / float(room.sum()))
    w = linear.fold(rows, y * alpha, rows.n_features + 1, which)
    F, beta = y - linear.dots(rows, w, which), y * alpha
    rho = -_threshold(F, beta, y * upper) if bias == "free" else 0.0
    return Point(alpha, w, rho, kkt_violation(F, beta, y, upper, bias), s)


def _at_bounds(alpha: Floats, upper: Floats, unseen: float) -> Floats:
    """α with the rows at their bounds that rounding has taken off them: one such row alone would say what b is."""
    near = np.minimum(unseen, _AT_BOUND * upper)
    settled: Floats = np.where(upper - alpha <= near, upper, np.where(alpha <= near, 0.0, alpha))
    return settled


def _threshold(F: Floats, beta: Floats, ends: Floats) -> float:
    """b between the largest F that can rise and the least that can fall."""
    most = F[beta < np.maximum(0.0, ends)].max(initial=-np.inf)
    least = F[beta > np.minimum(0.0, ends)].min(initial=np.inf)
    return float(most if np.isinf(least) else least if np.isinf(most) else (most + least) / 2)
