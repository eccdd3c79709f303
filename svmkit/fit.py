"""From a Dataset and a TrainConfig to a Model, by LIBSVM's rules: label order, one-vs-one pairs, weights, folds.

A class pair (i, j), i < j, is one binary Problem: class i is +1, j is −1, and the examples of both stand in file order, so
that with two classes nothing is copied.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from svmkit.config import SVM_TYPES, TrainConfig
from svmkit.data import Dataset, Floats, Ints, Rows, stack
from svmkit.engine.kernels import cross_apply
from svmkit.errors import DataError, UsageError
from svmkit.model import Machine, Model, answers, class_pairs
from svmkit.problem import KERNEL_NAMES, POLYNOMIAL, RBF, SIGMOID, Bias, Kernel, Problem, Solution, lam_to_C
from svmkit.solvers import solver as solver_named
from svmkit.solvers.base import Solver, SolverResult, options_of, run
from svmkit.trace import Limits, Progress, Status, TraceRow
from svmkit.turns import Turn, run_in_turn

OnProgress = Callable[[float, Progress], None]

WITHOUT_BIAS = "WARNING: solver {} trains without a bias (rho = 0), and the certificate is of that problem; see --bias"
ONE_CLASS = "WARNING: training data in only one class. See README for details."

#: A sum of as many squares as memory holds is still a double.
_LARGEST_VALUE = 1e150

#: Best first; a model of several machines is as good as its worst.
_BY_MERIT = (
    Status.CONVERGED,
    Status.COMPLETED,
    Status.EARLY_STOP,
    Status.STALLED,
    Status.MAX_ITER,
    Status.MAX_EVALUATIONS,
    Status.TIME_LIMIT,
    Status.INTERRUPTED,
)


class Pair(NamedTuple):
    """One binary problem of a one-vs-one model: its two classes' positions, and the training row of each of its examples."""

    positive: int
    negative: int
    examples: Ints
    problem: Problem


@dataclass(frozen=True)
class FitResult:
    """A model, how each of its machines was found, and ``sv_index``, each support vector's training row (or −1)."""

    model: Model
    machines: tuple[SolverResult, ...]
    status: Status
    sv_index: Ints
    seconds: float

    @property
    def steps(self) -> int:
        """Steps of all machines."""
        return sum(machine.steps for machine in self.machines)

    @property
    def kernel_evaluations(self) -> int:
        """Kernel evaluations of all machines."""
        return sum(machine.kernel_evaluations for machine in self.machines)

    @property
    def primal(self) -> float:
        """Sum of the machines' primal objectives."""
        return sum(machine.certificate.primal for machine in self.machines)

    @property
    def dual(self) -> float:
        """Sum of the machines' dual objectives."""
        return sum(machine.certificate.dual for machine in self.machines)

    @property
    def gap(self) -> float:
        """Sum of the machines' duality gaps."""
        return sum(machine.certificate.gap for machine in self.machines)

    @property
    def violation(self) -> float:
        """The largest of the machines' KKT violations."""
        return max((machine.certificate.violation for machine in self.machines), default=0.0)


def fit(
    dataset: Dataset,
    config: TrainConfig,
    *,
    interrupted: Callable[[], bool] = lambda: False,
    on_progress: OnProgress | None = None,
    on_trace: Callable[[TraceRow], None] | None = None,
    on_machine: Callable[[Pair, SolverResult], None] | None = None,
    on_warning: Callable[[str], None] = lambda text: None,
    holdout: Dataset | None = None,
) -> FitResult:
    """Trains the model that ``config`` describes.

    Machines may be trained side by side, with the same results. ``on_progress(seconds since the first began, progress)`` and
    ``on_machine(pair, result)``, as a machine is done, come in the order of the machines, one at a time, but from any thread;
    with ``on_trace``, machines come one after another. The time limit is for all machines together, the other limits for
    each. A machine's held-out error counts the held-out examples of its own two classes. Raises DataError for data
    that cannot be trained on and UsageError for a config that cannot.
    """
    config.check()
    _check_type(config)
    config = with_bias(config, on_warning)
    used = usable_examples(dataset)
    _refuse_huge_values(dataset)
    labels, members = group_classes(dataset.y, used)
    if len(labels) == 1:
        on_warning(ONE_CLASS)
    factors = label_factors(config, labels, on_warning)
    kernel = kernel_of(config, dataset.n_features)
    module = solver_named(config.solver)
    options = options_of(module, config.solver_options, cache_mb=config.cache_mb, shrinking=config.shrinking)
    _check_patience(config, module, holdout)
    began = time.perf_counter()
    pairs = list(class_pairs(len(labels)))
    trained: list[_Trained | None] = [None] * len(pairs)

    def train(number: int, turn: Turn) -> None:
        i, j = pairs[number]
        pair = pair_problem(dataset, config, kernel, members, factors, i, j)
        since_s = time.perf_counter() - began
        left_s = None if config.time_limit_s is None else max(0.0, config.time_limit_s - since_s)
        heard = _later(on_progress, since_s)
        result = run(
            module,
            pair.problem,
            options,
            eps=config.eps,
            seed=config.seed,
            limits=Limits(config.max_iter, left_s, config.max_evaluations, config.patience),
            interrupted=lambda: turn.stopped() or interrupted(),
            on_progress=heard and (lambda seconds, progress: turn.say(lambda: heard(seconds, progress), passing=True)),
            on_trace=on_trace,
            holdout_error=None if holdout is None else _holdout_error(holdout, int(labels[i]), int(labels[j]), kernel),
        )
        trained[number] = _Trained(pair.examples, result, since_s)
        if on_machine is not None:
            turn.say(lambda: on_machine(pair, result))

    run_in_turn(train, len(pairs), on_trace is None and _side_by_side([len(group) for group in members]))
    machines = [machine for machine in trained if machine is not None]
    model, sv_index = _assemble(dataset.rows, config.svm_type, kernel, labels, members, machines)
    results = tuple(machine.result for machine in machines)
    status = max((result.status for result in results), key=_BY_MERIT.index, default=Status.CONVERGED)
    return FitResult(model, results, status, sv_index, _time_spent(machines))


class _Trained(NamedTuple):
    """A machine, the training row of each of its examples, and when its training began."""

    examples: Ints
    result: SolverResult
    since_s: float


def _later(on_progress: OnProgress | None, since_s: float) -> OnProgress | None:
    """``on_progress`` for a part that begins at ``since_s`` of the whole's time."""
    return None if on_progress is None else lambda seconds, progress: on_progress(since_s + seconds, progress)


def _side_by_side(sizes: list[int]) -> bool:
    """Whether machines of every two of these classes are trained sooner on a thread each than one by one on all threads.

    On two cores that was so by a fifth to a third for 500 to 10,000 rows in the largest machine: smaller ones spend their time
    in Python, larger ones keep several threads busy. And no machine may be so much of the work that the others wait for it.
    """
    rows = [sizes[i] + sizes[j] for i, j in class_pairs(len(sizes))]
    largest = max(rows, default=0)
    return 500 <= largest <= 10_000 and 4 * largest**2 <= sum(n**2 for n in rows)


def _time_spent(machines: list[_Trained]) -> float:
    """Seconds in which at least one machine was trained."""
    spent = until_s = 0.0
    for machine in sorted(machines, key=lambda machine: machine.since_s):
        end_s = machine.since_s + machine.result.seconds
        spent += max(0.0, end_s - max(machine.since_s, until_s))
        until_s = max(until_s, end_s)
    return spent


def _check_type(config: TrainConfig) -> None:
    if config.svm_type != "c_svc":
        raise UsageError(
            f"-s {SVM_TYPES.index(config.svm_type)} ({config.svm_type}): training this type is not available in this version; "
            "models of it can be read and used"
        )


def _check_patience(config: TrainConfig, module: Solver, holdout: Dataset | None) -> None:
    if config.patience is not None and holdout is None:
        raise UsageError("--patience: there is no held-out error to watch; give --holdout")
    if config.patience is not None and module.EXACT:
        raise UsageError(f"--patience: solver {config.solver} is exact and ends at its tolerance (-e), not by held-out error")


def with_bias(config: TrainConfig, on_warning: Callable[[str], None]) -> TrainConfig:
    """``config`` with the bias stated: where it is left open, the solver's own default. A default other than free is told."""
    if config.bias is not None:
        return config
    bias = solver_named(config.solver).BIASES[0]
    if bias != "free":
        on_warning(WITHOUT_BIAS.format(config.solver))
    return replace(config, bias=bias)


def kernel_of(config: TrainConfig, n_features: int) -> Kernel:
    """The config's kernel with the numbers that its kind uses; gamma 0 stands for 1/n_features."""
    kernel = Kernel(KERNEL_NAMES.index(config.kernel))
    if kernel.kind in (POLYNOMIAL, RBF, SIGMOID):
        kernel = kernel._replace(gamma=config.gamma or (1.0 / n_features if n_features else 0.0))
    if kernel.kind in (POLYNOMIAL, SIGMOID):
        kernel = kernel._replace(coef0=config.coef0)
    return kernel._replace(degree=config.degree) if kernel.kind == POLYNOMIAL else kernel


def group_classes(y: Floats, used: Ints) -> tuple[Ints, list[Ints]]:
    """Labels in LIBSVM's order and each one's examples, in file order, among the examples ``used``.

    Labels are cut to integers and stand in order of first appearance, but {−1, +1} is always (+1, −1).
    Raises DataError for a label that is not a number or too large.
    """
    known = y[used]
    bad = np.flatnonzero(~(np.abs(known) < 2**31))
    if len(bad):
        row = int(used[bad[0]])
        raise DataError(f"example {row + 1} has label {y[row]:g}: a class label must be a number below 2^31 in size")
    values, first, code = np.unique(np.trunc(known).astype(np.int64), return_index=True, return_inverse=True)
    order = np.argsort(first)
    if values[order].tolist() == [-1, 1]:
        order = order[::-1]
    return values[order], [used[code == c] for c in order]


def usable_examples(dataset: Dataset) -> Ints:
    """Examples with a weight above zero; those of weight 0 take no part."""
    if dataset.n == 0:
        raise DataError(f"{dataset.source or 'the data'}: no examples to train on")
    bad = np.flatnonzero(~(np.isfinite(dataset.weights) & (dataset.weights >= 0)))
    if len(bad):
        raise DataError(f"example {bad[0] + 1} has weight {dataset.weights[bad[0]]:g}: it must be 0 or more, and finite")
    used = np.flatnonzero(dataset.weights > 0)
    if len(used) == 0:
        raise DataError(f"{dataset.source or 'the data'}: every example has weight 0, none is left to train on")
    return used


def _refuse_huge_values(dataset: Dataset) -> None:
    """Raises DataError for a value whose products with others leave the range of doubles."""
    values = dataset.rows.data
    if max(values.max(initial=0.0), -values.min(initial=0.0)) <= _LARGEST_VALUE:
        return
    place = int(np.flatnonzero(np.abs(values) > _LARGEST_VALUE)[0])
    row = int(np.searchsorted(dataset.rows.indptr, place, side="right"))
    raise DataError(
        f"{dataset.source or 'the data'}: example {row} has {values[place]:g} for feature {dataset.rows.indices[place]}: "
        f"values above {_LARGEST_VALUE:g} in size cannot be multiplied; scale the data"
    )


def label_factors(config: TrainConfig, labels: Ints, on_warning: Callable[[str], None]) -> Floats:
    """What C is multiplied by for each class."""
    factors = np.ones(len(labels))
    for label, factor in config.class_weight:
        if label not in labels:
            on_warning(f"WARNING: class label {label} specified in weight is not found")
        factors[labels == label] *= factor
    return factors


def pair_problem(
    dataset: Dataset, config: TrainConfig, kernel: Kernel, members: list[Ints], factors: Floats, i: int, j: int
) -> Pair:
    """The binary problem of classes i and j; ``members`` and ``factors`` are each class's examples and weight."""
    positive = np.zeros(dataset.n, dtype=bool)
    positive[members[i]] = True
    index = np.sort(np.concatenate([members[i], members[j]]))
    y = np.where(positive[index], 1.0, -1.0)
    C = config.C if config.lam is None else lam_to_C(config.lam, len(index))
    upper = C * np.where(y > 0, factors[i], factors[j]) * dataset.weights[index]
    rows = dataset.rows if len(index) == dataset.n else dataset.rows.take(index)
    bias: Bias = "none" if config.bias == "none" else "free"
    problem = Problem(rows, y, upper, kernel, bias)
    return Pair(i, j, index, problem)


def _holdout_error(holdout: Dataset, positive: int, negative: int, kernel: Kernel) -> Callable[[Solution], float]:
    """The share of the held-out examples of two classes that a solution puts on the wrong side."""
    y = np.trunc(holdout.y)
    index = np.flatnonzero((y == positive) | (y == negative))
    rows, is_positive = holdout.rows.take(index), y[index] == positive

    def error(solution: Solution) -> float:
        if len(index) == 0:
            return float("nan")
        response = cross_apply(rows, solution.basis, kernel, solution.coef[:, None])[:, 0] - solution.rho
        return float(np.mean((response > 0) != is_positive))

    return error


def _assemble(
    rows: Rows,
    svm_type: str,
    kernel: Kernel,
    labels: Ints,
    members: list[Ints],
    trained: list[_Trained],
) -> tuple[Model, Ints]:
    """The model of all machines over the union of their support vectors, and the training rows these are.

    A basis row that is no training row (w of a linear method) stands in the group of its machine's first class, after the
    training rows: LIBSVM's layout has a column for it there, and its other coefficients are 0. Its training row is −1. Here it
    is numbered rows.n, rows.n + 1 …
    """
    own_class: list[int] = []
    numbers, own_rows = [], []
    for (i, _), (examples, result, _) in zip(class_pairs(len(labels)), trained, strict=True):
        found = result.solution
        used = np.flatnonzero(found.coef)
        number = found.origin[used].copy()
        own = number < 0
        number[~own] = examples[number[~own]]
        number[own] = rows.n + len(own_class) + np.arange(np.count_nonzero(own))
        numbers.append(number)
        own_class += [i] * int(np.count_nonzero(own))
        own_rows.append(found.basis.take(used[own]))
    is_support = np.zeros(rows.n + len(own_class), dtype=bool)
    is_support[np.concatenate([np.empty(0, np.int64), *numbers])] = True
    kept = [
        np.concatenate([group[is_support[group]], rows.n + np.flatnonzero(np.array(own_class) == c)]).astype(np.int64)
        for c, group in enumerate(members)
    ]
    order = np.concatenate(kept)
    place = np.full(len(is_support), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    machines = []
    for number, (_, result, _) in zip(numbers, trained, strict=True):
        index, coef = place[number], result.solution.coef[result.solution.coef != 0]
        ascending = np.argsort(index, kind="stable")
        machines.append(Machine(index[ascending], coef[ascending], float(result.solution.rho)))
    support = _rows_of(rows, own_rows, order)
    model = Model(
        svm_type=svm_type,
        kernel=kernel,
        rows=support._replace(n_features=int(support.indices.max(initial=0))),
        machines=tuple(machines),
        labels=labels,
        class_counts=np.array([len(group) for group in kept], dtype=np.int64),
    )
    return model, np.where(order < rows.n, order, -1)


def _rows_of(rows: Rows, own_rows: list[Rows], order: Ints) -> Rows:
    """The rows numbered ``order``, where numbers from rows.n on stand for ``own_rows``, one below the other."""
    named = np.sort(order[order < rows.n])
    if len(named) == len(order):
        return rows.take(order)
    place = np.where(order < rows.n, np.searchsorted(named, order), order - rows.n + len(named))
    return stack([rows.take(named), *own_rows]).take(place)


# --- cross-validation -----------------------------------------------------------------------------------------------------


class Folds(NamedTuple):
    """Fold f is the examples ``order[starts[f]:starts[f + 1]]``; its training set is the rest of ``order``, as it stands."""

    order: Ints
    starts: Ints


def folds(y: Floats, k: int, rand: Callable[[], int], stratified: bool = True) -> Folds:
    """svm-train's folds: shuffled by ``rand`` within each class (or over all), cut evenly.

    As svm-train does, k = n (leave one out) is not stratified. Raises UsageError unless 2 ≤ k ≤ n.
    """
    n = len(y)
    if not 2 <= k <= n:
        raise UsageError(f"-v {k}: folds must be at least 2 and at most the number of examples, {n}")
    everyone = np.arange(n)
    groups = group_classes(y, everyone)[1] if stratified and k < n else [everyone]
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


def cross_validate(
    dataset: Dataset,
    config: TrainConfig,
    split: Folds,
    *,
    interrupted: Callable[[], bool] = lambda: False,
    on_progress: OnProgress | None = None,
    on_machine: Callable[[Pair, SolverResult], None] | None = None,
    on_fit: Callable[[FitResult], None] | None = None,
    on_warning: Callable[[str], None] = lambda text: None,
) -> Floats:
    """What a model of all other folds predicts for each example, (n,) in file order; ``on_fit`` is called after each fold.

    ``fit`` sees the whole file's number of features, so gamma's default is the same in every fold, as in svm-train. The answer
    is nan, wrong for any label, where nothing is left to train on (every example is a class of its own) and after an
    interruption.
    """
    predictions = np.full(dataset.n, np.nan)
    config = with_bias(config, on_warning)
    began = time.perf_counter()
    for first, last in pairwise(split.starts):
        held_out = split.order[first:last]
        others = np.concatenate([split.order[:first], split.order[last:]])
        if len(held_out) == 0 or len(others) == 0:
            continue
        found = fit(
            dataset.take(others),
            config,
            interrupted=interrupted,
            on_progress=_later(on_progress, time.perf_counter() - began),
            on_machine=on_machine,
            on_warning=on_warning,
        )
        if found.status is Status.INTERRUPTED:
            break
        if on_fit is not None:
            on_fit(found)
        predictions[held_out] = answers(found.model, dataset.rows.take(held_out))
    return predictions
