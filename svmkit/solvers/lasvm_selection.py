"""Which example LASVM learns next: an order known ahead, or a choice among candidates by what f says of them.

The first epoch begins with a few examples of each class, where labels may be used. ``gradient`` takes the most wrong of
``candidates`` drawn from those not yet learned, ``active`` the one nearest the boundary, ``autoactive`` the same among the
first five drawn inside the margin (100 draws at most). The last two need no labels but those of the examples they choose.

Paper     Bordes, Ertekin, Weston & Bottou, JMLR 6 (2005), Section 5.2
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Ints
from svmkit.engine import rng
from svmkit.engine.support import SupportSet
from svmkit.problem import Problem

SELECTIONS = ("random", "gradient", "active", "autoactive")
#: Examples of each class to begin with, where labels are known.
_SEEDS = 5
#: The stream of random numbers that draws candidates; those of the epochs' orders are 0, 1 …
_DRAWS = 1 << 32
#: autoactive: so many candidates inside the margin are enough, and so many are drawn at most, looked at in groups.
_INSIDE, _MOST_DRAWN, _GROUP = 5, 100, 25


class Selection:
    """``order[at:]`` are the examples of this epoch still to come; ``where`` has each one's place in ``order``, or −1."""

    def __init__(self, problem: Problem, name: str, candidates: int, seed: int) -> None:
        self.problem, self.name, self.candidates, self.seed = problem, name, candidates, seed
        self.order = np.empty(0, np.int64)
        self.where = np.empty(0, np.int64)
        self.at = 0
        self.epoch = -1
        self.drawn = 0

    @property
    def left(self) -> int:
        """How many examples of this epoch are still to come."""
        return len(self.order) - self.at

    def next_epoch(self, support: SupportSet) -> None:
        """A new order, in the first epoch of those that are not in S yet."""
        self.epoch += 1
        problem = self.problem
        order = rng.permutation(self.seed, self.epoch, problem.n)
        order = order[problem.upper[order] > 0]  # the others take no part
        if self.epoch == 0:
            order = order[support.slot_of[order] < 0]
            if self.name in ("random", "gradient"):
                first = np.zeros(len(order), bool)
                for label in (1.0, -1.0):
                    first[np.flatnonzero(problem.y[order] == label)[:_SEEDS]] = True
                order = np.concatenate([order[first], order[~first]])
        self.order, self.at = order, 0
        self.where = np.full(problem.n, -1)
        self.where[order] = np.arange(len(order))

    def in_order(self, most: int) -> Ints:
        """The next ``most`` rows of the order, or all that are left."""
        rows = self.order[self.at : self.at + most]
        self.at += len(rows)
        return rows

    def choose(self, support: SupportSet) -> tuple[int, NDArray[Any] | None]:
        """The row to learn next, of those left, and its kernel values against the slots where they have been computed."""
        seeding = self.name == "gradient" and self.epoch == 0 and self.at < 2 * _SEEDS
        if self.name == "random" or seeding or not support.two_sided:
            row, values = int(self.order[self.at]), None
        else:
            row, values = self._best(support)
        self.take_out(row)
        return row, values

    def take_out(self, row: int) -> None:
        """Moves a row in front of those still to come, and past it."""
        place, first = int(self.where[row]), int(self.order[self.at])
        self.order[[self.at, place]] = row, first
        self.where[row], self.where[first] = self.at, place
        self.at += 1

    def _best(self, support: SupportSet) -> tuple[int, NDArray[Any] | None]:
        """The choice among candidates, and its kernel values; where none has a score that is known, the next of the order."""
        drawn = _MOST_DRAWN if self.name == "autoactive" else self.candidates
        if drawn < self.left:
            rows = self.order[self.at + rng.integers(self.seed, _DRAWS, self.drawn, drawn, self.left)]
        else:
            rows = self.order[self.at :]
        margin = 1.0 + 0.5 * support.delta
        group = _GROUP if self.name == "autoactive" else len(rows)
        used, inside, least = 0, 0, inf
        best: tuple[int, NDArray[Any] | None] = int(self.order[self.at]), None
        while used < len(rows) and inside < _INSIDE:
            some = rows[used : used + group]
            values, f = support.look_at(some)
            if self.name == "autoactive":
                found = np.flatnonzero(np.abs(f) < margin)[: _INSIDE - inside]
                inside += len(found)
                f = f[: found[-1] + 1] if inside == _INSIDE else f
            score = self.problem.y[some] * f if self.name == "gradient" else np.abs(f)
            score[np.isnan(score)] = inf  # kernel values overflowed
            k = int(np.argmin(score))
            if score[k] < least:
                least, best = float(score[k]), (int(some[k]), values[:, k].copy())
            used += len(f)
        self.drawn += used
        support.count((used - 1) * support.n_terms)  # that of the chosen one is counted when it is learned
        return best
