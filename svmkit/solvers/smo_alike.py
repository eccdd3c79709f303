"""Examples that stand in the data more than once, each time with the same label, as one variable of smo.

Their kernel values are the same, so the objective depends on the sum of their α alone, which may be anything from 0 to the sum
of their C_i. The problem of the distinct examples is the same problem with fewer variables; its solution is shared out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from svmkit.data import Floats, Ints
from svmkit.engine.alike import first_alike, shared_out
from svmkit.problem import Problem, Solution, as_expansion

#: Problems of no more examples are left as they are, as are those of which more than such a share are distinct.
LEAST_EXAMPLES, _WORTH = 2048, 0.9


class Alike(NamedTuple):
    """``problem`` of the distinct examples of ``whole``; ``place`` (n,): which of these each example is."""

    problem: Problem
    whole: Problem
    place: Ints

    def shared_out(self, found: Solution) -> Solution:
        """A solution of ``problem`` as one of ``whole``."""
        if found.alpha is not None or found.own.n:  # w
            return replace(found, alpha=None if found.alpha is None else self._each(found.alpha))
        alpha = self.problem.y * found.expansion(self.problem.rows)[1]
        responses = None if found.responses is None else found.responses[self.place]
        return as_expansion(self.whole.y * self._each(alpha), found.rho, responses)

    def _each(self, alpha: Floats) -> Floats:
        return shared_out(alpha, self.place, self.whole.upper, self.problem.upper)


def alike(problem: Problem) -> Alike | None:
    """What is left of ``problem`` where that is worth it."""
    rows, y = problem.rows, problem.y
    if problem.n <= LEAST_EXAMPLES or rows.precomputed or rows.form == "dense":
        return None
    first = first_alike(rows, y)
    distinct = np.flatnonzero(first == np.arange(problem.n))
    if len(distinct) > _WORTH * problem.n:
        return None
    number = np.empty(problem.n, np.int64)
    number[distinct] = np.arange(len(distinct))
    place = number[first]
    upper: Floats = np.bincount(place, problem.upper).astype(np.float64)
    start = None if problem.start is None else np.minimum(np.bincount(place, problem.start), upper)
    return Alike(replace(problem, rows=rows.take(distinct), y=y[distinct], upper=upper, start=start), problem, place)
