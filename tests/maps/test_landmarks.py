"""Landmarks against their definitions: pivots drawn singly from a dense residual matrix, Lloyd's algorithm in the plain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import dense_kernel
from zoo import points

from svmkit import parallel
from svmkit.data import Floats, Ints, Rows
from svmkit.engine import rng
from svmkit.errors import DataError, UsageError
from svmkit.maps import landmarks
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, SIGMOID, Kernel


def plain_pivots(K: Floats, count: int, seed: int) -> list[int]:
    """Randomly pivoted Cholesky on the whole residual matrix, by the same proposals, which what is left accepts."""
    residual, chosen, rounds = K.copy(), [], 0
    q = landmarks._PROPOSED
    while len(chosen) < count:
        left = np.maximum(0.0, np.diagonal(residual)) * (np.diagonal(residual) > 1e-13 * K.max())
        if not left.any():
            break
        draws = rng.uniforms(seed, landmarks._PROPOSALS, rounds * 2 * q, 2 * q)
        rounds += 1
        for u, v in zip(draws[:q], draws[q:], strict=True):
            i = int(np.searchsorted(np.cumsum(left) / left.sum(), u, side="right"))
            if len(chosen) < count and residual[i, i] > 1e-13 * K.max() and v * left[i] < residual[i, i]:
                residual = residual - np.outer(residual[:, i], residual[i]) / residual[i, i]
                chosen.append(i)
    return chosen


@pytest.mark.parametrize("kernel", [Kernel(RBF, 0.3), Kernel(POLYNOMIAL, 0.5, 1.0, 3)], ids=lambda kernel: kernel.name)
def test_pivots_are_those_of_the_dense_residual(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows.from_dense(points(150, 4, seed=1)[0])
    monkeypatch.setattr(landmarks, "_PROPOSED", 16)
    monkeypatch.setattr(landmarks, "PIECE_ROWS", 40)
    expected = plain_pivots(dense_kernel(rows, rows, kernel), 20, seed=3)
    assert landmarks.pivots(rows, kernel, 20, seed=3).tolist() == expected
    assert len(set(expected)) == 20
    found = landmarks.pivoted(rows, kernel, 20, seed=3)
    assert np.array_equal(found.to_dense(), rows.take(np.sort(expected)).to_dense())


def test_pivots_end_where_nothing_is_left() -> None:
    """Twelve points of which only seven differ, and a linear kernel of rank 3."""
    X = points(7, 3, seed=2)[0]
    twice = Rows.from_dense(np.concatenate([X, X[:5]]))
    assert len(landmarks.pivots(twice, Kernel(RBF, 1.0), 12, seed=0)) == 7
    assert len(landmarks.pivots(twice, Kernel(LINEAR), 12, seed=0)) == 3
    assert len(landmarks.pivots(Rows.from_dense(np.zeros((4, 2))), Kernel(LINEAR), 2, seed=0)) == 0


def test_rows_of_which_less_is_left_than_was_thought_are_proposed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding may leave some of a row by the running sums, and nothing by its own kernel values."""
    rows = Rows.from_dense(np.concatenate([np.eye(3), np.zeros((2, 3))]))
    monkeypatch.setattr(landmarks, "diagonal", lambda *_: np.ones(5))
    rounds: list[str] = []

    def heed(doing: str) -> None:
        rounds.append(doing)
        assert len(rounds) < 100

    assert sorted(landmarks.pivots(rows, Kernel(LINEAR), 5, seed=0, heed=heed)) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(5))
def test_pivots_of_kernel_values_below_normal_doubles(seed: int) -> None:
    """A share of their sum may round to all of it."""
    tiny = Rows.from_dense(1e-162 * np.array([[3.0, 0.0], [-2.0, 0.0], [1.0, 2.0]]))
    assert 1 <= len(landmarks.pivots(tiny, Kernel(LINEAR), 2, seed)) <= 2


@pytest.mark.parametrize("kernel", [Kernel(SIGMOID, 0.1), Kernel(POLYNOMIAL, 0.2, -1.0, 2)], ids=lambda kernel: kernel.name)
def test_kernels_that_may_be_indefinite_have_uniform_landmarks_in_place_of_pivots(kernel: Kernel) -> None:
    rows = Rows.from_dense(points(100, 4, seed=1)[0])
    found = landmarks.pivoted(rows, kernel, 30, seed=1)
    assert np.array_equal(found.to_dense(), landmarks.uniform(rows, kernel, 30, seed=1).to_dense())


@pytest.mark.parametrize(
    "kernel", [Kernel(POLYNOMIAL, 1.0, 0.0, 2), Kernel(POLYNOMIAL, 1.0, 0.0, 5)], ids=["the sum overflows", "values overflow"]
)
def test_pivots_of_kernel_values_that_overflow_are_refused(kernel: Kernel) -> None:
    with pytest.raises(DataError, match="kernel values overflow; scale the data"):
        landmarks.pivots(Rows.from_dense(1e77 * np.array([[1.0], [-1.0], [1.1], [-1.0]])), kernel, 2, seed=0)


def test_pivots_of_values_that_are_not_numbers_are_refused() -> None:
    """With gamma 1e308, γ‖x‖² overflows off the diagonal, which is 1: no proposal could ever be accepted."""
    with pytest.raises(DataError, match="kernel values overflow"):
        landmarks.pivots(Rows.from_dense(points(40, 3, seed=1)[0]), Kernel(RBF, 1e308), 4, seed=0)


def test_rows_of_small_norm_are_pivots_beside_large_ones() -> None:
    """A polynomial of degree 3 of two features spans ten dimensions, and one row in thirty is a hundred times as large."""
    X = np.random.default_rng(0).uniform(size=(30, 2))
    X[0] *= 100
    assert len(landmarks.pivots(Rows.from_dense(X), Kernel(POLYNOMIAL, 1.0, 1.0, 3), 30, seed=0)) == 10


def test_pivots_prefer_rows_unlike_the_rest() -> None:
    """One point far from a crowd of alike ones is half of what is left after the first draw: it comes second."""
    X = np.zeros((200, 2))
    X[17] = 9.0
    assert 17 in landmarks.pivots(Rows.from_dense(X), Kernel(RBF, 1.0), 2, seed=5)


def test_threads_and_samples_do_not_change_landmarks(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    rows = Rows.from_dense(points(300, 5, seed=4)[0])
    monkeypatch.setattr(landmarks, "PIECE_ROWS", 50)
    for name, choose in landmarks.CHOICES.items():
        found = []
        for count in (1, 2):
            parallel.use_threads(count)
            found.append(choose(rows, Kernel(RBF, 0.2), 30, 1))
        assert np.array_equal(found[0].to_dense(), found[1].to_dense()), name
        assert not np.array_equal(found[0].to_dense(), choose(rows, Kernel(RBF, 0.2), 30, 2).to_dense()), name


def test_uniform_landmarks_are_drawn_without_replacement() -> None:
    rows = Rows.from_dense(points(50, 3, seed=5)[0])
    drawn = landmarks.uniform(rows, Kernel(RBF, 1.0), 20, seed=1).to_dense()
    assert len({tuple(row) for row in drawn.tolist()} & {tuple(row) for row in rows.to_dense().tolist()}) == 20
    assert np.array_equal(landmarks.uniform(rows, Kernel(RBF, 1.0), 90, seed=1).to_dense(), rows.to_dense())


@pytest.mark.parametrize("name", ["kmeans", "pivoted"])
def test_each_class_has_its_own_landmarks(name: str) -> None:
    """12 rows of one class are fewer than a third of 60; the others share what they leave. Unknown labels are a class too."""
    rows, kernel = Rows.from_dense(points(300, 5, seed=4)[0]), Kernel(RBF, 0.2)
    y = np.repeat([3.0, -1.0, np.nan], [12, 200, 88])
    shares = [24, 12, 24]  # of -1, of 3, of nan
    parts = [
        landmarks.CHOICES[name](rows.take(np.flatnonzero(own)), kernel, share, 1, lambda doing: None).to_dense()
        for own, share in zip([y == -1, y == 3, np.isnan(y)], shares, strict=True)
    ]
    found = landmarks.choose(name, rows, kernel, 60, 1, y)
    assert found.n_features == rows.n_features
    assert np.array_equal(found.to_dense(), np.concatenate(parts))
    assert [len(part) for part in parts] == shares


@pytest.mark.parametrize(
    ("name", "labels"),
    [("uniform", 2), ("kmeans", 0), ("pivoted", 1), ("kmeans", 31)],
    ids=["uniform", "none", "one", "too many"],
)
def test_all_rows_are_looked_at_together_where_classes_do_not_count(name: str, labels: int) -> None:
    rows, kernel = Rows.from_dense(points(300, 5, seed=4)[0]), Kernel(RBF, 0.2)
    found = landmarks.choose(name, rows, kernel, 30, 1, np.arange(300.0) % labels if labels else None)
    assert np.array_equal(found.to_dense(), landmarks.CHOICES[name](rows, kernel, 30, 1, lambda doing: None).to_dense())


@given(st.lists(st.integers(1, 50), min_size=1, max_size=9), st.integers(0, 200))
def test_shares_are_equal_but_where_a_class_is_smaller(sizes: list[int], more: int) -> None:
    count = len(sizes) + more
    shares = landmarks._equal_shares(np.array(sizes), count)
    assert sum(shares) == min(count, sum(sizes))
    short = [share for share, size in zip(shares, sizes, strict=True) if share < size]
    assert all(share <= size for share, size in zip(shares, sizes, strict=True))
    assert not short or max(shares) - min(short) <= 1


def lloyd(X: Floats, start: Ints, sweeps: int) -> Floats:
    """Lloyd's algorithm."""
    centres = X[start].copy()
    for _ in range(sweeps):
        nearest = ((X[:, None, :] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
        for c in range(len(centres)):
            if (nearest == c).any():
                centres[c] = X[nearest == c].mean(axis=0)
    return centres


def test_centres_are_lloyds() -> None:
    """Sparse rows, whose feature numbers have gaps; more rows than are looked at for two centres."""
    X = points(100, 6, seed=6, density=0.5)[0]
    X[:, 3] = 0.0
    rows = Rows.from_dense(X)
    looked_at = landmarks._drawn(100, 32 * 2, seed=7)
    start = landmarks._drawn(64, 2, seed=7)
    found = landmarks.kmeans(rows, Kernel(RBF, 1.0), 2, seed=7)
    np.testing.assert_allclose(found.to_dense()[:, 1:], lloyd(X[looked_at], start, 10), rtol=1e-12, atol=1e-14)


def test_a_cluster_that_loses_its_rows_keeps_its_centre() -> None:
    """Four of a row's own copies are centres at the start, and only the first of equal centres is nearest to a row."""
    X = np.concatenate([np.tile([1.0, 2.0], (12, 1)), [[9.0, 9.0], [8.0, -3.0]]])
    rows, start = Rows.from_dense(X), landmarks._drawn(14, 6, seed=0)
    found = landmarks.kmeans(rows, Kernel(RBF, 1.0), 6, seed=0).to_dense()[:, 1:]
    assert (X[start] == [1.0, 2.0]).all(axis=1).sum() >= 4
    assert np.array_equal(found, lloyd(X, start, 10))


@pytest.mark.parametrize(("most", "looked_at"), [(10_000, 300), (1000, 100), (10, 10)])
def test_pivots_of_many_landmarks_look_at_fewer_rows(most: int, looked_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landmarks, "_FACTOR_VALUES", most)
    monkeypatch.setattr(landmarks, "_SAMPLED", 30)
    pivots, seen = landmarks.pivots, []
    monkeypatch.setattr(landmarks, "pivots", lambda rows, *others: seen.append(rows.n) or pivots(rows, *others))
    assert landmarks.pivoted(Rows.from_dense(points(500, 3, seed=9)[0]), Kernel(RBF, 1.0), 10, seed=0).n == 10
    assert seen == [looked_at]


@pytest.mark.parametrize("kind", [RBF, LINEAR, SIGMOID])
def test_centres_of_rows_far_from_the_origin_are_those_of_rows_near_it(kind: int) -> None:
    X, _ = points(300, 3, seed=6)
    rows = (Rows.from_dense(np.round(X, 4) + off) for off in (0.0, 1e8))
    near, far = (landmarks.kmeans(some, Kernel(kind, 1e-6, 1.0), 9, 3) for some in rows)
    assert far.to_dense()[:, 1:] - 1e8 == pytest.approx(near.to_dense()[:, 1:], abs=1e-6)


def test_centres_that_would_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landmarks, "_KMEANS_VALUES", 10)
    with pytest.raises(UsageError, match=r"4 centres of 3 features take .* GB; try pivoted"):
        landmarks.kmeans(Rows.from_dense(points(9, 3, seed=8)[0]), Kernel(RBF, 1.0), 4, seed=0)


@pytest.mark.parametrize("name", ["pivoted", "kmeans"])
def test_as_many_landmarks_as_classes_are_one_of_each(name: str) -> None:
    X = np.repeat([[0.0, 1.0], [50.0, 1.0], [50.5, 1.0]], 20, axis=0) + 0.01 * np.arange(60)[:, None]
    labels = np.repeat([1.0, 2.0, 3.0], 20)
    for seed in range(5):
        found = landmarks.choose(name, Rows.from_dense(X), Kernel(RBF, 0.01), 3, seed, labels).to_dense()[:, 1]
        assert sorted(np.searchsorted([25.0, 50.39], found)) == [0, 1, 2]
