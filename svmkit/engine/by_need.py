"""Steps over a kernel matrix whose rows are made when a step first needs them.

Where classes lie far apart few variables ever move, and most rows of a small problem's kernel matrix are never looked at. So
its columns stand in tables as in table.py, all at once, and a row is made by the same loop, in float64, by the step that first
needs it; it is kept from then on. Where many rows turn out to be needed, the others are made all at once, on all threads; or,
where they are too many for that to pay, the caller had better go on with blocks in float32. What is counted are rows that steps
have needed, whenever they were made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit._jit import ORDERED, Compiled, both_precisions, compiled, helper
from svmkit.data import Floats, Rows
from svmkit.engine.columns import PACKED, scatter
from svmkit.engine.kernels import Engine
from svmkit.engine.layouts import Layout, layout_of
from svmkit.engine.packed import training_precision
from svmkit.engine.qp import coordinate_steps_over, pair_steps_over
from svmkit.engine.space import aligned, lanes, table_columns
from svmkit.engine.table import block_4, block_8
from svmkit.problem import PRECOMPUTED, Kernel

#: How the engine is to pack the rows; columns to a register.
LAYOUT, LANES = Layout("table"), lanes("f8")

#: Rows of such a problem at most; bytes that the tables may take, which should not leave the caches; and bytes of them that a
#: row may read: one that reads more takes so long that blocks, which make many rows of what they read, are done sooner.
MOST_ROWS, MOST_BYTES, MOST_READ = 2048, 1 << 22, 1 << 18
#: After a step for every so many rows, if as many rows are made (half as many by single coordinates), most will be.
_LOOK = 4
#: Rows of a matrix that is made whole then, at most; or more, where blocks would be in float64 too.
MOST_WHOLE = 1024
#: A row that no step has needed may be made all the same.
NOT_MADE, NEEDED, MADE_AHEAD = 0, 1, 2
#: Flags of sums that may be infinite, or nan, and then have to come out so.
_OVERFLOWS = {"contract"}


class RowsByNeed:
    """K (m, m or more) among all rows of an engine, in float64, of which the rows that steps have needed hold values."""

    def __init__(self, engine: Engine) -> None:
        """For an engine in float64 with ``LAYOUT``, of rows that ``suits`` has named fit and that are not ``far``."""
        packed, width = engine.packed, table_columns("f8")
        m, n_tables = packed.n, -(-packed.n // width)
        self.K = aligned((m, n_tables * width), "f8")
        self.diagonal = engine.diagonal()
        self._engine = engine
        self.given_up = False
        self._made = np.full(m, NOT_MADE, np.uint8)
        self._steps = 0
        self._every = np.arange(m)
        self._tables = aligned((n_tables * (packed.n_features + 1), width), "f8")
        self._half = aligned(n_tables * width, "f8")
        self._work = np.empty((2, m))
        self._packed = packed.indptr, packed.indices, packed.data, packed.half
        _spread(*self._packed, self._every, self._tables, self._half)

    def steps(self, bias: bool, F: Floats, beta: Floats, lower: Floats, upper: Floats, eps: float, budget: int) -> int:
        """``qp.pair_steps``, without ``bias`` ``qp.coordinate_steps``, over all rows; fewer where it has ``given_up``."""
        used, look = 0, len(F) // _LOOK
        while used < budget:
            if self._steps == look and np.count_nonzero(self._made) >= (look if bias else look // 2):
                self.given_up = len(F) > MOST_WHOLE and training_precision(self._engine.rows, self._engine.kernel) == "f4"
                if self.given_up:
                    break
                self._make_all()
            allowed = budget - used if self._steps >= look else min(budget - used, look - self._steps)
            now = self._some_steps(bias, (F, beta, lower, upper), eps, allowed)
            used += now
            if now < allowed:
                break
        return used

    def product(self, beta: Floats) -> Floats | None:
        """Kβ (m,), where all rows that it takes are made."""
        return product_of_rows(self.K, beta) if self._made[beta != 0.0].all() else None

    def _some_steps(self, bias: bool, variables: tuple[Floats, ...], eps: float, budget: int) -> int:
        kernel, before = self._engine.kernel, int(np.count_nonzero(self._made == NEEDED))
        used: int = (_pair_steps if bias else _coordinate_steps)(
            *(kernel.kind, kernel.coef0, kernel.degree, *self._packed, self._every),
            *(self._tables, self._half, self._made, self.K),
            *(self.diagonal, *variables, *self._work, eps, budget),
        )
        self._steps += used
        self._engine.evaluations += len(self._made) * (int(np.count_nonzero(self._made == NEEDED)) - before)
        return used

    def _make_all(self) -> None:
        missing, counted = np.flatnonzero(self._made == NOT_MADE), self._engine.evaluations
        self.K[missing, : len(self._made)] = self._engine.block(missing, self._every)
        self._made[missing], self._engine.evaluations = MADE_AHEAD, counted


def product_of_rows(K: NDArray[Any], beta: Floats) -> Floats:
    """Kβ (m,) from the rows of K (m, m or more) where β is not 0, summed in one order whatever the number of threads."""
    product = np.empty(len(beta))
    _product[K.dtype.str[1:]](K, beta, product)
    return product


def suits(rows: Rows, kernel: Kernel, n: int) -> bool:
    """Whether these loops take ``n`` of the rows, whose tables are small enough and blocks not made far sooner by counting."""
    if n > MOST_ROWS or kernel.kind == PRECOMPUTED or rows.form == "dense":
        return False
    line = 8 * (n + table_columns("f8"))
    if line * (rows.n_features + 1) > MOST_BYTES or line * len(rows.data) > MOST_READ * rows.n:
        return False
    return n <= MOST_WHOLE or layout_of(rows, rows, kernel, "f4").form != "binary"


@helper(ORDERED)
def make(source: Any, K: Any, i: Any) -> None:
    """Row i of K is needed: makes it where it is not made."""
    kind, coef0, degree, indptr, indices, data, half, every, W, h, made = source
    was, made[i] = made[i], NEEDED
    if was == NOT_MADE:
        width = W.shape[1]
        n_tables = len(h) // width
        lines = len(W) // n_tables
        for t in range(n_tables):
            table, own, c = W[t * lines : (t + 1) * lines], h[t * width : (t + 1) * width], t * width
            rows = indptr, indices, data, half, every, i, i + 1
            block = c, c + width, K, table, own, own
            if width == 8 * LANES:
                block_8(kind, coef0, degree, LANES, 0, *rows, *block)
            else:
                block_4(kind, coef0, degree, LANES, 0, *rows, *block)


@compiled("void(" + PACKED.replace("R", "f8") + "i8[:], f8[:, :], f8[:])", ORDERED)
def _spread(indptr: Any, indices: Any, data: Any, half: Any, every: Any, W: Any, h: Any) -> None:
    """All rows as columns of tables: one below the other in W, their norms in h."""
    width = W.shape[1]
    n_tables = len(h) // width
    lines = len(W) // n_tables
    for t in range(n_tables):
        table, own = W[t * lines : (t + 1) * lines], h[t * width : (t + 1) * width]
        scatter(indptr, indices, data, half, 0, every, t * width, min((t + 1) * width, len(every)), table, own)


@helper(_OVERFLOWS)
def product_of(K: Any, beta: Any, product: Any) -> None:
    """product (m,) = Kβ from the rows of K where β is not 0, one after another."""
    product[:] = 0.0
    for s in range(len(beta)):
        if beta[s] != 0.0:
            b, row = beta[s], K[s]
            for c in range(len(product)):
                product[c] += b * row[c]


def _all_of_product(K: Any, beta: Any, product: Any) -> None:
    product_of(K, beta, product)


_product = both_precisions(_all_of_product, "void(R[:, :], f8[:], f8[:])", _OVERFLOWS)


def _entry(steps: Any, name: str) -> Compiled:
    """``steps`` over rows that ``make`` makes."""

    def entry(
        kind: Any, coef0: Any, degree: Any, indptr: Any, indices: Any, data: Any, half: Any, every: Any, W: Any, h: Any,
        made: Any, K: Any, diagonal: Any, F: Any, beta: Any, lower: Any, upper: Any, up: Any, low: Any, eps: Any, budget: Any,
    ) -> Any:  # fmt: skip
        source = kind, coef0, degree, indptr, indices, data, half, every, W, h, made
        return steps(source, K, diagonal, F, beta, lower, upper, up, low, eps, budget)

    rows, tables = "i8, f8, i8, " + PACKED.replace("R", "f8") + "i8[:], ", "f8[:, :], f8[:], u1[:], "
    return compiled(f"i8({rows}{tables}f8[:, :], {'f8[:], ' * 7}f8, i8)", name=name)(entry)


_pair_steps = _entry(pair_steps_over(make), "pair_steps")
_coordinate_steps = _entry(coordinate_steps_over(make), "coordinate_steps")
