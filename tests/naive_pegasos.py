"""Pegasos written plainly: a dense kernel matrix, one step after another; who is drawn is told by the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from svmkit.data import Floats
from svmkit.problem import Problem
from svmkit.solvers import pegasos

#: Of w, K, ω and the step's number: who learns, and the weight of each example.
Step = Callable[[Floats, Floats, Floats, int], tuple[list[int], Floats]]


def iterates(problem: Problem, K: Floats, options: pegasos.Options, step_of: Step) -> Iterator[Floats]:
    """After each step the coefficients of the result; the K that ``step_of`` is told has the bias's feature."""
    n, y, k, t, step = problem.n, problem.y, options.batch, 1, 0
    lam, omega = 1.0 / problem.upper.sum(), problem.upper / problem.upper.mean()
    K = K + (options.bias**2 if problem.bias == "free" else 0.0)
    w, total, weights = np.zeros(n), np.zeros(n), 0.0
    while True:
        learning, weight_of = step_of(w, K, omega, step)
        w = w * (1 - 1 / t)
        for i in learning:
            w[i] += weight_of[i] * y[i] / (lam * t * k)
        norm = np.sqrt(max(0.0, w @ K @ w))
        if options.projection and norm > 1 / np.sqrt(lam):
            w = w / (np.sqrt(lam) * norm)
        weight = {"none": 0.0, "uniform": 1.0, "step": float(t)}[options.average]
        total, weights = total + weight * w, weights + weight
        t += 1 if learning or not options.hold_step else 0
        step += 1
        yield total / weights if weights else w
