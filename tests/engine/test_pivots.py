"""Newton steps with pivots against the certified optimum of the same box-constrained problem."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from oracle import dual_objective, kernel_matrix, optimum, violation
from zoo import ill_conditioned, problem

from svmkit.data import Floats
from svmkit.engine import pivots
from svmkit.engine.active import Variables
from svmkit.engine.cholesky import Factor, NotDefinite
from svmkit.engine.kernels import Engine
from svmkit.problem import RBF, SIGMOID, Bias, Kernel, Problem
from svmkit.solvers import smo


def from_beta(case: Problem, beta: Floats) -> tuple[Engine, Variables]:
    engine = Engine(case.rows, case.kernel, "f8")
    bounds = case.y * case.upper
    F = case.y - kernel_matrix(case) @ beta
    lower, upper = np.minimum(0.0, bounds), np.maximum(0.0, bounds)
    return engine, Variables(np.arange(case.n), lambda: engine.packed, beta, F, lower, upper)


def rough(case: Problem, eps: float) -> Floats:
    """β where block steps stopped at a violation of ``eps``."""
    state = smo.start(case, smo.Options(), eps, 0)
    while not smo.advance(state, 10**6).done:
        pass
    found, beta = smo.solution(state), np.zeros(case.n)
    beta[found.origin] = found.coef
    return beta


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("share", [0.25, 0.0], ids=["border", "new factors"])
def test_reaches_the_optimum(bias: Bias, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pivots, "_BORDER_SHARE", share)
    monkeypatch.setattr(pivots, "_LEAST_BORDER", 64 if share else 0)
    monkeypatch.setattr(pivots, "_MOST_FACTORS", 25)
    case = ill_conditioned(300, 30.0, bias)
    K = kernel_matrix(case)
    start = rough(case, 0.05)
    engine, begin = from_beta(case, start)
    found = pivots.minimise(engine, begin, begin.number, bias == "free", 1e-6)
    assert found is not None
    beta, F = found
    assert (beta >= begin.lower).all()
    assert (beta <= begin.upper).all()
    assert bias == "none" or abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    assert violation(K, case, beta) <= 2e-6
    np.testing.assert_allclose(F, case.y - K @ beta, atol=1e-8)
    best = optimum(case, K)
    assert abs(dual_objective(K, case.y, beta) - best) <= 1e-8 * abs(best)
    assert dual_objective(K, case.y, start) < best - 1e-6 * abs(best)  # there was something left to do


def test_pivots_are_made_both_ways() -> None:
    """Some variables that were free end at an edge, and some that were not are free."""
    case = ill_conditioned(300, 30.0, "free")
    engine, begin = from_beta(case, rough(case, 0.05))
    found = pivots.minimise(engine, begin, begin.number, True, 1e-6)
    assert found is not None
    before = (begin.lower < begin.beta) & (begin.beta < begin.upper)
    after = (begin.lower < found[0]) & (found[0] < begin.upper)
    assert (before & ~after).any()
    assert (after & ~before).any()


def test_an_indefinite_kernel_is_left_alone() -> None:
    case = ill_conditioned(120, 1.0, "free", Kernel(SIGMOID, 0.5, -1.0))
    beta = np.where(np.arange(case.n) % 2 == 0, 0.5 * case.y, 0.0)
    engine, begin = from_beta(case, beta)
    assert pivots.minimise(engine, begin, begin.number, True, 1e-3) is None


def test_nothing_free_is_nothing_to_do() -> None:
    case = ill_conditioned(50, 1.0, "free")
    engine, begin = from_beta(case, np.zeros(case.n))
    assert pivots.minimise(engine, begin, begin.number, True, 1e-3) is None


def test_far_from_the_optimum_it_gives_up_or_is_right() -> None:
    """From pairs drawn at random pivots need not settle; what is returned is an optimum all the same."""
    outcomes = []
    for seed in range(12):
        case = ill_conditioned(80 + seed, 5.0, "free", Kernel(RBF, 0.4))
        rng = np.random.default_rng(seed)
        size = rng.uniform(0, 5.0, case.n) * (rng.random(case.n) < 0.5)
        size[case.y > 0] *= size[case.y < 0].sum() / size[case.y > 0].sum()
        beta = np.clip(case.y * size, -5.0, 5.0)
        engine, begin = from_beta(case, beta)
        found = pivots.minimise(engine, begin, begin.number, True, 1e-6)
        outcomes.append(found is not None)
        if found is not None:
            assert (found[0] >= begin.lower).all()
            assert (found[0] <= begin.upper).all()
            assert abs(found[0].sum() - beta.sum()) <= 1e-9 * np.abs(found[0]).sum()
            F = case.y - kernel_matrix(case) @ found[0]
            assert F[found[0] < begin.upper].max() - F[found[0] > begin.lower].min() <= 2e-6
    assert any(outcomes)


def test_a_free_set_that_grows_too_large_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step can free many variables at once: of linear rows of few features nearly all. Their factor would not fit."""
    case = ill_conditioned(300, 30.0, "free")
    start = rough(case, 1.0)
    engine, begin = from_beta(case, start)
    n_free = int(np.count_nonzero((begin.lower < begin.beta) & (begin.beta < begin.upper)))
    sizes = []
    factor = pivots.Factor

    def noted(part: Callable[[int, int, int, int], Floats], n: int, ridge: float) -> pivots.Factor:
        sizes.append(n)
        return factor(part, n, ridge)

    monkeypatch.setattr(pivots, "Factor", noted)
    monkeypatch.setattr(pivots, "MOST_FREE", n_free)
    assert pivots.minimise(engine, begin, begin.number, True, 1e-6) is None
    assert sizes == [n_free]


def test_equations_without_a_solution_end_it() -> None:
    """Of a border that is singular to the bit: a row freed beside its double, without a ridge."""
    case = problem(np.array([[1.0, 2.0], [1.0, 2.0], [3.0, -1.0]]), np.array([1.0, 1.0, -1.0]), Kernel(RBF, 0.5), 1.0)
    engine = Engine(case.rows, case.kernel, "f8")
    system = pivots._System(engine, np.arange(3), np.array([0]))
    system.ridge = 0.0
    system.factor = Factor(lambda r0, r1, c0, c1: engine.block(np.array([0]), np.array([0])), 1, 0.0)
    with pytest.raises(NotDefinite):
        system.solve(np.array([0, 1]), case.y, None)


def test_singular_equations_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def singular(*_: object) -> None:
        raise NotDefinite

    monkeypatch.setattr(pivots._System, "solve", singular)
    case = ill_conditioned(120, 30.0, "none")
    engine, begin = from_beta(case, rough(case, 0.05))
    assert pivots.minimise(engine, begin, begin.number, False, 1e-6) is None
