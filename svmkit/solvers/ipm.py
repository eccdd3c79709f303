"""Interior point for linear C-SVC of few features, so after a feature map for any kernel: exact where dual methods crawl.

Solves    min  ½‖w‖² + Σ C_i ξ_i    s.t.  y_i (⟨w, x_i⟩ + b) + ξ_i − s_i = 1,  ξ, s ≥ 0,   with its dual 0 ≤ α ≤ C, yᵀα = 0
          (b and that equality only with a free bias)
Step      Mehrotra's predictor and corrector, then Gondzio's corrections, on w = Σ α_i y_i x_i, yᵀα = 0, the constraint above,
          α_i s_i = μ and (C_i − α_i) ξ_i = μ. With θ = 1/(s/α + ξ/(C − α)) all unknowns but w and b drop out:
          (I + XᵀΘX) Δw + XᵀΘ1 Δb = …,  1ᵀΘX Δw + 1ᵀΘ1 Δb = …: a Cholesky factor of order d, one refinement
Stops     when α, its small distances from a bound closed, violates KKT by at most eps, w made anew from it; stalled where
          steps have no length left or rounding leaves no factor
Memory    the rows, a few d × d matrices, some vectors of length n; n·d² multiplications a step, 10 to 35 steps in all
Paper     Ferris & Munson, SIAM J. Optimization 13 (2002) 783–804, whose matrix D + ZZᵀ of order n this one of order d replaces
          (Sherman, Morrison & Woodbury); Mehrotra, SIAM J. Optimization 2 (1992) 575–601; Gondzio, Computational
          Optimization and Applications 6 (1996) 137–156
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit.certificate import kkt_violation
from svmkit.data import Floats, Ints, Rows
from svmkit.engine import linear
from svmkit.engine.weighted import weighted_gram
from svmkit.problem import LINEAR, Bias, Problem, Solution, as_one_row
from svmkit.trace import Progress

SUMMARY = "interior point: the exact optimum of linear problems with few features, so after a map for any kernel"
PAPER = "Ferris & Munson, SIAM J. Optimization 13 (2002) 783–804; Mehrotra (1992)"
EXACT = True
BIASES: tuple[Bias, ...] = ("free", "none")

#: With more features than this a step's n·d² and d³ multiplications no longer pay.
MOST_FEATURES = 4096
#: A step goes this share of the way to the boundary.
_SHARE = 0.995
#: Steps shorter than this so many times in a row, or so many in all: nothing is gained any more.
_SHORT, _PATIENCE, MOST_STEPS = 1e-6, 3, 300
#: Corrections of a step at most, how much longer they try to make it, and how much they must.
_CORRECTIONS, _WISH, _WORTH = 3, 0.5, 0.025
#: Margins of free rows are off by about √(μ/C); from this many times eps on, a look may pay.
_LOOK_FROM = 30.0


@dataclass(frozen=True)
class Options:
    """None: nothing needs to be set."""


def supports(problem: Problem) -> str | None:
    """Takes linear problems in which at most 4096 features occur."""
    if problem.kernel.kind != LINEAR:
        return (
            f"solver ipm works on w itself, so for the {problem.kernel.name} kernel it needs a feature map in front: "
            "--map nystroem or --map fourier; or use -t 0"
        )
    d = len(linear.feature_names(problem.rows))
    if d > MOST_FEATURES:
        return (
            f"solver ipm factors a matrix whose order is the number of features, {d} here; it takes at most {MOST_FEATURES}. "
            f"Use --solver sdca; or after a map, a --dim of {MOST_FEATURES} or less"
        )
    return None


class _Closed(NamedTuple):
    """α with its small distances from a bound closed, w and rho made from it."""

    alpha: Floats
    w: Floats
    rho: float


class _Point(NamedTuple):
    """All unknowns, or a change of them; ``beta`` is C − α, kept by itself because it may be tiny."""

    w: Floats
    b: float
    alpha: Floats
    beta: Floats
    xi: Floats
    s: Floats

    def complementarity(self) -> float:
        """μ: the mean of αs and βξ."""
        return float(self.alpha @ self.s + self.beta @ self.xi) / (2 * len(self.s))

    def moved(self, step: _Point, length: float) -> _Point:
        return _Point(
            w=self.w + length * step.w,
            b=self.b + length * step.b,
            alpha=self.alpha + length * step.alpha,
            beta=self.beta + length * step.beta,
            xi=self.xi + length * step.xi,
            s=self.s + length * step.s,
        )


@dataclass
class _State:
    """``rows, y, upper``: those of the problem with C_i > 0 (``used``), features renumbered 1, 2, …; w's place 0 is unused.

    ``closed`` violates KKT least of all so far, by ``violation``.
    """

    problem: Problem
    eps: float
    used: Ints
    rows: Rows
    y: Floats
    upper: Floats
    names: NDArray[np.int32]
    point: _Point
    closed: _Closed | None = None
    steps: int = 0
    products: int = 0
    short: int = 0
    violation: float = nan
    done: bool = False
    stalled: bool = False

    @property
    def free(self) -> bool:
        """Whether there is a b."""
        return self.problem.bias == "free"

    def dots(self, w: Floats) -> Floats:
        self.products += self.rows.n
        return linear.dots(self.rows, w)

    def fold(self, weights: Floats) -> Floats:
        return linear.fold(self.rows, weights, self.rows.n_features + 1)


def start(problem: Problem, options: Options, eps: float, seed: int) -> _State:
    """A fresh state: w = 0, each α in the middle of its box or, with a free bias, where both classes balance."""
    used = np.flatnonzero(problem.upper > 0)
    names = linear.feature_names(problem.rows)
    rows = problem.rows
    if rows.form == "sparse":
        numbers = (np.searchsorted(names, rows.indices) + 1).astype(np.int32)
        rows = rows._replace(indices=numbers, n_features=len(names))
    if len(used) < problem.n:
        rows = rows.take(used)
    y, upper, n = problem.y[used], problem.upper[used], len(used)
    share = np.full(n, 0.5)
    plus, minus = float(upper[y > 0].sum()), float(upper[y < 0].sum())
    one_sided = problem.bias == "free" and min(plus, minus) == 0
    if problem.bias == "free" and not one_sided:
        share[y > 0] *= min(1.0, minus / plus)
        share[y < 0] *= min(1.0, plus / minus)
    alpha = np.zeros(n) if one_sided else share * upper
    point = _Point(np.zeros(len(names) + 1), 0.0, alpha, upper - alpha, np.full(n, 2.0), np.ones(n))
    state = _State(problem, eps, used, rows, y, upper, names, point)
    if one_sided:  # yᵀα = 0 leaves α = 0, and b alone gives every row its margin
        state.closed = _Closed(point.alpha, point.w, float(np.sign(minus - plus)))
        state.done, state.violation = True, 0.0
    return state


@np.errstate(over="ignore", invalid="ignore")  # of features around 1e8 and more; what comes of it is no progress
def advance(state: _State, budget: int) -> Progress:
    """At most ``budget`` more steps."""
    for _ in range(budget):
        if state.done or state.stalled:
            break
        _step(state)
    return Progress(
        steps=state.steps,
        kernel_evaluations=max(1, state.products),
        violation=state.violation,
        done=state.done,
        stalled=state.stalled,
        n_support=int(state.point.w.any()),
    )


def solution(state: _State) -> Solution:
    """w as one row, with α; before the end as the interior point has them."""
    p = state.point
    found = state.closed if state.closed is not None and state.done else _Closed(p.alpha, p.w, -p.b)
    alpha = _of_all(state, found.alpha)
    return as_one_row(found.w[1:], state.names, state.problem.rows.n_features, found.rho, alpha)


def nearest(state: _State) -> tuple[Floats, float]:
    """The feasible α (n,) of least violation so far, and that; 0 and infinity where there is none."""
    if state.closed is None:
        return np.zeros(state.problem.n), inf
    return _of_all(state, state.closed.alpha), state.violation


def _of_all(state: _State, alpha: Floats) -> Floats:
    found = np.zeros(state.problem.n)
    found[state.used] = alpha
    return found


# --- one step -------------------------------------------------------------------------------------------------------------


def _step(state: _State) -> None:
    """Predictor, corrector, the way to the boundary, and a look whether that is near enough."""
    p = state.point
    mu = p.complementarity()
    try:
        newton = _Newton(state)
    except np.linalg.LinAlgError:
        state.stalled = True
        return
    ahead = newton.step(-p.alpha * p.s, -p.beta * p.xi)
    target = mu * (p.moved(ahead, _way(p, ahead)).complementarity() / mu) ** 3
    step = _corrected(newton, p, ahead, target)
    length = min(1.0, _SHARE * _way(p, step))
    state.point = p.moved(step, length)
    state.steps += 1
    state.short = state.short + 1 if length < _SHORT else 0
    if mu <= (_LOOK_FROM * state.eps) ** 2 * float(state.upper.mean()):
        _close(state)
    state.stalled = not state.done and (state.short >= _PATIENCE or state.steps >= MOST_STEPS)


def _corrected(newton: _Newton, p: _Point, ahead: _Point, target: float) -> _Point:
    """Mehrotra's step to μ = ``target``, and then Gondzio's corrections, as long as each lets it be clearly longer.

    A correction asks for a step ``_WISH`` longer, and brings products that this would leave far from the target nearer to it.
    """
    r_s = target - p.alpha * p.s - ahead.alpha * ahead.s
    r_xi = target - p.beta * p.xi - ahead.beta * ahead.xi
    step = newton.step(r_s, r_xi)
    way = _way(p, step)
    for _ in range(_CORRECTIONS):
        if way == 1.0:
            break
        wished = p.moved(step, min(1.0, way + _WISH))
        r_s, r_xi = r_s + _missing(wished.alpha * wished.s, target), r_xi + _missing(wished.beta * wished.xi, target)
        other = newton.step(r_s, r_xi)
        longer = _way(p, other)
        if longer < way + _WORTH:
            break
        step, way = other, longer
    return step


def _missing(products: Floats, target: float) -> Floats:
    """What brings ``products`` to 0.1 … 10 times the target, cut where they are far too large."""
    missing: Floats = np.maximum(np.clip(products, 0.1 * target, 10.0 * target) - products, -10.0 * target)
    return missing


class _Newton:
    """Newton's equations at a point, with their matrix factored."""

    def __init__(self, state: _State) -> None:
        p, y = state.point, state.y
        self.state = state
        self.gap_w = p.w - state.fold(y * p.alpha)
        self.gap_b = float(y @ p.alpha)
        self.gap_margin = y * (state.dots(p.w) + p.b) + p.xi - p.s - 1.0
        self.theta = 1.0 / (p.xi / p.beta + p.s / p.alpha)
        matrix = weighted_gram(state.rows, self.theta)
        if not np.isfinite(matrix).all():
            raise np.linalg.LinAlgError
        matrix.flat[:: len(matrix) + 1] += 1.0
        self.inverse = np.linalg.inv(np.linalg.cholesky(matrix))
        if state.free:
            self.border = state.fold(self.theta)
            self.across = self._solve_w(self.border)
            # 1ᵀΘ1 − border·across as the sum of squares it is: the difference is lost to rounding where X spans nearly 1
            rest = 1.0 - state.dots(self.across)
            self.corner = float(self.theta @ rest**2) + float(self.across @ self.across)

    def step(self, r_s: Floats, r_xi: Floats) -> _Point:
        """The change that makes up for ``r_s`` in αs, ``r_xi`` in βξ, and for the gaps of the linear equations."""
        state, p, y, theta = self.state, self.state.point, self.state.y, self.theta
        q = r_s / p.alpha - r_xi / p.beta - self.gap_margin
        right_w = state.fold(y * theta * q) - self.gap_w
        right_b = float((y * theta) @ q) + self.gap_b
        dw, db = self._solve(right_w, right_b)
        weighted = theta * (state.dots(dw) + db)
        more_w, more_b = self._solve(right_w - dw - state.fold(weighted), right_b - float(weighted.sum()))
        dw, db = dw + more_w, db + more_b
        alpha = theta * (q - y * (state.dots(dw) + db))
        return _Point(dw, db, alpha, -alpha, (r_xi + p.xi * alpha) / p.beta, (r_s - p.s * alpha) / p.alpha)

    def _solve(self, right_w: Floats, right_b: float) -> tuple[Floats, float]:
        w = self._solve_w(right_w)
        if not self.state.free:
            return w, 0.0
        b = (right_b - float(self.border @ w)) / self.corner
        return w - b * self.across, b

    def _solve_w(self, right: Floats) -> Floats:
        """(I + XᵀΘX)⁻¹ right, in places 1 …"""
        out = np.zeros_like(right)
        out[1:] = self.inverse.T @ (self.inverse @ right[1:])
        return out


def _way(p: _Point, step: _Point) -> float:
    """The longest step, up to 1, that keeps α, β, ξ and s from falling below 0."""
    way = 1.0
    for value, change in ((p.alpha, step.alpha), (p.beta, step.beta), (p.xi, step.xi), (p.s, step.s)):
        falls = change < 0
        way = min(way, float((value[falls] / -change[falls]).min(initial=1.0)))
    return way


def _close(state: _State) -> None:
    """Puts each α that is nearer to a bound than its margin to 1 on that bound; done if KKT is then violated by eps at most."""
    p, y, upper = state.point, state.y, state.upper
    below, above = p.s - p.alpha / upper, p.xi - p.beta / upper
    alpha = np.where((below > 0) & (below >= above), 0.0, np.where(above > 0, upper, p.alpha))
    if state.free:
        excess, room = float(y @ alpha), np.minimum(alpha, upper - alpha)
        if abs(excess) > float(room.sum()):
            return
        if excess != 0:
            alpha -= y * room * (excess / float(room.sum()))
    w = state.fold(y * alpha)
    F = y - state.dots(w)
    violation = kkt_violation(F, y * alpha, y, upper, state.problem.bias)
    if not violation >= state.violation:
        state.violation = violation
        state.closed = _Closed(alpha, w, -_threshold(F, y * alpha, y * upper) if state.free else 0.0)
    state.done = state.violation <= state.eps


def _threshold(F: Floats, beta: Floats, ends: Floats) -> float:
    """b between the largest F that can rise and the least that can fall."""
    most = F[beta < np.maximum(0.0, ends)].max(initial=-np.inf)
    least = F[beta > np.minimum(0.0, ends)].min(initial=np.inf)
    return float(most if np.isinf(least) else least if np.isinf(most) else (most + least) / 2)
