"""Cross-validation with svm-train's folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Ints
from svmkit.errors import UsageError
from svmkit.fit import FitResult, fit
from svmkit.model import answers
from svmkit.pairs import group_classes, label_factors, with_bias
from svmkit.schedule import TrainingTime, side_by_side
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
    on_fit: Callable[[FitResult], None] | None = None,
    on_warning: Callable[[str], None] = lambda text: None,
) -> Floats:
    """What a model of all other folds predicts for each example, (n,) in file order; ``on_fit`` is called after each fold.

    Folds may be trained side by side, with the same results, unless there is a time limit; whoever listens hears of them in
    order, but from any thread, and ``on_progress`` of the seconds that all folds so far were trained for. ``fit`` sees the
    whole file's number of features, so gamma's default is the same in every fold, as in svm-train. The answer is nan, wrong for
    any label, where nothing is left to train on (every example is a class of its own, or the others have weight 0) and after an
    interruption. With ``every_fold`` the models of folds that hold nothing out are trained too, as svm-train does; nobody needs
    them.
    """
    predictions = np.full(dataset.n, np.nan)
    config = with_bias(config, on_warning)
    if not every_fold:  # svm-train says in each what is not in it
        label_factors(config, np.unique(dataset.learned_classes), on_warning)
    sizes = dataset.n - np.diff(split.starts)
    jobs = [range(number, number + 1) for number in range(len(sizes))]
    beside = config.time_limit_s is None and side_by_side(solver_named(config.solver), dataset.rows, sizes, jobs)
    spent = TrainingTime(0.0, beside)

    def validate(number: int, turn: Turn) -> None:
        first, last = split.starts[number : number + 2]
        held_out = split.order[first:last]
        others = np.concatenate([split.order[:first], split.order[last:]])
        if interrupted() or not dataset.weights[others].any() or (len(held_out) == 0 and not every_fold):
            return
        training = dataset.take(others)
        own = config if every_fold else _with_weights_of(np.unique(training.learned_classes), config)
        heard = later(on_progress, spent.seconds())
        found = fit(
            training,
            own,
            interrupted=lambda: turn.stopped() or interrupted(),
            on_progress=heard and (lambda seconds, progress: turn.say(partial(heard, seconds, progress), passing=True)),
            on_machines=on_machines and (lambda count, each: turn.say(partial(on_machines, count, each))),
            on_mapping=lambda doing: turn.say(partial(on_mapping, doing), passing=True),
            on_warning=lambda text: turn.say(partial(on_warning, text)),
        )
        spent.add(found.seconds)
        if found.status is Status.INTERRUPTED:
            return
        if on_fit is not None:
            turn.say(partial(on_fit, found))
        predictions[held_out] = answers(found.model, dataset.rows.take(held_out))

    run_in_turn(validate, len(sizes), beside)
    return predictions
