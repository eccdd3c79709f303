"""When a run of block SMO turns to Newton steps, by work and violations made up."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import points, problem

from svmkit.engine.active import ActiveSet, Variables
from svmkit.engine.kernels import Engine
from svmkit.problem import RBF, Kernel
from svmkit.solvers.smo_pace import Pace


@pytest.fixture
def active() -> Variables:
    """Forty variables, a quarter of them free."""
    X, y = points(40, 3, seed=1)
    case = problem(X, y, Kernel(RBF, 0.5), 1.0)
    whole = ActiveSet.of(Engine(case.rows, case.kernel, "f8"), case.dual()).whole
    whole.beta[::4] = 0.5 * case.y[::4]
    return whole


def begun(violation: float) -> Pace:
    pace = Pace(40, 1e-3)
    pace.note(violation)
    return pace


def test_work_on_the_way_to_the_minimum_says_nothing_of_the_pace_there(active: Variables) -> None:
    pace = begun(10.0)
    assert not pace.newton_is_quicker(5.0, 1e15, active)
    assert not pace.newton_is_quicker(0.3, 1e15 + 1e6, active)  # near, for the first time
    assert not pace.newton_is_quicker(0.2, 1e15 + 2e6, active)
    assert pace.newton_is_quicker(0.19, 1.02e15, active)


def test_a_violation_that_grows_again_begins_the_count_anew(active: Variables) -> None:
    pace = begun(10.0)
    assert not pace.newton_is_quicker(0.3, 0.0, active)
    assert not pace.newton_is_quicker(8.0, 1e15, active)
    assert not pace.newton_is_quicker(0.3, 1e15, active)


def test_newton_steps_wait_for_rounds_that_halve_the_violation_slowly(active: Variables) -> None:
    """Ten halvings quicker than a step's cost leave them to rounds; each try asks for more."""
    for each, quicker in ((1e6, False), (1e9, True)):
        pace, work = begun(10.0), 0.0
        for violation in 0.4 * np.exp2(-np.arange(5.0)):
            work += each
            found = pace.newton_is_quicker(float(violation), work, active)
        assert found == quicker
    for _ in range(40):
        pace.newton_was_tried()
    assert not pace.newton_is_quicker(0.4 / 64, work + 1e9, active)


def test_without_free_variables_there_is_nothing_to_solve_for(active: Variables) -> None:
    pace = begun(10.0)
    active.beta[:] = 0.0
    assert not pace.newton_is_quicker(0.3, 0.0, active)
    assert not pace.newton_is_quicker(0.2, 1e15, active)
