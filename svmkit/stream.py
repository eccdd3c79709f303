"""From a stream of examples to a Model: what is counted, told, saved and stopped while its machines learn.

Every example is predicted before it is learned, so the share that was wrong (progressive validation) is an honest estimate that
needs no held-out data.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from svmkit.clock import Clock
from svmkit.data import Bools, Chunk, Ints, label_places
from svmkit.errors import DataError
from svmkit.machines import Machines
from svmkit.model import Model
from svmkit.pairs import huge_value
from svmkit.parallel import ahead
from svmkit.solvers.base import CALL_S
from svmkit.solvers.stops import Marks, given_up
from svmkit.trace import Limits, Status, StreamRow

#: Examples of which the latest error is reported.
WINDOW = 10_000

#: Chunks that wait while one is learned.
_AHEAD = 2
#: Examples a pair of classes that a call learns at least, where so many are there: by each call machines pack anew what they
#: keep.
_LEAST_CALL = 64


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
    """What a stream ends with; ``rows`` are those learned, in all passes; of the labels ``missing`` nothing is known."""

    model: Model
    status: Status
    rows: int
    seconds: float
    last: StreamRow
    missing: Ints


def learn_stream(
    machines: Machines,
    passes: Iterable[Iterable[Chunk]],
    *,
    limits: Limits = Limits(),
    interrupted: Callable[[], bool] = lambda: False,
    listener: Listener = Listener(),
) -> StreamResult:
    """Learns all ``passes`` over the stream, or until a limit (``max_iter`` counts rows) or ``interrupted()``.

    Errors count the first pass only: later ones see nothing new. Between looks at the limits the solver learns as many
    examples as take about 50 ms, or as spread what a call costs. Raises DataError, with its place, for an example that cannot
    be learned.
    """
    course = _Course(machines, limits, interrupted, listener)
    status: Status | None = None
    for number, chunks in enumerate(passes):
        if number:
            machines.begin_pass()
        for chunk in ahead(chunks, _AHEAD, lambda: course.look() is not None):
            status = course.learn(chunk, fresh=number == 0)
            if status is not None:
                break
        status = status or course.look()
        if status is not None:
            break
    status = status or machines.finish(course.given_up)
    row = course.report(due=False)
    return StreamResult(machines.model(), status, course.rows, row.seconds, row, machines.labels[~machines.known])


class _Course:
    """How far a stream is, and when who is to be told."""

    def __init__(self, machines: Machines, limits: Limits, interrupted: Callable[[], bool], listener: Listener) -> None:
        self._machines, self._limits, self._interrupted, self._listener = machines, limits, interrupted, listener
        self._clock = Clock()
        self.rows = self._fresh = self._wrong = self._saved_rows = 0
        self._recent = np.empty(0, dtype=bool)
        self._budget = self._least_call = _LEAST_CALL * (len(machines.labels) // 2)
        self._mark, self._looks = 1024, Marks(1, 1.01)
        self._told_at, self._told_rows = 0.0, 0
        self._due_s = listener.every_s
        self._snapshot_due_s = listener.snapshot_s or inf

    def learn(self, chunk: Chunk, fresh: bool) -> Status | None:
        """Learns a chunk, piece by piece; why to stop, or None. What cannot be learned is a DataError after all before it."""
        classes, fault = _classes_of(chunk, self._machines.labels)
        used = np.flatnonzero(chunk.dataset.weights[: len(classes)] > 0)
        first = 0
        while first < len(used):
            last = min(len(used), first + self._allowed())
            began = self._clock.seconds()
            wrong = self._learn(chunk, used[first:last], classes)
            self.rows += last - first
            if fresh:
                self._count(wrong)
            self._pace(self._clock.seconds() - began, last - first)
            first = last
            status = self.look()
            if status is not None:
                return status
        if fault is not None and self.given_up() is None:
            raise fault
        return self.look()

    def _learn(self, chunk: Chunk, here: Ints, classes: Ints) -> Bools:
        """Which of the rows ``here`` were predicted wrong. Where they cannot be learned, all before the one to blame are."""
        data = chunk.dataset
        rows = data.rows if len(here) == data.n else data.rows.take(here)
        try:
            return self._machines.learn(rows, classes[here], data.weights[here])
        except DataError as error:
            if len(here) == 1:
                raise DataError(f"{chunk.where(int(here[0]))}: {error}") from None
        halves = np.array_split(here, 2)
        return np.concatenate([self._learn(chunk, half, classes) for half in halves])

    def look(self) -> Status | None:
        """Tells what is due; why to stop, or None."""
        self._tell()
        return self._status()

    def _count(self, wrong: Bools) -> None:
        self._fresh += len(wrong)
        self._wrong += int(np.count_nonzero(wrong))
        self._recent = np.concatenate([self._recent, wrong])[-WINDOW:]

    def _pace(self, took_s: float, n: int) -> None:
        if took_s < CALL_S / 2 and n == self._budget:
            self._budget *= 2
        elif took_s > 2 * CALL_S:
            self._budget = max(self._least_call, n // 2)

    def _allowed(self) -> int:
        """Rows until something may have to be done."""
        limits, every = self._limits, self._listener.snapshot_rows
        left = [self._budget, self._machines.rows_left(), self._mark - self.rows]
        left += [] if every is None else [every - self.rows % every]
        left += [] if limits.max_iter is None else [limits.max_iter - self.rows]
        left += [] if limits.max_evaluations is None else [self._looks.next - self.rows]
        return min(left)

    def _tell(self) -> None:
        listener, now = self._listener, self._clock.seconds()
        due, at_mark = now >= self._due_s, self.rows >= self._mark
        if due:
            self._due_s = now + listener.every_s
        if at_mark:
            self._mark *= 2
        if due or at_mark:
            self.report(due)
        by_rows = listener.snapshot_rows is not None and self.rows % listener.snapshot_rows == 0
        if self.rows > self._saved_rows and (by_rows or now >= self._snapshot_due_s):
            listener.on_snapshot(self._machines.model(), self.rows)
            self._saved_rows = self.rows
            self._snapshot_due_s = self._clock.seconds() + (listener.snapshot_s or inf)

    def report(self, due: bool) -> StreamRow:
        """Tells how things are."""
        now, progress = self._clock.seconds(), self._machines.progress()
        row = StreamRow(
            seconds=now,
            rows=self.rows,
            error=self._wrong / self._fresh if self._fresh else nan,
            window_error=float(self._recent.mean()) if len(self._recent) else nan,
            window=len(self._recent),
            rows_per_s=(self.rows - self._told_rows) / max(now - self._told_at, 1e-9),
            kernel_evaluations=progress.kernel_evaluations,
            n_support=progress.n_support,
            memory_mb=memory_mb(),
        )
        self._told_at, self._told_rows = now, self.rows
        self._listener.on_row(row, due)
        return row

    def given_up(self) -> Status | None:
        """Why nobody waits any longer, or None."""
        return given_up(self._limits, self._interrupted, self._clock.seconds())

    def _status(self) -> Status | None:
        limits = self._limits
        if (status := self.given_up()) is not None:
            return status
        if limits.max_iter is not None and self.rows >= limits.max_iter:
            return Status.MAX_ITER
        most = limits.max_evaluations
        spent = most is not None and self._looks.reached(self.rows) and self._machines.most_kernel_evaluations() >= most
        return Status.MAX_EVALUATIONS if spent else None


def _classes_of(chunk: Chunk, labels: Ints) -> tuple[Ints, DataError | None]:
    """Each example's position in ``labels``, up to the first that cannot be learned, and what is wrong with that, and where."""
    data = chunk.dataset
    classes = label_places(data.classes, labels)
    faults = []
    if len(bad := np.flatnonzero(classes < 0)):
        known = ", ".join(str(label) for label in labels)
        what = f"label {data.y[bad[0]]:g} is none of {known}; a stream's labels are those of --labels or --init, else 1 and -1"
        faults.append((int(bad[0]), what))
    if data.weight is not None and len(bad := np.flatnonzero(~np.isfinite(data.weight))):
        faults.append((int(bad[0]), f"weight {data.weight[bad[0]]:g} is not finite"))
    if (huge := huge_value(data.rows)) is not None:
        faults.append(huge)
    if not faults:
        return classes, None
    row, what = min(faults)
    return classes[:row], DataError(f"{chunk.where(row)}: {what}")


def memory_mb() -> float:
    """Memory of this process now, or where the system does not say that, the most it has had; nan on Windows."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        if sys.platform == "win32":
            return nan
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
