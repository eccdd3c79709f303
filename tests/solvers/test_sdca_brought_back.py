"""Dual coordinate ascent where examples set aside come back too late, so that it goes on: against a plain run of sweeps."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import oracle
import pytest
import zoo

from svmkit.data import Floats, Ints
from svmkit.engine import active, kernels, layouts, rng
from svmkit.problem import POLYNOMIAL, Kernel, Problem
from svmkit.solvers import sdca

N, EPS = 300, 0.3


def plain(case: Problem, seed: int, held: int) -> tuple[Floats, int, int, list[int]]:
    """β, visits, kernel values, and how many were active each time that the others came back."""
    K, y = oracle.kernel_matrix(case), case.y
    lower, upper = np.minimum(0.0, y * case.upper), np.maximum(0.0, y * case.upper)
    beta, visits, values, came_back = np.zeros(N), 0, 0, list[int]()
    kept, rows_used = np.arange(N), set[int]()
    drops = list[tuple[Ints, Floats]]()

    def violation(F: Floats, some: Ints) -> float:
        may_rise, may_fall = (beta < upper)[some], (beta > lower)[some]
        return float(max(F[some][may_rise].max(initial=0.0), -F[some][may_fall].min(initial=0.0)))

    for sweep in count():
        for i in kept[rng.permutation(seed, sweep, len(kept))].tolist():
            new = min(max(beta[i] + (y[i] - K[i] @ beta) / K[i, i], lower[i]), upper[i])
            if new != beta[i] and not (len(kept) <= held and i in rows_used):
                values += len(kept)
                rows_used |= {i} if len(kept) <= held else set()
            beta[i], visits = new, visits + 1
        F = y - K @ beta
        if violation(F, kept) <= EPS and len(kept) < N:
            came_back.append(len(kept))
            values += sum(len(number) * np.count_nonzero(beta != then) for number, then in drops)
            kept, drops, rows_used = np.arange(N), [], set()
        if (worst := violation(F, kept)) <= EPS:
            return beta, visits, values + N * np.count_nonzero(beta), came_back
        beyond = np.where(beta == lower, -F, np.where(beta == upper, F, 0.0))[kept]
        if np.count_nonzero(beyond > worst) > active._WORTH * len(kept):
            drops.append((kept[beyond > worst], beta.copy()))
            kept = kept[beyond <= worst]
    raise AssertionError


@pytest.mark.parametrize("held", [24, 140])
def test_it_goes_on_as_a_plain_run_does(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same point, visits and kernel values at the end, whether the kernel block of the last was held or not."""
    monkeypatch.setattr(sdca, "_BLOCK", 16)
    monkeypatch.setattr(sdca, "_HELD", held)
    monkeypatch.setattr(kernels, "suited", lambda *rows_and_kernel: ("f8", layouts.layout_of(*rows_and_kernel, "f8")))
    X, y = zoo.points(N, 6, seed=26)
    upper = np.random.default_rng(5).uniform(0.5, 1.5, N) * 10.0
    case = replace(zoo.problem(X, y, Kernel(POLYNOMIAL, 0.2, 1.0, 2), upper), bias="none")
    beta, visits, values, came_back = plain(case, 0, held)
    assert len(came_back) == 2  # the first time too late
    assert 24 < max(came_back) < 140
    state = sdca.start(case, sdca.Options(momentum=False), EPS, 0)
    progress = sdca.advance(state, 10**9)
    assert progress.done
    assert progress.steps == visits
    assert (
        abs(progress.kernel_evaluations - values) <= 5 * N
    )  # a few moves may be rounding; what comes back takes many times that
    np.testing.assert_allclose(oracle.beta_of(case, sdca.solution(state)), beta, rtol=1e-6, atol=1e-8)
