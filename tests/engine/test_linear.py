"""The loops of the linear kernel against dense products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import dense_kernel
from zoo import points, single

from svmkit import parallel
from svmkit._jit import compiled
from svmkit.data import Floats, Rows, dense_rows
from svmkit.engine import kernels, linear
from svmkit.problem import LINEAR, Kernel


@pytest.mark.parametrize("rows_of", [Rows.from_dense, single])
def test_folding_and_products(rows_of: Callable[[Floats], Rows]) -> None:
    """Rows of 0 to 40 nonzeros, so that sums end at every remainder."""
    X = np.tril(points(41, 40, seed=1)[0], k=-1)[:, ::-1].astype(np.float32).astype(np.float64)
    rows, v = rows_of(X), np.linspace(-1, 1, 41)
    w = linear.fold(rows, v, 50)
    np.testing.assert_allclose(w[1:41], v @ X, rtol=1e-13, atol=1e-14)
    assert not w[0]
    assert not w[41:].any()
    np.testing.assert_allclose(linear.dots(rows, w), X @ (v @ X), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("rows_of", [Rows.from_dense, single])
@pytest.mark.parametrize("which", [[], [7], [40, 3, 3, 0, 21], list(range(41))])
def test_of_some_rows_as_of_copies_of_them(which: list[int], rows_of: Callable[[Floats], Rows]) -> None:
    """To the bit, in any order, and of one more than once."""
    rows, index = rows_of(np.tril(points(41, 40, seed=1)[0], k=-1)[:, ::-1]), np.array(which, np.int64)
    w, v = np.linspace(0.5, 2, 41), np.linspace(-1, 1, len(which))
    np.testing.assert_array_equal(linear.dots(rows, w, index), linear.dots(rows.take(index), w))
    np.testing.assert_array_equal(linear.fold(rows, v, 45, index), linear.fold(rows.take(index), v, 45))


def test_threads_do_not_change_products(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    monkeypatch.setattr(linear, "PIECE_ROWS", 7)
    X = points(100, 9, seed=2)[0]
    w = np.linspace(0, 1, 10)
    for rows in (Rows.from_dense(X), single(X)):
        found = []
        for count in (1, 2, 3):
            parallel.use_threads(count)
            found.append([*linear.dots(rows, w), *linear.fold(rows, X[:, 0], 10)])
            found[-1] += [*linear.dots(rows, w, np.arange(3, 90)), *linear.fold(rows, X[3:90, 0], 10, np.arange(3, 90))]
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("d", [1, 15, 40, 513])
def test_single_precision_rows_are_worked_on_in_double(d: int) -> None:
    X = points(9, 513, seed=8)[0][:, :d].astype(np.float32)
    w = np.random.default_rng(9).normal(size=d + 1)
    rows = dense_rows(X)
    np.testing.assert_allclose(linear.dots(rows, w), X.astype(np.float64) @ w[1:], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(rows.sqnorms(), (X.astype(np.float64) ** 2).sum(axis=1), rtol=1e-13)


def test_a_product_with_the_linear_kernel_forms_no_kernel_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of fewer and of more features than the basis, several weightings, and hashed features."""
    A, B = Rows.from_dense(points(30, 5, seed=3)[0]), Rows.from_dense(points(20, 8, seed=4)[0])
    weights = np.random.default_rng(5).normal(size=(20, 3))
    expected = dense_kernel(A, B, Kernel(LINEAR)) @ weights
    monkeypatch.setattr(kernels, "_accumulate", None)
    np.testing.assert_allclose(kernels.cross_apply(A, B, Kernel(LINEAR), weights), expected, rtol=1e-12, atol=1e-13)
    other = dense_kernel(B, A, Kernel(LINEAR)) @ np.ones((30, 1))
    np.testing.assert_allclose(kernels.cross_apply(B, A, Kernel(LINEAR), np.ones((30, 1))), other, rtol=1e-12, atol=1e-13)
    places = np.array([0, 3, 70, 5000, 10**6, 10**7, 10**9, 2**31 - 2, 2**31 - 1], dtype=np.int32)
    hashed = B._replace(indices=places[B.indices], n_features=2**31 - 1)
    found = kernels.cross_apply(hashed, hashed, Kernel(LINEAR), weights)
    np.testing.assert_allclose(found, dense_kernel(B, B, Kernel(LINEAR)) @ weights, rtol=1e-12, atol=1e-13)


def test_a_stream_of_the_widest_map_finds_room_for_all_features() -> None:
    features, rows = linear.FeaturePlaces(), dense_rows(np.zeros((1, 2**20), np.float32))
    assert features.place(rows) is rows
    assert features.width == 2**20 + 1
    w = np.zeros(features.width)
    w[-1] = 3.0
    assert features.as_rows(w).indices.tolist() == [2**20]


_ends = linear.ENDS["dense"]


@compiled("void(i8[:], i8, i8[:])", name="test_ends_dense")
def _dense_ends(indptr: Any, i: Any, out: Any) -> None:
    out[0], out[1] = _ends(indptr, i)


def test_dense_rows_end_where_their_pointers_say() -> None:
    """Also those of a part, and of rows of no features."""
    for n, d in ((7, 5), (7, 0), (1, 3)):
        whole = dense_rows(points(n, 5, seed=n)[0][:, :d].astype(np.float32))
        for rows in (whole, whole.part(n // 2, n)):
            found = np.empty(2, np.int64)
            for i in range(rows.n):
                _dense_ends(rows.indptr, i, found)
                assert found.tolist() == rows.indptr[i : i + 2].tolist()


def test_every_feature_of_a_stream_has_a_place_of_its_own() -> None:
    """On both sides of the number from which features are placed as they come, in two parts; known ones take no pass."""
    numbers = np.array([7, 2**20, 2**20 + 1, 2**20 + 2, 2**31 - 1], dtype=np.int32)
    features, found = linear.FeaturePlaces(), []
    for some in (numbers[[1, 3]], numbers):
        rows = Rows(np.ones(len(some)), some, np.array([0, len(some)]), int(some.max()))
        found = features.place(rows).indices.tolist()
    assert len(set(found)) == len(numbers)
    assert features.width == 2**20 + 1 + 3
    known = features._place
    assert features.place(rows).indices.tolist() == found
    assert features._place is known
    w = np.zeros(features.width)
    w[found] = [1.0, 2.0, 3.0, 4.0, 5.0]
    row = features.as_rows(w)
    assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == dict(zip(numbers.tolist(), w[found], strict=True))


@pytest.mark.parametrize("wider", ["left", "basis"])
def test_many_products_together_are_those_one_by_one(monkeypatch: pytest.MonkeyPatch, wider: str) -> None:
    """Rows of every remainder of four, features that the other side lacks, weights of 0, and columns taken in parts."""
    random = np.random.default_rng(3)
    X = np.tril(random.normal(size=(41, 40)), k=-1) * (random.random((41, 40)) < 0.7)
    Z = random.normal(size=(20, 50)) * (random.random((20, 50)) < 0.2)
    left, basis = (Rows.from_dense(A) for A in ((X, Z) if wider == "basis" else (Z, X)))
    weights = random.normal(size=(basis.n, 45)) * (random.random((basis.n, 45)) < 0.5)
    expected = np.column_stack([linear.dots(left, linear.fold(basis, column, 51)) for column in weights.T])
    monkeypatch.setattr(linear, "_HELD_TOGETHER", 17 * 41)
    monkeypatch.setattr(linear, "dots", None)
    np.testing.assert_array_equal(linear.products(left, basis, weights), expected)
