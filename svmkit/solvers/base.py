"""The solver protocol and the one loop that drives every solver.

A solver module offers ``SUMMARY, PAPER, EXACT, BIASES, Options, start, advance, solution``, and ``ACCURACY`` where it is not
EXACT. It owns the step; ``run`` owns the loop: budgets, clock, limits, interruption, and the certificate at the end.
Results do not depend on how steps are cut into calls. ``OnlineSolver`` is what a module offers that can learn from a stream;
svmkit/machines.py drives it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite, isnan
from typing import Any, NamedTuple, Protocol

import numpy as np

from svmkit import parallel
from svmkit.certificate import UNKNOWN, Certificate, Certificates, certify_nothing
from svmkit.clock import Clock
from svmkit.data import Bools, Floats, Ints, Rows
from svmkit.engine.packed import training_precision
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, PRECOMPUTED, RBF, Bias, Kernel, Problem, Solution, Stream, as_expansion
from svmkit.solvers.looks import Looks
from svmkit.solvers.stops import Patience, Stops, of_a_gap, verdict
from svmkit.trace import Limits, Progress, Status, TraceRow

#: A call of ``advance`` should last about this long: short enough for Ctrl-C, long enough to cost nothing.
CALL_S = 0.05
#: f = 0.
_NOTHING = as_expansion(np.zeros(0), 0.0)


class Solver(Protocol):
    """What a module in this folder offers.

    EXACT: it ends when the KKT violation is at most eps. One that is not ends by its default number of epochs or its own
    tolerance, and states as ``ACCURACY: float | None`` how far its primal objective may then lie above the optimum, relative to
    that, on well-behaved data; None where it minimises something else. BIASES: those it can solve, its default first.
    ``WARM = True``: it begins at ``problem.start``; one that does not say so cannot. ``ALONE = True``: most of its time is
    spent in Python, where machines side by side would wait for one another. It may offer ``together`` (see Together),
    ``supports(problem)``: None, or the reason it cannot take a problem other than for its bias, and ``report(state)``: what
    there is to say of a run that has ended beside what every solver says.
    """

    SUMMARY: str
    PAPER: str
    EXACT: bool
    BIASES: tuple[Bias, ...]
    Options: type[Any]

    def start(self, problem: Problem, options: Any, eps: float, seed: int) -> Any:
        """A fresh state; its solution is valid already."""

    def advance(self, state: Any, budget: int) -> Progress:
        """At most ``budget`` more steps, in place; none once it has ended.

        What lasts far longer than a call should is done inside ``parallel.leavable()``, where Left may end it: ``solution`` is
        then the one before.
        """

    def solution(self, state: Any) -> Solution:
        """The solution so far, after any step, leaving the state as it is. Only an exact solver's need be dual feasible."""


class OnlineSolver(Solver, Protocol):
    """A solver that also learns from a stream. A state of its own making serves ``extend``, ``progress`` and ``solution``.

    It has no rows to point at, so its basis rows are its own. It may offer ``finish(state, budget) → Progress``, the work of at
    most ``budget`` steps once no more examples come, until ``Progress.ended``; the solution is valid before. Also
    ``begin_pass(state)``, where it has to know that the examples come again, from the first; and ``resume(state, problem)``,
    by which a fresh state goes on from ``problem.start``, with ``problem.upper`` as the C of these examples, which do not come.
    """

    def start_stream(self, stream: Stream, options: Any, eps: float, seed: int) -> Any:
        """A fresh state. Raises UsageError for a stream or an option that it cannot take."""

    def extend(self, state: Any, rows: Rows, y: Floats, weight: Floats) -> Floats:
        """Learns the examples in the order given, ``y`` ±1 (k,), ``weight`` > 0 (k,) times C.

        Returns (k,) f(x) of each by the solution just before that example was learned. How a stream is cut into calls makes no
        difference to any bit of the state. Later rows may have more features than the first.
        """

    def progress(self, state: Any) -> Progress:
        """Examples learned (and steps of ``finish``), kernel values used, size of the basis; takes no time to speak of."""


class Several(NamedTuple):
    """Machines one after another, each with its classes, the first of them positive, and where its examples begin (k + 1,); the
    row that each example is, its y = ±1 and its C_i.
    """

    positive: Ints
    negative: Ints
    starts: Ints
    examples: Ints
    y: Floats
    upper: Floats

    @property
    def sizes(self) -> Ints:
        """Examples of each, (k,)."""
        return np.diff(self.starts)

    def part(self, first: int, last: int) -> Several:
        """Machines first … last − 1."""
        here, starts = slice(self.starts[first], self.starts[last]), self.starts[first : last + 1]
        classes = self.positive[first:last], self.negative[first:last]
        return Several(*classes, starts - starts[0], self.examples[here], self.y[here], self.upper[here])


class SeveralEnded(NamedTuple):
    """How machines trained together ended: which ``converged`` (k,), β of each example, and of each machine its rho,
    certificate, steps and kernel evaluations. Of one that did not converge the rest means nothing: ``run`` is to train it.
    """

    converged: Bools
    beta: Floats
    rho: Floats
    certificates: Certificates
    steps: Ints
    evaluations: Ints

    def part(self, starts: Ints, first: int, last: int) -> SeveralEnded:
        """Machines first … last − 1, where ``starts`` (k + 1,) are those of the machines."""
        some = slice(first, last)
        certificates = Certificates(*(figures[some] for figures in self.certificates))
        beta, counts = self.beta[starts[first] : starts[last]], (self.steps[some], self.evaluations[some])
        return SeveralEnded(self.converged[some], beta, self.rho[some], certificates, *counts)


class Together(Protocol):
    """Machines among the same rows, trained several in a call.

    A solver may offer it as ``together(rows, kernel, options, sizes, fewer) → Together | None``, None where machines of
    ``sizes`` examples, ``fewer`` in the smaller class, gain nothing. ``K`` (n, n) are the kernel values of all rows, where it
    has made them.
    """

    K: Floats | None

    def work(self, n: int, fewer: int) -> float:
        """The work of training a machine of ``n`` examples so, ``fewer`` in its smaller class, by a high guess, some 2.5 ns a
        unit; inf where it cannot be.
        """

    def train(self, machines: Several, bias: Bias, eps: float, max_iter: int | None) -> SeveralEnded | None:
        """As ``run`` would have ended with the first of them, those begun within a twentieth of a second, at least one; None
        where ``run`` is to find that out for all.
        """


@dataclass(frozen=True)
class SolverResult:
    """What a run ends with; the solution is without its responses. ``seconds`` is the fit alone; ``report`` what
    ``report(state)`` says where a solver has that.
    """

    solution: Solution
    status: Status
    certificate: Certificate
    steps: int
    kernel_evaluations: int
    seconds: float
    trace: tuple[TraceRow, ...] = ()
    report: Any = None


def needs_map(name: str, kernel: Kernel) -> str:
    """Why solver ``name``, which works on w itself, cannot take a kernel, and what would do."""
    if kernel.kind == PRECOMPUTED:
        return f"solver {name} works on w itself, and a precomputed kernel has no feature map; use --solver smo"
    maps = "--map nystroem or --map fourier" if kernel.kind == RBF else "--map nystroem"
    return (
        f"solver {name} works on w itself, so for the {kernel.name} kernel it needs a feature map in front: {maps}; or use -t 0"
    )


def lam_of_stream(name: str, stream: Stream) -> float:
    """λ of a stream that solver ``name`` learns on w itself. Raises UsageError for a kernel, or where λ is not known."""
    if stream.kernel.kind != LINEAR:
        raise UsageError(f"solver {name} learns a stream on w itself: with -t 0, or of the rbf kernel with --map fourier")
    if stream.lam is None:
        raise UsageError(f"solver {name} needs λ before the stream begins: give --lambda, or -c with --rows N")
    return stream.lam


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
        value = kind(text if text.isascii() and "_" not in text else "")
    except (KeyError, ValueError):
        wanted = {bool: "1 or 0", int: "an integer"}.get(kind, "a number")
        raise UsageError(f"-O {key}={text}: {text!r} is not {wanted}") from None
    if kind is int and abs(value) >= 2**63:
        raise UsageError(f"-O {key}={text}: must be below 2^63 in size")
    if kind is float and isnan(value):
        raise UsageError(f"-O {key}={text}: is no number")
    if key == "cache_mb" and not 0 < value <= 1e12:
        raise UsageError(f"-O {key}={text}: must be greater than 0 and at most 1e12")
    return value


def refusal(solver: Solver, problem: Problem) -> str | None:
    """None, or why the solver cannot take the problem."""
    if problem.bias not in solver.BIASES:
        return refused_bias(solver.BIASES)
    return solver.supports(problem) if hasattr(solver, "supports") else None


def refused_bias(biases: Sequence[Bias]) -> str:
    """What is said of a solver, behind its name, that has ``biases`` where another is asked for."""
    return f"it trains {'with' if 'free' in biases else 'without'} a bias only: use --bias {biases[0]}, or another solver"


@np.errstate(over="ignore", invalid="ignore")  # where kernel values overflow, as the certificate then tells
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
    """Runs ``solver`` until it has ended, a limit is reached or ``interrupted()`` says so.

    ``on_progress(seconds, progress)`` sees every call's progress; ``on_trace`` a row wherever time has grown by √2 or kernel
    evaluations by 2, with primal, dual and violation recomputed and that time taken off the clock. The clock runs while the
    solver starts and makes its solution; the certificate at the end is off it, and for a run cut short by clock or signal
    comes from float32 kernel values where the data allow it; where it takes long it is given up once ``interrupted()``. Where
    the time is up before it begins (a limit of 0 s, as earlier machines may leave it, or ``interrupted()``), the run ends with
    f = 0 and the solver is not called; of a problem with a start, with that and no steps.

    With ``limits.patience`` K, ``holdout_error`` is asked after n/16 steps and whenever there are √2 times as many. K points
    without an error below the lowest end the run, and its solution is that of the lowest. Where this and ``max_evaluations``
    end it depends on counts of steps alone, so it is the same on every machine. Raises UsageError where the solver declines.
    """
    if reason := refusal(solver, problem):
        raise UsageError(reason)
    now, progress = 0.0, Progress(0, 0)

    def given_up() -> bool:
        """Asked while a look takes long, which time limits are not for; what is told goes on meanwhile."""
        if on_progress is not None:
            on_progress(now, progress)
        return interrupted()

    looks = Looks(problem, on_trace, holdout_error, given_up)
    stops = Stops(limits, interrupted)
    status = stops.given_up(0.0)
    if status is not None and problem.start is None:  # hundreds of machines may be left when time is up
        return _not_begun(problem, status, looks)
    clock = Clock()

    def over() -> bool:
        """Asked in the midst of the solver's long steps."""
        return stops.given_up(clock.seconds()) is not None

    with parallel.heeding(over):
        state = solver.start(problem, options, eps, seed)
    watch = Patience(limits.patience, None if holdout_error is None else looks.error, problem.n)
    budget = _Budget(even=on_trace is not None)
    while status is None:
        allowed = min(budget.steps, stops.steps_left(progress.steps), watch.steps_left(progress.steps))
        began, before = clock.seconds(), progress.steps
        progress = _advanced(solver, state, allowed, progress, over)
        now = clock.seconds()
        if on_progress is not None:
            on_progress(now, progress)
        status = stops.status(progress, now)
        if status is not None:
            break
        with clock.stopped():
            looks.maybe(now, progress, lambda: solver.solution(state))
            if watch.is_over(progress.steps, lambda: solver.solution(state)):
                status = Status.EARLY_STOP
                break
        budget.heed(allowed, progress.steps - before, now - began)
    best = watch.best if status is Status.EARLY_STOP else None
    found = best or solver.solution(state)
    report = solver.report(state) if hasattr(solver, "report") else None
    seconds = clock.seconds()
    state = None  # its memory is the certificate's
    looks.begin_last()
    found, certificate, status = _judged(problem, found, status, looks)
    looks.record(seconds, progress, found, certificate)
    return SolverResult(
        solution=replace(found, responses=None),
        status=verdict(status, certificate, eps, problem.upper) if solver.EXACT else of_a_gap(status, certificate, eps),
        certificate=certificate,
        steps=progress.steps,
        kernel_evaluations=progress.kernel_evaluations,
        seconds=seconds,
        trace=tuple(looks.rows),
        report=report,
    )


def _advanced(solver: Solver, state: Any, allowed: int, progress: Progress, over: Callable[[], bool]) -> Progress:
    """The progress after at most ``allowed`` more steps; as it was, ``progress``, where a long one was left as time was up."""
    try:
        with parallel.heeding(over):
            return solver.advance(state, allowed)
    except parallel.Left:
        if not over():
            raise
        return progress


class _Budget:
    """Steps that a call may take, so many that it lasts ``CALL_S``. It doubles at most where it is to grow ``even``ly: a trace
    has a row wherever work has doubled.
    """

    def __init__(self, even: bool) -> None:
        self.steps = 1
        self._even = even

    def heed(self, allowed: int, taken: int, call_s: float) -> None:
        """The next call's, after one that took ``taken`` of ``allowed`` steps and ``call_s`` seconds."""
        if call_s > CALL_S * 2:
            self.steps = max(1, allowed // 2)
        elif call_s < CALL_S / 2 and allowed == self.steps:
            growth = 2 if self._even else _growth(call_s)
            self.steps = growth * min(self.steps, max(1, taken))  # fewer where the next ones are not like these


def _growth(call_s: float) -> int:
    """How many times longer the next call may be than one of ``call_s``: machines by the hundred end within a few calls."""
    return 64 if call_s < CALL_S / 256 else 8 if call_s < CALL_S / 16 else 2


def _judged(problem: Problem, found: Solution, status: Status, looks: Looks) -> tuple[Solution, Certificate, Status]:
    """A run's solution with its certificate, and why it ended: interrupted where nobody waited for the certificate."""
    if not _in_numbers(found):  # kernel values overflowed, of which a gap of nan tells the user; f = 0 can be written and read
        return _NOTHING, UNKNOWN, status
    in_a_hurry = status in (Status.TIME_LIMIT, Status.INTERRUPTED)
    certificate = looks.certificate(found, training_precision(problem.rows, problem.kernel) if in_a_hurry else "f8")
    if certificate is None:  # given up, and the model wanted all the same
        return found, UNKNOWN, Status.INTERRUPTED
    return found, certificate, status


def _not_begun(problem: Problem, status: Status, looks: Looks) -> SolverResult:
    certificate = certify_nothing(np.array([0]), problem.y, problem.upper, problem.kernel, problem.bias).of(0)
    looks.record(0.0, Progress(0, 0), _NOTHING, certificate)
    return SolverResult(_NOTHING, status, certificate, 0, 0, 0.0, tuple(looks.rows))


def not_begun(machines: Several, kernel: Kernel, bias: Bias) -> SeveralEnded:
    """How machines that nobody waits for are left: f = 0."""
    k, starts = len(machines.positive), machines.starts[:-1]
    return SeveralEnded(
        converged=np.zeros(k, dtype=bool),
        beta=np.zeros(len(machines.examples)),
        rho=np.zeros(k),
        certificates=certify_nothing(starts, machines.y, machines.upper, kernel, bias),
        steps=np.zeros(k, dtype=np.int64),
        evaluations=np.zeros(k, dtype=np.int64),
    )


def finish(solver: Any, state: Any, interrupted: Callable[[], bool]) -> Progress | None:
    """All of ``solver.finish``, in calls of some 50 ms; None where interrupted before it has ended."""
    budget = _Budget(even=True)
    while not interrupted():
        began = time.perf_counter()
        progress: Progress = solver.finish(state, budget.steps)
        if progress.ended:
            return progress
        budget.heed(budget.steps, budget.steps, time.perf_counter() - began)
    return None


def _in_numbers(found: Solution) -> bool:
    return bool(isfinite(found.rho) and np.isfinite(found.coef).all() and np.isfinite(found.own.data).all())
