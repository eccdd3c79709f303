"""How the answers to a file compare with its labels, counted up one part of the file after another."""

from __future__ import annotations

from math import nan

import numpy as np

from svmkit.data import Floats


class Score:
    """Figures of all examples added so far; sums go in the file's order, as LIBSVM's do."""

    def __init__(self) -> None:
        self.n = 0
        self.right = 0
        self._sums = np.zeros(6)

    def add(self, truth: Floats, answers: Floats) -> None:
        """The labels (n,) of the next examples, and the answers to them."""
        self.n += len(truth)
        self.right += int((answers == truth).sum())
        t, p = truth, answers
        with np.errstate(over="ignore", invalid="ignore"):
            terms = np.stack([(p - t) ** 2, p, t, p * p, t * t, p * t], axis=1)
            self._sums = np.add.accumulate(np.concatenate([self._sums[None, :], terms]))[-1]

    @property
    def mean_squared_error(self) -> float:
        """Mean of (truth − answer)²; nan of no example."""
        return float(self._sums[0] / self.n) if self.n else nan

    @property
    def squared_correlation(self) -> float:
        """From raw sums: where one side is constant, what LIBSVM prints is the rounding of these. nan is 0/0."""
        n, (_, p, t, pp, tt, pt) = self.n, self._sums
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            cross = n * pt - p * t
            spread = (n * pp - p * p) * (n * tt - t * t)
            return float(cross * cross / spread)
