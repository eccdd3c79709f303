"""Figure 2 of Cotter, Shalev-Shwartz & Srebro's paper on the stochastic batch perceptron, and its claim on running time.

Figure 2 is without a bias: the error on test data against kernel evaluations, of sbp, Pegasos, SDCA and the perceptron. The
paper's parameters are C and γ of the LASVM paper here. An epoch is n² kernel values, n for each of n steps. The paper counts a
row of kernel values whenever it is used; so does the line "sbp", while "sbp, rows kept" counts what svmkit's sbp, which keeps
rows, has evaluated. Pegasos comes in both its cost models. Errors are means over seeds; a run that has ended keeps its error.

The claim on time is with a bias: in a quarter of LIBSVM's time sbp has about LIBSVM's error. All get 1000 MB of cache. Seconds
of svm-train are those of its process, user and system, which a busy machine does not lengthen; sbp gets a quarter of them by
the clock, without reading. How many kernel values svm-train evaluates was counted in a copy with a counter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import click
import numpy as np
from bench_data import mnist, public
from reproduce_table import Split, by_libsvm, error_on, needs_data, show, verdict

from svmkit import solvers
from svmkit.data import Floats
from svmkit.io.libsvm_data import read_dataset
from svmkit.problem import RBF, Bias, Kernel, Problem
from svmkit.solvers.base import run
from svmkit.trace import Limits, Progress

#: Where curves are compared, in epochs.
MARKS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)
#: Errors this near are the same, as a share: where sbp may lie above another; where the perceptron ties with sbp.
SAME, TIE = 0.0015, 0.005
CACHE_MB = 1000.0


@dataclass(frozen=True)
class Case:
    """A set: its files, C and γ, and how many kernel values svm-train evaluates on it (None: it has no part in the timing)."""

    name: str
    train: Callable[[], Path]
    test: Callable[[], Path]
    C: float
    gamma: float
    evaluations: float | None = None


CASES = (
    Case("adult", lambda: public("a9a"), lambda: public("a9a.t"), 100.0, 0.005, 468e6),
    Case("money-fx", lambda: public("money-fx"), lambda: public("money-fx.t"), 1.0, 1.0),
    Case("mnist8", lambda: mnist("mnist", one="8"), lambda: mnist("mnist.t", one="8"), 1000.0, 0.005, 189e6),
)


def split_of(case: Case, most: int | None) -> Split:
    """At most ``most`` rows of either part, the first ones."""
    parts = [read_dataset(str(file)) for file in (case.train(), case.test())]
    parts = [part.take(np.arange(min(part.n, most or part.n))) for part in parts]
    return Split(parts[0].rows, parts[0].y, parts[1].rows, parts[1].y)


def problem_of(case: Case, split: Split, bias: Bias) -> Problem:
    return Problem(split.rows, split.y, np.full(len(split.y), case.C), Kernel(RBF, case.gamma), bias)


# --- Figure 2 -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A curve: a solver, its options, and what a run has cost after so much progress on n examples."""

    name: str
    solver: str
    options: dict[str, Any]
    cost: Callable[[Progress, int], float] = lambda progress, n: progress.kernel_evaluations


METHODS = (
    Method("sbp", "sbp", {"batch": 1, "epochs": 2, "cache_mb": CACHE_MB}, lambda progress, n: float(progress.steps) * n),
    Method("sbp, rows kept", "sbp", {"batch": 1, "epochs": 20, "cache_mb": CACHE_MB}),
    Method("pegasos", "pegasos", {"epochs": 1000.0}),
    Method("pegasos, sums on demand", "pegasos", {"epochs": 1000.0, "responses": "demand"}),
    Method("sdca", "sdca", {"momentum": False}),
    Method("perceptron", "perceptron", {"average": False, "epochs": 1000}),
    Method("perceptron, averaged", "perceptron", {"epochs": 1000}),
)


def curve(method: Method, case: Case, split: Split, seed: int) -> list[float]:
    """The error on the test part at each mark, passed by 2 % at most."""
    click.echo(f"{case.name}: {method.name}, seed {seed}", err=True)
    problem, solver = problem_of(case, split, "none"), solvers.solver(method.solver)
    state = solver.start(problem, solver.Options(**method.options), 1e-3, seed)
    progress = Progress(0, 0)
    errors: list[float] = []
    for mark in MARKS:
        before = progress
        while method.cost(progress, problem.n) < mark * problem.n**2 and not progress.ended:
            progress = solver.advance(state, 1 + progress.steps // 50)
        if progress == before and errors:
            errors.append(errors[-1])
        else:
            errors.append(error_on(split.test_rows, split.test_y, problem.kernel, solver.solution(state), split.rows))
    return errors


def curves(case: Case, split: Split, seeds: int) -> dict[str, Floats]:
    """Means over seeds (marks,), by method."""
    return {
        method.name: np.mean([curve(method, case, split, seed) for seed in range(seeds)], axis=0)
        for method in METHODS
    }  # fmt: skip


CURVE_COLUMNS = ("set", "C", "γ", "method or claim", *(f"{mark:g} epochs" for mark in MARKS), "verdict")


def curve_rows(case: Case, found: dict[str, Floats]) -> Iterator[Sequence[str]]:
    """The errors of each method in percent, then what the paper says of them; at a mark, the difference in points."""
    head = (case.name, f"{case.C:g}", f"{case.gamma:g}")
    for name, errors in found.items():
        yield *head, name, *(f"{100 * e:.2f}" for e in errors), ""
    for rival in [name for name in found if not name.startswith("sbp") and name != "perceptron, averaged"]:
        ahead = found["sbp"] - found[rival]
        points = [f"{100 * d:+.2f}" for d in ahead]
        if rival == "perceptron":
            tied = bool((np.abs(ahead[np.array(MARKS) <= 1]) <= TIE).all())
            yield *head, f"sbp and {rival} within {100 * TIE:g} points through 1 epoch", *points, verdict(tied)
            yield *head, f"sbp below {rival} after 2 epochs", *points, verdict(bool(ahead[-1] < 0))
        else:
            yield *head, f"sbp below {rival} in the mean, never above by {100 * SAME:g}", *points, verdict(below(found, rival))


def below(found: dict[str, Floats], rival: str) -> bool:
    """Whether sbp's error is lower than ``rival``'s in the mean of the marks, and at none of them higher by SAME."""
    ahead = found["sbp"] - found[rival]
    return bool(ahead.mean() < 0 and ahead.max() < SAME)


# --- a quarter of the time ------------------------------------------------------------------------------------------------

TIME_COLUMNS = (
    *("set", "C", "γ", "run", "allowed", "seconds", "kernel evaluations", "steps", "test error %"),
    *("above LIBSVM, points", f"at most {100 * SAME:g}"),
)


@dataclass(frozen=True)
class Outcome:
    """What a run took and reached."""

    seconds: float
    evaluations: float
    steps: int
    error: float


def by_us(name: str, case: Case, split: Split, limits: Limits) -> Outcome:
    problem, solver = problem_of(case, split, "free"), solvers.solver(name)
    options = solver.Options(epochs=10**6, cache_mb=CACHE_MB) if name == "sbp" else solver.Options()
    result = run(solver, problem, options, eps=1e-3, limits=limits)
    error = error_on(split.test_rows, split.test_y, problem.kernel, result.solution, split.rows)
    return Outcome(result.seconds, result.kernel_evaluations, result.steps, error)


def time_rows(case: Case, split: Split, most: int | None) -> Iterator[Sequence[str]]:
    head = (case.name, f"{case.C:g}", f"{case.gamma:g}")
    found, exact = by_libsvm(split, case.C, case.gamma, CACHE_MB), by_us("smo", case, split, Limits())
    evaluations = case.evaluations if most is None and case.evaluations else inf
    peer = None if found is None else Outcome(found.seconds, evaluations, 0, found.error)
    goal = (peer or exact).error

    def row(name: str, allowed: str, found: Outcome, judged: bool = True) -> Sequence[str]:
        above = found.error - goal
        evaluations = f"{found.evaluations:.3g}" if found.evaluations < inf else ""
        figures = (f"{found.seconds:.2f}", evaluations, f"{found.steps or ''}", f"{100 * found.error:.2f}")
        return *head, name, allowed, *figures, f"{100 * above:+.2f}", verdict(above <= SAME) if judged else ""

    def sbp(allowed: str, limits: Limits) -> Sequence[str]:
        return row("sbp", allowed, by_us("sbp", case, split, limits))

    if peer is None:
        yield *head, "svm-train", "", "not installed", *[""] * 5
    else:
        yield row("svm-train", "", peer, judged=False)
    yield row("smo", "", exact, judged=False)
    if peer is not None:
        yield sbp("1/4 of svm-train's seconds", Limits(time_limit_s=peer.seconds / 4))
    if case.evaluations and most is None:
        yield sbp("1/4 of svm-train's kernel evaluations", Limits(max_evaluations=int(case.evaluations / 4)))
    yield sbp("1/4 of smo's seconds", Limits(time_limit_s=exact.seconds / 4))


# --- the command ----------------------------------------------------------------------------------------------------------


def report_curves(cases: Sequence[Case], splits: dict[str, Split], seeds: int) -> None:
    won = []

    def rows() -> Iterator[Sequence[str]]:
        for case in cases:
            found = curves(case, splits[case.name], seeds)
            yield from curve_rows(case, found)
            won.append(below(found, "pegasos") and below(found, "sdca"))

    click.echo("Error on test data in percent at equal kernel evaluations, without a bias\n")
    show(CURVE_COLUMNS, rows())
    claim = f"sbp below pegasos and sdca through 2 epochs: on {sum(won)} of {len(won)} sets, on 2 of 3 asked"
    click.echo(f"\n{claim}: {verdict(3 * sum(won) >= 2 * len(won))}\n")


def report_times(cases: Sequence[Case], splits: dict[str, Split], most: int | None) -> None:
    timed = [case for case in cases if case.evaluations is not None]
    click.echo("A quarter of the time, with a bias\n")
    show(TIME_COLUMNS, (cells for case in timed for cells in time_rows(case, splits[case.name], most)))


@click.command("sbp", help="Figure 2 of the SBP paper (error against kernel evaluations), and its claim on running time.")
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of each method in Figure 2.")
@click.option("--set", "names", multiple=True, type=click.Choice([case.name for case in CASES]), help="Only these. Repeatable.")
@click.option("--part", type=click.Choice(["curves", "time", "both"]), default="both", show_default=True, help="What to run.")
@click.option("--quick", is_flag=True, help="The first 3000 rows of each part only.")
@needs_data
def command(seeds: int, names: tuple[str, ...], part: str, quick: bool) -> None:
    cases, most = [case for case in CASES if not names or case.name in names], 3000 if quick else None
    splits = {case.name: split_of(case, most) for case in cases}
    if part != "time":
        report_curves(cases, splits, seeds)
    if part != "curves":
        report_times(cases, splits, most)
