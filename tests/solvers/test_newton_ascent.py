"""Where dual coordinate ascent leads: the gap by which newton.py takes it, against sums over the dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import points

from svmkit.data import Rows
from svmkit.solvers import newton_ascent
from svmkit.solvers.newton_samples import Part


@pytest.mark.parametrize("visits", [1, 3])
def test_it_is_near_where_its_own_gap_is_small_enough(visits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = points(80, 5, seed=2)
    part = Part(np.arange(80), Rows.from_dense(X), y, np.random.default_rng(0).uniform(0.2, 2.0, 80))

    def led(most: float) -> newton_ascent.Near | None:
        monkeypatch.setattr(newton_ascent, "_VISITS", ((visits, most),))
        near, evaluations = newton_ascent.near_optimum(part, 5, 1e-9, 0)
        assert evaluations == (visits + 1) * 80
        return near

    near = led(np.inf)
    assert near is not None
    w = X.T @ (y * near.alpha)
    primal = 0.5 * w @ w + part.upper @ np.maximum(0.0, 1.0 - y * (X @ w))
    gap = (primal - near.alpha.sum() + 0.5 * w @ w) / primal
    assert led(gap * (1 + 1e-9)) is not None
    assert led(gap * (1 - 1e-9)) is None
