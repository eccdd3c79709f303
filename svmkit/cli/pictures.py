"""The curves of a comparison as one picture of four panels, told apart by line and marker, so that grey print shows them too;
and what any picture of svmkit's has: its style, its panels, its bytes.

matplotlib is an extra: ``pip install svmkit[plot]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from svmkit.cli.comparison import Curve, Run, curve, groups, optima

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Down: what is measured; across: against what.
_ROWS = (("holdout_error", "held-out error (%)", 100.0), ("above", "relative suboptimality", 1.0))
_COLUMNS = (("kernel_evaluations", "kernel evaluations"), ("seconds", "seconds of training"))

#: Told apart without colour: line, marker and lightness each differ from neighbours.
_LINES = ("-", "--", "-.", ":", (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (12, 3, 2, 3)))
_MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*", "<", ">")
_COLOURS = ("#000000", "#c1440e", "#1f5fa8", "#5b8c2a", "#8a4fa3", "#a87800", "#3c8a8a", "#707070")
_MOST_MARKERS = 12


def available() -> bool:
    """Whether matplotlib can be imported."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def new_figure(width: float, height: float) -> Any:
    """An empty figure of so many inches, drawn without a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png(figure: Any) -> bytes:
    """The figure as a file, which does not name matplotlib's version."""
    import numpy as np

    out = BytesIO()
    with np.errstate(over="ignore"):  # ticks of an axis that ends near that of doubles
        figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def picture(runs: Sequence[Run]) -> bytes:
    """PNG: held-out error and relative suboptimality, each against kernel evaluations and against seconds.

    A line is the median over the seeds, the band around it the least and the largest. Panels without a number say so.
    """
    best = optima(runs)
    solvers = groups(run for run in runs if not run.reference)
    forms = {group[0].bias for group in solvers}
    figure = new_figure(9.0, 7.0)
    panels = figure.subplots(2, 2, sharex="col", sharey="row", squeeze=False)
    for (y, y_label, scale), row in zip(_ROWS, panels, strict=True):
        for (x, x_label), panel in zip(_COLUMNS, row, strict=True):
            drawn = [
                _draw(panel, number, _label(group[0], forms), curve(group, x, y, best[group[0].bias]), scale, len(group) > 1)
                for number, group in enumerate(solvers)
            ]
            panel.set_xlabel(x_label)
            panel.set_ylabel(y_label)
            panel.grid(True, which="major", linewidth=0.4, color="#cccccc")
            panel.tick_params(labelbottom=True, labelleft=True)
            if not any(drawn):
                panel.text(0.5, 0.5, "not known", ha="center", va="center", transform=panel.transAxes)
                continue
            panel.set_xscale("log")
            if y == "above":
                panel.set_yscale("log", nonpositive="mask")
    handles, labels = max((panel.get_legend_handles_labels() for panel in panels.flat), key=lambda found: len(found[0]))
    if handles:
        figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)), frameon=False)
    return png(figure)


def _label(run: Run, forms: set[str]) -> str:
    """The solver, and its bias where others have another."""
    return run.solver if len(forms) == 1 else f"{run.solver}, {'free' if run.bias == 'free' else 'no'} bias"


def style(number: int, n_points: int) -> dict[str, Any]:
    """How curve ``number`` is drawn: line, marker and shade that no neighbour has."""
    colour = _COLOURS[number % len(_COLOURS)]
    return {
        "color": colour,
        "linestyle": _LINES[number % len(_LINES)],
        "linewidth": 1.4,
        "marker": _MARKERS[number % len(_MARKERS)],
        "markersize": 4.5,
        "markevery": -(-n_points // _MOST_MARKERS),
        "markerfacecolor": "white" if number % 2 else colour,
    }


def _draw(panel: Axes, number: int, label: str, found: Curve, scale: float, band: bool) -> bool:
    """One solver's curve in the style of its number; whether there was one."""
    if len(found.x) == 0:
        return False
    look = style(number, len(found.x))
    panel.plot(found.x, scale * found.middle, label=label, **look)
    if band:
        panel.fill_between(found.x, scale * found.low, scale * found.high, color=look["color"], alpha=0.15, linewidth=0)
    return True
