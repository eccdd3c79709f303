"""Block SMO's way through the interior of the box, for problems of few variables on which pair steps crawl (interior.py).

Where features are not scaled, a polynomial kernel's values lie so far apart that pair steps do not get near the optimum in any
number; a few dozen Newton steps do. (Where its monomials are few, steps on w are the better way: smo_w.py.) They are taken one
at a time, since calls of ``advance`` are short, while β stays where it was. It then goes where they have led, if it is better
off there. Where all but a few variables are dropped and pivots (pivots.py) do not settle, the others go to their minimum by
themselves, however many there are in all: with a large C that takes pair steps millions of turns.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from svmkit import parallel
from svmkit.data import Floats
from svmkit.engine.by_need import product_of_rows
from svmkit.engine.interior import Interior
from svmkit.engine.kernels import Engine
from svmkit.problem import Solution
from svmkit.solvers.smo_state import State, as_solution, current_beta, note, spent, take, use_float64

#: Variables n at most: K and a factor of it take 12 n² bytes, 200 MB, beside the block's values.
MOST = 4096


def may_go_inside(state: State) -> bool:
    """Whether there are few enough, and Newton steps on w would not be the better way."""
    return len(state.variables.row_of) <= MOST and not state.w_features


def go_inside(state: State) -> None:
    """Begins; steps come by ``go_on_inside``."""
    if state.variables.engine.real == "f4":
        use_float64(state)
    state.previous = state.variables.restore(state.previous)
    whole, row_of = state.variables.whole, state.variables.row_of
    movable = np.flatnonzero(whole.lower < whole.upper)
    rows = row_of[movable]
    K = state.variables.engine.block(rows, rows)
    total = float(whole.beta.sum()) if state.variables.bias else None
    bounds = whole.lower[movable], whole.upper[movable]
    state.interior = movable, Interior(K, state.constant[movable], *bounds, total, 0.5 * state.eps, whole.beta[movable])


def go_on_inside(state: State, budget: int) -> int:
    """As many steps as take the time of ``budget`` pair steps, one at least; returns how many pair steps these were."""
    assert state.interior is not None
    _, interior = state.interior
    each = ceil(state.pace.interior_step_work() / (2 * len(state.K)))
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
        interior = Interior(K, active.F, *room, 0.0 if state.variables.bias else None, 0.5 * state.eps, np.zeros(n))
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
    """On the way through the interior, what that has led to."""
    return None if state.interior is None else as_solution(state, _reached(state), 0.0 - state.interior[1].level)


def _reached(state: State) -> Floats:
    """β of all variables where the steps have led."""
    assert state.interior is not None
    movable, interior = state.interior
    beta = np.zeros(len(state.variables.row_of))
    beta[movable] = interior.beta
    return beta


def _arrive(state: State) -> None:
    """Takes all variables to where the steps led, if they are better off there."""
    assert state.interior is not None
    beta, met = _reached(state), state.interior[1].met
    state.interior = None
    take(state, current_beta(state))
    note(state)
    before = state.variables.whole.beta
    take(state, beta)
    if note(state):
        state.least_after = state.violation
        state.pace.hurry(spent(state), state.violation)
    elif not met:
        take(state, before)
