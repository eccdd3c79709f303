"""The state of a block SMO run, and any β as its solution: F in float64, the primal objective, the best β seen.

A run that stalls ends with the least primal objective it has seen, or of those as good the one of least violation: a point
inside the box, near some of its ends, has all rows for support vectors. A small violation alone is no sign of a good β, for
β = 0 has one of at most 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit import parallel
from svmkit.certificate import certify, float32_margin, float64_noise
from svmkit.data import Floats, Ints
from svmkit.engine import linear
from svmkit.engine.active import ActiveSet
from svmkit.engine.by_need import RowsByNeed, product_of_rows
from svmkit.engine.interior import ALIKE, NOISE, Interior, best_level, primal_at
from svmkit.engine.kernels import Engine, cross_apply
from svmkit.engine.reviews import Checks
from svmkit.engine.space import aligned
from svmkit.engine.span import Span
from svmkit.features import narrowed
from svmkit.problem import LINEAR, PRECOMPUTED, Problem, Solution, as_expansion, as_one_row
from svmkit.solvers.smo_alike import Alike
from svmkit.solvers.smo_pace import Pace


@dataclass
class Block:
    """An open round: places of its variables among the active ones, and what the steps change; F as in qp.py.

    It is closed after ``most_steps``, finished or not.
    """

    place: Ints
    diagonal: NDArray[Any]
    beta: Floats
    F: NDArray[Any]
    lower: Floats
    upper: Floats
    up: NDArray[Any]
    low: NDArray[Any]
    eps: float
    most_steps: int
    steps: int = 0


#: Variables that say what rho is where F is known of none.
_FEW = 1024


class Best(NamedTuple):
    """A β, with its primal objective and violation."""

    beta: Floats
    primal: float
    violation: float


@dataclass
class State:
    """Everything a run changes: the problem, the round under way, what has been done, and the best that was seen."""

    problem: Problem
    #: Where examples stand more than once, of which ``problem`` has each once.
    repeated: Alike | None
    eps: float
    shrinking: bool
    variables: ActiveSet
    #: F at β = 0.
    constant: Floats
    #: The largest |K_ii|.
    largest_kernel: float
    #: Variables of a block, which may come to be ``largest_size``, all of them.
    size: int
    largest_size: int
    #: Room for a block's kernel values, and whether it holds those of all variables.
    K: NDArray[Any]
    K_is_whole: bool
    #: Rows of K of a small problem.
    by_need: RowsByNeed | None
    #: Places of the last block's variables among the active ones, −1 for those dropped since.
    previous: Ints
    pace: Pace
    span: Span
    #: In how many features f is linear, 0 if that does not serve.
    w_features: int
    block: Block | None = None
    steps: int = 0
    rounds: int = 0
    #: Whether dropped variables were brought back for a look before the end.
    looked: bool = False
    violation: float = np.inf
    #: Steps in unfinished blocks, one after another.
    unfinished_steps: int = 0
    #: Steps that rounds of few steps took the time of.
    lost_steps: int = 0
    #: Work of all pair steps, in kernel values.
    step_work: float = 0.0
    #: ‖β‖² at the start, and ‖Δβ‖² of all that F was brought up to date by: a measure of the errors that have added up in it.
    drift2: float = 0.0
    #: Whether the last round has moved no variable.
    idle: bool = False
    checks: Checks = field(default_factory=Checks)
    #: Kernel values counted so far beside those of the engine in use: earlier engines', checks', other ways'.
    evaluations_before: int = 0
    #: At the end, variables whose F the certificate need not evaluate: it is from float64 kernel values, or does not matter.
    known: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    #: The β to return to, as ``note`` says, and the least primal objective noted.
    best: Best | None = None
    least_primal: float = np.inf
    #: The way to w, under way (smo_w.py); and what that led to, or β itself as w.
    to_w: Any = None
    by_w: Solution | None = None
    #: The rank of K, where it is low, or 0: by some rows, once factored by all; and L of these until steps take it.
    rank: int = 0
    low_rank: Floats | None = None
    #: Steps through the interior under way, and the variables they are for.
    interior: tuple[Ints, Interior] | None = None
    #: The least violation since such steps have led to where β is, and the β that has it.
    least_after: float = np.inf
    calmest: Floats | None = None
    done: bool = False
    stalled: bool = False


def solution_of(state: State) -> Solution:
    """The solution so far."""
    if state.by_w is not None and (state.done or state.stalled):
        return state.by_w
    beta, F = current(state)
    responses = None
    if len(state.known) and len(F) == state.problem.n:
        responses = np.full(len(F), np.nan)
        responses[state.known] = (state.constant - F)[state.known]
    rho = _rho(state, beta, F) if state.variables.begun else _rho_by_few(state, beta)
    return as_solution(state, beta, rho, responses)


def drowned(state: State) -> bool:
    """Whether a linear machine's sums over support vectors, F fresh, differ by more than eps if added up in another order.

    As of features with a large offset. Then rho fits one order alone, and the model that is written is another one. The other
    order is that of the file: each class's support vectors by themselves.
    """
    problem, beta = state.problem, state.variables.whole.beta
    if problem.kernel.kind != LINEAR or problem.rows.form != "sparse":
        return False
    if float64_noise(np.abs(beta).sum(), state.largest_kernel) <= state.eps:
        return False
    rows, names = narrowed(problem.rows)
    w = linear.fold(rows, np.maximum(beta, 0.0), len(names)) + linear.fold(rows, np.minimum(beta, 0.0), len(names))
    F = problem.y - linear.dots(rows, w)
    return not bool((np.abs(F - state.variables.whole.F) <= state.eps).all())


def as_w(state: State) -> Solution:
    """β as w, which sums are of few terms with, and the rho of its least primal objective."""
    whole, problem = state.variables.whole, state.problem
    rows, names = narrowed(problem.rows)
    w = linear.fold(rows, whole.beta, len(names))
    F = problem.y - linear.dots(rows, w)
    rho = 0.0 - best_level(F, whole.lower, whole.upper) if state.variables.bias else 0.0
    return as_one_row(w, names, problem.rows.n_features, rho, problem.y * whole.beta)


def as_solution(state: State, beta: Floats, rho: float, responses: Floats | None = None) -> Solution:
    """β of every variable, and rho."""
    coef: Floats = np.bincount(state.variables.row_of, weights=beta, minlength=state.problem.n).astype(np.float64)
    return as_expansion(coef, rho, responses)


def evaluations(state: State) -> int:
    """Kernel values so far."""
    return state.evaluations_before + state.variables.engine.evaluations


def work(state: State) -> float:
    """All that was done so far, in kernel values; of rounds of few steps also what it takes to open and to close them."""
    return evaluations(state) + state.step_work + 2.0 * len(state.K) * state.lost_steps


def spent(state: State) -> int:
    """What has been done, for ``pace.review``: pair steps, and those that could have been taken beside."""
    return state.steps + state.lost_steps


@np.errstate(over="ignore", invalid="ignore")  # where kernel values overflow
def note(state: State) -> bool:
    """Keeps β where its primal objective, by F just evaluated in float64, is clearly the least so far; or where its violation
    is less, and the objective as good as the least. Whether it does.
    """
    whole, best = state.variables.whole, state.best
    level = best_level(whole.F, whole.lower, whole.upper) if state.variables.bias else 0.0
    primal = primal_at(level, whole.beta, whole.F, state.constant, whole.lower, whole.upper)
    state.least_primal = min(state.least_primal, primal)
    alike = ALIKE * abs(state.least_primal)
    calmer = best is not None and state.violation < best.violation and primal <= state.least_primal + alike
    better = calmer or primal < (inf if best is None else best.primal - alike)
    if better:
        state.best = Best(whole.beta.copy(), primal, state.violation)
    return better


def return_to_the_best(state: State) -> None:
    """At the end of a run that has stalled: to the β of the least primal objective; to w where its own is clearly less, or
    where sums over support vectors drown.
    """
    for beta in (current_beta(state), state.calmest):
        if beta is not None:
            take(state, beta)
            note(state)
    if state.best is not None:
        take(state, state.best.beta)
    by_w, state.by_w = state.by_w, None
    if by_w is not None and primal_of(state.problem, by_w) < (1.0 - NOISE) * primal_of(state.problem, solution_of(state)):
        state.by_w = by_w
    elif drowned(state):
        state.by_w = as_w(state)


def check(state: State) -> None:
    """Recomputes F in float64 where it could decide the violation; done if that confirms it."""
    whole = state.variables.whole
    margin = float32_margin(state.largest_kernel, state.drift2)
    everything = len(state.K) == len(whole.number)  # then it costs little
    in_doubt = whole.number if everything else np.flatnonzero(~state.variables.stuck(whole, margin))
    state.variables.engine.put_away()  # most checks are the last thing that is done
    with parallel.leavable():
        refresh(state, in_doubt)
    _, _, state.violation = state.variables.extremes(whole)
    note(state)
    if not end_if_met(state, in_doubt) and state.checks.fail(state.violation):
        use_float64(state)


def end_if_met(state: State, fresh: Ints) -> bool:
    """Whether the violation, F of the variables ``fresh`` just evaluated in float64 and no other in doubt, ends the run."""
    if state.violation > state.eps:
        return False
    known = state.variables.whole.beta == 0.0  # where not in doubt: beyond the margin, no part of loss or violation
    known[fresh] = True
    state.done, state.known = True, np.flatnonzero(known)
    state.by_w = as_w(state) if drowned(state) else None
    return True


def primal_of(problem: Problem, found: Solution) -> float:
    """The primal objective, infinity where kernel values overflow."""
    primal = certify(problem, found).primal
    return inf if isnan(primal) else primal


def take(state: State, beta: Floats) -> None:
    """Goes on from β, all variables active and no round open, with F in float64. What ends its making leaves β as it was."""
    state.block = None
    state.previous = state.variables.restore(np.empty(0, np.int64))
    whole = state.variables.whole
    before, whole.beta = whole.beta, beta
    try:
        refresh(state, whole.number)
    except parallel.Left:
        whole.beta = before
        raise
    _, _, state.violation = state.variables.extremes(whole)


def adopt(state: State, beta: Floats, F: Floats) -> None:
    """Begins at β with F as another solver has added it up; the margin for errors leaves room for those of its steps."""
    state.variables.whole.beta, state.variables.whole.F = beta, F
    state.drift2 = float(beta @ beta)


def refresh(state: State, number: Ints) -> None:
    """F of the variables ``number`` from float64 kernel values against all support vectors."""
    whole, rows = state.variables.whole, state.problem.rows
    support = np.flatnonzero(whole.beta)
    state.span.forget()
    exact = state.variables.engine.real == "f8" and state.problem.kernel.kind != LINEAR  # w is cheaper, and better
    product = _product_at_hand(state) if exact else None
    if product is not None:
        whole.F[number] = (state.constant - product)[number]
        return
    if exact:
        F = state.constant[number]
        left = whole.packed if len(number) == len(whole.number) else whole.packed.take(number)
        state.variables.engine.apply(left, state.variables.row_of[support], -whole.beta[support], F)
        whole.F[number] = F
        return
    everything = len(number) == rows.n == len(whole.number)  # of a problem with one variable a row
    whole.F[number] = state.constant[number] - _product(state, whole.beta, None if everything else number)
    state.evaluations_before += len(number) * len(support)


def _product(state: State, beta: Floats, number: Ints | None) -> Floats:
    """Kβ of the variables ``number``, or of one for each row, from float64 kernel values."""
    rows, row_of = state.problem.rows, state.variables.row_of
    weights: Floats = np.bincount(row_of, weights=beta, minlength=rows.n).astype(np.float64)
    numbers = None if number is None else row_of[number]
    return cross_apply(rows, rows, state.problem.kernel, weights[:, None], numbers=numbers)[:, 0]


def _product_at_hand(state: State) -> Floats | None:
    """Kβ of all variables from values that are there: rows of K, which serve as its columns where K is symmetric."""
    if state.problem.kernel.kind == PRECOMPUTED:
        return None
    if state.by_need is not None:
        return state.by_need.product(state.variables.whole.beta)
    return product_of_rows(state.K, state.variables.whole.beta) if state.K_is_whole else None


def use_float64(state: State) -> None:
    """Turns training to float64 kernels; where it is already, nothing is left to try: stalled."""
    if state.variables.engine.real == "f8":
        state.stalled = True
        return
    use(state, Engine(state.problem.rows, state.problem.kernel, "f8"))
    refresh(state, state.variables.whole.number)
    state.idle, state.checks = False, Checks()


def use(state: State, engine: Engine) -> None:
    """Goes on with blocks on another engine's kernel values, all variables active."""
    if not state.variables.is_whole:
        state.previous = np.empty(0, np.int64)
    old = state.variables.engine
    state.variables.change_engine(engine)
    state.evaluations_before += old.evaluations  # those that brought dropped variables back among them
    state.span.forget()
    state.by_need, state.K_is_whole, state.K = None, False, aligned((state.size, state.size), engine.real)


def current(state: State) -> tuple[Floats, Floats]:
    """β and F of every variable, open round included."""
    beta, F = state.variables.current()
    if (block := state.block) is not None:
        inside = state.variables.active.number[block.place]
        beta[inside], F[inside] = block.beta, state.variables.inside(block.place, block.beta, block.F, state.K)
    return beta, F


def current_beta(state: State) -> Floats:
    """β of every variable, open round included."""
    beta = state.variables.current_beta()
    if state.block is not None:
        beta[state.variables.active.number[state.block.place]] = state.block.beta
    return beta


def _rho(state: State, beta: Floats, F: Floats) -> float:
    """rho at β: LIBSVM's, or after a stall, when F of free variables may be anything, that of the least primal objective."""
    if not state.variables.bias:
        return 0.0
    box = state.variables.whole.lower, state.variables.whole.upper
    return 0.0 - best_level(F, *box) if state.stalled else rho_of(F, beta, *box)


def _rho_by_few(state: State, beta: Floats) -> float:
    """rho at the start, while F is not known: by some of the free variables, or of all where none is."""
    whole = state.variables.whole
    if not state.variables.bias:
        return 0.0
    free = np.flatnonzero((whole.lower < beta) & (beta < whole.upper))
    some = free if len(free) else whole.number
    some = some[:: -(-len(some) // _FEW)]
    F = state.constant[some] - _product(state, beta, some)
    return rho_of(F, beta[some], whole.lower[some], whole.upper[some])


def rho_of(F: Floats, beta: Floats, lower: Floats, upper: Floats) -> float:
    """rho for F as it is at β, of one variable or more: the mean of −F over free ones, else the middle of its bounds, 0 where
    there are none.
    """
    return float(rhos_of(F, beta, lower, upper, np.zeros(1, np.int64))[0])


def rhos_of(F: Floats, beta: Floats, lower: Floats, upper: Floats, starts: Ints) -> Floats:
    """``rho_of`` each of several problems, one after another, which begin at ``starts``; to the bit."""
    free = (lower < beta) & (beta < upper)
    n_free = np.add.reduceat(free.astype(np.float64), starts)
    most = np.maximum.reduceat(np.where(beta < upper, F, -np.inf), starts)
    least = np.minimum.reduceat(np.where(beta > lower, F, np.inf), starts)
    known = np.isfinite(most), np.isfinite(least)
    n_known = known[0].astype(np.float64) + known[1]
    with np.errstate(over="ignore", invalid="ignore"):  # kernel values overflowed
        middle = np.where(known[0], most, 0.0) + np.where(known[1], least, 0.0)
        mean = np.add.reduceat(np.where(free, F, 0.0), starts) / np.maximum(n_free, 1.0)
        return 0.0 - np.where(n_free > 0, mean, middle / np.maximum(n_known, 1.0))
