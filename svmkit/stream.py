"""From a stream of examples to a Model: the machines of one model, each learning from its own examples as they come.

Nothing of the stream is kept but what the solvers keep. Every example is predicted before it is learned, so the share that
was wrong (progressive validation) is an honest estimate that needs no held-out data. The same stream gives the same model,
however it is cut into chunks.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf, nan
from typing import cast

import numpy as np
from numpy.typing import NDArray

from svmkit import mapped, maps
from svmkit._jit import seconds_compiling
from svmkit.assembly import Trained, assemble
from svmkit.certificate import Certificate
from svmkit.config import TrainConfig
from svmkit.data import Chunk, Floats, Ints, Rows, dense_rows, stack
from svmkit.errors import DataError, UsageError
from svmkit.model import REST, Model, class_pairs, decision_values, predict
from svmkit.pairs import LARGEST_VALUE, kernel_of, label_factors
from svmkit.parallel import ahead
from svmkit.problem import LINEAR, PRECOMPUTED, Bias, Kernel, Solution, Stream
from svmkit.solvers import NAMES
from svmkit.solvers import solver as solver_named
from svmkit.solvers.base import CALL_S, OnlineSolver, SolverResult, options_of
from svmkit.trace import Limits, Progress, Status, StreamRow

Booleans = NDArray[np.bool_]

_NO_ROWS = Rows(np.empty(0), np.empty(0, np.int32), np.zeros(1, np.int64), 0)

WITHOUT_BIAS = "WARNING: solver {} trains without a bias (rho = 0); see --bias"

#: Examples of which the latest error is reported.
WINDOW = 10_000
#: The votes of machines that an example of several classes does not belong to are at most this many examples old.
_VOTES_FOR = 1024

#: Chunks that wait while one is learned.
_AHEAD = 2

#: Of a solution whose examples are gone nothing is certified.
UNKNOWN = Certificate(nan, nan, nan, nan)


def solver_for_streams(name: str) -> OnlineSolver:
    """The solver module called ``name``; UsageError with those that can where it cannot learn from a stream."""
    module = solver_named(name)
    if hasattr(module, "start_stream"):
        return cast("OnlineSolver", module)
    able = ", ".join(other for other in NAMES if hasattr(solver_named(other), "start_stream"))
    raise UsageError(f"--solver {name}: needs all of the data at once; solvers that learn from a stream: {able}")


class Machines:
    """The machines of a model of ``labels``, learning. Raises UsageError for a config that a stream cannot have."""

    def __init__(
        self,
        config: TrainConfig,
        labels: Ints,
        n_rows: int | None = None,
        on_warning: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.solver = solver_for_streams(config.solver)
        _check(config, labels)
        bias = config.bias or self.solver.BIASES[0]
        if config.bias is None and bias != "free":
            on_warning(WITHOUT_BIAS.format(config.solver))
        self.config = config = replace(config, bias=bias, multiclass=config.multiclass if len(labels) > 2 else "ovo")
        self.labels, self.kernel, self.map = labels, kernel_of(config, 0), None
        if config.map is not None:
            self.map, self.kernel = maps.fit(_NO_ROWS, self.kernel, config), Kernel(LINEAR)
        self.pairs = list(class_pairs(len(labels), config.multiclass))
        self._factors = label_factors(config, labels, on_warning)
        options = options_of(self.solver, config.solver_options, cache_mb=config.cache_mb, shrinking=config.shrinking)
        stream = self._stream(n_rows)
        self._states = [self.solver.start_stream(stream, options, config.eps, config.seed) for _ in self.pairs]
        self._rows = self._renewed_at = 0
        self._voters: Model | None = None

    def _stream(self, n_rows: int | None) -> Stream:
        """A machine's problem; one of two classes of k is taken to see two of every k examples."""
        config, share = self.config, 1.0 if self.config.multiclass == "ovr" else 2.0 / len(self.labels)
        n = None if n_rows is None else n_rows * share
        bias: Bias = "none" if config.bias == "none" else "free"
        if config.lam is None:
            return Stream(self.kernel, config.C, None if n is None else 1.0 / (config.C * n), bias)
        return Stream(self.kernel, None if n is None else 1.0 / (config.lam * n), config.lam, bias)

    def rows_left(self) -> int:
        """How many examples the next call of ``learn`` may have."""
        return self._renewal() - self._rows if self._votes else sys.maxsize

    @property
    def _votes(self) -> bool:
        """Whether there are machines that an example does not belong to, and which yet have a say in what it is taken for."""
        return len(self.pairs) > 1 and self.config.multiclass == "ovo"

    def _renewal(self) -> int:
        return min(2 * self._renewed_at, self._renewed_at + _VOTES_FOR) if self._renewed_at else 1

    def learn(self, rows: Rows, classes: Ints, weight: Floats) -> Booleans:
        """Learns examples of the given classes (positions in ``labels``) in order; which were predicted wrong before, (k,)."""
        weight = weight * self._factors[classes]
        self._rows += rows.n
        seen = rows if self.map is None else dense_rows(self.map.transform(rows))
        if self._votes:
            return self._learn_pairs(rows, seen, classes, weight)
        firsts = [classes == i for i, _ in self.pairs]
        values = [
            self.solver.extend(state, seen, np.where(first, 1.0, -1.0), weight)
            for state, first in zip(self._states, firsts, strict=True)
        ]
        wrong: Booleans = (values[0] > 0) != firsts[0] if len(values) == 1 else np.argmax(values, axis=0) != classes
        return wrong

    def _learn_pairs(self, rows: Rows, seen: Rows, classes: Ints, weight: Floats) -> Booleans:
        """An example whose own machines all vote for its class is right. Only of the others are the other votes looked at.

        ``seen`` are the rows as the solver sees them.
        """
        decisions = np.full((rows.n, len(self.pairs)), np.nan)
        lost = np.zeros(rows.n, dtype=bool)
        for column, (i, j) in enumerate(self.pairs):
            own = np.flatnonzero((classes == i) | (classes == j))
            first = classes[own] == i
            f = self.solver.extend(self._states[column], seen.take(own), np.where(first, 1.0, -1.0), weight[own])
            decisions[own, column] = f
            lost[own] |= (f > 0) != first
        asked = np.flatnonzero(lost)
        if len(asked):
            voters = self._voters or self.model()
            votes = decisions[asked]
            votes = np.where(np.isnan(votes), decision_values(voters, rows.take(asked)), votes)
            lost[asked] = predict(voters, votes) != self.labels[classes[asked]]
        if self._rows >= self._renewal():
            self._renewed_at, self._voters = self._rows, self.model()
        return lost

    def finish(self, interrupted: Callable[[], bool]) -> Status:
        """Does what the solver does once the stream has ended; the status of the machine that came out worst."""
        if not hasattr(self.solver, "finish"):
            return Status.COMPLETED
        stalled = False
        for state in self._states:
            progress, budget = Progress(0, 0), 1
            while not progress.ended:
                if interrupted():
                    return Status.INTERRUPTED
                began = time.perf_counter()
                progress = self.solver.finish(state, budget)
                budget = budget * 2 if time.perf_counter() - began < CALL_S / 2 else budget
            stalled |= progress.stalled
        return Status.STALLED if stalled else Status.COMPLETED

    def progress(self) -> Progress:
        """Sums over the machines."""
        all_of_them = [self.solver.progress(state) for state in self._states]
        return Progress(
            steps=sum(progress.steps for progress in all_of_them),
            kernel_evaluations=sum(progress.kernel_evaluations for progress in all_of_them),
            n_support=sum(progress.n_support for progress in all_of_them),
        )

    def model(self) -> Model:
        """The model so far."""
        solutions = [self.solver.solution(state) for state in self._states]
        pool, classes, numbered = _pooled(solutions, self.pairs)
        everyone = np.arange(pool.n)
        trained = [Trained(everyone, SolverResult(found, Status.COMPLETED, UNKNOWN, 0, 0, 0.0), 0.0) for found in numbered]
        members = [np.flatnonzero(classes == c) for c in range(len(self.labels))]
        config = self.config
        model = assemble(pool, config.svm_type, self.kernel, self.labels, members, trained, config.multiclass)[0]
        return replace(model, map=self.map)


def _check(config: TrainConfig, labels: Ints) -> None:
    config.check()
    if config.svm_type != "c_svc":
        raise UsageError(f"-s {config.svm_type}: only classification (-s 0) learns from a stream")
    if len(labels) < 2 or len(np.unique(labels)) < len(labels):
        raise UsageError("--labels: name at least two labels, each once")
    kernel = kernel_of(config, 0)
    if kernel.kind == PRECOMPUTED:
        raise UsageError("-t 4: a stream has no kernel matrix; give the examples' features")
    if kernel.kind != LINEAR and config.gamma == 0:
        raise UsageError("-g: a stream's number of features is not known ahead, so gamma has no default; give one")
    mapped.check(config)
    if config.map == "nystroem":
        raise UsageError("--map nystroem: chooses its landmarks among all examples; a stream can have --map fourier")
    if config.constant:
        raise UsageError("--constant: is not there for streams; take a solver with a bias")
    if config.orthogonal:
        raise UsageError("--orthogonal: needs the number of features, which of a stream is not known ahead")
    if any(key == "epochs" for key, _ in config.solver_options):
        raise UsageError("-O epochs: a stream is read once; --passes reads a file several times")


def _pooled(solutions: list[Solution], pairs: list[tuple[int, int]]) -> tuple[Rows, Ints, list[Solution]]:
    """All machines' basis rows as one set, each one's class, and the solutions with their places in the set as origin.

    A row's class is the one that its coefficient speaks for, which against the rest may not be known and is then the first. A
    row that several machines hold has one place.
    """
    rows = stack([found.basis for found in solutions])
    coef = np.concatenate([found.coef for found in solutions])
    sizes = [found.n_support for found in solutions]
    first, second = (np.repeat([pair[side] for pair in pairs], sizes) for side in (0, 1))
    classes = np.where(coef > 0, first, second)
    place = np.arange(rows.n) if len(pairs) == 1 else _first_of_equals(rows, np.where(second == REST, 0, classes), sizes)
    if pairs[0][1] == REST:
        classes = np.zeros(rows.n, dtype=np.int64)
        classes[place[coef > 0]] = first[coef > 0]
    cuts = np.cumsum(sizes)[:-1]
    return rows, classes, [replace(one, origin=part) for one, part in zip(solutions, np.split(place, cuts), strict=True)]


def _first_of_equals(rows: Rows, groups: Ints, sizes: list[int]) -> Ints:
    """For each row the first row of its group that is equal to it; the k-th of equals in one machine goes with the k-th of
    those in another.
    """
    first: dict[tuple[int, bytes, bytes, int], int] = {}
    place = np.empty(rows.n, dtype=np.int64)
    for end, size in zip(accumulate(sizes), sizes, strict=True):
        seen: dict[tuple[int, bytes, bytes], int] = {}
        for row in range(end - size, end):
            here = slice(rows.indptr[row], rows.indptr[row + 1])
            key = (int(groups[row]), rows.indices[here].tobytes(), rows.data[here].tobytes())
            seen[key] = seen.get(key, 0) + 1
            place[row] = first.setdefault((*key, seen[key]), row)
    return place


@dataclass
class Listener:
    """Who hears of a stream: ``on_row`` at doubling numbers of rows and at least every ``every_s`` seconds (then ``due`` is
    true); ``on_snapshot`` after every ``snapshot_rows`` rows and every ``snapshot_s`` seconds.
    """

    on_row: Callable[[StreamRow, bool], None] = lambda row, due: None
    on_snapshot: Callable[[Model, int], None] = lambda model, rows: None
    every_s: float = 10.0
    snapshot_rows: int | None = None
    snapshot_s: float | None = None


@dataclass(frozen=True)
class StreamResult:
    """What a stream ends with; ``rows`` are those learned, in all passes."""

    model: Model
    status: Status
    rows: int
    seconds: float
    last: StreamRow


def learn_stream(
    machines: Machines,
    passes: Iterable[Iterable[Chunk]],
    *,
    limits: Limits = Limits(),
    interrupted: Callable[[], bool] = lambda: False,
    listener: Listener = Listener(),
) -> StreamResult:
    """Learns all ``passes`` over the stream, or until a limit (``max_iter`` counts rows) or ``interrupted()``.

    Errors count the first pass only: later ones see nothing new. Between calls the solver learns as many examples as take about
    50 ms. Raises DataError, with its place, for an example that cannot be learned.
    """
    course = _Course(machines, limits, interrupted, listener)
    status: Status | None = None
    for number, chunks in enumerate(passes):
        for chunk in ahead(chunks, _AHEAD, lambda: course.look() is not None):
            status = course.learn(chunk, fresh=number == 0)
            if status is not None:
                break
        status = status or course.look()
        if status is not None:
            break
    status = status or machines.finish(interrupted)
    row = course.report(due=False)
    return StreamResult(machines.model(), status, course.rows, row.seconds, row)


class _Course:
    """How far a stream is, and when who is to be told."""

    def __init__(self, machines: Machines, limits: Limits, interrupted: Callable[[], bool], listener: Listener) -> None:
        self._machines, self._limits, self._interrupted, self._listener = machines, limits, interrupted, listener
        self._began = time.perf_counter() - seconds_compiling()
        self.rows = self._fresh = self._wrong = self._saved_rows = 0
        self._recent = np.empty(0, dtype=bool)
        self._budget = 1
        self._mark = 1024
        self._told_at, self._told_rows = 0.0, 0
        self._due_s = listener.every_s
        self._snapshot_due_s = listener.snapshot_s or inf

    def seconds(self) -> float:
        """Since it began, less compiling."""
        return time.perf_counter() - seconds_compiling() - self._began

    def learn(self, chunk: Chunk, fresh: bool) -> Status | None:
        """Learns a chunk, piece by piece; why to stop, or None."""
        classes = _classes_of(chunk, self._machines.labels)
        used = np.flatnonzero(chunk.dataset.weights > 0)
        first = 0
        while first < len(used):
            last = min(len(used), first + self._allowed())
            began = self.seconds()
            here = used[first:last]
            whole = last - first == chunk.dataset.n
            rows = chunk.dataset.rows if whole else chunk.dataset.rows.take(here)
            wrong = self._machines.learn(rows, classes[here], chunk.dataset.weights[here])
            self.rows += last - first
            if fresh:
                self._count(wrong)
            self._pace(self.seconds() - began, last - first)
            first = last
            status = self.look()
            if status is not None:
                return status
        return None

    def look(self) -> Status | None:
        """Tells what is due; why to stop, or None."""
        self._tell()
        return self._status()

    def _count(self, wrong: Booleans) -> None:
        self._fresh += len(wrong)
        self._wrong += int(np.count_nonzero(wrong))
        self._recent = np.concatenate([self._recent, wrong])[-WINDOW:]

    def _pace(self, took_s: float, n: int) -> None:
        if took_s < CALL_S / 2 and n == self._budget:
            self._budget *= 2
        elif took_s > 2 * CALL_S:
            self._budget = max(1, n // 2)

    def _allowed(self) -> int:
        """Rows until something may have to be done."""
        limits, every = self._limits, self._listener.snapshot_rows
        left = [self._budget, self._machines.rows_left(), self._mark - self.rows]
        left += [] if every is None else [every - self.rows % every]
        left += [] if limits.max_iter is None else [limits.max_iter - self.rows]
        return min(left)

    def _tell(self) -> None:
        listener, now = self._listener, self.seconds()
        if now >= self._due_s or self.rows >= self._mark:
            due = now >= self._due_s
            self._mark = self._mark * 2 if self.rows >= self._mark else self._mark
            self._due_s = now + listener.every_s if due else self._due_s
            self.report(due)
        by_rows = listener.snapshot_rows is not None and self.rows % listener.snapshot_rows == 0
        if self.rows > self._saved_rows and (by_rows or now >= self._snapshot_due_s):
            listener.on_snapshot(self._machines.model(), self.rows)
            self._saved_rows = self.rows
            self._snapshot_due_s = self.seconds() + (listener.snapshot_s or inf)

    def report(self, due: bool) -> StreamRow:
        """Tells how things are."""
        now, progress = self.seconds(), self._machines.progress()
        row = StreamRow(
            seconds=now,
            rows=self.rows,
            error=self._wrong / max(1, self._fresh),
            window_error=float(self._recent.mean()) if len(self._recent) else 0.0,
            rows_per_s=(self.rows - self._told_rows) / max(now - self._told_at, 1e-9),
            kernel_evaluations=progress.kernel_evaluations,
            n_support=progress.n_support,
            memory_mb=memory_mb(),
        )
        self._told_at, self._told_rows = now, self.rows
        self._listener.on_row(row, due)
        return row

    def _status(self) -> Status | None:
        limits = self._limits
        if self._interrupted():
            return Status.INTERRUPTED
        if limits.max_iter is not None and self.rows >= limits.max_iter:
            return Status.MAX_ITER
        if limits.time_limit_s is not None and self.seconds() >= limits.time_limit_s:
            return Status.TIME_LIMIT
        most = limits.max_evaluations
        return Status.MAX_EVALUATIONS if most is not None and self._machines.progress().kernel_evaluations >= most else None


def _classes_of(chunk: Chunk, labels: Ints) -> Ints:
    """Each example's position in ``labels``. Raises DataError, with its place, for one that cannot be learned."""
    data = chunk.dataset
    cut = np.trunc(data.y)
    order = np.argsort(labels)
    place = np.minimum(np.searchsorted(labels, cut, sorter=order), len(labels) - 1)
    classes: Ints = order[place]
    bad = np.flatnonzero(labels[classes] != cut)
    if len(bad):
        known = ", ".join(str(label) for label in labels)
        what = f"label {data.y[bad[0]]:g} is none of {known}; a stream's labels are 1 and -1, or those named by --labels"
        raise DataError(f"{chunk.where(int(bad[0]))}: {what}")
    if data.weight is not None and len(bad := np.flatnonzero(~np.isfinite(data.weight))):
        raise DataError(f"{chunk.where(int(bad[0]))}: weight {data.weight[bad[0]]:g} is not finite")
    huge = np.flatnonzero(np.abs(data.rows.data) > LARGEST_VALUE)
    if len(huge):
        row = int(np.searchsorted(data.rows.indptr, huge[0], side="right")) - 1
        what = f"{data.rows.data[huge[0]]:g} for feature {data.rows.indices[huge[0]]}"
        raise DataError(
            f"{chunk.where(row)}: {what}: values above {LARGEST_VALUE:g} in size cannot be multiplied; scale the data"
        )
    return classes


def memory_mb() -> float:
    """Memory of this process now, or where the system does not say that, the most it has had."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
