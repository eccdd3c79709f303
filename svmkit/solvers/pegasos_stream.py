"""Pegasos on a stream, for linear f: each step takes the next ``batch`` examples in place of drawn ones.

Examples that do not fill a batch wait, with their features, for the next ones, so that no bit depends on the cuts; those left
at the end make a step of their own.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from svmkit.data import Floats, Ints, Rows, dense_rows, stack
from svmkit.engine import subgradient as loops
from svmkit.engine.linear import FeaturePlaces, grown, iterate, places
from svmkit.problem import Solution, of_other_rows
from svmkit.trace import Progress


@dataclass
class State:
    """w = scale·v over ``features``; sums and averages as in subgradient.py. ``waiting`` rows have labels ``y`` and weights."""

    flags: loops.Flags
    constant: float
    features: FeaturePlaces
    v: Floats
    late_v: Floats
    sums: Floats
    counts: Ints
    hits: Ints
    waiting: Rows | None
    y: Floats
    weight: Floats
    seen: int = 0


def start(flags: loops.Flags, batch: int, constant: float) -> State:
    """w = 0; ``constant`` is the value of one feature more that every example has."""
    return State(
        flags=flags,
        constant=constant,
        features=FeaturePlaces(),
        v=np.zeros(0),
        late_v=np.zeros(0),
        sums=np.array([1.0] + [0.0] * (loops.STREAM_SUMS - 1)),
        counts=np.array([1, 0, 0, 0]),
        hits=np.empty(batch, np.int64),
        waiting=None,
        y=np.empty(0),
        weight=np.empty(0),
    )


def extend(state: State, rows: Rows, y: Floats, weight: Floats) -> Floats:
    """Learns what fills batches; f of each example by the solution before."""
    n_waiting = len(state.y)
    if state.waiting is not None and n_waiting:
        rows = _joined(state.waiting, rows)
    y, weight = np.concatenate([state.y, y]), np.concatenate([state.weight, weight])
    before = _steps(state, rows, y, weight, state.hits)
    learned = rows.n - rows.n % len(state.hits)
    state.waiting, state.y, state.weight = rows.take(np.arange(learned, rows.n)), y[learned:], weight[learned:]
    state.seen += rows.n - n_waiting
    return before[n_waiting:]


def finish(state: State) -> None:
    """A step of those that wait."""
    n_waiting = len(state.y)
    if state.waiting is not None and n_waiting:
        _steps(state, state.waiting, state.y, state.weight, state.hits[:n_waiting])
        state.waiting, state.y, state.weight = None, np.empty(0), np.empty(0)


def _steps(state: State, rows: Rows, y: Floats, weight: Floats, hits: Ints) -> Floats:
    """Steps of ``len(hits)`` examples each, as many as they fill; f of each example by the solution before."""
    placed = state.features.place(rows)
    state.v = grown(state.v, state.features.width)
    state.late_v = grown(state.late_v, state.features.width if state.flags.average != loops.NO_AVERAGE else 0)
    before = np.empty(rows.n)
    loops.stream_steps[rows.form](
        *(placed.indptr, placed.indices, placed.data, rows.sqnorms() + state.constant**2, y, weight),
        *(places(rows, state.v), places(rows, state.late_v), state.sums, state.counts, hits, before),
        *(state.constant, *state.flags, rows.n // len(hits)),
    )
    return before


def _joined(first: Rows, second: Rows) -> Rows:
    return dense_rows(np.vstack([first.matrix(), second.matrix()])) if first.form == "dense" else stack([first, second])


def progress(state: State) -> Progress:
    """Examples, one value of f each."""
    return Progress(state.seen, state.seen, n_support=min(1, int(state.counts[loops.HITS])))


def solution(state: State) -> Solution:
    """The average of the iterates, or the last one where none is kept; of those that wait as if no more came."""
    if len(state.y):
        state = deepcopy(state)
        finish(state)
    sums = state.sums
    of = sums[[loops.SCALE, loops.SCALE_SUM, loops.WEIGHTS]]
    w = iterate(state.v, state.late_v, *of)
    (last,) = iterate(sums[[loops.V_CONSTANT]], sums[[loops.LATE_CONSTANT]], *of)
    basis = state.features.as_rows(w)
    return of_other_rows(basis, np.ones(basis.n), -state.constant * float(last))
