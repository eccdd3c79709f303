"""What svmkit's pictures have in common: curves told apart by line and marker, so that grey print shows them too.

matplotlib is an extra: ``pip install svmkit[plot]``.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Told apart without colour: line, marker and lightness each differ from neighbours.
_LINES = ("-", "--", "-.", ":", (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (12, 3, 2, 3)))
_MARKERS = ("o", "s", "^", "D", "v", "X", "P", "*", "<", ">")
_COLOURS = ("#000000", "#c1440e", "#1f5fa8", "#5b8c2a", "#8a4fa3", "#a87800", "#3c8a8a", "#707070")
_MOST_MARKERS = 12


def available() -> bool:
    """Whether matplotlib can be imported: one that is installed may be broken, as where it was built for another NumPy."""
    from importlib import import_module

    try:
        import_module("matplotlib.figure")
    except ImportError:
        return False
    return True


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


def name_axes(panel: Axes, x: str, y: str) -> None:
    """Puts names to the axes of a panel, and a grid behind its curves."""
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    panel.grid(True, which="major", linewidth=0.4, color="#cccccc")


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
