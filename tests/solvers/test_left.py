"""Long steps that a signal or the time limit ends in the midst: soon, and the solution is then that of before the step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from zoo import named, noisy, points, problem, unbiased

from svmkit import parallel
from svmkit.certificate import feasible
from svmkit.engine import gram, kernels, weighted
from svmkit.engine.active import ActiveSet
from svmkit.engine.gram import GrowingGram
from svmkit.engine.kernels import Engine
from svmkit.problem import LINEAR, Bias, Kernel, Problem, Solution
from svmkit.solvers import newton, newton_ascent, pegasos, perceptron, sbp, scs, smo, smo_state
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
    own, others = (
        (each.own.to_dense().tobytes(), each.origin.tobytes(), each.coef.tobytes(), each.rho) for each in (one, other)
    )
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
        solution=lambda state: Solution(np.arange(0), np.zeros(0), float(state.steps)),
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


# --- solvers that take many blocks in a call --------------------------------------------------------------------------------


@pytest.mark.parametrize(("solver", "method"), [(pegasos, "_close"), (perceptron, "_open"), (sbp, "_attend")])
def test_a_call_ends_with_the_block_in_which_time_is_up(solver: Any, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step inside a block takes next to no time, so that calls of many blocks are asked for; what is done stays as it is."""
    if solver is not sbp:
        monkeypatch.setattr(solver, "_BLOCK", 16)
    case = unbiased(120, 1.0)
    signal = Signal(monkeypatch, solver, method, 5)
    cut, whole = (solver.start(case, solver.Options(), 1e-9, 0) for _ in range(2))
    with parallel.heeding(signal):
        steps = solver.advance(cut, 10**6).steps
    assert signal.calls == 5
    solver.advance(whole, steps)
    assert alike(solver.solution(cut), solver.solution(whole))
    ends = [(solver.advance(state, 10**6).steps, solver.solution(state)) for state in (cut, whole)]
    assert ends[0][0] == ends[1][0] > steps
    assert alike(ends[0][1], ends[1][1])


def test_a_look_at_the_gap_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose product takes longer than a block does."""
    monkeypatch.setattr(pegasos, "_BLOCK", 16)
    state, whole = (pegasos.start(unbiased(120, 1.0), pegasos.Options(epochs=300), 1e-9, 0) for _ in range(2))
    begun, certify = [False], pegasos.certify

    def look(*arguments: Any) -> Any:
        begun[0] = True
        parallel.stay()
        return certify(*arguments)

    monkeypatch.setattr(pegasos, "certify", look)
    with pytest.raises(parallel.Left), parallel.heeding(lambda: begun[0]):
        pegasos.advance(state, 10**6)
    ends = [pegasos.advance(each, 10**6).steps for each in (state, whole)]
    assert ends[0] == ends[1]
    assert alike(pegasos.solution(state), pegasos.solution(whole))


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


# --- smo ------------------------------------------------------------------------------------------------------------------


def begun_at(case: Problem, steps: int) -> Problem:
    """The problem with what so many steps lead to for its start."""
    limits, alpha = Limits(max_iter=steps), np.zeros(case.n)
    found = run(smo, case, smo.Options(working_set=64), eps=1e-3, limits=limits).solution
    alpha[found.origin] = case.y[found.origin] * found.coef
    return replace(case, start=feasible(case, alpha))


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("C", [3.0, 0.001])
def test_the_first_product_of_a_start_is_left(C: float, bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    """The solution is the start, its rho from some of the rows: free ones, or any where none is, as where C is small."""
    case = begun_at(replace(noisy(C=C), bias=bias), 10**9)
    monkeypatch.setattr(smo_state, "_FEW", 100)
    signal, rounds = Signal(monkeypatch, ActiveSet, "begin", 1), Signal(monkeypatch, ActiveSet, "extremes", 1)
    found = run(smo, case, smo.Options(working_set=64), eps=1e-3, interrupted=signal)
    assert (found.status, signal.calls, rounds.calls, found.steps) == (Status.INTERRUPTED, 1, 0, 0)
    state = smo.start(case, smo.Options(working_set=64), 1e-3, 0)
    state.variables.begin()
    known = smo.solution(state)
    assert case.start is not None
    assert np.array_equal(found.solution.origin, np.flatnonzero(case.start))
    assert np.array_equal(found.solution.coef, (case.y * case.start)[found.solution.origin])
    assert found.solution.rho == pytest.approx(known.rho, abs=0.0 if bias == "none" else 5e-3)
    assert (found.solution.rho != 0) == (bias == "free")


def test_a_start_whose_time_is_up_makes_no_product(monkeypatch: pytest.MonkeyPatch) -> None:
    case = begun_at(noisy(), 3000)
    signal = Signal(monkeypatch, ActiveSet, "begin", 1)
    found = run(smo, case, smo.Options(working_set=64), eps=1e-3, limits=Limits(time_limit_s=0.0))
    assert (found.status, signal.calls) == (Status.TIME_LIMIT, 0)
    assert found.solution.n_support == np.count_nonzero(case.start)


def test_what_was_dropped_is_brought_back_or_left() -> None:
    state = smo.start(noisy(), smo.Options(working_set=64), 1e-3, 0)
    while state.variables.is_whole:
        smo.advance(state, 1000)
    before = smo.solution(state)
    with pytest.raises(parallel.Left), parallel.heeding(lambda: True):
        smo._restore(state)
    assert not state.variables.is_whole
    assert alike(smo.solution(state), before)
    state.variables.restore(state.previous)
    F = state.variables.whole.F.copy()
    smo_state.refresh(state, state.variables.whole.number)
    assert pytest.approx(state.variables.whole.F, abs=1e-5) == F


def test_the_check_at_the_end_can_be_left(monkeypatch: pytest.MonkeyPatch) -> None:
    signal, seen = Signal(monkeypatch, smo_state, "refresh", 1), solutions_of(smo, monkeypatch)
    found = run(smo, noisy(C=1.0, gamma=0.3), smo.Options(working_set=64), eps=1e-3, interrupted=signal)
    assert (found.status, signal.calls) == (Status.INTERRUPTED, 1)
    assert alike(found.solution, seen[-1])


@pytest.mark.parametrize(("longest", "pieces"), [(1 << 28, 4), (600 * kernels.LEAST_COLUMNS // 10, 10), (1, 150)])
def test_a_product_of_many_values_has_more_pieces(longest: int, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than its rows are worth."""
    case = noisy(600)
    engine, columns = Engine(case.rows, case.kernel), np.arange(50)
    whole, cut = np.zeros(600), np.zeros(600)
    engine.apply(engine.packed, columns, np.ones(50), whole)
    monkeypatch.setattr(kernels, "PIECE_VALUES", 1)
    monkeypatch.setattr(kernels, "_PIECES", 4)
    monkeypatch.setattr(kernels, "_LONG_PIECE_VALUES", longest)
    monkeypatch.setitem(kernels.PIECE_NONZEROS, engine.packed.form, len(engine.packed.indices) // 150)
    stays = Signal(monkeypatch, parallel, "stay", 1)
    engine.apply(engine.packed, columns, np.ones(50), cut)
    assert stays.calls == pieces
    assert whole.tobytes() == cut.tobytes()


# --- scs ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("owner", "method"), [(GrowingGram, "extend"), (gram, "_copy")])
@pytest.mark.parametrize("number", [1, 2, 3, 9])  # the first sample; with the ninth it has all examples
def test_an_iteration_of_scs_is_left_where_its_sample_grows(
    owner: Any, method: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while values move to a larger room."""
    signal, seen = Signal(monkeypatch, owner, method, number), solutions_of(scs, monkeypatch)
    found = run(scs, replace(noisy(500, C=0.01), bias="none"), scs.Options(), eps=1e-9, interrupted=signal)
    assert (found.status, signal.calls) == (Status.INTERRUPTED, number)
    assert alike(found.solution, seen[-1])


def test_the_first_sample_comes_with_the_first_iteration() -> None:
    """Nothing listens at the start, and the sample may be as large as all of the data."""
    state = scs.start(replace(noisy(500, C=0.01), bias="none"), scs.Options(first=500), 1e-9, 0)
    assert len(state.gram.rows) == 0
    with pytest.raises(parallel.Left), parallel.heeding(lambda: True):
        scs.advance(state, 1)
    assert scs.solution(state).n_support == 0


def test_values_on_the_move_to_a_larger_room_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gram, "_COPIED", 20)
    room, asked = np.zeros((50, 30)), list[None]()

    def over() -> bool:
        asked.append(None)
        return len(asked) > 7

    with pytest.raises(parallel.Left), parallel.heeding(over), parallel.leavable():
        gram._copy(np.ones((50, 10)), room)
    assert room.sum() == 7 * 20
