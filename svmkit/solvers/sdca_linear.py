"""Stochastic dual coordinate ascent on w itself, for linear f: a step costs the nonzeros of one row.

w = Σ y_i α_i x_i is the solution, one basis row. Variables are set aside within a sweep, by the bounds of the one before
(Hsieh et al., ICML 2008, algorithm 3).
"""

from __future__ import annotations

from math import inf, nan

import numpy as np

from svmkit.certificate import kkt_violation
from svmkit.engine import linear, rng
from svmkit.engine.packed import renumbered
from svmkit.problem import Problem, Solution, as_one_row


class LinearForm:
    """``order`` holds all examples, the active ones first; the rest is as in ``linear.descend``."""

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
        self.place = np.array([0, problem.n, 0])
        self.bounds = np.empty(4)
        self._begin_sweep(inf, -inf)

    def visit(self, budget: int) -> int:
        """Visits at most ``budget`` examples and returns how many; none where a sweep has come to its end."""
        if self.place[0] == self.place[1]:
            self._end_sweep()
            return 0
        used = linear.descend(self.rows, self.variables, self.order, self.place, self.bounds, budget, self.w)
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

    def _begin_sweep(self, above: float, below: float) -> None:
        """Those at 0 with a gradient above ``above``, or at their upper end with one below ``below``, will be set aside."""
        self.place[0], self.place[2] = 0, 0
        self.bounds[:] = above, below, -inf, inf
        rng.shuffle(self.seed, self.sweeps, self.order[: self.place[1]])

    def _end_sweep(self) -> None:
        """Looks whether the tolerance is met, brings variables back, and begins the next sweep."""
        self.sweeps += 1
        most, least = float(self.bounds[2]), float(self.bounds[3])
        self.violation = max(0.0, most, -least)
        met, whole = self.violation <= self.eps, self.place[1] == self.problem.n
        if met and whole:
            self._check()
        elif self.place[2] == 0 and whole:
            self.stalled = True  # nothing moves, and yet some would have to
        if met or self.place[2] == 0 or not self.shrinking:
            self.place[1] = self.problem.n
            self._begin_sweep(inf, -inf)
        else:
            self._begin_sweep(most if most > 0.0 else inf, least if least < 0.0 else -inf)

    def _check(self) -> None:
        """Computes w anew from α, and the violation from it; done if that is small enough."""
        problem = self.problem
        beta = problem.y * self.alpha
        self.w = linear.fold(self.rows, beta, len(self.w))
        F = problem.y - linear.dots(self.rows, self.w)
        self.evaluations += problem.n
        self.violation = kkt_violation(F, beta, problem.y, problem.upper, "none")
        self.done = self.violation <= self.eps
