"""The machines of one model, trained: each alone or several in one call, one after another or side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

import numpy as np

from svmkit import parallel
from svmkit.clock import Clock
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Ints
from svmkit.engine.kernels import cross_apply
from svmkit.model import REST
from svmkit.pairs import Pair, bias_of, pair_among, pair_of, pairs_of
from svmkit.problem import Kernel, Problem, Solution
from svmkit.schedule import TrainingTime, fewer_of, jobs_of, side_by_side, sizes_of, works_of
from svmkit.solvers.base import Several, SeveralEnded, Solver, SolverResult, Together, not_begun, run
from svmkit.solvers.stops import given_up
from svmkit.trace import Limits, Progress, Status, TraceRow
from svmkit.trained import Part, Trained, TrainedTogether, trained_together
from svmkit.turns import Turn, run_in_turn
from svmkit.warm import Warm, first_alpha

OnProgress = Callable[[float, Progress], None]
#: Is told how many machines have just been trained, several only where all have ended alike. The second argument, if it is
#: called, yields each machine's pair and result; for several machines it is a DoneTogether.
OnMachines = Callable[[int, Callable[[], Iterator[tuple[Pair, SolverResult]]]], None]


@dataclass(frozen=True)
class DoneTogether:
    """``machines`` that were trained in a call, and how; which and how each was, made for whoever calls it."""

    part: TrainedTogether
    machines: Several

    def __call__(self) -> Iterator[tuple[Pair, SolverResult]]:
        """One after another."""
        for number, result in enumerate(self.part.results_of(self.machines)):
            yield pair_among(self.machines, number), result


class Listeners(NamedTuple):
    """Who hears of machines, as ``fit`` says, and who may end them."""

    interrupted: Callable[[], bool]
    on_progress: OnProgress | None
    on_trace: Callable[[TraceRow], None] | None
    on_machines: OnMachines | None


@dataclass
class Training:
    """The training of one machine for each of ``pairs`` (2, m): positions in ``labels``, or REST.

    ``members`` are each label's examples, ``factors`` what C is multiplied by for them. ``certified(pair, result)`` may put
    another certificate into a machine's result. ``before_s`` seconds of the time limit are gone before the first.
    """

    dataset: Dataset
    config: TrainConfig
    kernel: Kernel
    labels: Ints
    members: list[Ints]
    factors: Floats
    pairs: Ints
    solver: Solver
    options: Any
    listeners: Listeners
    holdout: Dataset | None
    warm: Warm | None
    certified: Callable[[Pair, SolverResult], SolverResult]
    before_s: float
    _together: Together | None = field(init=False, default=None)
    _spent: TrainingTime = field(init=False)
    _trained: list[Part | None] = field(init=False)

    def run(self) -> list[Part]:
        """Every machine, in order, one or several to a part."""
        sizes, fewer = sizes_of(self.members, self.pairs), fewer_of(self.members, self.pairs)
        self._together = together = self._offered(sizes, fewer)
        works = np.full(len(sizes), inf) if together is None else works_of(sizes, fewer, together.work)
        jobs = jobs_of(works)
        beside = self.listeners.on_trace is None and side_by_side(self.solver, self.dataset.rows, sizes, jobs)
        self._spent = TrainingTime(self.before_s, beside)
        self._trained = [None] * len(sizes)
        run_in_turn(lambda job, turn: self._train(jobs[job], turn), len(jobs), beside)
        return [part for part in self._trained if part is not None]

    def _offered(self, sizes: Ints, fewer: Ints) -> Together | None:
        """What the solver has to train several machines in one call, where nothing is asked that needs each on its own."""
        offer: Callable[..., Together | None] | None = getattr(self.solver, "together", None)
        alone = self.warm or self.config.map or self.listeners.on_trace or self.config.max_evaluations is not None
        return None if offer is None or alone else offer(self.dataset.rows, self.kernel, self.options, sizes, fewer)

    def _time_left_s(self) -> float | None:
        limit_s = self.config.time_limit_s
        return None if limit_s is None else limit_s - self._spent.seconds()

    def _train(self, numbers: range, turn: Turn) -> None:
        together = self._together if len(numbers) > 1 else None
        while together is not None and numbers:
            over = given_up(Limits(time_limit_s=self._time_left_s()), lambda: self._interrupted(turn), 0.0)
            if over is not None:
                self._leave(numbers, over, turn)
                return
            numbers = numbers[self._train_together(together, numbers, turn) :]
        for number in numbers:
            self._train_alone(number, turn)

    def _interrupted(self, turn: Turn) -> bool:
        return turn.stopped() or self.listeners.interrupted()

    def _leave(self, numbers: range, status: Status, turn: Turn) -> None:
        """Ends machines that nobody waits for any more, all in one go: there may be very many."""
        machines = self._several(numbers)()
        ended = not_begun(machines, self.kernel, bias_of(self.config))
        self._done_together(numbers, machines, ended, 0.0, self._spent.seconds(), status, turn)

    def _train_alone(self, number: int, turn: Turn, in_vain_s: float = 0.0) -> None:
        """Trains a machine; ``in_vain_s`` is what has been spent on it already."""
        pair = self._pair(number)
        problem = pair.problem(self.dataset, self.config, self.kernel)
        if self.warm is not None:
            start = first_alpha(self.warm, self.labels, pair.positive, pair.negative, pair.examples, problem)
            problem = replace(problem, start=start)
        since_s = self._spent.seconds()
        heard = later(self.listeners.on_progress, since_s)
        config = self.config
        result = run(
            self.solver,
            problem,
            self.options,
            eps=config.eps,
            seed=config.seed,
            limits=Limits(config.max_iter, self._time_left_s(), config.max_evaluations, config.patience),
            interrupted=lambda: self._interrupted(turn),
            on_progress=heard and (lambda seconds, progress: turn.say(lambda: heard(seconds, progress), passing=True)),
            on_trace=self.listeners.on_trace,
            holdout_error=_holdout_error(self.holdout, self.labels, pair, problem),
        )
        result = self.certified(pair, replace(result, seconds=result.seconds + in_vain_s))
        self._done(number, Trained(pair.examples, result, since_s), lambda: iter([(pair, result)]), turn)

    def _train_together(self, together: Together, numbers: range, turn: Turn) -> int:
        """Trains the first of them, as many as one call takes; returns how many those were."""
        since_s, clock, config = self._spent.seconds(), Clock(), self.config
        machines, limits = self._several(numbers)(), Limits(time_limit_s=self._time_left_s())
        with parallel.heeding(lambda: given_up(limits, lambda: self._interrupted(turn), clock.seconds()) is not None):
            ended = together.train(machines, bias_of(config), config.eps, config.max_iter)
        converged = np.zeros(len(numbers), dtype=bool) if ended is None else ended.converged
        each_s = clock.seconds() / len(converged)
        cuts = [0, *(np.flatnonzero(np.diff(converged)) + 1).tolist(), len(converged)]
        for first, last in pairwise(cuts):
            if ended is not None and converged[first]:
                some, how = machines.part(first, last), ended.part(machines.starts, first, last)
                self._done_together(numbers[first:last], some, how, each_s, since_s, Status.CONVERGED, turn)
                continue
            for number in numbers[first:last]:
                self._train_alone(number, turn, each_s)
            since_s = self._spent.seconds()
        return len(converged)

    def _several(self, numbers: range) -> Callable[[], Several]:
        """What makes these machines; it keeps nothing of this object but what that takes."""
        pairs = self.pairs[:, numbers.start : numbers.stop]
        return partial(pairs_of, self.dataset.weights, self.config, self.members, self.factors, pairs)

    def _done_together(
        self,
        numbers: range,
        machines: Several,
        ended: SeveralEnded,
        each_s: float,
        since_s: float,
        status: Status,
        turn: Turn,
    ) -> None:
        """Notes that ``machines``, those of ``numbers``, have ended, and how."""
        part = trained_together(self._several(numbers), machines, ended, each_s, since_s, status)
        self._done(numbers[0], part, DoneTogether(part, machines), turn)

    def _pair(self, number: int) -> Pair:
        return pair_of(self.dataset, self.config, self.members, self.factors, *self.pairs[:, number].tolist())

    def _done(self, number: int, part: Part, each: Callable[[], Iterator[tuple[Pair, SolverResult]]], turn: Turn) -> None:
        sums = part.sums()
        self._spent.add(sums.seconds)
        self._trained[number] = part
        if self.listeners.on_machines is not None:
            turn.say(partial(self.listeners.on_machines, sums.n_machines, each))


def later(on_progress: OnProgress | None, since_s: float) -> OnProgress | None:
    """``on_progress`` for a part that begins at ``since_s`` of the whole's time."""
    return None if on_progress is None else lambda seconds, progress: on_progress(since_s + seconds, progress)


def _holdout_error(holdout: Dataset | None, labels: Ints, pair: Pair, problem: Problem) -> Callable[[Solution], float] | None:
    """The share of the held-out examples, if any, of the machine's own classes that a solution puts on the wrong side.

    Where there is but one machine, of two classes, all examples are its own, and those of other labels are errors.
    """
    if holdout is None:
        return None
    y = holdout.classes
    known = np.isin(y, labels if pair.negative == REST else labels[[pair.positive, pair.negative]])
    index = np.arange(holdout.n) if len(labels) == 2 else np.flatnonzero(known)
    rows, is_positive, is_other = holdout.rows.take(index), y[index] == labels[pair.positive], ~known[index]

    def error(solution: Solution) -> float:
        if len(index) == 0:
            return float("nan")
        basis, weights = solution.expansion(problem.rows)
        response = cross_apply(rows, basis, problem.kernel, weights[:, None])[:, 0]
        return float(np.mean(is_other | ((response - solution.rho > 0) != is_positive)))

    return error
