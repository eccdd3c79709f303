"""The minimum of a dual in the span of its last iterates: what rounds of block descent lack where K is ill-conditioned.

Solves    min over c of ½ β'ᵀKβ' − βᵀ'constant,   β' = β + Σ c_j d_j,   s.t. β' in its box, Σβ' = Σβ (not without a bias)
          d_j the differences of successive iterates, −K d_j the differences of their F: no kernel values are needed
Bounds    variables that c would take out of their box stay where they are: they are taken out of all d_j, which takes their
          columns of the kernel, and c is found anew; a few times, then the step ends where the first one meets its bound
Memory    the last iterates and their F, over the active variables

F of two iterates may be subtracted because a kernel value is always the same to the bit: F is linear in β up to the rounding of
float64 sums. The idea is that of minimising over recent directions, of which conjugate gradients is the case without a box.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from svmkit.data import Bools, Floats
from svmkit.engine.active import ActiveSet, Variables

#: Iterates kept.
_KEPT = 6
#: Times that variables are held where they are before the step is cut short.
_HOLDS = 3
#: A step whose sum, which ought to be 0, is more than this share of its length is not taken.
_UNBALANCED = 1e-9
#: Directions whose curvature is below this share of the largest, all scaled to 1, are left out.
_FLAT = 1e-10


@dataclass
class Span:
    """The last (β, F) of the variables ``of``."""

    of: Variables | None = None
    last: list[tuple[Floats, Floats]] = field(default_factory=list)

    def forget(self) -> None:
        """Iterates so far no longer count."""
        self.of, self.last = None, []

    def note(self, variables: ActiveSet) -> None:
        """The active variables as they are now are an iterate; earlier ones of other variables are forgotten."""
        active = variables.active
        if self.of is not active:
            self.of, self.last = active, []
        self.last = [*self.last[1 - _KEPT :], (active.beta.copy(), active.F.copy())]

    @np.errstate(over="ignore", invalid="ignore")  # where kernel values overflow, nothing is found to be better
    def minimise(self, variables: ActiveSet, most_held: int) -> float:
        """Takes the active variables to the minimum in the span, at most ``most_held`` of them held; returns ‖Δβ‖².

        The last iterate noted must be where they are.
        """
        active = variables.active
        if self.of is not active or len(self.last) < 2:
            return 0.0
        D, G = (np.diff(np.array([iterate[part] for iterate in self.last]), axis=0) for part in (0, 1))  # G = −D K
        held = np.zeros(len(active.beta), dtype=bool)
        for attempt in range(_HOLDS + 1):
            step, change = _best(D, G, active.F, variables.bias and attempt > 0)
            beta = active.beta + step
            outside = np.flatnonzero(((beta < active.lower) | (beta > active.upper)) & ~held)
            held[outside] = True
            if len(outside) == 0 or attempt == _HOLDS or np.count_nonzero(held) > most_held:
                break
            left_out = D[:, outside].T
            D[:, outside] = 0.0
            G = np.ascontiguousarray(G.T)
            variables.engine.apply(active.packed, variables.row_of[active.number[outside]], np.ascontiguousarray(left_out), G)
            G = G.T
        share = _share_inside(active, step)
        new = np.clip(active.beta + share * step, active.lower, active.upper)
        moved, F = new - active.beta, active.F + share * change
        if variables.bias and abs(moved.sum()) > _UNBALANCED * np.abs(moved).sum():  # huge c_j, where d_j are nearly dependent
            return 0.0
        if not (moved * (active.F + F)).sum() > 0.0:  # twice what the objective gains
            return 0.0
        active.beta, active.F = new, F
        return float((moved * moved).sum())


def _best(D: Floats, G: Floats, F: Floats, equality: bool) -> tuple[Floats, Floats]:
    """The step Σ c_j d_j to the minimum and its change of F; with ``equality`` among those whose sum is 0."""
    curvature = -_products(D, G)
    if not np.isfinite(curvature).all():  # kernel values that overflow
        return np.zeros_like(F), np.zeros_like(F)
    own = np.abs(np.diag(curvature))
    scale = 1.0 / np.sqrt(np.where(own > 0.0, own, 1.0))
    values, vectors = np.linalg.eigh(0.5 * scale[:, None] * (curvature + curvature.T) * scale)
    kept = values > _FLAT * values[-1]
    root = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])  # root rootᵀ is the inverse
    slope = root.T @ _products(D, F[None])[:, 0]
    if equality:
        along = root.T @ D.sum(axis=1)
        if (square := float(along @ along)) > 0.0:
            slope -= along * (along @ slope) / square
    c = (root @ slope)[None]
    return _products(c, D.T)[0], _products(c, G.T)[0]


def _products(A: Floats, B: Floats) -> Floats:
    """A·Bᵀ summed in one order, whatever the number of threads."""
    found: Floats = np.einsum("ik,jk->ij", A, B)
    return found


def _share_inside(active: Variables, step: Floats) -> float:
    """The largest share of ``step``, 1 at most, that keeps β in its box."""
    room = np.where(step > 0.0, active.upper - active.beta, active.lower - active.beta)
    moving: Bools = np.abs(step) > np.abs(room)
    return float(np.min(room[moving] / step[moving], initial=1.0))
