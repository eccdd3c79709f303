"""The factor of a matrix by panels, against NumPy's of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit import parallel
from svmkit.data import Floats, Rows
from svmkit.engine.cholesky import _BLOCK, Factor, NotDefinite
from svmkit.engine.kernels import Engine
from svmkit.problem import LINEAR, RBF, SIGMOID, Kernel


def matrix(n: int, kernel: Kernel, d: int = 6) -> Floats:
    return Engine(Rows.from_dense(np.random.default_rng(n).normal(size=(n, d))), kernel, "f8").block(np.arange(n), np.arange(n))


def factored(A: Floats, ridge: float) -> Factor:
    return Factor(lambda r0, r1, c0, c1: A[r0:r1, c0:c1], len(A), ridge)


@pytest.mark.parametrize("n", [1, 7, _BLOCK, _BLOCK + 1, 3 * _BLOCK + 5])
def test_solves_as_the_dense_factor_does(n: int) -> None:
    K = matrix(n, Kernel(RBF, 0.5))
    L = np.linalg.cholesky(K + 1e-3 * np.eye(n))
    factor = factored(K, 1e-3)
    right = np.random.default_rng(1).normal(size=(n, 3))
    np.testing.assert_allclose(factor.forward(right), np.linalg.solve(L, right), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(factor.backward(right), np.linalg.solve(L.T, right), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("block", [1, 50, 96, _BLOCK])
def test_float32_stays_float32(block: int) -> None:
    n = 203
    A = (matrix(n, Kernel(RBF, 0.5)) + np.eye(n)).astype(np.float32)
    factor = Factor(lambda r0, r1, c0, c1: A[r0:r1, c0:c1], n, 0.0, np.float32, block)
    right = np.random.default_rng(1).normal(size=(n, 2)).astype(np.float32)
    found = factor.backward(factor.forward(right))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.linalg.solve(A.astype(np.float64), right), rtol=1e-4, atol=1e-5)


def test_threads_do_not_change_a_bit(threads: None) -> None:
    n = 3 * _BLOCK
    K, right = matrix(n, Kernel(RBF, 0.3)), np.ones((n, 1))
    found = []
    for count in (1, 2):
        parallel.use_threads(count)
        found.append(factored(K, 1e-6).forward(right))
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("kernel", [Kernel(LINEAR), Kernel(SIGMOID, 0.5, -1.0)], ids=lambda kernel: kernel.name)
def test_a_matrix_without_a_factor_is_refused(kernel: Kernel) -> None:
    """Rank 6 in 50 dimensions, less a little; and a kernel that is not positive semidefinite."""
    with pytest.raises(NotDefinite):
        factored(matrix(50, kernel), -1e-9)


def test_a_ridge_that_overflowed_is_refused() -> None:
    with pytest.raises(NotDefinite):
        Factor(lambda r0, r1, c0, c1: np.eye(3)[r0:r1, c0:c1], 3, np.inf)
