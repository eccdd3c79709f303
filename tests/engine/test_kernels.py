"""The engine against naive NumPy kernels: every kernel, table and sorted path, both precisions; and its bitwise promises."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import sparse_matrix

from svmkit import parallel
from svmkit.data import Rows
from svmkit.engine import kernels, layouts, packed
from svmkit.engine.kernels import Engine, cross_apply, diagonal
from svmkit.engine.rounding import FLOAT32_ERROR
from svmkit.engine.sorted import FREQUENT
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, SIGMOID, Kernel

KERNELS = [
    Kernel(LINEAR),
    Kernel(POLYNOMIAL, 0.3, 1.0, 3),
    Kernel(POLYNOMIAL, 0.3, 0.5, 0),
    Kernel(POLYNOMIAL, 0.2, -0.4, 5),
    Kernel(POLYNOMIAL, 0.05, 0.9, 22),
    Kernel(RBF, 0.3),
    Kernel(RBF, 0.0),
    Kernel(SIGMOID, 0.3, 0.2),
]


def naive(kernel: Kernel, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    dot = A @ B.T
    if kernel.kind == LINEAR:
        return dot
    if kernel.kind == RBF:
        return np.exp(-kernel.gamma * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))
    argument = kernel.gamma * dot + kernel.coef0
    return argument**kernel.degree if kernel.kind == POLYNOMIAL else np.tanh(argument)


def scale_of(kernel: Kernel, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """√(K_ii K_jj), which errors are relative to, with |coef0| for coef0; at least 1e-3, for rows that are all but zero."""
    upright = kernel._replace(coef0=abs(kernel.coef0))
    own = [np.array([naive(upright, row[None], row[None])[0, 0] for row in X]) for X in (A, B)]
    return np.maximum(np.sqrt(np.outer(*own)), 1e-3)


@pytest.fixture(params=["table", "tiled", "sorted", "dense table", "dense tiled"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The forms of the loops: a table of features, the same tile by tile, columns sorted by two of three features; the first
    two with a place for some features in every row.
    """
    *dense, form = request.param.split()
    layout = layouts.Layout(form, frequent=tuple(range(1, 300, 3)), dense=tuple(range(2, 260, 2)) if dense else ())
    suited = layouts.suited
    for module in (kernels, layouts):
        monkeypatch.setattr(module, "layout_of", lambda *_: layout)
    for module in (kernels, packed):
        monkeypatch.setattr(module, "suited", lambda *rows_and_kernel: (suited(*rows_and_kernel)[0], layout))
    return str(form)


@pytest.mark.parametrize("real", ["f4", "f8"])
def test_rbf_of_a_row_and_itself_or_its_like_is_exactly_1(path: str, real: layouts.Real) -> None:
    """However large gamma: else rounding alone would tell a row from its copy, and set rho where classes balance."""
    X = sparse_matrix(60, 300, 0.4, seed=5, scale=3.0)
    X[30:] = X[:30]
    engine = Engine(Rows.from_dense(X), Kernel(RBF, 0.7), real)
    assert engine.packed.form == path
    every = np.arange(60)
    K = engine.block(every, every)
    assert (np.diagonal(K) == 1.0).all()
    assert (np.diagonal(K, 30) == 1.0).all()
    assert (K[0, 1:30] < 1.0).all()


def test_features_that_many_columns_have_come_first() -> None:
    """In wide rows, by the basis: 300 of them here, of which there are lines for the most frequent only."""
    rng = np.random.default_rng(19)
    share = np.linspace(0.5, 0.04, 300)
    X = np.zeros((400, 5000))
    common = rng.permutation(5000)[:300]
    X[:, common] = rng.random((400, 300)) < share
    X[np.arange(400), rng.integers(0, 5000, 400)] = 0.5
    X[:10] = 0.0
    rows, kernel = Rows.from_dense(X), Kernel(RBF, 0.02)
    layout = layouts.layout_of(rows, rows, kernel, "f8")
    counts = (X != 0).sum(axis=0)
    assert layout.form == "sorted"
    assert len(layout.frequent) == FREQUENT
    least = min(counts[f - 1] for f in layout.frequent)
    assert least >= np.delete(counts, np.array(layout.frequent) - 1).max()
    lone = np.zeros((40, 5000))
    lone[np.arange(40), np.arange(40) * 100] = 1.0
    assert layouts.layout_of(rows, Rows.from_dense(lone), kernel, "f8").frequent == ()
    wider = np.hstack([X[:, 2500:], np.ones((400, 300)), np.zeros((400, 4000))])  # its features are the other's by chance alone
    basis = Rows.from_dense(X[:37])
    exact = naive(kernel, wider[:, :5000], X[:37]) * np.exp(-kernel.gamma * (wider[:, 5000:] ** 2).sum(axis=1))[:, None]
    weights = rng.normal(size=(37, 2))
    assert np.abs(cross_apply(Rows.from_dense(wider), basis, kernel, weights) - exact @ weights).max() < 1e-12
    columns = kernels.Columns(basis, kernel)
    for left in (rows, Rows.from_dense(wider), basis):
        assert np.array_equal(columns.block(left), kernels.Columns(basis, kernel).block(left))
    assert np.abs(columns.block(Rows.from_dense(wider)) - exact).max() < 1e-12


def test_columns_come_back_from_huge_numbers() -> None:
    """A basis numbered anew for the sake of one block is not there for the next."""
    basis, kernel = Rows(np.array([1.0, 2.0]), np.array([3, 7], np.int32), np.array([0, 1, 2]), 7), Kernel(RBF, 0.5)
    hashed = Rows(np.array([1.0, 5.0]), np.array([3, 900_000], np.int32), np.array([0, 1, 2]), 900_000)
    columns = kernels.Columns(basis, kernel)
    before = columns.block(basis)
    assert columns.block(hashed) == pytest.approx(np.exp(-0.5 * np.array([[0.0, 5.0], [26.0, 29.0]])))
    assert np.array_equal(columns.block(basis), before)


def test_wide_rows_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    """Nor on the block's place among more columns than are taken at a time."""
    monkeypatch.setattr(kernels, "PIECE_VALUES", 1000)
    rng = np.random.default_rng(20)
    share = np.where(rng.random(4500) < 0.02, 0.5, 0.002)
    X = rng.normal(size=(1400, 4500)) * (rng.random((1400, 4500)) < share)
    rows, kernel, weights = Rows.from_dense(X), Kernel(RBF, 0.01), rng.normal(size=1300)
    columns, results = rng.permutation(1400)[:1300], []
    for count in (1, 2, 3):
        parallel.use_threads(count)
        engine, out = Engine(rows, kernel), np.zeros(1400)
        assert engine.packed.form == "sorted"
        engine.apply(engine.packed, columns, weights, out)
        results.append((out, engine.block(columns, columns)))
    for out, K in results[1:]:
        assert np.array_equal(out, results[0][0])
        assert np.array_equal(K, results[0][1])
    assert np.array_equal(K, K.T)
    few = np.arange(7, 1300, 37)
    assert np.abs(K[np.ix_(few, few)] - naive(kernel, X[columns[few]], X[columns[few]])).max() < 2e-6


def test_feature_zero_of_wide_rows() -> None:
    rows = Rows(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 7000, 0, 5], np.int32), np.array([0, 2, 4]), 7000)
    K = Engine(rows, Kernel(LINEAR), "f8").block(np.arange(2), np.arange(2))
    assert K.tolist() == [[5.0, 3.0], [3.0, 25.0]]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.name}-{k.degree}-{k.gamma}")
@pytest.mark.parametrize("real", ["f4", "f8"])
def test_block_equals_naive(kernel: Kernel, real: str, path: str) -> None:
    X = sparse_matrix(90, 25, 0.4, seed=1)
    engine = Engine(Rows.from_dense(X), kernel, real)  # type: ignore[arg-type]
    rows, columns = np.arange(90)[::-1].copy(), np.arange(5, 85)
    error = np.abs(engine.block(rows, columns) - naive(kernel, X[rows], X[columns]))
    allowed = FLOAT32_ERROR * max(1.0, kernel.degree / 4) if real == "f4" else 1e-14
    assert (error <= allowed * scale_of(kernel, X[rows], X[columns])).all()
    assert engine.evaluations == 90 * 80


@pytest.mark.parametrize("kernel", [Kernel(LINEAR), Kernel(RBF, 0.3)], ids=lambda k: k.name)
@pytest.mark.parametrize(("real", "kept"), [("f4", "f4"), ("f8", "f8"), ("f8", "f4")])
@pytest.mark.parametrize("count", [0, 1, 70, 150])
def test_whole_rows_are_those_of_a_block(kernel: Kernel, real: str, kept: str, count: int, path: str) -> None:
    """To the bit, or rounded to float32; strips end inside and the rows to be turned are not a multiple of anything."""
    X = sparse_matrix(2301, 12, 0.5, seed=12)
    engine = Engine(Rows.from_dense(X), kernel, real)  # type: ignore[arg-type]
    numbers = np.random.default_rng(13).permutation(2301)[:count]
    out = np.full((count, 2301), np.nan, kept)
    engine.whole_rows(numbers, out)
    assert engine.evaluations == count * 2301
    expected = engine.block(np.arange(2301), numbers).T
    assert np.array_equal(out, expected.astype(kept))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.name}-{k.degree}-{k.gamma}")
@pytest.mark.parametrize("n_columns", [1, 16, 17, 63, 128, 129, 300])
def test_apply_is_the_sum_of_block_values_in_float64(kernel: Kernel, n_columns: int, path: str) -> None:
    X = sparse_matrix(301, 12, 0.5, seed=2)
    engine = Engine(Rows.from_dense(X), kernel)
    columns = np.random.default_rng(0).permutation(301)[:n_columns]
    weights = np.random.default_rng(1).normal(size=n_columns) * 1e3
    out = np.full(301, 0.25)
    engine.apply(engine.packed, columns, weights, out)
    block = engine.block(np.arange(301), columns).astype(np.float64)
    expected = 0.25 + block @ weights
    assert np.abs(out - expected).max() <= 1e-13 * (1 + (np.abs(block) @ np.abs(weights)).max())
    assert engine.evaluations == 2 * 301 * n_columns


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.kind != SIGMOID], ids=lambda k: f"{k.name}-{k.degree}-{k.gamma}")
@pytest.mark.parametrize("real", ["f4", "f8"])
def test_a_pair_has_one_value_to_the_bit(kernel: Kernel, real: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """K(x, z) = K(z, x), whatever the block's width, its place in it, or the packing; mirrored where a block is symmetric."""
    monkeypatch.setattr(kernels, "BLOCK_PIECE_VALUES", dict.fromkeys(kernels.BLOCK_PIECE_VALUES, 100))
    X = sparse_matrix(200, 240, 0.3, seed=3, scale=0.3)
    engine = Engine(Rows.from_dense(X), kernel, real)  # type: ignore[arg-type]
    everything = np.arange(200)
    K = engine.block(everything, everything)
    assert np.array_equal(K, K.T)
    some = np.random.default_rng(4).permutation(200)[:23]
    assert np.array_equal(engine.block(some, everything), K[some])
    assert np.array_equal(engine.block(everything, some[:3]), K[:, some[:3]])
    single = np.zeros(200)
    engine.apply(engine.packed.take(everything[::-1].copy()), some[:1], np.ones(1), single)
    assert np.array_equal(single.astype(real)[::-1], K[:, some[0]])


def test_active_sets_keep_the_form_of_the_whole() -> None:
    """Rows that alone would suit another form take the same loops: their values must not change."""
    X = sparse_matrix(60, 300, 0.5, seed=3)
    X[:5] *= np.arange(300) < 3
    whole = Engine(Rows.from_dense(X), Kernel(RBF, 0.1)).packed
    assert whole.form == "tiled"
    assert Engine(Rows.from_dense(X[:5]), Kernel(RBF, 0.1)).packed.form == "table"
    assert whole.take(np.arange(5)).form == "tiled"


def test_a_product_with_no_columns_is_nothing(path: str) -> None:
    engine = Engine(Rows.from_dense(sparse_matrix(9, 5, 0.5, seed=3)), Kernel(RBF, 0.1))
    out = np.ones(9)
    engine.apply(engine.packed, np.arange(0), np.empty(0), out)
    assert np.array_equal(out, np.ones(9))
    assert engine.block(np.arange(9), np.arange(0)).shape == (9, 0)


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    monkeypatch.setattr(kernels, "PIECE_VALUES", 1000)
    X = sparse_matrix(500, 30, 0.3, seed=5)
    kernel = Kernel(RBF, 0.2)
    results = []
    for count in (1, 2, 3):
        parallel.use_threads(count)
        engine = Engine(Rows.from_dense(X), kernel)
        out = np.zeros(500)
        engine.apply(engine.packed, np.arange(0, 500, 3), np.linspace(-1, 1, 167), out)
        results.append(out)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_apply_of_several_weightings_counts_its_values_once(path: str) -> None:
    X = sparse_matrix(90, 12, 0.6, seed=21)
    rng = np.random.default_rng(22)
    columns, weights, out = rng.integers(0, 90, 33), rng.normal(size=(33, 2)), rng.normal(size=(90, 2))
    engine = Engine(Rows.from_dense(X), Kernel(RBF, 0.3))
    expected = out.copy()
    for k in range(2):
        one = expected[:, k].copy()
        engine.apply(engine.packed, columns, weights[:, k].copy(), one)
        expected[:, k] = one
    counted = engine.evaluations
    engine.apply(engine.packed, columns, weights, out)
    assert out == pytest.approx(expected, rel=1e-12)
    assert engine.evaluations - counted == 90 * 33


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.name}-{k.degree}-{k.gamma}")
def test_cross_apply_of_several_weightings(kernel: Kernel, path: str) -> None:
    """Rows of fewer and of more features than the basis; two columns of weights at once."""
    A, B = sparse_matrix(70, 20, 0.5, seed=6), sparse_matrix(150, 31, 0.5, seed=7)
    weights = np.random.default_rng(8).normal(size=(150, 2))
    padded = np.hstack([A, np.zeros((70, 11))])
    expected = naive(kernel, padded, B) @ weights
    size = 1 + np.abs(naive(kernel, padded, B)) @ np.abs(weights)
    assert (np.abs(cross_apply(Rows.from_dense(A), Rows.from_dense(B), kernel, weights) - expected) <= 1e-13 * size).all()
    other = cross_apply(Rows.from_dense(B), Rows.from_dense(A), kernel, weights[:70])
    assert (np.abs(other - naive(kernel, B, padded) @ weights[:70]) <= 1e-12 * (1 + np.abs(other))).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.name}-{k.degree}-{k.gamma}")
def test_diagonal(kernel: Kernel) -> None:
    X = sparse_matrix(40, 10, 0.5, seed=9)
    expected = np.diagonal(naive(kernel, X, X))
    np.testing.assert_allclose(diagonal(Rows.from_dense(X), kernel), expected, rtol=1e-13, atol=1e-14)


def test_precomputed_values_are_looked_up() -> None:
    rng = np.random.default_rng(10)
    gram = rng.normal(size=(30, 30))
    empty = Rows.from_dense(np.zeros((30, 1)))
    serial = rng.permutation(30) + 1
    rows = empty._replace(gram=gram[serial - 1].copy(), serial=serial)
    engine = Engine(rows, Kernel(PRECOMPUTED))
    K = gram[np.ix_(serial - 1, serial - 1)]
    assert np.array_equal(engine.block(np.arange(30), np.arange(4, 9)), K[:, 4:9])
    whole = np.empty((3, 30))
    engine.whole_rows(np.array([5, 2, 28]), whole)
    assert np.array_equal(whole, K[[5, 2, 28]])
    assert np.array_equal(engine.diagonal(), np.diagonal(K))
    out = np.zeros(30)
    engine.apply(engine.packed, np.arange(30), np.ones(30), out)
    np.testing.assert_allclose(out, K.sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("real", ["f4", "f8"])
@pytest.mark.parametrize("form", ["table", "tiled"])
@pytest.mark.parametrize("n", [1, 2, 33, 200])
def test_differences_give_one_value_on_every_path(
    form: layouts.Form, n: int, real: layouts.Real, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "BLOCK_PIECE_VALUES", dict.fromkeys(kernels.BLOCK_PIECE_VALUES, 100))
    X = sparse_matrix(n, 150, 0.4, seed=15, scale=0.5)
    X[:, ::3] += 2.0
    kernel, everything = Kernel(RBF, 0.02), np.arange(n)
    layout = layouts.Layout(form, dense=tuple(range(1, 150, 3)), differences=True)
    engine = Engine(Rows.from_dense(X), kernel, real, layout)
    K = engine.block(everything, everything)
    assert np.abs(K - naive(kernel, X, X)).max() < (1e-6 if real == "f4" else 1e-14)
    assert np.array_equal(K, K.T)
    assert (np.diagonal(K) == 1.0).all()
    some = np.random.default_rng(16).permutation(n)[: (n + 1) // 2]
    assert np.array_equal(engine.block(some, everything), K[some])
    for c in (0, n - 1):
        for sides in (1, 2):
            out = np.zeros((n, sides))
            engine.apply(engine.packed.take(everything[::-1].copy()), np.array([c]), np.ones((1, sides)), out)
            assert np.array_equal(out[::-1], np.repeat(K[:, [c]].astype(np.float64), sides, axis=1))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_sigmoid_of_a_small_argument_keeps_its_digits(sign: float) -> None:
    x = 10.0 ** np.linspace(-300, 2, 200)
    values = cross_apply(
        Rows.from_dense(sign * x[:, None]), Rows.from_dense(np.ones((1, 1))), Kernel(SIGMOID, 0.5), np.ones((1, 1))
    )
    assert values[:, 0] == pytest.approx(np.tanh(0.5 * sign * x), rel=1e-15, abs=0.0)


def test_hashed_features_need_no_room_for_their_numbers() -> None:
    """Indices up to 2^31 − 1: same values, work space for the features there are."""
    X = sparse_matrix(60, 8, 0.6, seed=12)
    rows = Rows.from_dense(X)
    places = np.array([0, 3, 70, 5000, 10**6, 10**7, 10**9, 2**31 - 2, 2**31 - 1], dtype=np.int32)
    hashed = rows._replace(indices=places[rows.indices], n_features=2**31 - 1)
    kernel, everything = Kernel(RBF, 0.3), np.arange(60)
    assert np.array_equal(
        Engine(hashed, kernel).block(everything, everything), Engine(rows, kernel).block(everything, everything)
    )
    assert packed.training_precision(hashed, kernel) == packed.training_precision(rows, kernel)
    weights = np.ones((60, 1))
    assert np.array_equal(cross_apply(hashed, hashed, kernel, weights), cross_apply(rows, rows, kernel, weights))
    other = Rows.from_dense(X[:10, :3])
    assert cross_apply(other, hashed, kernel, weights).shape == (10, 1)


def test_far_points_have_kernel_value_zero() -> None:
    X = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 1e4]])
    K = Engine(Rows.from_dense(X), Kernel(RBF, 10.0), "f8").block(np.arange(3), np.arange(3))
    assert (K[~np.eye(3, dtype=bool)] == 0).all()
    assert np.abs(np.diagonal(K) - 1).max() < 1e-11


def rows_of_which_some_are_far() -> np.ndarray:
    """A time stamp in one column and an account number in another, in every other row or so."""
    rng = np.random.default_rng(17)
    X = sparse_matrix(70, 9, 0.6, seed=17)
    far = rng.random(70) < 0.5
    X[far, 1] = 1.6e9 + rng.integers(0, 3, far.sum())
    X[far, 4] = rng.integers(0, 3, far.sum()) * 123456789.0
    return X


def test_rbf_of_rows_far_from_the_origin(path: str) -> None:
    X, kernel = rows_of_which_some_are_far(), Kernel(RBF, 0.5)
    rows, everything = Rows.from_dense(X), np.arange(70)
    exact = naive(kernel, X, X)
    engine = Engine(rows, kernel)
    K = engine.block(everything, everything)
    assert np.abs(K - exact).max() < 1e-6  # scaling moves 1.6e9 by 2e-7
    weights = np.random.default_rng(18).normal(size=(70, 2))
    assert np.abs(cross_apply(rows, rows, kernel, weights) - K @ weights).max() < 1e-12
    some = np.arange(0, 70, 3)
    begun = np.ones((70, 2))
    engine.apply(engine.packed, some, weights[some], begun)
    assert np.abs(begun - 1 - K[:, some] @ weights[some]).max() < 1e-12
    for kept in ("f4", "f8"):
        out = np.empty((len(some), 70), kept)
        engine.whole_rows(some, out)
        assert np.array_equal(out, K[some].astype(kept))


def test_a_far_pair_has_one_value_to_the_bit(path: str) -> None:
    X, kernel = rows_of_which_some_are_far(), Kernel(RBF, 0.5)
    engine, everything = Engine(Rows.from_dense(X), kernel), np.arange(70)
    K = engine.block(everything, everything)
    assert np.array_equal(K, K.T)
    one = np.ones((1, 1))
    for r in (0, 1, 40):  # alone, some rows are not far
        single = cross_apply(Rows.from_dense(X), Rows.from_dense(X[[r]]), kernel, one)[:, 0]
        assert np.array_equal(single, K[:, r])
    near = np.flatnonzero(X[:, 1] < 1e9)
    assert np.array_equal(cross_apply(Rows.from_dense(X[near]), Rows.from_dense(X[[0]]), kernel, one)[:, 0], K[near, 0])
    apart = np.zeros(len(near))
    engine.apply(engine.packed.take(near), near[:1], np.ones(1), apart)
    assert np.array_equal(apart, K[near, near[0]])
