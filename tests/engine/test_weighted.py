"""XᵀΘX against the product of dense matrices, however the rows are cut."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import points

from svmkit import parallel
from svmkit.data import Rows, dense_rows
from svmkit.engine import weighted
from svmkit.engine.weighted import weighted_gram


@pytest.mark.parametrize("density", [1.0, 0.2])
@pytest.mark.parametrize("n", [1, 3, 200])
def test_it_is_the_product_of_dense_matrices(n: int, density: float, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = points(n, 7, seed=n, density=density)
    weights = np.random.default_rng(2).uniform(0, 3, n) * (np.arange(n) % 3 > 0)
    for values in (1 << 20, 50):
        monkeypatch.setattr(weighted, "_VALUES", values)
        found = weighted_gram(Rows.from_dense(X), weights)
        assert found == pytest.approx(X.T @ np.diag(weights) @ X, rel=1e-12, abs=1e-12)
        single = X.astype(np.float32)
        found, rounded = weighted_gram(dense_rows(single), weights), single.astype(np.float64)
        assert found == pytest.approx(rounded.T @ np.diag(weights) @ rounded, rel=1e-12, abs=1e-12)


def test_the_threads_change_no_bit(threads: None) -> None:
    X, _ = points(500, 9, seed=4)
    found = []
    for count in (1, 2):
        parallel.use_threads(count)
        found.append(weighted_gram(Rows.from_dense(X), np.arange(500.0)))
    assert found[0].tobytes() == found[1].tobytes()
