"""Rows are most of the memory there is: packed ones are no copies where the loops can do without, and none that wait."""

from __future__ import annotations


import numpy as np
import pytest
from zoo import sparse_matrix

from svmkit.data import Floats, Rows
from svmkit.engine.kernels import Engine
from svmkit.problem import RBF, Kernel

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
