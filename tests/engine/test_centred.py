"""Rows moved to the origin: rbf values are the same, to more digits; what need not move, or must not, stays."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit._llvm import cpu_has
from svmkit.data import Rows
from svmkit.engine.centred import centred
from svmkit.engine.kernels import Columns, Engine, cross_apply, products_by_group, stream_engine
from svmkit.engine.packed import prepared, training_precision
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, Kernel

KERNEL = Kernel(RBF, 0.1)


def offset(n: int, seed: int) -> np.ndarray:
    """A time in seconds, a place, a year, and two features around 0, of which one is often left out."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) + np.array([1.6e9, 47.5, 0.0, 0.0, 0.0])
    X[:, 2] = rng.integers(2015, 2021, n)
    X[:, 4] *= np.where(rng.random(n) < 0.5, 0.0, 0.3)
    return X


def exact(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """rbf values of float64 differences."""
    return np.exp(-KERNEL.gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


@pytest.mark.parametrize(("real", "error"), [("f4", 1e-6), ("f8", 1e-12)])
def test_values_are_those_of_differences(real: str, error: float) -> None:
    X, Z = offset(300, 1), offset(40, 2)
    rows, others, every = Rows.from_dense(X), Rows.from_dense(Z), np.arange(300)
    assert training_precision(rows, KERNEL) == "f4"
    engine = Engine(rows, KERNEL, real)  # type: ignore[arg-type]
    assert not engine.packed.far
    assert np.abs(engine.block(every, every) - exact(X, X)).max() <= error
    assert np.abs(Columns(rows, KERNEL).block(others) - exact(Z, X)).max() <= 1e-12
    weights = np.random.default_rng(3).normal(size=(300, 2))
    assert cross_apply(others, rows, KERNEL, weights) == pytest.approx(exact(Z, X) @ weights, abs=1e-10)
    groups = products_by_group(others, rows, KERNEL, np.array([0, 100, 300]), weights)
    assert groups[1] == pytest.approx(exact(Z, X[100:]) @ weights[100:], abs=1e-10)


def test_a_feature_that_a_row_lacks_stays() -> None:
    X = offset(100, 4)
    X[7, 1] = 0.0
    (moved,) = centred(KERNEL, Rows.from_dense(X))
    dense = moved.to_dense()[:, 1:]
    assert np.array_equal(dense[:, 1], X[:, 1])
    assert np.abs(dense[:, [0, 2]]).max() < 10
    assert np.array_equal(dense[:, 3:], X[:, 3:])


def test_parts_move_together_by_the_basis() -> None:
    X, Z = offset(100, 5), offset(30, 6)
    Z[:, 0] += 1000.0
    left, basis = centred(KERNEL, Rows.from_dense(Z), Rows.from_dense(X))
    (alone,) = centred(KERNEL, Rows.from_dense(X))
    assert np.array_equal(basis.data, alone.data)
    assert np.abs((basis.to_dense()[:, None, 1:] - left.to_dense()[None, :, 1:]) - (X[:, None] - Z[None])).max() < 1e-6
    assert np.abs(left.to_dense()[:, 1] - 1000.0).max() < 20


def test_what_need_not_move_is_handed_back() -> None:
    rng = np.random.default_rng(7)
    near, far = Rows.from_dense(rng.normal(size=(50, 3)) + 2.0), Rows.from_dense(offset(50, 8))
    for kernel, rows in [
        (KERNEL, near),
        (Kernel(RBF, 1e-20), far),
        (Kernel(LINEAR), far),
        (Kernel(POLYNOMIAL, 0.1, 1.0, 2), far),
        (KERNEL, Rows.from_dense(np.zeros((3, 2)))),
        (KERNEL, far.part(0, 0)),
    ]:
        assert centred(kernel, rows)[0] is rows


def test_values_of_any_size_are_looked_at() -> None:
    rows = Rows.from_dense(np.array([[-1.7e308], [1.7e308]]))
    (found,) = centred(Kernel(RBF, 1.0), rows)
    assert found.data.tolist() == [-1.7e308, 1.7e308]


@pytest.mark.skipif(not cpu_has("avx2"), reason="this CPU has no AVX2, without which there are no special loops")
def test_rows_of_the_special_loops_stay() -> None:
    """Ones are counted, pictures on a light ground are whole numbers of 255ths: neither would be if they were moved."""
    rng = np.random.default_rng(11)
    for X, kernel, form in [
        (np.ones((70, 20)), Kernel(RBF, 5.0), "binary"),
        (rng.integers(230, 256, (70, 200)) / 255.0, Kernel(RBF, 0.5), "pixels"),
    ]:
        rows = Rows.from_dense(X)
        assert centred(kernel, rows)[0] is not rows
        assert prepared(kernel, rows)[0] is rows
        assert Engine(rows, kernel).packed.form == form


def test_values_of_a_stream_do_not_depend_on_who_comes_together() -> None:
    X = offset(60, 9)
    whole = stream_engine(Rows.from_dense(X), KERNEL, 5).block(np.arange(60), np.arange(60))
    part = stream_engine(Rows.from_dense(X[:20]), KERNEL, 5).block(np.arange(20), np.arange(20))
    assert np.array_equal(whole[:20, :20], part)


def test_a_stream_has_no_table_for_features_that_do_not_occur() -> None:
    """What S has says which loops; a row that comes may have hashed features, of any number."""
    rng = np.random.default_rng(3)
    X = rng.random((30, 50))
    near = Rows.from_dense(X)
    far = near._replace(indices=np.where(near.indices == 50, 2**31 - 2, near.indices).astype(np.int32), n_features=2**31 - 2)
    engine, every = stream_engine(far, KERNEL, 49), np.arange(30)
    assert engine.packed.form == "table"
    assert engine.packed.n_features == 50
    assert np.array_equal(engine.block(every, every), stream_engine(near, KERNEL, 49).block(every, every))
