"""Wolfe's method of conjugate subgradients on the full objective: deterministic, with a bundle and resets.

Solves    min f(α) = (λ/2) αᵀKα + (1/n) Σ ω_i max(0, 1 − y_i (Kα)_i)      λ = 1/(n·mean C), ω_i = C_i/mean C, no bias
by        d = −(least-norm point of the bundle's hull), a step by Wolfe's search, the new subgradient joins the bundle
Stops     relative gap (conjugate.py) of f and the best dual value D so far ≤ eps, by fresh float64 kernel values in the end:
          where these do not bear it out the run goes on from them, in float64, and stalls the third time, or where they gain
          nothing; or after ``iterations``
Memory    a bundle of b subgradients: 4b + 17 vectors of length n; columns of K that are used again, within ``cache_mb``
Paper     Wolfe, Mathematical Programming Study 3 (1975) 145–173; the objective as in Zhang & Sen, eq. (1)

A subgradient is g = Σ u_i φ(x_i) with u = λα − v, v_i = ω_i y_i [hinge_i > 0]/n. Norms and inner products are those of such
functions, uᵀKu, and not of the numbers α: that is the geometry in which f is strongly convex whatever the rank of K, and an
iteration needs K only times the change of v, which is sparse. On 8,000 rows of a9a at C = 1, 2.6 n² kernel values come within
0.5 % of the optimum; with the norm of α and a memory of two, 8 % were left after 100 n².

Each v of the bundle is feasible for the dual, so their mean v̄ by the hull's weights is, and its value comes free of kernel
values: D(v̄) = Σ y_i v̄_i − v̄ᵀKv̄/2λ. The gap f − D is at least ‖d‖²/2λ; what is over is how far the bundle's points lie from
the current one. Where that is the greater part, the bundle is reset to its newest member. Where no step decreases f, the
subgradient just beyond joins the bundle while α stays.

A step of ``advance`` is an iteration, or where v changed in many examples, a part of its product.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from svmkit.data import Floats, Ints
from svmkit.engine.conjugate import FRESH, GapChecks, Line, check_search, least_norm, relative_gap, search
from svmkit.engine.gram import KeptColumns, gram_engine
from svmkit.engine.kernels import Engine, afresh
from svmkit.engine.rng import permutation
from svmkit.errors import UsageError
from svmkit.problem import Bias, Problem, Solution, as_expansion
from svmkit.trace import Progress

SUMMARY = "Wolfe's conjugate subgradients: deterministic bundle method on the primal, no bias"
PAPER = "Wolfe, Math. Programming Study 3 (1975) 145–173"
EXACT = False
ALONE = True
BIASES: tuple[Bias, ...] = ("none",)
ACCURACY: float | None = 2e-3

#: Columns of a product that one step of ``advance`` takes.
_COLUMNS = 2048
#: The least length of a step, as a share of the greatest: below it only a subgradient is taken.
_LEAST_LENGTH = 1e-10


@dataclass(frozen=True)
class Options:
    """Constants of the method; m1 and m2 are those of the search (engine/conjugate.py)."""

    iterations: int = field(default=500, metadata={"help": "iterations after which a run is complete"})
    bundle: int = field(default=20, metadata={"help": "subgradients kept (at least 2); older ones are merged"})
    m1: float = field(default=0.1, metadata={"help": "the search ends where the slope is below m1 ‖d‖², m2 < m1 < 1/2"})
    m2: float = field(default=0.02, metadata={"help": "a step of length t must gain m2 ‖d‖² t"})
    cache_mb: float = field(default=100.0, metadata={"help": "MB of kernel columns kept (-m)"})


@dataclass
class _Member:
    """A subgradient Σ u_i φ(x_i) and the dual point v it came from, each with its product with K; (n,) arrays."""

    u: Floats
    Ku: Floats
    v: Floats
    Kv: Floats


@dataclass
class _State:
    """``alpha`` and its response; ``v`` and Kv of the newest subgradient, whose product lacks the columns ``todo``.

    ``evaluations`` are the kernel values that products took, whether ``columns`` had kept them or not.
    The subgradient is taken at α + probe·(the last direction).
    """

    problem: Problem
    options: Options
    eps: float
    columns: KeptColumns
    evaluations: int
    lam: float
    weight: Floats
    order: Ints
    alpha: Floats
    response: Floats
    v: Floats
    Kv: Floats
    wanted: Floats
    todo: Ints
    direction: Floats
    direction_response: Floats
    members: list[_Member] = field(default_factory=list)
    gram: Floats = field(default_factory=lambda: np.empty((0, 0)))
    theta: Floats = field(default_factory=lambda: np.empty(0))
    probe: float = 0.0
    last_step: float = np.inf
    bound: float = 0.0
    bound_at: Floats | None = None
    gap: float = np.nan
    steps: int = 0
    iterations: int = 0
    checks: GapChecks = field(default_factory=GapChecks)
    completed: bool = False
    stalled: bool = False


def start(problem: Problem, options: Options, eps: float, seed: int) -> _State:
    """A fresh state at α = 0. ``seed`` is for the order in which columns of a product come, which decides nothing but the
    solution while the first is under way. Raises UsageError for an option that cannot be."""
    _check(options)
    n, zero = problem.n, np.zeros(problem.n)
    state = _State(
        problem=problem,
        options=options,
        eps=eps,
        columns=KeptColumns(gram_engine(problem.rows, problem.kernel), options.cache_mb),
        evaluations=0,
        lam=problem.lam,
        weight=problem.omega / n,
        order=permutation(seed, 0, n),
        alpha=zero.copy(),
        response=zero.copy(),
        v=zero.copy(),
        Kv=zero.copy(),
        wanted=zero,
        todo=np.empty(0, np.int64),
        direction=zero,
        direction_response=zero,
    )
    _want(state)
    return state


def _check(options: Options) -> None:
    if options.iterations < 1:
        raise UsageError(f"-O iterations={options.iterations}: must be at least 1")
    if options.bundle < 2:
        raise UsageError(f"-O bundle={options.bundle}: must be at least 2")
    check_search(options.m1, options.m2)


def advance(state: _State, budget: int) -> Progress:
    """At most ``budget`` more steps."""
    left = budget
    while left > 0 and not (state.checks.done or state.completed or state.stalled):
        left -= 1
        state.steps += 1
        columns, state.todo = state.todo[:_COLUMNS], state.todo[_COLUMNS:]
        state.columns.apply(columns, (state.wanted - state.v)[columns], state.Kv)
        state.evaluations += state.problem.n * len(columns)
        state.v[columns] = state.wanted[columns]
        if len(state.todo) == 0:
            _iterate(state)
    return Progress(
        steps=state.steps,
        kernel_evaluations=state.evaluations,
        gap=state.gap,
        done=state.checks.done,
        completed=state.completed,
        stalled=state.stalled,
        n_support=int(np.count_nonzero(state.alpha)),
    )


def solution(state: _State) -> Solution:
    """α so far, and the best dual point; while the first product is under way, the best multiple of the part that is known."""
    alpha = state.alpha
    if state.iterations == 0:
        square = float(state.v @ state.Kv)
        alpha = state.v * _search(state, state.Kv, square)[0] if square > 0 else alpha
    dual = None if state.bound_at is None else state.problem.y * state.bound_at / state.lam
    return as_expansion(alpha, 0.0, responses=state.response if state.checks.done else None, alpha=dual)


# --- an iteration ---------------------------------------------------------------------------------------------------------


def _want(state: _State) -> None:
    """Says which v the next subgradient has."""
    y = state.problem.y
    at = state.response + state.probe * state.direction_response
    state.wanted = np.where(y * at < 1.0, state.weight * y, 0.0)
    state.todo = state.order[(state.wanted != state.v)[state.order]]


def _iterate(state: _State) -> None:
    """The new subgradient joins the bundle; a direction, a step."""
    _join(state)
    f = _objective(state)
    p, square = _direction(state, f)
    state.gap = relative_gap(f, state.bound)
    state.iterations += 1
    state.completed = state.iterations >= state.options.iterations
    if state.gap <= state.eps:
        _look_again(state)
        return
    state.stalled = not square > 0
    if state.stalled or state.completed:
        return
    state.direction, state.direction_response = -p.u, -p.Ku
    t, tried = _search(state, state.direction_response, square)
    if t > 0:
        state.alpha += t * state.direction
        state.response += t * state.direction_response
        state.last_step = t
    state.probe = tried - t
    _want(state)


def _objective(state: _State) -> float:
    loss = np.maximum(0.0, 1.0 - state.problem.y * state.response)
    return float(0.5 * state.lam * (state.alpha @ state.response) + state.weight @ loss)


def _dual_value(state: _State, v: Floats, Kv: Floats) -> float:
    return float(state.problem.y @ v) - float(v @ Kv) / (2.0 * state.lam)


def _look_again(state: _State) -> None:
    """Ends the run, if the gap is within eps by fresh kernel values; else all but α and the bound begins anew, from them."""
    problem, n = state.problem, state.problem.n
    bound_at = np.zeros(n) if state.bound_at is None else state.bound_at
    (state.response, K_bound), evaluations = afresh(problem.rows, problem.kernel, state.alpha, bound_at)
    state.evaluations += evaluations
    state.gap = state.checks.take(_objective(state), _dual_value(state, bound_at, K_bound), bound_at, state.eps)
    state.bound, state.bound_at = state.checks.bound, state.checks.bound_at
    state.stalled = state.checks.stalled
    state.completed = not state.checks.done and (state.completed or state.checks.indefinite)
    if state.checks.done or state.stalled or state.completed:
        return
    if state.columns.engine.real == "f4":
        state.columns = KeptColumns(Engine(problem.rows, problem.kernel, "f8"), state.options.cache_mb)
    state.v, state.Kv, state.probe = np.zeros(n), np.zeros(n), 0.0
    state.members, state.gram, state.theta = [], np.empty((0, 0)), np.empty(0)
    _want(state)


def _search(state: _State, Kd: Floats, square: float) -> tuple[float, float]:
    """Wolfe's search from α along d, given K·d and ‖d‖².

    The optimum lies in the ball of radius √(2/λ), so no step is longer than across it.
    """
    y = state.problem.y
    line = Line(y * state.response, y * Kd, state.weight, state.lam, float(state.alpha @ Kd), square)
    longest = 2.0 * sqrt(2.0 / state.lam) / sqrt(square)
    return search(line, state.last_step, _LEAST_LENGTH * longest, longest, state.options.m1, state.options.m2)


# --- the bundle -----------------------------------------------------------------------------------------------------------


def _join(state: _State) -> None:
    """Adds the subgradient at hand; where the bundle is full, all but the newest are merged by their weights first."""
    if len(state.members) >= state.options.bundle:
        _merge(state)
    lam, probe = state.lam, state.probe
    u = lam * (state.alpha + probe * state.direction) - state.v
    Ku = lam * (state.response + probe * state.direction_response) - state.Kv
    b = len(state.members)
    gram = np.empty((b + 1, b + 1))
    gram[:b, :b] = state.gram
    gram[b, :b] = gram[:b, b] = [member.u @ Ku for member in state.members]
    gram[b, b] = u @ Ku
    state.gram = gram
    state.theta = np.append(state.theta, 0.0) if b else np.ones(1)
    state.members.append(_Member(u, Ku, state.v.copy(), state.Kv.copy()))


def _merge(state: _State) -> None:
    """The members of least weight become one, so that half the room is free again; the hull keeps its least-norm point."""
    b = len(state.members)
    by_weight = np.argsort(state.theta, kind="stable")
    out, kept = by_weight[: b // 2 + 1], np.sort(by_weight[b // 2 + 1 :])
    share = state.theta[out].sum()
    mix = np.zeros((len(kept) + 1, b))
    mix[0, out] = state.theta[out] / share if share > 0 else 1.0 / len(out)
    mix[1 + np.arange(len(kept)), kept] = 1.0
    state.members = [_mean(state.members, weights) for weights in mix]
    state.gram = mix @ state.gram @ mix.T
    state.theta = np.concatenate([[share], state.theta[kept]])


def _mean(members: list[_Member], theta: Floats) -> _Member:
    used = [members[j] for j in np.flatnonzero(theta)]
    share = theta[theta != 0]

    def mix(arrays: list[Floats]) -> Floats:
        total: Floats = share[0] * arrays[0]
        for weight, array in zip(share[1:], arrays[1:], strict=True):
            total += weight * array
        return total

    return _Member(mix([m.u for m in used]), mix([m.Ku for m in used]), mix([m.v for m in used]), mix([m.Kv for m in used]))


def _direction(state: _State, f: float) -> tuple[_Member, float]:
    """The least-norm point of the bundle's hull and its squared norm; resets a bundle that has grown stale."""
    while True:
        state.theta = least_norm(state.gram, state.theta)
        p = _mean(state.members, state.theta)
        square = float(p.u @ p.Ku)
        value = _dual_value(state, p.v, p.Kv)
        if value > state.bound:
            state.bound, state.bound_at = value, p.v
        if len(state.members) == 1 or square / (2.0 * state.lam) >= FRESH * (f - value):
            return p, square
        state.members, state.gram, state.theta = state.members[-1:], state.gram[-1:, -1:], np.ones(1)
