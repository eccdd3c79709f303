"""Interior points against the certified optimum of the same box-constrained problem, and where pair steps do not get."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracle import best_gap, dual_objective, kernel_matrix, optimum, violation
from zoo import ill_conditioned, points, problem

from svmkit import parallel
from svmkit.data import Floats
from svmkit.engine.interior import Interior, Whole, best_level
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, SIGMOID, Bias, Kernel, Problem


def unscaled_problem(n: int, C: float, degree: int = 3) -> Problem:
    """Features of sizes from 1 to 300, as in medical data, under a polynomial."""
    X, y = points(n, 6, seed=n, noise=0.1)
    return problem(np.abs(X) * np.array([1.0, 300.0, 3.0, 80.0, 200.0, 10.0]), y, Kernel(POLYNOMIAL, 1 / 6, 0.0, degree), C)


def begun(case: Problem, eps: float, K: Floats | None = None, near: Floats | None = None) -> Interior:
    bounds = case.y * case.upper
    lower, upper = np.minimum(0.0, bounds), np.maximum(0.0, bounds)
    total = 0.0 if case.bias == "free" else None
    K = kernel_matrix(case) if K is None else K
    return Interior(Whole(K), case.y, lower, upper, total, eps, np.zeros(case.n) if near is None else near)


def ended(case: Problem, eps: float, K: Floats | None = None) -> Interior:
    interior = begun(case, eps, K)
    while not interior.ended:
        interior.step()
    return interior


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("C", [0.1, 30.0, 1e4])
def test_reaches_the_optimum(bias: Bias, C: float) -> None:
    case = ill_conditioned(200, C, bias)
    K = kernel_matrix(case)
    found = ended(case, 1e-6)
    alpha = case.y * found.beta
    assert found.met
    assert (alpha >= 0.0).all()
    assert (alpha <= case.upper).all()
    assert bias == "none" or abs(found.beta.sum()) <= 1e-12 * alpha.sum()
    assert violation(K, case, found.beta) <= 1e-6
    assert dual_objective(K, case.y, found.beta) == pytest.approx(optimum(case, K), rel=1e-8)


def test_boxes_of_all_sizes() -> None:
    case = ill_conditioned(150, np.geomspace(1e-4, 1e8, 150), "free")
    K = kernel_matrix(case)
    found = ended(case, 1e-5)
    assert found.met
    assert best_gap(K, case, found.beta) <= 1e-5 * case.upper.sum()
    assert violation(K, case, found.beta) <= 1e-5


@pytest.mark.parametrize(("n", "C"), [(50, 1e-6), (50, 1.0), (120, 1e-6)])
def test_features_that_are_not_scaled(n: int, C: float) -> None:
    """Kernel values from 1 to 10¹⁴, which no number of pair steps gets far with."""
    case = unscaled_problem(n, C)
    K = kernel_matrix(case)
    found = ended(case, 1e-3)
    assert found.met
    assert violation(K, case, found.beta) <= 1e-3


def test_where_rounding_hides_the_optimum_the_objective_is_near_it() -> None:
    """56 monomials: no β in float64 gives 120 such rows, of a noisy class each, an F within 1e-3 of what it ought to be."""
    case = unscaled_problem(120, 1.0)
    K = kernel_matrix(case)
    found = ended(case, 1e-3)
    assert not found.met
    assert best_gap(K, case, found.beta) <= 0.03 * dual_objective(K, case.y, found.beta)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_kernel_of_low_rank(bias: Bias) -> None:
    case = ill_conditioned(200, 1.0, bias, Kernel(LINEAR))
    K = kernel_matrix(case)
    found = ended(case, 1e-6)
    assert found.met
    assert best_gap(K, case, found.beta) <= 1e-6 * case.n


def test_boxes_far_larger_than_any_alpha_take_fewer_steps_from_as_far_in() -> None:
    case = ill_conditioned(100, 1e12, "free", Kernel(RBF, 0.1))
    K, n_steps = kernel_matrix(case), []
    for near in (np.zeros(case.n), 2.0 * ended(case, 1e-6).beta):
        interior = begun(case, 1e-6, K, near)
        n_steps.append(0)
        while not interior.ended:
            interior.step()
            n_steps[-1] += 1
        assert interior.met
    assert n_steps[1] <= 0.7 * n_steps[0]


def test_what_is_set_to_its_end_and_does_not_keep_the_sum_is_not_the_best() -> None:
    """Three at one end and one at the other have none, and no room for what is missing."""
    y = np.array([1.0, 1.0, 1.0, -1.0])
    interior = Interior(Whole(np.eye(4)), y, np.minimum(0.0, y), np.maximum(0.0, y), 0.0, 9.0, np.zeros(4))
    interior._point = replace(interior._point, z=np.where(y < 0, 9.0, 0.0), t=np.where(y > 0, 9.0, 0.0))
    interior._judge()
    assert abs(interior._snapped().sum()) >= 0.5
    assert abs(interior.beta.sum()) <= 1e-12
    assert not interior.met


def test_no_beta_that_does_not_keep_the_sum_is_the_best() -> None:
    """The start is one, as where variables begin away from their ends, and its objectives are lower than any that keep it."""
    F, lower, upper = np.array([-13.25, 1.0]), np.array([-14.25, -1e-5]), np.array([95.0, 9250.0])
    interior = Interior(Whole(np.eye(2)), F, lower, upper, 0.0, 0.5, np.zeros(2))
    while not interior.ended:
        interior.step()
    assert abs(interior.beta.sum()) <= 1e-12


def test_the_level_is_that_of_the_best_primal_objective() -> None:
    case = unscaled_problem(80, 1.0)
    found = begun(case, 1e-3)
    for _ in range(12):
        found.step()
    K = kernel_matrix(case)
    F = case.y - K @ found.beta
    losses = [float(case.upper @ np.maximum(0.0, case.y * (F - level))) for level in [found.level, *F]]
    assert losses[0] <= min(losses) * (1 + 1e-9)


def test_the_best_level_of_random_boxes() -> None:
    rng = np.random.default_rng(5)
    for n in (1, 2, 3, 10, 49):
        F, size = rng.normal(size=n), rng.uniform(0.0, 2.0, n) if n != 49 else np.full(n, 0.1)
        for y in (np.ones(n), -np.ones(n), rng.choice([-1.0, 1.0], n)):
            lower, upper = np.minimum(0.0, y * size), np.maximum(0.0, y * size)

            def loss(level: float, F: Floats = F, lower: Floats = lower, upper: Floats = upper) -> float:
                return float(upper @ np.maximum(0.0, F - level) - lower @ np.maximum(0.0, level - F))

            assert loss(best_level(F, lower, upper)) <= min(map(loss, F)) + 1e-12


def test_an_indefinite_kernel_ends_it() -> None:
    case = ill_conditioned(60, 10.0, "free", Kernel(SIGMOID, 0.5, -1.0))
    assert not ended(case, 1e-3).met


def test_values_that_are_not_finite_end_it() -> None:
    case = ill_conditioned(20, 1.0, "free")
    K = kernel_matrix(case)
    K[3, 5] = K[5, 3] = np.inf
    assert begun(case, 1e-3, K).ended


def test_threads_do_not_change_a_bit(threads: None) -> None:
    case = unscaled_problem(900, 1.0)
    found = []
    for count in (1, 2):
        parallel.use_threads(count)
        interior = begun(case, 1e-3)
        for _ in range(5):
            interior.step()
        found.append(interior.beta)
    assert np.array_equal(found[0], found[1])


def test_only_what_is_as_good_is_taken_in_place_of_the_best() -> None:
    case = ill_conditioned(100, 10.0, "free", Kernel(RBF, 0.1))
    found = ended(case, 1e-6)
    assert found.met
    best = found.beta
    off, without_sum = 0.999 * best, best.copy()
    without_sum[0] *= 1.0 + 1e-6
    for other in (off, without_sum):
        found.offer(other)
        assert found.beta is best
    found._eps = 9.0
    found.offer(off)  # its objective is more
    assert found.beta is best
    found.offer(best.copy())
    assert found.beta is not best
