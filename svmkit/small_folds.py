"""Small folds of a cross-validation: the machines of many are trained in one call, and answer by what that has made.

A model of a few hundred examples is trained in less time than Python takes to prepare one, of each of hundreds of folds
(leave-one-out). Here folds are numbers of rows, machines take their kernel values from one matrix of all rows (base.py's
``Together``), and f of the rows held out is a product with it. No model is made. A fold whose machines do not all converge so,
or that leaves a label open to rounding, is left to ``fit``, as is one that there is something to say against.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from svmkit.clock import Clock
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Ints
from svmkit.errors import DataError
from svmkit.fit import check, options
from svmkit.model import chosen_labels, class_pairs
from svmkit.pairs import (
    bias_of,
    group_classes,
    kernel_of,
    label_factors,
    pairs_of,
    refuse_huge_values,
    usable_examples,
    with_multiclass,
)
from svmkit.schedule import sizes_of
from svmkit.solvers import solver as solver_named
from svmkit.solvers.base import Several, SeveralEnded, Together
from svmkit.trace import Status
from svmkit.trained import trained_together
from svmkit.training import DoneTogether

#: Examples of a data set whose folds are trained together: of more, kernel values take longer than this saves.
MOST_EXAMPLES = 1024
#: A decision value is beyond rounding where it is at least this large, relative to the sum of its terms' sizes.
_CLEAR = 1e-9


class SmallFold(NamedTuple):
    """A fold whose ``machines`` have all converged: how many support vectors it has, what it answers to the rows that it holds
    out (h,), and what was warned of.
    """

    machines: DoneTogether
    n_support: int
    answers: Floats
    warnings: list[str]


class _Prepared(NamedTuple):
    """A fold before training: its ``machines`` number their examples among those that it does not hold out, which are ``rows``
    of the data; ``made()`` makes them anew.
    """

    number: int
    labels: Ints
    multiclass: str
    machines: Several
    rows: Ints
    made: partial[Several]
    warnings: list[str]


@dataclass(frozen=True)
class SmallFolds:
    """Folds of ``dataset``: f holds out ``order[starts[f]:starts[f + 1]]``. ``K`` (n, n) are the kernel values of all rows.

    ``works`` is the work of each, by a high guess (schedule.py).
    """

    dataset: Dataset
    config: TrainConfig
    order: Ints
    starts: Ints
    works: Floats
    together: Together
    K: Floats

    def train(self, numbers: list[int]) -> list[SmallFold | None]:
        """What became of the first of these folds, as many as one call trains to their end, which may be not even one; None
        for a fold that is left to ``fit``.
        """
        clock = Clock()
        folds = [self._prepared(number) for number in numbers]
        ready = [fold for fold in folds if fold is not None]
        machines = _one_after_another(ready) if ready else None
        config, ended = self.config, None
        if machines is not None:
            ended = self.together.train(machines, bias_of(config), config.eps, config.max_iter)
        if machines is None or ended is None:
            return [None] * len(numbers)
        found, first, each_s = list[SmallFold | None](), 0, clock.seconds() / len(ended.steps)
        for fold in folds:
            last = first if fold is None else first + len(fold.machines.positive)
            if last > len(ended.steps):
                break
            part = ended.part(machines.starts, first, last)
            found.append(None if fold is None else self._done(fold, part, each_s))
            first = last
        return found

    def _prepared(self, number: int) -> _Prepared | None:
        """None where no machine is to be trained, or ``fit`` will say why it cannot be."""
        first, last = self.starts[number : number + 2]
        rows = np.concatenate([self.order[:first], self.order[last:]])
        weights, warnings = self.dataset.weights[rows], list[str]()
        try:
            labels, members = group_classes(self.dataset.y[rows], np.flatnonzero(weights > 0))
            config = with_multiclass(self.config, len(labels))
            factors, pairs = label_factors(config, labels, warnings.append), class_pairs(len(labels), config.multiclass)
            if pairs.shape[1] == 0:
                return None
            made = partial(pairs_of, weights, config, members, factors, pairs)
            return _Prepared(number, labels, config.multiclass, made(), rows, made, warnings)
        except DataError:
            return None

    def _done(self, fold: _Prepared, ended: SeveralEnded, each_s: float) -> SmallFold | None:
        answers = self._answers(fold, ended) if ended.converged.all() else None
        if answers is None:
            return None
        part = trained_together(fold.made, fold.machines, ended, each_s, 0.0, Status.CONVERGED)
        is_support = np.zeros(len(fold.rows), dtype=bool)
        is_support[part.found.numbers] = True
        return SmallFold(DoneTogether(part, fold.machines), int(is_support.sum()), answers, fold.warnings)

    @np.errstate(over="ignore", invalid="ignore")  # where kernel values overflow, sums are infinite or nan, and so not clear
    def _answers(self, fold: _Prepared, ended: SeveralEnded) -> Floats | None:
        """The labels of the rows held out; None where one is within rounding of another."""
        machines, values = fold.machines, self.K[self.order[self.starts[fold.number] : self.starts[fold.number + 1]]]
        beta = np.zeros((len(self.K), len(ended.rho)))
        beta[fold.rows[machines.examples], np.repeat(np.arange(len(ended.rho)), machines.sizes)] = ended.beta
        decisions, sizes = values @ beta - ended.rho, np.abs(values) @ np.abs(beta) + np.abs(ended.rho)
        margins = np.abs(decisions)
        if fold.multiclass == "ovr":
            largest = np.partition(decisions, -2, axis=1)
            margins, sizes = largest[:, -1] - largest[:, -2], sizes.max(axis=1)
        return chosen_labels(fold.labels, fold.multiclass, decisions) if (margins > _CLEAR * sizes).all() else None


def _one_after_another(folds: list[_Prepared]) -> Several:
    """The machines of all, whose examples are rows of the data."""
    machines = [fold.machines for fold in folds]
    return Several(
        positive=np.concatenate([each.positive for each in machines]),
        negative=np.concatenate([each.negative for each in machines]),
        starts=np.concatenate([[0], *(each.sizes for each in machines)]).cumsum(),
        examples=np.concatenate([fold.rows[fold.machines.examples] for fold in folds]),
        y=np.concatenate([each.y for each in machines]),
        upper=np.concatenate([each.upper for each in machines]),
    )


def small_folds(dataset: Dataset, config: TrainConfig, order: Ints, starts: Ints) -> SmallFolds | None:
    """For folds that the solver can train together; None where it cannot, or each has to be trained by itself.

    Raises UsageError for a config that cannot be trained.
    """
    module = solver_named(config.solver)
    apart = config.map or config.max_evaluations is not None or config.time_limit_s is not None
    if apart or dataset.n > MOST_EXAMPLES or not hasattr(module, "together"):
        return None
    check(config)
    try:
        used = usable_examples(dataset)
        refuse_huge_values(dataset)
        labels, members = group_classes(dataset.y, used)
    except DataError:  # as the first fold will say
        return None
    sizes = sizes_of(members, class_pairs(len(labels), with_multiclass(config, len(labels)).multiclass))
    kernel, n_folds = kernel_of(config, dataset.n_features), len(starts) - 1
    of_all = np.tile(sizes, n_folds)
    together: Together | None = module.together(dataset.rows, kernel, options(module, config), of_all, of_all)
    if together is None or together.K is None:
        return None
    works = np.full(n_folds, sum(map(together.work, sizes.tolist(), sizes.tolist())))
    return SmallFolds(dataset, config, order, starts, works, together, together.K)
