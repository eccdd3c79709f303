"""The finishing of LASVM: the members' own problem is solved, from where they are, and what is told while it goes on."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from naive_lasvm import EPS
from oracle import beta_of, dual_objective, kernel_matrix, violation
from zoo import named, points, problem

from svmkit.data import Rows
from svmkit.engine import reviews
from svmkit.problem import LINEAR, RBF, Kernel, Problem
from svmkit.solvers import lasvm, smo
from svmkit.solvers.base import run
from svmkit.trace import Progress, Status

EVERY = 10**9


@pytest.mark.parametrize("name", ["rbf", "linear", "class weights", "300 rows, rbf", "rbf, C 100"])
def test_finishing_solves_for_the_members(name: str) -> None:
    """S's own dual to within eps, from which nothing is lost: neither Σα = 0 nor the box."""
    case = named(name)
    K = kernel_matrix(case)
    ends = {}
    for finish in (False, True):
        state = lasvm.start(case, lasvm.Options(finish=finish), 1e-5, seed=0)
        members = np.empty(0, np.int64)
        progress = lasvm.advance(state, case.n)
        members = state.support.slots[0, state.support.members()]
        while not progress.ended:
            progress = lasvm.advance(state, 7)
        ends[finish] = beta_of(case, lasvm.solution(state))
        inside = replace(case, rows=case.rows.take(members), y=case.y[members], upper=case.upper[members])
        within = violation(K[np.ix_(members, members)], inside, ends[finish][members])
        assert (within <= 1.001e-5) == finish
        assert progress.violation == pytest.approx(within, abs=1e-9)
        alpha = case.y * ends[finish]
        assert abs(ends[finish].sum()) <= 1e-9 * alpha.sum()
        assert ((alpha >= 0) & (alpha <= case.upper)).all()
    assert dual_objective(K, case.y, ends[True]) > dual_objective(K, case.y, ends[False])


def test_a_finishing_that_stalls_ends_the_run_as_stalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as one whose epochs are over, which says nothing of the tolerance."""
    monkeypatch.setattr(reviews, "_STEPS", 2_000)
    monkeypatch.setattr(smo, "_BLOCK_STEPS", 1)
    monkeypatch.setattr(smo, "_LEAST_BLOCK_STEPS", 500)
    draw = np.random.default_rng(1)
    y = np.where(np.arange(300) % 2 == 0, 1.0, -1.0)
    X = (1e4 * (draw.normal(size=300) + 0.5 * y))[:, None]
    problem = Problem(Rows.from_dense(X), y, np.full(300, 100.0), Kernel(LINEAR))
    result = run(lasvm, problem, lasvm.Options(), eps=1e-9)
    assert result.status is Status.STALLED
    assert result.certificate.violation > 1e-9


def test_finishing_ends_by_float64_values_where_those_of_training_are_coarse() -> None:
    """Of C so large that float32 sums are off by more than the tolerance."""
    X, y = points(2500, 3, seed=4)
    case = problem(X, y, Kernel(RBF, 2.0), C=1e5)
    state = lasvm.start(case, lasvm.Options(), EPS, seed=0)
    assert state.support.engine.packed.real == "f4"
    while not lasvm.advance(state, EVERY).ended:
        pass
    members = state.support.slots[0, state.support.members()]
    inside = replace(case, rows=case.rows.take(members), y=case.y[members], upper=case.upper[members])
    within = violation(kernel_matrix(inside), inside, beta_of(case, lasvm.solution(state))[members])
    assert within <= 1.001 * EPS


def begun_to_finish(case: Problem, options: lasvm.Options, eps: float = EPS) -> tuple[lasvm.State, Progress]:
    """A state whose examples are all learned, and what it says then."""
    state = lasvm.start(case, options, eps, 0)
    while True:
        progress = lasvm.advance(state, 1)
        if state.finishing is not None:
            return state, progress


def test_finishing_begins_from_where_the_members_are() -> None:
    X, y = points(400, 3, seed=4)
    case = problem(X, y, Kernel(RBF, 0.5), C=10.0)
    near, far = (begun_to_finish(case, lasvm.Options(delta_max=most)) for most in (2 * EPS, inf))
    assert near[1].violation < 3 * EPS < far[1].violation
    steps = [lasvm.advance(state, EVERY).steps - before.steps for state, before in (near, far)]
    assert steps[0] < 0.2 * steps[1]


@pytest.mark.parametrize("cache_mb", [0.1, 100.0])
def test_finishing_counts_kernel_values_that_have_no_room(cache_mb: float) -> None:
    X, y = points(1200, 3, seed=4)
    state, progress = begun_to_finish(problem(X, y, Kernel(RBF, 2.0), C=1e3), lasvm.Options(cache_mb=cache_mb))
    began = progress.kernel_evaluations
    assert state.support.holds_all == (cache_mb == 100.0)
    while not progress.ended:
        before, progress = progress, lasvm.advance(state, 50)
        assert progress.kernel_evaluations >= before.kernel_evaluations
    assert (progress.kernel_evaluations > began) == (cache_mb == 0.1)


def test_the_violation_told_while_it_finishes_is_the_finishings(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = points(400, 3, seed=4)
    state, _ = begun_to_finish(problem(X, y, Kernel(RBF, 0.5), C=10.0), lasvm.Options())
    real = smo.advance
    monkeypatch.setattr(smo, "advance", lambda run, budget: real(run, budget)._replace(violation=7.0))
    assert lasvm.advance(state, 1).violation == 7.0
    while not (ended := lasvm.advance(state, EVERY)).ended:
        pass
    assert ended.violation < EPS


def test_rho_is_that_of_alpha_while_it_finishes() -> None:
    X, y = points(400, 3, seed=4)
    case = problem(X, y, Kernel(RBF, 0.5), C=10.0)
    K = kernel_matrix(case)
    state, progress = begun_to_finish(case, lasvm.Options())
    seen = 0
    while not progress.ended:
        rows = state.support.slots[0, state.support.members()]
        found = lasvm.solution(state)
        alpha = beta_of(case, found)
        F = (case.y - K @ alpha)[rows]
        free = (alpha[rows] != 0) & (np.abs(alpha[rows]) < 10.0)
        assert found.rho == pytest.approx(-float(F[free].mean()), abs=1e-9)
        seen += 1
        progress = lasvm.advance(state, 20)
    assert seen > 3


def features_of_1e8() -> Problem:
    """Of whose sums over support vectors no digit is left."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(60, 3)) + 1e8
    X[:, 0] += y
    return problem(X, y, Kernel(LINEAR))


def test_sums_that_drown_in_rounding_end_with_w() -> None:
    """The certificate is of the model as written."""
    case = features_of_1e8()
    result = run(lasvm, case, lasvm.Options(), eps=EPS)
    assert result.solution.n_support == 1
    w = result.solution.own.to_dense()[0, 1:]
    losses = np.maximum(0.0, 1.0 - case.y * (case.rows.to_dense()[:, 1:] @ w - result.solution.rho))
    assert result.certificate.primal == pytest.approx(0.5 * float(w @ w) + losses.sum(), rel=0.01)


def test_w_comes_with_the_alpha_of_the_members_and_gives_way_to_more_examples() -> None:
    case = features_of_1e8()
    state = lasvm.start(case, lasvm.Options(selection="active"), EPS, 0)
    for row in range(50):
        lasvm.learn(state, row, case.y[row])
    while not lasvm.finish(state, EVERY).ended:
        pass
    rows = state.support.slots[0, state.support.members()]
    alpha = lasvm.solution(state).alpha
    assert alpha is not None
    assert alpha[rows].any()
    assert not np.delete(alpha, rows).any()
    lasvm.learn(state, 50, case.y[50])
    assert lasvm.solution(state).alpha is None
    assert lasvm.solution(state).n_support > 1
    assert not lasvm.progress(state).ended
