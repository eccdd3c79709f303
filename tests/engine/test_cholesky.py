"""The factor of a kernel matrix by panels, against NumPy's of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit import parallel
from svmkit.data import Rows
from svmkit.engine.cholesky import _BLOCK, Factor, NotDefinite
from svmkit.engine.kernels import Engine
from svmkit.problem import LINEAR, RBF, SIGMOID, Kernel


def engine(n: int, kernel: Kernel, d: int = 6) -> Engine:
    return Engine(Rows.from_dense(np.random.default_rng(n).normal(size=(n, d))), kernel, "f8")


@pytest.mark.parametrize("n", [1, 7, _BLOCK, _BLOCK + 1, 3 * _BLOCK + 5])
def test_solves_as_the_dense_factor_does(n: int) -> None:
    some = engine(n, Kernel(RBF, 0.5))
    rows = np.random.default_rng(0).permutation(n)
    K = some.block(rows, rows) + 1e-3 * np.eye(n)
    L = np.linalg.cholesky(K)
    factor = Factor(some, rows, 1e-3)
    right = np.random.default_rng(1).normal(size=(n, 3))
    np.testing.assert_allclose(factor.forward(right), np.linalg.solve(L, right), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(factor.backward(right), np.linalg.solve(L.T, right), rtol=1e-9, atol=1e-9)


def test_threads_do_not_change_a_bit(threads: None) -> None:
    n = 3 * _BLOCK
    some, right = engine(n, Kernel(RBF, 0.3)), np.ones((n, 1))
    found = []
    for count in (1, 2):
        parallel.use_threads(count)
        found.append(Factor(some, np.arange(n), 1e-6).forward(right))
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("kernel", [Kernel(LINEAR), Kernel(SIGMOID, 0.5, -1.0)], ids=lambda kernel: kernel.name)
def test_a_matrix_without_a_factor_is_refused(kernel: Kernel) -> None:
    """Rank 6 in 50 dimensions, less a little; and a kernel that is not positive semidefinite."""
    with pytest.raises(NotDefinite):
        Factor(engine(50, kernel), np.arange(50), -1e-9)
