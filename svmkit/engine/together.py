"""Small machines of one data set, each trained from β = 0 by steps over its own kernel matrix, several in one compiled call.

A machine of a few hundred examples is trained in less time than Python takes to call what that needs. Those of one first class
have much of their kernel matrices in common: values among the first class are the same in all of them, and those among a second
class are the same whatever the first; folds of few rows share nearly all. So the values come in blocks, each made once, and a
row of a machine's matrix is put together when a step first needs it. Steps and their results are bitwise those of by_need.py
on the same values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from svmkit._jit import ORDERED, Compiled, compiled, helper
from svmkit.data import Floats, Ints, Rows
from svmkit.engine.by_need import NEEDED, NOT_MADE, product_of
from svmkit.engine.linear import add_row, dot_row
from svmkit.engine.packed import renumbered
from svmkit.engine.qp import coordinate_steps_over, pair_steps_over
from svmkit.engine.space import room


class Blocks(NamedTuple):
    """Float64 kernel values of machines, each variable of which has a ``place`` among those of its class.

    In ``own`` are those among the first class, in ``across`` those between it and the second, whose places begin at the
    machine's ``columns``; those among the second begin at its ``corners`` in ``others``, in rows of its ``lengths``.
    """

    own: Floats
    across: Floats
    others: Floats
    place: Ints
    columns: Ints
    corners: Ints
    lengths: Ints


class Boxes(NamedTuple):
    """Machines one after another: where each begins (k + 1,); y = ±1, box and K_ii of each variable."""

    starts: Ints
    y: Floats
    lower: Floats
    upper: Floats
    diagonal: Floats

    def part(self, first: int, last: int) -> Boxes:
        """Machines first … last − 1."""
        starts, here = self.starts[first : last + 1], slice(self.starts[first], self.starts[last])
        boxes = self.y[here], self.lower[here], self.upper[here], self.diagonal[here]
        return Boxes(starts - starts[0], *boxes)


class Ended(NamedTuple):
    """β and Kβ of each variable; steps, kernel values used and whether the steps ended by themselves (1), of each machine."""

    beta: Floats
    product: Floats
    steps: Ints
    evaluations: Ints
    finished: Ints

    @staticmethod
    def room_for(boxes: Boxes) -> Ended:
        """Before the first step."""
        return Ended(*np.zeros((2, len(boxes.y))), *np.zeros((3, len(boxes.starts) - 1), np.int64))

    def part(self, starts: Ints, first: int, last: int) -> Ended:
        """Machines first … last − 1, sharing memory; ``starts`` are those of the machines."""
        some, here = slice(first, last), slice(starts[first], starts[last])
        return Ended(self.beta[here], self.product[here], self.steps[some], self.evaluations[some], self.finished[some])


def train_machines(
    blocks: Blocks, boxes: Boxes, bias: bool, eps: float, most_steps: int, most_work: int, work: int, ended: Ended
) -> int:
    """Steps from β = 0 until the violation by the F that steps keep is below ``eps``, into ``ended``; how many machines.

    A machine may take ``most_steps``, and as many as go over ``most_work`` variables. Once the steps of all have gone over
    ``work`` variables no other is begun.
    """
    most = int(np.diff(boxes.starts).max(initial=0))
    reached: int = (_pair_machines if bias else _coordinate_machines)(
        *(*blocks, *boxes, boxes.y.copy(), eps, most_steps, most_work, work, *ended),
        *(
            room("together", most * most).reshape(most, most),
            np.empty(most, np.uint8),
            *np.empty((2, most)),
        ),
    )
    return reached


def products_by_w(rows: Rows, examples: Ints, starts: Ints, beta: Floats) -> Floats:
    """Kβ of each machine with the linear kernel, which by way of w loses less to rounding; ``examples`` are its rows."""
    (narrow,) = renumbered(rows)
    product = np.empty(len(beta))
    _products_by_w(narrow.indptr, narrow.indices, narrow.data, examples, starts, beta, np.zeros(narrow.n_features + 1), product)
    return product


@helper(ORDERED)
def _put_together(source: Any, K: Any, i: Any) -> None:
    """Row i of a machine's K is needed: puts it together where it is not there."""
    own, across, others, place, column, corner, length, y, made = source
    was, made[i] = made[i], NEEDED
    if was == NOT_MADE:
        row, at = K[i], place[i]
        for t in range(len(y)):
            if y[i] > 0.0:
                row[t] = own[at, place[t]] if y[t] > 0.0 else across[at, column + place[t]]
            elif y[t] > 0.0:
                row[t] = across[place[t], column + at]
            else:
                row[t] = others[corner + at * length + place[t]]


def _entry(steps: Any, name: str) -> Compiled:
    """Machines by ``steps``."""

    def entry(
        own: Any, across: Any, others: Any, place: Any, columns: Any, corners: Any, lengths: Any, starts: Any, y: Any,
        lower: Any, upper: Any, diagonal: Any, F: Any, eps: Any, most_steps: Any, most_work: Any, work: Any,
        beta: Any, product: Any, used: Any, evaluated: Any, finished: Any, K: Any, made: Any, up: Any, low: Any,
    ) -> Any:  # fmt: skip
        for machine in range(len(used)):
            if work <= 0:
                return machine
            a, b = starts[machine], starts[machine + 1]
            m = b - a
            budget = min(most_steps, most_work // m)
            made[:m] = NOT_MADE
            values = K[:m]
            shared = own, across, others, place[a:b], columns[machine], corners[machine], lengths[machine]
            source = *shared, y[a:b], made
            box = diagonal[a:b], F[a:b], beta[a:b], lower[a:b], upper[a:b], up[:m], low[:m]
            n = steps(source, values, *box, eps, budget)
            work -= n * m
            used[machine], finished[machine] = n, n < budget
            for i in range(m):
                evaluated[machine] += m if made[i] == NEEDED else 0
            product_of(values, beta[a:b], product[a:b])
        return len(used)

    arrays = "f8[:, :], f8[:, :], f8[:], i8[:], i8[:], i8[:], i8[:], i8[:], f8[:], f8[:], f8[:], f8[:], f8[:], f8, i8, i8, i8, "
    return compiled("i8(" + arrays + "f8[:], f8[:], i8[:], i8[:], i8[:], f8[:, :], u1[:], f8[:], f8[:])", ORDERED, name=name)(
        entry
    )


_pair_machines = _entry(pair_steps_over(_put_together), "pair_machines")
_coordinate_machines = _entry(coordinate_steps_over(_put_together), "coordinate_machines")


@compiled("void(i8[:], i4[:], f8[:], i8[:], i8[:], f8[:], f8[:], f8[:])", ORDERED)
def _products_by_w(
    indptr: Any, indices: Any, data: Any, examples: Any, starts: Any, beta: Any, w: Any, product: Any
) -> None:  # fmt: skip
    """``w`` is 0 before and after."""
    for machine in range(len(starts) - 1):
        a, b = starts[machine], starts[machine + 1]
        for i in range(a, b):
            if beta[i] != 0.0:
                add_row(indices, data, indptr[examples[i]], indptr[examples[i] + 1], beta[i], w)
        for i in range(a, b):
            product[i] = dot_row(indices, data, indptr[examples[i]], indptr[examples[i] + 1], w)
        for i in range(a, b):
            if beta[i] != 0.0:
                for k in range(indptr[examples[i]], indptr[examples[i] + 1]):
                    w[indices[k]] = 0.0
