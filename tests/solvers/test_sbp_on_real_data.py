"""How near the optimum sbp comes on 8,000 rows of a9a at C = 1 and, 8 against the rest, 10,000 of MNIST at C = 10."""

from __future__ import annotations

import pytest
from real_data import real

from svmkit import solvers
from svmkit.certificate import certify
from svmkit.problem import Bias
from svmkit.solvers import sbp
from svmkit.solvers.base import run


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize(("data", "C"), [("a9a", 1.0), ("mnist", 10.0)])
def test_the_distance_to_the_optimum_is_small_and_falls(data: str, C: float, bias: Bias) -> None:
    """At most 2 % after 4n steps; and a quarter of the steps leave at least twice as much, as the rate 1/√T asks."""
    case = real(data, C, bias)
    smo = solvers.solver("smo")
    best = run(smo, case, smo.Options(), eps=1e-4).certificate.dual
    state = sbp.start(case, sbp.Options(), 1e-12, 0)
    over = []
    for steps in (case.n // 4, case.n, 4 * case.n):
        while sbp.advance(state, steps - int(state.counts[sbp.level.STEP])).steps < steps:
            pass
        over.append(certify(case, sbp.solution(state)).primal / best - 1)
    assert 0 <= over[2] <= 0.02
    assert over[2] <= over[1] / 2 <= over[0] / 4
