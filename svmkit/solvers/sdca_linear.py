"""Stochastic dual coordinate ascent on w itself, for linear f: a step costs the nonzeros of one row.

w = Σ y_i α_i x_i is the solution, one basis row. Variables are set aside within a sweep, by the bounds of the one before
(Hsieh et al., ICML 2008, algorithm 3).

Rows that nearly are each other's copies but for the label go up together by thousands of small steps while all others are
settled. So after a sweep the few with a gradient beyond a small share of the violation are visited round and round, until they
are within it or it has cost as much as a sweep.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np

from svmkit.certificate import kkt_violation
from svmkit.engine import descent, linear, rng
from svmkit.engine.packed import renumbered
from svmkit.problem import Problem, Solution, as_one_row

#: The busy ones have a gradient beyond this share of the last sweep's violation; at most this share of the active ones is few.
_BUSY, _FEW = 0.03, 0.25


class LinearForm:
    """``variables`` (n, 4) are as in descent.py, ``alpha`` (n,) its first column, ``w`` over the features of ``rows``.

    ``order`` (n,) holds all examples, the ``active`` ones first, and of those, after a sweep, the ``busy`` ones, for which
    ``spare`` visits are left. ``beyond`` are the first two ``bounds`` of the sweep after them; ``place`` (4,) and ``bounds``
    (5,) are those of descent.sweep, ``round`` and ``largest`` (1,) ``place`` and ``largest`` of descent.settle.
    """

    def __init__(self, problem: Problem, shrinking: bool, eps: float, seed: int) -> None:
        self.problem, self.shrinking, self.eps, self.seed = problem, shrinking, eps, seed
        self.sweeps = self.evaluations = 0
        self.violation = nan
        self.done = self.stalled = False
        (self.rows,) = renumbered(problem.rows)
        start = problem.dual().start
        self.variables = np.stack([start, problem.upper, self.rows.sqnorms(), problem.y], axis=1)
        self.alpha = self.variables[:, 0]
        self.w = linear.fold(self.rows, problem.y * start, self.rows.n_features + 1)
        self.order = np.arange(problem.n)
        self.active, self.busy, self.spare = problem.n, 0, 0
        self.place, self.round = np.zeros(4, np.int64), np.zeros(1, np.int64)
        self.bounds, self.largest = np.empty(5), np.empty(1)
        self.beyond = (inf, -inf)
        self._begin_sweep()

    def visit(self, budget: int) -> int:
        """Visits at most ``budget`` examples and returns how many; none where a sweep has come to its end."""
        if self.spare > 0:
            used = self._settle(budget)
        elif self.place[0] < self.place[1]:
            used = descent.sweep(self.rows, self.variables, self.order, self.place, self.bounds, budget, self.w)
        else:
            self._end_sweep()
            used = 0
        self.evaluations += used
        return used

    def kernel_evaluations(self) -> int:
        """Rows looked at so far."""
        return self.evaluations

    def n_support(self) -> int:
        """1, or 0 while w is 0."""
        return int(self.w.any())

    def solution(self) -> Solution:
        """w as one row, with its α."""
        rows = self.problem.rows
        same = rows.n_features == self.rows.n_features
        names = np.arange(len(self.w)) if same else np.append(0, np.unique(rows.indices))
        return as_one_row(self.w, names.astype(np.int32), rows.n_features, 0.0, self.alpha.copy())

    def _begin_sweep(self) -> None:
        self.place[:] = 0, self.active, 0, 0
        busy = _BUSY * self.violation if self.violation > 0.0 else inf
        self.bounds[:] = *self.beyond, busy, -inf, inf
        rng.shuffle(self.seed, self.sweeps, self.order[: self.active])

    def _end_sweep(self) -> None:
        """Looks whether the tolerance is met, brings variables back, and goes on with the busy ones or with the next sweep."""
        self.sweeps += 1
        self.active, self.busy = int(self.place[1]), int(self.place[3])
        most, least = float(self.bounds[3]), float(self.bounds[4])
        self.violation = max(0.0, most, -least)
        met, whole, moved = self.violation <= self.eps, self.active == self.problem.n, bool(self.place[2] > 0)
        if met and whole:
            self._check()
        elif not moved and whole:
            self.stalled = True  # nothing moves, and yet some would have to
        if met or not moved or not self.shrinking:
            self.active, self.beyond = self.problem.n, (inf, -inf)
        else:
            self.beyond = most if most > 0.0 else inf, least if least < 0.0 else -inf
        if not met and moved and 0 < self.busy <= _FEW * self.active:
            self.spare = self.active
            self.round[0], self.largest[0] = self.busy, inf
        else:
            self._begin_sweep()

    def _settle(self, budget: int) -> int:
        """Visits the busy ones; the next sweep begins after that."""
        asked, few, goal = min(budget, self.spare), self.order[: self.busy], float(self.bounds[2])
        used = descent.settle(self.rows, self.variables, few, self.round, self.largest, goal, asked, self.w)
        self.spare = self.spare - used if used == asked else 0
        if self.spare == 0:
            self._begin_sweep()
        return used

    def _check(self) -> None:
        """Computes w anew from α, and the violation from it; done if that is small enough."""
        problem = self.problem
        beta = problem.y * self.alpha
        self.w = linear.fold(self.rows, beta, len(self.w))
        F = problem.y - linear.dots(self.rows, self.w)
        self.evaluations += problem.n
        self.violation = kkt_violation(F, beta, problem.y, problem.upper, "none")
        self.done = self.violation <= self.eps
