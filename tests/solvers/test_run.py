"""The loop that drives every solver: when it stops, what it returns, what it records; on a solver that follows a script."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from zoo import named, problem

from svmkit import clock as clock_module
from svmkit.certificate import Certificate, certify
from svmkit.problem import POLYNOMIAL, SIGMOID, Kernel, Problem, Solution, as_expansion
from svmkit.solvers import base, looks, solver
from svmkit.solvers.base import SolverResult
from svmkit.trace import Limits, Progress, Status, TraceRow

CASE = named("300 rows, rbf")


class Clock:
    """Stands in for the module ``time``: passes only when told."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def perf_counter(self) -> float:
        return self.now_s


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(clock_module, "time", found)
    monkeypatch.setattr(clock_module, "seconds_compiling", lambda: 0.0)
    return found


@dataclass
class State:
    problem: Problem
    steps: int = 0


def ten_a_step(steps: int) -> int:
    return 10 * steps


def more_and_more(steps: int) -> int:
    return steps * (steps + 1) // 2


def in_rounds(steps: int) -> int:
    return 500 * (1 + steps // 50)


def scripted(
    spent: Callable[[int], int] = ten_a_step,
    end: int = 10**6,
    clock: Clock | None = None,
    start_s: float = 0.0,
    step_s: float = 0.0,
    single: int = 0,
    done: bool = False,
) -> Any:
    """A solver that has spent so many kernel evaluations after so many steps; its solution has rho = steps taken.

    The first ``single`` calls take a step each, whatever they are allowed, and no time. In the end it is ``done`` or completed.
    """

    def start(problem: Problem, options: Any, eps: float, seed: int) -> State:
        if clock is not None:
            clock.now_s += start_s
        return State(problem)

    def advance(state: State, budget: int) -> Progress:
        assert budget >= 1
        taken = 1 if state.steps < single else min(budget, end - state.steps)
        state.steps += taken
        if clock is not None and state.steps > single:
            clock.now_s += taken * step_s
        ended = state.steps == end
        return Progress(state.steps, spent(state.steps), done=ended and done, completed=ended and not done)

    def solution(state: State) -> Solution:
        nobody = np.empty(0, np.int64)
        return Solution(nobody, np.empty(0), float(state.steps))

    return SimpleNamespace(EXACT=False, BIASES=("free", "none"), start=start, advance=advance, solution=solution)


def go(solver: Any, limits: Limits = Limits(), **more: Any) -> SolverResult:
    return base.run(solver, CASE, None, eps=1e-3, limits=limits, **more)


def test_a_fixed_budget_ends_completed() -> None:
    result = go(scripted(end=777))
    assert (result.status, result.steps, result.solution.rho) == (Status.COMPLETED, 777, 777.0)


def test_what_a_run_held_is_gone_before_its_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be most of the memory there is."""
    solver, states, left = scripted(end=5), [], []
    start, certificate = solver.start, base.Looks.certificate

    def noted(*how: Any) -> State:
        state: State = start(*how)
        states.append(weakref.ref(state))
        return state

    def looked(*how: Any) -> Any:
        left.append(states[0]())
        return certificate(*how)

    solver.start = noted
    monkeypatch.setattr(base.Looks, "certificate", looked)
    assert go(solver).steps == 5
    assert left == [None]


@pytest.mark.parametrize(
    ("case", "status"),
    [
        (CASE, Status.STALLED),
        (replace(CASE, upper=np.full(CASE.n, 1e-9), bias="none"), Status.CONVERGED),
        (replace(CASE, kernel=Kernel(SIGMOID, 1.0), bias="none"), Status.COMPLETED),
    ],
    ids=["far away", "at the optimum", "no gap"],
)
def test_a_solver_that_goes_by_its_gap_is_held_to_the_certificates(case: Problem, status: Status) -> None:
    """It says that it is done, at f = 0; with an indefinite kernel that is neither true nor untrue."""
    solver = scripted(end=3, done=True)
    solver.solution = lambda state: as_expansion(np.zeros(case.n), 0.0, alpha=case.upper)
    result = base.run(solver, case, None, eps=1e-3)
    assert result.status is status
    assert (result.certificate.gap <= 1e-3 * result.certificate.primal) == (status is Status.CONVERGED)


def test_the_iteration_limit_is_exact() -> None:
    result = go(scripted(), Limits(max_iter=1234))
    assert (result.status, result.steps) == (Status.MAX_ITER, 1234)


@pytest.mark.parametrize("most", [1, 10, 95, 1000, 99_999])
@pytest.mark.parametrize("spent", [ten_a_step, more_and_more, in_rounds])
def test_kernel_evaluations_are_passed_by_a_hundredth_or_one_step(most: int, spent: Callable[[int], int]) -> None:
    result = go(scripted(spent), Limits(max_evaluations=most))
    assert result.status is Status.MAX_EVALUATIONS
    assert result.kernel_evaluations == spent(result.steps) >= most
    enough = next(steps for steps in range(1, 10**6) if spent(steps) >= most)
    assert enough <= result.steps <= max(enough, 1 + 1.01 * enough)


def test_where_evaluations_run_out_does_not_depend_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = set()
    for call_s in (1e-9, 0.05, 1e9):
        monkeypatch.setattr(base, "CALL_S", call_s)
        steps.add(go(scripted(), Limits(max_evaluations=12_345)).steps)
    assert len(steps) == 1


@pytest.mark.parametrize("step_s", [1e-6, 1e-3, 0.04])
def test_the_time_limit_counts_the_start_and_is_passed_by_one_call_at_most(clock: Clock, step_s: float) -> None:
    result = go(scripted(clock=clock, start_s=0.2, step_s=step_s), Limits(time_limit_s=1.0))
    assert result.status is Status.TIME_LIMIT
    assert 1.0 <= result.seconds <= 1.0 + 2 * base.CALL_S
    assert result.seconds == pytest.approx(0.2 + step_s * result.steps)


def test_calls_that_took_fewer_steps_than_allowed_allow_the_next_no_more(clock: Clock) -> None:
    """Steps of scs take a call each while its sample grows; what comes then is not like them."""
    result = go(scripted(clock=clock, step_s=0.01, single=30), Limits(time_limit_s=1.0))
    assert result.status is Status.TIME_LIMIT
    assert result.seconds <= 1.0 + 64 * 0.01  # the first call of the long steps is one of quick ones


def test_a_start_longer_than_the_limit_still_gives_a_step(clock: Clock) -> None:
    result = go(scripted(clock=clock, start_s=3.0, step_s=0.01), Limits(time_limit_s=1.0))
    assert (result.status, result.steps) == (Status.TIME_LIMIT, 1)


@pytest.mark.parametrize(
    ("limits", "stopped", "status"),
    [(Limits(time_limit_s=0.0), False, Status.TIME_LIMIT), (Limits(), True, Status.INTERRUPTED)],
)
def test_a_solver_does_not_start_where_the_time_is_up_before(limits: Limits, stopped: bool, status: Status) -> None:
    """As hundreds of machines may be left after the limit, or after Ctrl-C. What comes is f = 0, but for a given start."""
    solver = scripted()
    started = solver.start
    starts: list[Problem] = []
    solver.start = lambda problem, *more: (starts.append(problem), started(problem, *more))[1]
    found = go(solver, limits, interrupted=lambda: stopped)
    assert (found.status, found.steps, found.seconds, starts) == (status, 0, 0.0, [])
    assert (found.solution.n_support, found.solution.rho) == (0, 0.0)
    assert found.certificate.primal == found.certificate.gap == CASE.upper.sum()
    begun = replace(CASE, start=np.zeros(CASE.n))
    assert base.run(solver, begun, None, eps=1e-3, limits=limits, interrupted=lambda: stopped).status is status
    assert starts == [begun]


def test_calls_stay_short_after_many_that_were_cut_for_other_reasons(clock: Clock) -> None:
    longest = before = 0.0

    def heard(seconds: float, progress: Progress) -> None:
        nonlocal longest, before
        longest, before = max(longest, seconds - before), seconds

    solver = scripted(clock=clock, step_s=1e-5, end=10**6)
    go(solver, Limits(patience=10**6), on_progress=heard, holdout_error=lambda found: 0.0)
    assert 0.5 * base.CALL_S <= longest <= 2 * base.CALL_S


# --- held-out error -------------------------------------------------------------------------------------------------------


def marks(n: int, most: int) -> list[int]:
    """Where the held-out error is asked for: n/16 steps, then √2 times as many."""
    found = [max(1, n // 16)]
    while found[-1] < most:
        found.append(max(found[-1] + 1, int(found[-1] * 2**0.5)))
    return found


@pytest.mark.parametrize("patience", [1, 2, 5])
@pytest.mark.parametrize("best", [18, 100, 1000])
def test_patience_ends_at_the_kth_point_after_the_lowest_error_and_returns_that(patience: int, best: int) -> None:
    asked: list[int] = []

    def error(found: Solution) -> float:
        asked.append(int(found.rho))
        return abs(found.rho - best)

    result = go(scripted(), Limits(patience=patience), holdout_error=error)
    points = marks(CASE.n, 10**6)
    lowest = min(points, key=lambda steps: abs(steps - best))
    last = points[points.index(lowest) + patience]
    assert asked == points[: points.index(last) + 1]
    assert (result.status, result.steps, result.solution.rho) == (Status.EARLY_STOP, last, lowest)
    assert result.certificate == certify(CASE, result.solution)


def test_where_patience_ends_does_not_depend_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = set()
    for call_s in (1e-9, 0.05, 1e9):
        monkeypatch.setattr(base, "CALL_S", call_s)
        result = go(scripted(), Limits(patience=2), holdout_error=lambda found: abs(found.rho - 500))
        steps.add((result.steps, result.solution.rho))
    assert len(steps) == 1


def test_an_equal_error_is_no_lower_one() -> None:
    result = go(scripted(), Limits(patience=3), holdout_error=lambda found: 0.25)
    assert (result.status, result.solution.rho) == (Status.EARLY_STOP, marks(CASE.n, 1)[0])


@pytest.mark.parametrize("error", [lambda found: nan, lambda found: -found.rho], ids=["unknown", "always lower"])
def test_patience_does_not_end_what_still_improves_or_is_not_known(error: Callable[[Solution], float]) -> None:
    result = go(scripted(end=3000), Limits(patience=1), holdout_error=error)
    assert (result.status, result.solution.rho) == (Status.COMPLETED, 3000.0)


def test_patience_without_an_error_ends_nothing() -> None:
    assert go(scripted(end=3000), Limits(patience=1)).status is Status.COMPLETED


def test_without_patience_the_error_is_only_recorded() -> None:
    rows: list[TraceRow] = []
    result = go(scripted(end=3000), on_trace=rows.append, holdout_error=lambda found: found.rho)
    assert result.status is Status.COMPLETED
    assert [row.holdout_error for row in rows] == [row.steps for row in rows]


# --- trace ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start_s", [0.0, 0.5])
def test_rows_are_even_in_logarithms_and_recording_is_off_the_clock(clock: Clock, start_s: float) -> None:
    def slow(found: Solution) -> float:
        clock.now_s += 100.0
        return 0.5

    rows: list[TraceRow] = []
    solver = scripted(clock=clock, start_s=start_s, step_s=1e-4, end=50_000)
    result = go(solver, on_trace=rows.append, holdout_error=slow)
    seconds = np.array([row.seconds for row in rows])
    evaluations = np.array([row.kernel_evaluations for row in rows])
    later, more = seconds[1:] / seconds[:-1], evaluations[1:] / evaluations[:-1]
    assert ((later >= 2**0.5 * (1 - 1e-9)) | (more >= 2))[:-1].all()
    assert (later <= 2 + 2 * base.CALL_S / seconds[:-1]).all()
    assert (more[evaluations[:-1] < 1000] <= 4).all()
    assert seconds[-1] == result.seconds == pytest.approx(start_s + 5.0)
    assert rows[-1].steps == 50_000


def test_a_row_is_the_certificate_of_that_moment() -> None:
    rows: list[TraceRow] = []
    go(scripted(end=50), on_trace=rows.append)
    nobody = np.empty(0, np.int64)
    assert len(rows) > 2
    for row in rows:
        found = Solution(nobody, np.empty(0), float(row.steps))
        certificate = certify(CASE, found)
        assert (row.primal, row.dual, row.violation) == (certificate.primal, certificate.dual, certificate.violation)
        assert row.kernel_evaluations == 10 * row.steps


@pytest.mark.parametrize("name", ["wolfe", "scs", "sbp", "pair"])
def test_kernel_values_that_overflow_raise_no_warnings(name: str) -> None:
    X = np.array([[16334.0, -0.5], [1.4, 0.1], [23.1, 0.6]])
    module = solver(name)
    case = problem(X, np.array([-1.0, 1.0, -1.0]), Kernel(POLYNOMIAL, 0.01, 0.0, 100), C=0.001)
    result = base.run(module, replace(case, bias=module.BIASES[0]), module.Options(), eps=1e-3)
    assert np.isnan(result.certificate.gap)


@pytest.mark.parametrize(("by", "real"), [("clock", "f4"), ("signal", "f4"), ("steps", "f8")])
def test_of_a_run_cut_short_the_certificate_is_quick(by: str, real: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """From float32 kernel values; where the steps were counted nobody waits."""
    asked: list[str] = []
    whole = looks.certify

    def noted(problem: Problem, found: Solution, precision: Any = "f8") -> Certificate:
        asked.append(precision)
        return whole(problem, found, precision)

    monkeypatch.setattr(looks, "certify", noted)
    limits = {"clock": Limits(time_limit_s=1.0), "steps": Limits(max_iter=100)}.get(by, Limits())
    go(scripted(clock=clock, step_s=0.01), limits, interrupted=lambda: by == "signal" and clock.now_s >= 1.0)
    assert asked == [real]


def test_calls_become_shorter_where_steps_become_longer(clock: Clock) -> None:
    """So a signal is heard soon: calls of steps that take ten times as long are too long a few times only."""
    lengths: list[float] = []
    slow = scripted(clock=clock, end=30_000)
    advance = slow.advance

    def slower(state: State, budget: int) -> Progress:
        before = state.steps
        progress: Progress = advance(state, budget)
        lengths.append((progress.steps - before) * (1e-5 if before < 10_000 else 1e-3))
        clock.now_s += lengths[-1]
        return progress

    slow.advance = slower
    go(slow)
    assert max(lengths[-10:]) < 0.2
