"""The features of a polynomial kernel: their inner products are its values, and any function of them is an expansion."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import oracle
import pytest
import zoo

from svmkit.data import Rows
from svmkit.engine.monomials import count, monomials, turned
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, Kernel

KERNELS = [
    Kernel(POLYNOMIAL, 0.3, coef0, degree) for degree in (1, 2, 3, 5) for coef0 in (0.0, 0.7)
]  # those without features are below


def sparse_rows() -> Rows:
    """Feature numbers far apart, index 0 among them, an empty row and a copy."""
    rows = Rows.from_dense(zoo.sparse_matrix(60, 4, 0.6, seed=5))
    names = np.array([0, 7, 500, 123_456, 0], dtype=np.int32)
    return rows._replace(indices=names[rows.indices - 1], n_features=123_456)


def values(rows: Rows, kernel: Kernel) -> np.ndarray:
    """The kernel's, of rows whose features are renumbered for a small matrix."""
    _, numbers = np.unique(rows.indices, return_inverse=True)
    narrow = rows._replace(indices=(numbers + 1).astype(np.int32), n_features=4)
    return oracle.dense_kernel(narrow, narrow, kernel)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_inner_products_are_kernel_values(kernel: Kernel) -> None:
    rows = sparse_rows()
    K, found = values(rows, kernel), monomials(rows, kernel)
    assert found.shape == (60, count(4, kernel))
    np.testing.assert_allclose(found @ found.T, K, rtol=1e-12, atol=1e-12 * np.abs(K).max())


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_turned_features_have_the_same_inner_products_and_pivots_that_span_them(kernel: Kernel) -> None:
    rows = sparse_rows()
    K, found = values(rows, kernel), turned(rows, kernel, 2.0**-52)
    assert found is not None
    features = found.rows.to_dense()[:, 1:]
    np.testing.assert_allclose(features @ features.T, K, rtol=1e-12, atol=1e-12 * np.abs(K).max())
    np.testing.assert_array_equal(features[found.pivots], found.corner)
    assert not np.triu(found.corner, 1).any()
    sizes = np.abs(found.corner.diagonal())
    assert (sizes[1:] <= sizes[:-1] * (1 + 1e-12)).all()
    w = np.random.default_rng(3).normal(size=len(found.pivots))
    f = K[:, found.pivots] @ found.expansion(w)
    np.testing.assert_allclose(f, features @ w, rtol=0, atol=1e-9 * np.abs(f).max())


def test_features_that_say_nothing_new_are_left_out() -> None:
    """Of zeros and ones x² is x: three features have seven monomials up to degree 3, not 20."""
    X = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)] * 3, dtype=np.float64)
    kernel = Kernel(POLYNOMIAL, 1.0, 1.0, 3)
    found = turned(Rows.from_dense(X), kernel, 2.0**-52)
    assert found is not None
    assert (count(3, kernel), found.rows.n_features) == (20, 8)  # and the constant


def test_features_of_very_different_size_keep_their_digits() -> None:
    """Sizes from 10⁻³ to 10³, cubed: the smallest direction is 10¹⁸ times below the largest in K, and still there."""
    X, _ = zoo.points(50, 2, seed=4)
    rows = Rows.from_dense(X * np.array([1e-3, 1e3]))
    found = turned(rows, Kernel(POLYNOMIAL, 1.0, 0.0, 2), 2.0**-52)
    assert found is not None
    assert found.rows.n_features == 3
    plain = np.linalg.svd(monomials(rows, Kernel(POLYNOMIAL, 1.0, 0.0, 2)), compute_uv=False)
    np.testing.assert_allclose(np.linalg.svd(found.rows.to_dense()[:, 1:], compute_uv=False), plain, rtol=1e-3)


def test_all_of_scipys_linear_algebra_is_not_loaded_for_two_routines() -> None:
    """That takes 0.14 s, more than small data to train on; what comes of them is the same to the bit."""
    program = """
import sys
import numpy as np
from svmkit.data import Rows
from svmkit.engine.monomials import monomials, turned
from svmkit.problem import POLYNOMIAL, Kernel
X, kernel = np.random.default_rng(0).normal(size=(40, 2)), Kernel(POLYNOMIAL, 0.5, 1.0, 3)
found, w = turned(Rows.from_dense(X), kernel, 2.0**-52), np.arange(10.0)
coef = found.expansion(w)
assert "scipy.linalg" not in sys.modules
from scipy.linalg import qr, solve_triangular
R, order = qr(monomials(Rows.from_dense(X), kernel).T, mode="r", pivoting=True)
assert np.array_equal(found.rows.data.reshape(40, 10)[order], R.T) and np.array_equal(found.pivots, order[:10])
assert np.array_equal(coef, solve_triangular(found.corner, w, lower=True, trans="T"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_values_beyond_float64_have_none() -> None:
    assert turned(Rows.from_dense(np.array([[1e200], [1.0]])), Kernel(POLYNOMIAL, 1.0, 0.0, 2), 2.0**-52) is None


@pytest.mark.parametrize(
    "kernel",
    [Kernel(LINEAR), Kernel(RBF, 0.5), Kernel(POLYNOMIAL, 1.0, 1.0, 0), Kernel(POLYNOMIAL, 1.0, -1.0, 2)],
    ids=str,
)
def test_other_kernels_have_none(kernel: Kernel) -> None:
    assert count(3, kernel) == 0
