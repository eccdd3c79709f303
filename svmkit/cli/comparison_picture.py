"""The curves of a comparison of solvers as one picture of four panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from svmkit.cli import pictures
from svmkit.cli.comparison import Curve, Run, curve, groups, optima

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Down: what is measured; across: against what.
_ROWS = (("holdout_error", "held-out error (%)", 100.0), ("above", "relative suboptimality", 1.0))
_COLUMNS = (("kernel_evaluations", "kernel evaluations"), ("seconds", "seconds of training"))
#: What lies higher is drawn so high: margins and ticks of a logarithmic axis that ended near the largest double would overflow.
_HIGHEST = 1e100


def picture(runs: Sequence[Run]) -> bytes:
    """PNG: held-out error and relative suboptimality, each against kernel evaluations and against seconds.

    A line is the median over the seeds, the band around it the least and the largest. Panels without a number say so.
    """
    best = optima(runs)
    solvers = groups(run for run in runs if not run.reference)
    forms = {group[0].bias for group in solvers}
    figure = pictures.new_figure(9.0, 7.0)
    panels = figure.subplots(2, 2, sharex="col", sharey="row", squeeze=False)
    for (y, y_label, scale), row in zip(_ROWS, panels, strict=True):
        for (x, x_label), panel in zip(_COLUMNS, row, strict=True):
            drawn = [
                _draw(panel, number, _label(group[0], forms), curve(group, x, y, best[group[0].bias]), scale, len(group) > 1)
                for number, group in enumerate(solvers)
            ]
            pictures.name_axes(panel, x_label, y_label)
            panel.tick_params(labelbottom=True, labelleft=True)
            if not any(drawn):
                panel.text(0.5, 0.5, "not known", ha="center", va="center", transform=panel.transAxes)
                continue
            panel.set_xscale("log")
            if y == "above" and any((line.get_ydata() > 0).any() for line in panel.get_lines()):
                panel.set_yscale("log", nonpositive="mask")
    handles, labels = max((panel.get_legend_handles_labels() for panel in panels.flat), key=lambda found: len(found[0]))
    if handles:
        figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)), frameon=False)
    return pictures.png(figure)


def _label(run: Run, forms: set[str]) -> str:
    """The solver, and its bias where others have another."""
    return run.solver if len(forms) == 1 else f"{run.solver}, {'free' if run.bias == 'free' else 'no'} bias"


def _draw(panel: Axes, number: int, label: str, found: Curve, scale: float, band: bool) -> bool:
    """One solver's curve in the style of its number; whether there was one."""
    if len(found.x) == 0:
        return False
    look = pictures.style(number, len(found.x))
    low, middle, high = ((scale * values).clip(max=_HIGHEST) for values in (found.low, found.middle, found.high))
    panel.plot(found.x, middle, label=label, **look)
    if band:
        panel.fill_between(found.x, low, high, color=look["color"], alpha=0.15, linewidth=0)
    return True
