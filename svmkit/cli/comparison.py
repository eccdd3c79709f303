"""What a comparison of solvers comes to: its table in Markdown, and the curves that its picture draws.

Solvers that train with a bias and those that train without minimise different objectives, so each run is measured against the
optimum of its own form: the largest dual objective that any run of that form reached, a lower bound whoever found it. What is
said to lie above the optimum is at most so far above it.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from svmkit.cli.streams import shown

if TYPE_CHECKING:
    from svmkit.data import Floats
    from svmkit.solvers.base import SolverResult
    from svmkit.trace import TraceRow

HEADER = (
    *("solver", "bias", "status", "seconds", "kernel evaluations", "primal", "above optimum", "gap"),
    *("held-out error", "support vectors"),
)

LEGEND = """
- seconds: training alone, without reading, recording and certifying
- kernel evaluations: kernel values that the algorithm uses
- above optimum: primal / (largest dual objective known) - 1
- gap: primal - dual, which bounds the distance from the optimum without trust in any solver
"""


@dataclass(frozen=True)
class Run:
    """One training: a solver, its seed, and the bias of the problem it solved; a ``reference`` run only gives an optimum."""

    solver: str
    seed: int
    bias: str
    result: SolverResult
    reference: bool = False

    @property
    def name(self) -> str:
        """What the table calls it."""
        return f"{self.solver} (reference)" if self.reference else self.solver


class Optimum(NamedTuple):
    """The largest dual objective known of one form of the problem, and the solver that reached it."""

    dual: float
    solver: str

    def above(self, primal: float) -> float:
        """How far ``primal`` lies above it, relative to it; nan where that means nothing."""
        return primal / self.dual - 1.0 if self.dual > 0 else math.nan


def optima(runs: Iterable[Run]) -> dict[str, Optimum]:
    """The optimum of each bias in ``runs``; a form in which some run has no gap (the kernel is not definite) has none."""
    best: dict[str, Optimum] = {}
    for run in runs:
        found = run.result.certificate
        if not math.isfinite(found.gap):
            best[run.bias] = Optimum(math.nan, run.solver)
        elif run.bias not in best or found.dual > best[run.bias].dual:
            best[run.bias] = Optimum(found.dual, run.solver)
    return best


def groups(runs: Iterable[Run]) -> list[list[Run]]:
    """The runs of each solver, all seeds together, in the order of their first."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.name, run.bias), []).append(run)
    return list(found.values())


def table(runs: Sequence[Run]) -> str:
    """One line a solver, in Markdown: medians over its seeds, and the mean of its held-out error ± the standard deviation."""
    best = optima(runs)
    lines = [HEADER, ("---",) * HEADER.index("seconds") + ("---:",) * (len(HEADER) - HEADER.index("seconds"))]
    lines += [_line(group, best[group[0].bias]) for group in groups(runs)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def document(runs: Sequence[Run], about: Sequence[str]) -> str:
    """The table under a heading, with what was compared (``about``) and what the columns mean."""
    known = [
        f"optimum with {'a free' if bias == 'free' else 'no'} bias: at least {best.dual:.10g}, by {best.solver}"
        for bias, best in optima(runs).items()
        if math.isfinite(best.dual)
    ]
    facts = "".join(f"- {shown(line)}\n" for line in [*about, *known])
    return f"# Comparison of solvers\n\n{facts}\n{table(runs)}{LEGEND}"


def _line(group: Sequence[Run], best: Optimum) -> tuple[str, ...]:
    results = [run.result for run in group]
    certificates = [result.certificate for result in results]
    return (
        group[0].name,
        group[0].bias,
        _statuses([result.status.value for result in results]),
        _number(statistics.median(result.seconds for result in results), ".3g"),
        _number(statistics.median(result.kernel_evaluations for result in results), ".4g"),
        _number(statistics.median(found.primal for found in certificates), ".8g"),
        _number(statistics.median(best.above(found.primal) for found in certificates), ".2e"),
        _number(statistics.median(found.gap for found in certificates), ".3g"),
        _percent([result.trace[-1].holdout_error for result in results]),
        _number(statistics.median(result.solution.n_support for result in results), ".0f"),
    )


def _statuses(names: Sequence[str]) -> str:
    counts = Counter(names)
    return names[0] if len(counts) == 1 else ", ".join(f"{count} {name}" for name, count in counts.items())


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "–"


def _percent(errors: Sequence[float]) -> str:
    """Mean and, of several, standard deviation (that of a sample) in percent."""
    if not all(map(math.isfinite, errors)):
        return "–"
    mean = f"{100 * statistics.mean(errors):.2f}"
    return f"{mean} %" if len(errors) == 1 else f"{mean} ± {100 * statistics.stdev(errors):.2f} %"


class Curve(NamedTuple):
    """A quantity over seeds: where it is known from all of them, its least, median and largest value there; all (k,)."""

    x: Floats
    low: Floats
    middle: Floats
    high: Floats


def curve(group: Sequence[Run], x: str, y: str, best: Optimum) -> Curve:
    """``y`` against ``x``, fields of ``TraceRow`` or "above" (the optimum), over the runs of one solver.

    Between its own points a run keeps the value of the last one. Points that are not finite are left out.
    """
    import numpy as np

    seen = [_points(run.result.trace, x, y, best) for run in group]
    seen = [(at, values) for at, values in seen if len(at)]
    if not seen:
        return Curve(*[np.empty(0)] * 4)
    first = max(at[0] for at, _ in seen)
    where = np.unique(np.concatenate([at for at, _ in seen]))
    where = where[where >= first]
    values = np.array([known[np.searchsorted(at, where, side="right") - 1] for at, known in seen])
    return Curve(where, values.min(axis=0), np.median(values, axis=0), values.max(axis=0))


def _points(rows: Sequence[TraceRow], x: str, y: str, best: Optimum) -> tuple[Floats, Floats]:
    import numpy as np

    at = np.array([getattr(row, x) for row in rows], dtype=np.float64)
    values = np.array([best.above(row.primal) if y == "above" else getattr(row, y) for row in rows], dtype=np.float64)
    good = np.isfinite(at) & np.isfinite(values) & (at > 0)
    return at[good], values[good]
