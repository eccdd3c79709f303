"""From a Dataset and a TrainConfig to a Model: every machine trained, together or side by side where that is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from svmkit import mapped, maps
from svmkit.assembly import assemble
from svmkit.certificate import Certificate, total
from svmkit.clock import Clock
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Ints, Rows
from svmkit.engine.rng import permutation
from svmkit.errors import Abandoned, UsageError
from svmkit.model import Model, class_pairs
from svmkit.pairs import (
    Pair,
    check_type,
    group_classes,
    kernel_of,
    label_factors,
    refuse_huge_values,
    usable_examples,
    with_bias,
    with_multiclass,
)
from svmkit.problem import LINEAR, Kernel
from svmkit.solvers import solver as solver_named
from svmkit.solvers.base import Solver, SolverResult, options_of, refused_bias
from svmkit.trace import Progress, Status, TraceRow
from svmkit.trained import Part, time_spent
from svmkit.training import Listeners, OnMachines, OnProgress, Training
from svmkit.warm import Warm, check_solver

ONE_CLASS = "WARNING: training data in only one class. See README for details."

#: Rows that an SVM is trained on for each landmark it is to be reduced to, and the stream of random numbers they are drawn by.
ROWS_A_LANDMARK, _DRAWN_ROWS_STREAM = 100, 1 << 44
#: What that SVM has of the config.
_OF_EXACT = (
    *("kernel", "degree", "gamma", "coef0", "C", "lam", "eps", "cache_mb", "shrinking", "class_weight"),
    *("time_limit_s", "seed"),
)

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
    """A model, the parts in which its machines were trained, and ``sv_index``, each support vector's training row (or −1)."""

    model: Model
    trained: tuple[Part, ...]
    status: Status
    sv_index: Ints
    seconds: float

    @cached_property
    def machines(self) -> tuple[SolverResult, ...]:
        """How each machine was found."""
        return tuple(self.each())

    def each(self) -> Iterator[SolverResult]:
        """The same one by one, in less memory."""
        for part in self.trained:
            yield from part.results()

    @property
    def has_learned(self) -> bool:
        """Whether some machine's w is not 0. The model does not tell: a map's landmarks are there even then."""
        return any(len(part.support().coef) for part in self.trained)

    @property
    def steps(self) -> int:
        """Steps of all machines."""
        return sum(part.sums().steps for part in self.trained)

    @property
    def kernel_evaluations(self) -> int:
        """Kernel evaluations of all machines."""
        return sum(part.sums().kernel_evaluations for part in self.trained)

    @property
    def certificate(self) -> Certificate:
        """That of all machines together: sums of the objectives and gaps, the largest violation, nan where one is."""
        return total([part.sums().certificate for part in self.trained])


def check(config: TrainConfig) -> None:
    """Raises UsageError for a config that cannot be trained, whatever the data are."""
    config.check()
    check_type(config)
    mapped.check(config)
    module = solver_named(config.solver)
    options(module, config)
    if config.bias is not None and config.bias not in module.BIASES:
        raise UsageError(f"--solver {config.solver}: {refused_bias(module.BIASES)}")
    if config.patience is not None and module.EXACT:
        raise UsageError(f"--patience: solver {config.solver} is exact and ends at its tolerance (-e), not by held-out error")


def options(module: Solver, config: TrainConfig) -> Any:
    """The solver's Options, of the config's own. Raises UsageError for one that it does not know."""
    return options_of(module, config.solver_options, cache_mb=config.cache_mb, shrinking=config.shrinking)


def fit(
    dataset: Dataset,
    config: TrainConfig,
    *,
    interrupted: Callable[[], bool] = lambda: False,
    on_progress: OnProgress | None = None,
    on_trace: Callable[[TraceRow], None] | None = None,
    on_machines: OnMachines | None = None,
    on_mapping: Callable[[str], None] = lambda doing: None,
    on_warning: Callable[[str], None] = lambda text: None,
    holdout: Dataset | None = None,
    warm: Warm | None = None,
) -> FitResult:
    """Trains the model that ``config`` describes; with ``warm``, whose data ``dataset`` is then, from that model on.

    Machines may be trained side by side, with the same results, or several in a call, of which ``on_progress`` hears nothing.
    ``on_progress(seconds since the first began, progress)`` and ``on_machines(count, each)``, as so many machines are done,
    where ``each()`` yields the pair and the result of each, come in the order of the machines, one at a time, but from any
    thread; with ``on_trace``, machines come one after another. ``on_mapping(text)`` hears what is done while a feature map is
    made. The time limit is for all machines together (``TrainingTime`` says what counts), the other limits for each. A
    machine's held-out error counts the held-out examples of its own classes. Raises DataError for data that cannot be trained
    on, UsageError for a config that cannot, and Abandoned where time is up, or ``interrupted()``, before a feature map is made.
    """
    if config.patience is not None and holdout is None:
        raise UsageError("--patience: there is no held-out error to watch; give --holdout")
    check(config)
    config = with_bias(config, on_warning)
    used = usable_examples(dataset)
    refuse_huge_values(dataset)
    labels, members = group_classes(dataset.y, used, dataset.name)
    if len(labels) == 1:
        on_warning(ONE_CLASS)
    factors = label_factors(config, labels, on_warning)
    kernel = kernel_of(config, dataset.n_features)
    module = solver_named(config.solver)
    if warm is not None:
        check_solver(config.solver, on_a_stream=False)
    clock = Clock()
    on_map = None if config.map is None else _on_a_map(dataset, used, kernel, config, holdout, interrupted, on_mapping)
    map_s = 0.0 if on_map is None else clock.seconds()
    config = with_multiclass(config, len(labels))

    def certified(pair: Pair, result: SolverResult) -> SolverResult:
        if on_map is None or config.certificate_of == "map":
            return result
        return mapped.of_the_kernel(on_map.map, result, pair.problem(dataset, config, kernel))

    trained = Training(
        dataset=dataset if on_map is None else on_map.dataset,
        config=config,
        kernel=kernel if on_map is None else Kernel(LINEAR),
        labels=labels,
        members=members,
        factors=factors,
        pairs=class_pairs(len(labels), config.multiclass),
        solver=module,
        options=options(module, config),
        listeners=Listeners(interrupted, on_progress, on_trace, on_machines),
        holdout=holdout if on_map is None else on_map.holdout,
        warm=warm,
        certified=certified,
        before_s=map_s,
    ).run()
    if on_map is not None:
        model, sv_index = mapped.assemble_mapped(on_map, kernel, labels, members, trained, config)
    else:
        model, sv_index = assemble(dataset.rows, config.svm_type, kernel, labels, members, trained, config.multiclass)
    status = max((part.sums().status for part in trained), key=_BY_MERIT.index, default=Status.CONVERGED)
    return FitResult(model, tuple(trained), status, sv_index, time_spent(trained) + map_s)


def _on_a_map(
    dataset: Dataset,
    used: Ints,
    kernel: Kernel,
    config: TrainConfig,
    holdout: Dataset | None,
    interrupted: Callable[[], bool],
    on_mapping: Callable[[str], None],
) -> mapped.Mapped:
    """The map and what it makes of the data; raises Abandoned."""
    clock, points = Clock(), None

    def heed(doing: str) -> None:
        on_mapping(doing)
        if interrupted():
            raise Abandoned("stopped while the map was made; nothing was trained, nothing was written")
        if config.time_limit_s is not None and clock.seconds() >= config.time_limit_s:
            raise Abandoned("--time-limit: time was over before the map was made; nothing was trained, nothing was written")

    if config.map == "nystroem" and config.landmarks == "reduced":
        points = reduced_landmarks(dataset, used, config, interrupted, heed)
        config = config if points is not None else replace(config, landmarks="pivoted")
    return mapped.map_data(dataset, used, kernel, config, holdout, heed, points)


def reduced_landmarks(
    dataset: Dataset,
    used: Ints,
    config: TrainConfig,
    interrupted: Callable[[], bool] = lambda: False,
    heed: Callable[[str], None] = lambda doing: None,
) -> Rows | None:
    """At most ``config.dim`` landmarks: what ``compress`` makes of the exact SVM on some of the rows ``used``, drawn at random.

    They serve better than rows do: with the rbf kernel they lie where that SVM's decision function needs them. None where that
    SVM has no support vectors, as of rows of one class. ``heed`` hears what is done, and may raise what ends it. Raises
    UsageError where classes are more than ``config.dim``.
    """
    from svmkit.compress import STEPS, compress  # SciPy's optimisers, which take longer to load than small data to train on

    drawn = permutation(config.seed, _DRAWN_ROWS_STREAM, len(used))[: ROWS_A_LANDMARK * config.dim]
    exact = replace(TrainConfig(), **{name: getattr(config, name) for name in _OF_EXACT})

    def on_progress(seconds: float, progress: Progress) -> None:
        heed(f"landmarks: an SVM on {len(drawn):,} examples, {progress.steps:,} iterations")

    def telling(say: Callable[[str], None]) -> Callable[[int, float], None]:
        return lambda step, left: say(f"landmarks: step {step} of {STEPS}, {max(0.0, left):.3%} of ‖f‖² left")

    big = fit(dataset.take(used[np.sort(drawn)]), exact, interrupted=interrupted, on_progress=on_progress).model
    if big.n_support == 0:
        return None
    doing = f"landmarks: {config.dim:,} of {big.n_support:,} support vectors to begin with"
    heed(doing)
    try:
        return maps.heeded(doing, lambda say: compress(big, config.dim, config.seed, on_step=telling(say)).rows, heed)
    except UsageError as reason:
        raise UsageError(f"--dim {config.dim}: {reason}") from None
