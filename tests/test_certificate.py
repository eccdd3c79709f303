"""Certificates against the same figures from a dense Q, for solutions good, bad and without α."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
import zoo

from svmkit import certificate
from svmkit.certificate import Certificate, certify, certify_nothing, kkt_violation, total
from svmkit.data import Floats, Ints, Rows
from svmkit.engine.kernels import cross_apply
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, Bias, Kernel, Problem, Solution, of_other_rows
from svmkit.solvers import base, smo
from svmkit.trace import Progress, Status

DEFINITE = [case for case in zoo.CASES if case.definite]


def solution(problem: Problem, beta: np.ndarray, rho: float) -> Solution:
    origin = np.flatnonzero(beta)
    return Solution(origin, beta[origin], rho)


def feasible(problem: Problem, seed: int) -> np.ndarray:
    """A random β in the box; with a bias, of sum 0 and bounds touched."""
    rng = np.random.default_rng(seed)
    alpha = problem.upper * np.clip(rng.normal(0.3, 0.5, problem.n), 0.0, 1.0)
    if problem.bias == "free":
        heavy, light = alpha[problem.y > 0].sum(), alpha[problem.y < 0].sum()
        side = problem.y > 0 if heavy > light else problem.y < 0
        alpha[side] *= min(heavy, light) / max(heavy, light)
    return problem.y * alpha


@pytest.mark.parametrize("case", [*zoo.CASES, *map(zoo.without_bias, zoo.SMALL)], ids=repr)
def test_certificate_equals_the_dense_one(case: zoo.Case) -> None:
    problem = case.problem
    K = oracle.kernel_matrix(problem)
    beta, rho = feasible(problem, seed=1), 0.25
    found = certify(problem, solution(problem, beta, rho))
    size = 1e-9 * (1.0 + np.abs(K).max() * np.abs(beta).sum() ** 2)
    assert found.primal == pytest.approx(oracle.primal_objective(K, problem, beta, rho), rel=1e-9, abs=size)
    assert found.dual == pytest.approx(oracle.dual_objective(K, problem.y, beta), rel=1e-9, abs=size)
    assert found.violation == pytest.approx(oracle.violation(K, problem, beta), rel=1e-9, abs=size)
    if case.definite:
        assert found.gap == found.primal - max(0.0, found.dual)  # α = 0 is a dual point too
    elif problem.kernel.name == "sigmoid":
        assert math.isnan(found.gap)


@pytest.mark.parametrize("case", DEFINITE[:4], ids=repr)
def test_responses_that_are_missing_are_evaluated(case: zoo.Case) -> None:
    problem = case.problem
    bare = solution(problem, feasible(problem, seed=1), 0.25)
    own = oracle.kernel_matrix(problem)[:, bare.origin] @ bare.coef
    own[::3] = np.nan
    expected, found = (certify(problem, replace(bare, responses=responses)) for responses in (None, own))
    for name in ("primal", "dual", "gap", "violation"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-9 * expected.primal)
    assert np.isnan(own[::3]).all()


def far_from_the_margin(bias: Bias) -> tuple[Problem, Solution]:
    """A problem most of whose examples are no support vectors, and its solution."""
    X, y = zoo.points(2000, 3, seed=5, noise=0.0)
    some = (y > 0) | (np.arange(2000) % 3 == 0)  # three of four positive
    X, y = X[some], y[some]
    problem = replace(zoo.problem(X, y, Kernel(RBF, 0.4), 10.0), bias=bias)
    found = base.run(smo, problem, smo.Options(), eps=1e-3).solution
    return problem, found


@pytest.mark.parametrize("bias", ["free", "none"])
def test_examples_beyond_the_margin_need_no_float64(bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    """Float32 values of most examples leave every figure as it is, to the last bit."""
    problem, bare = far_from_the_margin(bias)
    assert certificate._beyond(problem, bare, np.zeros(problem.n)) is None  # small as it is, no look is worth it
    expected = certify(problem, bare)
    monkeypatch.setattr(certificate, "_WORTH_A_LOOK", 0.0)
    alpha = np.zeros(problem.n)
    alpha[bare.origin] = bare.coef * problem.y[bare.origin]
    rough = certificate._beyond(problem, bare, alpha)
    assert rough is not None
    beyond = ~np.isnan(rough)
    assert beyond.sum() > problem.n // 2
    assert not alpha[beyond].any()
    assert (problem.y * (rough - bare.rho) > 1.0)[beyond].all()
    assert not np.array_equal(rough[beyond], (oracle.kernel_matrix(problem)[:, bare.origin] @ bare.coef)[beyond])
    assert certify(problem, bare) == expected


def test_where_rho_is_off_the_violation_is_evaluated_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Far on its side by a wrong rho, an example that ought to be a support vector may make the violation."""
    problem, bare = far_from_the_margin("free")
    few = np.concatenate([np.flatnonzero(side * bare.coef > 0)[:3] for side in (1.0, -1.0)])
    coef = bare.coef[few]
    for side in (1.0, -1.0):
        coef[side * coef > 0] *= 10.0 / abs(coef[side * coef > 0].sum())
    wrong = Solution(bare.origin[few], coef, rho=-9.0)
    expected = certify(problem, wrong)
    monkeypatch.setattr(certificate, "_WORTH_A_LOOK", 0.0)
    assert certify(problem, wrong) == expected
    monkeypatch.setattr(certificate, "_takes_part", lambda *_: False)
    assert certify(problem, wrong).violation != expected.violation


@pytest.mark.parametrize("case", DEFINITE[:8], ids=repr)
def test_the_optimum_lies_between_primal_and_dual(case: zoo.Case) -> None:
    problem = case.problem
    best = oracle.optimum(problem, oracle.kernel_matrix(problem))
    for seed in range(3):
        beta = feasible(problem, seed)
        for scale in (0.0, 0.3, 1.0, 4.0):  # 4: outside the box, so a clipped copy bounds the dual
            found = certify(problem, solution(problem, scale * beta, rho=0.1))
            assert found.dual <= best * (1 + 1e-9)
            assert found.primal >= best * (1 - 1e-9)


def test_unbalanced_coefficients_are_balanced_by_shrinking_the_heavier_class() -> None:
    problem = zoo.named("rbf")
    beta = np.where(problem.y > 0, 1.0, -0.25) * problem.upper
    found = certify(problem, solution(problem, beta, 0.0))
    K = oracle.kernel_matrix(problem)
    heavy, light = (problem.y > 0).sum(), 0.25 * (problem.y < 0).sum()
    balanced = np.where(problem.y > 0, beta * min(1, light / heavy), beta * min(1, heavy / light))
    assert found.dual == pytest.approx(oracle.dual_objective(K, problem.y, balanced))


@pytest.mark.parametrize(("C", "rho"), [(1.0, 0.0), (1e-3, 0.0), (1.0, 0.5)])
def test_a_solution_without_training_rows_is_certified_through_its_margins(C: float, rho: float) -> None:
    """w as one row, as linear methods return it: α_i = t C where the margin is violated, balanced, t the best up to 1."""
    problem = zoo.named("linear")
    problem = replace(problem, upper=C * problem.upper)
    w = np.full((1, 5), 0.2)
    found = certify(problem, of_other_rows(Rows.from_dense(w), np.ones(1), rho))
    hinge = np.maximum(0.0, 1.0 - problem.y * (problem.rows.to_dense()[:, 1:] @ w[0] - rho))
    assert found.primal == pytest.approx(0.5 * float((w**2).sum()) + float(problem.upper @ hinge))
    alpha = np.where(hinge > 0, problem.upper, 0.0)
    heavy, light = alpha[problem.y > 0].sum(), alpha[problem.y < 0].sum()
    alpha[problem.y == (1.0 if heavy > light else -1.0)] *= min(heavy, light) / max(heavy, light)
    K = oracle.kernel_matrix(problem)
    duals = [oracle.dual_objective(K, problem.y, t * problem.y * alpha) for t in np.linspace(0.0, 1.0, 20001)]
    assert found.dual == pytest.approx(max(duals), rel=1e-6)
    assert (np.argmax(duals) < 20000) == (C == 1)
    assert found.gap > 0


def test_converged_is_said_only_when_fresh_values_bear_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that says done too early is not believed."""
    problem = zoo.named("rbf")
    assert base.run(smo, problem, smo.Options(), eps=1e-3).status is Status.CONVERGED
    monkeypatch.setattr(smo, "advance", lambda state, budget: Progress(1, 1, violation=0.0, done=True))
    assert base.run(smo, problem, smo.Options(), eps=1e-3).status is Status.STALLED


def test_what_fresh_values_bear_out_has_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where kernel values of 1e10 round by eps, a solver's own arithmetic may not show that it is there."""
    problem, advance = zoo.named("rbf"), smo.advance
    monkeypatch.setattr(smo, "advance", lambda state, budget: advance(state, budget)._replace(done=False, stalled=True))
    assert base.run(smo, problem, smo.Options(), eps=10.0).status is Status.CONVERGED
    assert base.run(smo, problem, smo.Options(), eps=1e-3).status is Status.STALLED


def test_a_violation_that_only_rounding_makes_small_is_not_believed() -> None:
    """Kernel values of 3·10¹⁶ for rows that differ by 1, and F from sums of them: all responses come out the same."""
    X, y = zoo.points(40, 3, seed=5)
    problem = zoo.problem(1e8 + np.sign(X), y, Kernel(POLYNOMIAL, 1.0, 0.0, 1), 1.0)
    result = base.run(smo, problem, smo.Options(), eps=1e-3)
    assert result.certificate.violation <= 1e-3
    assert result.certificate.gap > 0.1
    assert result.status is Status.STALLED


@pytest.mark.parametrize("kernel", [Kernel(LINEAR), Kernel(POLYNOMIAL, 1.0, 0.0, 1)], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("size", [1e8, 1e20])
def test_rounding_lifts_no_dual_above_the_optimum(kernel: Kernel, size: float) -> None:
    """All rows are the same one, so f = b; β of sum 0 have w = 0, but what rounding makes of ‖w‖² may be far below 0."""
    y = np.where(np.arange(150) < 30, 1.0, -1.0)
    problem = Problem(Rows.from_dense(np.full((150, 1), size)), y, np.full(150, 1e-3), kernel, "free")
    for seed in range(20):
        found = certify(problem, solution(problem, feasible(problem, seed), 0.0))
        assert found.dual <= 2 * 30 * 1e-3  # f = −1


def test_rounding_takes_little_from_the_dual_of_a_linear_machine_of_rows_far_away() -> None:
    """By way of w, which is small; sums of products of rows would be off by a unit."""
    X, y = zoo.points(60, 3, seed=2)
    problem = zoo.problem(X + 2.0**20, y, Kernel(LINEAR))
    beta = feasible(problem, seed=1)
    w = [sum(map(Fraction.__mul__, map(Fraction, beta), map(Fraction, column))) for column in (X + 2.0**20).T]
    exact = sum(map(Fraction, np.abs(beta))) - sum(each * each for each in w) / 2
    assert certify(problem, solution(problem, beta, 0.0)).dual == pytest.approx(float(exact), abs=1e-4)


def test_an_example_of_huge_norm_that_has_no_part_blurs_nothing() -> None:
    problem = Problem(
        Rows.from_dense(np.array([[2.0], [1.0], [1e5]])), np.array([1.0, -1, 1]), np.ones(3), Kernel(POLYNOMIAL, 1.0)
    )
    found = certify(problem, solution(problem, np.array([2.0, -2.0, 0.0]) / 49, 9 / 7))
    assert (found.primal, found.dual) == (pytest.approx(2 / 49, rel=1e-9), pytest.approx(2 / 49, rel=1e-9))
    assert found.gap == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("missing", [0, 12, 57])
def test_responses_that_are_known_are_not_evaluated_again(missing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = zoo.points(60, 3, seed=4)
    problem = zoo.problem(X, y, Kernel(RBF, gamma=0.5))
    beta = feasible(problem, seed=1)
    responses = oracle.kernel_matrix(problem) @ beta
    responses[:missing] = np.nan
    rows: list[int] = []

    def noted(*args: Any, numbers: Ints) -> Floats:
        rows.extend(numbers.tolist())
        return cross_apply(*args, numbers=numbers)

    monkeypatch.setattr(certificate, "cross_apply", noted)
    found = certify(problem, replace(solution(problem, beta, 0.1), responses=responses))
    monkeypatch.undo()
    assert rows == list(range(missing))
    assert found.primal == pytest.approx(certify(problem, solution(problem, beta, 0.1)).primal, rel=1e-12)


def test_given_responses_are_used() -> None:
    problem = zoo.named("rbf")
    beta = feasible(problem, seed=2)
    plain = solution(problem, beta, 0.0)
    responses = oracle.kernel_matrix(problem) @ beta
    given = replace(plain, responses=responses + 1e-3)
    assert certify(problem, given).dual == pytest.approx(certify(problem, plain).dual - 0.5e-3 * beta.sum(), abs=1e-9)
    assert certify(problem, given).primal != certify(problem, plain).primal


@pytest.mark.parametrize("bias", ["free", "none"])
def test_both_points_of_coefficients_outside_the_box(bias: Bias) -> None:
    """The primal is that of the coefficients, rows standing twice included, the dual that of a feasible copy."""
    problem = replace(zoo.named("rbf"), bias=bias)
    rng = np.random.default_rng(3)
    origin = rng.integers(0, problem.n, problem.n)
    coef = rng.normal(size=problem.n) * 3 * problem.upper[origin]
    beta = np.bincount(origin, coef, minlength=problem.n)
    alpha = np.clip(problem.y * beta, 0.0, problem.upper)
    if problem.bias == "free":
        heavy, light = alpha[problem.y > 0].sum(), alpha[problem.y < 0].sum()
        alpha[problem.y == (1.0 if heavy > light else -1.0)] *= min(heavy, light) / max(heavy, light)
    K = oracle.kernel_matrix(problem)
    given = Solution(origin, coef, 0.2 if problem.bias == "free" else 0.0)
    found = certify(problem, given)
    assert found.primal == pytest.approx(oracle.primal_objective(K, problem, beta, given.rho), rel=1e-9)
    assert found.dual == pytest.approx(oracle.dual_objective(K, problem.y, problem.y * alpha), rel=1e-9)
    assert found.violation == pytest.approx(oracle.violation(K, problem, problem.y * alpha), rel=1e-9)
    quick = certify(problem, given, "f4")
    assert quick != found
    assert (quick.primal, quick.dual) == (pytest.approx(found.primal, rel=1e-5), pytest.approx(found.dual, rel=1e-5))


def test_a_gap_that_float32_would_blur_is_computed_in_float64() -> None:
    """Of a large C the dual is a small difference of large sums: of float32 values it came out above the optimum."""
    X, y = zoo.points(60, 3, seed=2)
    large = zoo.problem(X, y, Kernel(RBF, 1e-3), 1e6)
    near = base.run(smo, large, smo.Options(), eps=1e-2).solution
    assert certify(large, near, "f4") == certify(large, near)
    small = zoo.problem(X, y, Kernel(RBF, 1e-3), 1.0)
    rough = solution(small, feasible(small, 0), 0.0)
    quick, exact = certify(small, rough, "f4"), certify(small, rough)
    assert quick != exact
    assert quick.gap == pytest.approx(exact.gap, rel=1e-4)


def test_a_primal_and_a_violation_that_float32_would_blur_are_computed_in_float64() -> None:
    """Labels by chance, so all α are free and far below C: hinges that rounding makes count C, and α little."""
    rng = np.random.default_rng(5)
    problem = zoo.problem(rng.normal(size=(400, 10)), rng.choice([-1.0, 1.0], 400), Kernel(RBF, 0.1), 1e6)
    near = base.run(smo, problem, smo.Options(), eps=1e-4).solution
    assert np.abs(near.coef).max() < 1e4
    assert certify(problem, near, "f4") == certify(problem, near)


def test_a_precomputed_kernel_caught_indefinite_has_no_gap() -> None:
    problem = zoo.precomputed(-np.eye(6), np.array([1.0, -1.0] * 3), 1.0)
    assert math.isnan(certify(problem, solution(problem, problem.y.copy(), 0.0)).gap)


def test_a_norm_below_0_of_coefficients_outside_the_box_has_no_gap_either() -> None:
    """Though that of the α inside is above 0."""
    K = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]])
    problem = replace(zoo.precomputed(K, np.array([1.0, -1.0, 1.0]), 1.0), upper=np.array([1.0, 1.0, 0.5]), bias="none")
    inside, outside = np.array([1.0, -1.0, 0.5]), np.array([1.0, -1.0, 4.0])
    assert math.isfinite(certify(problem, solution(problem, inside, 0.0)).gap)
    assert math.isnan(certify(problem, solution(problem, outside, 0.0)).gap)


def test_a_dual_point_whose_norm_is_below_0_has_no_gap_either() -> None:
    """Though that of the solution it came with is above 0."""
    problem = replace(zoo.precomputed(np.diag([1.0, 1.0, -1.0]), np.array([1.0, -1.0, 1.0]), 1.0), bias="none")
    found = solution(problem, np.array([1.0, 0.0, 0.0]), 0.0)
    assert math.isfinite(certify(problem, replace(found, alpha=np.array([1.0, 0.0, 0.5]))).gap)
    assert math.isnan(certify(problem, replace(found, alpha=np.array([0.5, 0.0, 1.0]))).gap)


def test_a_polynomial_of_negative_coef0_has_no_gap() -> None:
    """It is not definite, even where ‖w‖² > 0: another feasible point may have more than this one's primal."""
    rows, y = Rows.from_dense(np.array([[1.0], [2.0], [-1.0], [0.5]])), np.array([1.0, 1.0, -1.0, -1.0])
    for coef0, degree, known in ((-0.5, 3, False), (-0.5, 2, False), (0.0, 3, True), (-0.5, 0, True)):
        problem = Problem(rows, y, np.ones(4), Kernel(POLYNOMIAL, 1.0, coef0, degree))
        assert math.isfinite(certify(problem, solution(problem, 0.5 * y, 0.0)).gap) == known


def test_a_norm_of_0_that_rounding_puts_below_0_leaves_the_gap() -> None:
    """α at the bounds, w = 0: the sum of products that cancel may come out a little below 0."""
    y = np.array([1.0, -1.0] * 20)
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(40, 1))
        X[-1] = -(y[:-1] @ X[:-1]) * y[-1]
        problem = Problem(Rows.from_dense(X), y, np.full(40, 10.0), Kernel(LINEAR), "none")
        found = certify(problem, solution(problem, 10 * y, 0.0))
        assert abs(found.gap) < 1e-9


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_violation_that_is_not_known_is_not_0(bias: Bias) -> None:
    """Where kernel values overflow, responses are nan."""
    F, y = np.array([np.nan, 1.0]), np.array([1.0, -1.0])
    assert np.isnan(kkt_violation(F, np.zeros(2), y, np.ones(2), bias))


@pytest.mark.parametrize("bias", ["free", "none"])
def test_no_violation_is_plain_zero(bias: Bias) -> None:
    """And not −0, which a report would show with its sign."""
    y, F = np.array([1.0, -1.0]), np.array([-0.0, 0.0])
    assert math.copysign(1.0, kkt_violation(F, np.zeros(2), y, np.ones(2), bias)) == 1.0


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_of_several_machines_a_violation_that_is_not_known_makes_the_largest_unknown(order: list[int]) -> None:
    both = [Certificate(3.0, 1.0, 2.0, 0.1, 1e-9), Certificate(math.inf, math.nan, math.nan, math.nan, 1e-8)]
    found = total([both[k] for k in order])
    assert (found.primal, found.noise) == (math.inf, 1e-8)
    assert all(math.isnan(value) for value in (found.dual, found.gap, found.violation))
    assert total(both[:1]) == both[0]
    assert total([]) == Certificate(0.0, 0.0, 0.0, 0.0)


def test_a_point_that_is_all_but_balanced_is_balanced_too() -> None:
    """Else its dual is no bound."""
    problem = zoo.named("rbf")
    beta = feasible(problem, seed=1)
    off = np.where(problem.y > 0, (1 - 1e-5) * beta, beta)
    even = np.where(problem.y > 0, off, (1 - 1e-5) * beta)
    found = certify(problem, solution(problem, off, 0.25))
    assert found.dual == pytest.approx(oracle.dual_objective(oracle.kernel_matrix(problem), problem.y, even), rel=1e-11)


def test_given_responses_are_not_used_for_a_linear_machine() -> None:
    """Sums over support vectors lose more to rounding than w does."""
    problem = zoo.named("linear")
    plain = solution(problem, feasible(problem, seed=2), 0.1)
    responses = oracle.kernel_matrix(problem)[:, plain.origin] @ plain.coef + 1e-3
    assert certify(problem, replace(plain, responses=responses)) == certify(problem, plain)


@pytest.mark.parametrize("case", [*zoo.CASES, *map(zoo.without_bias, zoo.SMALL)], ids=repr)
def test_the_certificate_of_nothing_needs_no_kernel_value(case: zoo.Case) -> None:
    problem = case.problem
    none = np.arange(0)
    whole = certify(problem, Solution(none, np.zeros(0), 0.0))
    found = certify_nothing(np.array([0]), problem.y, problem.upper, problem.kernel, problem.bias).of(0)
    assert found.primal == pytest.approx(whole.primal, rel=1e-14)
    assert found.gap == pytest.approx(whole.gap, rel=1e-14, nan_ok=True)
    assert (found.dual, found.violation) == (0.0, whole.violation)
