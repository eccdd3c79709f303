"""ASSET: robust stochastic approximation for linear f with a true intercept; after a feature map, for any kernel.

Solves    min  (λ/2)‖w‖² + (1/n) Σ ω_i max(0, 1 − y_i (⟨w, x_i⟩ + b)),    λ = 1/(n·mean C), ω_i = C_i / mean C
          which is the C-form divided by n·mean C
Bias      free: ASSET, b in [−B, B]; none: ASSET*, which uses that the objective is then strongly convex
Steps     j = 1 … N: one example drawn with replacement; the subgradient step of length η_j, then the projection onto
          ‖w‖ ≤ 1/√λ, where the optimum lies, and |b| ≤ B; O(nonzeros of the example). The result is the average of the iterates
          from N̄ on, weighted by η_j
Lengths   ASSET: η_j = θ D_X/(D_G √j), D_X = √(1/λ + B²), D_G² = mean of ω_i²(‖x_i‖² + 1) over M draws (the mean squared
          length of a subgradient at 0), never more than 1/(2λ); ASSET*: η_j = 1/(λj)
Stops     after N = epochs·n steps
Stream    ASSET_on, ASSET*_on: a step for each example as it comes; averaged are the iterates since the last power of two but
          one, a half to three quarters of all; D_G comes from the first M examples, max ‖x‖ from those so far
Memory    w twice and some vectors of length n; on a stream w three times
Paper     Lee & Wright, "ASSET: Approximate stochastic subgradient estimation training for support vector machines",
          algorithm 1 (its D_G² divides by M² where M is meant); Nemirovski, Juditsky, Lan & Shapiro (2009) for θ
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Floats, Rows
from svmkit.engine import averaging as loops
from svmkit.engine import linear, rng
from svmkit.errors import UsageError
from svmkit.features import narrowed
from svmkit.problem import LINEAR, Bias, Problem, Solution, Stream, as_one_row, of_other_rows
from svmkit.solvers.base import lam_of_stream, needs_map
from svmkit.trace import Progress

SUMMARY = "ASSET: averaged stochastic subgradient steps with an intercept, for linear f, so after a map for any kernel"
PAPER = "Lee & Wright, ASSET: Approximate stochastic subgradient estimation training for SVMs"
EXACT = False
ACCURACY: float | None = 0.05
BIASES: tuple[Bias, ...] = ("free", "none")

#: The streams of random numbers that examples are drawn by: for steps, and for D_G.
_DRAWS, _ESTIMATE = 0, 1
#: Examples drawn together.
_TOGETHER = 1 << 14
#: No sum of step lengths is as small.
_TINY = 1e-300
#: So many epochs, of as many examples as memory holds, have steps that 64 bits can count.
_MOST_EPOCHS = 1e9
#: Examples that D_G is estimated from.
_MOST_DRAWN = 1_000_000
#: B² is still a double.
_LARGEST_BOUND = 1e150


@dataclass(frozen=True)
class Options:
    """Fields as their help says."""

    epochs: float = field(default=100.0, metadata={"help": "N: times n examples are drawn"})
    burn_in: float = field(
        default=0.5,
        metadata={"help": "N̄: the share of the steps whose iterates are left out of the average (none on a stream)"},
    )
    step: float = field(default=0.1, metadata={"help": "θ: multiplies the step lengths D_X/(D_G √j) of the free bias"})
    bound: float = field(
        default=0.0, metadata={"help": "B: b stays in [−B, B]; 0: 1 + max ‖x‖/√λ, which the optimum never exceeds"}
    )
    draws: int = field(default=1000, metadata={"help": "M: examples drawn to estimate D_G"})


def supports(problem: Problem) -> str | None:
    """Takes linear problems."""
    return None if problem.kernel.kind == LINEAR else needs_map("asset", problem.kernel)


@dataclass
class _State:
    """w = scale·v = scale·Σ a_i y_i x_i over the features ``names``; sums and averages as in averaging.py."""

    problem: Problem
    rows: Rows
    names: NDArray[np.int32]
    square: Floats
    omega: Floats
    seed: int
    lam: float
    rate: float
    bound: float
    burn_in: int
    total: int
    v: Floats
    late_v: Floats
    a: Floats
    late_a: Floats
    sums: Floats
    done_steps: int = 0


@dataclass
class _Online:
    """w = scale·v over ``features``; averages as in averaging.py; ``free``: with a bias; ``seen`` examples so far."""

    lam: float
    free: bool
    options: Options
    features: linear.FeaturePlaces = field(default_factory=linear.FeaturePlaces)
    v: Floats = field(default_factory=lambda: np.zeros(1))
    late: Floats = field(default_factory=lambda: np.zeros(1))
    before: Floats = field(default_factory=lambda: np.zeros(1))
    sums: Floats = field(default_factory=lambda: np.concatenate([[1.0], np.zeros(10)]))
    seen: int = 0

    def place(self, rows: Rows) -> Rows:
        """``rows`` over ``features``, with a place for each of their features."""
        placed = self.features.place(rows)
        self.v, self.late, self.before = (linear.grown(part, self.features.width) for part in (self.v, self.late, self.before))
        return placed


def start_stream(stream: Stream, options: Options, eps: float, seed: int) -> _Online:
    """A fresh state at w = 0, b = 0. Raises UsageError where λ is not known, for a kernel, or an option that cannot be."""
    _check(options)
    return _Online(lam=lam_of_stream("asset", stream), free=stream.bias == "free", options=options)


def extend(state: _Online, rows: Rows, y: Floats, weight: Floats) -> Floats:
    """One step for each row, in the order given; returns (k,) f(x) of each by the average just before it was learned."""
    placed = state.place(rows)
    decision = np.empty(rows.n)
    options = state.options
    loops.stream[rows.form](
        *(placed.indptr, placed.indices, placed.data, rows.sqnorms(), y, weight),
        *(linear.places(rows, w) for w in (state.v, state.late, state.before)),
        state.sums,
        *(state.lam, options.step, options.bound, state.free, options.draws, state.seen, decision),
    )
    state.seen += rows.n
    return decision


def progress(state: _Online) -> Progress:
    """Examples learned."""
    return Progress(state.seen, state.seen, n_support=int(state.v.any()))


def start(problem: Problem, options: Options, eps: float, seed: int) -> _State:
    """A fresh state at w = 0, b = 0. Raises UsageError for an option that cannot be."""
    _check(options)
    lam, omega, n = problem.lam, problem.omega, problem.n
    rows, names = narrowed(problem.rows)
    square = rows.sqnorms()
    free = problem.bias == "free"
    bound = (options.bound or 1.0 + sqrt(float(square.max(initial=0.0)) / lam)) if free else 0.0
    drawn = rng.integers(seed, _ESTIMATE, 0, options.draws, n)
    subgradient2 = float(np.mean(omega[drawn] ** 2 * (square[drawn] + 1.0)))
    total = ceil(options.epochs * n)
    return _State(
        problem=problem,
        rows=rows,
        names=names,
        square=square,
        omega=omega,
        seed=seed,
        lam=lam,
        rate=options.step * sqrt((1.0 / lam + bound**2) / max(subgradient2, _TINY)) if free else 0.0,
        bound=bound,
        burn_in=ceil(options.burn_in * total),
        total=total,
        v=np.zeros(len(names)),
        late_v=np.zeros(len(names)),
        a=np.zeros(n),
        late_a=np.zeros(n),
        sums=np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    )


def _check(options: Options) -> None:
    if not 0 < options.epochs <= _MOST_EPOCHS:
        raise UsageError(f"-O epochs={options.epochs:g}: must be greater than 0 and at most {_MOST_EPOCHS:g}")
    if not 0 < options.step < inf:
        raise UsageError(f"-O step={options.step:g}: must be greater than 0, and finite")
    if not 0 <= options.burn_in < 1:
        raise UsageError(f"-O burn_in={options.burn_in:g}: must be at least 0 and below 1")
    if not 0 <= options.bound <= _LARGEST_BOUND:
        raise UsageError(f"-O bound={options.bound:g}: must lie in 0 … {_LARGEST_BOUND:g}")
    if not 1 <= options.draws <= _MOST_DRAWN:
        raise UsageError(f"-O draws={options.draws}: must lie in 1 … {_MOST_DRAWN:,}")


def advance(state: _State, budget: int) -> Progress:
    """At most ``budget`` more steps."""
    stop = min(state.total, state.done_steps + budget)
    rows = state.rows
    while state.done_steps < stop:
        drawn = rng.integers(state.seed, _DRAWS, state.done_steps, min(_TOGETHER, stop - state.done_steps), state.problem.n)
        loops.steps[rows.form](
            *(rows.indptr, rows.indices, rows.data, state.square, state.problem.y, state.omega),
            *(state.v, state.late_v, state.a, state.late_a, state.sums),
            *(drawn, state.lam, state.rate, state.bound, state.burn_in, state.done_steps),
        )
        state.done_steps += len(drawn)
    return Progress(
        steps=stop,
        kernel_evaluations=stop,
        completed=stop >= state.total,
        n_support=int(state.v.any()),
    )


def solution(state: _State | _Online) -> Solution:
    """The average of the iterates, or the last one before there is any; as w with its dual point, cut to the box."""
    sums = state.sums
    if isinstance(state, _Online):
        weights = max(sums[loops.WEIGHTS] + sums[loops.WEIGHTS_BEFORE], _TINY)
        w = linear.average(state.v, state.late, sums[loops.SCALE_SUM], weights, state.before)
        intercept = (sums[loops.INTERCEPT_SUM] + sums[loops.INTERCEPT_BEFORE]) / weights
        basis = state.features.as_rows(w)
        return of_other_rows(basis, np.ones(basis.n), -float(intercept))
    of = sums[[loops.SCALE, loops.SCALE_SUM, loops.WEIGHTS]]
    w, alpha = linear.iterate(state.v, state.late_v, *of), linear.iterate(state.a, state.late_a, *of)
    weights = sums[loops.WEIGHTS]
    intercept = sums[loops.INTERCEPT_SUM] / weights if weights > 0 else sums[loops.INTERCEPT]
    alpha = np.minimum(alpha, state.problem.upper)
    return as_one_row(w, state.names, state.problem.rows.n_features, -float(intercept), alpha)
