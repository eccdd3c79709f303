"""XᵀΘX, also of sets of rows that change, against the product of dense matrices, however the rows are cut."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import points

from svmkit import parallel
from svmkit.data import Floats, Rows, dense_rows
from svmkit.engine import weighted
from svmkit.engine.weighted import SetGram, weighted_gram


@pytest.mark.parametrize("density", [1.0, 0.2])
@pytest.mark.parametrize("n", [1, 3, 200])
def test_it_is_the_product_of_dense_matrices(n: int, density: float, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = points(n, 7, seed=n, density=density)
    weights = np.random.default_rng(2).uniform(0, 3, n) * (np.arange(n) % 3 > 0)
    for values in (1 << 20, 50):
        monkeypatch.setattr(weighted, "_VALUES", values)
        found = weighted_gram(Rows.from_dense(X), weights)
        assert found == pytest.approx(X.T @ np.diag(weights) @ X, rel=1e-12, abs=1e-12)
        single = X.astype(np.float32)
        found, rounded = weighted_gram(dense_rows(single), weights), single.astype(np.float64)
        assert found == pytest.approx(rounded.T @ np.diag(weights) @ rounded, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("most", [3, 40])
@pytest.mark.parametrize("some", [False, True])
def test_rows_with_weight(some: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of those where they are few, else all with their weights, of which the others' are 0."""
    monkeypatch.setattr(weighted, "_FEW_ROWS", 200 // most)
    X, _ = points(200, 2, seed=4)
    rows, which = Rows.from_dense(X), np.arange(30, 90) if some else np.arange(200)
    theta = np.zeros(len(which))
    theta[[1, 5, 20, 33, 41]] = np.arange(1.0, 6.0)
    found, weights = weighted.rows_with_weight(rows, theta, which if some else None)
    assert found.n == (200 if most == 3 else 5)
    assert weighted_gram(found, weights) == pytest.approx(X[which].T @ np.diag(theta) @ X[which], rel=1e-12)


@pytest.mark.parametrize("huge", [False, True])
@pytest.mark.parametrize("dense", [True, False])
def test_a_set_that_changes_is_summed_as_if_anew(dense: bool, huge: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the rows that come and go where they are few, whichever rows it is given; anew where huge ones have gone."""
    monkeypatch.setattr(weighted, "_MOST_ROUNDED", 0.0)
    X, _ = points(400, 6, seed=5)
    X[::50, 2:4] *= 1e8 if huge else 1.0
    X = X.astype(np.float32).astype(np.float64)
    rows = dense_rows(X.astype(np.float32)) if dense else Rows.from_dense(X)
    rng = np.random.default_rng(3)
    weights, inside, before = rng.uniform(0.1, 3.0, 400), rng.random(400) < 0.6, np.zeros(400, dtype=bool)
    kept, looked_at, ways = SetGram(rows, weights), list[int](), set[int]()
    of_rows = weighted.weighted_gram

    def counted(some: Rows, of: np.ndarray, real: type) -> np.ndarray:
        looked_at.append(int(np.count_nonzero(of)))
        return of_rows(some, of, real)

    monkeypatch.setattr(weighted, "weighted_gram", counted)
    for step in range(60):
        looked_at.clear()
        if step % 2:
            found = kept.over(inside, rows.take(np.flatnonzero(inside)), weights[inside], 1.0)
        else:
            found = kept.over(inside, rows, np.where(inside, weights, 0.0), 1.0)
        exact = X[inside].T @ (weights[inside, None] * X[inside])
        scale = np.sqrt(np.outer(exact.diagonal(), exact.diagonal()))
        assert (np.abs(found - exact) <= 1e-11 * scale).all()
        assert looked_at[-1] == np.count_nonzero(inside) or sum(looked_at) == np.count_nonzero(inside != before)
        ways.add(len(looked_at))
        before = inside
        inside = before ^ (rng.random(400) < (0.03 if step % 9 else 0.7))
        inside &= rng.random(400) < (1.0 if step < 40 else 0.8)
    assert ways == ({1, 2, 3} if huge else {1, 2})  # anew at once, brought up, anew after a try
    assert 0 < np.count_nonzero(inside) < 100


def test_float32_serves_while_it_rounds_little_beside_the_unit_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside H = I + s·sum no direction is off by more than a tenth, for any s; and by next to nothing once s is large."""
    monkeypatch.setattr(weighted, "_MANY", 1)
    X, _ = points(3000, 40, seed=6)
    rows, rng = dense_rows(X.astype(np.float32)), np.random.default_rng(3)
    weights, inside = rng.uniform(0.1, 3.0, 3000), rng.random(3000) < 0.6
    squares, X = float(weights @ rows.sqnorms()), rows.to_dense()[:, 1:]
    kept, seen = SetGram(rows, weights), []
    for step in range(40):
        s = 2.0 ** (step // 4 - 6 if step < 39 else 20) * weighted._MOST_ROUNDED / squares
        some = np.flatnonzero(inside)
        found = kept.over(inside, rows.take(some), weights[some], s)
        exact = s * X[some].T @ (weights[some, None] * X[some])
        L = np.linalg.cholesky(np.eye(40) + exact)
        off = np.linalg.solve(L, np.linalg.solve(L, found - exact).T)
        assert np.abs(np.linalg.eigvalsh(off)).max() <= 0.1
        seen.append(found.dtype)
        inside = inside ^ (rng.random(3000) < 0.05)
    assert (seen[0], seen[-1]) == (np.float32, np.float64)
    np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-11 * exact.max())


def test_what_float32_has_rounded_is_known_after_a_sum_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum is then still the one in float32, which must not serve for a large s, even if it was left for one in float64."""
    monkeypatch.setattr(weighted, "_MANY", 1)
    X, _ = points(300, 4, seed=8)
    rows, weights = dense_rows(X.astype(np.float32)), np.ones(300)
    first, most, s = np.arange(300) < 200, np.arange(300) < 199, weighted._MOST_ROUNDED
    kept, of_rows = SetGram(rows, weights), weighted.weighted_gram
    assert kept.over(first, rows, 1.0 * first, 1.0).dtype == np.float32

    def left(*_: object) -> Floats:
        raise parallel.Left

    monkeypatch.setattr(weighted, "weighted_gram", left)
    with pytest.raises(parallel.Left):
        kept.over(~first, rows, 1.0 * ~first, s)
    monkeypatch.setattr(weighted, "weighted_gram", of_rows)
    assert kept.over(most, rows, 1.0 * most, s) == pytest.approx(s * of_rows(rows, 1.0 * most), rel=1e-12, abs=1e-11 * s)


def test_weights_too_large_for_float32_are_not_rounded_to_infinity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of rows of zeros, either, whose squares are none."""
    monkeypatch.setattr(weighted, "_MANY", 1)
    rows, all_rows = dense_rows(np.zeros((10, 3), np.float32)), np.ones(10, dtype=bool)
    found = SetGram(rows, np.full(10, 1e80)).over(all_rows, rows, np.full(10, 1e80), 1.0)
    assert (found == 0.0).all()


def test_the_threads_change_no_bit(threads: None) -> None:
    X, _ = points(500, 9, seed=4)
    found = []
    for count in (1, 2):
        parallel.use_threads(count)
        found.append(weighted_gram(Rows.from_dense(X), np.arange(500.0)))
    assert found[0].tobytes() == found[1].tobytes()


def solved(X: Floats, theta: Floats, slope: Floats) -> weighted.Solved:
    rows = Rows.from_dense(X)
    found = weighted.solve_weighted(rows, theta, slope, lambda: weighted.weighted_gram(rows, theta))
    assert found is not None
    return found


@pytest.mark.parametrize("factored", [True, False])
@pytest.mark.parametrize(("n", "d"), [(12, 30), (40, 7)], ids=["by rows", "by features"])
def test_what_a_step_asks_of_the_matrix(n: int, d: int, factored: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the dense inverse; where rows are fewer, by them, and by features to the same."""
    monkeypatch.setattr(weighted, "_MANY", 1 if factored else 1 << 30)
    draw = np.random.default_rng(n)
    X, theta, slope = draw.normal(size=(n, d)), draw.uniform(0.1, 5.0, n), np.append(0.0, draw.normal(size=d))
    H = np.eye(d) + X.T @ (theta[:, None] * X)
    pull = X.T @ theta
    expected = np.linalg.solve(H, slope[1:]), np.linalg.solve(H, pull)
    corner = theta.sum() - pull @ expected[1]
    calls: list[str] = []
    for name in ("_by_rows", "_by_features"):
        whole = getattr(weighted, name)
        monkeypatch.setattr(weighted, name, lambda *args, name=name, whole=whole: (calls.append(name), whole(*args))[1])
    first = solved(X, theta, slope)
    monkeypatch.setattr(weighted, "_MOST_BY_ROWS", -1.0)
    second = solved(X, theta, slope)
    assert calls == ["_by_rows" if n < d else "_by_features", "_by_features"]
    for found in (first, second):
        np.testing.assert_allclose(found.down[1:], expected[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.across[1:], expected[1], rtol=1e-9, atol=1e-12)
        assert found.corner == pytest.approx(corner, rel=1e-8)


@pytest.mark.parametrize("factored", [True, False])
def test_features_that_copy_one_another_leave_it_solvable(factored: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With weights so large that the unit matrix is lost in rounding."""
    monkeypatch.setattr(weighted, "_MANY", 1 if factored else 1 << 30)
    X = np.repeat(np.random.default_rng(3).normal(size=(50, 3)), 4, axis=1)
    found = solved(X, np.full(50, 1e20), np.append(0.0, np.ones(12)))
    assert np.isfinite(found.down).all()
    assert np.isfinite(found.across).all()
    np.testing.assert_allclose(X @ found.across[1:], np.linalg.lstsq(X, np.ones(50), rcond=None)[0] @ X.T, atol=1e-4)
