"""Block SMO's way by w under the linear kernel: where pair steps do not end, and where rounding hides the optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
import zoo

from svmkit.certificate import certify
from svmkit.problem import LINEAR, Kernel
from svmkit.solvers import newton, smo, smo_pace, smo_state, smo_w
from svmkit.solvers.base import run as solve
from svmkit.trace import Status


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize(("powers", "C"), [(7, 1.0), (7, 100.0), (6, 1e4)])
def test_linear_runs_whose_optimum_rounding_hides_end_with_a_good_w(powers: int, C: float, bias: str) -> None:
    """Features of size 1 to 10⁷: of α in float64 nothing better can be made than violates by far more than eps."""
    X, y = zoo.points(200, 6, seed=23, noise=0.3)
    problem = replace(zoo.problem(X * 10.0 ** np.linspace(0, powers, 6), y, Kernel(LINEAR), C), bias=bias)
    found = solve(smo, problem, smo.Options(working_set=64), eps=1e-3)
    assert found.status is Status.STALLED
    assert found.certificate.violation > 1e-3
    assert 0 <= found.certificate.gap <= 1e-6 * found.certificate.primal


def test_a_linear_run_that_stalls_at_once_looks_for_w_then() -> None:
    """Features of 10⁸ that differ by 1: kernel values among them are all the same but for rounding."""
    X, y = zoo.points(40, 3, seed=5)
    problem = zoo.problem(1e8 + np.sign(X), y, Kernel(LINEAR), 1.0)
    by_w = solve(newton, problem, newton.Options(), eps=1e-3).certificate
    assert solve(smo, problem, smo.Options(), eps=1e-3).certificate.primal <= by_w.primal


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_block_that_crawls_is_closed_when_it_is_time_for_w(bias: str) -> None:
    """Which is sooner than after 64 steps a variable, and after as many however they are cut into calls."""
    X, y = zoo.points(900, 6, seed=3, noise=0.6)
    problem = replace(zoo.problem(X, y, Kernel(LINEAR), 1000.0), bias=bias)
    ends = set()
    for budget in (10**9, 777):
        state = smo.start(problem, smo.Options(), 1e-3, 0)
        wait = state.pace.work_before_w(X.size, 6)
        progress = smo.advance(state, 1)
        while state.pace.work_before_w(X.size, 6) < np.inf:
            before = state.steps
            progress = smo.advance(state, min(budget, 40_000))
        assert before <= wait / (2 * 900) < 20_000
        while not progress.ended:
            progress = smo.advance(state, budget)
        assert progress.done
        ends.add((progress.steps, smo.solution(state).coef.tobytes()))
    assert len(ends) == 1


@pytest.mark.parametrize("C", [1e8, 1e10])
def test_identical_rows_of_both_classes_without_a_bias(C: float) -> None:
    """Newton steps on w are no help, and come when all but two variables have been dropped."""
    X, y = np.tile([[1659.7, 87.3, 1232.9]], (8, 1)), np.append(np.full(7, -1.0), 1.0)
    problem = replace(zoo.problem(X, y, Kernel(LINEAR), C), bias="none")
    found = solve(smo, problem, smo.Options(), eps=1e-3)
    assert found.certificate.primal == pytest.approx(2 * C, rel=1e-6)  # f = −1 everywhere; ½‖w‖² is nothing beside it


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("useful", [True, False])
def test_newton_steps_on_w_end_linear_runs_that_pair_steps_do_not(
    bias: str, useful: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Features of size 1 to 10⁴. Where they are of no use, pair steps go on as if they had not been asked."""
    monkeypatch.setattr(smo_pace, "_W_START", 1e7)
    X, y = zoo.points(500, 6, seed=23, noise=0.3)
    problem = replace(zoo.problem(X * 10.0 ** np.linspace(0, 4, 6), y, Kernel(LINEAR), 100.0), bias=bias)
    if not useful:
        far = np.zeros(500)  # feasible, and worse than what pair steps have
        for side in (1.0, -1.0):
            far[np.flatnonzero(y == side)[:200]] = 100.0
        monkeypatch.setattr(newton, "nearest", lambda state: (far, 2.0))
        monkeypatch.setattr(smo_w, "_HIDDEN", np.inf)
    state = smo.start(problem, smo.Options(working_set=64), 1e-3, 0)
    if not useful:
        while state.to_w is None:
            smo.advance(state, 1)
        before = smo_state.current(state)[0]
        while state.to_w is not None:
            smo.advance(state, 1)
        assert before.any()
        assert np.count_nonzero(smo_state.current(state)[0] != before) <= 2  # one pair step may have followed
    progress = smo.advance(state, 1_000_000)
    assert progress.done == useful
    K = oracle.kernel_matrix(problem)
    beta = oracle.beta_of(problem, smo.solution(state))
    best = oracle.optimum(problem, K)
    if useful:
        assert progress.steps < 100_000
        assert oracle.violation(K, problem, beta) <= 1e-3 + 1e-12 * np.abs(K).max()
        assert best - oracle.dual_objective(K, problem.y, beta) <= 1e-3 * problem.upper.sum()  # eps Σ C bounds the gap
    else:
        assert oracle.dual_objective(K, problem.y, smo_state.current(state)[0]) < best
        assert certify(problem, smo.solution(state)).primal <= certify(problem, state.by_w).primal  # w is not lost for that


@pytest.mark.parametrize("bias", ["free", "none"])
def test_the_way_to_w_is_cut_into_short_calls(bias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of one step take one Newton step at most and lead to the same bits; on the way the better of α and w is at hand."""
    monkeypatch.setattr(smo_pace, "_W_START", 1e7)
    X, y = zoo.points(500, 6, seed=23, noise=0.3)
    problem = replace(zoo.problem(X * 10.0 ** np.linspace(0, 4, 6), y, Kernel(LINEAR), 100.0), bias=bias)
    whole, cut = (smo.start(problem, smo.Options(working_set=64), 1e-3, 0) for _ in range(2))
    assert smo.advance(whole, 1_000_000).done
    taken, primal = [], []
    step = newton._step
    monkeypatch.setattr(newton, "_step", lambda state: (taken.append(state.steps), step(state))[1])
    done = False
    while not done:
        before = len(set(taken))
        budget = 1 if cut.to_w is not None or cut.steps >= whole.steps // 2 else 500
        done = smo.advance(cut, budget).done
        assert len(set(taken)) <= before + 2  # the end of a round is none
        if cut.to_w is not None:
            by_alpha, found = smo_state.solution_of(cut), smo.solution(cut)
            primal.append(certify(problem, found).primal)
            assert primal[-1] <= certify(problem, by_alpha).primal
    assert len(primal) > 5
    assert primal[-1] < 0.9 * primal[0]
    one, other = smo.solution(whole), smo.solution(cut)
    assert (one.coef.tobytes(), one.rho) == (other.coef.tobytes(), other.rho)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_stalled_run_whose_sums_drown_ends_with_the_w_that_is_certified(bias: str) -> None:
    """Features of 10⁷ that differ by 1: sums over support vectors in another order make a model of one class."""
    X, y = zoo.points(400, 5, seed=1, noise=0.3)
    X += 1e7
    found = solve(smo, replace(zoo.problem(X, y, Kernel(LINEAR), 1.0), bias=bias), smo.Options(), eps=1e-3)
    assert found.status is Status.STALLED
    w = (found.solution.coef @ found.solution.own.to_dense()).astype(np.longdouble)[1:]  # features count from 1
    f = X.astype(np.longdouble) @ w - np.longdouble(found.solution.rho)
    primal = 0.5 * w @ w + np.maximum(0, 1 - y * f).sum()
    assert float(primal) == pytest.approx(found.certificate.primal, rel=1e-5)
    assert found.solution.n_support == 1
