"""From a Dataset and a TrainConfig to a Model: every machine trained, together or side by side where that is faster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import numpy as np

from svmkit import mapped
from svmkit.assembly import Trained, assemble
from svmkit.certificate import Certificate, total
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Ints
from svmkit.engine.kernels import cross_apply
from svmkit.errors import UsageError
from svmkit.model import REST, Model, class_pairs
from svmkit.pairs import (
    Pair,
    bias_of,
    check_type,
    group_classes,
    kernel_of,
    label_factors,
    pair_of,
    refuse_huge_values,
    usable_examples,
    with_bias,
)
from svmkit.problem import LINEAR, Kernel, Solution
from svmkit.schedule import TrainingTime, jobs_of, side_by_side, sizes_of, time_spent
from svmkit.solvers import solver as solver_named
from svmkit.solvers.base import Clock, Machine, Solver, SolverResult, Together, options_of, run
from svmkit.trace import Limits, Progress, Status, TraceRow
from svmkit.turns import Turn, run_in_turn
from svmkit.warm import Warm, check_solver, first_alpha

OnProgress = Callable[[float, Progress], None]

ONE_CLASS = "WARNING: training data in only one class. See README for details."

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
    def certificate(self) -> Certificate:
        """That of all machines together."""
        return total([machine.certificate for machine in self.machines])


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
    warm: Warm | None = None,
) -> FitResult:
    """Trains the model that ``config`` describes; with ``warm``, whose data ``dataset`` is then, from that model on.

    Machines may be trained side by side, with the same results. ``on_progress(seconds since the first began, progress)`` and
    ``on_machine(pair, result)``, as a machine is done, come in the order of the machines, one at a time, but from any thread;
    with ``on_trace``, machines come one after another. The time limit is for all machines together (``TrainingTime`` says what
    counts), the other limits for each. A machine's held-out error counts the held-out examples of its own classes. Raises
    DataError for data that cannot be trained on and UsageError for a config that cannot.
    """
    config.check()
    check_type(config)
    mapped.check(config)
    config = with_bias(config, on_warning)
    used = usable_examples(dataset)
    refuse_huge_values(dataset)
    labels, members = group_classes(dataset.y, used)
    if len(labels) == 1:
        on_warning(ONE_CLASS)
    factors = label_factors(config, labels, on_warning)
    kernel = kernel_of(config, dataset.n_features)
    module = solver_named(config.solver)
    options = options_of(module, config.solver_options, cache_mb=config.cache_mb, shrinking=config.shrinking)
    _check_patience(config, module, holdout)
    if warm is not None:
        check_solver(config.solver)
    own, own_kernel = dataset, kernel
    on_map = None if config.map is None else mapped.map_data(dataset, used, kernel, config, holdout)
    if on_map is not None:
        dataset, holdout, kernel = on_map.dataset, on_map.holdout, Kernel(LINEAR)
    multiclass = config.multiclass if len(labels) > 2 else "ovo"
    pairs = list(class_pairs(len(labels), multiclass))
    sizes = sizes_of(members, pairs)
    plain = warm is None and on_map is None and on_trace is None and config.max_evaluations is None
    offer: Callable[..., Together | None] | None = getattr(module, "together", None) if plain else None
    together = None if offer is None else offer(dataset.rows, kernel, options, sizes)
    jobs = jobs_of(sizes, (lambda n: inf) if together is None else together.work)
    trained: list[Trained | None] = [None] * len(pairs)
    beside = on_trace is None and side_by_side(dataset.rows, sizes, jobs)
    spent = TrainingTime(0.0 if on_map is None else on_map.seconds, beside)

    def time_left_s() -> float | None:
        return None if config.time_limit_s is None else max(0.0, config.time_limit_s - spent.seconds())

    def done(number: int, pair: Pair, result: SolverResult, since_s: float, turn: Turn) -> None:
        spent.add(result.seconds)
        trained[number] = Trained(pair.examples, result, since_s)
        if on_machine is not None:
            turn.say(partial(on_machine, pair, result))

    def train_alone(number: int, turn: Turn, in_vain_s: float = 0.0) -> None:
        i, j = pairs[number]
        pair = pair_of(dataset, config, members, factors, i, j)
        problem = pair.problem(dataset, config, kernel)
        if warm is not None:
            problem = replace(problem, start=first_alpha(warm, labels, i, j, pair.examples, problem))
        since_s = spent.seconds()
        heard = later(on_progress, since_s)
        result = run(
            module,
            problem,
            options,
            eps=config.eps,
            seed=config.seed,
            limits=Limits(config.max_iter, time_left_s(), config.max_evaluations, config.patience),
            interrupted=lambda: turn.stopped() or interrupted(),
            on_progress=heard and (lambda seconds, progress: turn.say(lambda: heard(seconds, progress), passing=True)),
            on_trace=on_trace,
            holdout_error=None if holdout is None else _holdout_error(holdout, labels, i, j, kernel),
        )
        if on_map is not None and config.certificate_of == "kernel":
            result = mapped.of_the_kernel(on_map.map, result, pair.problem(own, config, own_kernel))
        done(number, pair, replace(result, seconds=result.seconds + in_vain_s), since_s, turn)

    def train(numbers: list[int], turn: Turn) -> None:
        if together is None or len(numbers) == 1 or turn.stopped() or interrupted() or time_left_s() == 0.0:
            for number in numbers:
                train_alone(number, turn)
            return
        since_s, clock = spent.seconds(), Clock()
        group = [pair_of(dataset, config, members, factors, *pairs[number]) for number in numbers]
        results = together.train([Machine(*pair[2:]) for pair in group], bias_of(config), config.eps, config.max_iter)
        each_s = clock.seconds() / len(numbers)
        for number, pair, result in zip(numbers, group, results, strict=True):
            if result is None:
                train_alone(number, turn, each_s)
                since_s = spent.seconds()
                continue
            if on_progress is not None:
                turn.say(partial(on_progress, since_s + each_s, _last_of(result)), passing=True)
            done(number, pair, replace(result, seconds=each_s), since_s, turn)
            since_s += each_s

    run_in_turn(lambda job, turn: train(jobs[job], turn), len(jobs), beside)
    machines = [machine for machine in trained if machine is not None]
    if on_map is not None:
        model, sv_index = mapped.assemble_mapped(on_map, own_kernel, labels, members, machines, config)
    else:
        model, sv_index = assemble(dataset.rows, config.svm_type, kernel, labels, members, machines, multiclass)
    results = tuple(machine.result for machine in machines)
    status = max((result.status for result in results), key=_BY_MERIT.index, default=Status.CONVERGED)
    seconds = time_spent(machines) + (0.0 if on_map is None else on_map.seconds)
    return FitResult(model, results, status, sv_index, seconds)


def _last_of(result: SolverResult) -> Progress:
    """The progress that a run with this result would have ended with."""
    counts, violation = (result.steps, result.kernel_evaluations), result.certificate.violation
    return Progress(*counts, violation, done=True, n_support=result.solution.n_support)


def later(on_progress: OnProgress | None, since_s: float) -> OnProgress | None:
    """``on_progress`` for a part that begins at ``since_s`` of the whole's time."""
    return None if on_progress is None else lambda seconds, progress: on_progress(since_s + seconds, progress)


def _check_patience(config: TrainConfig, module: Solver, holdout: Dataset | None) -> None:
    if config.patience is not None and holdout is None:
        raise UsageError("--patience: there is no held-out error to watch; give --holdout")
    if config.patience is not None and module.EXACT:
        raise UsageError(f"--patience: solver {config.solver} is exact and ends at its tolerance (-e), not by held-out error")


def _holdout_error(holdout: Dataset, labels: Ints, i: int, j: int, kernel: Kernel) -> Callable[[Solution], float]:
    """The share of the held-out examples of classes i and j (or REST) that a solution puts on the wrong side."""
    y = np.trunc(holdout.y)
    index = np.flatnonzero(np.isin(y, labels if j == REST else labels[[i, j]]))
    rows, is_positive = holdout.rows.take(index), y[index] == labels[i]

    def error(solution: Solution) -> float:
        if len(index) == 0:
            return float("nan")
        response = cross_apply(rows, solution.basis, kernel, solution.coef[:, None])[:, 0] - solution.rho
        return float(np.mean((response > 0) != is_positive))

    return error
