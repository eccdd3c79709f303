"""Cross-validation with svm-train's folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import NamedTuple

import numpy as np

from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Ints
from svmkit.errors import UsageError
from svmkit.fit import fit
from svmkit.model import answers
from svmkit.pairs import group_classes, label_factors, with_bias
from svmkit.schedule import TrainingTime, jobs_of, side_by_side
from svmkit.small_folds import SmallFold, SmallFolds, small_folds
from svmkit.solvers import solver as solver_named
from svmkit.trace import Status
from svmkit.training import OnMachines, OnProgress, later
from svmkit.turns import Turn, run_in_turn


class Folds(NamedTuple):
    """Fold f is the examples ``order[starts[f]:starts[f + 1]]``; its training set is the rest of ``order``, as it stands."""

    order: Ints
    starts: Ints


def folds(y: Floats, k: int, rand: Callable[[], int]) -> Folds:
    """svm-train's folds: shuffled by ``rand`` within each class, cut evenly.

    As in svm-train, k = n (leave one out) shuffles all at once. Raises UsageError unless 2 ≤ k ≤ n.
    """
    n = len(y)
    if not 2 <= k <= n:
        raise UsageError(f"-v {k}: folds must be at least 2 and at most the number of examples, {n}")
    everyone = np.arange(n)
    groups = group_classes(y, everyone)[1] if k < n else [everyone]
    shuffled = [_shuffle(group, rand) for group in groups]
    parts = [[group[f * len(group) // k : (f + 1) * len(group) // k] for group in shuffled] for f in range(k)]
    sizes = [sum(map(len, part)) for part in parts]
    return Folds(np.concatenate([group for part in parts for group in part]), np.concatenate([[0], np.cumsum(sizes)]))


def _shuffle(group: Ints, rand: Callable[[], int]) -> Ints:
    items = group.tolist()
    for i in range(len(items)):
        j = i + rand() % (len(items) - i)
        items[i], items[j] = items[j], items[i]
    return np.array(items, dtype=np.int64)


def _with_weights_of(labels: Floats, config: TrainConfig) -> TrainConfig:
    """``config`` with class weights for these alone."""
    return replace(config, class_weight=tuple(weight for weight in config.class_weight if weight[0] in labels))


class _Listeners(NamedTuple):
    """Who hears of folds, as ``cross_validate`` says, and who may end them."""

    interrupted: Callable[[], bool]
    on_progress: OnProgress | None
    on_machines: OnMachines | None
    on_mapping: Callable[[str], None]
    on_fold: Callable[[Status, int], None]
    on_warning: Callable[[str], None]


def cross_validate(
    dataset: Dataset,
    config: TrainConfig,
    split: Folds,
    *,
    every_fold: bool = False,
    interrupted: Callable[[], bool] = lambda: False,
    on_progress: OnProgress | None = None,
    on_machines: OnMachines | None = None,
    on_mapping: Callable[[str], None] = lambda doing: None,
    on_fold: Callable[[Status, int], None] = lambda status, n_support: None,
    on_warning: Callable[[str], None] = lambda text: None,
) -> Floats:
    """What a model of all other folds predicts for each example, (n,) in file order.

    ``on_fold`` is called after each fold, with its status and its number of support vectors. Folds may be trained side by
    side, or small ones together, with the same results, unless there is a time limit; whoever listens hears of them in order,
    but from any thread, and ``on_progress`` of the seconds that all folds so far were trained for. Every fold sees the whole
    file's number of features, so gamma's default is the same in all, as in svm-train. The answer is nan, wrong for any label,
    where nothing is left to train on (every example is a class of its own, or the others have weight 0) and after an
    interruption. With ``every_fold`` the models of folds that hold nothing out are trained too, as svm-train does; nobody needs
    them.
    """
    config = with_bias(config, on_warning)
    if not every_fold:  # svm-train says in each what is not in it
        label_factors(config, np.unique(dataset.learned_classes), on_warning)
    listeners = _Listeners(interrupted, on_progress, on_machines, on_mapping, on_fold, on_warning)
    return _Validation(dataset, config, split, every_fold, listeners).run()


@dataclass
class _Validation:
    """``cross_validate`` at work."""

    dataset: Dataset
    config: TrainConfig
    split: Folds
    every_fold: bool
    listeners: _Listeners
    _predictions: Floats = field(init=False)
    _spent: TrainingTime = field(init=False)
    _small: SmallFolds | None = field(init=False)

    def run(self) -> Floats:
        """The predictions."""
        dataset, starts = self.dataset, self.split.starts
        self._predictions = np.full(dataset.n, np.nan)
        self._small = small = small_folds(dataset, self.config, *self.split)
        sizes = dataset.n - np.diff(starts)
        jobs = jobs_of(np.full(len(sizes), inf) if small is None else small.works)
        solver, limited = solver_named(self.config.solver), self.config.time_limit_s is not None
        beside = not limited and side_by_side(solver, dataset.rows, sizes, jobs)
        self._spent = TrainingTime(0.0, beside)
        run_in_turn(lambda job, turn: self._validate(jobs[job], turn), len(jobs), beside)
        return self._predictions

    def _validate(self, job: range, turn: Turn) -> None:
        """Those of these folds that there is something to do for: small ones together, until none is trained so."""
        numbers = [number for number in job if not self._is_idle(number)]
        while self._small is not None and len(numbers) > 1 and not self._interrupted(turn):
            found = self._small.train(numbers)
            for number, fold in zip(numbers, found, strict=False):
                if fold is None:
                    self._fit(number, turn)
                else:
                    self._note(number, fold, turn)
            numbers = numbers[len(found) :]
            if not any(found):
                break
        for number in numbers:
            self._fit(number, turn)

    def _interrupted(self, turn: Turn) -> bool:
        return turn.stopped() or self.listeners.interrupted()

    def _parts(self, number: int) -> tuple[Ints, Ints]:
        """The examples that fold ``number`` trains on, and those that it holds out."""
        first, last = self.split.starts[number : number + 2]
        order = self.split.order
        return np.concatenate([order[:first], order[last:]]), order[first:last]

    def _is_idle(self, number: int) -> bool:
        """Whether nothing is left to train on, or nobody needs the model."""
        others, held_out = self._parts(number)
        return not self.dataset.weights[others].any() or (len(held_out) == 0 and not self.every_fold)

    def _note(self, number: int, fold: SmallFold, turn: Turn) -> None:
        """Tells of a fold that was trained with others."""
        hear, sums = self.listeners, fold.machines.part.sums()
        self._spent.add(sums.seconds)
        for text in fold.warnings if self.every_fold else ():
            turn.say(partial(hear.on_warning, text))
        if hear.on_machines is not None:
            turn.say(partial(hear.on_machines, sums.n_machines, fold.machines))
        turn.say(partial(hear.on_fold, sums.status, fold.n_support))
        self._predictions[self._parts(number)[1]] = fold.answers

    def _fit(self, number: int, turn: Turn) -> None:
        """Trains a fold by itself."""
        if self._interrupted(turn):
            return
        hear, (others, held_out) = self.listeners, self._parts(number)
        training = self.dataset.take(others)
        config = self.config if self.every_fold else _with_weights_of(np.unique(training.learned_classes), self.config)
        heard = later(hear.on_progress, self._spent.seconds())
        on_machines = hear.on_machines
        found = fit(
            training,
            config,
            interrupted=lambda: self._interrupted(turn),
            on_progress=heard and (lambda seconds, progress: turn.say(partial(heard, seconds, progress), passing=True)),
            on_machines=on_machines and (lambda count, each: turn.say(partial(on_machines, count, each))),
            on_mapping=lambda doing: turn.say(partial(hear.on_mapping, doing), passing=True),
            on_warning=lambda text: turn.say(partial(hear.on_warning, text)),
        )
        self._spent.add(found.seconds)
        if found.status is Status.INTERRUPTED:
            return
        turn.say(partial(hear.on_fold, found.status, found.model.n_support))
        self._predictions[held_out] = answers(found.model, self.dataset.rows.take(held_out))
