"""Where newton.py begins on all rows at once: where dual coordinate ascent, without a bias, comes in a few visits to each."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from svmkit import parallel
from svmkit.data import Floats
from svmkit.engine import linear
from svmkit.problem import LINEAR, Kernel, Problem
from svmkit.solvers.newton_samples import Part
from svmkit.solvers.sdca_linear import LinearForm

#: Visits to a row, and the relative gap above which ascent is then too slow to be of use.
_VISITS = ((2, 0.5), (8, 0.02))
#: Values of the rows visited between looks at whether time is up.
_VALUES = 1 << 26
#: The C_i ‖x_i‖² it can take.
_MOST_SQUARE = 1e12


class Near(NamedTuple):
    """w (d + 1,), place 0 unused, of α (n,), and ⟨w, x_i⟩ (n,)."""

    w: Floats
    products: Floats
    alpha: Floats


@np.errstate(over="ignore", invalid="ignore")  # of features around 1e8 and more; what comes of it is too slow
def near_optimum(part: Part, d: int, eps: float, seed: int) -> tuple[Near | None, int]:
    """The point near the optimum, None where ascent does not get there soon; and the products ⟨w, x_i⟩ it took.

    Where time is up meanwhile, what the visits so far have led to.
    """
    rows, y, upper = part.rows, part.y, part.upper
    if not (upper * rows.sqnorms()).max(initial=0.0) <= _MOST_SQUARE:
        return None, 0
    form = LinearForm(Problem(rows, y, upper, Kernel(LINEAR), "none"), True, eps, seed)
    evaluations, near, some = 0, None, max(1, _VALUES // max(d, 1))
    for visits, most in _VISITS:
        left = visits * rows.n
        while left > 0 and not (form.done or form.stalled or parallel.is_over()):
            left -= form.visit(min(left, some), inf)
        w, products = form.w, linear.dots(rows, form.w)
        evaluations += (visits + 1) * rows.n - left
        dual = float(form.alpha.sum()) - 0.5 * float(w @ w)
        primal = 0.5 * float(w @ w) + float(upper @ np.maximum(0.0, 1.0 - y * products))
        if not primal - dual <= most * primal:
            return None, evaluations
        near = Near(w, products, form.alpha)
    return near, evaluations
