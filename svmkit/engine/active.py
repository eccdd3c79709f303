"""The variables that a dual solver works on: packed together, those that cannot move dropped and, in the end, brought back.

β = s∘α in the box [lower, upper], F = −s∘(Qα + p); up = {β < upper}, low = {β > lower}; m = max F over up, M = min F over low.
A variable at a bound whose F lies on the far side of [M, m] cannot be part of a violation for now. Each drop remembers β of all
variables at its time; bringing back costs one product with what has changed since.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Bools, Floats, Ints
from svmkit.engine import qp
from svmkit.engine.by_need import product_of_rows
from svmkit.engine.kernels import Engine
from svmkit.engine.packed import Packed
from svmkit.problem import DualQP

#: The share of active variables to drop that makes packing anew worth it.
_WORTH = 0.1


@dataclass
class Variables:
    """Some of the variables: their numbers, what gives their rows, which the engine may have put away, β, F and box."""

    number: Ints
    pack: Callable[[], Packed]
    beta: Floats
    F: Floats
    lower: Floats
    upper: Floats

    @property
    def packed(self) -> Packed:
        """Their rows, packed together."""
        return self.pack()


class ActiveSet:
    """``whole`` holds every variable, ``active`` those in work, the same object where none is dropped.

    Else β and F in ``whole`` are stale on the active ones, and F on the dropped ones since their drop: ``drops`` has (numbers,
    β of all at that time). ``row_of`` (m,) is each variable's row of the ``engine``; ``bias`` says whether steps keep Σβ.
    """

    def __init__(self, engine: Engine, dual: DualQP) -> None:
        """All of ``dual`` at its start; O(m) memory. From a start other than 0, F lacks the kernel's part until ``begin``."""
        self.engine, self.row_of, self.bias = engine, dual.row_of, dual.equality == "one"
        bounds = dual.sign * dual.upper
        whole = Variables(
            number=np.arange(len(bounds)),
            pack=_packing(engine, dual.row_of),
            beta=dual.sign * dual.start,
            F=-dual.sign * dual.linear,
            lower=np.minimum(0.0, bounds),
            upper=np.maximum(0.0, bounds),
        )
        self.whole = self.active = whole
        self.begun = not whole.beta.any()
        self.drops: list[tuple[Ints, Floats]] = []

    def begin(self) -> None:
        """F of a start other than 0: one product with the kernel. What ends it leaves F as it was."""
        F, support = self.whole.F.copy(), np.flatnonzero(self.whole.beta)
        self.engine.apply(self.whole.packed, self.row_of[support], -self.whole.beta[support], F)
        self.whole.F, self.begun = F, True

    def change_engine(self, engine: Engine) -> None:
        """Makes every variable active, on another engine's rows."""
        self.restore(np.empty(0, np.int64))
        self.engine = engine
        self.whole.pack = _packing(engine, self.row_of)

    @property
    def is_whole(self) -> bool:
        """Whether no variable is dropped."""
        return self.active is self.whole

    def extremes(self, some: Variables) -> tuple[float, float, float]:
        """m, M and the violation (without a bias that of single variables) among ``some``."""
        out = np.empty(2)
        qp.extremes(some.F, some.beta, some.lower, some.upper, out)
        m, M = float(out[0]), float(out[1])
        return m, M, max(0.0, m - M if self.bias else max(m, -M))

    def choose(self, size: int, previous: Ints, m: float, M: float, violation: float) -> Ints:
        """Places of at most ``size`` active variables for a block, some of those at the places ``previous`` among them."""
        active = self.active
        if len(active.number) <= size:
            return np.arange(len(active.number))
        up_edge, low_edge = (M, m) if self.bias else (0.0, 0.0)
        chosen = np.empty(size, np.int64)
        n = qp.choose_block(
            *(active.F, active.beta, active.lower, active.upper),
            *(previous, size, up_edge, low_edge, violation),
            *(np.empty(len(active.F), np.int32), np.empty(len(active.F), np.int32), chosen),
        )
        return chosen[:n]

    def inside(self, place: Ints, beta: Floats, F: NDArray[Any], K: NDArray[Any]) -> Floats:
        """F of those at ``place`` with β changed to ``beta`` by steps that left ``F``, on their block of kernel values."""
        if F.dtype == np.float64:
            return F
        return self.active.F[place] - product_of_rows(K, beta - self.active.beta[place])

    def stuck(self, some: Variables, margin: float) -> Bools:
        """Which of ``some`` are at a bound and, by more than ``margin``, on the side of F where they cannot violate."""
        m, M, _ = self.extremes(some)
        least, most = (M, m) if self.bias else (0.0, 0.0)
        low = (some.beta <= some.lower) & (least - margin > some.F)
        high = (some.beta >= some.upper) & (most + margin < some.F)
        found: Bools = low | high
        return found

    def shrink(self, places: Ints, margin: float = 0.0) -> Ints:
        """Drops those stuck by more than ``margin``, if they are enough to be worth it.

        Returns where the active ones at ``places`` are then, −1 where they are dropped.
        """
        active = self.active
        drop = self.stuck(active, margin)
        if np.count_nonzero(drop) <= _WORTH * len(drop):
            return places
        self._write_back()
        keep = ~drop
        kept = np.flatnonzero(keep)
        self.drops.append((active.number[drop], self.whole.beta.copy()))
        packed = active.packed.take(kept)
        self.active = Variables(
            number=active.number[kept],
            pack=lambda: packed,
            beta=active.beta[kept],
            F=active.F[kept],
            lower=active.lower[kept],
            upper=active.upper[kept],
        )
        place = np.where(keep, np.cumsum(keep) - 1, -1)
        return np.where(places >= 0, place[places], -1)

    def restore(self, places: Ints) -> Ints:
        """Makes every variable active, F of the dropped ones brought up to date.

        Returns where those at ``places`` are then, without those dropped before (−1).
        """
        whole, number_of = self.whole, self.active.number
        self._write_back()
        for number, beta_then in self.drops:
            change = whole.beta - beta_then
            changed = np.flatnonzero(change)
            F = whole.F[number]
            self.engine.apply(whole.packed.take(number), self.row_of[changed], -change[changed], F)
            whole.F[number] = F
        self.active, self.drops = whole, []
        return number_of[places[places >= 0]]

    def current(self) -> tuple[Floats, Floats]:
        """β and F of every variable, F of dropped ones as it was; copies."""
        F = self.whole.F.copy()
        F[self.active.number] = self.active.F
        return self.current_beta(), F

    def current_beta(self) -> Floats:
        """β of every variable, a copy."""
        beta = self.whole.beta.copy()
        beta[self.active.number] = self.active.beta
        return beta

    def _write_back(self) -> None:
        """β and F of the active variables into the whole."""
        if not self.is_whole:
            self.whole.beta[self.active.number] = self.active.beta
            self.whole.F[self.active.number] = self.active.F


def _packing(engine: Engine, row_of: Ints) -> Callable[[], Packed]:
    """What gives the rows of variables that belong to ``row_of``: the engine's own where these are all of them in order."""
    if np.array_equal(row_of, np.arange(engine.packed.n)):
        return lambda: engine.packed
    packed = engine.packed.take(row_of)
    return lambda: packed
