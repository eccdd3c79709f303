"""Block SMO's way through the interior of the box, for problems of few variables on which pair steps crawl (interior.py).

Where features are not scaled, a polynomial kernel's values lie so far apart that pair steps do not get near the optimum in any
number; a few dozen Newton steps do. (Where its monomials are few, steps on w are the better way: smo_w.py.) They are taken one
at a time, since calls of ``advance`` are short, while β stays where it was. It then goes where they have led, if it is better
off there. Where all but a few variables are dropped and pivots (pivots.py) do not settle, the others go to their minimum by
themselves, however many there are in all: with a large C that takes pair steps millions of turns.

Where K is of low rank (low_rank.py), as of rbf in two or three features with a small gamma, these steps cost little, of a
hundred thousand variables, too, and are taken soon. F is then that of the low rank until they have ended, and where that has
been too little a few more make it good. Of a whole face of optima they end in the midst, and a corner of it is taken, of fewer
support vectors (corner.py).
"""

from __future__ import annotations

from math import ceil

import numpy as np

from svmkit import parallel
from svmkit.data import Floats, Rows
from svmkit.engine.by_need import product_of_rows
from svmkit.engine.corner import corner
from svmkit.engine.interior import ALIKE, Interior, Matrix, Whole
from svmkit.engine.kernels import Engine
from svmkit.engine.low_rank import LEAST_SHARE, LowRank, factor
from svmkit.problem import PRECOMPUTED, Solution
from svmkit.solvers.smo_state import (
    State,
    as_solution,
    current_beta,
    end_if_met,
    note,
    spent,
    take,
    use_float64,
)

#: Variables n at most: K and a factor of it take 12 n² bytes, 200 MB, beside the block's values.
MOST = 4096
#: Rows that tell whether K is of low rank; the rank at most that is low, of these and of all rows, about so many times that of
#: these where they are more; and values of L, 134 MB.
_SOME, _RANK_OF_SOME, _MOST_RANK, _RANK_OF_ALL, _MOST_VALUES = 1024, 384, 768, 1.5, 1 << 24
#: The share of kernel values that L may leave, at most; less where F would be off by more than such a share of eps.
_MOST_SHARE, _OFF = 1e-9, 0.25


def interior_is_quicker(state: State, work: float) -> bool:
    """Whether after so much ``work``, in kernel values, such steps may be the shorter way: once by a low rank, and once by the
    whole of K where there are few variables.

    Never where Newton steps on w would be the better one. Some rows say what the rank is, and all are factored when it is time.
    """
    if state.w_features:
        return False
    rows, kernel, pace = state.problem.rows, state.problem.kernel, state.pace
    most = min(_MOST_RANK, rows.n // 4, _MOST_VALUES // rows.n)
    if pace.claim_rank(work) and not (kernel.indefinite or kernel.kind == PRECOMPUTED):
        some = rows if rows.n <= _SOME else rows.take(np.arange(_SOME) * rows.n // _SOME)
        L = _factor(state, some, min(most, _RANK_OF_SOME))
        likely = 0 if L is None else ceil(L.shape[1] * (1.0 if some is rows else _RANK_OF_ALL))
        state.rank = likely if likely <= most else 0
    if state.rank and work >= pace.work_before_interior(state.rank):
        state.low_rank = _factor(state, rows, most)
        state.rank = 0 if state.low_rank is None else state.low_rank.shape[1]
        if state.rank:
            return True
    return not state.rank and len(state.variables.row_of) <= MOST and pace.claim_interior_if_quicker(work)


def _factor(state: State, rows: Rows, most: int) -> Floats | None:
    """L of some rows or all, so near K that F is off by little, as far as β now tells; None where K is not of low rank."""
    size = state.largest_kernel * float(np.abs(current_beta(state)).sum())
    share = max(LEAST_SHARE, min(_MOST_SHARE, _OFF * state.eps / size)) if size > 0.0 else _MOST_SHARE
    engine = Engine(rows, state.problem.kernel, "f8")
    with parallel.leavable():
        L = factor(engine, most, share)
    state.evaluations_before += engine.evaluations
    return L


def go_inside(state: State) -> None:
    """Begins; steps come by ``go_on_inside``."""
    if state.low_rank is None and state.variables.engine.real == "f4":
        use_float64(state)
    beta, whole = current_beta(state), state.variables.whole
    movable = np.flatnonzero(whole.lower < whole.upper)
    rows = state.variables.row_of[movable]
    if state.low_rank is None:
        K: Matrix = Whole(state.variables.engine.block(rows, rows))
    else:
        state.low_rank = state.low_rank[rows]
        K = LowRank(state.low_rank, state.variables.engine.diagonal()[rows])
    total = float(beta.sum()) if state.variables.bias else None
    bounds = whole.lower[movable], whole.upper[movable]
    state.interior = movable, Interior(K, state.constant[movable], *bounds, total, 0.5 * state.eps, beta[movable])


def go_on_inside(state: State, budget: int) -> int:
    """As many steps as take the time of ``budget`` pair steps, one at least; returns how many pair steps these were."""
    assert state.interior is not None
    _, interior = state.interior
    each = ceil(state.pace.interior_step_work(state.rank) / (2 * len(state.K)))
    n_steps = 0
    while not interior.ended and n_steps < max(1, budget // each):
        interior.step()
        n_steps += 1
    if interior.ended:
        _arrive(state)
    return n_steps * each


def minimise_active(state: State, work: float) -> bool:
    """Takes the active variables, if that costs little against all ``work`` so far, to their minimum. Whether it does."""
    active, kernel = state.variables.active, state.problem.kernel
    n = len(active.beta)
    if n > MOST or not (state.pace.interior_costs_little(n, work) and (active.lower < active.upper).all()):
        return False
    K = Engine(state.problem.rows.take(state.variables.row_of[active.number]), kernel, "f8").block(np.arange(n), np.arange(n))
    state.evaluations_before += K.size
    room = active.lower - active.beta, active.upper - active.beta
    with parallel.leavable():
        interior = Interior(Whole(K), active.F, *room, 0.0 if state.variables.bias else None, 0.5 * state.eps, np.zeros(n))
        while not interior.ended:
            parallel.stay()
            interior.step()
    beta = np.clip(active.beta + interior.beta, active.lower, active.upper)
    change = beta - active.beta
    F = active.F - product_of_rows(K, change)
    if not (active.F + F) @ change > 0.0:  # twice what the objective falls by
        return False
    active.beta, active.F = beta, F
    state.drift2 += float(change @ change)
    return True


def inside(state: State) -> Solution | None:
    """On the way through the interior, what that has led to, if it is better off there; no kernel value is made."""
    if state.interior is None:
        return None
    movable, interior = state.interior
    if not interior.least_primal < interior.primal_of(current_beta(state)[movable]):
        return None
    return as_solution(state, _reached(state), 0.0 - interior.level)


def _reached(state: State) -> Floats:
    """β of all variables where the steps have led."""
    assert state.interior is not None
    movable, interior = state.interior
    beta = np.zeros(len(state.variables.row_of))
    beta[movable] = interior.beta
    return beta


def _arrive(state: State) -> None:
    """Takes all variables to where the steps led, if they are better off there.

    Where that was the optimum by F of the low rank and is not by kernel values, a few more steps lead there.
    """
    assert state.interior is not None
    movable, interior = state.interior
    if interior.met and state.low_rank is not None:
        whole = state.variables.whole
        with parallel.leavable():
            interior.offer(
                corner(state.low_rank, interior.beta, whole.lower[movable], whole.upper[movable], state.variables.bias)
            )
    before, beta = current_beta(state), _reached(state)
    with parallel.leavable():
        if not interior.least_primal < (1.0 - ALIKE) * interior.primal_of(before[movable]):  # else it is clearly not the best
            take(state, before)
            note(state)
        take(state, beta)
    if note(state):
        last, state.least_after = state.least_after, state.violation
        state.pace.hurry(spent(state), state.violation)
        if not end_if_met(state, state.variables.whole.number) and interior.met and state.violation <= 0.5 * last:
            interior.correct(state.variables.whole.F[movable])
            return
    elif not interior.met:
        take(state, before)
    state.interior, state.low_rank, state.rank = None, None, 0
