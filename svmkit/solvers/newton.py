"""Augmented Lagrangian with Newton steps for linear C-SVC of few features, so after a feature map for any kernel: exact where
dual methods crawl.

Solves    min  ½‖w‖² + Σ C_i max(0, z_i),  z_i = 1 − y_i (⟨w, x_i⟩ + b),   with its dual 0 ≤ α ≤ C, yᵀα = 0
          (b and that equality only with a free bias)
Rounds    around a centre α′ = C∘a′ the minimum over w, b of  ½‖w‖² + Σ C_i max {a z_i − (a − a′_i)²/2s : 0 ≤ a ≤ 1},  the loss
          smoothed over a width of 1/s, at a_i = clip(a′_i + s z_i, 0, 1), which are the next centre; and s doubles.
          Where rows are far more than features, the first rounds take a sample of them, the next a larger one; else they
          begin where ten visits to each row by dual coordinate ascent lead, if that is near the optimum. Later rounds step on
          the rows within 8/s of where the loss bends, and look at all where that has ended
Step      Newton's, on rows with 0 < a_i < 1, Θ = s C_i there and 0 elsewhere: (I + XᵀΘX) Δw + XᵀΘ1 Δb = …, 1ᵀΘX Δw + 1ᵀΘ1 Δb
          = …, solved for as many unknowns as there are features, or such rows where they are fewer; along it the smoothed loss
          is a parabola by pieces, and the length makes its slope small
Stops     when α violates KKT by at most eps, w made anew from it; stalled where s has grown beyond all use, and a
          smaller one gains nothing either, which takes as many steps again
Memory    the rows, a copy of a quarter of them, or as many as features, at most, a few d × d matrices, vectors of length n;
          a step costs d³ and, for rows that came between the bounds or went alone, d² multiplications each. 30 to 80 steps
Paper     Yan & Li, Optimization Methods and Software 35 (2020) 855–883, with direct solutions in place of conjugate gradients
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from svmkit.certificate import kkt_violation
from svmkit.data import Floats
from svmkit.engine import linear
from svmkit.engine.smoothed import look, slope
from svmkit.engine.weighted import SetGram, rows_with_weight, solve_weighted
from svmkit.features import feature_names, renamed
from svmkit.problem import LINEAR, Bias, Problem, Solution, as_one_row
from svmkit.solvers.base import needs_map
from svmkit.solvers.newton_ascent import near_optimum
from svmkit.solvers.newton_point import Point, point_at
from svmkit.solvers.newton_samples import Part, samples
from svmkit.solvers.newton_state import State, bring_back, set_aside, turn_to
from svmkit.trace import Progress

SUMMARY = "augmented Lagrangian: the exact optimum of linear problems with few features, so after a map for any kernel"
PAPER = "Yan & Li, Optimization Methods and Software 35 (2020) 855–883"
EXACT = True
BIASES: tuple[Bias, ...] = ("free", "none")

#: With more features than this a step's d³ multiplications no longer pay.
MOST_FEATURES = 4096
#: The s where dual coordinate ascent leads near the optimum.
_ASCENT_S = 8.0
#: By so much s grows each round, up to the second number / eps, no eps below the third: what violates KKT by more is rounding.
_GROWTH, _LARGEST_S, _LEAST_EPS = 2.0, 1e4, 1e-20
#: Steps of a round on a sample at most, whose own minimum is of no use; after how many on one the next takes over, wherever s
#: is; and after how many nothing is gained any more.
_SAMPLE_ROUND, _SAMPLE_STEPS, MOST_STEPS = 3, 30, 500
#: A round ends when what the slopes take from the dual is at most this share of what the way from the centre does.
_ROUND_SHARE = 1.0
#: Of the slope of the smoothed loss, a step's length leaves at most this share.
_SLOPE_SHARE = 0.1
#: A step that promises less than this share of Σ α no sum would show; it is lost in rounding if it also promises more than the
#: second number times the one before, for slopes are small squared, and may still fall.
_ROUNDING, _FALLING = 2.0**-52, 0.25
#: So many steps of a round may promise less than such a share: near a minimum promises fall by powers, in rounding they crawl.
_SMALL, _MOST_SMALL = 2.0**-36, 16
#: By such a share of its terms a margin is rounded, b by that of itself, w by that of its largest.
_ROUNDED = 2.0**-51
#: Rounding grows with s. At the largest s, α's violation falls where it is at most so many times the least so far …
_LOWER = 0.7
#: … and where it no longer does, s goes back from where the least was found by this factor, to no less than the second number.
_BACK, _LEAST_S = 64.0, 1.0
#: Lengths tried for a step at most: where few rows bend the loss, 1 may be too long by powers of ten. One tried between two
#: others is away from both by at least this share of what lies between.
_LENGTHS, _MARGIN = 100, 0.1
#: A round's α is looked at in earnest where by its own products it violates KKT by at most so many times eps.
_LOOK_FROM = 3.0


@dataclass(frozen=True)
class Options:
    """None: nothing needs to be set."""


def supports(problem: Problem) -> str | None:
    """Takes linear problems in which at most 4096 features occur."""
    if problem.kernel.kind != LINEAR:
        return needs_map("newton", problem.kernel)
    d = len(feature_names(problem.rows))
    if d > MOST_FEATURES:
        return (
            f"solver newton solves for as many unknowns as there are features, {d} here; it takes at most {MOST_FEATURES}. "
            f"Use --solver sdca; or after a map, a --dim of {MOST_FEATURES} or less"
        )
    return None


def start(problem: Problem, options: Options, eps: float, seed: int) -> State:
    """A fresh state, on a sample by ``seed`` where rows are far more than features; w and α are 0, or near the optimum."""
    used = np.flatnonzero(problem.upper > 0)
    names = feature_names(problem.rows)
    rows = renamed(problem.rows, names) if problem.rows.form == "sparse" else problem.rows
    if len(used) < problem.n:
        rows = rows.take(used)
    whole = Part(used, rows, problem.y[used], problem.upper[used])
    part, wider = samples(whole, len(names), seed)
    n, width = len(part.used), len(names) + 1
    state = State(
        problem=problem,
        eps=eps,
        **part._asdict(),
        names=names,
        wider=wider,
        gram=SetGram(part.rows, part.upper, part.which),
        w=np.zeros(width),
        b=0.0,
        products=np.zeros(n),
        centre=np.zeros(n),
        alpha=np.zeros(n),
        folded=np.zeros(width),
    )
    plus, minus = (float(whole.upper[whole.y == side].sum()) for side in (1, -1))
    if plus + minus == 0 or (state.free and min(plus, minus) == 0):  # α = 0; b alone gives every row its margin
        state.closed = Point(np.zeros(n), state.w, float(np.sign(minus - plus)), 0.0, state.s)
        state.done, state.violation = True, 0.0
    elif not wider:
        made, state.evaluations = near_optimum(whole, len(names), eps, seed)
        if made is not None:
            state.w, state.products, state.centre, state.s = made.w, made.products, made.alpha / state.upper, _ASCENT_S
    return state


@np.errstate(over="ignore", invalid="ignore")  # of features around 1e8 and more; what comes of it is no progress
def advance(state: State, budget: int) -> Progress:
    """At most ``budget`` more steps."""
    last = state.steps + budget
    while state.steps < last and not (state.done or state.stalled):
        _step(state)
        if state.wider and _is_over(state):
            turn_to(state, *state.wider.pop(0))
    return Progress(
        steps=state.steps,
        kernel_evaluations=state.evaluations,
        violation=state.violation,
        done=state.done,
        stalled=state.stalled,
        n_support=int(state.w.any()),
    )


def solution(state: State) -> Solution:
    """w, or where rounding has shown that of the least primal objective, as one row, with α; stalled, the least violating."""
    ended = state.closed if state.done or state.stalled else None
    alpha = state.alpha_now() if ended is None else ended.alpha
    w, rho = (state.w, -state.b) if state.kept is None else (state.kept[1], -state.kept[2])
    if ended is not None and state.done:
        w, rho = ended.w, ended.rho
    return as_one_row(w[1:], state.names, state.problem.rows.n_features, rho, state.of_all(alpha))


def nearest(state: State) -> tuple[Floats, float]:
    """The feasible α (n,) of least violation so far, and that; 0 and infinity where there is none."""
    if state.closed is None:
        return np.zeros(state.problem.n), inf
    return state.of_all(state.closed.alpha), state.closed.violation


def primal(state: State) -> float:
    """The least primal objective of a run at its end, by its own products."""
    if state.kept is not None:
        return state.kept[0]
    assert state.closed is not None
    return _primal(state, state.closed.w, -state.closed.rho, linear.dots(state.rows, state.closed.w, state.which))


def _is_over(state: State) -> bool:
    """Whether the sample has served."""
    return state.s >= state.wider[0][0] or state.steps >= state.turned + _SAMPLE_STEPS or state.done or state.stalled


# --- one step -------------------------------------------------------------------------------------------------------------


def _step(state: State) -> None:
    """Newton's step, or the end of a round where the smoothed loss is all but flat."""
    seen = look(state.products, state.b, state.s, state.centre, state.upper, state.y, state.alpha)
    state.folded += state.fold(seen.change)  # rows that stay at a bound cost nothing
    slope_w = state.w - state.folded
    aside = state.aside
    balance, total = (seen.balance, seen.total) if aside is None else (seen.balance + aside.balance, seen.total + aside.total)
    slope_b = -balance if state.free else 0.0
    brief = bool(state.wider) and state.steps >= state.round_began + _SAMPLE_ROUND
    if brief or _is_flat(state, seen.way, slope_w, slope_b):
        _end_round(state)
        return
    direction = _newton(state, seen.theta, slope_w, slope_b)
    if direction is None or state.steps >= MOST_STEPS:
        if aside is not None:
            bring_back(state, aside)
            return
        state.centre = np.clip(seen.pulled, 0.0, 1.0)
        _close(state)
        if not state.done:
            _stall(state)
        return
    dw, db = direction
    promised = -float(slope_w @ dw) - slope_b * db
    along = state.dots(dw)
    along_far = 0.0 if aside is None else float(aside.folded @ dw) + aside.balance * db
    length = _length(state, seen.pulled, dw, along + db, along_far, promised)
    promised *= length
    lost = promised <= _ROUNDING * total and not promised <= _FALLING * state.promised
    small = promised <= _SMALL * total
    state.small += small
    if lost or (small and state.small > _MOST_SMALL) or not _moves(state, length * dw, length * db, along, length):
        _end_round(state)
        return
    state.promised = promised
    state.w, state.b = state.w + length * dw, state.b + length * db
    state.products += length * along
    state.steps += 1


def _moves(state: State, dw: Floats, db: float, along: Floats, length: float) -> bool:
    """Whether w or b goes farther than the largest of w, and b, are rounded or, if not, a margin farther than it is."""
    if float(np.abs(dw).max()) > _ROUNDED * float(np.abs(state.w).max()) or abs(db) > _ROUNDED * abs(state.b):
        return True
    return bool(np.any(np.abs(length * along + db) > _ROUNDED * (np.abs(state.products) + abs(state.b))))


def _is_flat(state: State, way: float, slope_w: Floats, slope_b: float) -> bool:
    """Whether what the slopes take from the dual is little beside what the way from the centre does."""
    return float(slope_w @ slope_w) + slope_b * slope_b / (state.s * float(state.upper.sum())) <= _ROUND_SHARE * way


def _newton(state: State, theta: Floats, slope_w: Floats, slope_b: float) -> tuple[Floats, float] | None:
    """The step (Δw, Δb) to the minimum of the parabola that touches the smoothed loss; None where numbers overflow.

    Where no row bends it, b is taken to have the curvature of one.
    """
    inside = theta > 0
    rows, theta = rows_with_weight(state.rows, theta, state.which)
    solved = solve_weighted(rows, theta, slope_w, lambda: state.gram.over(inside, rows, theta / state.s, state.s))
    if solved is None:
        return None
    down, across, corner = solved
    if not state.free:
        return -down, 0.0
    db = -(slope_b - float(across @ slope_w)) / (corner or state.s * float(state.upper.mean()))
    return -down - db * across, db


def _length(state: State, pulled: Floats, dw: Floats, along: Floats, along_far: float, fall: float) -> float:
    """How far to go from where the slope is −``fall``: 1, or as far as leaves little of it, by doubling until the loss rises
    and then where a straight line between the slopes at both ends is 0, or not too near to either; 0 where it rises at once."""
    across, own = float(state.w @ dw) - along_far, float(dw @ dw)
    if fall <= 0.0:
        return 0.0
    low, high, length = (0.0, -fall), (inf, inf), 1.0
    for _ in range(_LENGTHS):
        now = across + length * own + slope(pulled, along, state.upper, state.y, state.s, length)
        if abs(now) <= _SLOPE_SHARE * fall:
            break
        low, high = ((length, now), high) if now < 0 else (low, (length, now))
        share = min(max(_MARGIN, low[1] / (low[1] - high[1])), 1.0 - _MARGIN)  # of nan _MARGIN
        length = 2.0 * length if high[0] == inf else low[0] + share * (high[0] - low[0])
    return length


def _end_round(state: State) -> None:
    """Moves the centre to where the round came, and looks whether that is the optimum where it seems to be.

    There what steps have kept up to date is computed anew, without the rounding that they left. Of rows set aside all come back
    first, and it is the next step that looks whether the round is over.
    """
    if state.aside is not None:
        bring_back(state, state.aside)
        return
    centre = np.clip(state.pulled(), 0.0, 1.0)
    last = _GROWTH * state.s > min(state.most_s, _LARGEST_S / max(state.eps, _LEAST_EPS))
    F, beta = state.y - state.products, state.y * state.upper * centre
    state.promised, state.small, state.round_began = inf, 0, state.steps
    if last or not kkt_violation(F, beta, state.y, state.upper, state.problem.bias) > _LOOK_FROM * state.eps:
        state.products = state.dots(state.w)
        state.centre = np.clip(state.pulled(), 0.0, 1.0)
        state.alpha = state.upper * state.centre
        state.folded = state.fold(state.y * state.alpha)
        least = inf if state.closed is None else state.closed.violation
        _close(state)
        if last and not state.done:
            _stay_or_go_back(state, isfinite(state.violation) and state.violation <= _LOWER * least)
            return
    else:
        state.centre = centre
    state.s *= _GROWTH
    if not state.done:
        set_aside(state)


def _stay_or_go_back(state: State, gains: bool) -> None:
    """Of s, where it cannot grow; it goes back to less, and the rest to the least violation, where that s gains nothing."""
    state.most_s, best = state.s, state.closed
    _keep(state)
    if gains:
        return
    if best is None or min(best.s, state.s) < _BACK * _LEAST_S:
        _stall(state)
        return
    state.s = state.most_s = min(best.s, state.s) / _BACK
    state.w, state.b, state.centre = best.w, -best.rho, best.alpha / state.upper
    state.products = state.dots(state.w)


def _keep(state: State) -> None:
    """Keeps w and b where their primal objective is the least so far: from a smaller s they may not come as far again."""
    primal = _primal(state, state.w, state.b, state.products)
    if primal < (inf if state.kept is None else state.kept[0]):
        state.kept = primal, state.w, state.b


def _primal(state: State, w: Floats, b: float, products: Floats) -> float:
    return 0.5 * float(w @ w) + float(state.upper @ np.maximum(0.0, 1.0 - state.y * (products + b)))


def _stall(state: State) -> None:
    """Ends with the w and b of the least primal objective, which is at most that of w = 0."""
    state.products = state.dots(state.w)
    _keep(state)
    if state.kept is None or not state.kept[0] <= float(state.upper.sum()):
        state.kept = float(state.upper.sum()), np.zeros_like(state.w), 0.0
    state.stalled = True


def _close(state: State) -> None:
    """Makes the centre a feasible point; done if that violates KKT by eps at most."""
    point = point_at(state.rows, state.y, state.upper, state.centre, state.problem.bias, state.s, state.which)
    if point is None:
        return
    state.evaluations += len(state.used)
    state.violation = point.violation
    if point.violation < (inf if state.closed is None else state.closed.violation):
        state.closed = point
    state.done = point.violation <= state.eps
