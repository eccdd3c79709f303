"""Kernel values from whole numbers in bytes: exact sums, and who is taken for such rows."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit import parallel
from svmkit._llvm import cpu_has
from svmkit.data import Rows
from svmkit.engine import kernels, words
from svmkit.engine.kernels import Columns, Engine, cross_apply
from svmkit.engine.layouts import Layout, layout_of
from svmkit.engine.packed import pack, training_precision
from svmkit.engine.pixels import NEEDED
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, SIGMOID, Kernel

pytestmark = pytest.mark.skipif(not cpu_has(NEEDED), reason="this CPU has no AVX2, without which no pixels are multiplied")

#: Wide enough apart for values from 1 down to 1e-9.
KERNEL = Kernel(RBF, 2e-6)


def images(n: int, n_features: int, seed: int, density: float = 0.5) -> np.ndarray:
    """Rows of 0 … 255 with runs of zeros, an empty row, a full one, a duplicate."""
    rng = np.random.default_rng(seed)
    inside = np.repeat(rng.random((n, -(-n_features // 5))) < density, 5, axis=1)[:, :n_features]
    X = inside * rng.integers(0, 256, (n, n_features)).astype(float)
    X[n // 3] = 0.0
    X[n // 4] = 255.0
    X[n // 2] = X[0]
    return X


def squared_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)


def form(rows: Rows, kernel: Kernel = KERNEL, real: str = "f4") -> str:
    return layout_of(rows, rows, kernel, real).form  # type: ignore[arg-type]


def plain(rows: Rows, kernel: Kernel, real: str) -> Engine:
    """The same with the loops of table.py."""
    engine = Engine(rows, kernel, real)  # type: ignore[arg-type]
    engine.packed = pack(rows, kernel, real, Layout("table"))  # type: ignore[arg-type]
    return engine


def test_which_rows_are_taken() -> None:
    X = images(40, 60, seed=0)
    few = Kernel(RBF, 1e-3)
    rows = Rows.from_dense(X)
    assert {form(rows, real="f4"), form(rows, real="f8"), form(rows, Kernel(POLYNOMIAL, 1e-4, 1.0, 3))} == {"pixels"}
    assert form(rows, Kernel(LINEAR)) == "pixels"
    assert form(Rows.from_dense(X / 255), few, "f8") == "pixels"
    assert form(Rows.from_dense(X * (1 / 255)), few, "f8") == "pixels"
    assert (X * (1 / 255) != X / 255).any()
    for wrong in (X + 0.5, -X, X * 256 / 255, X * np.pi, X / 254):
        assert form(Rows.from_dense(wrong)) == "table"
    late = X.copy()
    late[-1, -1] = 0.25  # not among the first values
    assert form(Rows.from_dense(late)) == "table"
    late[-1, -1] = 256.0
    assert form(Rows.from_dense(late)) == "table"
    late[-1, -1] = np.inf
    assert form(Rows.from_dense(late)) == "table"
    assert form(Rows.from_dense(np.full((3, 7), np.nan))) == "table"
    assert form(Rows.from_dense(np.zeros((3, 7)))) == "binary"
    lonely = np.zeros((40, 60))
    lonely[:, ::4] = 7.0  # a word for every nonzero
    assert form(Rows.from_dense(lonely)) == ("table" if words.BYTES else "pixels")
    assert form(Rows.from_dense(np.hstack([X, np.zeros((40, 5000)), X]))) == "sorted"


def test_six_digits_are_enough_in_float32_where_gamma_allows() -> None:
    X = images(40, 300, seed=1)
    text = np.array([[float(f"{value:.6g}") for value in row] for row in X / 255])
    rows = Rows.from_dense(text)
    for gamma in (0.005, 0.05):
        assert form(rows, Kernel(RBF, gamma)) == "pixels"
        everything = np.arange(40)
        K = Engine(rows, Kernel(RBF, gamma), "f4").block(everything, everything)
        assert np.abs(K - np.exp(-gamma * squared_distances(text, text))).max() <= 1e-6
    assert form(rows, Kernel(RBF, 5.0)) == "tiled"
    assert form(rows, Kernel(RBF, 0.05), "f8") == "tiled"
    assert form(rows, Kernel(POLYNOMIAL, 0.05, 1.0, 2)) == "tiled"


@pytest.mark.parametrize(
    "kernel", [KERNEL, Kernel(POLYNOMIAL, 1e-6, 0.5, 3), Kernel(LINEAR), Kernel(RBF, 0.0)], ids=lambda k: k.name
)
@pytest.mark.parametrize("real", ["f4", "f8"])
def test_values_are_the_exact_ones_rounded(kernel: Kernel, real: str) -> None:
    X = images(70, 133, seed=2)
    everything = np.arange(70)
    K = Engine(Rows.from_dense(X), kernel, real).block(everything, everything)  # type: ignore[arg-type]
    if kernel.kind == RBF:
        exact, size = np.exp(-kernel.gamma * squared_distances(X, X)), np.ones((70, 70))
        assert (np.diagonal(K) == 1.0).all()
    else:
        dot = X @ X.T
        exact = dot if kernel.kind == LINEAR else (kernel.gamma * dot + kernel.coef0) ** kernel.degree
        size = exact
    assert (np.abs(K - exact) <= (4e-7 if real == "f4" else 1e-15 * 5) * size).all()
    assert np.array_equal(K, K.T)


@pytest.mark.parametrize("real", ["f4", "f8"])
def test_the_largest_sums_fit(real: str) -> None:
    """4095 features of 255 against as many, and against nothing."""
    X = np.zeros((3, 4095))
    X[0], X[1, ::2] = 255.0, 255.0
    gamma = 1e-8
    K = Engine(Rows.from_dense(X), Kernel(RBF, gamma), real).block(np.arange(3), np.arange(3))  # type: ignore[arg-type]
    assert np.abs(K - np.exp(-gamma * squared_distances(X, X))).max() <= (2e-7 if real == "f4" else 1e-15)


@pytest.mark.parametrize("kernel", [KERNEL, Kernel(POLYNOMIAL, 1e-6, 0.5, 3)], ids=lambda k: k.name)
@pytest.mark.parametrize("real", ["f4", "f8"])
@pytest.mark.parametrize("n_columns", [1, 15, 16, 17, 33, 63, 64, 65, 128, 129, 300])
def test_products_and_blocks_are_those_of_the_other_loops(kernel: Kernel, real: str, n_columns: int) -> None:
    rows = Rows.from_dense(images(301, 90, seed=3))
    rng = np.random.default_rng(4)
    columns, weights = rng.permutation(301)[:n_columns], rng.normal(size=(n_columns, 2)) * 1e3
    ours, other = Engine(rows, kernel, real), plain(rows, kernel, real)  # type: ignore[arg-type]
    assert ours.packed.form == "pixels"
    some = rng.permutation(301)[:120]
    block = ours.block(some, columns)
    expected = other.block(some, columns)
    assert (np.abs(block - expected) <= (3e-6 if real == "f4" else 1e-13) * np.maximum(expected, 1.0)).all()
    left = ours.packed.take(some)
    out = np.full((120, 2), 0.25)
    ours.apply(left, columns, weights, out)
    size = 1 + block.astype(float) @ np.abs(weights)
    assert (np.abs(out - 0.25 - block.astype(float) @ weights) <= 1e-13 * size).all()
    one = np.full(120, 0.25)
    ours.apply(left, columns, weights[:, 1].copy(), one)
    assert np.array_equal(one, out[:, 1])
    whole = np.empty((n_columns, 301), real)
    ours.whole_rows(columns, whole)
    assert np.array_equal(whole[:, some], block.T)
    assert ours.evaluations == 3 * 120 * n_columns + 301 * n_columns


def test_threads_and_pieces_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    monkeypatch.setattr(kernels, "PIECE_VALUES", 1000)
    monkeypatch.setattr(words, "_PIECE_NONZEROS", 500)
    rows, results = Rows.from_dense(images(500, 60, seed=5)), []
    for count in (1, 2, 3):
        parallel.use_threads(count)
        engine, out = Engine(rows, KERNEL), np.zeros(500)
        engine.apply(engine.packed, np.arange(0, 500, 3), np.linspace(-1, 1, 167), out)
        results.append(out)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_beside_rows_of_another_kind() -> None:
    """Both sides must count in the same units; a basis packed once is packed anew where the other side asks for it."""
    A, B = images(50, 30, seed=6), np.random.default_rng(7).normal(size=(40, 35)) * 100
    padded = np.hstack([A, np.zeros((50, 5))])
    weights = np.random.default_rng(8).normal(size=(50, 1))
    a, b, c = Rows.from_dense(A), Rows.from_dense(B), Rows.from_dense(A / 255)
    kernel = Kernel(RBF, 1e-5)
    exact = np.exp(-kernel.gamma * squared_distances(padded, B))
    assert np.abs(cross_apply(a, b, kernel, weights[:40]) - exact @ weights[:40]).max() < 1e-12
    assert np.abs(cross_apply(b, a, kernel, weights) - exact.T @ weights).max() < 1e-12
    exact = np.exp(-kernel.gamma * squared_distances(A / 255, A))
    assert np.abs(cross_apply(c, a, kernel, weights) - exact @ weights).max() < 1e-12
    basis = Columns(a, kernel)
    for left, dense in ((a, A), (c, A / 255), (a, A)):
        assert np.abs(basis.block(left) - np.exp(-kernel.gamma * squared_distances(dense, A))).max() < 1e-12


def test_a_chunk_of_rows_is_packed_as_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it alone would be of whole numbers."""
    A = images(300, 40, seed=9)
    A[7, 7] = 0.5
    rows, basis = Rows.from_dense(A), Rows.from_dense(images(20, 40, seed=10))
    weights = np.linspace(-1, 1, 20)[:, None]
    assert layout_of(rows, basis, KERNEL, "f8") == Layout("table")
    assert layout_of(rows.part(100, 300), basis, KERNEL, "f8") == Layout("pixels", 1.0)
    whole = cross_apply(rows, basis, KERNEL, weights)
    monkeypatch.setattr(kernels, "APPLIED_NONZEROS", 500)
    assert np.array_equal(cross_apply(rows, basis, KERNEL, weights), whole)


def test_powers_of_whole_numbers_need_their_precision() -> None:
    """They grow as any others do."""
    rows = Rows.from_dense(images(50, 30, seed=12))
    assert training_precision(rows, Kernel(POLYNOMIAL, 1.0, 0.0, 8)) == "f8"
    assert training_precision(rows, Kernel(POLYNOMIAL, 1.0, -1e6, 3)) == "f8"
    assert training_precision(rows, Kernel(POLYNOMIAL, 1e-6, 1.0, 3)) == "f4"


def test_tiny_values_are_no_zeros() -> None:
    X = 1e-16 * np.random.default_rng(13).random((6, 40))
    assert form(Rows.from_dense(X), Kernel(LINEAR), "f8") == "table"
    assert form(Rows.from_dense(X), Kernel(RBF, 1e30), "f8") == "table"
    assert form(Rows.from_dense(X), Kernel(RBF, 1e30), "f4") == "table"


def test_the_largest_gamma() -> None:
    X = images(6, 40, seed=14)
    for real in ("f4", "f8"):
        K = Engine(Rows.from_dense(X), Kernel(RBF, 1e300), real).block(np.arange(6), np.arange(6))  # type: ignore[arg-type]
        same = squared_distances(X, X) == 0
        assert (K[same] == 1.0).all()
        assert (K[~same] < 1e-37).all()


def test_feature_zero() -> None:
    rows = Rows(np.array([3.0, 4.0, 5.0, 6.0]), np.array([0, 1, 0, 3], np.int32), np.array([0, 2, 4]), 3)
    assert form(rows, Kernel(LINEAR)) == "pixels"
    assert Engine(rows, Kernel(LINEAR), "f4").block(np.arange(2), np.arange(2)).tolist() == [[25.0, 15.0], [15.0, 61.0]]


def test_these_values_are_single_precision_whatever_gamma() -> None:
    rows = Rows.from_dense(images(50, 130, seed=11))
    for gamma in (1e-7, 1e-3, 1.0):
        assert training_precision(rows, Kernel(RBF, gamma)) == "f4"
    assert training_precision(rows, Kernel(SIGMOID, 1e-6)) == "f8"


def test_rows_of_a_kernel_matrix_are_left_alone() -> None:
    gram = np.eye(3)
    rows = Rows(np.empty(0), np.empty(0, np.int32), np.zeros(4, np.int64), 0, gram, np.arange(1, 4))
    assert form(rows, Kernel(PRECOMPUTED), "f8") == "table"
