"""The samples that newton.py begins on: one inside the next, with the cost of all rows."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit.data import Rows
from svmkit.solvers.newton_samples import Part, samples


@pytest.mark.parametrize(
    ("n", "d", "sizes"),
    [
        (6143, 1, [6143]),
        (6144, 1, [1024, 6144]),
        (24576, 1, [1024, 4096, 24576]),
        (9599, 200, [9599]),
        (9600, 200, [1600, 9600]),  # eight rows to a feature
        (57600, 200, [1600, 9600, 57600]),  # 48 of them
        (65535, 1, [1024, 4096, 65535]),
        (65536, 1, [1024, 4096, 16384, 65536]),
        (153600, 200, [1600, 9600, 38400, 153600]),  # 192 of them
    ],
)
def test_each_has_all_rows_of_the_one_before_and_costs_as_much(n: int, d: int, sizes: list[int]) -> None:
    X, y = np.arange(1.0, n + 1.0)[:, None], np.where(np.arange(n) % 2, 1.0, -1.0)
    whole = Part(np.arange(n) + 5, Rows.from_dense(X), y, np.full(n, 0.25))
    first, wider = samples(whole, d, seed=3)
    parts = [first, *(part for _, part in wider)]
    assert [len(part.used) for part in parts] == sizes
    assert [s for s, _ in wider] == {0: [], 1: [2.0], 2: [2.0, 32.0], 3: [2.0, 16.0, 32.0]}[len(wider)]
    for part, larger in zip(parts, [*parts[1:], whole], strict=True):
        assert np.isin(part.used, larger.used).all()
        assert part.upper == pytest.approx(0.25 * n / len(part.used))
        assert np.array_equal(part.y, y[part.used - 5])
        assert (part.which is None) == (len(part.used) == n)
        rows = part.rows if part.which is None else part.rows.take(part.which)
        assert np.array_equal(rows.to_dense()[:, -1:], X[part.used - 5])
