"""Kernel values had by counting: those of the other loops, for every distance a byte can hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from svmkit import parallel
from svmkit._llvm import cpu_has
from svmkit.data import Rows
from svmkit.engine import kernels
from svmkit.engine.binary import FEW_ONES, MOST_ONES, WIDE
from svmkit.engine.kernels import Engine, cross_apply
from svmkit.engine.layouts import Form, Layout, layout_of
from svmkit.engine.packed import training_precision
from svmkit.engine.rounding import FLOAT32_ERROR
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, Kernel

pytestmark = pytest.mark.skipif(not cpu_has("avx2"), reason="this CPU has no AVX2, without which nothing is counted")

KERNEL = Kernel(RBF, 0.037)
#: What a value may be off by: two numbers from tables and their product, each rounded once.
ROUNDED = {"f4": 3 * 2.0**-24, "f8": 3 * 2.0**-53}


def ones(n: int, n_features: int, most: int, seed: int) -> np.ndarray:
    """Rows of ones and zeros, from none to ``most`` ones, the fullest rows first; duplicates among them."""
    rng = np.random.default_rng(seed)
    counts = np.linspace(most, 0, n).astype(int)
    X = np.zeros((n, n_features))
    for row, count in zip(X, counts, strict=True):
        row[rng.choice(n_features, count, replace=False)] = 1.0
    X[n // 2] = X[0]
    return X


def squared_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2)


def form(rows: Rows, kernel: Kernel) -> Form:
    return layout_of(rows, rows, kernel, "f4").form


def test_which_rows_are_counted() -> None:
    X = ones(40, 200, 127, seed=0)
    assert form(Rows.from_dense(X), KERNEL) == "binary"
    assert form(Rows.from_dense(X), Kernel(LINEAR)) != "binary"
    assert form(Rows.from_dense(X), Kernel(POLYNOMIAL, 1.0, 0.0, 2)) != "binary"
    assert form(Rows.from_dense(np.hstack([X, np.eye(40)])), KERNEL) != "binary"  # 128 ones in the first row
    assert form(Rows.from_dense(X * np.where(np.arange(200) == 7, 2.0, 1.0)), KERNEL) != "binary"
    wide = np.zeros((2, 5000))
    wide[:, 4999] = 1.0
    assert form(Rows.from_dense(wide), KERNEL) == "sorted"


@pytest.mark.parametrize("real", ["f4", "f8"])
@pytest.mark.parametrize("most", [FEW_ONES, FEW_ONES + 1, MOST_ONES])
def test_every_distance_that_a_byte_holds(real: str, most: int) -> None:
    """0 … 2·most: the first k of so many features against the last j of as many others."""
    n = 2 * (most + 1)
    X = np.zeros((n, 2 * most))
    for k in range(most + 1):
        X[k, :k] = 1.0
        X[most + 1 + k, most : most + k] = 1.0
    everything = np.arange(n)
    for gamma in (1e-4, 0.037, 0.5, 3.0):
        engine = Engine(Rows.from_dense(X), Kernel(RBF, gamma), real)  # type: ignore[arg-type]
        assert engine.packed.few == (most == FEW_ONES and real == "f4" and cpu_has(WIDE))
        K = engine.block(everything, everything)
        D = squared_distances(X, X)
        exact = np.exp(-gamma * D)
        assert np.abs(K - exact).max() <= ROUNDED[real]
        relative = ROUNDED[real] + 2.0**-52 * gamma * D  # the exponents are rounded as well, here and there
        assert (np.abs(K - exact) <= relative * exact)[exact > 1e-30].all()
        assert np.array_equal(K, K.T)
        assert (np.diagonal(K) == 1.0).all()


@pytest.mark.parametrize("real", ["f4", "f8"])
@pytest.mark.parametrize("most", [FEW_ONES, 40])
@pytest.mark.parametrize("n_columns", [1, 16, 33, 63, 64, 65, 128, 129, 256, 257, 300])
def test_products_and_blocks_are_those_of_the_other_loops(real: str, most: int, n_columns: int) -> None:
    X = ones(301, 90, most, seed=1)
    rng = np.random.default_rng(2)
    columns, weights = rng.permutation(301)[:n_columns], rng.normal(size=(n_columns, 2)) * 1e3
    counted, plain = (Engine(Rows.from_dense(X), KERNEL, real) for _ in range(2))  # type: ignore[arg-type]
    plain.packed = replace(plain.packed, form="table")
    assert counted.packed.form == "binary"
    rows = rng.permutation(301)[:120]
    block = counted.block(rows, columns)
    assert np.abs(block - plain.block(rows, columns)).max() <= (FLOAT32_ERROR + 2.0**-24 * most if real == "f4" else 1e-14)
    left = counted.packed.take(rows)
    out = np.full((120, 2), 0.25)
    counted.apply(left, columns, weights, out)
    size = 1 + block.astype(float) @ np.abs(weights)
    assert (np.abs(out - 0.25 - block.astype(float) @ weights) <= 1e-13 * size).all()
    one = np.full(120, 0.25)
    counted.apply(left, columns, weights[:, 1].copy(), one)
    assert np.array_equal(one, out[:, 1])
    whole = np.empty((n_columns, 301), real)
    counted.whole_rows(columns, whole)
    assert np.array_equal(whole[:, rows], block.T)
    assert counted.evaluations == 3 * 120 * n_columns + 301 * n_columns


def test_threads_and_pieces_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    monkeypatch.setattr(kernels, "PIECE_VALUES", 1000)
    rows, results = Rows.from_dense(ones(500, 60, 30, seed=3)), []
    for count in (1, 2, 3):
        parallel.use_threads(count)
        engine, out = Engine(rows, KERNEL), np.zeros(500)
        engine.apply(engine.packed, np.arange(0, 500, 3), np.linspace(-1, 1, 167), out)
        results.append(out)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_short_rows_beside_longer_ones() -> None:
    """The values of distances below 32 alone, where only one side is short, would not do for the longer rows."""
    A, B = ones(50, 90, FEW_ONES, seed=8), ones(40, 90, 60, seed=9)
    exact = np.exp(-KERNEL.gamma * squared_distances(A, B))
    weights = np.random.default_rng(10).normal(size=(50, 1))
    a, b = Rows.from_dense(A), Rows.from_dense(B)
    assert layout_of(a, b, KERNEL, "f4") == layout_of(b, a, KERNEL, "f4") == Layout("binary")
    assert np.abs(cross_apply(a, b, KERNEL, weights[:40], "f4") - exact @ weights[:40]).max() < 1e-5
    assert np.abs(cross_apply(b, a, KERNEL, weights, "f4") - exact.T @ weights).max() < 1e-5


def test_beside_rows_that_cannot_be_counted() -> None:
    """Rows of ones against others, either way round, far from the origin too."""
    A, B = ones(50, 30, 20, seed=4), np.random.default_rng(5).normal(size=(40, 35))
    B[3] = 0.0
    B[3, 4] = 1e9
    padded = np.hstack([A, np.zeros((50, 5))])
    exact = np.exp(-KERNEL.gamma * ((padded[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))
    a, b = Rows.from_dense(A), Rows.from_dense(B)
    weights = np.random.default_rng(6).normal(size=(50, 1))
    assert np.abs(cross_apply(a, b, KERNEL, weights[:40]) - exact @ weights[:40]).max() < 1e-12
    assert np.abs(cross_apply(b, a, KERNEL, weights) - exact.T @ weights).max() < 1e-12


def test_counted_values_are_single_precision_whatever_gamma() -> None:
    rows = Rows.from_dense(ones(50, 130, 100, seed=7))
    for gamma in (1e-3, 1.0, 50.0):
        assert training_precision(rows, Kernel(RBF, gamma)) == "f4"
