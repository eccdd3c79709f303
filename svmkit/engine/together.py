"""Small machines of one data set, each trained from β = 0 by steps over rows made by need, several in one compiled call.

A machine of a few hundred examples is trained in less time than Python takes to call what that needs. The rows of all of them
are packed once; a machine is a list of rows. Steps and kernel values are bitwise those of by_need.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svmkit._jit import ORDERED, Compiled, compiled
from svmkit.data import Floats, Ints
from svmkit.engine.by_need import LANES, LOOK, make, product_of, spread
from svmkit.engine.columns import PACKED
from svmkit.engine.kernels import Engine
from svmkit.engine.linear import add_row, dot_row
from svmkit.engine.qp import coordinate_steps_over, pair_steps_over
from svmkit.engine.space import aligned, table_columns
from svmkit.problem import LINEAR


class Machines(NamedTuple):
    """Machines one after another: the row and box of each variable, where each machine's begin (k + 1,), steps allowed (k,)."""

    rows: Ints
    lower: Floats
    upper: Floats
    starts: Ints
    budgets: Ints


class Ended(NamedTuple):
    """β, and the kernel matrix times β from values in float64, of each variable; steps, kernel values used and whether the
    steps ended by themselves, of each machine.
    """

    beta: Floats
    product: Floats
    steps: Ints
    evaluations: Ints
    finished: Ints


def train_machines(engine: Engine, machines: Machines, diagonal: Floats, F: Floats, bias: bool, eps: float) -> Ended:
    """Steps from β = 0, where F is given, until the violation by the F that steps keep is below ``eps``.

    ``diagonal`` is K_ii of each variable, ``engine`` as ``by_need.RowsByNeed`` wants it; no machine has more than
    ``by_need.MOST_WHOLE`` variables. With the linear kernel the product is taken by way of w, which loses less to rounding.
    """
    packed, kernel, width = engine.packed, engine.kernel, table_columns("f8")
    sizes = np.diff(machines.starts)
    most = int(sizes.max(initial=0))
    n_tables, lines = -(-most // width), packed.n_features + 1
    ended = Ended(np.zeros(len(F)), np.empty(len(F)), *np.zeros((3, len(sizes)), np.int64))
    (_pair_machines if bias else _coordinate_machines)(
        *(kernel.kind, kernel.coef0, kernel.degree, LANES, packed.indptr, packed.indices, packed.data, packed.half),
        *(*machines, diagonal, F, eps, *ended),
        *(aligned(shape, "f8") for shape in ((n_tables * lines, width), n_tables * width, (most, n_tables * width))),
        *(np.empty(most, np.uint8), np.empty(most), np.empty(most), np.empty(lines)),
    )
    return ended


def _entry(steps: Any, steps_a_row: int, name: str) -> Compiled:
    """Machines by ``steps``; as many rows as the steps before the look over ``steps_a_row`` say that most will be needed."""

    def entry(
        kind: Any, coef0: Any, degree: Any, lanes: Any, indptr: Any, indices: Any, data: Any, half: Any,
        every: Any, lower: Any, upper: Any, starts: Any, budgets: Any, diagonal: Any, F: Any, eps: Any,
        beta: Any, product: Any, used: Any, evaluated: Any, finished: Any,
        W: Any, h: Any, K: Any, made: Any, up: Any, low: Any, w: Any,
    ) -> None:  # fmt: skip
        width, lines = W.shape[1], len(w)
        for machine in range(len(starts) - 1):
            a, b, budget = starts[machine], starts[machine + 1], budgets[machine]
            m = b - a
            n_tables = (m + width - 1) // width
            own, tables, halves = every[a:b], W[: n_tables * lines], h[: n_tables * width]
            values, ready = K[:m], made[:m]
            ready[:] = 0
            spread(indptr, indices, data, half, own, tables, halves)
            source = kind, coef0, degree, lanes, indptr, indices, data, half, own, tables, halves, ready
            box = diagonal[a:b], F[a:b], beta[a:b], lower[a:b], upper[a:b], up[:m], low[:m]
            look = min(m // LOOK, budget)
            n = steps(source, values, *box, eps, look)
            if n == look:
                n_ready = 0
                for i in range(m):
                    n_ready += ready[i]
                if n_ready >= look // steps_a_row:
                    for i in range(m):
                        make(source, values, i)
                n += steps(source, values, *box, eps, budget - look)
            used[machine], finished[machine] = n, n < budget
            for i in range(m):
                evaluated[machine] += m * ready[i]
            if kind == LINEAR:
                w[:] = 0.0
                for i in range(m):
                    if beta[a + i] != 0.0:
                        evaluated[machine] += m
                        add_row(indices, data, indptr[own[i]], indptr[own[i] + 1], beta[a + i], w)
                for i in range(m):
                    product[a + i] = dot_row(indices, data, indptr[own[i]], indptr[own[i] + 1], w)
            else:
                product_of(values, beta[a:b], product[a:b])

    arrays = "i8[:], f8[:], f8[:], i8[:], i8[:], f8[:], f8[:], f8, f8[:], f8[:], i8[:], i8[:], i8[:], "
    work = "f8[:, :], f8[:], f8[:, :], u1[:], f8[:], f8[:], f8[:])"
    rows = "void(i8, f8, i8, i8, " + PACKED.replace("R", "f8")
    return compiled(rows + arrays + work, ORDERED, name=name)(entry)


_pair_machines = _entry(pair_steps_over(make), 1, "pair_machines")
_coordinate_machines = _entry(coordinate_steps_over(make), 2, "coordinate_machines")
