"""A box-constrained quadratic by an interior point: a few dozen Newton steps, however ill-conditioned its kernel.

Minimises   ½ βᵀKβ − cᵀβ   over lower ≤ β ≤ upper (and Σβ = total, where there is a bias); F = c − Kβ
Conditions  ν − F = z − t,  z(β − lower) = t(upper − β) = μ,  Σβ = total,  with z, t > 0 and μ → 0; ν is −rho
Method      Mehrotra's predictor and corrector: both solve (K + D)Δβ = …, D = z/(β − lower) + t/(upper − β), by one factor
Stops       where β, with those on their way to an end set there, violates by at most eps; or where rounding keeps the gap up
Memory      K and a factor, 1½ n² doubles, and a step costs n³/6 multiplications; far less where K is of low rank
Papers      Mehrotra, SIAM J. Optim. 2 (1992) 575–601; Ferris & Munson, SIAM J. Optim. 13 (2003) 783–804, for the SVM's dual
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

import numpy as np

from svmkit.data import Floats
from svmkit.engine import qp
from svmkit.engine.by_need import product_of_rows
from svmkit.engine.cholesky import Factor, NotDefinite

#: Steps at most; after so many in which neither the gap has halved nor the dual doubled, both are rounding.
_MOST_STEPS, _PATIENCE = 150, 20
#: The share of the way to the nearest bound that a step goes; multipliers begin at such a share of the largest gradient.
_INSIDE, _FIRST_SHARE = 0.995, 0.01
#: Added to K + D, scaled to a diagonal of 1, since K may be of less than full rank: the first, or ten times as much after a
#: step that found no factor, up to the last. Steps are a little shorter for it, F stays exact.
_FIRST_RIDGE, _LAST_RIDGE = 1e-13, 1e-10
#: Rows to a block of the factor, so few that two threads share even small ones; steps ask for no more than it leaves exact.
_BLOCK = 192
#: The sum is kept where it is off by no more than such a share of Σ|β|.
_OFF = 1e-10
#: By less than such shares two primal objectives may differ from rounding alone, and are as good.
NOISE, ALIKE = 1e-12, 1e-6


def best_level(F: Floats, lower: Floats, upper: Floats) -> float:
    """The ν of the least loss Σ upper·max(0, F − ν) − lower·max(0, ν − F): a quantile of F, weighted by the boxes' sizes."""
    order = np.argsort(F)
    reached = np.cumsum((upper - lower)[order])
    at = min(int(np.searchsorted(reached, float(upper.sum()))), len(F) - 1)  # sums differ by their order
    return float(F[order[at]])


def primal_at(level: float, beta: Floats, F: Floats, constant: Floats, lower: Floats, upper: Floats) -> float:
    """The primal objective of w = Σ β_i φ(x_i) with −rho at ``level``, F being ``constant`` − Kβ."""
    slack = F - level
    loss = float(upper @ np.maximum(0.0, slack) - lower @ np.maximum(0.0, -slack))
    return 0.5 * float(beta @ (constant - F)) + loss


class Shifted(Protocol):
    """(K + D)⁻¹."""

    def solve(self, right: Floats) -> Floats:
        """The solution for ``right`` (n,)."""


class Matrix(Protocol):
    """K (n, n), positive semidefinite: ``Whole``, or of low rank (low_rank.py)."""

    diagonal: Floats

    def product(self, beta: Floats) -> Floats:
        """Kβ."""

    def shifted(self, D: Floats, ridge: float) -> Shifted:
        """What solves with K + D and a ``ridge`` of so many times its diagonal. Raises NotDefinite where it has no factor."""


class Whole:
    """K, all of it at hand."""

    def __init__(self, K: Floats) -> None:
        self._K, self.diagonal = K, np.diag(K).copy()

    def product(self, beta: Floats) -> Floats:
        """Kβ."""
        return product_of_rows(self._K, beta)

    def shifted(self, D: Floats, ridge: float) -> ShiftedWhole:
        """What solves with K + D, scaled to a diagonal of 1, and a ``ridge``."""
        return ShiftedWhole(self._K, self.diagonal, D, ridge)


class ShiftedWhole:
    """(K + D)⁻¹ by a Cholesky factor."""

    def __init__(self, K: Floats, diagonal: Floats, D: Floats, ridge: float) -> None:
        scale = 1.0 / np.sqrt(diagonal + D)
        if not np.isfinite(scale).all():
            raise NotDefinite

        def part(r0: int, r1: int, c0: int, c1: int) -> Floats:
            values: Floats = scale[r0:r1, None] * K[r0:r1, c0:c1] * scale[c0:c1]
            if r0 == c0:
                np.fill_diagonal(values, 1.0)
            return values

        self._scale, self._factor = scale, Factor(part, len(scale), ridge, block=_BLOCK)

    def solve(self, right: Floats) -> Floats:
        """The solution for ``right`` (n,)."""
        found: Floats = self._scale * self._factor.backward(self._factor.forward((self._scale * right)[:, None]))[:, 0]
        return found


@dataclass
class _Point:
    """β and its distances from both ends; the multipliers of these and of the sum; F."""

    beta: Floats
    below: Floats
    above: Floats
    z: Floats
    t: Floats
    nu: float
    F: Floats


class Interior:
    """``beta`` (n,) is the best so far, by its primal objective, ``least_primal`` at ``level``, −rho; ``ended``: no step is
    left; ``met``: ``beta`` violates by at most eps.
    """

    @np.errstate(over="ignore", invalid="ignore")  # kernel values that overflow
    def __init__(
        self, K: Matrix, constant: Floats, lower: Floats, upper: Floats, total: float | None, eps: float, near: Floats
    ) -> None:
        """0 in every box, no box empty; ``total`` None without a bias; ``near`` (n,) some β."""
        self._K, self._constant, self._lower, self._upper, self._total = K, constant, lower, upper, total
        self._eps = eps
        self._steps, self._ridge = 0, _FIRST_RIDGE
        self.beta, self.level = np.zeros(len(constant)), 0.0
        self._point = self._begin(near)
        self._forget()
        self._judge()

    def correct(self, F: Floats) -> None:
        """Goes on with what ``F``, that of ``beta`` from kernel values themselves, is off by from products with K."""
        off = F - (self._constant - self._K.product(self.beta))
        self._constant = self._constant + off
        self._point = replace(self._point, F=self._point.F + off)
        self._forget()
        self._judge()

    def _forget(self) -> None:
        """Nothing is known of any objective."""
        self.least_primal = self._gap_mark = inf
        self._dual_mark, self._idle = 0.0, 0
        self.ended = self.met = False

    def _begin(self, near: Floats) -> _Point:
        """Each class by one share of its boxes away from their ends, in all as far as ``near`` is, halfway at most.

        From nearer the ends many a step would be short, from further off steps would first have to come back.
        """
        out = self._upper > -self._lower
        edge = np.where(out, self._lower, self._upper)
        room = self._upper - self._lower
        rooms = np.where(out, room[out].sum(), room[~out].sum())
        away = min(0.5 * float(np.abs(near - edge).sum()) or inf, 0.5 * float(rooms.min()))
        beta = edge + np.where(out, 1.0, -1.0) * away * room / rooms
        F = self._constant - self._K.product(beta)
        nu = 0.0 if self._total is None else float(F.mean())
        least = _FIRST_SHARE * float(np.abs(nu - F).max())
        z, t = np.maximum(nu - F, 0.0) + least, np.maximum(F - nu, 0.0) + least
        return _Point(beta, beta - self._lower, self._upper - beta, z, t, nu, F)

    def _judge(self) -> None:
        """Looks at the point: keeps it, or it with ends reached, if it is the best; and says if steps have ended."""
        at = self._point
        primal, dual, level = self._objectives(at.beta, at.F)
        if not np.isfinite(primal):
            self.ended = True
            return
        snapped = self._snapped()
        F = self._constant - self._K.product(snapped)
        its_primal, _, its_level = self._objectives(snapped, F)
        feasible, its_feasible = self._keeps_sum(at.beta), self._keeps_sum(snapped)
        self.met = its_feasible and self._violation(snapped, F) <= self._eps
        if self.met or (its_feasible and its_primal <= (1.0 + NOISE) * min(primal, self.least_primal)):
            self.least_primal, self.beta, self.level = min(its_primal, self.least_primal), snapped, its_level
        elif feasible and primal < self.least_primal:
            self.least_primal, self.beta, self.level = primal, at.beta, level
        if feasible and (primal - dual <= 0.5 * self._gap_mark or dual >= 2.0 * self._dual_mark):
            self._gap_mark, self._dual_mark, self._idle = primal - dual, max(dual, 0.0), 0
        else:
            self._idle += 1
        self.ended = self.met or self._idle >= _PATIENCE or self._steps >= _MOST_STEPS

    def offer(self, beta: Floats) -> None:
        """Takes ``beta`` for the best where it violates by at most eps, too, and its primal objective is as good."""
        F = self._constant - self._K.product(beta)
        primal, _, level = self._objectives(beta, F)
        alike = primal <= (1.0 + ALIKE) * self.primal_of(self.beta)
        if alike and self._keeps_sum(beta) and self._violation(beta, F) <= self._eps:
            self.beta, self.level = beta, level

    def primal_of(self, beta: Floats) -> float:
        """The primal objective of some β, at its best level."""
        return self._objectives(beta, self._constant - self._K.product(beta))[0]

    def _keeps_sum(self, beta: Floats) -> bool:
        """Up to rounding. A start may not keep it, nor the first points after that, whose dual objectives bound nothing; nor
        a snapped β where nobody has room enough.
        """
        return self._total is None or abs(float(beta.sum()) - self._total) <= _OFF * float(np.abs(beta).sum())

    def _objectives(self, beta: Floats, F: Floats) -> tuple[float, float, float]:
        """Primal and dual, and the level that the primal is best at."""
        level = 0.0 if self._total is None else best_level(F, self._lower, self._upper)
        primal = primal_at(level, beta, F, self._constant, self._lower, self._upper)
        return primal, float(beta @ self._constant) - 0.5 * float(beta @ (self._constant - F)), level

    def _snapped(self) -> Floats:
        """β with all at their ends that are nearer than their multiplier would move them, the sum kept by who has most room."""
        at = self._point
        at_lower, at_upper = at.below * self._K.diagonal < at.z, at.above * self._K.diagonal < at.t
        beta = np.where(at_lower, self._lower, np.where(at_upper, self._upper, at.beta))
        if self._total is not None:
            room = np.where(at_lower | at_upper, -1.0, np.minimum(at.below, at.above))
            beta[int(np.argmax(room))] += self._total - float(beta.sum())
        return np.clip(beta, self._lower, self._upper)

    def _violation(self, beta: Floats, F: Floats) -> float:
        ends = np.empty(2)
        qp.extremes(F, beta, self._lower, self._upper, ends)
        return float(ends[0] - ends[1] if self._total is not None else max(ends[0], -ends[1]))

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what is not finite ends the run
    def step(self) -> None:
        """One predictor and corrector."""
        at = self._point
        self._steps += 1
        try:
            equations = _Equations(self._K, at, self._total, self._ridge)
        except NotDefinite:
            self._ridge *= 10.0
            self.ended = self._ridge > _LAST_RIDGE
            return
        mu = _mu(at.below, at.above, at.z, at.t)
        if not mu > 0.0:  # as near as numbers tell
            self.ended = True
            return
        beta, _, z, t = equations.moves(at.below * at.z, at.above * at.t)
        share = self._longest(beta, z, t)
        after = _mu(at.below + share * beta, at.above - share * beta, at.z + share * z, at.t + share * t)
        aim = mu * (after / mu) ** 3
        beta, nu, z, t = equations.moves(at.below * at.z + beta * z - aim, at.above * at.t - beta * t - aim)
        share = min(1.0, _INSIDE * self._longest(beta, z, t))
        if not (np.isfinite(beta).all() and share > 0.0):
            self.ended = True
            return
        moved = at.beta + share * beta
        F = self._constant - self._K.product(moved)
        below, above = at.below + share * beta, at.above - share * beta  # near an end β − lower would be all rounding
        self._point = _Point(moved, below, above, at.z + share * z, at.t + share * t, at.nu + share * nu, F)
        self._judge()

    def _longest(self, beta: Floats, z: Floats, t: Floats) -> float:
        """The share of these moves, 1 at most, that leaves all distances and multipliers at 0 or more."""
        at, share = self._point, 1.0
        for value, move in ((at.below, beta), (at.above, -beta), (at.z, z), (at.t, t)):
            falling = move < 0.0
            share = min(share, float(np.min(-value[falling] / move[falling], initial=1.0)))
        return share


class _Equations:
    """Newton's at a point, K + D factored. Raises NotDefinite where they have no solution."""

    def __init__(self, K: Matrix, at: _Point, total: float | None, ridge: float) -> None:
        self._at, self._shifted = at, K.shifted(at.z / at.below + at.t / at.above, ridge)
        self._stationary = at.nu - at.F - at.z + at.t
        self._off = 0.0 if total is None else float(at.beta.sum()) - total
        self._ones = None if total is None else self._shifted.solve(np.ones(len(at.beta)))

    def moves(self, z_excess: Floats, t_excess: Floats) -> tuple[Floats, float, Floats, Floats]:
        """Those of β, ν, z and t that take z·below and t·above down by these, and all else to where it ought to be."""
        at, nu = self._at, 0.0
        beta = self._shifted.solve(-self._stationary - z_excess / at.below + t_excess / at.above)
        if self._ones is not None:
            with np.errstate(divide="ignore", invalid="ignore"):  # an overflow comes out nan, which ends the steps
                nu = float((beta.sum() + self._off) / self._ones.sum())
                beta = beta - nu * self._ones
        return beta, nu, (-z_excess - at.z * beta) / at.below, (at.t * beta - t_excess) / at.above


def _mu(below: Floats, above: Floats, z: Floats, t: Floats) -> float:
    return float(below @ z + above @ t) / (2 * len(z))
