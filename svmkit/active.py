"""Active learning: of a pool without labels, only those are asked for that the solver chooses, one after another.

Labelled examples to begin with, if any, are learned first. Then the solver chooses from the pool, the answer is learned, and so
on. Choices follow from the options, the seed and the answers alone, so a run that is begun again with the answers so far
goes the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import numpy as np

from svmkit.assembly import assemble
from svmkit.clock import Clock
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Ints, stack
from svmkit.errors import DataError, UsageError
from svmkit.model import Model, answers
from svmkit.pairs import bias_of, check_type, costs, kernel_of, refuse_huge_values, usable_examples, with_bias
from svmkit.parallel import unless
from svmkit.problem import Problem
from svmkit.solvers import solver_with
from svmkit.solvers.base import Solver, finish, options_of, refusal
from svmkit.solvers.stops import Marks, given_up
from svmkit.trace import ActiveRow, Limits, Progress, Status
from svmkit.trained import uncertified

#: Labels at which the held-out error is looked at first; then at √2 times as many, and so on.
_FIRST_LOOK = 8
#: How long the held-out error is still waited for once the learning is interrupted.
_PATIENCE_S = 1.0


class ActiveSolver(Solver, Protocol):
    """A solver that chooses what it learns."""

    def choose(self, state: Any) -> int:
        """The row whose label is wanted next, −1 where none of C_i > 0 is left; it waits for ``learn`` or ``put_back``."""

    def put_back(self, state: Any) -> None:
        """The row chosen last is one of those still to come again."""

    def learn(self, state: Any, row: int, label: float) -> None:
        """Learns the row chosen, or any other where none has been, with its label ±1."""

    def progress(self, state: Any) -> Progress:
        """What has been done so far."""

    def finish(self, state: Any, budget: int) -> Progress:
        """At most ``budget`` steps of the work at the end, until ``Progress.ended``."""


@dataclass(frozen=True)
class ActiveResult:
    """The model of all labels learned; ``status`` is COMPLETED where no more are wanted, INTERRUPTED where none came."""

    model: Model
    status: Status
    last: ActiveRow
    n_asked: int


def active_solver(name: str) -> ActiveSolver:
    """The solver module called ``name``; UsageError with those that can where it cannot choose."""
    return cast("ActiveSolver", solver_with("choose", name, "does not choose examples; for --pool take one that does"))


class Learner:
    """A binary machine over labelled examples to begin with and a pool."""

    def __init__(self, config: TrainConfig, labels: Ints, begin: Dataset | None, pool: Dataset) -> None:
        self.solver = active_solver(config.solver)
        _check(config, labels)
        self.labels = labels
        parts = [pool] if begin is None else [begin, pool]
        self.rows = stack([part.rows for part in parts])
        self.first = 0 if begin is None else begin.n
        self.kernel = kernel_of(config, self.rows.n_features)
        for part in parts:
            refuse_huge_values(part)
            usable_examples(part)
        self.y = np.full(self.rows.n, np.nan)
        if begin is not None:
            self.y[: self.first] = [self.side(label, f"{begin.source}, example {i + 1}") for i, label in enumerate(begin.y)]
        self.upper = np.concatenate([part.weights for part in parts])
        used = self.upper > 0
        self.upper[used] = costs(config.C, self.upper[used])
        config = with_bias(config, lambda text: None)
        problem = Problem(self.rows, self.y.copy(), self.upper, self.kernel, bias_of(config))
        reason = refusal(self.solver, problem)
        if reason is not None:
            raise UsageError(f"--solver {config.solver}: {reason}")
        options = options_of(self.solver, config.solver_options, cache_mb=config.cache_mb, selection="active")
        if options.selection == "gradient":
            raise UsageError(
                "-O selection=gradient: looks at labels before they are asked for; take active, autoactive or random"
            )
        self.state = self.solver.start(problem, options, config.eps, config.seed)
        for row in range(self.first):
            self._learn(row)

    def side(self, label: float, where: str) -> float:
        """±1 for a label. Raises DataError for one that is none of the two."""
        if label == self.labels[0]:
            return 1.0
        if label == self.labels[1]:
            return -1.0
        known = ", ".join(str(one) for one in self.labels)
        raise DataError(f"{where}: label {label:g} is none of {known}; see --labels")

    def choose(self) -> int:
        """The pool's row (from 0) whose label is wanted next, or −1."""
        row = self.solver.choose(self.state)
        return row if row < 0 else row - self.first

    def missing(self) -> Ints:
        """The labels that no example learned so far has; those of weight 0 are not learned."""
        learned = self.y[self.upper > 0]
        return self.labels[[not (learned == side).any() for side in (1.0, -1.0)]]

    def put_back(self) -> None:
        """Takes the choice back."""
        self.solver.put_back(self.state)

    def learn(self, row: int, label: int) -> None:
        """Learns a row of the pool."""
        self.y[self.first + row] = self.side(label, f"pool row {row + 1}")
        self._learn(self.first + row)

    def _learn(self, row: int) -> None:
        if self.upper[row] > 0:  # those of weight 0 take no part
            self.solver.learn(self.state, row, self.y[row])

    def finish(self, interrupted: Callable[[], bool]) -> Progress | None:
        """The solver's work at the end; None where somebody interrupts it."""
        return finish(self.solver, self.state, interrupted)

    def model(self) -> Model:
        """The model so far."""
        members = [np.flatnonzero(self.y == side) for side in (1.0, -1.0)]
        trained = [uncertified(np.arange(self.rows.n), self.solver.solution(self.state))]
        return assemble(self.rows, "c_svc", self.kernel, self.labels, members, trained, "ovo")[0]


def _check(config: TrainConfig, labels: Ints) -> None:
    config.check()
    check_type(config)
    if len(labels) != 2 or labels[0] == labels[1]:
        raise UsageError("--labels: a pool is of two classes; name both")
    if config.kernel == "precomputed":
        raise UsageError("-t 4: a pool has no kernel matrix; give the examples' features")
    if config.map is not None:
        raise UsageError("--map: solvers that choose examples work on kernel values")
    if config.max_iter is not None:
        raise UsageError("--max-iter: what ends the learning of a pool is --max-labels")
    if config.lam is not None:
        raise UsageError("--lambda: how many labels there will be is not known ahead; give -c")
    if config.class_weight:
        raise UsageError("-w: an example's class is not known when it is chosen, so classes cannot have weights of their own")
    if any(key == "epochs" for key, _ in config.solver_options):
        raise UsageError("-O epochs: an example of a pool is learned when its label comes, once")


def learn_pool(
    learner: Learner,
    known: Mapping[int, int],
    ask: Callable[[int, Callable[[], bool]], int | None],
    *,
    max_labels: int | None = None,
    limits: Limits = Limits(),
    interrupted: Callable[[], bool] = lambda: False,
    holdout: Dataset | None = None,
    on_row: Callable[[ActiveRow], None] = lambda row: None,
    on_label: Callable[[Progress, int], None] = lambda progress, labels: None,
) -> ActiveResult:
    """Learns until ``max_labels`` are known, all are, or somebody or a limit (of time or kernel evaluations) ends it.

    ``known`` are answers of an earlier run, learned in their order before anything new is asked for. ``ask(row, give_up)``
    gives a label, or None to end, as it should once ``give_up()`` is true. ``on_row`` hears at 8 labels and each √2 times as
    many.
    """
    course = _Course(learner, limits, interrupted, holdout, on_row, on_label)
    left, n_asked, status = dict(known), 0, None
    while status is None and (max_labels is None or course.labels < max_labels):
        row = learner.choose()
        if row < 0:
            break
        if left and row != next(iter(left)):
            learner.put_back()
            row = next(iter(left))
        label = left.pop(row, None)
        if label is None:
            label = ask(row, lambda: course.given_up() is not None)
            if label is None:
                status = course.given_up() or Status.INTERRUPTED
                break
            n_asked += 1
        course.learn(row, label)
        status = course.given_up() or course.used_up()
    ended = learner.finish(lambda: course.given_up() is not None)
    status = status or (course.given_up() if ended is None else Status.STALLED if ended.stalled else None)
    last = course.tell()
    return ActiveResult(learner.model(), status or Status.COMPLETED, last, n_asked)


@dataclass
class _Course:
    """How far the learning of a pool is, why it ends, and who hears of it."""

    learner: Learner
    limits: Limits
    interrupted: Callable[[], bool]
    holdout: Dataset | None
    on_row: Callable[[ActiveRow], None]
    on_label: Callable[[Progress, int], None]
    labels: int = 0
    marks: Marks = field(default_factory=lambda: Marks(_FIRST_LOOK, 2**0.5))
    clock: Clock = field(default_factory=Clock)

    def progress(self) -> Progress:
        """What the solver has done so far."""
        return self.learner.solver.progress(self.learner.state)

    def given_up(self) -> Status | None:
        """Why nobody waits for an answer any more, or None."""
        return given_up(self.limits, self.interrupted, self.clock.seconds())

    def used_up(self) -> Status | None:
        """MAX_EVALUATIONS where they are, or None."""
        most = self.limits.max_evaluations
        return Status.MAX_EVALUATIONS if most is not None and self.progress().kernel_evaluations >= most else None

    def learn(self, row: int, label: int) -> None:
        """Learns a row of the pool, and tells of it."""
        self.learner.learn(row, label)
        self.labels += 1
        self.on_label(self.progress(), self.labels)
        if self.marks.reached(self.labels):
            self.tell()

    def tell(self) -> ActiveRow:
        """Tells how things are."""
        progress, holdout = self.progress(), self.holdout
        error = math.nan
        if holdout is not None:
            with self.clock.stopped():
                error = self._error_on(holdout)
        row = ActiveRow(self.clock.seconds(), self.labels, error, progress.kernel_evaluations, progress.n_support)
        self.on_row(row)
        return row

    def _error_on(self, holdout: Dataset) -> float:
        """The held-out error; nan where the learning is interrupted and that takes long."""
        model = self.learner.model()
        wrong = unless(self.interrupted, lambda: answers(model, holdout.rows) != holdout.classes, _PATIENCE_S)
        return math.nan if wrong is None else float(wrong.mean())
