"""Rows are most of the memory there is: packed ones are no copies where the loops can do without, and none that wait."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from zoo import sparse_matrix

from svmkit.data import Floats, Rows
from svmkit.engine import kernels, packed
from svmkit.engine.kernels import Engine, cross_apply
from svmkit.engine.layouts import Layout, Real
from svmkit.problem import POLYNOMIAL, RBF, Kernel, Problem
from svmkit.solvers import smo, smo_state

_DENSE = tuple(range(1, 151))


def _full(n: int, others: int = 0, seed: int = 1) -> Floats:
    """Rows that have the features 1 … 150, and a few of ``others`` behind."""
    rng = np.random.default_rng(seed)
    return np.hstack([rng.random((n, 150)) + 0.1, sparse_matrix(n, others, 0.1, seed) if others else np.empty((n, 0))])


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize(("n_features", "density", "form"), [(300, 0.5, "tiled"), (5000, 0.02, "sorted")])
def test_long_rows_stay_where_they_are(n_features: int, density: float, form: str, far: bool) -> None:
    matrix = sparse_matrix(200, n_features, density, seed=3)
    matrix[::3] *= 1e5 if far else 1.0
    engine = Engine(Rows.from_dense(matrix), Kernel(RBF, 0.05), "f8" if far else "f4")
    assert (engine.packed.form, engine.packed.far) == (form, far)
    columns, weights = np.arange(0, 200, 2), np.random.default_rng(4).normal(size=100)
    expected, first, second = np.zeros(200), np.arange(199, 0, -3), np.array([5, 5, 40, 7])
    engine.apply(engine.packed, columns, weights, expected)
    for some, numbers in (
        (engine.packed.take(first), first),
        (engine.packed.take(first).take(second), first[second]),
        (engine.packed.take(first[:0]), first[:0]),
    ):
        assert some.data is engine.packed.data
        assert (some.n, some.nonzeros) == (len(numbers), np.count_nonzero(matrix[numbers]))
        found = np.zeros(some.n)
        engine.apply(some, columns, weights, found)
        assert np.array_equal(found, expected[numbers])


def test_short_rows_are_put_together() -> None:
    """Memory is read in lines: of short rows here and there most of each would be read in vain."""
    engine = Engine(Rows.from_dense(sparse_matrix(60, 5000, 0.004, seed=3)), Kernel(RBF, 0.05))
    some = engine.packed.take(np.array([3, 1]))
    assert engine.packed.form == "sorted"
    assert (some.n, len(some.data), some.numbers) == (2, some.nonzeros, None)


@pytest.mark.parametrize("real", ["f4", "f8"])
@pytest.mark.parametrize("others", [0, 80])
@pytest.mark.parametrize("from_0", [False, True])
@pytest.mark.parametrize(
    ("kernel", "differences"),
    [(Kernel(RBF, 0.02), False), (Kernel(RBF, 0.02), True), (Kernel(POLYNOMIAL, 0.01, 1.0, 3), False)],
)
def test_dense_rows_keep_the_numbers_of_their_features(
    kernel: Kernel, differences: bool, from_0: bool, others: int, real: Real, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same values as of rows with new numbers, to the bit."""
    rows = Rows.from_dense(_full(100, others))
    rows = rows._replace(indices=rows.indices - np.int32(from_0))
    layout = Layout("tiled", dense=tuple(f - from_0 for f in _DENSE), differences=differences)
    found, every, weights = Engine(rows, kernel, real, layout), np.arange(100), np.random.default_rng(5).normal(size=100)
    assert (found.packed.indices is rows.indices) == (not (differences and others))
    monkeypatch.setattr(packed, "_first_number", lambda layout: None)
    plain = Engine(rows, kernel, real, layout)
    assert plain.packed.indices is not rows.indices
    assert np.array_equal(found.block(every, every[:70]), plain.block(every, every[:70]))
    products = [np.zeros(100), np.zeros(100)]
    for engine, out in zip((found, plain), products, strict=True):
        engine.apply(engine.packed, every, weights, out)
    assert np.array_equal(*products)


def test_far_rows_with_and_without_new_numbers_compare_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those on the left lack features; one has feature 0, which is numbered behind the dense ones."""
    basis = Rows.from_dense(_full(60, 30))
    matrix = np.hstack([np.zeros((60, 1)), _full(60, 30, seed=2)])
    matrix[::2, 161] += 2e4
    matrix[::7, 3], matrix[4, 0] = 0.0, 0.3
    left = Rows.from_dense(matrix)
    left = left._replace(indices=left.indices - np.int32(1), n_features=180)
    monkeypatch.setattr(kernels, "layout_of", lambda *how: Layout("tiled", dense=_DENSE))
    kernel, ones = Kernel(RBF, 1e-2), np.eye(60)
    found = (
        cross_apply(basis, left, kernel, ones),
        cross_apply(left, basis, kernel, ones),
        cross_apply(left, left, kernel, ones),
    )
    monkeypatch.setattr(packed, "_first_number", lambda layout: None)
    plain = (
        cross_apply(basis, left, kernel, ones),
        cross_apply(left, basis, kernel, ones),
        cross_apply(left, left, kernel, ones),
    )
    assert packed.pack(left, kernel, "f8", Layout("tiled", dense=_DENSE)).far
    assert all(np.array_equal(a, b) for a, b in zip(found, plain, strict=True))


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_packed_rows_that_were_put_away_come_back_the_same(offset: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were moved to the origin too."""
    engine = Engine(Rows.from_dense(_full(50) + offset), Kernel(RBF, 0.02))
    before, every = engine.packed, np.arange(50)
    engine.put_away()
    assert engine.packed is before  # few, and not worth it
    values = engine.block(every, every)
    monkeypatch.setattr(kernels, "APPLIED_NONZEROS", 1)
    engine.put_away()
    assert engine.packed is not before
    assert np.array_equal(engine.block(every, every), values)


def test_a_check_is_made_without_the_packed_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one fails here, and training goes on."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(3000, 20))
    y = np.where(X[:, 0] + rng.normal(size=3000) > 0, 1.0, -1.0)
    problem = Problem(Rows.from_dense(X), y, np.full(3000, 10.0), Kernel(RBF, 0.05), "free")
    refresh, away = smo_state.refresh, []

    def noted(state: smo_state.State, *rest: Any) -> None:
        away.append("packed" not in state.variables.engine.__dict__)
        refresh(state, *rest)
        if len(away) == 1:
            state.variables.whole.F[:5] += 0.1 * y[:5]

    def trained() -> Floats:
        state = smo.start(problem, smo.Options(), 1e-3, 0)
        away.clear()
        while not smo.advance(state, 1000).done:
            pass
        return smo.solution(state).coef

    monkeypatch.setattr(smo_state, "refresh", noted)
    expected = trained()
    assert len(away) > 1
    assert not any(away)
    monkeypatch.setattr(kernels, "APPLIED_NONZEROS", 50_000)
    assert np.array_equal(trained(), expected)
    assert all(away)


def test_a_product_holds_one_part_of_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no second copy of rows that were taken for it."""
    part = 1 << 17
    rows, weights, some = Rows.from_dense(np.random.default_rng(7).random((2000, 200))), np.ones((2000, 1)), np.arange(1, 2000)
    weights[3] = 0.0
    monkeypatch.setattr(kernels, "APPLIED_NONZEROS", part)
    monkeypatch.setattr(kernels, "LEAST_BASIS", 1)
    cross_apply(rows, rows, Kernel(RBF, 0.01), weights, numbers=some)  # work space is kept
    tracemalloc.start()
    cross_apply(rows, rows, Kernel(RBF, 0.01), weights, numbers=some)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3.5 * part * (8 + 4)


def test_products_by_group_hold_one_group() -> None:
    """Of 20 groups of 800 kB each, packed."""
    rows, starts = Rows.from_dense(np.random.default_rng(8).random((2000, 1000))), np.arange(0, 2001, 100)
    left, weights = rows.part(0, 5), np.ones((2000, 1))
    sums = kernels.products_by_group(left, rows, Kernel(RBF, 0.01), starts, weights)  # work space is kept
    tracemalloc.start()
    again = kernels.products_by_group(left, rows, Kernel(RBF, 0.01), starts, weights)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5e6
    assert np.array_equal(again, sums)
    alone = [cross_apply(left, rows.part(a, a + 100), Kernel(RBF, 0.01), weights[:100]) for a in starts[:-1]]
    assert np.allclose(sums, alone, rtol=1e-14, atol=0)
