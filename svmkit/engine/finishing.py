"""The dual over a few rows, taken from a feasible point to its optimum: what an online SVM does with S at the end.

Solves    max Σ y_s α_s − ½ Σ_st α_s α_t K_st   s.t.  Σ α_s const,  lower ≤ α ≤ upper        (signed α; g = y − Kα)
Stops     max g over {α < upper} − min g over {α > lower} ≤ eps; stalled where rounding lets no pair move, or
          that hardly falls (reviews.py)
Memory    the rows, packed; a q × q block; some vectors of their number

Pair steps are taken in blocks of the worst violators, as in block SMO; one fused product a block brings g up to date. Members
that sit at a bound where they cannot violate are left out on the way (shrinking), and looked at again at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Floats, Ints
from svmkit.engine import qp
from svmkit.engine.active import ActiveSet, Variables
from svmkit.engine.kernels import Engine
from svmkit.engine.reviews import Reviews
from svmkit.engine.space import aligned

_BLOCK = 1024
_SHRINK_ROUNDS = 4
#: Steps in a block at most.
_BLOCK_STEPS = 65_536


@dataclass
class _Open:
    """A block under way: places among the active variables, and their own arrays; g as F in qp.py."""

    place: Ints
    alpha: Floats
    g: NDArray[Any]
    lower: Floats
    upper: Floats
    diagonal: NDArray[Any]
    eps: float
    steps: int = 0


class Finishing:
    """A run over ``rows`` of ``engine`` from ``alpha`` with gradient ``g``, all (k,); ``ended`` says when it is over,
    ``stalled`` that the violation has not come down to ``eps``.

    Signed α and g are β and F of active.py.
    """

    def __init__(self, engine: Engine, rows: Ints, alpha: Floats, g: Floats, lower: Floats, upper: Floats, eps: float) -> None:
        self.engine = engine
        self.rows = rows
        self.eps = eps
        self.steps = 0
        self.violation = inf
        self.ended = self.stalled = False
        self._before = engine.evaluations
        whole = Variables(np.arange(len(rows)), engine.packed.take(rows), alpha.copy(), g.copy(), lower, upper)
        self._variables = ActiveSet(engine, rows, True, whole)
        self._previous = np.empty(0, np.int64)
        self._open: _Open | None = None
        size = min(_BLOCK, len(rows))
        self._K = aligned((size, size), engine.packed.real)
        self._scratch = [aligned(size, engine.packed.real) for _ in range(2)]
        self._rounds = 0
        self._least = inf
        self._reviews = Reviews(len(rows))

    @property
    def evaluations(self) -> int:
        """Kernel values computed."""
        return self.engine.evaluations - self._before

    def advance(self, budget: int) -> int:
        """At most ``budget`` more pair steps, a round's begin for as many as there are members; returns how many."""
        left = budget
        while left > 0 and not self.ended:
            if self._open is None:
                self._begin_round()
                left -= len(self.rows)
                continue
            block, n = self._open, len(self._open.place)
            allowed = min(left, _BLOCK_STEPS - block.steps)
            used: int = qp.pair_steps[self.engine.packed.real](
                *(self._K, block.diagonal, block.g, block.alpha, block.lower, block.upper),
                *(self._scratch[0][:n], self._scratch[1][:n], block.eps, allowed),
            )
            left -= used
            block.steps += used
            self.steps += used
            if used < allowed or block.steps == _BLOCK_STEPS:
                self._end_round(block)
        return min(budget, budget - left)

    def point(self) -> tuple[Floats, Floats]:
        """α and g (k,) so far; g of members outside the open block is that of the last round."""
        alpha, g = self._variables.current()
        if self._open is not None:
            here = self._variables.active.number[self._open.place]
            alpha[here] = self._open.alpha
            g[here] = self._variables.inside(self._open.place, self._open.alpha, self._open.g, self._K)
        return alpha, g

    def _begin_round(self) -> None:
        active = self._variables.active
        most, least = self._extremes()
        self._least = min(self._least, self.violation)
        if self.violation <= self.eps:
            if self._variables.is_whole:
                self.ended = True
            else:
                self._previous = self._variables.restore(self._previous)
            return
        place = self._variables.choose(len(self._K), self._previous, most, least, self.violation)
        rows = self.rows[active.number[place]]
        self.engine.block(rows, rows, self._K)
        self._open = _Open(
            place=place,
            alpha=active.beta[place],
            g=qp.centred(active.F[place], 0.5 * (most + least), self.engine.packed.real),
            lower=active.lower[place],
            upper=active.upper[place],
            diagonal=qp.diagonal_of(self._K, len(place)),
            eps=qp.inner_eps(self.eps, self.violation, len(place) == len(self.rows), self.engine.packed.real),
        )

    def _end_round(self, block: _Open) -> None:
        active = self._variables.active
        change = block.alpha - active.beta[block.place]
        changed = np.flatnonzero(change)
        active.beta[block.place] = block.alpha
        self.engine.apply(active.packed, self.rows[active.number[block.place[changed]]], -change[changed], active.F)
        self._previous, self._open = block.place, None
        self._rounds += 1
        if len(changed) == 0 or self._reviews.review(self.steps, self._least):
            self._previous = self._variables.restore(self._previous)
            self._extremes()
            self.ended, self.stalled = True, self.violation > self.eps
        elif self._rounds % _SHRINK_ROUNDS == 0:
            self._extremes()
            self._previous = self._variables.shrink(self._previous)

    def _extremes(self) -> tuple[float, float]:
        """The largest g that can rise, the smallest that can fall; notes their distance."""
        most, least, self.violation = self._variables.extremes(self._variables.active)
        return most, least
