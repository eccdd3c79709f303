"""Pegasos on drawn examples, for linear f: a step touches the nonzeros of its examples, and w is at hand.

w = scale·v with v = Σ a_i y_i x_i over the features that occur and the constant one; scale·a is a dual point of the C-form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Floats, Ints, Rows, dense_rows
from svmkit.engine import subgradient as loops
from svmkit.engine.linear import iterate
from svmkit.engine.rng import integers
from svmkit.features import narrowed
from svmkit.problem import Problem, Solution, as_one_row


@dataclass
class State:
    """v over the features ``names`` and the constant one; sums and averages as in subgradient.py."""

    problem: Problem
    seed: int
    flags: loops.Flags
    constant: float
    omega: Floats
    rows: Rows
    names: NDArray[np.int32]
    square: Floats
    v: Floats
    a: Floats
    late_v: Floats
    late_a: Floats
    sums: Floats
    counts: Ints
    hits: Ints


def start(problem: Problem, omega: Floats, flags: loops.Flags, batch: int, constant: float, seed: int) -> State:
    """w = 0; ``constant`` is the value of one feature more that every example has."""
    rows, names = narrowed(problem.rows)
    n = problem.n
    if constant:
        rows = _with_feature(rows, len(names), constant)
    width = len(names) + (constant > 0)
    averaged = flags.average != loops.NO_AVERAGE
    return State(
        problem=problem,
        seed=seed,
        flags=flags,
        constant=constant,
        omega=omega,
        rows=rows,
        names=names,
        square=rows.sqnorms(),
        v=np.zeros(width),
        a=np.zeros(n),
        late_v=np.zeros(width * averaged),
        late_a=np.zeros(n * averaged),
        sums=np.array([1.0, 0.0, 0.0, 0.0]),
        counts=np.array([1, 0, 0, 0]),
        hits=np.empty(batch, np.int64),
    )


def _with_feature(rows: Rows, number: int, value: float) -> Rows:
    """``rows`` with one more nonzero in each."""
    if rows.form == "dense":
        return dense_rows(np.insert(rows.matrix(), rows.n_features, value, axis=1))
    ends = rows.indptr[1:]
    return rows._replace(
        data=np.insert(rows.data, ends, value),
        indices=np.insert(rows.indices, ends, number),
        indptr=rows.indptr + np.arange(rows.n + 1),
    )


def run(state: State, first: int, end: int) -> tuple[int, bool]:
    """Steps from ``first`` up to ``end`` or to the end of the epoch; the next step, and whether an epoch has ended."""
    k, rows, n = len(state.hits), state.rows, state.problem.n
    epoch_end = -(-(first * k // n + 1) * n // k)
    stop = min(end, epoch_end)
    loops.linear_steps[rows.form](
        *(rows.indptr, rows.indices, rows.data, state.square, state.problem.y, state.omega),
        *(state.v, state.a, state.late_v, state.late_a, state.sums, state.counts, state.hits),
        *(integers(state.seed, loops.DRAWS, first * k, (stop - first) * k + loops.AHEAD, n), *state.flags),
    )
    return stop, stop == epoch_end


def solution(state: State) -> Solution:
    """w as one row; its dual point is α with w = Σ α_i y_i x_i, cut to the box."""
    of = state.sums[[loops.SCALE, loops.SCALE_SUM, loops.WEIGHTS]]
    w, alpha = iterate(state.v, state.late_v, *of), iterate(state.a, state.late_a, *of)
    width = len(state.names)
    rho = -state.constant * float(w[width:].sum())
    alpha = np.minimum(alpha, state.problem.upper)
    return as_one_row(w[:width], state.names, state.problem.rows.n_features, rho, alpha)
