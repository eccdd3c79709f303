"""The kernel perceptron: plain, averaged, or within a budget of support vectors.

Solves    no programme: it looks for f(x) = Σ_S β_s K(x_s, x) with y_i f(x_i) > beta on every example
Steps     an example at a time, in a new random order each epoch: where y_i f(x_i) ≤ beta, β_i ← β_i + ω_i y_i,
          ω_i = C_i / mean C. averaged: the result is the mean of f after each step. budget N: when |S| > N, the example
          with the largest y_s (f(x_s) − β_s K_ss), right by most without itself, leaves S
Stops     after the stated number of epochs, or an epoch in which nothing was wrong
Memory    packed rows, a q × q block, some vectors of length n; budget: (N + q)² kernel values
Papers    Freund & Schapire, Machine Learning 37 (1999), with the mean for their vote; Crammer, Kandola & Singer, NIPS 16 (2003)

A step sums f over the support vectors, so it uses |S| kernel values. The order is known ahead: q examples are taken together,
with one fused product for their f at the block's begin and one block of their own kernel values for what changes inside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit import parallel
from svmkit.data import Floats, Ints
from svmkit.engine import perceptron as loops
from svmkit.engine import rng
from svmkit.engine.kernels import Engine, diagonal
from svmkit.errors import UsageError
from svmkit.problem import Bias, Problem, Solution, Stream, as_expansion
from svmkit.solvers import perceptron_stream as stream_steps
from svmkit.solvers.base import refused_bias
from svmkit.trace import Progress

SUMMARY = "kernel perceptron: plain, averaged, or within a budget; no bias"
PAPER = "Freund & Schapire, Machine Learning 37 (1999) 277–296; Crammer, Kandola & Singer, NIPS 16 (2003)"
EXACT = False
ACCURACY: float | None = None
BIASES: tuple[Bias, ...] = ("none",)

#: Examples to a block.
_BLOCK = 256


@dataclass(frozen=True)
class Options:
    """Fields as their help says."""

    epochs: int = field(default=10, metadata={"help": "passes over the examples, at most"})
    average: bool = field(default=True, metadata={"help": "the result is the mean over all steps; not with a budget"})
    beta: float = field(default=0.0, metadata={"help": "an example is wrong where y f(x) is at most this"})
    budget: int = field(default=0, metadata={"help": "support vectors at most; 0: any number"})


@dataclass
class _Block:
    """An open block: its rows, their kernel values, and for each: f at it, what it gained, and that times steps before."""

    rows: Ints
    first: int
    K: NDArray[Any]
    y: Floats
    omega: Floats
    f: Floats
    change: Floats
    late: Floats
    held: Ints


@dataclass
class _Held:
    """S and the open block's examples, each in a slot: its row (−1: free), coefficient, f at it, whether in S (1, 0), and ``K``
    between slots; ``block`` are the slots of the block's examples in order, its first one being step ``first``.
    """

    row: Ints
    y: Floats
    omega: Floats
    coef: Floats
    f: Floats
    inside: Floats
    K: NDArray[Any]
    block: Ints
    first: int = 0


@dataclass
class _State:
    """``beta`` and ``late`` (n,) are those at the block's begin; with a budget, ``held`` has everything instead.

    The mean over steps 1 … T is beta − late / T, where late sums each change times the number of steps before it.
    """

    problem: Problem
    options: Options
    seed: int
    engine: Engine
    omega: Floats
    beta: Floats
    late: Floats
    counts: Ints
    order: Ints
    held: _Held | None
    block: _Block | None = None
    completed: bool = False


def start(problem: Problem, options: Options, eps: float, seed: int) -> _State:
    """A fresh state: f = 0. Raises UsageError for an option that cannot be."""
    _check(options)
    n = problem.n
    engine = Engine(problem.rows, problem.kernel)
    return _State(
        problem=problem,
        options=options,
        seed=seed,
        engine=engine,
        omega=np.where(diagonal(problem.rows, problem.kernel) == 0, 0.0, problem.omega),
        beta=np.zeros(n),
        late=np.zeros(n),
        counts=np.zeros(loops.COUNTS, np.int64),
        order=np.empty(0, np.int64),
        held=_no_slots(engine, min(options.budget, n)) if options.budget else None,
    )


def _check(options: Options) -> None:
    if options.epochs < 1:
        raise UsageError(f"-O epochs={options.epochs}: must be at least 1")
    if not isfinite(options.beta):
        raise UsageError(f"-O beta={options.beta}: must be finite")
    if options.budget < 0:
        raise UsageError(f"-O budget={options.budget}: must not be negative (0: any number)")


def advance(state: _State, budget: int) -> Progress:
    """At most ``budget`` more examples."""
    end = min(state.options.epochs * state.problem.n, int(state.counts[loops.STEPS]) + budget)
    while state.counts[loops.STEPS] < end and not state.completed:
        if state.counts[loops.STEPS] % state.problem.n == 0 and state.block is None:
            state.order = rng.permutation(state.seed, int(state.counts[loops.STEPS]) // state.problem.n, state.problem.n)
        if state.held is None:
            _run_block(state, end)
        else:
            _run_held(state, state.held, end)
        _end_epoch(state)
        if parallel.is_over():
            break
    return Progress(
        steps=int(state.counts[loops.STEPS]),
        kernel_evaluations=int(state.counts[loops.VALUES]),
        completed=state.completed,
        n_support=int(state.counts[loops.SUPPORTS]),
    )


def _end_epoch(state: _State) -> None:
    steps, n = int(state.counts[loops.STEPS]), state.problem.n
    if steps % n == 0:
        state.completed = state.counts[loops.MISTAKES] == 0 or steps == state.options.epochs * n
        state.counts[loops.MISTAKES] = 0


def start_stream(stream: Stream, options: Options, eps: float, seed: int) -> stream_steps.State:
    """A fresh state for examples to come; the mean of their weights is taken to be 1. Raises UsageError for what cannot be."""
    _check(options)
    if stream.bias not in BIASES:
        raise UsageError(f"--solver perceptron: {refused_bias(BIASES)}")
    return stream_steps.start(stream.kernel, options.beta, options.average, options.budget)


extend, progress = stream_steps.extend, stream_steps.progress


def solution(state: _State | stream_steps.State) -> Solution:
    """f so far; its mean where that is wanted."""
    if not isinstance(state, _State):
        return stream_steps.solution(state)
    beta, late = _now(state)
    if state.options.average and state.held is None and state.counts[loops.STEPS]:
        beta = beta - late / float(state.counts[loops.STEPS])
    return as_expansion(beta, 0.0)


def _now(state: _State) -> tuple[Floats, Floats]:
    """β and the sums for its mean, open block included."""
    beta, late = state.beta.copy(), state.late.copy()
    if state.held is not None:
        inside = np.flatnonzero(state.held.inside)
        beta[state.held.row[inside]] = state.held.coef[inside]
    elif state.block is not None:
        beta[state.block.rows] += state.block.change
        late[state.block.rows] += state.block.late
    return beta, late


def _next_rows(state: _State) -> Ints:
    at = int(state.counts[loops.STEPS]) % state.problem.n
    return state.order[at : at + _BLOCK]


# --- any number of support vectors ----------------------------------------------------------------------------------------


def _run_block(state: _State, end: int) -> None:
    """Steps up to ``end`` or to the end of the block."""
    block = state.block
    if block is None:
        block = state.block = _open(state, _next_rows(state))
    last = min(end - block.first, len(block.rows))
    loops.block_steps[state.engine.real](
        *(block.K, block.y, block.omega, block.f, block.change, block.late, block.held, state.counts),
        *(state.options.beta, int(state.counts[loops.STEPS]) - block.first, last),
    )
    if last == len(block.rows):
        state.beta, state.late = _now(state)
        state.block = None


def _open(state: _State, rows: Ints) -> _Block:
    support = np.flatnonzero(state.beta)
    f = np.zeros(len(rows))
    state.engine.apply(state.engine.packed.take(rows), support, state.beta[support], f)
    return _Block(
        rows=rows,
        first=int(state.counts[loops.STEPS]),
        K=state.engine.block(rows, rows),
        y=state.problem.y[rows],
        omega=state.omega[rows],
        f=f,
        change=np.zeros(len(rows)),
        late=np.zeros(len(rows)),
        held=(state.beta[rows] != 0).astype(np.int64),
    )


# --- a budget -------------------------------------------------------------------------------------------------------------


def _no_slots(engine: Engine, budget: int) -> _Held:
    size = budget + _BLOCK
    return _Held(
        row=np.full(size, -1),
        y=np.zeros(size),
        omega=np.zeros(size),
        coef=np.zeros(size),
        f=np.zeros(size),
        inside=np.zeros(size),
        K=np.zeros((size, size), engine.real),
        block=np.empty(0, np.int64),
    )


def _run_held(state: _State, held: _Held, end: int) -> None:
    """Steps up to ``end`` or to the end of the block, whose examples outside S then give up their slots."""
    if len(held.block) == 0:
        _take_slots(state, held, _next_rows(state))
        held.first = int(state.counts[loops.STEPS])
    last = min(end - held.first, len(held.block))
    loops.budget_steps[state.engine.real](
        *(held.K, held.y, held.omega, held.coef, held.f, held.inside, held.block, np.empty(_BLOCK), state.counts),
        *(state.options.beta, state.options.budget, int(state.counts[loops.STEPS]) - held.first, last),
    )
    if last == len(held.block):
        held.row[held.inside == 0] = -1
        held.block = np.empty(0, np.int64)


def _take_slots(state: _State, held: _Held, rows: Ints) -> None:
    """Gives the block's examples slots, those of S their own, and fills in kernel values and f of the new ones."""
    supports = np.flatnonzero(held.inside)
    slot_of = np.full(state.problem.n, -1)
    slot_of[held.row[supports]] = supports
    new = rows[slot_of[rows] < 0]
    slots = np.flatnonzero(held.row < 0)[: len(new)]
    slot_of[new] = slots
    held.row[slots], held.y[slots], held.omega[slots] = new, state.problem.y[new], state.omega[new]
    everyone = np.concatenate([supports, slots])
    K = state.engine.block(new, held.row[everyone])
    held.K[np.ix_(slots, everyone)] = K
    held.K[np.ix_(everyone, slots)] = K.T
    held.f[slots] = K[:, : len(supports)] @ held.coef[supports]
    held.block = slot_of[rows]
