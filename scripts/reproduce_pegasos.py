"""Figures on convergence, k and T from Rupnik's overview of Pegasos: λ = 1e-4, linear, no bias, w the last iterate.

The overview uses RCV1's CCAT, 804,414 documents; here two smaller sets of documents stand in, reuters-acq and 20news (class 1
against the rest). Distances are (f − f*)/f*, f* a lower bound by sdca with a gap below 1e-8 of it. Beside the last iterate,
which the overview takes, stands the weighted mean, which svmkit returns by default. The k examples of a step are drawn with
replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from bench_data import one_against_rest, public
from reproduce_table import needs_data, show, verdict

from svmkit import solvers
from svmkit.data import Floats
from svmkit.io.libsvm_data import read_dataset
from svmkit.problem import LINEAR, Kernel, Problem
from svmkit.solvers.base import run
from svmkit.trace import Limits

LAMBDA, K = 1e-4, 8000
#: After so many steps the overview is so near the optimum.
CLAIMS = ((200, 0.003), (560, 0.001))
SIZES = (1, 10, 100, 1000, 8000)
DRAWS = (10**5, 10**6, 10**7)

SETS: dict[str, Callable[[], Path]] = {
    "reuters-acq": lambda: public("reuters-acq"),
    "20news": lambda: one_against_rest("20news"),
}


@dataclass(frozen=True)
class Task:
    """A problem, and a lower bound of its optimum."""

    name: str
    problem: Problem
    best: float


def task_of(name: str, most: int | None) -> Task:
    """The first ``most`` rows at C = 1/(λn)."""
    data = read_dataset(str(SETS[name]()))
    data = data.take(np.arange(min(data.n, most or data.n)))
    problem = Problem(data.rows, data.y, np.full(data.n, 1.0 / (LAMBDA * data.n)), Kernel(LINEAR), "none")
    sdca = solvers.solver("sdca")
    found = run(sdca, problem, sdca.Options(), eps=1e-9).certificate
    if not found.gap <= 1e-8 * found.dual:
        raise RuntimeError(f"{name}: sdca left a gap of {found.gap:g}")
    return Task(name, problem, found.dual)


def distances(task: Task, k: int, steps: int, seeds: int, **options: Any) -> Floats:
    """(f − f*)/f* after so many steps of k examples, for each seed."""
    pegasos = solvers.solver("pegasos")
    asked = pegasos.Options(batch=k, epochs=1e9, **options)
    runs = [
        run(pegasos, task.problem, asked, eps=1e-300, seed=seed, limits=Limits(max_iter=steps)) for seed in range(seeds)
    ]  # fmt: skip
    return np.array([result.certificate.primal / task.best - 1.0 for result in runs])


# --- convergence ----------------------------------------------------------------------------------------------------------

CONVERGENCE_COLUMNS = ("set", "examples", "f*", "k", "T", "result", "claim %", "ours %, mean", "largest", "verdict")


def convergence_rows(task: Task, seeds: int) -> Iterator[Sequence[str]]:
    for steps, claim in CLAIMS:
        for average, name in (("none", "last iterate"), ("step", "weighted mean")):
            found = distances(task, K, steps, seeds, average=average)
            figures = (f"{100 * claim:g}", f"{100 * found.mean():.3f}", f"{100 * found.max():.3f}")
            head = (task.name, f"{task.problem.n}", f"{task.best * LAMBDA:.6f}", f"{K}")
            yield *head, f"{steps}", name, *figures, verdict(bool(found.mean() <= claim))


# --- k and T --------------------------------------------------------------------------------------------------------------

SIZE_COLUMNS = (
    *("set", "kT", *(f"k = {k}" for k in SIZES), "k = 1, t held"),
    *("k = 1 is behind larger k", "holding t helps k = 1", "larger kT is ahead at every k"),
)


def size_rows(task: Task, seeds: int, draws: Sequence[int]) -> Iterator[Sequence[str]]:
    """A row for each kT: the mean distance in percent by k, and what the overview says of it."""
    before: Floats | None = None
    for total in draws:
        found = np.array([distances(task, k, total // k, seeds, average="none").mean() for k in SIZES])
        held = float(distances(task, 1, total, seeds, average="none", hold_step=True).mean())
        behind, helps = verdict(bool(found[0] > found[1:].min())), verdict(bool(held < found[0]))
        nearer = "" if before is None else verdict(bool((found < before).all()))
        percent = [f"{100 * value:.3f}" for value in (*found, held)]
        yield task.name, f"{total:.0e}", *percent, behind, helps, nearer
        before = found


@click.command("pegasos", help="The Pegasos overview's figures on convergence, k and T (linear, λ = 1e-4).")
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Runs of each.")
@click.option("--set", "names", multiple=True, type=click.Choice(list(SETS)), help="Only these. Repeatable.")
@click.option("--quick", is_flag=True, help="The first 2000 rows, and kT up to 1e5, only.")
@needs_data
def command(seeds: int, names: tuple[str, ...], quick: bool) -> None:
    tasks = [task_of(name, 2000 if quick else None) for name in names or SETS]
    click.echo("Distance to the optimum after T steps\n")
    show(CONVERGENCE_COLUMNS, (cells for task in tasks for cells in convergence_rows(task, seeds)))
    click.echo("\nDistance to the optimum in percent, kT fixed\n")
    draws = DRAWS[:1] if quick else DRAWS
    show(SIZE_COLUMNS, (cells for task in tasks for cells in size_rows(task, seeds, draws)))
