"""The stochastic batch perceptron, kernelised, without a bias or with an unregularised one.

Solves    max over ‖w‖ ≤ 1, b, ξ ≥ 0, Σ ω_i ξ_i ≤ nν of min_i (c_i + y_i b + ξ_i),   c_i = y_i⟨w, φ(x_i)⟩       (ν-form)
          ω_i = C_i/mean(C); its solution, rescaled to margin 1, solves the C-form (problem.py) for the ν that belongs to C
Step      the level γ: Σ ω_i max(0, γ − c_i − y_i b) = nν, b where it is highest: there water covers the same weight of both
          classes; draw i ∝ ω_i among the covered, class by class evenly with a bias; w ← w + η_t y_i φ(x_i), into the unit ball
          η_t = min(1/√(t max K_ii), 0.7/(m t)), m the mean covered response: at ‖w‖ = 1 the level is lower than its maximum by
          m/2·‖w − w*‖² or more
ν from C  at growing intervals ν = L/‖s w‖, s and b minimising λ‖s w‖²/2 + mean ω_i hinge_i = L, λ = 1/(n mean C); raised where
          the examples with hinge_i > 0, whose s α_i at the optimum are C_i, have more than that, lowered where they have less,
          and that after the first epoch by less and less
Returns   the mean of the last three to five tenths of all w, rescaled to margin 1: by its best s (with nu_slack, its level)
Stops     COMPLETED after ``epochs``; CONVERGED where the relative duality gap is at most eps, by float64 kernel values too:
          looked at after √2 times as many steps each time, without a bias only, for the mean's α shrunk into the box, which is
          crude
Memory    cache_mb of kernel rows, at least those of a batch, and some vectors of length n
Paper     Cotter, Shalev-Shwartz & Srebro, ICML 2012: sections 3.3, 3.4, 3.6, appendix B

A step needs one kernel row and a few passes over n responses. Draws are functions of the step's number and the covered set,
which changes slowly, so the examples of the next steps can be foretold: their rows are evaluated together, many times faster,
and each step then draws for itself; where it draws another one, its row and those foretold after it are evaluated next. Rows
are kept, oldest out, and using one again costs nothing; kernel evaluations count the rows that steps have used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, nan, sqrt

import numpy as np

from svmkit import parallel
from svmkit.certificate import balanced
from svmkit.data import Floats, Ints
from svmkit.engine import level, water
from svmkit.engine.kept_rows import KeptRows
from svmkit.engine.kernels import Engine, afresh
from svmkit.errors import UsageError
from svmkit.problem import Bias, Problem, Solution, as_expansion
from svmkit.trace import Progress

SUMMARY = "stochastic batch perceptron: water-filling over all responses, one kernel row a step"
PAPER = "Cotter, Shalev-Shwartz & Srebro, ICML 2012"
EXACT = False
ACCURACY = 0.15
BIASES: tuple[Bias, ...] = ("free", "none")

#: Steps foretold for each row that is evaluated.
_FORESIGHT = 4
#: ν is found anew after 1/16 more steps each time, a new window of the mean begins after √2 times as many.
_NU_SHARE, _WINDOW_RATIO = 16, sqrt(2.0)
#: The powers of s α_i/C_i by which it is raised and lowered; lowered less with a bias, which takes up what responses have in
#: common. And the factor by which it changes at most.
_RAISED, _LOWERED, _LOWERED_WITH_BIAS, _MOST = 0.2, 0.2, 0.05, 4.0
#: An epoch has n steps, at least so many.
_SHORTEST_EPOCH = 250
#: ν as a share of the margin where no slack is best: the lowest responses alone are covered. The least ν, by which w is
#: divided; the most is 1 over it.
_LEAST_SLACK, _SMALLEST_NU = 1e-9, 1e-100
#: Kernel values that a thread adds up at a time.
_PIECE_VALUES = 500_000


@dataclass(frozen=True)
class Options:
    """What ``-O`` may set."""

    epochs: int = field(default=4, metadata={"help": "steps, in multiples of the number of examples (of 250, if that is more)"})
    batch: int = field(default=4, metadata={"help": "examples drawn from one water level"})
    nu_slack: float = field(default=0.0, metadata={"help": "mean slack ν of the unit-norm problem; 0: found from C"})
    cache_mb: float = field(default=100.0, metadata={"help": "MB of kernel rows kept"})


@dataclass
class _Window:
    """Sums of α and of the responses over some steps."""

    alpha: Floats
    c: Floats
    steps: int = 0


@dataclass
class _State:
    """All vectors in the order ``order``, positives first; ``numbers`` and ``counts`` as level.py has them.

    ``window`` holds sums since ``window_start``, up to what ``numbers[SCALES]`` and ``owed`` (a slot of ``rows``) still add to
    them; ``before`` those of the window before. ``checked`` counts the kernel values that looks at the gap took;
    ``ended_at`` is the mean that has converged.
    """

    problem: Problem
    options: Options
    eps: float
    order: Ints
    sign: Floats
    rows: KeptRows
    diagonal: Floats
    weight: Floats
    near: Floats
    drawn: Ints
    owed: Floats
    c: Floats
    alpha: Floats
    numbers: Floats
    counts: Ints
    window: _Window
    before: _Window
    total_steps: int
    window_start: int = 0
    next_window: int = 1
    next_nu: int = 1
    checked: int = 0
    gap: float = nan
    ended_at: _Window | None = None
    done: bool = False


def start(problem: Problem, options: Options, eps: float, seed: int) -> _State:
    """A fresh state at w = 0. UsageError for options out of range."""
    _check(options)
    n = problem.n
    order = np.argsort(-problem.y, kind="stable")
    positives = int(np.count_nonzero(problem.y > 0))
    in_order = bool((order == np.arange(n)).all())
    engine = Engine(problem.rows if in_order else problem.rows.take(order), problem.kernel)
    diagonal = engine.diagonal()
    weight = problem.omega[order]
    largest = float(np.abs(diagonal).max(initial=0.0))
    rows = KeptRows(engine, diagonal, options.cache_mb, options.batch)
    counts = np.zeros(level.N_COUNTS, np.int64)
    counts[[level.POSITIVES, level.BASINS, level.BATCH, level.SEED]] = (
        positives, 2 if problem.bias == "free" else 1, options.batch, seed,
    )  # fmt: skip
    numbers = np.zeros(level.N_NUMBERS)
    numbers[[level.SCALE, level.NU, level.ETA]] = 1.0, options.nu_slack or 1.0, 1.0 / sqrt(largest) if largest > 0 else 1.0
    numbers[level.HEAVIEST] = weight.max() if problem.bias == "none" else weight[:positives].max(initial=0.0)
    numbers[level.HEAVIEST_NEGATIVE] = weight[positives:].max(initial=0.0)
    state = _State(
        problem=problem,
        options=options,
        eps=eps,
        order=order,
        sign=problem.y[order],
        rows=rows,
        diagonal=diagonal,
        weight=weight,
        near=np.empty((2, n)),
        drawn=np.zeros(options.batch, np.int64),
        owed=np.zeros(len(rows.K)),
        c=np.zeros(n),
        alpha=np.zeros(n),
        numbers=numbers,
        counts=counts,
        window=_Window(np.zeros(n), np.zeros(n)),
        before=_Window(np.zeros(n), np.zeros(n)),
        total_steps=options.epochs * _epoch(n),
    )
    one_class = problem.bias == "free" and positives in (0, n)
    state.done = one_class or largest == 0.0  # w = 0 and the right constant is the optimum
    if not state.done:
        level.find_level(state.c, state.weight, state.near, numbers, counts)
    return state


def _check(options: Options) -> None:
    if options.epochs < 1:
        raise UsageError(f"-O epochs={options.epochs}: must be at least 1")
    if not 1 <= options.batch <= 1024:
        raise UsageError(f"-O batch={options.batch}: must be from 1 to 1024")
    if options.nu_slack != 0 and not _SMALLEST_NU <= options.nu_slack <= 1 / _SMALLEST_NU:
        most = f"from {_SMALLEST_NU:g} to {1 / _SMALLEST_NU:g}"
        raise UsageError(f"-O nu_slack={options.nu_slack:g}: must be a number {most}, or 0 to find it from C")


def _epoch(n: int) -> int:
    """Steps to an epoch."""
    return max(n, _SHORTEST_EPOCH)


def advance(state: _State, budget: int) -> Progress:
    """At most ``budget`` more steps."""
    left = budget
    while left > 0 and not state.done and _step(state) < state.total_steps:
        event = min(state.next_nu, state.next_window, state.total_steps)
        asked = min(left, event - _step(state))
        taken = water.take_steps[state.rows.real](
            *(state.rows.K, state.rows.slot_of, state.rows.unused, state.owed, state.c, state.alpha, state.window.alpha),
            *(state.weight, state.diagonal, state.near, state.numbers, state.counts, state.drawn, asked),
        )
        if taken < asked:
            _load_rows(state)
        elif _step(state) == event:
            _attend(state)
        left = 0 if parallel.is_over() else left - taken
    return Progress(
        steps=_step(state),
        kernel_evaluations=int(state.counts[level.ROWS]) * state.problem.n + state.checked,
        gap=state.gap,
        done=state.done,
        completed=not state.done and _step(state) >= state.total_steps,
        n_support=int(np.count_nonzero(state.alpha)),
    )


def solution(state: _State) -> Solution:
    """The mean iterate so far, rescaled to margin 1; before the first step w = 0."""
    mean = state.ended_at or _mean(state)
    found = _margin(state, mean) if mean.steps else level.NO_LEVEL
    coef = np.zeros(state.problem.n)
    if found.level < inf:
        coef[state.order] = state.sign * mean.alpha / found.level
    rho = 0.0
    if state.problem.bias == "free":
        rho = -found.b / found.level if found.level < inf else -_constant(state)
    alpha, upper = None, state.problem.upper
    if state.done and not coef.any():  # w = 0 is the optimum: as much α as the equality allows
        alpha = balanced(upper, state.problem.y) if state.problem.bias == "free" else upper
    elif state.done:  # the dual point that said so
        alpha = np.zeros(state.problem.n)
        alpha[state.order] = _dual_factor(state, mean) * mean.alpha
    return as_expansion(coef, rho, alpha=alpha)


# --- events ---------------------------------------------------------------------------------------------------------------


def _step(state: _State) -> int:
    return int(state.counts[level.STEP])


def _load_rows(state: _State) -> None:
    """Evaluates the rows that the next steps will want, in place of the oldest."""
    _settle(state)
    rows = state.rows
    rows.make_room()
    found = np.empty(rows.together, np.int64)
    steps = min(_FORESIGHT * rows.together, state.total_steps - _step(state))
    count = water.foresee(state.c, state.weight, state.diagonal, state.numbers, state.counts, rows.slot_of, steps, found)
    rows.fill(found[:count])


def _settle(state: _State) -> None:
    """Adds what is owed to the sum of responses."""
    _add_owed(state, state.window.c)
    state.owed[:] = 0.0


def _add_owed(state: _State, out: Floats) -> None:
    slots = np.flatnonzero(state.owed)
    n, positives = len(out), int(state.counts[level.POSITIVES])
    pieces = max(1, min(64, n * len(slots) // _PIECE_VALUES))
    add = water.add_owed[state.rows.real]
    parallel.run_ranges(lambda first, last: add(state.rows.K, slots, state.owed, positives, first, last, out), n, pieces)


def _attend(state: _State) -> None:
    """What is due at this step: a new ν, a look at the gap, a new window."""
    step = _step(state)
    _settle(state)
    water.fold(state.c, state.alpha, state.window.alpha, state.window.c, state.numbers)
    if step >= state.next_nu:
        _renew_nu(state)
        state.next_nu = step + max(1, step // _NU_SHARE)
    if step >= state.next_window:
        mean = _mean(state)
        state.gap = _relative_gap(state, mean)
        if state.gap <= state.eps:
            mean.c = _responses_afresh(state, mean.alpha)
            state.gap = _relative_gap(state, mean)
        state.done = state.gap <= state.eps
        if state.done:
            state.ended_at = mean
            return
        state.next_window = max(step + 1, int(step * _WINDOW_RATIO))
        n = state.problem.n
        state.window.steps = step - state.window_start
        state.before, state.window, state.window_start = state.window, _Window(np.zeros(n), np.zeros(n)), step


def _renew_nu(state: _State) -> None:
    """ν = L/‖s w‖ for the current w and its best s and b, corrected; as it was where s = 0 is best.

    The mean would be less noisy, but it lags: its ν would move too slowly from the first guess to the one that belongs to C.
    Where many responses lie close together, the best s of any w is one that puts the level among them, and ν would stay what
    it is; so α has a say. It is asked of each example in proportion to how far it lies under water, since those near the edge
    may be on it. It may be too small for long, though w is right, where equal examples have both labels: later on ν is hardly
    lowered.
    """
    norm2 = float(state.numbers[level.NORM2])
    if state.options.nu_slack > 0 or norm2 == 0.0:
        return
    found = _best_margin(state, state.c, norm2)
    if found.level < inf:
        slack = max(found.volume / state.problem.n, _LEAST_SLACK * found.level)
        depth = np.maximum(0.0, found.level - state.c - state.sign * found.b)
        asked = found.level * float(depth @ state.problem.upper[state.order])
        ratio = float(depth @ state.alpha) / asked if asked > 0 else 1.0
        power = _RAISED
        if ratio < 1.0:
            power = _LOWERED_WITH_BIAS if state.problem.bias == "free" else _LOWERED
            power *= min(1.0, _epoch(state.problem.n) / _step(state))
        state.numbers[level.NU] = slack / sqrt(norm2) * min(max(ratio**power, 1 / _MOST), _MOST)
        level.find_level(state.c, state.weight, state.near, state.numbers, state.counts)


# --- the mean and its margin ----------------------------------------------------------------------------------------------


def _mean(state: _State) -> _Window:
    """The mean of α and of the responses over the last window and the one before."""
    steps = state.before.steps + _step(state) - state.window_start
    scales = state.numbers[level.SCALES]
    c = state.window.c + state.c * scales + state.before.c
    _add_owed(state, c)
    alpha = state.window.alpha + state.alpha * scales + state.before.alpha
    return _Window(np.maximum(alpha, 0.0) / max(1, steps), c / max(1, steps), steps)


def _margin(state: _State, mean: _Window) -> level.Fill:
    """The level by which the mean is divided: of its best multiple, or, where ν is given, of that volume."""
    norm2 = float(mean.alpha @ mean.c)
    if state.options.nu_slack > 0 and norm2 > 0:
        volume = state.problem.n * state.options.nu_slack * sqrt(norm2)
        found = level.fill_volume(mean.c, *_basins(state), volume)
        if found.level > 0:
            return found
    return _best_margin(state, mean.c, norm2)


def _best_margin(state: _State, c: Floats, norm2: float) -> level.Fill:
    """1/s and b/s for the s and b that minimise λ norm2 s²/2 + mean ω_i max(0, 1 − s c_i − y_i b)."""
    return level.fill_margin(c, *_basins(state), max(norm2, 0.0) / state.problem.upper.mean())


def _basins(state: _State) -> tuple[Floats, int, int]:
    """Weights, examples of the positive class, basins: what level.py takes of them."""
    return state.weight, int(state.counts[level.POSITIVES]), int(state.counts[level.BASINS])


def _constant(state: _State) -> float:
    """The best f where w = 0: the side of the heavier class."""
    heavier = float(state.sign @ state.weight)
    return 1.0 if heavier > 0 else -1.0 if heavier < 0 else 0.0


def _responses_afresh(state: _State, alpha: Floats) -> Floats:
    """y_i Σ α_j y_j K(x_i, x_j) by float64 kernel values, in our order; not what float32 rows have added up to."""
    weights = np.zeros(state.problem.n)
    weights[state.order] = state.sign * alpha
    (found,), evaluations = afresh(state.problem.rows, state.problem.kernel, weights)
    state.checked += evaluations
    return np.asarray(state.sign * found[state.order])


def _relative_gap(state: _State, mean: _Window) -> float:
    """(primal − dual)/primal of the mean without a bias, α scaled by the best factor that keeps it in the box; else nan."""
    if state.problem.bias == "free":
        return nan
    norm2, upper = float(mean.alpha @ mean.c), state.problem.upper[state.order]
    found = _margin(state, mean)
    if not norm2 > 0 or found.level == inf:
        return nan
    primal = 0.5 * norm2 / found.level / found.level + float(upper @ np.maximum(0.0, 1.0 - mean.c / found.level))
    factor = _dual_factor(state, mean)
    dual = factor * float(mean.alpha.sum()) - 0.5 * factor * factor * norm2
    return (primal - dual) / primal


def _dual_factor(state: _State, mean: _Window) -> float:
    """What α of the mean is multiplied by to be the best dual point on its ray, in the box."""
    drawn = mean.alpha > 0.0
    upper = state.problem.upper[state.order][drawn]
    return min(float(np.min(upper / mean.alpha[drawn])), float(mean.alpha.sum()) / float(mean.alpha @ mean.c))
