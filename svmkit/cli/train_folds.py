"""``svmkit train -v``: the accuracy of models that each saw all of the data but one fold."""

from __future__ import annotations

import dataclasses

import click

from svmkit.cli import files, report
from svmkit.cli.interrupt import Interrupts
from svmkit.cli.progress import MachineProgress, Reporter
from svmkit.cli.train_batch import balanced, n_machines
from svmkit.config import TrainConfig


def cross_validate(data: str, config: TrainConfig, n_folds: int, reported: report.ReportOptions, *, balance: str | None) -> int:
    """Prints the accuracy; the exit code. A time limit is shared evenly among the folds."""
    from svmkit import folds
    from svmkit.cli.compat.glibc_rand import RAND_MAX, glibc_rand
    from svmkit.fit import check

    with Reporter(reported.quiet) as reporter:
        files.begin(config.threads, reporter)
        check(config)  # before what may be hours of a pipe
        dataset = files.read_training(data, config, reporter)
        config = balanced(config, dataset) if balance else config
        split = folds.folds(dataset.y, n_folds, glibc_rand(1 + config.seed % (RAND_MAX - 1)))
        machines = MachineProgress(reporter, n_folds * n_machines(dataset, config), config)
        if config.time_limit_s is not None:
            config = dataclasses.replace(config, time_limit_s=config.time_limit_s / n_folds)
        unfinished: list[str] = []
        with Interrupts(quiet=True) as stop:
            predicted = folds.cross_validate(
                dataset,
                config,
                split,
                interrupted=stop.interrupted,
                on_progress=machines.progress,
                on_machines=machines.done,
                on_mapping=reporter.doing,
                on_fold=lambda status, _: None if report.complete(status) else unfinished.append(status.value),
                on_warning=reporter.warn,
            )
    if stop.interrupted():
        reporter.say("stopped; there is no cross-validation accuracy to report")
        return stop.exit_code
    if unfinished:
        reasons = ", ".join(sorted(set(unfinished)))
        reporter.warn(f"in {len(unfinished)} of {n_folds} folds training stopped before the tolerance ({reasons})")
    right = predicted == dataset.classes
    if reported.as_json:
        scores = {"accuracy": right.mean(), "error": (~right).mean()}
        click.echo(report.to_json({"folds": n_folds, "n": dataset.n, **scores, "unfinished": len(unfinished)}))
    else:
        click.echo(f"Cross Validation Accuracy = {100 * right.mean():g}%")
    return 3 if reported.strict and unfinished else 0
