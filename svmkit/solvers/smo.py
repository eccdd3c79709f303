"""Block sequential minimal optimisation: the exact solver, and the default.

Solves    min ½ αᵀQα + pᵀα   s.t.  sᵀα = sᵀ(start),  0 ≤ α ≤ upper         (DualQP, problem.py; without bias, no equality)
Works on  β = s∘α in the box [lower, upper], F = −s∘(Qα + p) = −s∘p − Kβ, so that with up = {β < upper}, low = {β > lower}
          m = max F over up,  M = min F over low
Stops     m − M ≤ eps (without bias: max(m, −M) ≤ eps) by F freshly computed in float64
Memory    packed rows in float32, one q × q block, some vectors of length m; no kernel cache. Up to m = 4096: see below
Papers    Joachims (1999) for the decomposition; Fan, Chen & Lin, JMLR 6 (2005) for the choice of pairs; Keerthi et al. (2001)

A round takes q variables (half kept from the last round, free ones first, the rest the worst violators; smo_blocks.py),
evaluates their q × q kernel block, and takes pair steps in it until the violation inside is a tenth of that outside. One fused
product K[active, changed]·Δβ then brings F up to date. Now and again variables that sit at a bound and cannot violate are
dropped from the active set, which is packed anew; each drop remembers its β, and F of the dropped is brought up to date from
what changed. Near the minimum, where K is ill-conditioned and rounds crawl (smo_pace.py), every fourth round ends with the
minimum in the span of the last iterates (span.py); where that is not enough, Newton steps take all active variables there
(smo_newton.py).
Machines linear in few features can be out of reach for pair steps, above all where these are not scaled: under the linear
kernel, and under polynomials, whose features are monomials (monomials.py). Once a share of the work that Newton steps on w
take is done, these lead near the optimum (newton.py), and pair steps go on from there. Where features are so large that no α
in float64 makes w good enough, or sums over support vectors drown in rounding, w itself is the solution; so is the better one
of the two where a run is cut short on the way (smo_w.py). On other kernels, and where monomials are too many, a run of at most
4096 variables that has done as much as steps through the interior of the box would take turns to these, and one of any number
where K is of low rank, as of a smooth kernel in few features; then far sooner (smo_interior.py, low_rank.py).

A run on long rows, of which a kernel value takes longer to make than to read, that has made as many values as there are, if it
has no more than 4096 variables, takes them all into its block for the rest of its rounds: m² numbers of memory.

Most problems of at most 2048 variables (by_need.py says which) begin with steps among all of them, on rows of K in float64 that
are made when a step first needs them: where classes are easily told apart, that is few rows. If most are needed, problems of
up to 1024 have them all made, larger ones turn to rounds. Several such machines of one data set go together, and larger ones in
which one class is tiny (smo_together.py).

Of more examples than that, those that stand in the data more than once are one variable (smo_alike.py).

Training kernels are float32 where the data allow it, sums float64. When the violation seems to be at most eps, F of every row
that could matter is recomputed in float64 from all support vectors. If that shows a larger one, rounds go on from the corrected
F; if corrections stop helping, on float64 kernels throughout (smo_state.py, which also says what a stalled run ends with).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf

import numpy as np

from svmkit import parallel
from svmkit.data import Ints, Rows
from svmkit.engine import by_need, qp
from svmkit.engine.active import ActiveSet
from svmkit.engine.kernels import Engine
from svmkit.engine.packed import training_precision
from svmkit.engine.space import aligned, leave_rooms
from svmkit.engine.span import Span
from svmkit.errors import UsageError
from svmkit.problem import Bias, Kernel, Problem, Solution
from svmkit.solvers.smo_alike import Alike, alike
from svmkit.solvers.smo_blocks import are_few, may_grow, most_at_once, wanted
from svmkit.solvers.smo_interior import go_inside, go_on_inside, inside, interior_is_quicker
from svmkit.solvers.smo_newton import check_end, newton
from svmkit.solvers.smo_pace import Pace
from svmkit.solvers.smo_state import (
    Block,
    State,
    current_beta,
    evaluations,
    primal_of,
    return_to_the_best,
    solution_of,
    spent,
    use,
    use_float64,
    work,
)
from svmkit.solvers.smo_together import SmallMachines, small_machines
from svmkit.solvers.smo_w import claim_w_if_quicker, features_of_w, go_on_to_w, look_for_w, on_the_way, work_left_before_w
from svmkit.trace import Progress

SUMMARY = "block SMO, exact: second-order pair steps on fused kernel blocks, no cache (default)"
PAPER = "Joachims 1999; Fan, Chen & Lin, JMLR 6 (2005) 1889–1918"
EXACT = True
WARM = True
BIASES: tuple[Bias, ...] = ("free", "none")

#: Two variables kept and one new one from either end.
_SMALLEST_BLOCK = 4
#: A pair step on fewer variables takes as long as one on so many.
_STEP_VARIABLES = 64
#: Rounds between looks at what can be dropped from the active set.
_SHRINK_ROUNDS = 4
#: The share of all kernel values so far that an early look at the dropped variables may cost.
_LOOK_SHARE = 0.05
#: Steps after which a block is closed, finished or not: so many a variable, but so many in all; or when it is time for w.
_BLOCK_STEPS, _LEAST_BLOCK_STEPS = 64, 20_000
#: After so many steps, in unfinished blocks one after another, rounding may be what keeps them from finishing.
_MOST_UNFINISHED = 2_000_000
#: A round takes as long as so many pair steps at least, and a float64 kernel value as so many looks of a step at a variable.
_ROUND_STEPS, _FLOAT64_VALUE = 128, 16
#: Near the minimum, every so many rounds, β moves to the minimum in the span of the last iterates.
_SPAN_ROUNDS = 4


@dataclass(frozen=True)
class Options:
    """Fields as their help says."""

    working_set: int = field(
        default=0,
        metadata={"help": f"variables of a round at most, {_SMALLEST_BLOCK} … {qp.LARGEST_BLOCK}; 0: as suits the data"},
    )
    shrinking: bool = field(default=True, metadata={"help": "leave out variables that seem settled at a bound (-h)"})


def start(problem: Problem, options: Options, eps: float, seed: int) -> State:
    """A fresh state; there is no randomness. O(m) memory; steps from a start other than 0 begin with a product with the kernel.

    Raises UsageError for a block of a size that cannot be.
    """
    if options.working_set != 0 and not _SMALLEST_BLOCK <= options.working_set <= qp.LARGEST_BLOCK:
        raise UsageError(f"-O working_set={options.working_set}: must be 0, or lie in {_SMALLEST_BLOCK} … {qp.LARGEST_BLOCK}")
    repeated = alike(problem)
    return begin(problem if repeated is None else repeated.problem, options, eps, repeated)


def begin(problem: Problem, options: Options, eps: float, repeated: Alike | None = None) -> State:
    """A fresh state with a variable for each example of ``problem``, where they are those of ``repeated`` or all there are."""
    leave_rooms()  # of machines that were trained together: this one has its own
    dual = problem.dual()
    m = len(dual.sign)
    engine = needed = None
    if not options.working_set and by_need.suits(problem.rows, problem.kernel, problem.n):
        engine = Engine(problem.rows, problem.kernel, "f8", by_need.LAYOUT)
        needed = None if engine.packed.far else by_need.RowsByNeed(engine)
    if engine is None or needed is None:
        engine = Engine(problem.rows, problem.kernel, "f8" if are_few(m, options.working_set) else None)
    by_engine = needed is None or are_few(m, options.working_set)  # few are all taken at once, whatever the precision
    real = engine.real if by_engine else training_precision(problem.rows, problem.kernel)
    size = min(options.working_set or most_at_once(problem.rows, m, real), m)
    return State(
        problem=problem,
        repeated=repeated,
        eps=eps,
        shrinking=options.shrinking,
        variables=ActiveSet(engine, dual),
        constant=-dual.sign * dual.linear,
        largest_kernel=float(np.abs(engine.diagonal()).max(initial=0.0)),
        size=size,
        largest_size=m if may_grow(problem.rows, m, options.working_set) else size,
        K=aligned((size, size), engine.real) if needed is None else needed.K,
        by_need=needed,
        K_is_whole=False,
        previous=np.empty(0, np.int64),
        drift2=float(dual.start @ dual.start),
        pace=Pace(m, eps),
        span=Span(),
        w_features=features_of_w(problem),
    )


def together(rows: Rows, kernel: Kernel, options: Options, sizes: Ints, fewer: Ints) -> SmallMachines | None:
    """What trains small machines among ``rows`` several in a call; None where there are none, or options want other blocks."""
    return None if options.working_set else small_machines(rows, kernel, sizes, fewer)


def advance(state: State, budget: int) -> Progress:
    """At most ``budget`` more pair (without bias, coordinate) steps; what else rounds do is counted as steps of that length."""
    left = budget
    if not state.variables.begun:
        with parallel.leavable():
            state.variables.begin()
    while left > 0 and not (state.done or state.stalled):
        if state.to_w is not None:
            left -= go_on_to_w(state, left)
        elif state.interior is not None:
            left -= go_on_inside(state, left)
        elif state.block is None:
            _open_round(state)
        else:
            left -= _go_on(state, state.block, left)
        if state.stalled and state.w_features and state.pace.claim_w():
            look_for_w(state)
            state.stalled = state.to_w is None
        if state.stalled and interior_is_quicker(state, inf):
            state.stalled = False
            go_inside(state)
    if state.stalled:
        return_to_the_best(state)
    return Progress(
        steps=state.steps,
        kernel_evaluations=evaluations(state),
        violation=state.violation,
        done=state.done,
        stalled=state.stalled,
        n_support=int(np.count_nonzero(current_beta(state))),
    )


def _go_on(state: State, block: Block, budget: int) -> int:
    """At most ``budget`` more steps in the open block, and its end; returns how many, or as how many steps it took."""
    allowed = min(budget, block.most_steps - block.steps)
    used = _steps(state, block, allowed)
    finished = used < allowed
    if finished or block.steps == block.most_steps:
        state.unfinished_steps = 0 if finished else state.unfinished_steps + block.steps
        state.lost_steps += max(0, _ROUND_STEPS - block.steps)
        used += _overhead(state, block)
        _close_round(state, block)
        state.stalled |= state.pace.review(spent(state))
    if state.by_need is not None and state.by_need.given_up:
        use(state, Engine(state.problem.rows, state.problem.kernel))
    if state.unfinished_steps >= _MOST_UNFINISHED and state.variables.engine.real == "f4":
        use_float64(state)  # rounding may have made the block's kernel indefinite
    return used


def _overhead(state: State, block: Block) -> int:
    """As many pair steps as the rest of a round takes: its call, its kernel values and the product with what has changed."""
    size = len(block.place)
    values = 0 if state.by_need is not None else size * (size + len(state.variables.active.beta))
    dear = _FLOAT64_VALUE if state.variables.engine.real == "f8" else 1
    return max(_ROUND_STEPS - block.steps, dear * values // (2 * len(state.K)))


def solution(state: State) -> Solution:
    """The solution so far: of a run that is cut short, that of the least primal objective on any way."""
    found = _of_distinct(state)
    return found if state.repeated is None else state.repeated.shared_out(found)


def _of_distinct(state: State) -> Solution:
    found = inside(state) or solution_of(state)
    if state.done or state.stalled:
        return found
    ways = [way for way in (state.by_w, on_the_way(state)) if way is not None]
    return min([found, *ways], key=lambda each: primal_of(state.problem, each)) if ways else found


# --- rounds ---------------------------------------------------------------------------------------------------------------


def _open_round(state: State) -> None:
    """Chooses a block and evaluates it, unless something else comes first."""
    if state.size < state.largest_size and evaluations(state) >= state.largest_size**2:
        _take_all(state)
    m, M, state.violation = state.variables.extremes(state.variables.active)
    state.pace.note(state.violation)
    if state.least_after != np.inf and state.violation < state.least_after:
        state.least_after, state.calmest = state.violation, state.variables.current_beta()
    if _in_place_of_a_round(state):
        return
    if state.idle:  # the worst violators cannot move at this precision
        use_float64(state)
    if not state.stalled:
        state.block = _block(state, m, M)


def _in_place_of_a_round(state: State) -> bool:
    """Where the violation is small, brings back what was dropped, or checks the end; takes another way where that is quicker.

    Whether it has done one of these.
    """
    if not state.variables.is_whole and (state.violation <= state.eps or _worth_a_look(state)):
        _restore(state)
    elif state.violation <= state.eps:
        check_end(state)
    elif claim_w_if_quicker(state, work(state)):
        look_for_w(state)
    elif interior_is_quicker(state, work(state)):
        go_inside(state)
    else:
        return state.pace.newton_is_quicker(state.violation, work(state), state.variables.active) and newton(state)
    return True


def _block(state: State, m: float, M: float) -> Block:
    """The variables that can move most, between m and M, with their kernel values."""
    active = state.variables.active
    place = state.variables.choose(wanted(active.beta, len(state.K)), state.previous, m, M, state.violation)
    whole = len(place) == len(state.variables.whole.number)
    if state.by_need is None and not (whole and state.K_is_whole):
        rows = state.variables.row_of[active.number[place]]
        state.variables.engine.block(rows, rows, state.K)
        state.K_is_whole = whole
    real = state.variables.engine.real
    return Block(
        place=place,
        diagonal=qp.diagonal_of(state.K, len(place)) if state.by_need is None else state.by_need.diagonal,
        beta=active.beta[place],
        F=qp.block_F(active.F[place], 0.5 * (m + M) if state.variables.bias else 0.0, real),
        lower=active.lower[place],
        upper=active.upper[place],
        up=aligned(len(place), real),
        low=aligned(len(place), real),
        eps=qp.inner_eps(state.eps, state.violation, whole, real),
        most_steps=_most_steps(state, len(place)),
    )


def _most_steps(state: State, n: int) -> int:
    """Of a block of ``n`` variables; it does not depend on how steps are cut into calls, as work so far in a block may."""
    most, left = max(_LEAST_BLOCK_STEPS, _BLOCK_STEPS * n), work_left_before_w(state, work(state))
    return most if left == inf else min(most, max(1, ceil(left / _step_work(n))))


def _step_work(n: int) -> float:
    """Of a step in a block of ``n`` variables, in kernel values: it looks at each of them twice."""
    return 2.0 * max(n, _STEP_VARIABLES)


def _take_all(state: State) -> None:
    """From here on all variables are in the block, whose kernel values are made once more, and kept."""
    state.previous = state.variables.restore(state.previous)
    state.size, state.shrinking = state.largest_size, False
    state.K, state.K_is_whole = aligned((state.size, state.size), state.variables.engine.real), False


def _worth_a_look(state: State) -> bool:
    """Whether to bring dropped variables back once before the end: near it, and where that is cheap against the work so far.

    A long run may have dropped some that belong back; on a short one the look costs more than it finds.
    """
    if state.looked or state.violation > 10 * state.eps:
        return False
    cost = (len(state.variables.whole.beta) - len(state.variables.active.beta)) * int(
        np.count_nonzero(state.variables.active.beta)
    )
    state.looked = cost <= _LOOK_SHARE * evaluations(state)
    return state.looked


def _steps(state: State, block: Block, budget: int) -> int:
    bias, moved, bounds = state.variables.bias, (block.F, block.beta), (block.lower, block.upper)
    if state.by_need is not None:
        used = state.by_need.steps(bias, *moved, *bounds, block.eps, budget)
    else:
        steps = (qp.pair_steps if bias else qp.coordinate_steps)[state.variables.engine.real]
        used = steps(state.K, block.diagonal, *moved, *bounds, block.up, block.low, block.eps, budget)
    block.steps += used
    state.steps += used
    state.step_work += _step_work(len(block.place)) * used
    return used


def _close_round(state: State, block: Block) -> None:
    """Puts the block's β back, brings F of the active variables up to date, and shrinks when it is time."""
    active = state.variables.active
    change = block.beta - active.beta[block.place]
    changed = np.flatnonzero(change)
    if len(block.place) == len(state.variables.whole.number):
        active.F[block.place] = state.variables.inside(block.place, block.beta, block.F, state.K)
    else:
        rows = state.variables.row_of[active.number[block.place[changed]]]
        state.variables.engine.apply(active.packed, rows, -change[changed], active.F)
    active.beta[block.place] = block.beta
    state.drift2 += float(change @ change)
    state.idle = len(changed) == 0
    state.previous = block.place
    state.block = None
    state.rounds += 1
    nearly_done = state.checks.least < np.inf and state.violation <= 10 * state.eps  # bringing back would cost more
    if state.shrinking and state.by_need is None and not nearly_done and state.rounds % _SHRINK_ROUNDS == 0:
        state.previous = state.variables.shrink(state.previous)
    if state.rounds % _SPAN_ROUNDS == 0 and state.pace.is_near(state.violation):
        state.span.note(state.variables)
        state.drift2 += state.span.minimise(state.variables, len(state.K))


def _restore(state: State) -> None:
    """Brings back what was dropped, and drops anew what cannot violate while others do."""
    with parallel.leavable():
        state.previous = state.variables.restore(state.previous)
    _, _, state.violation = state.variables.extremes(state.variables.whole)
    if state.violation > state.eps:
        state.previous = state.variables.shrink(state.previous)
