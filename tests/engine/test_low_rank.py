"""Kernel matrices of low rank against whole ones: the factor, solutions, and the optimum by steps through the interior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracle import best_gap, dual_objective, kernel_matrix, violation
from zoo import points, problem

from svmkit import parallel
from svmkit.data import Floats
from svmkit.engine import low_rank
from svmkit.engine.cholesky import NotDefinite
from svmkit.engine.interior import Interior, Matrix, Whole
from svmkit.engine.kernels import Engine
from svmkit.engine.low_rank import LEAST_SHARE, LowRank, factor
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, Bias, Kernel, Problem


def smooth(n: int, C: float = 1.0, bias: Bias = "free", kernel: Kernel = Kernel(RBF, 0.05)) -> Problem:
    X, y = points(n, 2, seed=n, noise=0.3)
    return replace(problem(X, y, kernel, C), bias=bias)


def factored(case: Problem, most: int, share: float = LEAST_SHARE) -> Floats | None:
    return factor(Engine(case.rows, case.kernel, "f8"), most, share)


def of_low_rank(case: Problem) -> LowRank:
    L = factored(case, case.n // 2)
    assert L is not None
    return LowRank(L, np.diag(kernel_matrix(case)).copy())


@pytest.mark.parametrize(
    ("kernel", "rank"),
    [
        (Kernel(RBF, 0.05), 80),
        (Kernel(LINEAR), 2),
        (Kernel(POLYNOMIAL, 30.0, 1.0, 3), 10),
        (Kernel(POLYNOMIAL, 0.5, 0.0, 2), 3),
    ],
)
def test_what_the_factor_leaves_of_k_is_rounding(kernel: Kernel, rank: int) -> None:
    case = smooth(300, kernel=kernel)
    K, size = kernel_matrix(case), np.sqrt(np.diag(kernel_matrix(case)))
    for share in (1e-13, 1e-9, 1e-5):
        L = factored(case, 150, share)
        assert L is not None
        assert L.shape[1] <= rank
        assert (np.abs(K - L @ L.T) <= (share + 1e-13) * size[:, None] * size).all()


def test_rows_whose_kernel_values_are_0_have_no_part_in_it() -> None:
    X, y = points(60, 2, seed=3)
    X[::3] = 0.0
    case = problem(X, y, Kernel(POLYNOMIAL, 1.0, 0.0, 2), 1.0)
    L = factored(case, 30)
    assert L is not None
    assert not L[::3].any()
    assert np.allclose(L @ L.T, kernel_matrix(case), rtol=0.0, atol=1e-9)


def test_one_column_too_few_leaves_something() -> None:
    case = smooth(300)
    found = factored(case, 150)
    assert found is not None
    rank = found.shape[1]
    assert factored(case, rank) is not None
    assert factored(case, rank - 1) is None


def test_a_kernel_of_full_rank_is_given_up_after_a_quarter_of_the_columns() -> None:
    case = smooth(400, kernel=Kernel(RBF, 50.0))
    engine = Engine(case.rows, case.kernel, "f8")
    assert factor(engine, 200, 1e-9) is None
    assert engine.evaluations <= 50 * 400


def test_values_that_are_not_finite_have_no_factor() -> None:
    X, y = points(40, 2, seed=4)
    assert factored(problem(1e60 * X, y, Kernel(POLYNOMIAL, 1.0, 1.0, 4), 1.0), 20) is None
    assert (
        factored(problem(X * np.where(np.arange(40) == 7, 1e78, 1.0)[:, None], y, Kernel(POLYNOMIAL, 1.0, 1.0, 4), 1.0), 20)
        is None
    )


@pytest.mark.parametrize("free", [0, 3, 11])
@pytest.mark.parametrize("stretch", [low_rank._STRETCH, 64])
def test_solutions_where_some_variables_are_far_freer_than_others(
    free: int, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As near the optimum: D from 10⁻¹² to 10¹². What is left of the equation is rounding of its terms."""
    monkeypatch.setattr(low_rank, "_STRETCH", stretch)
    case = smooth(200)
    K, matrix, rng = kernel_matrix(case), of_low_rank(case), np.random.default_rng(free)
    D = 10.0 ** rng.uniform(0.0, 12.0, 200)
    D[rng.permutation(200)[:free]] = 10.0 ** rng.uniform(-12.0, -9.0, free)
    right = rng.normal(size=200)
    found = matrix.shifted(D, 1e-13).solve(right)
    assert np.abs(right - K @ found - D * found).max() <= 1e-9 * (K @ np.abs(found) + D * np.abs(found)).max()


def test_solutions_where_all_variables_are_free() -> None:
    """As at the start, where boxes are large: good to some digits, which is all that a step asks of its direction."""
    case = smooth(200)
    K, matrix, rng = kernel_matrix(case), of_low_rank(case), np.random.default_rng(8)
    D, right = 1e-9 * rng.uniform(0.5, 2.0, 200), K @ rng.normal(size=200)
    found = matrix.shifted(D, 1e-13).solve(right)
    assert np.abs(right - K @ found - D * found).max() <= 1e-3 * np.abs(right).max()


def test_equations_of_numbers_that_are_not_finite_have_no_solution() -> None:
    matrix = of_low_rank(smooth(200))
    for D in (np.full(200, np.inf), np.full(200, np.nan)):
        with pytest.raises(NotDefinite):
            matrix.shifted(D, 1e-13)


def through(case: Problem, matrix: Matrix, eps: float) -> tuple[Interior, int]:
    bounds = case.y * case.upper
    total, n_steps = 0.0 if case.bias == "free" else None, 0
    interior = Interior(matrix, case.y, np.minimum(0.0, bounds), np.maximum(0.0, bounds), total, eps, np.zeros(case.n))
    while not interior.ended:
        interior.step()
        n_steps += 1
    return interior, n_steps


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("C", [0.1, 30.0, 1e4, 1e7])
def test_the_optimum_is_that_of_the_whole_matrix(C: float, bias: Bias) -> None:
    """In as many steps."""
    case = smooth(300, C, bias)
    K = kernel_matrix(case)
    (found, n_steps), (whole, n_whole) = (through(case, matrix, 1e-5) for matrix in (of_low_rank(case), Whole(K)))
    assert found.met
    assert n_steps <= 1.1 * n_whole
    assert violation(K, case, found.beta) <= 2e-5
    assert best_gap(K, case, found.beta) <= 1e-5 * dual_objective(K, case.y, found.beta)
    assert found.least_primal == pytest.approx(whole.least_primal, rel=1e-6)


def test_threads_do_not_change_a_bit(threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(low_rank, "_STRETCH", 50)
    case = smooth(330, 100.0)
    found = []
    for count in (1, 2, 3):
        parallel.use_threads(count)
        found.append(through(case, of_low_rank(case), 1e-4)[0].beta)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("bias", ["free", "none"])
def test_what_products_are_off_by_is_made_good(bias: Bias) -> None:
    """A share that leaves F off by far more than eps; told by how much, a few more steps lead to where it is not."""
    case = smooth(300, 1e4, bias)
    K, L = kernel_matrix(case), factored(case, 150, 1e-7)
    assert L is not None
    found, _ = through(case, LowRank(L, np.diag(K).copy()), 1e-5)
    before = violation(K, case, found.beta)
    assert found.met
    assert before > 1e-4
    found.correct(case.y - K @ found.beta)
    assert not found.ended
    for _ in range(10):
        if not found.ended:
            found.step()
    assert found.met
    assert violation(K, case, found.beta) <= 0.1 * before
