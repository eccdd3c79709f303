"""Block SMO through the interior of the box: what pair steps do not end, and the same optimum where they would."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
import oracle
import pytest
import zoo

from svmkit import parallel
from svmkit.certificate import certify
from svmkit.data import Floats
from svmkit.engine.corner import corner
from svmkit.engine.interior import Interior, Whole
from svmkit.engine.low_rank import factor
from svmkit.problem import POLYNOMIAL, RBF, SIGMOID, Bias, Kernel, Problem
from svmkit.solvers import smo, smo_interior, smo_pace, smo_state
from svmkit.solvers.base import run as solve
from svmkit.solvers.smo_interior import minimise_active
from svmkit.trace import Progress, Status


def run(problem: Problem, eps: float) -> tuple[smo_state.State, Progress]:
    state = smo.start(problem, smo.Options(), eps, 0)
    while not ((progress := smo.advance(state, 10**9)).done or progress.stalled):
        pass
    return state, progress


def unscaled(n: int, C: float, bias: str) -> Problem:
    """Under a polynomial, features of sizes from 1 to 300: kernel values from 1 to 10¹⁴."""
    X, y = zoo.points(n, 6, seed=n, noise=0.1)
    X = np.abs(X) * np.array([1.0, 300.0, 3.0, 80.0, 200.0, 10.0])
    return replace(zoo.problem(X, y, Kernel(POLYNOMIAL, 1 / 6, 0.0, 3), C), bias=bias)


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("C", [1e-6, 1.0])
def test_polynomials_of_features_that_are_not_scaled_converge(C: float, bias: str) -> None:
    problem = unscaled(56, C, bias)
    found = solve(smo, problem, smo.Options(), eps=1e-3)
    assert found.status is Status.CONVERGED
    K = oracle.kernel_matrix(problem)
    beta = oracle.beta_of(problem, found.solution)
    assert oracle.violation(K, problem, beta) <= 1e-3
    assert oracle.best_gap(K, problem, beta) <= 1e-3 * problem.upper.sum()


def test_a_tolerance_beyond_rounding_leaves_no_traces_of_the_way() -> None:
    """Points of the interior have no α at 0; one is better by rounding alone than with the ends that it is near."""
    X, y = zoo.points(60, 3, seed=1, noise=0.3)
    problem = zoo.problem(X, y, Kernel(RBF, 1.0), 1.0)
    near, beyond = (solve(smo, problem, smo.Options(), eps=eps) for eps in (1e-10, 1e-16))
    assert beyond.status is Status.STALLED
    assert beyond.solution.n_support == near.solution.n_support < 60
    assert beyond.certificate.violation <= 1e-13


@pytest.mark.parametrize("C", [1e4, 1e7])
def test_a_run_that_stalls_at_the_optimum_is_not_left_inside(C: float) -> None:
    """Where points of the interior are better by less than anybody asked for, all their rows are support vectors."""
    X, y = zoo.points(150, 4, seed=2, noise=0.3)
    problem = zoo.problem(X, y, Kernel(RBF, 0.25), C)
    near, beyond = (solve(smo, problem, smo.Options(), eps=eps) for eps in (1e-8, 1e-14))
    assert beyond.status is Status.STALLED
    assert beyond.solution.n_support == near.solution.n_support < 150
    assert beyond.certificate.violation <= 1e-9
    assert beyond.certificate.primal <= (1 + 1e-9) * near.certificate.primal


def test_where_rounding_hides_the_optimum_of_such_a_polynomial_the_best_is_returned() -> None:
    problem = unscaled(120, 1.0, "free")
    found = solve(smo, problem, smo.Options(), eps=1e-3)
    assert found.status is Status.STALLED
    inside = best_inside(problem)
    K = oracle.kernel_matrix(problem)
    best = oracle.dual_objective(K, problem.y, inside.beta)
    assert found.certificate.primal <= 1.03 * best


def best_inside(problem: Problem) -> Interior:
    bounds = problem.y * problem.upper
    K, box = oracle.kernel_matrix(problem), (np.minimum(0.0, bounds), np.maximum(0.0, bounds))
    interior = Interior(Whole(K), problem.y, *box, 0.0, 1e-3, np.zeros(problem.n))
    while not interior.ended:
        interior.step()
    return interior


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("n", [300, 2500])
def test_through_the_interior_the_optimum_is_the_same(n: int, bias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun at once; 2,500 rows begin in float32."""
    problem = replace(zoo.noisy(n, C=100.0), bias=bias)
    K = oracle.kernel_matrix(problem)
    found = []
    for steps in (smo_pace._INTERIOR_STEPS, 0):
        monkeypatch.setattr(smo_pace, "_INTERIOR_STEPS", steps)
        state, progress = run(problem, 1e-4)
        assert progress.done
        beta = oracle.beta_of(problem, smo.solution(state))
        assert oracle.violation(K, problem, beta) <= 1e-4 + 1e-9
        found.append(oracle.dual_objective(K, problem.y, beta))
    assert progress.steps < 1000  # all else was done inside
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def test_rows_of_no_cost_are_no_part_of_the_interior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smo_pace, "_INTERIOR_STEPS", 0)
    problem = zoo.noisy(90, C=100.0)
    costly = np.arange(90) % 3 > 0
    state = smo.start(replace(problem, upper=np.where(costly, problem.upper, 0.0)), smo.Options(), 1e-6, 0)
    while state.interior is None:
        assert not smo.advance(state, 1).done
    assert sorted(state.variables.row_of[state.interior[0]]) == np.flatnonzero(costly).tolist()


def test_a_run_cut_short_inside_has_the_better_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smo_pace, "_INTERIOR_STEPS", 0)
    problem = zoo.noisy(300, C=100.0)
    state = smo.start(problem, smo.Options(), 1e-4, 0)
    while state.interior is None:
        smo.advance(state, 1)
    primal = []
    while state.interior is not None:
        outside, found = (certify(problem, each).primal for each in (smo_state.solution_of(state), smo.solution(state)))
        assert found <= outside
        primal.append(found)
        smo.advance(state, 1)
    assert primal[-1] < 0.9 * primal[0]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(primal))


def test_which_of_both_is_better_takes_no_kernel_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred thousand rows they would take longer than the way: Ctrl-C has to be quick."""
    monkeypatch.setattr(smo_pace, "_INTERIOR_STEPS", 0)
    state = smo.start(zoo.noisy(300, C=100.0), smo.Options(), 1e-4, 0)
    while state.interior is None:
        smo.advance(state, 1)
    monkeypatch.setattr(smo_state, "certify", None)
    n_support = []
    while state.interior is not None:
        n_support.append(smo.solution(state).n_support)
        smo.advance(state, 1)
    assert n_support[0] < 300
    assert n_support[5] == 300


def test_where_the_interior_leads_nowhere_pair_steps_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is not positive semidefinite has no factor; the same end as if it had not been tried."""
    X, y = zoo.points(300, 6, seed=23, noise=0.3)
    problem = zoo.problem(X, y, Kernel(SIGMOID, 0.05, 0.0), 1.0)
    found = []
    for steps in (smo_pace._INTERIOR_STEPS, 0):
        monkeypatch.setattr(smo_pace, "_INTERIOR_STEPS", steps)
        state, progress = run(problem, 1e-3)
        assert progress.done
        found.append(certify(problem, smo.solution(state)).primal)
    assert found[1] == pytest.approx(found[0], rel=1e-3)


@pytest.mark.parametrize("x", [[[413.8], [2676.5]], [[7630.09, 7630.02], [7630.02, 7631.06], [7630.59, 7629.54]]])
def test_few_rows_do_not_take_tens_of_millions_of_steps(x: list[list[float]]) -> None:
    """Pair steps zigzag there, and one on two rows takes no less time than one on sixty."""
    X = np.array(x)
    problem = replace(zoo.problem(X, np.resize([1.0, -1.0], len(X)), Kernel(POLYNOMIAL, 1e-3, 0.0, len(X)), 1e5), bias="none")
    _, progress = run(problem, 1e-3)
    assert progress.done
    assert progress.steps < 2_000_000


def checkerboard(n: int, C: float) -> Problem:
    X = np.random.default_rng(4).random((n, 2))
    return zoo.problem(X, np.where((6 * X).astype(int).sum(axis=1) % 2, 1.0, -1.0), Kernel(RBF, 10.0), C)


def test_a_few_active_variables_of_many_go_to_their_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where C is so large that pivots do not settle; steps through the interior for all would take a dozen times as long."""
    monkeypatch.setattr(smo_pace, "_BEFORE_RANK", inf)
    problem = checkerboard(2500, 1e5)
    state, progress = run(problem, 1e-3)
    assert progress.done
    assert state.pace.claim_interior()
    K = oracle.kernel_matrix(problem)
    assert oracle.violation(K, problem, oracle.beta_of(problem, smo.solution(state))) <= 1e-3 + 1e-6


@pytest.mark.parametrize("bias", ["free", "none"])
def test_the_minimum_of_the_active_variables_by_themselves(bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others stay; F is that of the new β; nothing is begun that costs much against the work so far, or much memory."""
    problem = replace(zoo.noisy(300, C=10.0), bias=bias)
    state = smo.start(problem, smo.Options(working_set=32), 1e-6, 0)
    smo.advance(state, 2000)
    smo_state.take(state, smo_state.current_beta(state))
    state.variables.shrink(np.empty(0, np.int64))
    active, before = state.variables.active, smo_state.current_beta(state)
    assert len(active.beta) < 300
    assert not minimise_active(state, 1e8)
    with monkeypatch.context() as patch:
        patch.setattr(smo_interior, "MOST", len(active.beta) - 1)
        assert not minimise_active(state, 1e12)
    assert minimise_active(state, 1e12)
    assert state.variables.extremes(active)[2] <= 1e-6
    after = smo_state.current_beta(state)
    assert set(np.flatnonzero(after != before)) <= set(active.number)
    K = oracle.kernel_matrix(problem)
    assert np.allclose(active.F, (problem.y - K @ after)[active.number], rtol=0.0, atol=1e-4)
    assert bias != "free" or after.sum() == pytest.approx(before.sum(), abs=1e-9)


def smooth(n: int, C: float, bias: Bias = "free") -> Problem:
    X, y = zoo.points(n, 2, seed=n, noise=0.2)
    return replace(zoo.problem(X, y, Kernel(RBF, 0.04), C), bias=bias)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_where_k_is_of_low_rank_the_optimum_is_the_same_after_far_fewer_steps(
    bias: Bias, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = smooth(1200, 1e4, bias)
    monkeypatch.setattr(smo_pace, "_BEFORE_RANK", 1e7)
    state, progress = run(problem, 1e-4)
    monkeypatch.setattr(smo_pace, "_BEFORE_RANK", inf)
    _, without = run(problem, 1e-4)
    assert progress.done
    assert without.done
    assert state.pace.claim_interior()  # by the whole of K it was not
    assert 5 * progress.steps < without.steps
    K = oracle.kernel_matrix(problem)
    beta = oracle.beta_of(problem, smo.solution(state))
    assert oracle.violation(K, problem, beta) <= 1e-4 + 1e-6
    assert oracle.best_gap(K, problem, beta) <= 1e-6 * oracle.dual_objective(K, problem.y, beta)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_where_the_optimum_is_a_whole_face_it_ends_at_a_corner(bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    """One class is worth so much more that f is 1 on all of it, and any of it can be support vectors."""
    X, y = zoo.points(1200, 2, seed=1, noise=0.5)
    problem = replace(zoo.problem(X, y, Kernel(RBF, 1e-3), 100.0), bias=bias, upper=np.where(y > 0, 1e4, 100.0))
    monkeypatch.setattr(smo_pace, "_BEFORE_RANK", 0.0)
    monkeypatch.setattr(smo_pace, "_INTERIOR_STEPS", 0)
    ranks: list[int] = []
    monkeypatch.setattr(smo_interior, "corner", lambda L, *rest: ranks.append(L.shape[1]) or corner(L, *rest))
    state, progress = run(problem, 1e-4)
    K, whole = oracle.kernel_matrix(problem), state.variables.whole
    beta = oracle.beta_of(problem, smo.solution(state))
    assert oracle.violation(K, problem, beta) <= 1e-4
    n_free = int(np.count_nonzero((whole.lower < whole.beta) & (whole.beta < whole.upper)))
    assert n_free <= ranks[0] + (bias == "free")
    assert progress.n_support <= np.count_nonzero(y < 0) + n_free + 10  # at a bound, that balance all of these
    assert ranks[0] <= 20


def test_where_the_low_rank_leads_astray_the_whole_of_k_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """L has a few columns only, and what F is off by is more than a correction makes good."""
    made: list[Whole] = []

    def noted(K: Floats) -> Whole:
        made.append(Whole(K))
        return made[-1]

    monkeypatch.setattr(smo_pace, "_BEFORE_RANK", 1e7)
    monkeypatch.setattr(smo_interior, "factor", lambda *_: few)
    monkeypatch.setattr(smo_interior, "Whole", noted)
    problem = smooth(1200, 1e5)
    K = oracle.kernel_matrix(problem)
    few = np.linalg.cholesky(K + 1e-10 * np.eye(1200))[:, :6]
    _, progress = run(problem, 1e-4)
    assert progress.done
    assert len(made) == 1


def test_a_low_rank_serves_more_variables_than_a_whole_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """And begins in float32."""
    monkeypatch.setattr(smo_interior, "MOST", 1000)
    monkeypatch.setattr(smo_pace, "_BEFORE_RANK", 1e7)
    problem = smooth(3000, 1e5)
    state, progress = run(problem, 1e-3)
    assert progress.done
    assert state.variables.engine.real == "f4"
    K = oracle.kernel_matrix(problem)
    assert oracle.violation(K, problem, oracle.beta_of(problem, smo.solution(state))) <= 1e-3 + 1e-6
    assert certify(problem, smo.solution(state)).violation <= 1e-3


def test_rows_of_no_cost_are_no_part_of_a_low_rank() -> None:
    problem = smooth(400, 100.0)
    costly = np.arange(400) % 3 > 0
    state = smo.start(replace(problem, upper=np.where(costly, problem.upper, 0.0)), smo.Options(), 1e-6, 0)
    assert smo_interior.interior_is_quicker(state, 1e12)
    smo_interior.go_inside(state)
    assert state.interior is not None
    while state.interior is not None:
        smo_interior.go_on_inside(state, 1)
    beta = smo_state.current_beta(state)
    assert not beta[~costly].any()
    assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    assert state.done


@pytest.mark.parametrize("kernel", [Kernel(RBF, 50.0), Kernel(SIGMOID, 0.01, 0.0), Kernel(POLYNOMIAL, 0.01, -1.0, 3)])
def test_kernels_of_full_rank_or_indefinite_are_taken_as_a_whole(kernel: Kernel) -> None:
    X, y = zoo.points(1300, 3, seed=2)
    state = smo.start(zoo.problem(X, y, kernel, 1.0), smo.Options(), 1e-3, 0)
    assert smo_interior.interior_is_quicker(state, inf)
    assert (state.rank, state.low_rank) == (0, None)
    assert (state.evaluations_before > 0) == (kernel.kind == RBF)
    assert state.evaluations_before <= 1024 * 96


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_tolerance_finer_than_the_low_rank_is_met(bias: Bias) -> None:
    """F of the low rank is off by 10⁻⁶ there; pair steps would take a hundred times as many steps to make that good."""
    problem = smooth(1500, 1e6, bias)
    state, progress = run(problem, 2e-7)
    assert progress.done
    assert certify(problem, smo.solution(state)).violation <= 2e-7


def test_all_rows_are_factored_no_sooner_than_steps_are_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then some rows tell what it would take: a run that ends before has hardly lost any time."""
    monkeypatch.setattr(smo_pace, "_BEFORE_RANK", 1e6)
    state = smo.start(smooth(3000, 1.0), smo.Options(), 1e-3, 0)
    assert not smo_interior.interior_is_quicker(state, smo_pace._BEFORE_RANK)
    after = state.pace.work_before_interior(state.rank)
    assert after > smo_pace._BEFORE_RANK
    assert not smo_interior.interior_is_quicker(state, 0.99 * after)
    assert state.evaluations_before <= 1024 * state.rank
    assert smo_interior.interior_is_quicker(state, after)
    assert state.low_rank is not None
    assert state.rank == state.low_rank.shape[1]


def test_where_some_rows_are_of_low_rank_and_all_are_not_k_is_taken_as_a_whole() -> None:
    """All of the rows that are looked at are one."""
    X, y = zoo.points(3 * 1024, 3, seed=2)
    X[::3] = X[0]
    state = smo.start(zoo.problem(X, y, Kernel(RBF, 50.0), 1.0), smo.Options(), 1e-3, 0)
    assert not smo_interior.interior_is_quicker(state, 0.99 * state.pace.work_before_interior(0))
    assert (state.rank, state.low_rank) == (0, None)
    assert smo_interior.interior_is_quicker(state, state.pace.work_before_interior(0))


def test_f_of_the_low_rank_is_off_by_a_quarter_of_eps_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps then go on, and change β, by which what is left of K counts."""
    problem = smooth(600, 1e5)
    state, shares = smo.start(problem, smo.Options(), 1e-3, 0), list[float]()
    smo.advance(state, 20_000)
    monkeypatch.setattr(smo_interior, "factor", lambda engine, most, share: shares.append(share) or factor(engine, most, share))
    L, beta = smo_interior._factor(state, problem.rows, 300), smo_state.current_beta(state)
    assert L is not None
    assert shares == [0.25e-3 / np.abs(beta).sum()]
    assert np.abs(oracle.kernel_matrix(problem) @ beta - L @ (L.T @ beta)).max() <= 0.25e-3


def test_rows_too_many_for_the_rank_of_some_are_not_factored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smo_interior, "_MOST_VALUES", 5000 * 20)
    state = smo.start(smooth(5000, 1.0), smo.Options(), 1e-3, 0)
    assert not smo_interior.interior_is_quicker(state, inf)
    assert state.evaluations_before <= 1024 * 21


def test_what_ends_the_way_where_it_arrives_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """F of a hundred thousand rows takes seconds there, and is left."""
    monkeypatch.setattr(smo_pace, "_INTERIOR_STEPS", 0)
    state = smo.start(zoo.noisy(300, C=100.0), smo.Options(), 1e-4, 0)
    while state.interior is None:
        smo.advance(state, 1)
    interior = state.interior[1]
    while not interior.ended:
        interior.step()
    before, best = state.variables.whole.beta.copy(), smo.solution(state)
    with parallel.heeding(lambda: True), pytest.raises(parallel.Left):
        smo.advance(state, 1)
    assert np.array_equal(state.variables.whole.beta, before)
    assert np.array_equal(smo.solution(state).coef, best.coef)
