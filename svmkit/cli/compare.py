"""``svmkit compare``: several solvers on one problem, one after another, and how they got there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from svmkit.cli import comparison_picture, files, pictures
from svmkit.cli.comparison import Run, document, table
from svmkit.cli.interrupt import Interrupts
from svmkit.cli.options import (
    CONTEXT,
    key_value,
    options_but_the_solver,
    quiet_option,
    refuse_lambda_with_C,
    refuse_patience_alone,
    stack,
    threads_option,
)
from svmkit.cli.progress import Reporter
from svmkit.cli.report import counted
from svmkit.cli.train_batch import class_sizes
from svmkit.config import KERNEL_NUMBERS, TrainConfig
from svmkit.errors import DataError, OutputError, UsageError
from svmkit.solvers import NAMES

if TYPE_CHECKING:
    from svmkit.data import Dataset
    from svmkit.problem import Problem
    from svmkit.solvers.base import SolverResult
    from svmkit.trace import Progress

TABLE, CURVES, PICTURE = "table.md", "curves.jsonl", "curves.png"

#: What makes a config that of a reference run.
_REFERENCE: dict[str, Any] = {
    "solver": "smo",
    "solver_options": (),
    "max_iter": None,
    "max_evaluations": None,
    "patience": None,
}

EPILOG = f"""\b
Written into OUTDIR, each file whole, so far as runs are finished:
  {TABLE}      a line a solver: status, seconds, kernel evaluations, primal, its
                distance from the optimum, gap, held-out error, support vectors
  {CURVES}  the course of each run, an object a line, as train --trace writes
                it, with solver, bias and seed
  {PICTURE}    held-out error and relative suboptimality against kernel evaluations
                and against seconds; only where matplotlib is installed
The table is also printed.

\b
Each solver trains with the bias it does best with, unless --bias says; solvers of one
bias share an optimum. Where no exact solver of the list converged on it, smo runs
once more for the optimum, within --time-limit but no other limit. With --seeds, a
solver whose second run is the first once more is left at one. Exact solvers take no
part in --patience.

\b
Example:
  svmkit compare --solvers smo,pair -c 1 -g 0.05 --holdout a9a.t a9a results
"""


@click.command(
    "compare",
    help="Train several solvers on DATA, two classes, and compare their courses in OUTDIR.",
    context_settings=CONTEXT,
    epilog=EPILOG,
)
@click.argument("data", metavar="DATA")
@click.argument("outdir", metavar="OUTDIR")
@click.option("--solvers", required=True, metavar="NAME,NAME…", help=f"Which to run, in this order: {', '.join(NAMES)}.")
@options_but_the_solver
@stack(
    click.option(
        "-O",
        "--solver-option",
        "solver_options",
        type=key_value,
        multiple=True,
        metavar="SOLVER.KEY=VALUE",
        help="A knob of one of the solvers; see svmkit train --list-solvers. Repeatable.",
    ),
    click.option(
        "--seeds",
        type=int,
        metavar="K",
        default=1,
        show_default=True,
        help="Run K seeds each, from --seed on: medians, mean ± sd.",
    ),
    click.option("--holdout", metavar="FILE|FRACTION", help="Data to measure the error on, or a random FRACTION set aside."),
    threads_option,
    quiet_option,
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    data: str,
    outdir: str,
    solvers: str,
    solver_options: tuple[tuple[str, str], ...],
    seeds: int,
    holdout: str | None,
    quiet: bool,
    **settings: Any,
) -> int:
    config = TrainConfig(**settings)
    config.check()
    refuse_lambda_with_C(ctx)
    if seeds < 1:
        raise UsageError(f"--seeds {seeds}: must be at least 1")
    replace(config, seed=config.seed + seeds - 1).check()
    refuse_patience_alone(config, holdout)
    files.refuse_shared_input(DATA=data, holdout=holdout)
    configs = _configs(config, solvers, solver_options)
    _check_outputs(outdir, data, holdout)
    with Reporter(quiet) as reporter:
        files.begin(config.threads, reporter)
        dataset = files.read_training(data, config, reporter)
        _check_binary(dataset, data)
        training, held_out = files.set_aside(dataset, holdout, config, reporter)
        configs = _willing(training, configs, reporter)
        about = _about(data, training, holdout, held_out, config, seeds)
        runs: list[Run] = []
        with Interrupts(quiet=True) as stop:
            for run in _runs(training, held_out, configs, seeds, reporter, stop):
                runs.append(run)
                _write(outdir, runs, about)
        if runs:
            _draw(outdir, runs, reporter)
    if runs:
        click.echo(table(runs), nl=False)
    if stop.interrupted():
        finished = counted(len(runs), "finished run")
        reporter.say(f"stopped; {f'{outdir} holds {finished}' if runs else 'no run was finished, nothing was written'}")
    return stop.exit_code


def _configs(config: TrainConfig, solvers: str, knobs: Sequence[tuple[str, str]]) -> list[TrainConfig]:
    """What each solver is run with; UsageError for names and knobs that are not there."""
    from svmkit.pairs import with_bias
    from svmkit.solvers import solver
    from svmkit.solvers.base import options_of

    names = list(dict.fromkeys(name.strip() for name in solvers.split(",") if name.strip()))
    if not names:
        raise UsageError(f"--solvers: names none; there are {', '.join(NAMES)}")
    found = []
    for name in names:
        exact = solver(name).EXACT
        own = tuple((key.partition(".")[2], value) for key, value in knobs if key.partition(".")[0] == name)
        with _named(name):
            options_of(solver(name), own)
        patience = None if exact else config.patience
        changed = replace(config, solver=name, solver_options=own, patience=patience)
        found.append(with_bias(changed, lambda text: None))
    for key, value in knobs:
        if key.partition(".")[0] not in names:
            raise UsageError(f"-O {key}={value}: begin with one of the solvers compared and a dot: {', '.join(names)}")
    return found


def _check_outputs(outdir: str, *inputs: str | None) -> None:
    """Raises OutputError, before any work, where OUTDIR or its files cannot be written, UsageError where one is an input."""
    if os.path.isdir(outdir):
        for name in (TABLE, CURVES, PICTURE):
            files.check_output(os.path.join(outdir, name), *inputs)
    elif os.path.lexists(outdir) or outdir == "-":
        raise OutputError(f"can't write {outdir}: this must be a folder; it is made if it does not exist")
    else:
        files.check_output(outdir.rstrip("/"))


def _check_binary(dataset: Dataset, data: str) -> None:
    n_class = len(class_sizes(dataset)[0])
    if n_class != 2:
        raise DataError(
            f"{data}: has {n_class} class{'' if n_class == 1 else 'es'}; compare works on a problem of two",
            "relabel them, one class against the rest" if n_class > 2 else "",
        )


@contextmanager
def _named(solver: str) -> Iterator[None]:
    """Names the solver in what is said of its -O inside, as it stood on the command line."""
    try:
        yield
    except UsageError as error:
        raise UsageError(str(error).replace("-O ", f"-O {solver}.", 1)) from None


def _willing(dataset: Dataset, configs: Sequence[TrainConfig], reporter: Reporter) -> list[TrainConfig]:
    """The configs whose solvers take the problem; others are left out with their reason. UsageError where none is left, or for
    an option that a solver cannot have.
    """
    import numpy as np

    from svmkit.pairs import group_classes, kernel_of, label_factors, pair_of, usable_examples
    from svmkit.solvers import solver
    from svmkit.solvers.base import options_of, refusal

    labels, members = group_classes(dataset.y, usable_examples(dataset), dataset.name)
    if len(labels) != 2:
        raise UsageError("--holdout left only one class to train on")
    factors = label_factors(configs[0], labels, reporter.warn)
    willing = []
    for config in configs:
        kernel = kernel_of(config, dataset.n_features)
        problem: Problem = pair_of(dataset, config, members, factors, 0, 1).problem(dataset, config, kernel)
        module = solver(config.solver)
        reason = refusal(module, problem)
        if reason is not None:
            reporter.warn(f"{config.solver} is left out: {reason}")
            continue
        willing.append(config)
        two = np.array([int(np.argmax(problem.y == side)) for side in (1.0, -1.0)])
        little = replace(problem, rows=problem.rows.take(two), y=problem.y[two], upper=problem.upper[two])
        with _named(config.solver):  # values that cannot be are refused at the start
            module.start(little, options_of(module, config.solver_options), config.eps, config.seed)
    if not willing:
        raise UsageError("none of the solvers takes this problem")
    return willing


def _about(
    data: str, training: Dataset, holdout: str | None, held_out: Dataset | None, config: TrainConfig, seeds: int
) -> list[str]:
    """What was compared, a line a fact."""
    from svmkit.pairs import kernel_of, usable_examples
    from svmkit.problem import lam_to_C

    kernel, used = [config.kernel], KERNEL_NUMBERS[config.kernel]
    if "gamma" in used:
        kernel.append(f"gamma {kernel_of(config, training.n_features).gamma:.10g}")
    if "coef0" in used:
        kernel.append(f"coef0 {config.coef0:g}")
    if "degree" in used:
        kernel.append(f"degree {config.degree}")
    cost = f"C {config.C:g}"
    if config.lam is not None:
        cost = f"lambda {config.lam:g} (C {lam_to_C(config.lam, len(usable_examples(training))):.10g})"
    lines = [f"data: {data}, {training.n:,} examples"]
    if held_out is not None:
        lines.append(f"held out: {holdout}, {held_out.n:,} examples")
    lines.append(f"problem: C-SVC, kernel {', '.join(kernel)}; {cost}; tolerance {config.eps:g}")
    lines += [f"weight of class {label}: {factor:g}" for label, factor in config.class_weight]
    limits = (
        ("iterations", config.max_iter),
        ("kernel evaluations", config.max_evaluations),
        ("seconds", config.time_limit_s),
        ("patience", config.patience),
    )
    lines += [f"limit of {what}: {most:,}" for what, most in limits if most is not None]
    last = config.seed + seeds - 1
    lines.append(
        f"seed: {config.seed}"
        if seeds == 1
        else f"seeds: {config.seed} to {last}; a solver that draws no random numbers counts once"
    )
    return lines


def _runs(
    training: Dataset,
    held_out: Dataset | None,
    configs: Sequence[TrainConfig],
    seeds: int,
    reporter: Reporter,
    stop: Interrupts,
) -> Iterator[Run]:
    """Every run as it is finished, then the reference runs; ends at the first that is interrupted.

    A solver whose second seed gives what the first gave is not run with more, and counts once.
    """
    from svmkit.solvers import solver

    solved = set()
    for place, config in enumerate(configs):
        first = None
        for k in range(seeds):
            label = f"{config.solver}, seed {config.seed + k} ({place * seeds + k + 1} of {len(configs) * seeds})"
            run = _run(training, held_out, replace(config, seed=config.seed + k), label, reporter, stop)
            if run is None:
                return
            if first is not None and _same(first, run):  # the seed plays no part
                break
            first = first or run
            if run.result.status.value == "CONVERGED" and solver(run.solver).EXACT:
                solved.add(run.bias)
            yield run
    for bias in dict.fromkeys(str(config.bias) for config in configs):
        if bias not in solved:
            tolerance = min(configs[0].eps, TrainConfig.eps)
            config = replace(configs[0], **_REFERENCE, bias=bias, eps=tolerance)
            run = _run(training, held_out, config, f"smo for the optimum, bias {bias}", reporter, stop)
            if run is None:
                return
            yield replace(run, reference=True)


def _same(one: Run, other: Run) -> bool:
    """Whether two runs came to the same bytes by as many steps."""

    def outcome(run: Run) -> tuple[int, float, bytes, bytes, bytes]:
        found = run.result.solution
        return run.result.steps, found.rho, found.coef.tobytes(), found.origin.tobytes(), found.own.data.tobytes()

    return outcome(one) == outcome(other)


def _run(
    training: Dataset, held_out: Dataset | None, config: TrainConfig, label: str, reporter: Reporter, stop: Interrupts
) -> Run | None:
    """One training, recorded; None where it was interrupted."""
    from svmkit.fit import fit

    def progress(seconds: float, now: Progress) -> None:
        reporter.show(
            lambda elapsed: (
                f"{label}: {seconds:.1f} s, {counted(now.steps, 'iteration')}, {now.kernel_evaluations:.3g} evaluations"
            )
        )

    fitted = fit(
        training,
        config,
        interrupted=stop.interrupted,
        on_progress=progress,
        on_mapping=lambda doing: reporter.doing(f"{label}: {doing}"),
        on_trace=lambda row: None,
        holdout=held_out,
    )
    if stop.interrupted():
        return None
    (result,) = fitted.machines
    reporter.note(f"{label}: {_ended(result)}")
    return Run(config.solver, config.seed, str(config.bias), result)


def _ended(result: SolverResult) -> str:
    """One machine's training in a few words."""
    return (
        f"{result.status.value} in {result.seconds:.3g} s, {counted(result.steps, 'iteration')}, "
        f"primal {result.certificate.primal:.8g}"
    )


def _write(outdir: str, runs: Sequence[Run], about: Sequence[str]) -> None:
    from svmkit.io.traces import trace_line

    os.makedirs(outdir, exist_ok=True)
    lines = (
        trace_line(row, solver=run.solver, bias=run.bias, seed=run.seed)
        for run in runs
        if not run.reference
        for row in run.result.trace
    )
    files.write(os.path.join(outdir, CURVES), "".join(lines).encode())
    files.write(os.path.join(outdir, TABLE), document(runs, about).encode("utf-8", "backslashreplace"))


def _draw(outdir: str, runs: Sequence[Run], reporter: Reporter) -> None:
    """The picture, or a note where it cannot be made."""
    path = os.path.join(outdir, PICTURE)
    if pictures.available():
        files.write(path, comparison_picture.picture(runs))
    else:
        reporter.note(f"no {path}: pictures need matplotlib (pip install 'svmkit[plot]')")
