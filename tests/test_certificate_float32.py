"""Certificates from float32 kernel values: as good as those from float64 in each figure, or done again in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import zoo

from svmkit import certificate
from svmkit.certificate import certify, float32_margin
from svmkit.data import Rows
from svmkit.engine.kernels import cross_apply
from svmkit.engine.packed import training_precision
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, SIGMOID, Kernel, Problem, Solution
from svmkit.solvers import base, smo


def test_a_norm_of_coefficients_far_beyond_the_box_is_computed_in_float64() -> None:
    """Rows that are all but the same, with coefficients of 10⁶ of either sign, though the α that count are 1."""
    rng = np.random.default_rng(3)
    X, sign = np.repeat(rng.normal(size=(20, 3)), 2, axis=0) + 3e-4 * rng.normal(size=(40, 3)), np.tile([1.0, -1.0], 20)
    problem = zoo.problem(X, rng.choice([-1.0, 1.0], 40), Kernel(RBF, 0.5))
    given = Solution(np.arange(40), 1e6 * sign, 0.0)
    assert certify(problem, given, "f4") == certify(problem, given)


@pytest.mark.parametrize("seed", range(4))
def test_a_dual_point_of_large_alpha_that_cancel_is_computed_in_float64(seed: int) -> None:
    """Of a solution that is 0: near copies of either label, all at their bounds."""
    rng = np.random.default_rng(seed)
    X, y = np.repeat(rng.normal(size=(20, 3)), 2, axis=0) + 1e-5 * rng.normal(size=(40, 3)), np.tile([1.0, -1.0], 20)
    problem = zoo.problem(X, y, Kernel(RBF, 0.5), C=1e4)
    given = Solution(np.arange(0), np.zeros(0), 0.0, alpha=problem.upper)
    exact = certify(problem, given)
    assert 0 < exact.gap < 1.0
    assert certify(problem, given, "f4") == exact


def test_a_violation_that_float32_would_blur_is_computed_in_float64_beside_a_large_gap() -> None:
    """As of the optimum with another rho, which the violation of α does not depend on."""
    X, y = zoo.points(60, 3, seed=2)
    problem = zoo.problem(X, y, Kernel(RBF, 0.3))
    found = base.run(smo, problem, smo.Options(), eps=1e-9).solution
    given = replace(found, rho=found.rho + 0.5)
    assert certify(problem, given).gap > 1.0
    assert certify(problem, given, "f4") == certify(problem, given)


def test_a_dual_of_many_small_coefficients_that_float32_would_blur_is_computed_in_float64() -> None:
    """Errors that kernel values have in common: of two points told apart, each of 200 rows all but the same."""
    rng, y = np.random.default_rng(4), np.repeat([1.0, -1.0], 200)
    X = 4.0 * y[:, None] + 1e-4 * rng.normal(size=(400, 2))
    problem = replace(zoo.problem(X, y, Kernel(RBF, 1.0)), bias="none")
    given = Solution(np.arange(400), y / 200 * (1.0 + 5e-6), 0.0)
    exact = certify(problem, given)
    assert 0 < exact.gap < 1e-5
    assert certify(problem, given, "f4") == exact


@pytest.mark.parametrize("kernel", [Kernel(RBF, 0.4), Kernel(POLYNOMIAL, 0.1, 1.0, 3)], ids=lambda kernel: kernel.name)
def test_what_float32_puts_just_beyond_the_margin_is_looked_at_in_float64(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By rho the margin of an example with α = 0 lies between its response in float32 and that in float64."""
    X, y = zoo.points(400, 3, seed=6)
    few = np.arange(20)
    coef = y[few] - y[few].mean()
    problem = Problem(Rows.from_dense(X), np.ones(400), np.full(400, 1e6), kernel, "none")
    rough, exact = (
        cross_apply(problem.rows, problem.rows.take(few), kernel, coef[:, None], real)[:, 0] for real in ("f4", "f8")
    )
    example = 20 + int(np.argmax((rough - exact)[20:]))
    rho = 0.5 * (rough[example] + exact[example]) - 1.0
    assert exact[example] - rho < 1.0 < rough[example] - rho
    given = Solution(few, coef, rho)
    alpha = np.zeros(400)
    alpha[few] = np.abs(coef)
    monkeypatch.setattr(certificate, "_WORTH_A_LOOK", 0.0)
    beyond = certificate._beyond(problem, given, alpha)
    assert beyond is not None
    assert np.isnan(beyond[example])
    assert (exact - rho > 1.0)[~np.isnan(beyond)].all()
    assert not np.isnan(beyond).all()


@pytest.mark.parametrize("kernel", [Kernel(LINEAR), Kernel(SIGMOID, 1.0, -30.0)], ids=lambda kernel: kernel.name)
def test_of_kernels_without_a_diagonal_above_0_or_with_a_w_no_look_is_taken(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "_WORTH_A_LOOK", 0.0)
    problem = zoo.problem(*zoo.points(60, 3, seed=2), kernel)
    alpha = np.append(np.ones(4), np.zeros(56))
    given = Solution(np.arange(60), problem.y * alpha, 5.0)
    assert certificate._beyond(problem, given, alpha) is None


def test_a_norm_that_float32_puts_below_0_is_computed_in_float64() -> None:
    """Of rows far from the origin kernel values are all but equal, and what float32 leaves of ‖w‖² may have either sign."""
    lost, y = 0, np.array([1.0, -1.0] * 150)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = 300.0 + np.repeat(rng.normal(size=(150, 4)), 2, axis=0) + 1e-3 * rng.normal(size=(300, 4))
        problem = Problem(Rows.from_dense(X), y, np.full(300, 10.0), Kernel(POLYNOMIAL, 1.0, 1.0, 1), "free")
        given = Solution(np.arange(300), 10.0 * y, 0.25)
        rough = cross_apply(problem.rows, problem.rows, problem.kernel, given.coef[:, None], "f4")[:, 0]
        quick, exact = certify(problem, given, "f4"), certify(problem, given)
        assert quick.gap > 0
        if given.coef @ rough < -1.0:
            assert quick == exact
            lost += 1
    assert lost


@pytest.mark.parametrize(("gamma", "common"), [(0.1, 0.0), (0.2, 0.5), (0.05, 1.5)])
def test_sums_of_float32_values_near_the_margin_are_off_by_less_than_their_margin(gamma: float, common: float) -> None:
    """Of an SVM's own weights, balanced and at their bounds mostly; and not by so little that the margin could be nothing."""
    X, y = zoo.points(3000, 8, seed=12, noise=0.2)
    problem = Problem(Rows.from_dense(X + common), y, np.full(3000, 1.0), Kernel(RBF, gamma))
    assert training_precision(problem.rows, problem.kernel) == "f4"
    found = base.run(smo, problem, smo.Options(), eps=1e-3).solution
    basis, weights = found.expansion(problem.rows)
    exact, rough = (cross_apply(problem.rows, basis, problem.kernel, weights[:, None], real)[:, 0] for real in ("f8", "f4"))
    near = np.abs(exact - found.rho) < 3.0
    assert np.count_nonzero(near) > 2000
    worst, margin = np.abs(exact - rough)[near].max(), float32_margin(1.0, float(found.coef @ found.coef))
    assert worst < 0.5 * margin
    assert worst > 1e-4 * margin
