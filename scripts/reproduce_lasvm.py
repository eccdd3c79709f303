"""Figures 1, 4, 8, 9 and 11 to 15 of Bordes, Ertekin, Weston & Bottou's paper on LASVM.

Parameters are those of the paper's Figure 7, but γ = 0.0078 on USPS, whose features here lie in [−1, 1]. Sets without a test
file are cut by one fixed permutation. Figures are means over orders of the examples; "exact" is svmkit's smo to 1e-3. An error
counts as the exact one's where it lies above it by at most 0.25 points or two standard errors of the mean. Kernel evaluations
are held against those of the authors' program, counted on the same files (5 % allowed). The paper's pass, in which no member
stays that cannot violate, stands beside. Seconds are of the processor, which a busy machine lengthens less; they leave out
reading. Selection is judged as the paper does it: at each mark the state is set aside, finished, measured, and taken up again;
two standard errors are there those of an error on so many test rows.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from bench_data import public
from reproduce_table import Split, by_libsvm, error_on, needs_data, show, verdict

from svmkit import solvers
from svmkit.cli import pictures
from svmkit.data import Floats, Rows
from svmkit.engine.kernels import cross_apply
from svmkit.engine.rng import permutation
from svmkit.io.libsvm_data import read_dataset
from svmkit.problem import RBF, Kernel, Problem, Solution
from svmkit.solvers import lasvm
from svmkit.solvers.base import run

CACHE_MB = 1000.0
#: How far an error may lie above the exact one's, in points; kernel evaluations above the authors', as a share.
POINTS, EVALUATIONS = 0.25, 1.05
#: The share of the exact solution's support vectors within which active selection reaches its error.
FEW = 0.3
#: The stream of random numbers that turns labels: one that no order of the examples is drawn from.
_LABELS = 1 << 40


@dataclass(frozen=True)
class Paper:
    """The paper's row of Figure 8: error in %, support vectors and kernel evaluations in millions, LIBSVM's and LASVM×1's."""

    exact: tuple[float, int, float]
    once: tuple[float, int, float]


@dataclass(frozen=True)
class Case:
    """A set: its files, how many rows to train on and test on where there is one file, which labels are +1, C, γ.

    ``authors``: kernel evaluations of the authors' program, in millions. ``noise``: the share of training labels turned.
    """

    name: str
    file: str
    test: str | None
    cut: tuple[int, int]
    positive: Callable[[Floats], Any]
    C: float
    gamma: float
    paper: Paper
    authors: float | None = None
    noise: float = 0.0
    scale: float = 1.0


def positive(y: Floats) -> Any:
    return y > 0


WHOLE = (10**9, 10**9)
CASES = (
    Case("waveform", "waveform", None, (4000, 1000), positive, 1, 0.05, Paper((8.82, 1006, 4.2), (8.68, 948, 2.2)), 2.1),
    Case("banana", "banana", None, (4000, 1300), positive, 316, 0.5, Paper((9.96, 873, 6.8), (9.98, 869, 6.7)), 6.8),
    Case("money-fx", "money-fx", "money-fx.t", WHOLE, positive, 1, 1, Paper((2.76, 1493, 11.8), (2.76, 1504, 9.2)), 9.3),
    Case("usps", "usps", "usps.t", WHOLE, lambda y: y == 1, 1000, 0.0078, Paper((0.41, 236, 1.97), (0.43, 201, 1.08)), 2.3),
    Case("usps+n", "usps", "usps.t", WHOLE, lambda y: y == 1, 10, 0.0078, Paper((0.41, 2750, 63), (0.53, 2572, 20)), None, 0.1),
    Case("adult", "a9a", "a9a.t", WHOLE, positive, 100, 0.005, Paper((14.90, 11327, 1760), (14.94, 11268, 626)), 268),
    Case(
        *("covtype", "covtype.libsvm.binary.scale", None, (100_000, 50_000), lambda y: y == 1, 3, 1),
        paper=Paper((8.03, 43251, 27569), (8.15, 41750, 18939)),
    ),
)
#: The paper's Figure 9: change of error and of support vectors by the finishing, in %.
FINISHING = {
    **{"waveform": (0, 0), "banana": (-79, -74), "money-fx": (0, 0), "usps": (0, -2), "usps+n": (-67, -33)},
    **{"adult": (-13, -19), "covtype": (-1, -24)},
}


@dataclass(frozen=True)
class Task:
    """The problem of the training part, and the rows and labels ±1 that its solutions are tested on."""

    problem: Problem
    test_rows: Rows
    test_y: Floats

    def error(self, found: Solution) -> float:
        """In %."""
        return 100.0 * error_on(self.test_rows, self.test_y, self.problem.kernel, found, self.problem.rows)


def task_of(case: Case, most: int | None) -> Task:
    """At most ``most`` rows of either part."""
    whole = read_dataset(str(public(case.file)))
    n_train, n_test = case.cut
    if case.test is None:
        order = permutation(1, 0, whole.n)
        n_train = min(n_train, 4 * whole.n // 5)
        train, test = whole.take(order[:n_train]), whole.take(order[n_train : n_train + n_test])
    else:
        train, test = whole, read_dataset(str(public(case.test)))
    train, test = (part.take(np.arange(min(part.n, most or part.n))) for part in (train, test))
    y = np.where(case.positive(train.y), 1.0, -1.0)
    turned = permutation(2, _LABELS, train.n)[: int(case.noise * train.n)]
    y[turned] *= -1.0
    rows, test_rows = (part.rows._replace(data=part.rows.data * case.scale) for part in (train, test))
    problem = Problem(rows, y, np.full(train.n, float(case.C)), Kernel(RBF, case.gamma))
    return Task(problem, test_rows, np.where(case.positive(test.y), 1.0, -1.0))


@dataclass(frozen=True)
class Outcome:
    """What a run reached and took; ``seconds`` of the processor."""

    error: float
    supports: float
    evaluations: float
    seconds: float


def outcome(name: str, task: Task, seed: int = 0, **options: Any) -> Outcome:
    solver = solvers.solver(name)
    began = time.process_time()
    result = run(solver, task.problem, solver.Options(**options), eps=1e-3, seed=seed)
    seconds = min(result.seconds, time.process_time() - began)
    return Outcome(task.error(result.solution), result.solution.n_support, result.kernel_evaluations, seconds)


def mean(found: Sequence[Outcome]) -> Outcome:
    rows = [(one.error, one.supports, one.evaluations, one.seconds) for one in found]
    return Outcome(*(float(x) for x in np.mean(rows, axis=0)))


def deviation(found: Sequence[Outcome]) -> float:
    """Standard error of the mean error."""
    return float(np.std([one.error for one in found], ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0


def near(found: Sequence[Outcome], exact: float) -> bool:
    return mean(found).error - exact <= max(POINTS, 2 * deviation(found)) + 1e-9


# --- Figures 8 and 9 ------------------------------------------------------------------------------------------------------

COLUMNS = (
    *("set", "train/test", "C", "γ", "run", "paper: error %", "SV", "M evaluations"),
    *("ours: error %", "SV", "M evaluations", "seconds", "error as exact", "evaluations as the authors'"),
)


def by_svm_train(task: Task, case: Case) -> Outcome | None:
    """svm-train's own run, where it is installed; its kernel evaluations are not known."""
    problem = task.problem
    found = by_libsvm(Split(problem.rows, problem.y, task.test_rows, task.test_y), case.C, case.gamma, CACHE_MB)
    return None if found is None else Outcome(100.0 * found.error, found.n_support, np.nan, found.seconds)


def table_rows(case: Case, task: Task, orders: int, peer: bool) -> Iterator[Sequence[str]]:
    """svm-train, smo, LASVM×1, LASVM before its finishing, and the paper's LASVM×1."""
    head = (case.name, f"{task.problem.n}/{len(task.test_y)}", f"{case.C:g}", f"{case.gamma:g}")

    def row(name: str, paper: tuple[float, int, float] | None, found: Sequence[Outcome], *judged: str) -> Sequence[str]:
        ours = mean(found)
        said = ("", "", "") if paper is None else (f"{paper[0]:.2f}", f"{paper[1]}", f"{paper[2]:g}")
        error = f"{ours.error:.2f}" + (f" ± {deviation(found):.2f}" if len(found) > 1 else "")
        evaluations = "" if np.isnan(ours.evaluations) else f"{ours.evaluations / 1e6:.3g}"
        return *head, name, *said, error, f"{ours.supports:.0f}", evaluations, f"{ours.seconds:.2f}", *judged

    libsvm = by_svm_train(task, case) if peer else None
    exact = outcome("smo", task)

    def over_orders(**options: Any) -> list[Outcome]:
        return [outcome("lasvm", task, seed, cache_mb=CACHE_MB, **options) for seed in range(orders)]

    def few(found: Sequence[Outcome]) -> str:
        return "" if case.authors is None else verdict(mean(found).evaluations <= EVALUATIONS * 1e6 * case.authors)

    once, raw = over_orders(), over_orders(finish=False)
    if libsvm is not None:
        yield row("svm-train", case.paper.exact, [libsvm], "", "")
    yield row("smo", None if libsvm else case.paper.exact, [exact], "", "")
    yield row("lasvm×1", None, once, verdict(near(once, exact.error)), few(once))
    yield row("lasvm×1, not finished", None, raw, "", "")
    yield finishing_row(case, head, mean(raw), mean(once))
    papers = over_orders(keep_within=0.0)
    yield row("lasvm×1, keep_within 0", case.paper.once, papers, verdict(near(papers, exact.error)), few(papers))


def finishing_row(case: Case, head: Sequence[str], before: Outcome, after: Outcome) -> Sequence[str]:
    """Figure 9: what the finishing changes, in % of what was before."""
    said = FINISHING[case.name]
    change = [100.0 * (b / a - 1.0) if a else 0.0 for a, b in ((before.error, after.error), (before.supports, after.supports))]
    longer = f"{100.0 * (after.seconds / before.seconds - 1.0):+.0f} %"
    texts = [f"{x:+.0f} %" for x in (*said, *change)]
    return *head, "change by finishing", texts[0], texts[1], "", texts[2], texts[3], "", longer, "", ""


# --- Figures 11 to 15 -----------------------------------------------------------------------------------------------------

MARKS = (250, 500, 1000, 2000, 3000, 4000, 4500, 5000, 7500)
SELECTION_COLUMNS = (
    *("set", "selection", "exact: error %", "SV", *(f"{mark} examples: error % (SV)" for mark in MARKS)),
    *("within 0.25 points with SV", "within two standard errors with SV", "verdict"),
)
#: Not in the paper's Figure 8.
NO_PAPER = Paper((0.0, 0, 0.0), (0.0, 0, 0.0))
MNIST = Case("mnist8", "mnist", "mnist.t", WHOLE, lambda y: y == 8, 1000, 0.005, NO_PAPER, scale=1 / 255)
SELECTION = {
    "adult": (next(case for case in CASES if case.name == "adult"), ("random", "active", "autoactive")),
    "mnist8": (MNIST, ("random", "gradient", "active")),
    "mnist8+n": (replace(MNIST, name="mnist8+n", noise=0.1), ("random", "gradient", "active")),
}
#: A curve: examples learned, then error in % and support vectors after finishing, (marks, seeds).
Curve = tuple[list[int], Floats, Floats]


def finished(state: lasvm.State) -> Solution:
    """What ends a run that goes no further than ``state``, which stays as it is."""
    aside = copy.deepcopy(state)
    while not lasvm.finish(aside, 1 << 20).ended:
        pass
    return lasvm.solution(aside)


def curve(task: Task, selection: str, seeds: int, marks: Sequence[int]) -> Curve:
    errors, supports = (np.empty((len(marks), seeds)) for _ in range(2))
    for seed in range(seeds):
        state = lasvm.start(task.problem, lasvm.Options(selection=selection, cache_mb=CACHE_MB), 1e-3, seed)
        for k, mark in enumerate(marks):
            while lasvm.progress(state).steps < mark:
                lasvm.advance(state, mark - lasvm.progress(state).steps)
            found = finished(state)
            errors[k, seed], supports[k, seed] = task.error(found), found.n_support
    return list(marks), errors, supports


def standard_error(error: float, n: int) -> float:
    """Of an error of ``error`` % on ``n`` rows drawn at random, in points."""
    return float(np.sqrt(error * (100.0 - error) / n))


def selection_rows(case: Case, exact: Outcome, curves: dict[str, Curve], clean: float, n_test: int) -> Iterator[Sequence[str]]:
    """One row a strategy. Judged: actively, the exact error (``clean`` labels') with at most FEW of its support vectors."""
    allowed = (POINTS, 2.0 * standard_error(clean, n_test))
    for selection, (marks, errors, supports) in curves.items():
        error, supported = np.median(errors, axis=1), np.median(supports, axis=1)
        cells = [f"{e:.2f} ({s:.0f})" for e, s in zip(error, supported, strict=True)] + [""] * (len(MARKS) - len(marks))
        needed = [float(supported[error <= clean + more].min(initial=np.inf)) for more in allowed]
        for least in needed:
            cells.append(f"{least:.0f} ({100 * least / exact.supports:.0f} %)" if np.isfinite(least) else "not reached")
        judged = verdict(min(needed) <= FEW * exact.supports) if "active" in selection and case.name == "adult" else ""
        yield case.name, selection, f"{exact.error:.2f}", f"{exact.supports:.0f}", *cells, judged


def draw(path: str, name: str, exact: Outcome, curves: dict[str, Curve]) -> None:
    """Error against examples learned and against support vectors; needs the plot extra."""
    figure = pictures.new_figure(9.0, 4.0)
    left, right = figure.subplots(1, 2, sharey=True)
    for (selection, (marks, errors, supports)), style in zip(curves.items(), ("o-", "s--", "^:"), strict=False):
        left.plot(marks, np.median(errors, axis=1), style, label=selection, color="black", fillstyle="none")
        right.plot(np.median(supports, axis=1), np.median(errors, axis=1), style, color="black", fillstyle="none")
    for panel, label in ((left, "examples learned"), (right, "support vectors")):
        panel.axhline(exact.error, color="#c1440e", linewidth=1, label="exact")
        panel.set_xlabel(label)
    left.set_ylabel(f"{name}: test error (%)")
    left.legend()
    Path(path).write_bytes(pictures.png(figure))


# --- Figures 1 and 4 ------------------------------------------------------------------------------------------------------

DIGIT_COLUMNS = ("run", *(f"{digit}: error %" for digit in range(10)), "10 classes: error %", "paper", "seconds", "verdict")
DIGIT_RUNS: dict[str, tuple[str, dict[str, Any], float]] = {
    "smo": ("smo", {}, 1.36),
    "lasvm×1": ("lasvm", {"cache_mb": CACHE_MB}, 1.42),
    "lasvm×2": ("lasvm", {"cache_mb": CACHE_MB, "epochs": 2}, 1.36),
}


def digit_rows(most: int | None) -> Iterator[Sequence[str]]:
    """Ten machines, a digit against the rest; the largest decision value wins."""
    digits = read_dataset(str(public("mnist.t"))).y[:most]
    exact = np.nan
    for name, (solver_name, options, said) in DIGIT_RUNS.items():
        values, errors, seconds = np.empty((len(digits), 10)), [], 0.0
        for digit in range(10):
            task = task_of(replace(MNIST, positive=lambda y, digit=digit: y == digit), most)
            solver = solvers.solver(solver_name)
            began = time.process_time()
            found = run(solver, task.problem, solver.Options(**options), eps=1e-3)
            seconds += min(found.seconds, time.process_time() - began)
            basis, weights = found.solution.expansion(task.problem.rows)
            sums = cross_apply(task.test_rows, basis, task.problem.kernel, weights[:, None])[:, 0]
            values[:, digit] = sums - found.solution.rho
            errors.append(100.0 * float(np.mean((values[:, digit] > 0) != (task.test_y > 0))))
        error = 100.0 * float(np.mean(np.argmax(values, axis=1) != digits))
        exact = error if np.isnan(exact) else exact
        cells = [f"{x:.2f}" for x in errors]
        yield name, *cells, f"{error:.2f}", f"{said:.2f}", f"{seconds:.0f}", verdict(error <= exact + POINTS)


# --- the command ----------------------------------------------------------------------------------------------------------


def report_table(cases: Sequence[Case], orders: int, peer: bool, most: int | None) -> None:
    click.echo("Figures 8 and 9: one pass and its finishing\n")
    show(COLUMNS, (cells for case in cases for cells in table_rows(case, task_of(case, most), orders, peer)))
    click.echo()


def report_selection(names: Sequence[str], seeds: int, plot: str | None, most: int | None) -> None:
    def rows() -> Iterator[Sequence[str]]:
        for name in names:
            case, selections = SELECTION[name]
            task = task_of(case, most)
            exact = outcome("smo", task)
            clean = outcome("smo", task_of(replace(case, noise=0.0), most)) if case.noise else exact
            marks = [mark for mark in MARKS if mark <= task.problem.n]
            curves = {selection: curve(task, selection, seeds, marks) for selection in selections}
            yield from selection_rows(case, exact, curves, clean.error, len(task.test_y))
            if plot is not None:
                draw(f"{plot}-{name}.png", name, exact, curves)

    click.echo("Figures 11 to 15: the choice of examples; medians over seeds\n")
    show(SELECTION_COLUMNS, rows())
    click.echo()


@click.command("lasvm", help="Figures 1, 4, 8, 9 and 11 to 15 of the LASVM paper.")
@click.option("--part", multiple=True, type=click.Choice(["table", "selection", "digits"]), help="Only these. Repeatable.")
@click.option(
    "--set", "names", multiple=True, type=click.Choice([*(c.name for c in CASES), *SELECTION]), help="Only these sets."
)
@click.option("--orders", type=click.IntRange(min=1), default=10, show_default=True, help="Orders of the examples in Figure 8.")
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Runs of each selection.")
@click.option("--peer/--no-peer", default=True, show_default=True, help="Also runs svm-train, where it is installed.")
@click.option("--plot", metavar="STEM", help="Writes STEM-SET.png for each selection (needs the plot extra).")
@click.option("--quick", is_flag=True, help="The first 2000 rows of each part only.")
@needs_data
def command(
    part: tuple[str, ...], names: tuple[str, ...], orders: int, seeds: int, peer: bool, plot: str | None, quick: bool
) -> None:
    most = 2000 if quick else None
    if not part or "table" in part:
        report_table([case for case in CASES if not names or case.name in names], orders, peer, most)
    selected = [name for name in SELECTION if not names or name in names]
    if selected and (not part or "selection" in part):
        report_selection(selected, seeds, plot, most)
    if "digits" in part or not (part or names):
        click.echo("Figures 1 and 4: MNIST, a digit against the rest\n")
        show(DIGIT_COLUMNS, digit_rows(most))
