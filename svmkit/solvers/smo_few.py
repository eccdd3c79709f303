"""Machines of a large class and a tiny one, several together: each on the tiny class and those few of the large that matter.

Against few examples a class of thousands has few support vectors, and what smo spends on all the others is the time that this
takes. So a machine begins with those of the large class whose kernel values with the tiny one are largest, and is
trained on these as small machines are (engine/together.py), from β = 0. Then F of the large class follows from one product with
the support vectors; those that violate most join, and that again until none does: first among a sample of the large class, then
among all of it. A machine whose violators do not become far fewer by that is left to smo, as many of the large class matter
there; the sample shows most of these at little cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmkit import parallel
from svmkit.data import Floats, Ints
from svmkit.engine.kernels import Engine
from svmkit.engine.together import Blocks, Boxes, Ended, train_machines
from svmkit.solvers.base import Several

#: Examples of the tiny class at most.
MOST_OF_TINY = 128
#: Machines that go side by side and share kernel values.
_TOGETHER = 8
#: Examples of the large class in the sample at most.
_SAMPLE = 1024
#: So many of the large class to begin with, so many that join at a time, and so many in use at most.
_LARGEST, _MORE, _MOST = 32, 32, 256
#: Violators are to become fewer by this share each time, if they are more than can join; and so often some may join.
_FEWER, _ROUNDS = 0.5, 12
#: Work of a machine, in units of base.py's ``Together``, for each example, on rows of at most so many nonzeros in the mean; of
#: longer ones in proportion.
_WORK, _NONZEROS = 100, 16


def work_on_few(n: int, nonzeros: float) -> float:
    """The work of a machine of ``n`` examples with so many nonzeros in the mean; that for the steps of a round is at most _WORK
    an example.
    """
    return _WORK * n * max(1.0, nonzeros / _NONZEROS)


def signs_of_large(machines: Several) -> Floats:
    """y of the larger class of each machine."""
    return np.where(np.add.reduceat(machines.y, machines.starts[:-1]) > 0, 1.0, -1.0)


def train_on_few(
    engine: Engine, machines: Several, boxes: Boxes, bias: bool, eps: float, most_steps: int, ended: Ended
) -> None:
    """As ``train_machines`` for machines of one large class, which stands on the same side in all of them.

    A machine that is left, or over (``parallel.heeding``) before it has ended, is not ``finished``.
    """
    for first in range(0, len(machines.positive), _TOGETHER):
        last = min(first + _TOGETHER, len(machines.positive))
        some = _Some(engine, machines.part(first, last), boxes.part(first, last), ended.part(boxes.starts, first, last))
        some.train(bias, eps, most_steps)


class _Steps(NamedTuple):
    """How steps of machines on what they have in use ended: of all machines' variables those numbered ``variables``, which are
    of the engine's ``rows``, numbers ``places`` of these."""

    rows: Ints
    places: Ints
    variables: Ints
    boxes: Boxes
    ended: Ended


class _Some:
    """Machines side by side: ``large`` (k, n) are the variables of the large class, ``rows`` (n,) the rows of these, ``tiny``
    the other variables, machine after machine, cut at ``cuts``; ``in_use`` (k, n).
    """

    def __init__(self, engine: Engine, machines: Several, boxes: Boxes, ended: Ended) -> None:
        self._engine, self._boxes, self._ended = engine, boxes, ended
        self._examples, self._sign = machines.examples, float(signs_of_large(machines)[0])
        is_large = machines.y == self._sign
        self._large = np.flatnonzero(is_large).reshape(len(machines.positive), -1)
        self._rows = machines.examples[self._large[0]]
        self._tiny = np.flatnonzero(~is_large)
        self._cuts = np.searchsorted(self._tiny, machines.starts)
        self._in_use = np.zeros(self._large.shape, dtype=bool)

    def train(self, bias: bool, eps: float, most_steps: int) -> None:
        """Of machines that end with no violator among the sample, those that end with none among all have finished."""
        n = len(self._rows)
        every, sample = np.arange(n), np.arange(0, n, -(-n // _SAMPLE))
        self._begin(sample)
        numbers = list(range(len(self._large)))
        for seen in (sample, every) if len(sample) < n else (every,):
            numbers = self._without_violators(numbers, seen, bias, eps, most_steps)

    def _begin(self, sample: Ints) -> None:
        """With those of the sample whose kernel values with the tiny class are largest."""
        tiny = self._examples[self._tiny]
        largest = np.maximum.reduceat(self._engine.block(self._rows[sample], tiny), self._cuts[:-1], axis=1)
        first = np.argsort(-largest, axis=0, kind="stable")[:_LARGEST]
        np.put_along_axis(self._in_use, sample[first].T, True, axis=1)
        self._ended.evaluations[:] = len(sample) * np.diff(self._cuts)

    def _without_violators(self, numbers: list[int], seen: Ints, bias: bool, eps: float, most_steps: int) -> list[int]:
        """Those of the machines that end so, among examples ``seen`` of the large class; others are left."""
        before, settled = np.full(len(self._large), np.inf), list[int]()
        for _ in range(_ROUNDS):
            if not numbers or parallel.is_over():
                break
            steps = self._trained(numbers, bias, eps, most_steps)
            sums = self._sums(steps, numbers, seen)
            again = list[int]()
            for place, machine in enumerate(numbers):
                if not steps.ended.finished[place] or self._ended.steps[machine] >= most_steps:
                    continue
                worst = self._violators(steps, place, seen[~self._in_use[machine, seen]], sums, seen, bias, eps)
                if len(worst) == 0:
                    settled.append(machine)
                    if len(seen) == len(self._rows):
                        self._finish(steps, place, machine, sums[:, place])
                elif len(worst) <= max(_MORE, _FEWER * before[machine]):
                    before[machine] = len(worst)
                    self._in_use[machine, worst[:_MORE]] = True
                    if np.count_nonzero(self._in_use[machine]) <= _MOST:
                        again.append(machine)
            numbers = again
        return settled

    def _trained(self, numbers: list[int], bias: bool, eps: float, most_steps: int) -> _Steps:
        """Steps of each machine on what it has in use, from β = 0."""
        used = np.flatnonzero(self._in_use[numbers].any(axis=0))
        place_of = np.zeros(len(self._rows), np.int64)
        place_of[used] = np.arange(len(used))
        places, variables, begin = list[Ints](), list[Ints](), len(used)
        for machine in numbers:
            own, tiny = np.flatnonzero(self._in_use[machine]), self._tiny[self._cuts[machine] : self._cuts[machine + 1]]
            places.append(np.concatenate([place_of[own], begin + np.arange(len(tiny))]))
            variables.append(np.concatenate([self._large[machine, own], tiny]))
            begin += len(tiny)
        place, variable = np.concatenate(places), np.concatenate(variables)
        rows = np.zeros(begin, np.int64)
        rows[place] = self._examples[variable]
        starts, whole = np.concatenate([[0], np.cumsum([len(each) for each in places])]), self._boxes
        boxes = Boxes(starts, whole.y[variable], whole.lower[variable], whole.upper[variable], whole.diagonal[variable])
        K, nothing = self._engine.block(rows, rows), np.zeros(len(numbers), np.int64)
        blocks = Blocks(K, K, K.ravel(), place, nothing, nothing, nothing + len(K))
        ended, most_work = Ended.room_for(boxes), _WORK * len(self._rows)
        train_machines(blocks, boxes, bias, eps, most_steps, most_work, len(numbers) * most_work, ended)
        return _Steps(rows, place, variable, boxes, ended)

    def _sums(self, steps: _Steps, numbers: list[int], seen: Ints) -> Floats:
        """Kβ of the examples ``seen`` of the large class, (seen, machines); they and the steps are counted."""
        machine = np.repeat(np.arange(len(numbers)), np.diff(steps.boxes.starts))
        beta = np.zeros((len(steps.rows), len(numbers)))
        beta[steps.places, machine] = steps.ended.beta
        support = np.flatnonzero(beta.any(axis=1))
        sums, at_a_time = np.empty((len(seen), len(numbers))), 1 << 20
        step = max(1, at_a_time // max(len(support), 1))
        for a in range(0, len(seen), step):
            some = self._rows[seen[a : a + step]]
            sums[a : a + step] = self._engine.block(some, steps.rows[support]) @ beta[support]
        self._ended.steps[numbers] += steps.ended.steps
        self._ended.evaluations[numbers] += steps.ended.evaluations + len(seen) * np.count_nonzero(beta, axis=0)
        return sums

    def _violators(self, steps: _Steps, place: int, others: Ints, sums: Floats, seen: Ints, bias: bool, eps: float) -> Ints:
        """Of ``others``, which are seen and not in use, those that violate, the worst first."""
        here, box, ended = slice(*steps.boxes.starts[place : place + 2]), steps.boxes, steps.ended
        F, beta = box.y[here] - ended.product[here], ended.beta[here]
        top = F[beta < box.upper[here]].max(initial=-np.inf) if bias else 0.0
        bottom = F[beta > box.lower[here]].min(initial=np.inf) if bias else 0.0
        theirs = self._sign - sums[np.searchsorted(seen, others), place]
        beyond = theirs - bottom if self._sign > 0 else top - theirs
        violate = np.flatnonzero(~(beyond < eps))
        return others[violate[np.argsort(-beyond[violate], kind="stable")]]

    def _finish(self, steps: _Steps, place: int, machine: int, sums: Floats) -> None:
        """The machine has ended, with Kβ ``sums`` of the large class."""
        here, ended = slice(*steps.boxes.starts[place : place + 2]), self._ended
        variables = steps.variables[here]
        ended.finished[machine] = 1
        ended.product[self._large[machine]] = sums
        ended.beta[variables], ended.product[variables] = steps.ended.beta[here], steps.ended.product[here]
