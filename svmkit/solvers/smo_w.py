"""Block SMO's way by w, for linear machines of few features: Newton steps on w (newton.py) in place of pair steps on α.

They are taken a few at a time, since calls of ``advance`` are short, while β stays where it was. Where they have ended, β goes
to the α that violates least, if the primal objective is less there; and where features are so large that rounding hides the
optimum from every α, w itself is the solution. So it is, where it is the better one, of a run that is cut short on the way.
"""

from __future__ import annotations

from math import ceil

from svmkit.certificate import certify
from svmkit.problem import LINEAR, Solution
from svmkit.solvers import newton
from svmkit.solvers.smo_state import State, current, note, take
from svmkit.trace import Progress

#: Newton steps that leave a violation of so many times eps, where rounding may make one of eps or the gap is such a share of
#: the objective, are at an optimum that rounding hides.
_HIDDEN, _HIDDEN_GAP = 100.0, 1e-5


def may_look_for_w(state: State) -> bool:
    """Whether the rows are linear and of features that are not too many for Newton steps on w."""
    return state.problem.kernel.kind == LINEAR and state.problem.rows.n_features <= newton.MOST_FEATURES


def look_for_w(state: State) -> None:
    """Begins; steps come by ``go_on_to_w``."""
    state.to_w = newton.start(state.problem, newton.Options(), 0.5 * state.eps, 0)


def go_on_to_w(state: State, budget: int) -> int:
    """As many Newton steps as take the time of ``budget`` pair steps, one at least; returns how many pair steps these were."""
    rows = state.problem.rows
    each = ceil(state.pace.w_step_work(len(rows.data), rows.n_features) / (2 * len(state.K)))
    n_steps = max(1, budget // each)
    ended = newton.advance(state.to_w, n_steps)
    if ended.done or ended.stalled:
        _arrive(state, ended)
    return n_steps * each


def better_on_the_way(state: State, found: Solution) -> Solution:
    """``found`` or, on the way to w, that w: the one of the lesser primal objective."""
    if state.to_w is None:
        return found
    return min((found, newton.solution(state.to_w)), key=lambda each: certify(state.problem, each).primal)


def _arrive(state: State, ended: Progress) -> None:
    """Takes all variables to where w led, if they are better off there; stalled where rounding hides the optimum."""
    found, state.to_w = state.to_w, None
    state.evaluations_before += ended.kernel_evaluations
    take(state, current(state)[0])  # a violation by F that many steps have kept may be rounding
    note(state)
    beta, before = state.variables.whole.beta, state.least_primal
    alpha, least = newton.nearest(found)
    take(state, state.problem.y * alpha)
    note(state)
    state.by_w = newton.solution(found)
    hidden = ended.stalled and least > _HIDDEN * state.eps
    if hidden:
        certificate = certify(state.problem, state.by_w)
        hidden = certificate.noise > state.eps or certificate.gap <= _HIDDEN_GAP * certificate.primal
    state.stalled = hidden
    if not (hidden or state.least_primal < before):
        take(state, beta)
