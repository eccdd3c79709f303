"""Dual coordinate ascent stopped within a sweep, and so within a block: what has been done so far is told and given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
import zoo

from svmkit.engine import rng
from svmkit.problem import RBF, Kernel
from svmkit.solvers import sdca


@pytest.mark.parametrize("held", [24, 200])
def test_steps_of_a_block_under_way_count(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One kernel row for each variable that has moved; all of a first sweep do."""
    monkeypatch.setattr(sdca, "_BLOCK", 16)
    monkeypatch.setattr(sdca, "_HELD", held)
    X, y = zoo.points(150, 6, seed=21)
    case = replace(zoo.problem(X, y, Kernel(RBF, 0.25), np.full(150, 4.0)), bias="none")
    K, beta, moved = oracle.kernel_matrix(case), np.zeros(150), 0
    state = sdca.start(case, sdca.Options(), 1e-9, 3)
    for visits, i in enumerate(rng.permutation(3, 0, 150).tolist(), 1):
        new = np.clip(beta[i] + (y[i] - K[i] @ beta) / K[i, i], min(0.0, 4.0 * y[i]), max(0.0, 4.0 * y[i]))
        moved += new != beta[i]
        beta[i] = new
        if visits in (1, 5, 16, 23, 100, 149):
            progress = sdca.advance(state, visits - state.steps)
            np.testing.assert_allclose(oracle.beta_of(case, sdca.solution(state)), beta, atol=1e-4)
            assert (progress.steps, progress.kernel_evaluations) == (visits, 150 * moved)
