"""Block SMO's Newton steps on α: they take all active variables to their minimum, where rounds crawl near it.

By pivots (pivots.py) or, where these do not settle and few variables are active, through the interior (smo_interior.py).

With a large C and thousands of free variables, kernel values in float32 have their minimum elsewhere: where the run seems to
have ended, float64 values may find a hundred times the violation, and rounds in float32 would come down as slowly again. If
Newton steps cost little against all that was done, the run goes on with these, in float64.
"""

from __future__ import annotations

from svmkit.engine import pivots
from svmkit.solvers.smo_interior import minimise_active
from svmkit.solvers.smo_state import State, check, use_float64, work


def newton(state: State) -> bool:
    """Takes the active variables to their minimum, where pivots or a way through the interior lead there; whether it does."""
    active, rows = state.variables.active, state.variables.row_of[state.variables.active.number]
    found = pivots.minimise(state.variables.engine, active, rows, state.variables.bias, state.eps)
    state.pace.newton_was_tried()
    if found is None:
        return minimise_active(state, work(state))
    beta, active.F = found
    state.drift2 += float((beta - active.beta) @ (beta - active.beta))
    active.beta = beta
    return True


def check_end(state: State) -> None:
    """Whether the run has ended, by float64 kernel values; if it is far from that in float32, Newton steps in float64."""
    check(state)
    if state.done or state.stalled:
        return
    state.pace.was_wrong()
    in_float32 = state.variables.engine.real == "f4"
    if in_float32 and state.pace.newton_costs_little(state.violation, work(state), state.variables.active):
        use_float64(state)
        if state.shrinking:
            state.previous = state.variables.shrink(state.previous)
        newton(state)
