"""Augmented Lagrangian: its Newton steps against the parabola that touches, its ends against an optimum found otherwise."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from oracle import kernel_matrix, optimum
from zoo import named, points, problem

from svmkit.certificate import certify
from svmkit.data import Floats, Ints, Rows, dense_rows
from svmkit.engine import linear
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, RBF, Bias, Kernel, Problem
from svmkit.solvers import newton, newton_point, newton_samples, newton_state
from svmkit.solvers.base import run
from svmkit.solvers.newton_samples import Size
from svmkit.trace import Status

EVERY = 10**9


def weighted(n: int, d: int, bias: Bias, C: float = 1.0) -> Problem:
    X, y = points(n, d, seed=n)
    return replace(problem(X, y, Kernel(LINEAR), C * np.random.default_rng(n).uniform(0.5, 2.0, n)), bias=bias)


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("sizes", [(1,), (20,), (3, 40), (1, 2, 50)])
def test_samples_first_lead_to_the_same_optimum(sizes: tuple[int, ...], bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one row of one class; on the way α is feasible, and w is what the samples say, each with the rows of that before."""
    case = weighted(400, 5, bias, C=10.0)
    case = replace(case, upper=case.upper * (np.arange(400) % 7 > 0))
    plain = run(newton, case, newton.Options(), eps=1e-8)
    monkeypatch.setattr(
        newton_samples,
        "_SAMPLES",
        tuple(Size(0, few, 6, 2.0 ** (1 + number), 2.0 ** (2 + number)) for number, few in enumerate(sizes)),
    )
    found = []
    for seed in (1, 1, 2):
        state = newton.start(case, newton.Options(), 1e-8, seed)
        used = [state.used]
        while not newton.advance(state, 1).ended:
            alpha = newton.solution(state).alpha
            assert alpha is not None
            assert ((alpha >= 0) & (alpha <= case.upper)).all()
            assert not state.wider or state.s < state.wider[0][0]
            if len(state.used) > len(used[-1]):
                used.append(state.used)
        assert state.done
        assert [len(some) for some in used] == [*sizes, np.count_nonzero(case.upper)]
        assert all(np.isin(some, more).all() for some, more in pairwise(used))
        found.append(newton.solution(state))
    assert found[0].own.data.tobytes() == found[1].own.data.tobytes()
    for one in found:
        assert one.own.data == pytest.approx(plain.solution.own.data, rel=1e-6)
        assert one.rho == pytest.approx(plain.solution.rho, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize(("n", "d", "C", "near"), [(60, 90, 0.01, True), (80, 5, 0.1, True), (300, 6, 100.0, False)])
def test_ascent_first_leads_to_the_same_optimum(
    n: int, d: int, C: float, near: bool, bias: Bias, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it leaves is a centre in [0, 1] with its w where it got near, and nothing where it did not."""
    case = weighted(n, d, bias, C)
    state = newton.start(case, newton.Options(), 1e-6, 0)
    assert state.w.any() == state.centre.any() == near
    assert state.s == (newton._ASCENT_S if near else newton_state.FIRST_S)
    assert 0.0 <= state.centre.min() <= state.centre.max() <= 1.0
    w = state.rows.to_dense()[:, 1:].T @ (case.y * case.upper * state.centre)
    assert state.w[1:] == pytest.approx(w, rel=1e-9, abs=1e-12)
    assert state.products == pytest.approx(state.rows.to_dense()[:, 1:] @ w, rel=1e-9, abs=1e-12)
    found = run(newton, case, newton.Options(), eps=1e-6)
    monkeypatch.setattr(newton, "near_optimum", lambda *_: (None, 0))
    plain = run(newton, case, newton.Options(), eps=1e-6)
    assert found.status is plain.status is Status.CONVERGED
    assert found.certificate.dual == pytest.approx(plain.certificate.dual, rel=1e-9)


def test_no_ascent_where_squares_are_beyond_it() -> None:
    case = weighted(80, 5, "none", 0.1)
    far = replace(case, rows=case.rows._replace(data=1e8 * case.rows.data))
    state = newton.start(far, newton.Options(), 1e-6, 0)
    assert not state.w.any()
    assert state.evaluations == 0


@pytest.mark.parametrize("seed", range(4))
def test_all_rows_at_their_bounds_are_balanced_but_for_rounding(seed: int) -> None:
    """Classes of the same costs in another order: α = C throughout, whose yᵀα is what rounding leaves."""
    rng = np.random.default_rng(seed)
    costs = 1e-4 * rng.uniform(0.5, 2.0, 200)
    y = np.repeat([1.0, -1.0], 200)
    X = 1e-6 * (rng.normal(size=(400, 6)) + 0.5 * y[:, None])
    upper = np.concatenate([costs, rng.permutation(costs)])
    case = Problem(Rows.from_dense(X), y, upper, Kernel(LINEAR), "free")
    result = run(newton, case, newton.Options(), eps=1e-10)
    assert result.status is Status.CONVERGED
    assert result.solution.alpha == pytest.approx(upper)
    assert abs(result.solution.rho) <= 1e-4  # amid the b that serve as well, so classes are told apart


@pytest.mark.parametrize("bias", ["free", "none"])
def test_no_costs_are_met_by_nothing(bias: Bias) -> None:
    case = weighted(12, 3, bias)
    result = run(newton, replace(case, upper=np.zeros(12)), newton.Options(), eps=1e-3)
    assert (result.status, result.certificate.primal, result.solution.coef.any()) == (Status.CONVERGED, 0.0, False)


def test_a_sample_has_so_many_steps_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newton_samples, "_SAMPLES", (Size(0, 30, 6, 0.5, 512.0), Size(0, 60, 6, 512.0, 1024.0)))
    monkeypatch.setattr(newton, "_SAMPLE_STEPS", 3)
    state, sizes = newton.start(weighted(400, 5, "free", C=10.0), newton.Options(), 1e-8, 1), []
    while not newton.advance(state, 1).ended:
        sizes.append(len(state.used))
    assert sizes[:6] == [30, 30, 60, 60, 60, 400]
    assert state.done


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("C", [10.0, 1e4])
def test_a_small_eps_does_not_hang_on_the_last_bit(bias: Bias, C: float) -> None:
    """Rounding differs from machine to machine; so it does here, between data that differ in their last bits."""
    case = weighted(300, 6, bias, C)
    for seed in range(12):
        bits = np.random.default_rng(seed).integers(-4, 5, len(case.rows.data))
        nearly = replace(case, rows=case.rows._replace(data=case.rows.data * (1.0 + bits * 2.0**-52)))
        result = run(newton, nearly, newton.Options(), eps=1e-8)
        assert result.status is Status.CONVERGED
        assert certify(nearly, result.solution).violation <= 1e-8


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize(("n", "d", "C"), [(60, 3, 1.0), (60, 90, 1.0), (300, 6, 100.0), (300, 6, 1e-3)])
def test_w_and_the_threshold_are_the_optimum(n: int, d: int, C: float, bias: Bias) -> None:
    case = weighted(n, d, bias, C)
    best = optimum(case, kernel_matrix(case))
    result = run(newton, case, newton.Options(), eps=1e-8)
    assert result.status is Status.CONVERGED
    assert result.certificate.primal == pytest.approx(best, rel=1e-6)
    assert result.certificate.dual == pytest.approx(best, rel=1e-6)


def test_features_of_very_different_size_at_a_large_cost() -> None:
    """What an eigenvalue map gives: a kernel's spectrum falls by many powers of ten, C is large."""
    X, y = points(400, 30, seed=3)
    case = problem(X * 10.0 ** -np.linspace(0, 6, 30), y, Kernel(LINEAR), 1e5)
    best = optimum(case, kernel_matrix(case))
    result = run(newton, case, newton.Options(), eps=1e-3)
    assert result.status is Status.CONVERGED
    assert result.certificate.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e7])
def test_a_feature_that_is_constant_changes_nothing_where_b_is_free(size: float) -> None:
    """Nyström features nearly span the constants where gamma is small."""
    case = weighted(60, 3, "free", C=10.0)
    plain = run(newton, case, newton.Options(), eps=1e-6)
    wide = np.column_stack([case.rows.to_dense()[:, 1:], np.full(60, size)])
    found = run(newton, replace(case, rows=Rows.from_dense(wide)), newton.Options(), eps=1e-6)
    assert found.status is Status.CONVERGED
    assert found.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-6)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_rows_without_a_cost_do_not_count(bias: Bias) -> None:
    case = weighted(60, 4, bias)
    upper = case.upper * (np.arange(60) % 3 > 0)
    kept = np.flatnonzero(upper)
    fewer = Problem(case.rows.take(kept), case.y[kept], upper[kept], case.kernel, bias)
    some, all_rows = (run(newton, one, newton.Options(), eps=1e-6) for one in (fewer, replace(case, upper=upper)))
    assert all_rows.solution.own.data == pytest.approx(some.solution.own.data, rel=1e-9)
    assert all_rows.solution.rho == pytest.approx(some.solution.rho, rel=1e-9)
    assert all_rows.certificate.violation <= 1e-6


@pytest.mark.parametrize("bias", ["free", "none"])
def test_dense_rows_have_the_same_optimum_as_sparse_ones(bias: Bias) -> None:
    X, y = points(200, 12, seed=5)
    X = X.astype(np.float32)
    upper = 0.3 * (np.arange(200) % 4 > 0)
    found = []
    for rows in (Rows.from_dense(X), dense_rows(X)):
        result = run(newton, Problem(rows, y, upper, Kernel(LINEAR), bias), newton.Options(), eps=1e-6).solution
        assert list(result.own.indices) == list(range(1, 13))
        found.append(np.append(result.own.data, result.rho))
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def test_feature_numbers_may_be_far_apart() -> None:
    case = weighted(60, 4, "free")
    far = np.array([0, 7, 1000, 10**6, 2 * 10**9], dtype=np.int32)
    rows = case.rows._replace(indices=far[case.rows.indices], n_features=int(far[-1]))
    near, wide = (run(newton, replace(case, rows=one), newton.Options(), eps=1e-3).solution for one in (case.rows, rows))
    assert (wide.own.indices == far[near.own.indices]).all()
    assert wide.own.data.tobytes() == near.own.data.tobytes()


def test_a_stopped_run_has_the_point_it_came_to() -> None:
    case = weighted(100, 5, "free")
    best = optimum(case, kernel_matrix(case))
    state = newton.start(case, newton.Options(), 1e-9, 0)
    before = np.inf
    while not newton.advance(state, 3).done:
        excess = certify(case, newton.solution(state)).primal / best - 1.0
        assert -1e-9 <= excess < max(before, 1e-6)
        before = excess
    assert before < 1e-2


def test_what_it_cannot_take_it_refuses_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = points(20, 3, seed=1)
    with pytest.raises(UsageError, match="--map"):
        run(newton, problem(X, y, Kernel(RBF, 0.5)), newton.Options(), eps=1e-3)
    monkeypatch.setattr(newton, "MOST_FEATURES", 3)
    assert newton.supports(problem(X, y, Kernel(LINEAR))) is None
    monkeypatch.setattr(newton, "MOST_FEATURES", 2)
    with pytest.raises(UsageError, match=r"3 here; it takes at most 2.*--dim of 2 or less"):
        run(newton, problem(X, y, Kernel(LINEAR)), newton.Options(), eps=1e-3)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_one_class_without_a_bias_has_a_w(side: float) -> None:
    """A bias alone would give all examples their margin; without one w has to."""
    X, _ = points(30, 3, seed=2)
    case = replace(problem(X, np.full(30, side), Kernel(LINEAR)), bias="none")
    found = run(newton, case, newton.Options(), eps=1e-6)
    assert found.status is Status.CONVERGED
    assert found.certificate.violation <= 1e-6
    assert found.certificate.dual > 0


def test_nothing_moves_where_no_step_helps() -> None:
    """Values whose squares leave float64's range: no factor exists, and the run says so."""
    rows = Rows.from_dense(np.array([[1e200], [-1e200]]))
    state = newton.start(Problem(rows, np.array([1.0, -1.0]), np.ones(2), Kernel(LINEAR)), newton.Options(), 1e-3, 0)
    assert newton.advance(state, EVERY).stalled
    assert newton.solution(state).n_support == 0


def test_steps_that_move_nothing_end_a_round() -> None:
    """Features of very different size, the largest far beyond where a margin of 1 shows."""
    rng = np.random.default_rng(0)
    X = rng.integers(1, 10, (200, 12)) * 10.0 ** np.arange(0, 24, 2)
    case = problem(X, np.where(rng.random(200) < 0.5, 1.0, -1.0), Kernel(LINEAR))
    state = newton.start(case, newton.Options(), 1e-3, 0)
    assert newton.advance(state, EVERY).stalled
    assert state.steps < newton.MOST_STEPS // 2


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_stalled_run_keeps_the_least_primal_objective_it_came_by(bias: Bias) -> None:
    state = newton.start(weighted(40, 4, bias), newton.Options(), 1e-3, 0)
    newton.advance(state, 5)
    newton._keep(state)
    best, w, b = newton.primal(state), state.w, state.b
    for worse in (10.0 * w, 5.0 * w):
        state.w, state.products = worse, state.dots(worse)
        newton._keep(state)
    newton._stall(state)
    found = newton.solution(state)
    np.testing.assert_array_equal(found.own.data, w[1:])
    assert (newton.primal(state), found.rho) == (best, -b)
    assert certify(state.problem, found).primal == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize(("n", "d"), [(6, 2), (60, 1), (60, 2)])
def test_a_stalled_run_ends_no_worse_than_w_0(n: int, d: int, bias: Bias) -> None:
    """Features of ±1e150 with noisy labels, whose products no step can tell from rounding."""
    X, y = points(n, d, seed=2, noise=0.8)
    found = run(newton, replace(problem(1e150 * np.sign(X), y, Kernel(LINEAR), 10.0), bias=bias), newton.Options(), eps=1e-3)
    assert found.status is Status.STALLED
    assert found.certificate.primal <= 10.0 * n


@pytest.mark.parametrize("bias", ["free", "none"])
def test_of_a_stalled_run_the_nearest_point_is_the_one_of_least_violation(bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[newton_point.Point] = []

    def noted(*given: Any) -> newton_point.Point | None:
        point = newton_point.point_at(*given)
        seen.extend([] if point is None else [point])
        return point

    monkeypatch.setattr(newton, "point_at", noted)
    state = newton.start(weighted(60, 5, bias, C=100.0), newton.Options(), 1e-15, 0)
    assert newton.advance(state, EVERY).stalled
    best = min(seen, key=lambda point: point.violation)  # the last is another, most often
    alpha, least = newton.nearest(state)
    assert least == best.violation
    for found in (alpha, newton.solution(state).alpha):
        np.testing.assert_array_equal(found, best.alpha)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_the_least_primal_objective_of_a_run_that_converged_is_its_solutions(bias: Bias) -> None:
    state = newton.start(weighted(40, 4, bias), newton.Options(), 1e-3, 0)
    assert newton.advance(state, EVERY).done
    assert newton.primal(state) == pytest.approx(certify(state.problem, newton.solution(state)).primal, rel=1e-12)


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize(("n", "C"), [(80, 0.1), (300, 100.0), (7000, 1.0)], ids=["near", "not near", "a sample first"])
def test_each_product_of_a_row_counts(n: int, C: float, bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of ascent as it says itself; what Newton's equations take of few rows is none of them."""
    dots, near_optimum, solve, counted = linear.dots, newton.near_optimum, newton.solve_weighted, [0]

    def products(rows: Rows, w: Floats, which: Ints | None = None) -> Floats:
        counted[0] += rows.n if which is None else len(which)
        return dots(rows, w, which)

    def ascent(*given: Any) -> Any:
        before, (made, evaluations) = counted[0], near_optimum(*given)
        counted[0] = before + evaluations
        return made, evaluations

    def solved(*given: Any) -> Any:
        before = counted[0]
        found = solve(*given)
        counted[0] = before
        return found

    monkeypatch.setattr(linear, "dots", products)
    monkeypatch.setattr(newton, "solve_weighted", solved)
    monkeypatch.setattr(newton, "near_optimum", ascent)
    state = newton.start(weighted(n, 5, bias, C), newton.Options(), 1e-6, 0)
    progress = newton.advance(state, EVERY)
    assert progress.done
    assert progress.kernel_evaluations == counted[0] > n


def test_zoo_steps_are_few() -> None:
    for name in ("linear", "linear, C 100", "300 rows, linear", "sparse, linear"):
        state = newton.start(named(name), newton.Options(), 1e-3, 0)
        assert newton.advance(state, EVERY).steps < 30


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_cost_whose_square_is_no_double(bias: Bias) -> None:
    """Ends without a traceback, and with a model of numbers."""
    X, y = points(100, 3, seed=2, noise=0.3)
    found = run(newton, replace(problem(X, y, Kernel(LINEAR), 1e155), bias=bias), newton.Options(), eps=1e-3)
    assert np.isfinite(found.solution.own.data).all()
    assert np.isfinite(found.solution.rho)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_of_one_class_alone_b_is_its_label(side: float) -> None:
    case = replace(weighted(20, 3, "free"), y=np.full(20, side))
    state = newton.start(case, newton.Options(), 1e-3, 0)
    progress = newton.advance(state, 1)
    assert (progress.done, progress.violation, progress.n_support) == (True, 0.0, 0)
    assert (newton.solution(state).rho, newton.solution(state).coef.any()) == (-side, False)
    assert certify(case, newton.solution(state)).primal == 0.0


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_run_stalls_after_the_most_steps_there_may_be_with_the_point_it_came_to(
    bias: Bias, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newton, "MOST_STEPS", 3)
    state = newton.start(weighted(60, 5, bias, C=100.0), newton.Options(), 1e-9, 0)
    assert not newton.advance(state, 3).ended
    assert state.closed is None
    came_to = newton_point.point_at(state.rows, state.y, state.upper, np.clip(state.pulled(), 0.0, 1.0), bias, state.s)
    assert came_to is not None
    progress = newton.advance(state, EVERY)
    assert (progress.stalled, progress.steps, progress.violation) == (True, 3, came_to.violation)
    np.testing.assert_array_equal(newton.solution(state).alpha, came_to.alpha)


def test_what_was_kept_of_a_sample_is_no_end_of_all_rows() -> None:
    """Its primal objective is that of other losses."""
    state = newton.start(weighted(7000, 3, "free"), newton.Options(), 1e-3, 0)
    assert state.wider
    newton.advance(state, 1)
    newton._keep(state)
    newton._close(state)
    s, part = state.wider.pop(0)
    newton_state.turn_to(state, s, part)
    assert (state.kept, state.closed, state.s) == (None, None, s)
    assert np.isnan(newton.advance(state, 0).violation)
    assert newton.solution(state).rho == -state.b


def test_steps_that_only_crawl_end_a_round() -> None:
    """Where features lie far from 0 and apart in size, rounding keeps what steps promise small but from falling to nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6)) * 10.0 ** rng.uniform(0, 4, 6) + 10.0 ** rng.uniform(0, 4, 6)
    y = np.where(X[:, 0] > X[:, 0].mean(), 1.0, -1.0)
    state = newton.start(problem(X, y, Kernel(LINEAR), 1e4), newton.Options(), 1e-3, 0)
    newton.advance(state, newton.MOST_STEPS + 1)
    assert state.done
    assert state.steps < 100
