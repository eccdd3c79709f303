"""LASVM written plainly: a list of members, a dense kernel matrix, every g from scratch; for the tests of the real one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from svmkit.data import Floats
from svmkit.engine import rng
from svmkit.problem import Problem, Solution
from svmkit.solvers import lasvm

EPS = 1e-3


@dataclass
class Naive:
    """S as a list, α of every example; ``used`` counts the kernel values of an example when it comes: with the terms of f, and
    with the rest of S if it stays or has had a step."""

    K: Floats
    y: Floats
    upper: Floats
    eps: float = EPS
    budget: int = 0
    keep_within: float = 0.35
    room: float = math.inf

    def __post_init__(self) -> None:
        self.room = min(self.room, self.budget or math.inf)
        self.alpha = np.zeros(len(self.y))
        self.S: list[int] = []
        self.levelled = (-1, -1)
        self.leaving = -1
        self.stale = True
        self.used = 0
        self.staying = self.seen = 0

    def g(self) -> Floats:
        if self.stale:
            self.gradient, self.stale = self.y - self.K @ self.alpha, False
        return self.gradient

    def extremes(self) -> tuple[int | None, int | None]:
        g, S = self.g(), np.array([s for s in self.S if s != self.leaving], dtype=np.int64)
        up = S[self.alpha[S] < np.maximum(0, self.upper[S] * self.y[S])]
        low = S[self.alpha[S] > np.minimum(0, self.upper[S] * self.y[S])]
        i = int(up[np.argmax(g[up])]) if len(up) else None
        j = int(low[np.argmin(g[low])]) if len(low) else None
        first, second = self.levelled  # the last step has made them equal: the first one counts
        return first if i == second and first in up else i, first if j == second and first in low else j

    def bias_and_delta(self) -> tuple[float, float]:
        g, (i, j) = self.g(), self.extremes()
        ends = [g[s] for s in (i, j) if s is not None]
        return (float(np.mean(ends)) if ends else 0.0), (max(0.0, g[i] - g[j]) if len(ends) == 2 else 0.0)

    def f(self, rows: Any) -> Floats:
        return self.K[rows] @ self.alpha + self.bias_and_delta()[0]

    def step(self, i: int | None, j: int | None) -> bool:
        g = self.g()
        if i is None or j is None or not g[i] - g[j] > self.eps:
            return False
        most = max(0, self.upper[i] * self.y[i]) - self.alpha[i]
        least = self.alpha[j] - min(0, self.upper[j] * self.y[j])
        curvature = max(self.K[i, i] + self.K[j, j] - 2 * self.K[i, j], 1e-12)
        step = min((g[i] - g[j]) / curvature, most, least)
        self.levelled = (i, j) if step < min(most, least) else (-1, -1)
        for k, new in ((i, self.alpha[i] + step), (j, self.alpha[j] - step)):
            ends = [end for end in (0.0, self.upper[k] * self.y[k]) if abs(new - end) < 1e-12 * self.upper[k]]
            self.alpha[k] = ends[0] if ends else new
        self.stale = True
        return True

    def process(self, k: int) -> None:
        i, j = self.extremes()
        self.rest = 0
        if k in self.S:
            return
        self.seen += 1
        self.rest = sum(self.alpha[s] == 0 for s in self.S)
        self.used += len(self.S) - self.rest
        if self.upper[k] == 0 or ((j if self.y[k] > 0 else i) is None and len(self.S) >= 5):
            return  # nothing to learn, or more of one class than anything can be learned from
        self.S.append(k)
        self.step(*((k, j) if self.y[k] > 0 else (i, k)))
        self.use_rest(self.alpha[k] != 0)

    def use_rest(self, used: bool) -> None:
        if used:
            self.used, self.rest = self.used + self.rest, 0

    def reprocess(self) -> bool:
        moved = self.step(*self.extremes())
        (i, j), g = self.extremes(), self.g()
        if i is not None and j is not None:
            zeros = [s for s in self.S if self.alpha[s] == 0]
            beyond = {s: g[s] - g[i] if self.y[s] < 0 else g[j] - g[s] for s in zeros}
            has_room = len(self.S) <= self.room
            within = min(self.keep_within * len(self.S) / self.seen, max(0, g[i] - g[j]) / 3) if has_room else 0.0
            gone = [s for s in zeros if beyond[s] >= within]
            self.staying = sum(0 <= beyond[s] < within for s in zeros)
            if g[i] <= g[j]:
                gone = [s for s in gone if s not in (i, j)]
            self.S = [s for s in self.S if s not in gone]
        return moved

    def learn(self, k: int, delta_max: float = math.inf) -> Iterator[None]:
        """Yields after each step."""
        self.process(k)
        while True:
            moved = self.reprocess()
            self.use_rest(k in self.S)
            over = not moved or self.bias_and_delta()[1] <= delta_max
            while over and self.budget and len(self.S) > self.budget:
                self.retire()
            yield
            if over:
                return

    def retire(self) -> None:
        """The oldest of the larger class leaves, its α passed on."""
        larger = 1 if sum(self.y[self.S]) > 0 else -1
        self.leaving = r = next(s for s in self.S if self.y[s] == larger)
        while self.alpha[r] != 0:
            i, j = self.extremes()
            other = i if self.alpha[r] > 0 else j
            if other is None:
                assert abs(self.alpha[r]) < 1e-12  # what rounding has left
                self.alpha[r] = 0
                break
            end = self.upper[other] * self.y[other]
            room = max(0, end) - self.alpha[other] if self.alpha[r] > 0 else self.alpha[other] - min(0, end)
            step = math.copysign(min(abs(self.alpha[r]), room), self.alpha[r])
            self.alpha[r] -= step
            near = [bound for bound in (0.0, end) if abs(self.alpha[other] + step - bound) < 1e-12 * self.upper[other]]
            self.alpha[other] = near[0] if near else self.alpha[other] + step
            self.levelled, self.stale = (-1, -1), True
        self.S.remove(r)
        self.leaving = -1


def first_order(case: Problem, seed: int, seeded: bool) -> list[int]:
    order = rng.permutation(seed, 0, case.n).tolist()
    if not seeded:
        return order
    first = [[k for k in order if case.y[k] == label][:5] for label in (1, -1)]
    begin = [k for k in order if k in first[0] + first[1]]
    return begin + [k for k in order if k not in begin]


def chosen(naive: Naive, left: list[int], options: lasvm.Options, seed: int, drawn: int) -> tuple[int, int]:
    """The choice among those left, and how many were drawn for it."""
    wanted = 100 if options.selection == "autoactive" else options.candidates
    rows = [left[k] for k in rng.integers(seed, 1 << 32, drawn, wanted, len(left))] if wanted < len(left) else list(left)
    if options.selection == "autoactive":
        b, delta = naive.bias_and_delta()
        inside = [place for place, row in enumerate(rows) if abs(naive.K[row] @ naive.alpha + b) < 1 + delta / 2]
        rows = rows[: inside[4] + 1] if len(inside) >= 5 else rows
    f = naive.f(rows)
    score = naive.y[rows] * f if options.selection == "gradient" else abs(f)
    naive.used += (len(rows) - 1) * np.count_nonzero(naive.alpha)
    return rows[int(np.argmin(score))], len(rows)


def naive_run(case: Problem, K: Floats, seed: int, options: lasvm.Options, naive: Naive) -> Iterator[None]:
    """Yields after each step; the first epoch leaves out what ``naive`` has in S to begin with."""
    drawn = 0
    for epoch in range(options.epochs):
        seeded = options.selection in ("random", "gradient")
        order = first_order(case, seed, seeded) if epoch == 0 else rng.permutation(seed, epoch, case.n).tolist()
        left = [k for k in order if epoch > 0 or k not in naive.S]
        for at in range(len(left)):
            seeding = options.selection == "gradient" and epoch == 0 and at < 10
            if options.selection == "random" or seeding or None in naive.extremes():
                k = left[at]
            else:
                k, more = chosen(naive, left[at:], options, seed, drawn)
                drawn += more
            place = left.index(k)
            left[at], left[place] = left[place], left[at]
            yield from naive.learn(k, options.delta_max)


def beta(case: Problem, found: Solution) -> Floats:
    out = np.zeros(case.n)
    out[found.origin] = found.coef
    return out
