"""Machines of a large class and a tiny one, several together: each on the tiny class and those few of the large that matter.

Against a handful of examples a class of thousands has few support vectors, and what smo spends on all the others is the time
that this takes. So a machine begins with those of the large class that are nearest to the tiny one by the kernel, and is
trained on these as small machines are (together.py). Then F of the whole class follows from one product with the support
vectors; those that violate most join, and that again until none does. Machines whose violators do not become far fewer by that
are left to smo: many of the large class matter there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmkit.data import Bools, Floats, Ints
from svmkit.engine.kernels import Engine
from svmkit.engine.together import Blocks, Boxes, Ended, train_machines
from svmkit.solvers.base import Several

#: Examples of the tiny class at most; machines that share kernel values.
MOST_OF_TINY, _TOGETHER = 32, 16
#: Of the large class so many to begin with, and that join at a time; the share that violators fall to, if they are more.
_NEAREST, _MORE, _FEWER = 32, 32, 0.5
#: Units of work (base.py's ``Together``) for each example of a machine: by a high guess, and for the steps of a round at most.
WORK = 100
#: Kernel values made at a time.
_VALUES = 1 << 20


def large_classes(machines: Several) -> Ints:
    """Of each machine the class that more of its examples are of."""
    positives = np.add.reduceat((machines.y > 0).astype(np.int64), machines.starts[:-1])
    return np.where(2 * positives > machines.sizes, machines.positive, machines.negative)


def train_on_few(
    engine: Engine, machines: Several, boxes: Boxes, bias: bool, eps: float, most_steps: int, ended: Ended
) -> None:
    """``train_machines`` for machines of one large class, which stands on the same side in all of them."""
    for first in range(0, len(machines.positive), _TOGETHER):
        last = min(first + _TOGETHER, len(machines.positive))
        own = ended.part(boxes.starts, first, last)
        some = _Some(engine, machines.part(first, last), boxes.part(first, last))
        some.train(bias, eps, most_steps, own)


class _Round(NamedTuple):
    """Machines ``numbers`` on some of their examples: ``rows`` of the engine, of which variables ``places`` are; the variables
    of all machines that these are; what comes of their steps."""

    numbers: list[int]
    rows: Ints
    places: Ints
    variables: Ints
    boxes: Boxes
    ended: Ended


class _Some:
    """Machines that are trained side by side, ``large`` (k, n) the variables of the large class and ``tiny`` the others."""

    def __init__(self, engine: Engine, machines: Several, boxes: Boxes) -> None:
        self._engine, self._boxes, self._examples = engine, boxes, machines.examples
        positives = np.add.reduceat((machines.y > 0).astype(np.int64), machines.starts[:-1])
        self._sign = 1.0 if 2 * positives[0] > machines.sizes[0] else -1.0
        is_large = machines.y == self._sign
        self._large = np.flatnonzero(is_large).reshape(len(positives), -1)
        self._tiny = np.flatnonzero(~is_large)
        self._cuts = np.searchsorted(self._tiny, machines.starts)
        self._rows = machines.examples[self._large[0]]
        self._in_use = self._nearest()
        self._violators = np.full(len(positives), np.inf)

    def _nearest(self) -> Bools:
        """Which of the large class a machine begins with, (k, n)."""
        n, tiny = len(self._rows), self._examples[self._tiny]
        nearest = np.empty((n, len(self._cuts) - 1))
        for a, b in self._stretches(len(tiny)):
            values = self._engine.block(self._rows[a:b], tiny)
            nearest[a:b] = np.maximum.reduceat(values, self._cuts[:-1], axis=1)
        in_use = np.zeros(nearest.T.shape, dtype=bool)
        np.put_along_axis(in_use, np.argpartition(-nearest, _NEAREST, axis=0)[:_NEAREST].T, True, axis=1)
        return in_use

    def train(self, bias: bool, eps: float, most_steps: int, ended: Ended) -> None:
        """Until no example of the large class violates, or they do not become fewer; ``ended`` says of which machines."""
        waiting = list(range(len(self._large)))
        ended.evaluations[:] = len(self._rows) * np.diff(self._cuts)
        while waiting:
            round_ = self._trained(waiting, bias, eps, most_steps)
            sums = self._sums(round_, ended)
            waiting = [
                machine
                for place, machine in enumerate(waiting)
                if not self._is_over(round_, place, sums[:, place], bias, eps, most_steps, ended)
            ]

    def _trained(self, numbers: list[int], bias: bool, eps: float, most_steps: int) -> _Round:
        """Steps of each machine on what it has in use, from β = 0."""
        n, boxes = len(self._rows), self._boxes
        used = np.flatnonzero(self._in_use[numbers].any(axis=0))
        place_of = np.zeros(n, np.int64)
        place_of[used] = np.arange(len(used))
        tiny = np.concatenate([np.arange(self._cuts[k], self._cuts[k + 1]) for k in numbers])
        rows = np.concatenate([self._rows[used], self._examples[self._tiny[tiny]]])
        places, variables, begin = list[Ints](), list[Ints](), len(used)
        for k in numbers:
            own, others = np.flatnonzero(self._in_use[k]), self._tiny[self._cuts[k] : self._cuts[k + 1]]
            places += [place_of[own], begin + np.arange(len(others))]
            variables += [self._large[k, own], others]
            begin += len(others)
        sizes = [len(own) + len(others) for own, others in zip(variables[::2], variables[1::2], strict=True)]
        starts, place, variable = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(places), np.concatenate(variables)
        part = Boxes(starts, boxes.y[variable], boxes.lower[variable], boxes.upper[variable], boxes.diagonal[variable])
        K, nothing = self._engine.block(rows, rows), np.zeros(len(numbers), np.int64)
        blocks = Blocks(K, K, K.ravel(), place, nothing, nothing, nothing + len(K))
        ended, most_work = Ended.room_for(part), WORK * n
        train_machines(blocks, part, bias, eps, most_steps, most_work, len(numbers) * most_work, ended)
        return _Round(numbers, rows, place, variable, part, ended)

    def _sums(self, round_: _Round, ended: Ended) -> Floats:
        """Kβ of the large class, (n, machines), and in ``ended`` what these, and the steps, have used."""
        n, starts, own = len(self._rows), round_.boxes.starts, round_.ended
        machine = np.repeat(np.arange(len(round_.numbers)), np.diff(starts))
        beta = np.zeros((len(round_.rows), len(round_.numbers)))
        beta[round_.places, machine] = own.beta
        support = np.flatnonzero(beta.any(axis=1))
        sums = np.empty((n, len(round_.numbers)))
        for a, b in self._stretches(len(support)):
            sums[a:b] = self._engine.block(self._rows[a:b], round_.rows[support]) @ beta[support]
        ended.steps[round_.numbers] += own.steps
        ended.evaluations[round_.numbers] += own.evaluations + n * np.count_nonzero(beta, axis=0)
        return sums

    def _is_over(self, round_: _Round, place: int, sums: Floats, bias: bool, eps: float, most_steps: int, ended: Ended) -> bool:
        """Whether a machine has ended, with ``sums`` for the large class, or is left; else those that violate most join."""
        machine, (a, b) = round_.numbers[place], round_.boxes.starts[place : place + 2]
        variables, own, box = round_.variables[a:b], round_.ended, round_.boxes
        if not own.finished[place] or ended.steps[machine] >= most_steps:
            return True
        F, beta = box.y[a:b] - own.product[a:b], own.beta[a:b]
        top = F[beta < box.upper[a:b]].max(initial=-np.inf) if bias else 0.0
        bottom = F[beta > box.lower[a:b]].min(initial=np.inf) if bias else 0.0
        beyond = self._sign - sums - bottom if self._sign > 0 else top - (self._sign - sums)
        beyond[self._in_use[machine]] = -np.inf
        worst = np.flatnonzero(~(beyond < eps))
        if len(worst) == 0:
            ended.finished[machine] = 1
            ended.product[self._large[machine]] = sums
            ended.beta[variables], ended.product[variables] = beta, own.product[a:b]
            return True
        if len(worst) > max(_MORE, _FEWER * self._violators[machine]):
            return True
        self._violators[machine] = len(worst)
        if len(worst) > _MORE:
            worst = worst[np.argpartition(-beyond[worst], _MORE)[:_MORE]]
        self._in_use[machine, worst] = True
        return False

    def _stretches(self, width: int) -> list[tuple[int, int]]:
        """Of the large class, so many at a time that values with ``width`` others are few."""
        n, step = len(self._rows), max(1, _VALUES // max(width, 1))
        return [(a, min(a + step, n)) for a in range(0, n, step)]
