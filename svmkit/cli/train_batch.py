"""``svmkit train`` on all of the data at once, which is its plain mode; and what cross-validation does alike."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from svmkit.cli import files, report, train_init
from svmkit.cli.interrupt import Interrupts
from svmkit.cli.progress import MachineProgress, Reporter
from svmkit.config import TrainConfig
from svmkit.errors import Abandoned
from svmkit.trace import Status

if TYPE_CHECKING:
    from svmkit.data import Dataset, Floats, Ints
    from svmkit.fit import FitResult
    from svmkit.io.traces import TraceWriter
    from svmkit.warm import Warm


def train_batch(
    data: str,
    model: str,
    config: TrainConfig,
    reported: report.ReportOptions,
    *,
    balance: str | None,
    init: str | None,
    given: set[str],
) -> int:
    """Trains on DATA, writes MODEL, reports; the exit code. ``given`` are the kernel's options that the command line gives."""
    from svmkit.fit import check
    from svmkit.io.model_libsvm import write_model

    with Reporter(reported.quiet) as reporter:
        files.begin(config.threads, reporter)
        check(config)  # before what may be hours of a pipe
        dataset = files.read_training(data, config, reporter)
        training, held_out = files.set_aside(dataset, reported.holdout, config, reporter)
        warm = None
        if init is not None:
            config, warm = train_init.go_on(init, training, config, given=given, reporter=reporter)
            training = warm.dataset
        config = balanced(config, training) if balance else config
        with Interrupts(reported.quiet) as stop:
            lost: list[str] = []
            with files.tracing(reported.trace, lost.append) as writer:
                result = _fit(training, held_out, config, warm, writer, reporter, stop)
            if result.status is Status.INTERRUPTED and result.steps == 0 and not result.has_learned:
                raise Abandoned("stopped before a step was taken; nothing was written")  # an older MODEL is worth more
            write_model(model, result.model)
            _report(result, model, held_out, reported.as_json, reporter, stop)
        if report.complete(result.status) and result.trained and not result.has_learned:  # of one class there is no machine
            advice = "lower -e" if config.eps >= 1 else "scale the data, or try --solver smo"  # w = 0 may be good enough for it
            reporter.warn(f"w is 0, and the model has one answer to everything; {advice}")
    return report.exit_code(result.status, lost, stop, strict=reported.strict, reporter=reporter)


def balanced(config: TrainConfig, dataset: Dataset) -> TrainConfig:
    """``config`` with each class weighted by n/(k n_class), of examples that take part, on top of the weights given."""
    labels, counts = class_sizes(dataset)
    factors = counts.sum() / (len(labels) * counts)
    weights = tuple((int(label), float(factor)) for label, factor in zip(labels, factors, strict=True))
    return dataclasses.replace(config, class_weight=config.class_weight + weights)


def n_machines(dataset: Dataset, config: TrainConfig) -> int:
    """The machines of one model."""
    from svmkit.model import count_machines
    from svmkit.pairs import with_multiclass

    n_class = len(class_sizes(dataset)[0])
    return count_machines(n_class, with_multiclass(config, n_class).multiclass)


def class_sizes(dataset: Dataset) -> tuple[Floats, Ints]:
    """The labels of the examples that are trained on, ascending, and how many have each."""
    import numpy as np

    labels, counts = np.unique(dataset.learned_classes, return_counts=True)
    return labels, counts


def _fit(
    dataset: Dataset,
    held_out: Dataset | None,
    config: TrainConfig,
    warm: Warm | None,
    writer: TraceWriter | None,
    reporter: Reporter,
    stop: Interrupts,
) -> FitResult:
    from svmkit.fit import fit

    machines = MachineProgress(reporter, n_machines(dataset, config), config)
    return fit(
        dataset,
        config,
        interrupted=stop.interrupted,
        on_progress=machines.progress,
        on_machines=machines.done,
        on_mapping=reporter.doing,
        on_trace=None if writer is None else lambda row: writer.write(row, machine=machines.current),
        on_warning=reporter.warn,
        holdout=held_out,
        warm=warm,
    )


def _report(
    result: FitResult, path: str, held_out: Dataset | None, as_json: bool, reporter: Reporter, stop: Interrupts
) -> None:
    values = report.training(result, path) if as_json else {}  # of thousands of machines it would take its time
    line = report.training_line(result, "model on stdout" if path == "-" else f"{path} written")
    if held_out is not None:
        line += report.held_out(values, report.error_on(result.model, held_out, stop, reporter), held_out.n)
    report.tell(values, line, complete=report.complete(result.status), as_json=as_json, reporter=reporter)
