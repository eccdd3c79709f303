"""The solver protocol and the one loop that drives every solver.

A solver module offers ``SUMMARY, PAPER, EXACT, BIASES, Options, supports, start, advance, solution``, and ``ACCURACY`` where it
is not EXACT. It owns the step; ``run`` owns the loop: budgets, clock, limits, interruption, and the certificate at the end.
Results do not depend on how steps are cut into calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol, runtime_checkable

from svmkit._jit import seconds_compiling
from svmkit.certificate import Certificate, certify
from svmkit.errors import UsageError
from svmkit.problem import Bias, Problem, Solution
from svmkit.trace import Limits, Progress, Status, TraceRow

#: A call of ``advance`` should last about this long: short enough for Ctrl-C, long enough to cost nothing.
CALL_S = 0.05


@runtime_checkable
class Solver(Protocol):
    """What a module in this folder offers.

    EXACT: it ends when the KKT violation is at most eps. One that is not ends by its default number of epochs or its own
    tolerance, and states as ``ACCURACY: float | None`` how far its primal objective may then lie above the optimum, relative to
    that, on well-behaved data; None where it minimises something else. BIASES: those it can solve, its default first.
    """

    SUMMARY: str
    PAPER: str
    EXACT: bool
    BIASES: tuple[Bias, ...]
    Options: type[Any]

    def supports(self, problem: Problem) -> str | None:
        """None, or the reason this solver cannot take the problem."""

    def start(self, problem: Problem, options: Any, eps: float, seed: int) -> Any:
        """A fresh state; its solution is valid already."""

    def advance(self, state: Any, budget: int) -> Progress:
        """At most ``budget`` more steps, in place; none once it has ended."""

    def solution(self, state: Any) -> Solution:
        """The solution so far, after any step, leaving the state as it is. Only an exact solver's need be dual feasible."""


@dataclass(frozen=True)
class SolverResult:
    """What a run ends with. ``seconds`` is the fit alone; ``report`` what ``report(state)`` says where a solver has that."""

    solution: Solution
    status: Status
    certificate: Certificate
    steps: int
    kernel_evaluations: int
    seconds: float
    trace: tuple[TraceRow, ...] = ()
    report: Any = None


def options_of(solver: Solver, given: tuple[tuple[str, str], ...], **defaults: Any) -> Any:
    """The solver's Options from ``-O key=value`` texts; ``defaults`` fill fields of the same name (``cache_mb`` …).

    Raises UsageError for an unknown key or a value that does not read as the field's type.
    """
    known = {f.name: f for f in fields(solver.Options)}
    values = {name: value for name, value in defaults.items() if name in known}
    for key, text in given:
        if key not in known:
            names = ", ".join(known) or "none"
            raise UsageError(f"-O {key}={text}: this solver has no option {key!r}; it has {names}")
        values[key] = _read_as(type(known[key].default), key, text)
    return solver.Options(**values)


def _read_as(kind: type, key: str, text: str) -> Any:
    try:
        if kind is bool:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.lower()]
        return kind(text)
    except (KeyError, ValueError):
        raise UsageError(f"-O {key}={text}: {text!r} is not a {kind.__name__}") from None


def run(
    solver: Solver,
    problem: Problem,
    options: Any,
    *,
    eps: float,
    seed: int = 0,
    limits: Limits = Limits(),
    interrupted: Callable[[], bool] = lambda: False,
    on_progress: Callable[[float, Progress], None] | None = None,
    on_trace: Callable[[TraceRow], None] | None = None,
    holdout_error: Callable[[Solution], float] | None = None,
) -> SolverResult:
    """Runs ``solver`` until it is done, a limit is reached or ``interrupted()`` says so.

    ``on_progress(seconds, progress)`` sees every call's progress, ``on_trace`` rows on a schedule that grows by √2 in time,
    with primal, dual and violation recomputed and that time taken off the clock. Raises UsageError where the solver declines.
    """
    reason = solver.supports(problem)
    if reason is not None:
        raise UsageError(reason)
    clock = _Clock()
    recorder = _Recorder(problem, on_trace, holdout_error)
    state = solver.start(problem, options, eps, seed)
    budget, progress = 1, Progress(0, 0)
    while True:
        allowed = budget if limits.max_iter is None else min(budget, limits.max_iter - progress.steps)
        began = clock.seconds()
        progress = solver.advance(state, allowed)
        now = clock.seconds()
        if on_progress is not None:
            on_progress(now, progress)
        status = _status(progress, now, limits, interrupted)
        if status is not None:
            break
        with clock.stopped():
            recorder.maybe(now, progress, lambda: solver.solution(state))
        if now - began < CALL_S / 2:
            budget *= 2
        elif now - began > CALL_S * 2:
            budget = max(1, budget // 2)
    found = solver.solution(state)
    seconds = clock.seconds()
    certificate = certify(problem, found)
    if status is Status.CONVERGED and solver.EXACT and not certificate.violation <= eps + certificate.noise:
        status = Status.STALLED  # by the solver's own arithmetic it was done; the fresh kernel values do not bear it out
    recorder.record(seconds, progress, found, certificate)
    return SolverResult(
        solution=found,
        status=status,
        certificate=certificate,
        steps=progress.steps,
        kernel_evaluations=progress.kernel_evaluations,
        seconds=seconds,
        trace=tuple(recorder.rows),
        report=solver.report(state) if hasattr(solver, "report") else None,
    )


def _status(progress: Progress, now: float, limits: Limits, interrupted: Callable[[], bool]) -> Status | None:
    if progress.done:
        return Status.CONVERGED
    if progress.completed:
        return Status.COMPLETED
    if progress.stalled:
        return Status.STALLED
    if interrupted():
        return Status.INTERRUPTED
    if limits.max_iter is not None and progress.steps >= limits.max_iter:
        return Status.MAX_ITER
    if limits.time_limit_s is not None and now >= limits.time_limit_s:
        return Status.TIME_LIMIT
    return None


class _Clock:
    """Seconds since it was made, less compiling and what went on inside ``stopped()``."""

    def __init__(self) -> None:
        self._start = time.perf_counter() - seconds_compiling()

    def seconds(self) -> float:
        return time.perf_counter() - seconds_compiling() - self._start

    def stopped(self) -> _Stopped:
        return _Stopped(self)


class _Stopped:
    def __init__(self, clock: _Clock) -> None:
        self._clock = clock

    def __enter__(self) -> None:
        self._since = self._clock.seconds()

    def __exit__(self, *_: object) -> None:
        self._clock._start += self._clock.seconds() - self._since


class _Recorder:
    """Trace rows on a schedule that doubles in time, so that curves are even on a log axis."""

    def __init__(
        self,
        problem: Problem,
        on_trace: Callable[[TraceRow], None] | None,
        holdout_error: Callable[[Solution], float] | None,
    ) -> None:
        self.problem = problem
        self.on_trace = on_trace
        self.holdout_error = holdout_error
        self.rows: list[TraceRow] = []
        self.next_s = 0.0

    def maybe(self, now: float, progress: Progress, solution: Callable[[], Solution]) -> None:
        if self.on_trace is None or now < self.next_s:
            return
        found = solution()
        self.record(now, progress, found, certify(self.problem, found))
        self.next_s = max(now * 2**0.5, now + CALL_S)

    def record(self, now: float, progress: Progress, found: Solution, certificate: Certificate) -> None:
        if self.on_trace is None:
            return
        row = TraceRow(
            seconds=now,
            steps=progress.steps,
            kernel_evaluations=progress.kernel_evaluations,
            primal=certificate.primal,
            dual=certificate.dual,
            violation=certificate.violation,
            holdout_error=self.holdout_error(found) if self.holdout_error is not None else float("nan"),
            n_support=found.n_support,
        )
        self.rows.append(row)
        self.on_trace(row)
