"""Block SMO's way by w under polynomials of few features; test_smo_w_linear.py has it for the linear kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
import zoo

from svmkit.certificate import certify
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, Kernel, Problem
from svmkit.solvers import newton, smo, smo_pace, smo_state, smo_w
from svmkit.solvers.base import run as solve
from svmkit.trace import Progress, Status

#: Kernel values up to 10⁷.
SQUARE = Kernel(POLYNOMIAL, 1 / 4, 1.0, 2)


def unscaled(n: int, kernel: Kernel = SQUARE, C: float = 1.0, bias: str = "free") -> Problem:
    """Features of sizes from 1 to 60, all positive."""
    X, y = zoo.points(n, 4, seed=n, noise=0.2)
    X = np.abs(X) * np.array([1.0, 60.0, 3.0, 30.0])
    return replace(zoo.problem(X, y, kernel, C), bias=bias)


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("kernel", [SQUARE, Kernel(POLYNOMIAL, 1 / 4, 0.0, 2)], ids=str)
@pytest.mark.parametrize("n", [300, 5000])
def test_polynomials_of_features_that_are_not_scaled_converge(n: int, kernel: Kernel, bias: str) -> None:
    """5,000 rows are too many for steps through the interior."""
    problem = unscaled(n, kernel, bias=bias)
    found = solve(smo, problem, smo.Options(), eps=1e-3)
    assert found.steps < 1_000_000
    K = oracle.kernel_matrix(problem)
    beta = oracle.beta_of(problem, found.solution)
    assert oracle.violation(K, problem, beta) <= 1e-3
    assert oracle.best_gap(K, problem, beta) <= 1e-3 * problem.upper.sum()


@pytest.mark.parametrize("bias", ["free", "none"])
def test_it_is_the_optimum_that_pair_steps_find(bias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = zoo.points(400, 4, seed=9, noise=0.2)
    problem = replace(zoo.problem(X, y, Kernel(POLYNOMIAL, 0.5, 1.0, 3), 10.0), bias=bias)
    found = []
    for share in (np.inf, 0.0):
        monkeypatch.setattr(smo_pace, "_W_SHARE", share)
        state = smo.start(problem, smo.Options(), 1e-5, 0)
        while not (progress := smo.advance(state, 10**9)).done:
            assert not progress.stalled
        found.append(progress.steps)
        beta = oracle.beta_of(problem, smo.solution(state))
        K = oracle.kernel_matrix(problem)
        assert oracle.violation(K, problem, beta) <= 1e-5 + 1e-9
        found.append(oracle.dual_objective(K, y, beta))
    assert found[2] < found[0]
    assert found[3] == pytest.approx(found[1], rel=1e-8)


def test_the_products_that_the_way_took_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose Newton steps say that they took a million more has taken a million more."""
    monkeypatch.setattr(smo_pace, "_W_SHARE", 0.0)
    X, y = zoo.points(400, 4, seed=9, noise=0.2)
    advance, counted = newton.advance, []
    for more in (0, 1_000_000):

        def said(state: newton.State, budget: int, more: int = more) -> Progress:
            made = advance(state, budget)
            return made._replace(kernel_evaluations=made.kernel_evaluations + more)

        monkeypatch.setattr(newton, "advance", said)
        state = smo.start(zoo.problem(X, y, Kernel(POLYNOMIAL, 0.5, 1.0, 3), 10.0), smo.Options(), 1e-5, 0)
        while not (progress := smo.advance(state, 10**9)).done:
            pass
        counted.append(progress.kernel_evaluations)
    assert counted[1] == counted[0] + 1_000_000


@pytest.mark.parametrize("bias", ["free", "none"])
def test_where_rounding_hides_the_optimum_w_is_an_expansion_over_few_rows(bias: str) -> None:
    """Features of sizes from 10⁻² to 10³, cubed: no α in float64 is near, 20 rows at most and their coefficients are."""
    X, y = zoo.points(5000, 4, seed=1, noise=0.2)
    X = np.abs(X) * np.array([1e-2, 300.0, 3.0, 1000.0])
    problem = replace(zoo.problem(X, y, Kernel(POLYNOMIAL, 1 / 4, 0.0, 3), 1.0), bias=bias)
    found = solve(smo, problem, smo.Options(), eps=1e-3)
    assert found.status is Status.STALLED
    assert found.solution.n_support <= 20
    assert (found.solution.origin == -1).all()
    assert least_primal(problem, 2.0**-52) * (1 - 1e-9) <= found.certificate.primal <= 1.02 * least_primal(problem, 2.0**-24)
    assert found.certificate.dual >= 0  # that of α = 0, at least
    own = replace(found.solution, alpha=None)  # what the model file holds
    assert certify(problem, own).primal == pytest.approx(found.certificate.primal, rel=1e-9)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_where_rounding_is_all_that_is_left_pair_steps_do_not_begin_anew(bias: str) -> None:
    """Features of sizes from 1 to 200: rounding may make a violation of .1."""
    X, y = zoo.points(5000, 4, seed=5000, noise=0.2)
    X = np.abs(X) * np.array([1.0, 200.0, 3.0, 80.0])
    problem = replace(zoo.problem(X, y, Kernel(POLYNOMIAL, 1 / 4, 0.0, 2), 1.0), bias=bias)
    found = solve(smo, problem, smo.Options(), eps=1e-3)
    assert found.steps < 1_000_000
    assert found.certificate.noise > 0.1
    assert found.certificate.violation <= 0.01 * found.certificate.noise or found.solution.n_support <= 10
    assert found.certificate.primal <= 1.000001 * least_primal(problem, 2.0**-52)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_where_sums_over_support_vectors_drown_w_is_the_solution(bias: str) -> None:
    """Features with an offset of a million: rounding makes more of such a sum than eps, by the order it is added up in."""
    X, y = zoo.points(300, 2, seed=1, noise=0.2)
    near, far = (replace(zoo.problem(X.round(3) + offset, y, Kernel(LINEAR), 100.0), bias=bias) for offset in (0.0, 1e6))
    found = solve(smo, far, smo.Options(), eps=1e-3)
    assert found.status in (Status.CONVERGED, Status.STALLED)
    assert found.solution.n_support == 1
    f = oracle.sums_at(far.rows, far, found.solution) - found.solution.rho
    w2 = float(found.solution.own.data @ found.solution.own.data)
    primal = 0.5 * w2 + float(far.upper @ np.maximum(0.0, 1.0 - y * f))
    assert primal == pytest.approx(found.certificate.primal, rel=1e-9)
    if bias == "free":  # then the offset changes nothing
        assert found.status is Status.CONVERGED
        assert primal == pytest.approx(solve(smo, near, smo.Options(), eps=1e-4).certificate.primal, rel=1e-5)


def test_sums_that_only_might_drown_leave_support_vectors() -> None:
    """By a bound on rounding they could be off by twice the tolerance, and are by a thousandth."""
    X, y = zoo.points(400, 5, seed=3, noise=0.3)
    found = solve(smo, zoo.problem(X, y, Kernel(LINEAR), 1000.0), smo.Options(), eps=1e-9)
    assert found.certificate.noise > 1e-9
    assert found.status is Status.CONVERGED
    assert found.solution.n_support > 10


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_tolerance_beyond_rounding_leaves_a_dual_point(C: float) -> None:
    """What Newton steps end with may be no feasible α at all."""
    X, y = zoo.points(200, 8, seed=1, noise=0.3)
    X[:, :5] = np.sign(X[:, :5])
    found = solve(smo, zoo.problem(X, y, Kernel(LINEAR), C), smo.Options(), eps=1e-16)
    assert found.status is Status.STALLED
    assert found.certificate.gap <= 1e-4 * found.certificate.primal


def least_primal(problem: Problem, least: float) -> float:
    """Of the linear problem on monomials, by newton.py, whose own tests show its optimum."""
    monomials = smo_w.turned(problem.rows, problem.kernel, least)
    assert monomials is not None
    mapped = replace(problem, rows=monomials.rows, kernel=Kernel(LINEAR))
    return solve(smo_w.newton, mapped, smo_w.newton.Options(), eps=1e-3).certificate.primal


def test_a_run_cut_short_on_the_way_has_the_better_of_both() -> None:
    problem = unscaled(5000)
    state = smo.start(problem, smo.Options(), 1e-3, 0)
    while state.to_w is None:
        smo.advance(state, 1)
    primal = []
    while state.to_w is not None:
        by_alpha, found = (certify(problem, each).primal for each in (smo_state.solution_of(state), smo.solution(state)))
        assert found <= by_alpha
        primal.append(found)
        smo.advance(state, 1)
    assert primal[-1] < 0.99 * primal[0]


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_run_cut_short_on_a_later_way_has_not_lost_the_first(bias: str) -> None:
    """Features of sizes from .1 to 300, cubed: of the first way's w rounding takes more than it may."""
    X, y = zoo.points(300, 4, seed=4, noise=0.2)
    X = np.abs(X) * np.array([0.1, 150.0, 3.0, 300.0])
    problem = replace(zoo.problem(X, y, Kernel(POLYNOMIAL, 1 / 4, 1.0, 3), 1.0), bias=bias)
    state = smo.start(problem, smo.Options(), 1e-3, 0)
    while state.by_w is None:
        assert not smo.advance(state, 1).stalled
    first = certify(problem, state.by_w).primal
    assert state.to_w is not None
    while not smo.advance(state, 1).stalled:
        assert certify(problem, smo.solution(state)).primal <= first
    assert certify(problem, smo.solution(state)).primal <= first


def test_monomials_beyond_float64_are_not_begun() -> None:
    """Kernel values of 10³⁰⁸ and more: pair steps are left as they are."""
    X, y = zoo.points(30, 2, seed=1)
    problem = zoo.problem(1e103 * X, y, Kernel(POLYNOMIAL, 1.0, 0.0, 3), 1.0)
    state = smo.start(problem, smo.Options(), 1e-3, 0)
    assert state.w_features == 4
    smo_w.look_for_w(state)
    assert (state.w_features, state.to_w) == (0, None)


def test_it_is_for_few_features_only(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = zoo.points(40, 5, seed=1)

    def features(kernel: Kernel) -> int:
        return smo_w.features_of_w(zoo.problem(X, y, kernel))

    assert features(Kernel(LINEAR)) == 5
    assert features(Kernel(POLYNOMIAL, 1.0, 0.0, 2)) == 15
    assert features(Kernel(POLYNOMIAL, 1.0, 1.0, 3)) == 0  # 56 of 40 rows
    assert features(Kernel(RBF, 1.0)) == 0
    assert smo_w.features_of_w(zoo.problem(X[:, :1], y, Kernel(POLYNOMIAL, 1.0, 0.0, 10**9))) == 0  # 1, but of 10⁹ factors
    monkeypatch.setattr(smo_w, "_MOST_VALUES", 15 * 40 - 1)
    assert features(Kernel(POLYNOMIAL, 1.0, 0.0, 2)) == 0
