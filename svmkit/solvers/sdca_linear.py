"""Stochastic dual coordinate ascent on w itself, for linear f: a step costs the nonzeros of one row.

w = Σ y_i α_i x_i is the solution, one basis row. Variables are set aside within a sweep, by the bounds of the one before
(Hsieh et al., ICML 2008, algorithm 3).
"""

from __future__ import annotations

from math import nan

import numpy as np

from svmkit.certificate import kkt_violation
from svmkit.engine import descent, linear
from svmkit.engine.packed import renumbered
from svmkit.features import feature_names
from svmkit.problem import Problem, Solution, as_one_row

#: More visits than a run makes.
_EVER = 1 << 62


class LinearForm:
    """``variables``, ``order``, ``counts`` and ``numbers`` are those of descent.py, ``alpha`` (n,) the first column of the
    variables, ``w`` over the features of ``rows``.
    """

    def __init__(self, problem: Problem, shrinking: bool, eps: float, seed: int) -> None:
        self.problem, self.shrinking, self.eps, self.seed = problem, shrinking, eps, seed
        self.evaluations = 0
        self.violation = nan
        self.done = self.stalled = self._ended = False
        (self.rows,) = renumbered(problem.rows)
        self.loop = descent.loop_for(self.rows)
        start = problem.dual().start
        self.variables = np.stack([start, problem.upper, self.rows.sqnorms(), problem.y], axis=1)
        self.alpha = self.variables[:, 0]
        self.w = linear.fold(self.rows, problem.y * start, self.rows.n_features + 1)
        self.order = np.arange(problem.n)
        self.counts, self.numbers = np.empty(descent.N_COUNTS, np.int64), np.empty(descent.N_NUMBERS)
        descent.begin(self.order, self.counts, self.numbers, seed)

    def visit(self, budget: int, enough: float) -> int:
        """Visits at most ``budget`` examples and returns how many; none where a sweep has come to its end."""
        if self._ended:
            self._ended = False
            return 0
        used = descent.descend(
            *(self.loop, self.rows, self.variables, self.order, self.counts, self.numbers),
            *(self.seed, self.eps, self.shrinking, budget, int(min(enough, _EVER)), self.w),
        )
        self.evaluations += used
        if self.counts[descent.SWEEPS]:
            self.violation = float(self.numbers[descent.VIOLATION])
        why = int(self.counts[descent.WHY])
        self._ended = why != 0
        if why == descent.MET:
            self._check()
        self.stalled |= why == descent.IDLE  # nothing moves, and yet some would have to
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
        names = np.arange(len(self.w)) if same else np.append(0, feature_names(rows))
        return as_one_row(self.w, names.astype(np.int32), rows.n_features, 0.0, self.alpha.copy())

    def _check(self) -> None:
        """Computes w anew from α, and the violation from it; done if that is small enough."""
        problem = self.problem
        beta = problem.y * self.alpha
        self.w = linear.fold(self.rows, beta, len(self.w))
        F = problem.y - linear.dots(self.rows, self.w)
        self.evaluations += problem.n
        self.violation = kkt_violation(F, beta, problem.y, problem.upper, "none")
        self.done = self.violation <= self.eps
        self.numbers[descent.VIOLATION] = self.violation
        self.numbers[descent.BEYOND] = descent.BUSY_SHARE * self.violation  # of the sweep begun already
