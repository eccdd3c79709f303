"""The minimum in the span of the last iterates, against the same written plainly over a dense kernel matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracle import dual_objective, kernel_matrix
from zoo import points, problem

from svmkit.data import Floats
from svmkit.engine import span
from svmkit.engine.active import ActiveSet
from svmkit.engine.kernels import Engine
from svmkit.problem import RBF, Bias, Kernel, Problem


def case_of(bias: Bias, C: float) -> tuple[Problem, Floats, ActiveSet]:
    """With C infinite, a box that nothing leaves."""
    X, y = points(60, 4, seed=3, noise=0.3)
    case = replace(problem(X, y, Kernel(RBF, 0.2), 1.0), bias=bias)
    variables = ActiveSet(Engine(case.rows, case.kernel, "f8"), case.dual())
    if np.inf == C:
        variables.whole.lower, variables.whole.upper = np.full(case.n, -np.inf), np.full(case.n, np.inf)
    else:
        variables.whole.lower, variables.whole.upper = C * variables.whole.lower, C * variables.whole.upper
    return case, kernel_matrix(case), variables


def iterates(case: Problem, K: Floats, variables: ActiveSet, count: int) -> list[Floats]:
    """β in the box that go uphill in a random way, from 0; Σβ stays 0 with a bias."""
    draw, lower, upper = np.random.default_rng(4), variables.whole.lower, variables.whole.upper
    found = [np.zeros(case.n)]
    for _ in range(count - 1):
        size = 0.1 * min(upper.max(), 1.0) * draw.uniform(0.0, 1.0, case.n)
        step = np.clip(found[-1] + size * (case.y - K @ found[-1]), lower, upper) - found[-1]
        if case.bias == "free":
            own = np.sign(step) == np.sign(step.sum())  # what is too much is taken from them, each in proportion
            step[own] *= 1.0 - step.sum() / step[own].sum()
        found.append(found[-1] + step)
    return found


def note_all(variables: ActiveSet, case: Problem, K: Floats, betas: list[Floats]) -> span.Span:
    recent = span.Span()
    for beta in betas:
        variables.active.beta, variables.active.F = beta.copy(), case.y - K @ beta
        recent.note(variables)
    return recent


def plain(case: Problem, K: Floats, variables: ActiveSet, betas: list[Floats]) -> tuple[Floats, int]:
    """β after the step, and how many variables were held."""
    beta, lower, upper = betas[-1], variables.whole.lower, variables.whole.upper
    D, held = np.diff(np.array(betas), axis=0), np.zeros(case.n, dtype=bool)
    for attempt in range(span._HOLDS + 1):
        A, b = D @ K @ D.T, D @ (case.y - K @ beta)
        c = np.linalg.lstsq(A, b, rcond=1e-13)[0]
        if case.bias == "free" and attempt > 0:  # stationary in c and in the multiplier of Σ d = 0
            e = D.sum(axis=1)
            c = np.linalg.solve(np.block([[A, e[:, None]], [e[None], np.zeros((1, 1))]]), [*b, 0.0])[:-1]
        step = c @ D
        outside = ((beta + step < lower) | (beta + step > upper)) & ~held
        held |= outside
        if not outside.any() or attempt == span._HOLDS:
            break
        D = np.where(outside, 0.0, D)
    share = 1.0
    for d, low, b, up in zip(step, lower, beta, upper, strict=True):
        if d:
            share = min(share, ((up if d > 0 else low) - b) / d)
    return beta + share * step, int(held.sum())


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("count", [2, 4, span._KEPT])
def test_inside_the_box_it_is_the_minimum_over_all_combinations(bias: Bias, count: int) -> None:
    case, K, variables = case_of(bias, np.inf)
    betas = iterates(case, K, variables, count)
    moved2 = note_all(variables, case, K, betas).minimise(variables, case.n)
    beta, F = variables.current()
    expected, held = plain(case, K, variables, betas)
    assert held == 0
    np.testing.assert_allclose(beta, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(F, case.y - K @ beta, atol=1e-9)
    assert moved2 == pytest.approx(((beta - betas[-1]) ** 2).sum(), rel=1e-9)
    assert dual_objective(K, case.y, beta) > dual_objective(K, case.y, betas[-1])
    slopes = np.diff(np.array(betas), axis=0) @ F
    assert np.abs(slopes).max() <= 1e-7  # no combination goes further up
    assert bias == "none" or abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("C", [0.3, 1.0, 3.0])
def test_variables_that_would_leave_the_box_are_held(bias: Bias, C: float) -> None:
    case, K, variables = case_of(bias, C)
    betas = iterates(case, K, variables, 4)
    note_all(variables, case, K, betas).minimise(variables, case.n)
    beta, F = variables.current()
    expected, held = plain(case, K, variables, betas)
    assert held > 0
    np.testing.assert_allclose(beta, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(F, case.y - K @ beta, atol=1e-9)
    assert (variables.whole.lower <= beta).all()
    assert (beta <= variables.whole.upper).all()
    assert dual_objective(K, case.y, beta) >= dual_objective(K, case.y, betas[-1])
    assert bias == "none" or abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()


def test_only_the_last_iterates_count() -> None:
    case, K, variables = case_of("free", np.inf)
    betas = iterates(case, K, variables, span._KEPT + 3)
    note_all(variables, case, K, betas).minimise(variables, case.n)
    np.testing.assert_allclose(variables.active.beta, plain(case, K, variables, betas[-span._KEPT :])[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_with_a_bias_a_step_that_changes_the_sum_is_not_taken(bias: Bias) -> None:
    """Iterates whose sums differ by rounding, and combinations that blow that up, leave a step that a bias does not allow."""
    case, K, variables = case_of(bias, np.inf)
    betas = iterates(case, K, variables, 4)
    betas[1][0] += 1e-5
    moved2 = note_all(variables, case, K, betas).minimise(variables, case.n)
    assert (moved2 == 0.0) == (bias == "free")
    assert np.array_equal(variables.active.beta, betas[-1]) == (bias == "free")


@pytest.mark.parametrize("lost", ["too few", "forgotten", "other variables"])
def test_without_two_iterates_of_these_variables_nothing_moves(lost: str) -> None:
    case, K, variables = case_of("free", 1.0)
    betas = iterates(case, K, variables, 1 if lost == "too few" else 4)
    recent = note_all(variables, case, K, betas)
    if lost == "forgotten":
        recent.forget()
    elif lost == "other variables":
        variables.active = replace(variables.active)
    assert recent.minimise(variables, case.n) == 0.0
    assert np.array_equal(variables.active.beta, betas[-1])


def test_kernel_values_that_overflow_move_nothing() -> None:
    case, K, variables = case_of("free", 1.0)
    recent = note_all(variables, case, K, iterates(case, K, variables, 3))
    recent.last[0][1][5] = np.inf
    before = variables.active.beta.copy()
    with np.errstate(invalid="ignore"):
        assert recent.minimise(variables, case.n) == 0.0
    assert np.array_equal(variables.active.beta, before)
