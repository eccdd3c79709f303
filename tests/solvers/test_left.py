"""Long steps that a signal or the time limit ends in the midst: soon, and the solution is then that of before the step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from zoo import named, points, problem

from svmkit import parallel
from svmkit.engine import weighted
from svmkit.problem import LINEAR, Bias, Kernel, Problem, Solution
from svmkit.solvers import newton, newton_ascent
from svmkit.solvers.base import SolverResult, run
from svmkit.trace import Limits, Progress, Status


@pytest.fixture(autouse=True)
def _one_thread() -> object:
    parallel.use_threads(1)
    yield
    parallel.use_threads(0)


class Signal:
    """Comes where ``method`` of ``owner`` is called for the ``number``-th time; ``calls``: how often it has been called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, method: str, number: int) -> None:
        self.calls, self.number = 0, number
        whole = getattr(owner, method)

        def counted(*arguments: Any) -> Any:
            self.calls += 1
            return whole(*arguments)

        monkeypatch.setattr(owner, method, counted)

    def __call__(self) -> bool:
        return self.calls >= self.number


def alike(one: Solution, other: Solution) -> bool:
    """To the bit."""
    own, others = ((each.basis.to_dense().tobytes(), each.coef.tobytes(), each.rho) for each in (one, other))
    return own == others


def solutions_of(solver: Any, monkeypatch: pytest.MonkeyPatch) -> list[Solution]:
    """That before each step of runs to come."""
    seen: list[Solution] = []
    advance = solver.advance

    def step(state: Any, budget: int) -> Progress:
        seen.append(solver.solution(state))
        return advance(state, 1)

    monkeypatch.setattr(solver, "advance", step)
    return seen


# --- the loop -------------------------------------------------------------------------------------------------------------


def stepping(each: Callable[[int], None]) -> Any:
    """A solver of endless steps, the solution's rho how many were taken; ``each(steps before)`` is in the midst of one."""

    def advance(state: SimpleNamespace, budget: int) -> Progress:
        for _ in range(budget):
            with parallel.leavable():
                parallel.run_pieces(lambda piece: each(state.steps), 10)
            state.steps += 1
        return Progress(state.steps, 0)

    return SimpleNamespace(
        **{"EXACT": False, "BIASES": ("free",), "advance": advance},
        start=lambda case, *more: SimpleNamespace(case=case, steps=0),
        solution=lambda state: Solution(state.case.rows.take(np.arange(0)), np.arange(0), np.zeros(0), float(state.steps)),
    )


def test_a_signal_in_the_midst_of_a_step_ends_it() -> None:
    heard, begun = list[Progress](), list[int]()
    found = run(
        stepping(begun.append),
        named("300 rows, rbf"),
        None,
        eps=1e-3,
        interrupted=lambda: begun.count(7) == 4,
        on_progress=lambda seconds, progress: heard.append(progress),
    )
    assert (found.status, found.solution.rho) == (Status.INTERRUPTED, 7.0)
    assert begun.count(7) == 4
    assert found.steps == heard[-1].steps <= 7  # of the calls that ended


def test_the_time_limit_ends_a_step_in_the_midst(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    monkeypatch.setattr("svmkit.clock.time", SimpleNamespace(perf_counter=lambda: float(len(begun))))
    found = run(stepping(begun.append), named("300 rows, rbf"), None, eps=1e-3, limits=Limits(time_limit_s=25.0))
    assert (found.status, found.solution.rho, len(begun)) == (Status.TIME_LIMIT, 2.0, 25)


def test_who_leaves_the_run_ends_its_step_too() -> None:
    """Which is no limit of the run's own: nobody hears of it."""
    begun: list[int] = []
    ended: list[BaseException] = []

    def work() -> SolverResult:
        try:
            return run(stepping(begun.append), named("300 rows, rbf"), None, eps=1e-3)
        except BaseException as error:
            ended.append(error)
            raise

    assert parallel.unless(lambda: len(begun) > 0, work) is None
    while not ended:
        pass
    assert isinstance(ended[0], parallel.Left)


# --- newton ---------------------------------------------------------------------------------------------------------------


def linear_case(n: int, d: int, bias: Bias = "free", C: float = 100.0) -> Problem:
    X, y = points(n, d, seed=n)
    return replace(problem(X, y, Kernel(LINEAR), C), bias=bias)


@pytest.mark.parametrize("number", [1, 30, 60, 100])
def test_a_newton_step_is_left_between_rows_of_its_product(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen rows at a time, of the first product or later ones, which add rows and take rows off."""
    monkeypatch.setattr(weighted, "_VALUES", 16 * 8)
    signal, seen = Signal(monkeypatch, weighted, "_dense", number), solutions_of(newton, monkeypatch)
    found = run(newton, linear_case(600, 8), newton.Options(), eps=1e-9, interrupted=signal)
    assert (found.status, signal.calls, found.steps) == (Status.INTERRUPTED, number, len(seen) - 1)
    assert alike(found.solution, seen[-1])


def test_a_product_that_was_left_is_made_as_if_it_had_not_been(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted, "_VALUES", 16 * 8)
    case, options = linear_case(600, 8), newton.Options()
    plain = run(newton, case, options, eps=1e-9)
    state = newton.start(case, options, 1e-9, 0)
    left = 0
    for number in range(1, 10**6):
        signal = Signal(monkeypatch, weighted, "_dense", number % 50)
        try:
            with parallel.heeding(signal):
                if newton.advance(state, 1).ended:
                    break
        except parallel.Left:
            left += 1
            newton.advance(state, 1)
        monkeypatch.undo()
        monkeypatch.setattr(weighted, "_VALUES", 16 * 8)
    assert left >= 5
    assert alike(newton.solution(state), plain.solution)


def test_ascent_before_newton_ends_with_the_time_and_does_not_depend_on_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    case, options = linear_case(60, 90, C=0.01), newton.Options()
    whole = newton.start(case, options, 1e-6, 0)
    monkeypatch.setattr(newton_ascent, "_VALUES", 7 * 90)
    visit = Signal(monkeypatch, newton_ascent.LinearForm, "visit", 10**6)
    cut = newton.start(case, options, 1e-6, 0)
    assert visit.calls >= 10 * 60 // 7
    assert whole.w.any()
    assert (cut.w.tobytes(), cut.centre.tobytes()) == (whole.w.tobytes(), whole.centre.tobytes())
    visit.calls, visit.number = 0, 30
    with parallel.heeding(visit):
        newton.start(case, options, 1e-6, 0)
    assert visit.calls == 30
