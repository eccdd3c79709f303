"""LASVM: an online SVM that learns an example at a time and ends near the exact one after a single pass.

Solves    min ½‖w‖² + Σ C_i max(0, 1 − y_i f(x_i)),  f = ⟨w, φ⟩ + b, through its dual
          max Σ y_i α_i − ½ Σ α_i α_j K_ij   s.t.  Σ α_i = 0,  α_i between 0 and C_i y_i        (signed α)
Steps     S is a set of examples with gradients g_s = y_s − Σ_S α_t K_st. A pair (i, j) with α_i < upper, α_j > lower violates
          where g_i − g_j > eps; its step raises α_i and lowers α_j as far as the box and the minimum along the line allow.
          PROCESS(k): k joins S with α_k = 0, and a step of k with the extreme partner. REPROCESS: a step of the most violating
          pair, then members with α_s = 0 leave S that do not violate, nor nearly: within a third of the violation in S and
          keep_within times the share of the examples so far that S has (0 in the paper, and where examples are chosen), while
          S × S has room. b is the middle of the extreme gradients. budget N: of more, the oldest of the larger class leaves,
          its α passed on to extremes with room
Stops     after ``epochs`` passes and the finishing: block SMO (smo.py) on S, from where its members are
Memory    cache_mb of kernel values among S, 128 for each member beside them; the packed rows (from a stream: those of S);
          in the finishing what smo takes for the rows of S beside that
Paper     Bordes, Ertekin, Weston & Bottou, JMLR 6 (2005): Section 3.2 for the steps, 5.2 for the choice of examples

The order of examples is known ahead, or each is chosen: lasvm_selection.py. Kernel values count where the algorithm uses one
that is not kept: of an example with the terms of f when it comes, with the rest of S if it stays or has had a step, and rows
that had to be given up for lack of memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from svmkit.data import NO_ROWS, Floats, Ints, Rows, stack
from svmkit.engine.kernels import Engine, stream_engine
from svmkit.engine.slots import ALPHA, GRADIENT, LOWER, ROW, UPPER
from svmkit.engine.support import SupportSet
from svmkit.errors import UsageError
from svmkit.problem import PRECOMPUTED, Bias, Kernel, Problem, Solution, Stream, of_other_rows
from svmkit.solvers import smo
from svmkit.solvers.base import refused_bias
from svmkit.solvers.lasvm_selection import SELECTIONS, Selection
from svmkit.solvers.smo_state import State as Finishing
from svmkit.solvers.smo_state import adopt, current, solution_of
from svmkit.trace import Progress

SUMMARY = "LASVM: online steps on a growing set of support vectors; streams, warm start, active selection"
PAPER = "Bordes, Ertekin, Weston & Bottou, JMLR 6 (2005) 1579–1619"
EXACT = False
ACCURACY: float | None = 0.25
BIASES: tuple[Bias, ...] = ("free",)
WARM = True

#: Rows up to this number are trained on in float64, which costs nothing there.
_SMALL = 1024
#: Steps of a stream that signals wait for.
_STREAM_STEPS = 1 << 16


@dataclass(frozen=True)
class Options:
    """Fields as their help says."""

    epochs: int = field(default=1, metadata={"help": "passes over the examples"})
    selection: str = field(default="random", metadata={"help": "which example is next: random, gradient, active or autoactive"})
    candidates: int = field(default=50, metadata={"help": "examples that gradient and active choose from (not on a stream)"})
    delta_max: float = field(default=inf, metadata={"help": "reprocess until violations in S are at most so large (inf: once)"})
    keep_within: float = field(
        default=0.35,
        metadata={"help": "random: the larger, the more members near violating stay in S (0: none, as in the paper)"},
    )
    budget: int = field(
        default=0, metadata={"help": "members of S at most, the oldest of the larger class leaving; 0: any number"}
    )
    finish: bool = field(default=True, metadata={"help": "end by solving for the support vectors to within eps"})
    cache_mb: float = field(default=100.0, metadata={"help": "memory for kernel values among support vectors (-m)"})


@dataclass
class State:
    """A stream has ``C``, rows, those of S, and no ``selection``; ``place``: which example of a pass each row is, −1 for none.

    ``seen`` counts the examples of this pass, ``known`` are those that were in S when it began. ``so_far``: what the
    finishing under way says; ``by_w``: what it ended with where that is w alone.
    """

    options: Options
    kernel: Kernel
    eps: float
    support: SupportSet
    rows: Rows
    selection: Selection | None = None
    C: float = 0.0
    place: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    seen: int = 0
    known: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    finishing: Finishing | None = None
    so_far: Progress = field(default_factory=lambda: Progress(0, 0))
    finished_steps: int = 0
    finished_evaluations: int = 0
    by_w: Solution | None = None
    completed: bool = False
    stalled: bool = False


def start(problem: Problem, options: Options, eps: float, seed: int) -> State:
    """A fresh state: S empty, or the support vectors of ``problem.start``. Raises UsageError for an option that cannot be."""
    _check(options)
    engine = Engine(problem.rows, problem.kernel, "f8" if problem.n <= _SMALL else None)
    selection = Selection(problem, options.selection, options.candidates, seed)
    state = State(
        options=options,
        kernel=problem.kernel,
        eps=eps,
        support=_empty(engine, problem.n, options, eps),
        rows=problem.rows,
        selection=selection,
    )
    if problem.start is not None:
        _warm_start(state, problem, problem.start)
    selection.next_epoch(state.support)
    return state


def _empty(engine: Engine, most: int | None, options: Options, eps: float) -> SupportSet:
    keep_within = options.keep_within if options.selection == "random" else 0.0
    return SupportSet(engine, options.cache_mb, most, eps, options.delta_max, keep_within, options.budget)


def _check(options: Options) -> None:
    if options.epochs < 1:
        raise UsageError(f"-O epochs={options.epochs}: must be at least 1")
    if options.selection not in SELECTIONS:
        raise UsageError(f"-O selection={options.selection}: must be one of {', '.join(SELECTIONS)}")
    if options.candidates < 1:
        raise UsageError(f"-O candidates={options.candidates}: must be at least 1")
    if not options.delta_max > 0:
        raise UsageError(f"-O delta_max={options.delta_max}: must be greater than 0")
    if not options.keep_within >= 0:
        raise UsageError(f"-O keep_within={options.keep_within}: must be at least 0")
    if options.budget < 0 or options.budget == 1:
        raise UsageError(f"-O budget={options.budget}: must be 0 (any number) or at least 2")


def advance(state: State, budget: int) -> Progress:
    """At most ``budget`` more steps: an example with its first REPROCESS, each further one, a pair step of the finishing."""
    selection = state.selection
    assert selection is not None
    left = budget
    while left > 0 and not state.completed:
        if state.support.waiting:
            left -= state.support.learn(left)
        elif state.finishing is None and selection.left:
            _open_next(state, selection)
        elif selection.epoch + 1 < state.options.epochs:
            selection.next_epoch(state.support)
        else:
            _finish(state, left)
            left = 0
    return progress(state)


def progress(state: State) -> Progress:
    """What has been done so far."""
    return Progress(
        steps=int(state.support.steps) + state.finished_steps + state.so_far.steps,
        kernel_evaluations=state.support.evaluations + state.finished_evaluations + _finishing_evaluations(state),
        violation=state.support.delta if state.finishing is None else state.so_far.violation,
        completed=state.completed and not state.stalled,
        stalled=state.stalled,
        n_support=int(np.count_nonzero(_point(state)[0])),
    )


def solution(state: State) -> Solution:
    """f so far."""
    if state.by_w is not None:
        return state.by_w
    alpha, members = _point(state)
    inside = alpha != 0
    origin, coef = state.support.slots[ROW, members[inside]], alpha[inside]
    rho = -state.support.bias if state.finishing is None else solution_of(state.finishing).rho
    if state.selection is None:
        return of_other_rows(state.rows.take(origin), coef, rho)
    return Solution(origin, coef, rho)


def _point(state: State) -> tuple[Floats, Ints]:
    """α of the members of S, and their slots."""
    members = state.support.members()
    return state.support.reals[ALPHA, members], members


# --- the next examples ----------------------------------------------------------------------------------------------------


def _open_next(state: State, selection: Selection) -> None:
    """Stages the next examples of a known order, or one that is chosen."""
    problem = selection.problem
    if selection.name == "random":
        rows = selection.in_order(state.support.room())
        state.support.open(rows, problem.upper[rows])
        state.support.label(problem.y[rows])
    else:
        state.support.label(problem.y[[choose(state)]])


def choose(state: State) -> int:
    """Stages the example to learn next and returns its row, −1 where none is left. active and autoactive ask for no label."""
    selection, support = state.selection, state.support
    assert selection is not None
    if not selection.left:
        return -1
    support.room()
    row, values = selection.choose(support)
    rows = np.array([row])
    support.open(rows, selection.problem.upper[rows], values)
    return row


def put_back(state: State) -> None:
    """The example chosen last is one of those still to come again."""
    assert state.selection is not None
    state.selection.at -= 1
    state.support.unstage()


def learn(state: State, row: int, label: float) -> None:
    """Learns ``row`` with its label, ±1: the example chosen last, or any other of those still to come.

    Raises ValueError for another than the one chosen while that waits.
    """
    selection, support = state.selection, state.support
    assert selection is not None
    if support.waiting and support.last_row != row:
        raise ValueError(f"row {support.last_row} was chosen and waits for its label, not row {row}")
    _reopen(state)
    if not support.waiting:
        support.room()
        selection.take_out(row)
        rows = np.array([row])
        support.open(rows, selection.problem.upper[rows])
    support.label(np.array([label]))
    while support.waiting:
        support.learn(1 << 40)


# --- warm start -----------------------------------------------------------------------------------------------------------


def _warm_start(state: State, problem: Problem, given: Floats) -> None:
    """S becomes the examples with α > 0, their gradients from one fused product. Raises UsageError for more than the budget."""
    support, rows = state.support, np.flatnonzero(given > 0)
    if 0 < state.options.budget < len(rows):
        raise UsageError(
            f"-O budget={state.options.budget}: the model to go on from (--init) has {len(rows):,} support vectors already; "
            "allow as many at least"
        )
    alpha = (problem.y * given)[rows]
    g = problem.y[rows].copy()
    support.engine.apply(support.engine.packed.take(rows), rows, -alpha, g)
    support.adopt(rows, problem.upper[rows], problem.y[rows], alpha, g)


# --- the end --------------------------------------------------------------------------------------------------------------


def _finish(state: State, budget: int) -> None:
    """At most ``budget`` steps of the finishing, begun where it is not yet."""
    support = state.support
    if not state.options.finish or not support.two_sided:
        state.completed = True
        return
    members = support.members()
    state.finishing = state.finishing or _finishing(state)
    state.so_far = smo.advance(state.finishing, budget)
    support.reals[ALPHA, members], support.reals[GRADIENT, members] = current(state.finishing)
    if state.so_far.ended:
        state.completed, state.stalled = True, state.so_far.stalled
        state.by_w = _as_own(state, state.finishing.by_w)
        _close(state)


def _finishing(state: State) -> Finishing:
    """A run over the members from where they are."""
    support, members = state.support, state.support.members()
    alpha, g, lower, upper = (support.reals[k, members] for k in (ALPHA, GRADIENT, LOWER, UPPER))
    y = np.where(upper > 0.0, 1.0, -1.0)
    among = Problem(state.rows.take(support.slots[ROW, members]), y, upper - lower, state.kernel)
    run = smo.begin(among, smo.Options(), state.eps)
    adopt(run, alpha, g)
    return run


def _close(state: State) -> None:
    """The finishing has ended, or is given up; what it has done counts."""
    state.finished_steps += state.so_far.steps
    state.finished_evaluations += _finishing_evaluations(state)
    state.finishing, state.so_far = None, Progress(0, 0)
    state.support.refresh()


def _reopen(state: State) -> None:
    """More examples come after the finishing, or in the midst of it."""
    state.completed = state.stalled = False
    state.by_w = None
    if state.finishing is not None:
        _close(state)


def _as_own(state: State, by_w: Solution | None) -> Solution | None:
    """w of the members' machine as an answer to the whole problem, whose α is theirs and 0; a stream's examples are gone."""
    if by_w is None:
        return None
    alpha = None
    if state.selection is not None and by_w.alpha is not None:
        alpha = np.zeros(state.rows.n)
        alpha[state.support.slots[ROW, state.support.members()]] = by_w.alpha
    return replace(by_w, alpha=alpha)


def _finishing_evaluations(state: State) -> int:
    """0 where all kernel values among S have room, though it may compute them again."""
    return 0 if state.support.holds_all else state.so_far.kernel_evaluations


def finish(state: State, budget: int) -> Progress:
    """The finishing at a stream's end, at most ``budget`` steps of it, until ``Progress.ended``; more examples may follow."""
    if not state.completed:
        _finish(state, budget)
    return progress(state)


# --- streams --------------------------------------------------------------------------------------------------------------


def start_stream(stream: Stream, options: Options, eps: float, seed: int) -> State:
    """A state that learns what ``extend`` brings. Raises UsageError where C is not known or an option makes no sense."""
    _check(options)
    if stream.C is None:
        raise UsageError("--solver lasvm: learning from a stream needs -c, the cost of an error")
    if stream.bias not in BIASES:
        raise UsageError(f"--solver lasvm: {refused_bias(BIASES)}")
    if stream.kernel.kind == PRECOMPUTED:
        raise UsageError("--solver lasvm: a stream cannot be of a precomputed kernel's rows")
    if options.selection != "random" or options.epochs != 1:
        raise UsageError("--solver lasvm: a stream is learned once, in its own order (-O selection, -O epochs)")
    engine = stream_engine(NO_ROWS, stream.kernel, NO_ROWS.n_features)
    support = _empty(engine, None, options, eps)
    return State(options=options, kernel=stream.kernel, eps=eps, support=support, rows=NO_ROWS, C=stream.C)


def resume(state: State, problem: Problem) -> None:
    """S of a fresh state becomes the examples of ``problem`` with α > 0; they are no part of a pass."""
    assert problem.start is not None
    state.rows, state.place = problem.rows, np.full(problem.n, -1)
    state.support.renumber(stream_engine(problem.rows, state.kernel, problem.rows.n_features), np.empty(0, np.int64))
    _warm_start(state, problem, problem.start)


def extend(state: State, rows: Rows, y: Floats, weight: Floats) -> Floats:
    """Learns the examples in order; returns (k,) f(x) of each just before it was learned, 0 where S was empty.

    In a second pass those that were in S when it began have their α already: they are passed over, with 0.
    """
    place = np.arange(state.seen, state.seen + rows.n)
    state.seen += rows.n
    new = np.flatnonzero(~np.isin(place, state.known))
    if len(new) == rows.n:
        return _learn(state, rows, y, weight, place)
    responses = np.zeros(rows.n)
    if len(new):
        responses[new] = _learn(state, rows.take(new), y[new], weight[new], place[new])
    return responses


def begin_pass(state: State) -> None:
    """From here on the examples come again, from the first."""
    state.seen, state.known = 0, state.place[state.support.slots[ROW, state.support.members()]]


def _learn(state: State, rows: Rows, y: Floats, weight: Floats, place: Ints) -> Floats:
    support = state.support
    _reopen(state)
    own = support.slots[ROW, support.members()]
    kept = state.rows.take(own)
    place = np.concatenate([state.place[own], place])
    state.rows = stack([kept, rows]) if kept.n else rows
    support.renumber(stream_engine(state.rows, state.kernel, state.rows.n_features), np.arange(kept.n))
    responses = np.empty(rows.n)
    done = 0
    while done < rows.n:
        n = min(support.room(), rows.n - done)
        here = slice(done, done + n)
        support.open(kept.n + np.arange(done, done + n), state.C * weight[here])
        support.label(y[here])
        while support.waiting:
            support.learn(_STREAM_STEPS)
        responses[here] = np.nan_to_num(support.responses())
        done += n
    members = support.members()
    own = support.slots[ROW, members]
    state.rows, state.place = state.rows.take(own), place[own]
    support.renumber(stream_engine(state.rows, state.kernel, state.rows.n_features), np.arange(len(members)))
    return responses
