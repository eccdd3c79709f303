"""sbp's dual point where it has converged; and that neither the size of kernel values nor that of C changes what it finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracle import kernel_matrix
from zoo import points, problem, unbiased

from svmkit.certificate import certify
from svmkit.problem import LINEAR, Kernel
from svmkit.solvers import sbp

EVERY = 10**9


@pytest.mark.parametrize("weighted", [False, True])
def test_what_has_converged_brings_the_dual_point_that_said_so(weighted: bool) -> None:
    """α on the ray of β, in the box, as long as is best there; the gap told is that of the certificate's primal to its dual."""
    upper = np.random.default_rng(2).uniform(0.2, 3.0, 200) / 200 if weighted else np.full(200, 1 / 200)
    case = unbiased(200, upper)
    state = sbp.start(case, sbp.Options(epochs=1000), 0.1, 0)
    progress, found = sbp.advance(state, EVERY), sbp.solution(state)
    assert progress.done
    assert found.alpha is not None
    ray = case.y * found.expansion(case.rows)[1]
    best = ray.sum() / (ray @ (case.y[:, None] * kernel_matrix(case) * case.y) @ ray)
    factor = min(best, (upper[ray > 0] / ray[ray > 0]).min())
    assert found.alpha == pytest.approx(factor * ray, rel=1e-9)
    certificate = certify(case, found)
    assert certificate.gap / certificate.primal == pytest.approx(progress.gap, rel=1e-9)


@pytest.mark.parametrize("scale", [2.0**-80, 2.0**70])
def test_kernel_values_out_of_the_range_of_float32_are_kept_as_they_are(scale: float) -> None:
    """K s² and C/s² are the same problem, whose β is that of the other divided by s²."""
    X, y = points(80, 4, seed=5)
    found = []
    for s in (1.0, scale):
        case = replace(problem(X * s, y, Kernel(LINEAR), 2.0 / s**2), bias="none")
        state = sbp.start(case, sbp.Options(), 1e-12, 3)
        sbp.advance(state, EVERY)
        found.append(sbp.solution(state).expansion(case.rows)[1] * s**2)
    assert found[1] == pytest.approx(found[0], rel=1e-4, abs=1e-5 * np.abs(found[0]).max())


@pytest.mark.parametrize("rows", [126, 127, 128, 129])
def test_rows_evaluated_together_need_not_fill_those_kept(rows: int) -> None:
    """They are 64, so that the last of those kept stay unused, but for 128."""
    case = unbiased(300, 2.0)
    few, all_kept = (sbp.start(case, sbp.Options(cache_mb=mb), 1e-12, 0) for mb in (rows * 300 * 4 / 2**20, 100.0))
    assert len(few.rows.K) == rows
    sbp.advance(few, 600)
    sbp.advance(all_kept, 600)
    assert sbp.solution(few).coef == pytest.approx(sbp.solution(all_kept).coef, rel=1e-9)
