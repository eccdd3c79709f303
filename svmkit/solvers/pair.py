"""Sequential minimal optimisation on pairs, step for step as LIBSVM's svm-train takes them.

Solves   min ½ αᵀQα + pᵀα   s.t.  sᵀα = const,  0 ≤ α ≤ upper      (problem.py)
Stops    m(α) − M(α) < eps over all variables, with the gradient of the shrunk ones rebuilt
Memory   cache_mb of kernel rows (float32) + 15 vectors of length m
Paper    Fan, Chen & Lin, JMLR 6 (2005) 1889–1918 (choice of the pair); Chang & Lin, ACM TIST 2 (2011) 27 (the rest)

Iteration count, objective and rho come out as svm-train prints them: pair_steps.py takes the steps and says what m, M and the
positions are by which vectors are indexed here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Floats, Ints
from svmkit.engine import pair_steps as loops
from svmkit.engine.reference import Reference, diagonal, prepare
from svmkit.engine.row_cache import RowCache, make_cache
from svmkit.problem import Bias, DualQP, Problem, Solution, as_expansion
from svmkit.trace import Progress

SUMMARY = "pairs of multipliers exactly as svm-train: the same iterations, objective and rho"
PAPER = "Fan, Chen & Lin, JMLR 6 (2005)"
EXACT = True
WARM = True
BIASES: tuple[Bias, ...] = ("free",)

_WARNING_TEXT = "\nWARNING: using -h 0 may be faster\n"


@dataclass(frozen=True)
class Options:
    """Fields as their help says."""

    cache_mb: float = field(default=100.0, metadata={"help": "MB of kernel rows kept, two rows at least (-m)"})
    shrinking: bool = field(default=True, metadata={"help": "leave out variables that seem settled at a bound (-h)"})


@dataclass
class State:
    """Everything a run changes; compiled code works on the arrays in place."""

    problem: Problem
    dual: DualQP
    reference: Reference
    variables: loops.Variables
    cache: RowCache
    counts: Ints
    numbers: Floats
    events: NDArray[np.uint8]
    said: str = ""


class PairReport(NamedTuple):
    """What svm-train prints of one machine: ``progress`` is its line of dots and stars, warnings included.

    ``nu`` = Σα / (C m) is None where the C_i differ.
    """

    progress: str
    iterations: int
    nu: float | None
    objective: float
    rho: float
    n_support: int
    n_bounded: int


def start(problem: Problem, options: Options, eps: float, seed: int) -> State:
    """A fresh state; the method draws no random numbers, so ``seed`` changes nothing."""
    dual = problem.dual()
    reference = prepare(problem.rows, problem.kernel)
    m = len(dual.sign)
    order = _svm_trains_order(dual)
    counts = np.zeros(loops.N_COUNTS, dtype=np.int64)
    counts[loops.ACTIVE], counts[loops.COUNTDOWN], counts[loops.SHRINKING] = m, min(m, 1000) + 1, options.shrinking
    return State(
        problem=problem,
        dual=dual,
        reference=reference,
        variables=loops.Variables(
            sign=dual.sign[order],
            linear=dual.linear[order],
            upper=dual.upper[order],
            diag=diagonal(reference)[dual.row_of[order]],
            alpha=dual.start[order],
            grad=dual.linear[order],
            bound_grad=np.zeros(m),
            room=_room(dual)[order],
            number=order,
            row=dual.row_of[order],
            swaps=np.empty(2 * m, dtype=np.int64),
        ),
        cache=make_cache(m, options.cache_mb),
        counts=counts,
        numbers=np.array([eps, math.nan]),
        events=np.empty(loops.EVENT_ROOM, dtype=np.uint8),
    )


def advance(state: State, budget: int) -> Progress:
    """At most ``budget`` more pair steps. ``stalled`` at svm-train's limit of iterations, or where numbers overflow."""
    counts = state.counts
    target = int(counts[loops.STEPS]) + budget
    while counts[loops.PHASE] <= loops.RUNNING and counts[loops.STEPS] < target:
        left = target - int(counts[loops.STEPS])
        loops.advance(*state.reference, *state.variables, *state.cache, counts, state.numbers, state.events, left)
        log = state.events[: counts[loops.N_EVENTS]].tobytes().decode()
        state.said += log.replace(chr(loops.WARNING), _WARNING_TEXT)
        counts[loops.N_EVENTS] = 0
    sound = bool(np.isfinite(state.variables.grad).all())
    return Progress(
        steps=int(counts[loops.STEPS]),
        kernel_evaluations=int(state.cache.evaluated[0]),
        violation=float(state.numbers[loops.GAP]),
        done=bool(counts[loops.PHASE] == loops.OPTIMAL) and sound,
        stalled=bool(counts[loops.PHASE] == loops.CAPPED) or not sound,
        n_support=int(np.count_nonzero(state.variables.alpha)),
        said=state.said,
    )


def solution(state: State) -> Solution:
    """The expansion over the rows with a multiplier that is not 0."""
    variables = state.variables
    beta = np.zeros(state.problem.n)
    np.add.at(beta, variables.row, variables.sign * variables.alpha)
    return as_expansion(beta, _rho(state))


@np.errstate(invalid="ignore")  # where kernel values overflow
def report(state: State) -> PairReport:
    """The figures svm-train prints; of use once the run has ended, when every gradient is up to date."""
    variables, upper = state.variables, state.dual.upper
    alpha = np.zeros(len(upper))
    alpha[variables.number] = variables.alpha
    alpha, upper = alpha[order := _svm_trains_order(state.dual)], upper[order]
    objective = _plain_sum(variables.alpha * (variables.grad + variables.linear)) / 2
    return PairReport(
        progress=state.said,
        iterations=int(state.counts[loops.STEPS]),
        nu=_plain_sum(alpha) / (float(upper[0]) * len(upper)) if (upper == upper[0]).all() else None,
        objective=objective,
        rho=_rho(state),
        n_support=int(np.count_nonzero(alpha)),
        n_bounded=int(np.count_nonzero((alpha > 0) & (alpha >= upper))),
    )


def _plain_sum(values: Floats) -> float:
    """0 and the values from left to right, neither pairwise nor compensated; so never −0."""
    return 0.0 + float(np.cumsum(values)[-1])


def _rho(state: State) -> float:
    """Mean of s_k G_k over the free variables, else the middle of what the bounded ones allow; of shrunk ones nothing."""
    active = int(state.counts[loops.ACTIVE])
    room, slope = state.variables.room[:active], (state.variables.sign * state.variables.grad)[:active]
    free = slope[room == loops.FREE]
    if len(free):
        return _plain_sum(free) / len(free)
    most = float(slope[room == loops.UP].min(initial=math.inf))
    least = float(slope[room == loops.LOW].max(initial=-math.inf))
    if math.isinf(most) or math.isinf(least):  # one class only: any rho on this side does
        return most if math.isfinite(most) else least if math.isfinite(least) else 0.0
    return (most + least) / 2


def _svm_trains_order(dual: DualQP) -> Ints:
    """Variables of sign +1, then those of sign −1: ties are broken and sums rounded in this order."""
    return np.argsort(-dual.sign, kind="stable")


def _room(dual: DualQP) -> NDArray[np.uint8]:
    """``Variables.room`` of the starting α."""
    below, above = dual.start < dual.upper, dual.start > 0
    up, low = np.where(dual.sign > 0, below, above), np.where(dual.sign > 0, above, below)
    room: NDArray[np.uint8] = (up * loops.UP + low * loops.LOW).astype(np.uint8)
    return room
