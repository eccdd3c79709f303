"""Block SMO's way by w, for machines linear in few features: Newton steps on w (newton.py) in place of pair steps on α.

The features are the rows' own or, of a polynomial kernel, their monomials (monomials.py). Steps are taken a few at a time,
since calls of ``advance`` are short, while β stays where it was. Where they have ended, β goes to the α that violates least,
if the primal objective is less there; and where features are so large that rounding hides the optimum from every α, w itself
is the solution, of monomials as an expansion over as many rows. Where kernel values, being rounded, lose what w is worth,
another way begins on fewer of these, of which they lose less. w is the solution, too, where it is the better one, of a run that
is cut short on the way.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf, isnan
from typing import NamedTuple

import numpy as np

from svmkit.certificate import Certificate, certify
from svmkit.data import Floats
from svmkit.engine.monomials import Turned, count, turned
from svmkit.features import feature_names
from svmkit.problem import LINEAR, Kernel, Problem, Solution, of_other_rows
from svmkit.solvers import newton, newton_state
from svmkit.solvers.smo_state import State, current_beta, note, primal_of, spent, take
from svmkit.trace import Progress

#: Newton steps that leave a violation of so many times eps, where rounding may make one of eps or the gap is such a share of
#: the objective, are at an optimum that rounding hides.
_HIDDEN, _HIDDEN_GAP = 100.0, 1e-5
#: So they are, of monomials, where rounding may make so many times the violation that is left: pair steps would only crawl.
_DROWNED = 10.0
#: Columns of turned monomials below such shares of the first are left out: of the first way and, while the expansion's primal
#: objective is above w's own by more than such a share of it, of those after it.
_LEAST, _LOST = (2.0**-52, 2.0**-28, 2.0**-24), 0.01
#: Monomials at most, and the largest degree; and values of them in all, which take 28 bytes each, 470 MB, while they are made.
_MOST_MONOMIALS, _MOST_VALUES = 1024, 1 << 24


class Way(NamedTuple):
    """Under way: newton.py's state and, of a polynomial kernel, the features it works on and how many ways were before it."""

    steps: newton_state.State
    monomials: Turned | None
    before: int


def features_of_w(problem: Problem) -> int:
    """In how many features f is linear, by the largest number where these are its own; 0 where there are none or too many for
    Newton steps on w, or monomials as many as rows."""
    if problem.kernel.kind == LINEAR:
        return problem.rows.n_features if problem.rows.n_features <= newton.MOST_FEATURES else 0
    if not count(1, problem.kernel) or problem.kernel.degree > _MOST_MONOMIALS:
        return 0
    found = count(len(feature_names(problem.rows)), problem.kernel)
    return found if found <= min(_MOST_MONOMIALS, problem.n - 1, _MOST_VALUES // problem.n) else 0


def claim_w_if_quicker(state: State, work: float) -> bool:
    """Whether after so much ``work``, in kernel values, Newton steps on w may be the shorter way; True once at most."""
    return state.w_features > 0 and state.pace.claim_w_if_quicker(work, _nonzeros(state), state.w_features)


def work_left_before_w(state: State, work: float) -> float:
    """How much more work, in kernel values, comes before these steps; infinite where they do not, or have been taken."""
    return state.pace.work_before_w(_nonzeros(state), state.w_features) - work if state.w_features else inf


def look_for_w(state: State, before: int = 0) -> None:
    """Begins; steps come by ``go_on_to_w``. Of monomials beyond float64's range nothing is begun, now or later."""
    problem, monomials = state.problem, None
    if problem.kernel.kind != LINEAR:
        monomials = turned(problem.rows, problem.kernel, _LEAST[before])
        if monomials is None:
            state.w_features = 0
            return
        problem = Problem(monomials.rows, problem.y, problem.upper, Kernel(LINEAR), problem.bias)
    state.to_w = Way(newton.start(problem, newton.Options(), 0.5 * state.eps, 0), monomials, before)


def go_on_to_w(state: State, budget: int) -> int:
    """As many Newton steps as take the time of ``budget`` pair steps, one at least; returns how many pair steps these were."""
    each = ceil(state.pace.w_step_work(_nonzeros(state), state.w_features) / (2 * len(state.K)))
    n_steps = max(1, budget // each)
    ended = newton.advance(state.to_w.steps, n_steps)
    if ended.done or ended.stalled:
        _arrive(state, ended)
    return n_steps * each


def on_the_way(state: State) -> Solution | None:
    """On the way to w, that w."""
    return None if state.to_w is None else _by_w(state.problem, state.to_w)


def _nonzeros(state: State) -> int:
    rows = state.problem.rows
    return len(rows.data) if state.problem.kernel.kind == LINEAR else rows.n * state.w_features


def _by_w(problem: Problem, way: Way) -> Solution:
    """The solution that w is: itself, or the rows whose monomials span all others' with what it takes of each: no α."""
    found = newton.solution(way.steps)
    if way.monomials is None:
        return found
    w = np.zeros(way.monomials.rows.n_features + 1)
    w[found.own.indices] = found.own.data
    own = problem.rows.take(way.monomials.pivots)
    return of_other_rows(own, way.monomials.expansion(w[1:]), found.rho, found.alpha)


def _with_a_dual_point(problem: Problem, found: Solution, own: Certificate, others: tuple[Floats, ...]) -> Solution:
    """``found``, whose certificate is ``own``; where its α is far off, with the one of ``others`` and 0 that says most."""
    dual = own.dual
    for alpha in (*others, np.zeros(problem.n)):
        if own.primal - dual <= _HIDDEN_GAP * own.primal:
            break
        its = certify(problem, replace(found, alpha=alpha)).dual
        if its > dual or isnan(dual):
            found, dual = replace(found, alpha=alpha), its
    return found


def _arrive(state: State, ended: Progress) -> None:
    """Takes all variables to where w led, if they are better off there; stalled where rounding hides the optimum."""
    way, state.to_w = state.to_w, None
    state.evaluations_before += ended.kernel_evaluations
    take(state, current_beta(state))  # a violation by F that many steps have kept may be rounding
    note(state)
    beta, before = state.variables.whole.beta, state.least_primal
    alpha, least = newton.nearest(way.steps)
    take(state, state.problem.y * alpha)
    note(state)
    found = _by_w(state.problem, way)
    certificate = certify(state.problem, found)
    found = _with_a_dual_point(state.problem, found, certificate, (alpha, state.problem.y * beta))
    if state.by_w is None or certificate.primal < primal_of(state.problem, state.by_w):
        state.by_w = found
    rounding = certificate.noise > state.eps or certificate.gap <= _HIDDEN_GAP * certificate.primal
    drowned = way.monomials is not None and certificate.noise > _DROWNED * least
    hidden = way.before > 0 or (ended.stalled and rounding and (least > _HIDDEN * state.eps or drowned))
    state.stalled = hidden
    if not state.least_primal < before:
        take(state, beta)
    if ended.stalled and rounding:  # pair steps have rounding to fight, too
        state.pace.hurry(spent(state), state.violation)
    lost = way.monomials is not None and not certificate.primal <= (1.0 + _LOST) * newton.primal(way.steps)
    if hidden and lost:
        _begin_again(state, way.before + 1)


def _begin_again(state: State, before: int) -> None:
    """On fewer monomials; after the last of these ways w has no other."""
    if before == len(_LEAST):
        state.w_features = 0
        return
    look_for_w(state, before)
    state.stalled = state.to_w is None
