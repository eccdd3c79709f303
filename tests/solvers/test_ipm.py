"""Interior point: its Newton steps against the whole system of equations, its ends against an optimum found otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracle import kernel_matrix, optimum
from zoo import named, points, problem

from svmkit.certificate import certify
from svmkit.data import Floats, Rows, dense_rows
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, RBF, Bias, Kernel, Problem
from svmkit.solvers import ipm
from svmkit.solvers.base import run
from svmkit.trace import Status

EVERY = 10**9


def weighted(n: int, d: int, bias: Bias, C: float = 1.0) -> Problem:
    X, y = points(n, d, seed=n)
    return replace(problem(X, y, Kernel(LINEAR), C * np.random.default_rng(n).uniform(0.5, 2.0, n)), bias=bias)


def whole_system(state: ipm._State, r_s: Floats, r_xi: Floats) -> Floats:
    """Δ(w, b, α, ξ, s) by elimination of all 1 + d + 3n equations at once."""
    p, y, X = state.point, state.y, state.rows.to_dense()[:, 1:]
    n, d = X.shape
    Z, O, E = y[:, None] * X, np.zeros((n, n)), np.eye(n)
    w = p.w[1:]
    rows = [
        (np.hstack([np.eye(d), np.zeros((d, 1)), -Z.T, np.zeros((d, 2 * n))]), Z.T @ p.alpha - w),
        (np.hstack([Z, y[:, None], O, E, -E]), 1 + p.s - p.xi - Z @ w - y * p.b),
        (np.hstack([np.zeros((n, d + 1)), np.diag(p.s), O, np.diag(p.alpha)]), r_s),
        (np.hstack([np.zeros((n, d + 1)), -np.diag(p.xi), np.diag(p.beta), O]), r_xi),
    ]
    if state.free:
        rows.append((np.hstack([np.zeros((1, d + 1)), y[None], np.zeros((1, 2 * n))]), np.array([-y @ p.alpha])))
    else:
        rows.append((np.eye(1, d + 1 + 3 * n, d), np.zeros(1)))
    return np.linalg.solve(np.vstack([left for left, _ in rows]), np.concatenate([right for _, right in rows]))


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_newton_step_solves_all_equations(bias: Bias) -> None:
    case = weighted(25, 4, bias)
    state = ipm.start(case, ipm.Options(), 1e-9, 0)
    rng = np.random.default_rng(1)
    for _ in range(6):
        r_s, r_xi = rng.normal(size=25), rng.normal(size=25)
        step, whole = ipm._Newton(state).step(r_s, r_xi), whole_system(state, r_s, r_xi)
        found = np.concatenate([step.w[1:], [step.b], step.alpha, step.xi, step.s])
        assert found == pytest.approx(whole, rel=1e-6, abs=1e-6 * np.abs(whole).max())
        assert (step.beta == -step.alpha).all()
        ipm.advance(state, 1)


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize(("n", "d", "C"), [(60, 3, 1.0), (60, 90, 1.0), (300, 6, 100.0), (300, 6, 1e-3)])
def test_w_and_the_threshold_are_the_optimum(n: int, d: int, C: float, bias: Bias) -> None:
    case = weighted(n, d, bias, C)
    best = optimum(case, kernel_matrix(case))
    result = run(ipm, case, ipm.Options(), eps=1e-6)
    assert result.status is Status.CONVERGED
    assert result.certificate.primal == pytest.approx(best, rel=1e-6)
    assert result.certificate.dual == pytest.approx(best, rel=1e-6)


def test_corrections_save_steps_and_change_no_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = points(400, 30, seed=3)
    case = problem(X * 10.0 ** -np.linspace(0, 3, 30), y, Kernel(LINEAR), 100.0)
    corrected = run(ipm, case, ipm.Options(), eps=1e-6)
    monkeypatch.setattr(ipm, "_CORRECTIONS", 0)
    plain = run(ipm, case, ipm.Options(), eps=1e-6)
    assert corrected.steps < plain.steps
    assert corrected.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-8)


def test_features_of_very_different_size_at_a_large_cost() -> None:
    """What an eigenvalue map gives: a kernel's spectrum falls by many powers of ten, C is large."""
    X, y = points(400, 30, seed=3)
    case = problem(X * 10.0 ** -np.linspace(0, 6, 30), y, Kernel(LINEAR), 1e5)
    best = optimum(case, kernel_matrix(case))
    result = run(ipm, case, ipm.Options(), eps=1e-3)
    assert result.status is Status.CONVERGED
    assert result.certificate.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e7])
def test_a_feature_that_is_constant_changes_nothing_where_b_is_free(size: float) -> None:
    """Nyström features nearly span the constants where gamma is small."""
    case = weighted(60, 3, "free", C=10.0)
    plain = run(ipm, case, ipm.Options(), eps=1e-6)
    wide = np.column_stack([case.rows.to_dense()[:, 1:], np.full(60, size)])
    found = run(ipm, replace(case, rows=Rows.from_dense(wide)), ipm.Options(), eps=1e-6)
    assert found.status is (Status.CONVERGED if size == 1e3 else Status.STALLED)  # kernel values of 1e14 hide what is left
    assert found.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-6)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_rows_without_a_cost_do_not_count(bias: Bias) -> None:
    case = weighted(60, 4, bias)
    upper = case.upper * (np.arange(60) % 3 > 0)
    kept = np.flatnonzero(upper)
    fewer = Problem(case.rows.take(kept), case.y[kept], upper[kept], case.kernel, bias)
    some, all_rows = (run(ipm, one, ipm.Options(), eps=1e-6) for one in (fewer, replace(case, upper=upper)))
    assert all_rows.solution.basis.data == pytest.approx(some.solution.basis.data, rel=1e-9)
    assert all_rows.solution.rho == pytest.approx(some.solution.rho, rel=1e-9)
    assert all_rows.certificate.violation <= 1e-6


@pytest.mark.parametrize("bias", ["free", "none"])
def test_dense_rows_have_the_same_optimum_as_sparse_ones(bias: Bias) -> None:
    X, y = points(200, 12, seed=5)
    X = X.astype(np.float32)
    upper = 0.3 * (np.arange(200) % 4 > 0)
    found = []
    for rows in (Rows.from_dense(X), dense_rows(X)):
        result = run(ipm, Problem(rows, y, upper, Kernel(LINEAR), bias), ipm.Options(), eps=1e-6).solution
        assert list(result.basis.indices) == list(range(1, 13))
        found.append(np.append(result.basis.data, result.rho))
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def test_feature_numbers_may_be_far_apart() -> None:
    case = weighted(60, 4, "free")
    far = np.array([0, 7, 1000, 10**6, 2 * 10**9], dtype=np.int32)
    rows = case.rows._replace(indices=far[case.rows.indices], n_features=int(far[-1]))
    near, wide = (run(ipm, replace(case, rows=one), ipm.Options(), eps=1e-3).solution for one in (case.rows, rows))
    assert (wide.basis.indices == far[near.basis.indices]).all()
    assert wide.basis.data.tobytes() == near.basis.data.tobytes()


def test_a_stopped_run_has_the_point_it_came_to() -> None:
    case = weighted(100, 5, "free")
    best = optimum(case, kernel_matrix(case))
    state = ipm.start(case, ipm.Options(), 1e-9, 0)
    before = np.inf
    while not ipm.advance(state, 3).done:
        excess = certify(case, ipm.solution(state)).primal / best - 1.0
        assert -1e-9 <= excess < max(before, 1e-6)
        before = excess
    assert before < 1e-2


def test_what_it_cannot_take_it_refuses_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = points(20, 3, seed=1)
    with pytest.raises(UsageError, match="--map"):
        run(ipm, problem(X, y, Kernel(RBF, 0.5)), ipm.Options(), eps=1e-3)
    monkeypatch.setattr(ipm, "MOST_FEATURES", 2)
    with pytest.raises(UsageError, match=r"3 here; it takes at most 2.*--dim of 2 or less"):
        run(ipm, problem(X, y, Kernel(LINEAR)), ipm.Options(), eps=1e-3)


def test_nothing_moves_where_no_step_helps() -> None:
    """Values whose squares leave float64's range: no factor exists, and the run says so."""
    rows = Rows.from_dense(np.array([[1e200], [-1e200]]))
    state = ipm.start(Problem(rows, np.array([1.0, -1.0]), np.ones(2), Kernel(LINEAR)), ipm.Options(), 1e-3, 0)
    assert ipm.advance(state, EVERY).stalled
    assert ipm.solution(state).n_support == 0


def test_zoo_steps_are_few() -> None:
    for name in ("linear", "linear, C 100", "300 rows, linear", "sparse, linear"):
        state = ipm.start(named(name), ipm.Options(), 1e-3, 0)
        assert ipm.advance(state, EVERY).steps < 30
