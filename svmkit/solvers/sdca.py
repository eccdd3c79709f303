"""Stochastic dual coordinate ascent without a bias: sweeps over the examples in random order; kernel and linear form.

Solves    min ½ αᵀQα − Σα   s.t.  0 ≤ α ≤ upper,   Q_ij = y_i y_j K_ij
Step      α_i ← clip(α_i − G_i / K_ii, 0, upper_i),   G = Qα − 1, for each i of a random permutation, drawn anew each sweep
Stops     when the largest projected gradient is at most eps by responses freshly computed in float64; or after n·epochs visits
Memory    kernel form: packed rows, a block of at most 2048 × 2048, vectors of length n; linear form: w and vectors of length n
Papers    Shalev-Shwartz & Zhang, JMLR 14 (2013); Hsieh, Chang, Lin, Keerthi & Sundararajan, ICML 2008, algorithm 3, for the
          linear form and the rule by which variables are set aside

The kernel form works on β = y∘α in its box and F = y − Kβ = −y∘G of the active variables. The order of a sweep is known ahead:
so the next 256 variables are taken together, their kernel block is evaluated, the steps inside it are those of the plain
algorithm, and one fused product with all that changed brings F up to date. A sweep over the same variables as the one before
goes on along both moves (momentum.py), as far as the box lets each variable. At the end of a sweep variables at a bound whose F
lies further beyond it than any violation are set aside; once the active ones meet the tolerance all come back, F of each set
brought up to date from what has changed since it went. Kernel values are float32 where the data allow it, as in smo.

The linear form (sdca_linear.py) keeps w = Σ y_i α_i x_i, and a step costs the nonzeros of one row. Its solution is w itself,
one basis row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit.certificate import kkt_violation
from svmkit.data import Floats, Ints
from svmkit.engine import momentum, qp, rng
from svmkit.engine.active import ActiveSet
from svmkit.engine.by_need import product_of_rows
from svmkit.engine.kernels import Engine, cross_apply
from svmkit.engine.momentum import Move
from svmkit.engine.reviews import Checks
from svmkit.engine.space import aligned
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, Bias, Problem, Solution, as_expansion
from svmkit.solvers.sdca_linear import LinearForm
from svmkit.trace import Progress

SUMMARY = "stochastic dual coordinate ascent: sweeps in random order, without a bias"
PAPER = "Shalev-Shwartz & Zhang, JMLR 14 (2013); Hsieh et al., ICML 2008"
EXACT = True
WARM = True
BIASES: tuple[Bias, ...] = ("none",)

#: Variables whose kernel block is taken together.
_BLOCK = 256
#: So many active variables or fewer: their kernel block is evaluated once and kept.
_HELD = 2048
#: Variables that the box may hold back where a sweep goes on; by what share of the violation F may be rounded there.
_MOST_OUTSIDE, _ROUNDED = 64, 2.0**-20
#: Visits after which it does: what needs fewer is done before that has paid.
_LEAST_VISITS = 1024


@dataclass(frozen=True)
class Options:
    """``epochs``: the run ends with the sweep in which n·epochs visits are reached; ``shrinking`` sets variables aside;
    ``momentum`` lets a sweep of the kernel form go on."""

    epochs: float = field(default=1e5, metadata={"help": "times n examples are visited, at most"})
    shrinking: bool = field(default=True, metadata={"help": "set examples at their bounds aside (-h)"})
    momentum: bool = field(
        default=True, metadata={"help": "of a kernel: after a sweep go on along its move and the one before, as far as is best"}
    )


@dataclass
class State:
    """A form of the problem, and how far it is: the run ends with the sweep in which ``last`` visits are reached."""

    form: LinearForm | _KernelForm
    last: float
    steps: int = 0
    completed: bool = False


def start(problem: Problem, options: Options, eps: float, seed: int) -> State:
    """A fresh state; O(nonzeros), and from an α other than 0 one product with the kernel.

    Raises UsageError for an option that cannot be.
    """
    if not options.epochs > 0:
        raise UsageError(f"-O epochs={options.epochs:g}: must be greater than 0")
    form: LinearForm | _KernelForm
    if problem.kernel.kind == LINEAR:
        form = LinearForm(problem, options.shrinking, eps, seed)
    else:
        form = _KernelForm(problem, options.shrinking, options.momentum, eps, seed)
    return State(form, last=options.epochs * problem.n)


def advance(state: State, budget: int) -> Progress:
    """At most ``budget`` more visits of an example."""
    form, left = state.form, budget
    while left > 0 and not (form.done or state.completed or form.stalled):
        used = form.visit(left, state.last - state.steps)
        state.steps += used
        left -= used
        if used == 0:
            state.completed = state.steps >= state.last and not (form.done or form.stalled)
    return Progress(
        steps=state.steps,
        kernel_evaluations=form.kernel_evaluations(),
        violation=form.violation,
        done=form.done,
        completed=state.completed,
        stalled=form.stalled,
        n_support=form.n_support(),
    )


def solution(state: State) -> Solution:
    """The solution so far: support vectors; or w as one row, with its α."""
    return state.form.solution()


# --- kernel form ----------------------------------------------------------------------------------------------------------


@dataclass
class _Block:
    """Variables taken together: their places among the active ones, and in which order they are visited."""

    place: Ints
    order: Ints
    K: NDArray[Any]
    diagonal: Floats
    F: Floats
    beta: Floats
    lower: Floats
    upper: Floats
    at: int = 0
    moved: int = 0


class _KernelForm:
    """``held`` is the kernel block of all active variables, where they are few: of all there are only where it is in float64
    from the start. ``used`` says which of its rows have been. ``begun``: β and F at the sweep's begin; ``before``: the move of
    the sweep before, None where that was of other variables."""

    def __init__(self, problem: Problem, shrinking: bool, momentum: bool, eps: float, seed: int) -> None:
        self.problem, self.shrinking, self.momentum, self.eps, self.seed = problem, shrinking, momentum, eps, seed
        self.sweeps = 0
        self.violation = nan
        self.done = self.stalled = False
        self.small = problem.n <= _HELD  # float64 costs nothing there, and nothing is gained by setting variables aside
        engine = Engine(problem.rows, problem.kernel, "f8" if self.small else None)
        self.diagonal = engine.diagonal()
        self.largest = float(np.abs(self.diagonal).max(initial=0.0))
        self.room = aligned((_BLOCK, _BLOCK), engine.real)
        self.variables = ActiveSet(engine, problem.dual())
        self.variables.begin()
        self.held: NDArray[Any] | None = None
        self.used = np.empty(0, dtype=bool)
        self.evaluations = engine.evaluations
        self.block: _Block | None = None
        self.moved = 0
        self.checks = Checks()
        self.responses: Floats | None = None
        self._begin_sweep()

    def visit(self, budget: int, enough: float) -> int:
        if self.block is None:
            if self.at == len(self.order):
                self._end_sweep()
                return 0
            self.block = self._open_block()
        block = self.block
        used = min(budget, len(block.order) - block.at)
        block.moved += qp.ordered_steps[self.variables.engine.real](
            *(block.K, block.diagonal, block.F, block.beta, block.lower, block.upper, block.order, block.at, used)
        )
        block.at += used
        if block.at == len(block.order):
            self._close_block(block)
        return used

    def kernel_evaluations(self) -> int:
        return self.evaluations + (0 if self.block is None else self._used(self.block))

    def n_support(self) -> int:
        return int(np.count_nonzero(self.variables.current_beta()))

    def solution(self) -> Solution:
        beta = self.variables.current_beta()
        if self.block is not None:
            beta[self.variables.active.number[self.block.place]] = self.block.beta
        return as_expansion(beta, 0.0, responses=self.responses)

    def _open_block(self) -> _Block:
        """The next variables of the sweep; all at once where their kernel block is held."""
        active, engine = self.variables.active, self.variables.engine
        if len(active.number) <= _HELD:
            if self.held is None:
                self.held = engine.block(active.number, active.number)
                self.used = np.zeros(len(active.number), dtype=bool)
            K, place, order = self.held, np.arange(len(active.number)), self.order
            F = active.F
        else:
            place = self.order[self.at : self.at + _BLOCK]
            F, number = active.F[place], active.number[place]
            K, order = engine.block(number, number, self.room), np.arange(len(place))
        self.at += len(order)
        box = active.beta[place], active.lower[place], active.upper[place]
        return _Block(place, order, K, self.diagonal[active.number[place]], F, *box)

    def _used(self, block: _Block) -> int:
        """Kernel values that the block has used so far: a row for each move, of a held block only for a variable's first."""
        active = self.variables.active
        if self.held is None:
            return block.moved * len(active.number)
        return int(np.count_nonzero((block.beta != active.beta) & ~self.used)) * len(active.number)

    def _close_block(self, block: _Block) -> None:
        """Puts the block's β back and brings F of the active variables up to date; of a held block it is already."""
        active = self.variables.active
        self.evaluations += self._used(block)
        change = block.beta - active.beta[block.place]
        active.beta[block.place] = block.beta
        if self.held is None:
            changed = np.flatnonzero(change)
            self.variables.engine.apply(active.packed, active.number[block.place[changed]], -change[changed], active.F)
        else:
            self.used |= change != 0
        self.moved += block.moved
        self.block = None

    def _begin_sweep(self, before: Move | None = None) -> None:
        active = self.variables.active
        self.order, self.at, self.moved = rng.permutation(self.seed, self.sweeps, len(active.number)), 0, 0
        self.begun, self.before = (active.beta.copy(), active.F.copy()), before

    def _end_sweep(self) -> None:
        """Looks whether the tolerance is met, sets variables aside or brings them back, and begins the next sweep."""
        self.sweeps += 1
        active = self.variables.active
        self._measure()
        move = None
        if self.momentum and self.violation > self.eps and self.sweeps * self.problem.n >= _LEAST_VISITS:
            move = self._go_on()
            self._measure()
        if self.violation <= self.eps and not self.variables.is_whole:
            self._activate_all()
            self._measure()
        if self.violation <= self.eps:
            self._check()
            move = None
        elif self.moved == 0:
            self._refresh()
            self._use_float64()
            move = None
        elif self.shrinking and not self.small:
            self._set_aside()
        self._begin_sweep(move if self.variables.active is active else None)

    @np.errstate(over="ignore", invalid="ignore")  # of kernel values beyond 1e150 there is no going on
    def _go_on(self) -> Move:
        """From where the sweep has led to the best point of its plane, brought into the box, if that is better; the whole move.

        What the box takes from a variable changes F by a row of kernel values: of many there is no going on, nor where F would
        be rounded by more than a small share of the violation.
        """
        active, (begun_beta, begun_F) = self.variables.active, self.begun
        move = Move(active.beta - begun_beta, active.F - begun_F)
        more = momentum.farther(active.F, [move] if self.before is None else [move, self.before])
        if more is None or not momentum.noise(more, self.largest) <= _ROUNDED * self.violation:
            return move
        wanted = active.beta + more.beta
        beta = np.clip(wanted, active.lower, active.upper)
        outside = np.flatnonzero(beta != wanted)
        if len(outside) > _MOST_OUTSIDE:
            return move
        F = active.F + more.F
        self._change(outside, (beta - wanted)[outside], F)
        if momentum.gains(beta, active.F, Move(beta - active.beta, F - active.F)):
            active.beta, active.F = beta, F
        return Move(active.beta - begun_beta, active.F - begun_F)

    def _change(self, place: Ints, change: Floats, F: Floats) -> None:
        """Brings ``F`` of the active variables up to date with a change of β of those at ``place``."""
        active = self.variables.active
        if self.held is not None:
            whole = np.zeros(len(F))
            whole[place] = change
            F -= product_of_rows(self.held, whole)
            return
        self.variables.engine.apply(active.packed, active.number[place], -change, F)
        self.evaluations += len(place) * len(F)

    def _measure(self) -> None:
        """The violation among the active variables."""
        _, _, self.violation = self.variables.extremes(self.variables.active)

    def _set_aside(self) -> None:
        """Sets those at a bound aside whose F lies beyond it by more than the violation, if they are enough to be worth it."""
        before = self.variables.active
        place = self.variables.shrink(np.arange(len(before.number)), self.violation)
        if self.held is not None and self.variables.active is not before:
            kept = np.flatnonzero(place >= 0)
            self.held, self.used = np.ascontiguousarray(self.held[np.ix_(kept, kept)]), self.used[kept]

    def _activate_all(self) -> None:
        """Makes all variables active, F of those set aside brought up to date from what has changed since."""
        if not self.variables.is_whole:
            before = self.variables.engine.evaluations
            self.variables.restore(np.empty(0, np.int64))
            self.evaluations += self.variables.engine.evaluations - before
            self.held = None

    def _check(self) -> None:
        """Done if float64 responses confirm the violation; they replace the responses in any case."""
        responses = self._refresh()
        if self.violation <= self.eps:
            self.done, self.responses = True, responses
            return
        if self.checks.fail(self.violation):
            self._use_float64()

    def _refresh(self) -> Floats:
        """Makes all variables active with F, and the violation, from float64 kernel values; returns Kβ."""
        self._activate_all()
        problem, whole = self.problem, self.variables.whole
        responses: Floats = cross_apply(problem.rows, problem.rows, problem.kernel, whole.beta[:, None])[:, 0]
        self.evaluations += problem.n * int(np.count_nonzero(whole.beta))
        whole.F = problem.y - responses
        self.violation = kkt_violation(whole.F, whole.beta, problem.y, problem.upper, "none")
        return responses

    def _use_float64(self) -> None:
        """Turns to float64 kernels, all being active; where they are in use already, nothing is left to try: stalled."""
        if self.variables.engine.real == "f8":
            self.stalled = True
            return
        self.variables.change_engine(Engine(self.problem.rows, self.problem.kernel, "f8"))
        self.room = aligned(self.room.shape, "f8")
        self.checks = Checks()
