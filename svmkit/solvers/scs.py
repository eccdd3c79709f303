"""SCS, stochastic conjugate subgradients: a growing sample, a validation sample, Wolfe's search in a trust radius.

Solves    min f(α) = (λ/2) αᵀKα + (1/n) Σ ω_i max(0, 1 − y_i (Kα)_i)      λ = 1/(n·mean C), ω_i = C_i/mean C, no bias
through   f_S, the same with K(S, S) and the mean over a growing sample S; d = −(least-norm point of [g, −d_previous])
Stops     at the largest sample, where the relative duality gap (conjugate.py) of f_S is at most eps: converged if that is the
          whole training set and float64 kernel values, from which it goes on otherwise, bear it out, stalled where they do not
          for the third time, or gain nothing; else completed, as after ``iterations``, or where the trust radius has shrunk to
          nothing (the validation sample sees no more progress)
Memory    K(S, S): 4·``sample``² bytes at most in float32, where the data allow it, and for a moment, as it moves to its last
          room, a quarter as much beside it; some vectors of length n
Paper     Zhang & Sen, "A Stochastic Conjugate Subgradient Algorithm for Kernelized Support Vector Machines: The Evidence"

An iteration: subgradient g of f_S at α, direction, step t with t‖d‖ inside the trust radius δ; fresh examples join S; an
independent validation sample T of as many examples is drawn. With Δ the change of the objective from α to α + td, Δ_S < 0 on S
and Δ_T ≤ η₁ Δ_S on T, where f_T has the quadratic of S and the hinge on T through K(T, S), and ‖d‖ > η₂ λ δ, the point is
accepted and δ doubles; else α stays and δ halves. (The paper prints η₁ > 1, which no Δ_T can meet for long, and K(T, T) for the
coefficients of S.) Examples are drawn without replacement, and those of T that are in S have known responses: a run whose S has
taken in the whole training set evaluates nothing more.

Subgradients are Σ u_i φ(x_i), u = λα − v, v_i = ω_i y_i [hinge_i > 0]/|S|; norms are those of such functions, uᵀKu. The paper's
norm, of the numbers α, makes K² of K, which is far slower (see wolfe.py). Where no step is long enough, the next subgradient is
taken just beyond.

The mean v̄ of the v's in d, by its weights, is feasible for the dual of f_S, as v is; their values bound f_S from below and cost
no kernel value. Where the gap of v̄ is more than ‖d‖²/2λ by two thirds, d is made of subgradients from too far away and begins
anew at −g. Where S grows, d is made that of the new f_S: the paper's d, padded with zeros, drags the small sample along.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, sqrt

import numpy as np

from svmkit import parallel
from svmkit.data import Floats, Ints
from svmkit.engine.conjugate import FRESH, GapChecks, Line, check_search, least_norm, relative_gap, search
from svmkit.engine.gram import GrowingGram, gram_engine
from svmkit.engine.rng import permutation
from svmkit.errors import UsageError
from svmkit.problem import Bias, Problem, Solution
from svmkit.trace import Progress

SUMMARY = "stochastic conjugate subgradients: growing sample, validation sample, Wolfe's search, no bias"
PAPER = "Zhang & Sen, A Stochastic Conjugate Subgradient Algorithm for Kernelized SVM"
EXACT = False
ALONE = True
BIASES: tuple[Bias, ...] = ("none",)
ACCURACY: float | None = 5e-3

#: Streams of draws: the order in which examples join S; from _VALIDATION on, T of each iteration.
_SAMPLE, _VALIDATION = 0, 1
#: A run ends where δ is this share of the first one, which is at most that of the ball √(2/λ) that holds the optimum.
_NO_RADIUS = 1e-9
#: Options that are shares or factors are at most this; products with it stay finite.
_LARGEST = 1e9
#: The least length of the first step, as a share of that largest radius.
_LEAST_FIRST = 1e-12


@dataclass(frozen=True)
class Options:
    """Constants of the method, named as in the paper where it names them."""

    iterations: int = field(default=300, metadata={"help": "iterations after which a run is complete"})
    first: int = field(default=100, metadata={"help": "examples in the first sample"})
    growth: float = field(default=0.25, metadata={"help": "fresh examples an iteration, as a share of the sample"})
    sample: int = field(default=10_000, metadata={"help": "largest sample; its kernel matrix takes 4 sample² bytes"})
    validation: float = field(default=1.0, metadata={"help": "size of the validation sample, as a share of the sample"})
    eta1: float = field(default=0.5, metadata={"help": "share of the gain on the sample that validation must show"})
    eta2: float = field(default=1e-3, metadata={"help": "smallest ‖d‖ for which a point is accepted, as a share of λ·radius"})
    factor: float = field(default=2.0, metadata={"help": "by which the trust radius grows and shrinks (the paper's γ)"})
    delta: float = field(default=2.0, metadata={"help": "first trust radius, in lengths of the first step"})
    least: float = field(default=1e-4, metadata={"help": "shortest step, as a share of the trust radius"})
    m1: float = field(default=0.1, metadata={"help": "the search ends where the slope is below m1 ‖d‖², m2 < m1 < 1/2"})
    m2: float = field(default=0.02, metadata={"help": "a step of length t must gain m2 ‖d‖² t"})


@dataclass
class _Function:
    """Σ coef_i φ(x_i) over S and its responses K(S, S)·coef; (s,) both."""

    coef: Floats
    response: Floats

    def inner(self, other: _Function) -> float:
        return float(self.coef @ other.response)

    def times(self, factor: float) -> _Function:
        """In arrays of its own: ``response`` may be added to in place."""
        return _Function(factor * self.coef, factor * self.response)


@dataclass
class _State:
    """S is ``gram.rows``, s of the ``gram.most`` examples at which it stops growing.

    ``alpha`` is the point; ``at`` where the next subgradient is taken; ``p`` = −d; ``hinge`` ω_i y_i [hinge_i > 0], s times the
    newest v; ``mean`` s·v̄. ``order`` (n,) is that in which examples join, ``place`` (n,) each one's place in it. ``bound`` is
    the best dual value known of f_S, ``bound_at`` s times its v.
    """

    problem: Problem
    options: Options
    eps: float
    seed: int
    lam: float
    weight: Floats
    order: Ints
    place: Ints
    gram: GrowingGram
    alpha: _Function
    at: _Function
    p: _Function
    hinge: _Function
    mean: _Function
    radius: float
    first_radius: float
    last_step: float = np.inf
    bound: float = 0.0
    bound_at: Floats | None = None
    gap: float = np.nan
    steps: int = 0
    checks: GapChecks = field(default_factory=GapChecks)
    completed: bool = False


def start(problem: Problem, options: Options, eps: float, seed: int) -> _State:
    """A fresh state at α = 0, with no sample yet. Raises UsageError for an option that cannot be."""
    _check(options)
    n = problem.n
    lam = problem.lam
    order = permutation(seed, _SAMPLE, n)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    alpha, p, hinge, mean = (_Function(np.empty(0), np.empty(0)) for _ in range(4))
    return _State(
        problem=problem,
        options=options,
        eps=eps,
        seed=seed,
        lam=lam,
        weight=problem.omega,
        order=order,
        place=place,
        gram=GrowingGram(gram_engine(problem.rows, problem.kernel), min(n, options.sample)),
        alpha=alpha,
        at=alpha,
        p=p,
        hinge=hinge,
        mean=mean,
        radius=_largest_radius(lam),
        first_radius=_largest_radius(lam),
    )


def _check(options: Options) -> None:
    for key in ("iterations", "first", "sample"):
        if getattr(options, key) < 1:
            raise UsageError(f"-O {key}={getattr(options, key)}: must be at least 1")
    for key in ("growth", "validation", "eta1", "eta2", "delta", "least"):
        if not 0 <= getattr(options, key) <= _LARGEST:
            raise UsageError(f"-O {key}={getattr(options, key):g}: must lie in 0 … {_LARGEST:g}")
    if not 1 < options.factor <= _LARGEST:
        raise UsageError(f"-O factor={options.factor:g}: must be greater than 1, and at most {_LARGEST:g}")
    check_search(options.m1, options.m2)


@np.errstate(over="ignore", invalid="ignore")  # where kernel values overflow
def advance(state: _State, budget: int) -> Progress:
    """At most ``budget`` more iterations; one, while S grows: the next then takes longer than any before."""
    size = _size(state)
    for _ in range(budget):
        if state.checks.done or state.checks.stalled or state.completed or _size(state) > size:
            break
        state.steps += 1
        with parallel.leavable():
            if size == 0:
                _extend(state, state.options.first, _Function(np.empty(0), np.empty(0)))
                _renew(state, 0)
            _iterate(state)
    return Progress(
        steps=state.steps,
        kernel_evaluations=state.gram.engine.evaluations,
        gap=state.gap,
        done=state.checks.done,
        completed=state.completed,
        stalled=state.checks.stalled,
        n_support=int(np.count_nonzero(state.alpha.coef)),
    )


def solution(state: _State) -> Solution:
    """α so far, and where S is the whole training set, the best dual point."""
    used = np.flatnonzero(state.alpha.coef)
    origin = state.gram.rows[used]
    alpha = None
    if _size(state) == state.problem.n and state.bound_at is not None:
        alpha = np.empty(state.problem.n)
        alpha[state.gram.rows] = state.problem.y[state.gram.rows] * state.bound_at / (state.problem.n * state.lam)
    return Solution(origin, state.alpha.coef[used], 0.0, alpha=alpha)


# --- the sample -----------------------------------------------------------------------------------------------------------


def _largest_radius(lam: float) -> float:
    """f(0) = 1, so the optimum has (λ/2)‖w‖² ≤ 1."""
    return sqrt(2.0 / lam)


def _size(state: _State) -> int:
    return len(state.gram.rows)


def _extend(state: _State, fresh: int, move: _Function) -> None:
    """The next ``fresh`` examples join S, as far as there is room, with coefficients 0."""
    old = _size(state)
    new = min(old + fresh, state.gram.most)
    if new == old:
        return
    state.gram.extend(state.order[old:new])
    state.bound, state.bound_at = 0.0, None
    for function in (state.alpha, state.p, state.hinge, state.mean, move):
        _stretch(state.gram, function, new)


def _renew(state: _State, old: int) -> None:
    """v and v̄ get the parts that the examples from place ``old`` on have at α; p = λᾱ − v̄ follows.

    So p is made of subgradients of the new f_S.
    """
    S, new = state.gram.rows, _size(state)
    if new == old:
        return
    short = (state.problem.y[S] * state.alpha.response)[old:] < 1.0
    places = old + np.flatnonzero(short)
    hinge = (state.weight * state.problem.y)[S[places]]
    state.p = _sum(1.0, state.p, 1.0 / max(1, old), state.mean)
    for function in (state.hinge, state.mean):
        function.coef[places] = hinge
        state.gram.apply(places, hinge, function.response)
    state.p = _sum(1.0, state.p, -1.0 / new, state.mean)


def _stretch(gram: GrowingGram, function: _Function, new: int) -> None:
    """The same function over the larger S."""
    old, used = len(function.coef), np.flatnonzero(function.coef)
    response = np.zeros(new)
    response[:old] = function.response
    gram.apply(used, function.coef[used], response, first=old)
    function.response = response
    function.coef = np.concatenate([function.coef, np.zeros(new - old)])


# --- an iteration ---------------------------------------------------------------------------------------------------------


def _iterate(state: _State) -> None:
    old, square = _size(state), _turn(state)
    if old == state.gram.most and (state.gap <= state.eps or not square > 0):
        if state.gram.most == state.problem.n:
            _look_again(state)
        else:  # f_S says nothing certain about f
            state.completed = True
        return
    t, tried = _search(state, square) if square > 0 else (0.0, 0.0)
    move = state.p.times(-tried)
    _extend(state, ceil(state.options.growth * _size(state)), move)
    trusted = t > 0 and sqrt(square) > state.options.eta2 * state.lam * state.radius
    if trusted and _validated(state, move):
        state.alpha = _sum(1.0, state.alpha, 1.0, move)
        state.radius = min(state.options.factor * state.radius, _largest_radius(state.lam))
    else:
        state.radius /= state.options.factor
    state.at = state.alpha if t > 0 else _sum(1.0, state.alpha, 1.0, move)
    _renew(state, old)
    state.completed = state.radius < _NO_RADIUS * state.first_radius or state.steps >= state.options.iterations


def _turn(state: _State) -> float:
    """p becomes the least-norm point of [g, p], g the subgradient at hand; returns ‖p‖²."""
    s, at, p, hinge = _size(state), state.at, state.p, state.hinge
    wanted = _hinges(state, at)
    changed = np.flatnonzero(wanted != hinge.coef)
    state.gram.apply(changed, (wanted - hinge.coef)[changed], hinge.response)
    hinge.coef = wanted
    g = _sum(state.lam, at, -1.0 / s, hinge)
    theta = least_norm(np.array([[g.inner(g), g.inner(p)], [g.inner(p), p.inner(p)]]), np.array([1.0, 0.0]))
    state.p = _sum(theta[0], g, theta[1], p)
    state.mean = _sum(theta[0], hinge, theta[1], state.mean)
    square = state.p.inner(state.p)
    f = _objective(state, state.alpha)
    if theta[1] > 0 and square / (2.0 * state.lam) < FRESH * (f - _bound(state, state.mean)):
        state.p, state.mean = g, hinge.times(1.0)
        square = g.inner(g)
    _bound(state, hinge)
    state.gap = relative_gap(f, state.bound)
    return square


def _hinges(state: _State, at: _Function) -> Floats:
    """ω_i y_i [hinge_i > 0] over S."""
    S = state.gram.rows
    y = state.problem.y[S]
    return np.where(y * at.response < 1.0, state.weight[S] * y, 0.0)


def _sum(a: float, one: _Function, b: float, other: _Function) -> _Function:
    return _Function(a * one.coef + b * other.coef, a * one.response + b * other.response)


def _search(state: _State, square: float) -> tuple[float, float]:
    """Wolfe's search on f_S inside the trust radius; (0, trial) where no step is long enough. The first sets the radius."""
    S, options = state.gram.rows, state.options
    y, weight = state.problem.y[S], state.weight[S] / _size(state)
    line = Line(y * state.alpha.response, -y * state.p.response, weight, state.lam, -state.alpha.inner(state.p), square)
    fresh = state.last_step == np.inf
    longest = state.radius / sqrt(square)
    shortest = (_LEAST_FIRST if fresh else options.least) * longest
    t, tried = search(line, state.last_step, shortest, longest, options.m1, options.m2)
    if t > 0:
        state.last_step = t
        if fresh:
            state.radius = state.first_radius = min(state.radius, options.delta * t * sqrt(square))
    return t, tried


def _validated(state: _State, move: _Function) -> bool:
    """Δ_S < 0 and Δ_T ≤ η₁ Δ_S, from α to α + move."""
    S = state.gram.rows
    quadratic = state.lam * (state.alpha.inner(move) + 0.5 * move.inner(move))
    change = _hinge_change(state, S, state.alpha.response, move.response)
    on_sample = quadratic + float(change.mean())
    size = min(state.problem.n, max(1, round(state.options.validation * len(S))))
    T = permutation(state.seed, _VALIDATION + state.steps, state.problem.n)[:size]
    place = state.place[T]
    known = place < len(S)
    outside = _changes_outside(state, T[~known], move)
    on_validation = quadratic + (float(change[place[known]].sum()) + float(outside.sum())) / len(T)
    return on_sample < 0 and on_validation <= state.options.eta1 * on_sample


def _changes_outside(state: _State, examples: Ints, move: _Function) -> Floats:
    """The change of the hinge of examples that are not in S."""
    engine = state.gram.engine
    used = np.flatnonzero((state.alpha.coef != 0) | (move.coef != 0))
    responses = np.zeros((len(examples), 2))
    weights = np.column_stack([state.alpha.coef[used], move.coef[used]])
    engine.apply(engine.packed.take(examples), state.gram.rows[used], weights, responses)
    return _hinge_change(state, examples, responses[:, 0], responses[:, 1])


def _hinge_change(state: _State, examples: Ints, response: Floats, by: Floats) -> Floats:
    y, weight = state.problem.y[examples], state.weight[examples]
    change: Floats = weight * (np.maximum(0.0, 1.0 - y * (response + by)) - np.maximum(0.0, 1.0 - y * response))
    return change


# --- the gap --------------------------------------------------------------------------------------------------------------


def _objective(state: _State, alpha: _Function) -> float:
    """f_S(α)."""
    S = state.gram.rows
    loss = np.maximum(0.0, 1.0 - state.problem.y[S] * alpha.response)
    return 0.5 * state.lam * alpha.inner(alpha) + float(state.weight[S] @ loss) / len(S)


def _look_again(state: _State) -> None:
    """Ends the run, if the gap is within eps by fresh kernel values; else p and v begin anew from them."""
    s, alpha = _size(state), state.alpha
    bound_at = np.zeros(s) if state.bound_at is None else state.bound_at
    alpha.response, K_bound = state.gram.products_in_float64(alpha.coef, bound_at)
    value = _dual_value(state, _Function(bound_at, K_bound))
    state.gap = state.checks.take(_objective(state, alpha), value, bound_at, state.eps)
    state.bound, state.bound_at = state.checks.bound, state.checks.bound_at
    out_of_steps = state.steps >= state.options.iterations
    state.completed = not (state.checks.done or state.checks.stalled) and (state.checks.indefinite or out_of_steps)
    if not (state.checks.done or state.checks.stalled or state.completed):
        hinge = _hinges(state, alpha)
        state.at, state.hinge = alpha, _Function(hinge, state.gram.product(hinge))
        state.mean = state.hinge.times(1.0)
        state.p = _sum(state.lam, alpha, -1.0 / s, state.hinge)


def _dual_value(state: _State, point: _Function) -> float:
    """Of v = point/s."""
    s = _size(state)
    return float(state.problem.y[state.gram.rows] @ point.coef) / s - point.inner(point) / (2.0 * state.lam * s * s)


def _bound(state: _State, point: _Function) -> float:
    """The dual value of v = point/s, kept if it is the best for this S."""
    value = _dual_value(state, point)
    if value > state.bound:
        state.bound, state.bound_at = value, point.coef
    return value
