"""The perceptron on a stream: the steps of perceptron.py on examples that come one after another and are seen once.

With a kernel the state holds the support vectors themselves. Examples are taken in blocks of 256, counted from the stream's
begin, wherever it is cut: an open block keeps its examples, and its steps are done again from its begin when more of them
come, so that no bit depends on the cuts. Of the linear kernel without a budget, w is all there is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from svmkit.data import NO_ROWS, Floats, Ints, Rows, stack
from svmkit.engine import perceptron as loops
from svmkit.engine.kernels import diagonal, stream_engine
from svmkit.engine.linear import FeaturePlaces, grown
from svmkit.problem import LINEAR, Kernel, Solution, of_other_rows
from svmkit.trace import Progress

#: Examples to a block.
_BLOCK = 256


@dataclass
class Folded:
    """w of the linear kernel, and the sum of each change of it times the number of steps before, over ``features``."""

    margin: float
    average: bool
    features: FeaturePlaces
    w: Floats
    late: Floats
    counts: Ints


@dataclass
class Expanded:
    """``rows`` are S at the open block's begin, ``size`` of them, then the block's; ``begin`` and ``counts`` are those of its
    begin, ``now`` and ``counts_now`` after its steps. ``K`` is between the block's examples; with a budget between all.
    """

    kernel: Kernel
    margin: float
    average: bool
    budget: int
    rows: Rows
    size: int
    begin: Floats
    counts: Ints
    now: Floats
    counts_now: Ints
    K: Floats


State = Folded | Expanded


def start(kernel: Kernel, margin: float, average: bool, budget: int) -> State:
    """f = 0. The mean of f over the steps is kept with ``average``; ``budget`` 0 stands for any number of support vectors."""
    if kernel.kind == LINEAR and not budget:
        return Folded(margin, average, FeaturePlaces(), np.zeros(0), np.zeros(0), np.zeros(loops.COUNTS, np.int64))
    return Expanded(
        kernel=kernel,
        margin=margin,
        average=average and not budget,
        budget=budget,
        rows=NO_ROWS,
        size=0,
        begin=np.zeros((loops.FIELDS, 0)),
        counts=np.zeros(loops.COUNTS, np.int64),
        now=np.zeros((loops.FIELDS, 0)),
        counts_now=np.zeros(loops.COUNTS, np.int64),
        K=np.empty((0, 0)),
    )


def extend(state: State, rows: Rows, y: Floats, weight: Floats) -> Floats:
    """Learns the examples; f of each before it was learned, by the mean where that is the solution."""
    before = np.empty(rows.n)
    if isinstance(state, Folded):
        rows = state.features.place(rows)
        state.w, state.late = grown(state.w, state.features.width), grown(state.late, state.features.width)
        loops.linear_steps(
            *(rows.indptr, rows.indices, rows.data, y, weight, state.w, state.late, before, state.counts),
            *(state.margin, int(state.average)),
        )
        return before
    first = 0
    while first < rows.n:
        last = min(rows.n, first + _BLOCK - (state.rows.n - state.size))
        before[first:last] = _join(state, rows.part(first, last), y[first:last], weight[first:last])
        first = last
        if state.rows.n - state.size == _BLOCK:
            _close(state)
    return before


def progress(state: State) -> Progress:
    """Examples, kernel values, support vectors."""
    counts = state.counts if isinstance(state, Folded) else state.counts_now
    n_support = min(1, int(counts[loops.SUPPORTS])) if isinstance(state, Folded) else int(counts[loops.SUPPORTS])
    return Progress(int(counts[loops.STEPS]), int(counts[loops.VALUES]), n_support=n_support)


def solution(state: State) -> Solution:
    """f so far; its mean where that is wanted."""
    if isinstance(state, Folded):
        w = state.w - state.late / max(1, int(state.counts[loops.STEPS])) if state.average else state.w
        basis = state.features.as_rows(w)
        return of_other_rows(basis, np.ones(basis.n), 0.0)
    beta = state.now[loops.COEF]
    if state.average:
        beta = beta - state.now[loops.LATE] / max(1, int(state.counts_now[loops.STEPS]))
    used = np.flatnonzero(beta)
    return of_other_rows(state.rows.take(used), beta[used], 0.0)


def _join(state: Expanded, rows: Rows, y: Floats, weight: Floats) -> Floats:
    """Takes examples into the open block, then does its steps from its begin; returns f before each of the new ones."""
    old, n = state.rows.n, state.rows.n + rows.n
    state.rows = stack([state.rows, rows])
    # S alone says which loops sum over it: f must not depend on what else the call brings, nor on rows forgotten since.
    largest = int(state.rows.indices[: state.rows.indptr[state.size]].max(initial=0))
    engine = stream_engine(state.rows, state.kernel, largest)
    new, everyone = np.arange(old, n), np.arange(0 if state.budget else state.size, n)
    values = np.zeros((rows.n, 2))
    weights = np.ascontiguousarray(state.begin[[loops.COEF, loops.LATE], : state.size].T)
    engine.apply(engine.packed.take(new), np.arange(state.size), weights, values)
    state.begin = np.hstack([state.begin, np.zeros((loops.FIELDS, rows.n))])
    state.begin[loops.Y, old:] = y
    state.begin[loops.OMEGA, old:] = np.where(diagonal(rows, state.kernel) == 0, 0.0, weight)
    state.begin[loops.F : loops.LATE_F + 1, old:] = values.T
    K = np.empty((len(everyone), len(everyone)))
    known = len(everyone) - rows.n
    K[:known, :known] = state.K
    K[known:] = engine.block(new, everyone)
    K[:known, known:] = K[known:, :known].T
    state.K = K
    return _redo(state)[old - state.size :]


def _redo(state: Expanded) -> Floats:
    """The open block's steps from its begin; f before each."""
    state.now, state.counts_now = state.begin.copy(), state.counts.copy()
    before = np.empty(state.rows.n - state.size)
    if state.budget:
        known = (state.now[k] for k in (loops.Y, loops.OMEGA, loops.COEF, loops.F, loops.INSIDE))
        block, counts = np.arange(state.size, state.rows.n), state.counts_now
        loops.budget_steps["f8"](state.K, *known, block, before, counts, state.margin, state.budget, 0, len(block))
    else:
        block = np.ascontiguousarray(state.now[:, state.size :])
        loops.stream_steps(state.K, block, before, state.counts_now, state.margin, int(state.average))
        state.now[:, state.size :] = block
    return before


def _close(state: Expanded) -> None:
    """What is not in S is forgotten."""
    kept = np.flatnonzero(state.now[loops.INSIDE])
    state.rows, state.size = state.rows.take(kept), len(kept)
    state.begin, state.counts = state.now[:, kept], state.counts_now
    state.now = state.begin
    state.K = state.K[np.ix_(kept, kept)] if state.budget else np.empty((0, 0))
