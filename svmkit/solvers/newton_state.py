"""What newton.py knows as it goes: the rows it works on, w and b, and the α that the smoothed loss gives.

Rows it works on are first those of samples. Once they are all, most lie far from where the loss bends, further than a round
moves them: a round then works on the others, and looks at all where it has come to its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Floats, Ints, Rows
from svmkit.engine import linear
from svmkit.engine.weighted import SetGram
from svmkit.problem import Problem
from svmkit.solvers.newton_point import Point
from svmkit.solvers.newton_samples import Part

#: The first s, where the loss is smoothed over margins two apart.
FIRST_S = 0.5
#: A row is near where its margin is at most so many times 1/s, the width over which the loss bends, from there.
_NEAR = 8.0
#: Near rows must be at most one in so many to go alone; and all rows of so many values that looking at them takes time.
_FEW, _MANY_VALUES = 4, 1 << 22
#: By so large a share of itself the smoothed loss may have risen where it is but rounded.
_ROUNDED = 2.0**-40


class Aside(NamedTuple):
    """All rows, while those numbered ``near`` are worked on: what there was of them; and of the others Σ y_i α_i x_i (d + 1,),
    yᵀα and Σα, which stay as they are. ``loss``: the smoothed loss of all with w, b and ``products`` as they were."""

    near: Ints
    part: Part
    centre: Floats
    alpha: Floats
    folded: Floats
    balance: float
    total: float
    w: Floats
    b: float
    products: Floats
    loss: float


@dataclass
class State:
    """``used, rows, y, upper, which``: a Part, the rows with C_i > 0, or first a sample of them, or those of them near. w's
    place 0 is unused.

    ``wider``: the larger samples and at last all rows, each with the s at which it takes over; ``turned``: the steps by then;
    ``round_began``: those by the round's begin.
    ``products``: ⟨w, x_i⟩. ``folded``: Σ y_i α_i x_i of all rows for ``alpha``, that of the last step. ``closed`` violates KKT
    least of all so far, ``violation`` is that of the last α looked at. ``most_s``: the s not to go beyond, where rounding has
    shown it; ``kept``: of the w and b there, those of the least primal objective, which is the first. ``promised``: by how much
    the round's last step was to lower the smoothed loss; ``small``: its steps that promised next to nothing.
    """

    problem: Problem
    eps: float
    used: Ints
    rows: Rows
    y: Floats
    upper: Floats
    names: NDArray[np.int32]
    wider: list[tuple[float, Part]]
    gram: SetGram
    w: Floats
    b: float
    products: Floats
    centre: Floats
    alpha: Floats
    folded: Floats
    which: Ints | None = None
    s: float = FIRST_S
    most_s: float = inf
    promised: float = inf
    small: int = 0
    aside: Aside | None = None
    closed: Point | None = None
    kept: tuple[float, Floats, float] | None = None
    steps: int = 0
    turned: int = 0
    round_began: int = 0
    evaluations: int = 0
    violation: float = nan
    done: bool = False
    stalled: bool = False

    @property
    def free(self) -> bool:
        """Whether there is a b."""
        return self.problem.bias == "free"

    def dots(self, w: Floats) -> Floats:
        """⟨w, x_i⟩ of each row worked on, counted."""
        self.evaluations += len(self.used)
        return linear.dots(self.rows, w, self.which)

    def fold(self, weights: Floats) -> Floats:
        """Σ weights_i x_i, with a place for every feature number."""
        return linear.fold(self.rows, weights, self.rows.n_features + 1, self.which)

    def pulled(self) -> Floats:
        """a′ + s z, which is a where it lies between 0 and 1."""
        pulled: Floats = self.centre + self.s * (1.0 - self.y * (self.products + self.b))
        return pulled

    def loss(self) -> float:
        """The smoothed loss of the rows worked on, with ½‖w‖²."""
        lacks = 1.0 - self.y * (self.products + self.b)
        a = np.clip(self.centre + self.s * lacks, 0.0, 1.0)
        return 0.5 * float(self.w @ self.w) + float(self.upper @ (a * lacks - (a - self.centre) ** 2 / (2.0 * self.s)))

    def alpha_now(self) -> Floats:
        """α by w and b; of rows set aside what it was."""
        now = self.upper * np.clip(self.pulled(), 0.0, 1.0)
        if self.aside is not None:
            now, near = self.aside.alpha.copy(), now
            now[self.aside.near] = near
        return now

    def of_all(self, alpha: Floats) -> Floats:
        """``alpha`` of the rows of the part, as one of the problem's rows (n,)."""
        found, used = np.zeros(self.problem.n), self.used if self.aside is None else self.aside.part.used
        found[used] = np.minimum(alpha, self.problem.upper[used])
        return found


def turn_to(state: State, s: float, part: Part) -> None:
    """Goes on with more rows from w and b of fewer, around a′ = ½, for the others have none: the loss is smoothed evenly."""
    state.used, state.rows, state.y, state.upper, state.which = part
    state.gram, state.closed, state.kept = SetGram(part.rows, part.upper, part.which), None, None
    state.done = state.stalled = False
    state.turned = state.round_began = state.steps
    state.violation, state.s = nan, s
    state.most_s = state.promised = inf
    state.products = state.dots(state.w)
    state.centre = np.full(len(state.used), 0.5)
    state.alpha, state.folded = np.zeros(len(state.used)), np.zeros_like(state.w)


def set_aside(state: State) -> None:
    """Goes on with the near rows, where they are few of many; of the others α is at a bound and stays there."""
    n = len(state.used)
    if state.wider or len(state.rows.data) < _MANY_VALUES:
        return
    is_near = (np.abs(state.pulled() - 0.5) <= _NEAR + 0.5) | state.gram.inside
    near = np.flatnonzero(is_near)
    if not 0 < _FEW * len(near) <= n:
        return
    before = state.w, state.b, state.products, state.loss()
    part, centre, alpha = Part(state.used, state.rows, state.y, state.upper), state.centre, state.alpha
    far = np.where(is_near, 0.0, alpha)
    state.used, state.rows, state.y, state.upper, state.which = part.among(near)
    state.products, state.centre, state.alpha = state.products[near], centre[near], alpha[near]
    state.gram.renumber(near, state.upper, state.gram.inside[near])
    folded = state.folded - state.fold(state.y * state.alpha)
    state.aside = Aside(near, part, centre, alpha, folded, float((part.y * far).sum()), float(far.sum()), *before)


def bring_back(state: State, aside: Aside) -> None:
    """Goes on with all rows, from w; or, where these show that it is worse than it was, from what it was.

    A row set aside counts as if its loss went on straight, so where one bends it, what steps on the others gain may be lost.
    """
    inside = np.zeros(len(aside.alpha), dtype=bool)
    inside[aside.near] = state.gram.inside
    aside.alpha[aside.near] = state.alpha
    state.used, state.rows, state.y, state.upper, state.which = aside.part
    state.centre, state.alpha, state.products = aside.centre, aside.alpha, state.dots(state.w)
    state.gram.renumber(None, state.upper, inside)
    state.aside = None
    if not state.loss() <= aside.loss + _ROUNDED * abs(aside.loss):
        state.w, state.b, state.products = aside.w, aside.b, aside.products
