"""Growing blocks equal the matrix evaluated at once, and evaluate what they keep once."""

from __future__ import annotations

import numpy as np
import pytest
import zoo

from svmkit.data import Rows
from svmkit.engine import gram as gram_module
from svmkit.engine.gram import GrowingGram, KeptColumns
from svmkit.engine.kernels import Engine
from svmkit.engine.layouts import Real
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, SIGMOID, Kernel


@pytest.mark.parametrize("kernel", [Kernel(LINEAR), Kernel(POLYNOMIAL, 0.2, 1.0, 2), Kernel(RBF, 0.4)], ids=lambda k: k.name)
def test_grown_equals_evaluated_at_once(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose values move in several pieces."""
    monkeypatch.setattr(gram_module, "_COPIED", 1000)
    X, _ = zoo.points(200, 6, seed=1)
    engine = Engine(Rows.from_dense(X), kernel)
    order = np.random.default_rng(2).permutation(200)
    gram = GrowingGram(engine, 173)
    assert gram.values.shape == (0, 0)
    for part in (order[:1], order[1:1], order[1:60], order[60:61], order[61:170], order[:3]):
        gram.extend(part)
    rows = np.concatenate([order[:170], order[:3]])
    assert np.array_equal(gram.rows, rows)
    assert engine.evaluations == 1 * 1 + 59 * 60 + 1 * 61 + 109 * 170 + 3 * 173
    assert np.array_equal(gram.values, engine.block(rows, rows))
    assert np.array_equal(gram.values, gram.values.T)


def test_room_grows_by_doubling_up_to_its_limit() -> None:
    engine = Engine(Rows.from_dense(np.eye(64)), Kernel(LINEAR))
    gram = GrowingGram(engine, 60)
    sizes = []
    for row in range(60):
        gram.extend(np.array([row]))
        sizes.append(len(gram._room))
    assert sorted(set(sizes)) == [1, 2, 4, 8, 16, 60]
    assert np.array_equal(gram.values, np.eye(64)[:60, :60])


@pytest.mark.parametrize("kernel", [Kernel(RBF, 0.4), Kernel(SIGMOID, 0.2, 0.1)], ids=lambda k: k.name)
def test_products_are_those_of_the_matrix(kernel: Kernel) -> None:
    """float32 and float64 matrices, more members than one piece of the work; nothing more is evaluated."""
    X, _ = zoo.points(2100, 3, seed=4)
    engine = Engine(Rows.from_dense(X), kernel)
    gram = GrowingGram(engine, 2100)
    for part in np.split(np.arange(2100), [1500, 1501]):
        gram.extend(part)
    evaluated = engine.evaluations
    rng = np.random.default_rng(5)
    places = rng.choice(2100, 300, replace=False)
    weights, before = rng.normal(size=300), rng.normal(size=2100)
    product = gram.values[:, places].astype(np.float64) @ weights
    for first in (0, 1, 1500, 2099):
        out = before.copy()
        gram.apply(places, weights, out, first)
        assert np.array_equal(out[:first], before[:first])
        assert out[first:] == pytest.approx((before + product)[first:], rel=1e-12, abs=1e-12)
    gram.apply(places[:0], weights[:0], out)
    assert engine.evaluations == evaluated


@pytest.mark.parametrize("real", ["f4", "f8"])
@pytest.mark.parametrize("cache_mb", [10.0, 0.05])
def test_columns_that_are_used_again_are_kept(cache_mb: float, real: Real) -> None:
    X, _ = zoo.points(300, 50, seed=1)
    engine = Engine(Rows.from_dense(X), Kernel(RBF, 0.02), real)
    K = engine.block(np.arange(300), np.arange(300)).astype(np.float64)
    columns, rng = KeptColumns(engine, cache_mb), np.random.default_rng(2)
    room = min(300, int(cache_mb * 2**20 / (300 * np.dtype(real).itemsize)))
    often, seldom = np.arange(0, 300, 3), np.arange(1, 300, 3)
    evaluated = []
    for use in range(6):
        asked = rng.permutation(np.concatenate([often, seldom]) if use == 2 else often)
        weights, out = rng.normal(size=len(asked)), rng.normal(size=300)
        expected, before = out + K[:, asked] @ weights, engine.evaluations
        columns.apply(asked, weights, out)
        assert out == pytest.approx(expected, abs=1e-5 if real == "f4" else 1e-12)
        evaluated.append((engine.evaluations - before) // 300)
    kept = min(room, 100)
    assert evaluated == [100, 100, 200, 100, 100 - kept, 100 - kept]


def test_columns_of_cheap_or_given_values_are_not_kept() -> None:
    X, y = zoo.points(100, 20, seed=1)
    given = zoo.precomputed(X @ X.T, y, 1.0).rows
    for engine in (Engine(Rows.from_dense(X), Kernel(LINEAR)), Engine(given, Kernel(PRECOMPUTED))):
        columns = KeptColumns(engine, 100.0)
        for use in range(1, 6):
            columns.apply(np.arange(10), np.ones(10), np.zeros(100))
            assert engine.evaluations == use * 1000
