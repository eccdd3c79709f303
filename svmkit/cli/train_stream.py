"""``svmkit train --stream``: options, course and report of a training that reads its data once, part by part."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from svmkit.cli import files, report, train_init
from svmkit.cli.interrupt import Interrupts
from svmkit.cli.options import F, stack
from svmkit.cli.progress import Reporter
from svmkit.config import TrainConfig
from svmkit.errors import DataError, OutputError, UsageError
from svmkit.trace import Status

if TYPE_CHECKING:
    from svmkit.data import Dataset
    from svmkit.io.traces import TraceWriter
    from svmkit.machines import Machines
    from svmkit.model import Model
    from svmkit.stream import StreamResult
    from svmkit.trace import StreamRow

#: Solvers that learn standard input as it comes unless told otherwise: one pass is what they are made for.
_ONE_PASS = ("lasvm",)
#: Seconds between reports.
_REPORT_EVERY_S = 10.0


@dataclass(frozen=True)
class StreamOptions:
    """What the command line says of a stream; None where it says nothing."""

    stream: bool | None
    labels: tuple[int, ...] | None
    n_rows: int | None
    passes: int | None
    snapshot_rows: int | None
    snapshot_s: float | None

    def wanted(self, data: str, solver: str, pool: bool) -> bool:
        """Whether DATA is to be learned as a stream; beside a pool it is not. Raises UsageError for options that cannot be."""
        if pool and self.stream:
            raise UsageError("--stream and --pool are two ways to learn; give one of them")
        if self.stream or (self.stream is None and data == "-" and solver in _ONE_PASS and not pool):
            self._check(data)
            return True
        names = [name for name in _NAMES if not (pool and name == "labels")]
        given = [name for name in names if getattr(self, name) is not None]
        if given:
            where = "streams and pools only; give --stream or --pool" if given[0] == "labels" else "streams only; give --stream"
            raise UsageError(f"{_NAMES[given[0]]} is for {where} too")
        return False

    def _check(self, data: str) -> None:
        for name in ("n_rows", "passes", "snapshot_rows", "snapshot_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{_NAMES[name]} {value}: must be greater than 0")
        if self.n_rows is not None and self.n_rows >= 2**63:
            raise UsageError("--rows: must be below 2^63")
        if self.passes is not None and self.passes > 1:
            if data == "-":
                raise UsageError("--passes: standard input can be read only once; name a file")
            if os.path.exists(data) and not os.path.isfile(data):
                raise UsageError(f"--passes: {data} is no file, and can be read only once")


_NAMES = {
    "labels": "--labels",
    "n_rows": "--rows",
    "passes": "--passes",
    "snapshot_rows": "--snapshot-rows",
    "snapshot_s": "--snapshot-seconds",
}


def _read_labels(text: str) -> tuple[int, ...]:
    try:
        labels = tuple(int(word) for word in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r}: labels are whole numbers with commas between") from None
    if not all(-(2**31) <= label < 2**31 for label in labels):
        raise click.BadParameter(f"{text!r}: a label must lie in −2^31 … 2^31 − 1")
    return labels


def stream_options(function: F) -> F:
    """Declares the options of streams."""
    return stack(
        click.option(
            "--stream/--no-stream",
            default=None,
            help="Learn DATA example by example as it is read; memory does not grow with it. Without either, so does --solver "
            "lasvm from standard input; others read everything first.",
        ),
        click.option(
            "--labels",
            type=_read_labels,
            metavar="A,B[,C…]",
            show_default="1,-1, or those of --init",
            help="Of a stream or pool: the classes; the first of a pair is the positive one.",
        ),
        click.option(
            "--rows",
            "n_rows",
            type=int,
            metavar="N",
            help="Of a stream: examples to come; relates -c and --lambda (C = 1/(λ n)).",
        ),
        click.option("--passes", type=int, metavar="N", show_default="1", help="Of a stream: read the file N times."),
        click.option("--snapshot-rows", type=int, metavar="K", help="Of a stream: write MODEL after every K examples."),
        click.option(
            "--snapshot-seconds", "snapshot_s", type=float, metavar="S", help="Of a stream: write MODEL every S seconds."
        ),
    )(function)


def train_stream(
    data: str,
    model: str,
    config: TrainConfig,
    asked: StreamOptions,
    reported: report.ReportOptions,
    *,
    init: str | None,
    given: set[str],
) -> int:
    """Learns DATA, writes MODEL, reports; the exit code. ``given`` are the kernel's options that the command line gives."""
    from svmkit.io.descriptors import named

    if named(model) == 1 and (asked.snapshot_rows or asked.snapshot_s):
        raise UsageError("MODEL is standard output, where snapshots would stand one behind the other; name a file")
    holdout = reported.holdout
    if holdout is not None and files.fraction(holdout) is not None:
        raise UsageError(f"--holdout {holdout}: nothing of a stream can be set aside; name a file")
    lost: list[str] = []
    with Reporter(reported.quiet) as reporter:
        files.begin(config.threads, reporter)
        machines = _machines(config, asked, init, given, reporter)
        held_out = None if holdout is None else files.read_held_out(holdout, machines.labels, reporter)
        saved = _Snapshots(model, reporter.warn)
        with Interrupts(reported.quiet) as stop:
            try:
                with files.tracing(reported.trace, lost.append) as writer:
                    result = _learn(data, machines, asked, saved, writer, reporter, stop)
                if result.rows:
                    saved.write(result.model, result.rows)
            except (DataError, OutputError) as error:
                if machines.rows and (saved.written or isinstance(error, DataError)):
                    reporter.say(saved.what_is_left(asked))
                raise
            if not result.rows and result.status in (Status.COMPLETED, Status.STALLED):  # an older MODEL stays
                raise DataError(f"{data}: every example has weight 0, none is left to learn; no model was written")
            came, said = result.rows // (asked.passes or 1), asked.n_rows
            if said is not None and came != said and result.status in (Status.COMPLETED, Status.STALLED):
                what = f"{came:,} examples of weight above 0 came, --rows said {said:,}"
                reporter.warn(f"{what}; where C is related to λ, it is by what --rows said")
            if result.rows:
                report.warn_of_missing(result.missing, reporter)
            _report(result, asked, saved, held_out, reported.as_json, reporter, stop)
    return report.exit_code(result.status, lost, stop, strict=reported.strict, reporter=reporter)


def _machines(config: TrainConfig, asked: StreamOptions, init: str | None, given: set[str], reporter: Reporter) -> Machines:
    """What learns, from the beginning or on from the model ``init``."""
    import numpy as np

    from svmkit.machines import Machines

    begun, labels = None, asked.labels
    if init is not None:
        begun, config = train_init.read(init, config, given)
        if labels is None and begun.labels is not None:
            labels = tuple(begun.labels.tolist())
            if len(labels) == 1:
                what = f"--init: {init} knows one class, {labels[0]}"
                raise UsageError(
                    f"{what}; name all classes of the stream, as --labels {labels[0]},{-1 if labels[0] == 1 else 1}"
                )
    machines = Machines(config, np.array(labels or (1, -1)), asked.n_rows, reporter.warn, begun)
    if begun is not None:
        n = report.counted(begun.n_support, "support vector")
        reporter.note(f"goes on from {n}; an example of the stream that is among them counts once more")
    return machines


def _learn(
    data: str,
    machines: Machines,
    asked: StreamOptions,
    saved: _Snapshots,
    writer: TraceWriter | None,
    reporter: Reporter,
    stop: Interrupts,
) -> StreamResult:
    from svmkit.io.chunks import read_chunks
    from svmkit.stream import Listener, learn_stream
    from svmkit.trace import Limits

    config = machines.config
    # What is left out of the file is told in the first pass; later ones leave out the same.
    passes = (read_chunks(data, on_warning=None if number else reporter.warn) for number in range(asked.passes or 1))

    def on_row(row: StreamRow, due: bool) -> None:
        if writer is not None:
            writer.write(row)
        if due:
            reporter.note(_line(row, asked))

    return learn_stream(
        machines,
        passes,
        limits=Limits(config.max_iter, config.time_limit_s, config.max_evaluations),
        interrupted=stop.interrupted,
        listener=Listener(on_row, saved.save, _REPORT_EVERY_S, asked.snapshot_rows, asked.snapshot_s),
    )


class _Snapshots:
    """MODEL as it is written from time to time, whole each time."""

    def __init__(self, path: str, warn: Callable[[str], None]) -> None:
        self.path, self._warn = path, warn
        self.written = self._rows = 0
        self._trouble = False

    def save(self, model: Model, rows: int) -> None:
        """A snapshot. Where it cannot be written that is told once, and learning goes on: later there may be room."""
        try:
            self.write(model, rows)
        except OutputError as error:
            if not self._trouble:
                self._warn(f"{error}; learning goes on without this snapshot")
            self._trouble = True

    def write(self, model: Model, rows: int) -> None:
        """Writes MODEL, which has learned ``rows``. Raises OutputError."""
        from svmkit.io.model_libsvm import write_model

        write_model(self.path, model)
        self.written, self._rows, self._trouble = self.written + 1, rows, False

    def what_is_left(self, asked: StreamOptions) -> str:
        """For who has to do with what was saved before an error."""
        if self.written:
            return f"{self.path} is the model after {self._rows:,} examples"
        if asked.snapshot_rows or asked.snapshot_s:
            return f"{self.path} was not written: it was too soon for a snapshot"
        return f"{self.path} was not written; --snapshot-rows or --snapshot-seconds would have kept the model so far"


def _line(row: StreamRow, asked: StreamOptions) -> str:
    return (
        f"{row.seconds:.0f} s, {row.rows:,} examples, {row.rows_per_s:,.0f} a second, {_errors(row, asked)}, "
        f"{report.counted(row.n_support, 'support vector')}, {row.memory_mb:,.0f} MB"
    )


def _errors(row: StreamRow, asked: StreamOptions) -> str:
    """The errors in words; of several passes they are the first's, since later ones see nothing new."""
    if not row.window:
        return "no error known yet"
    of = "in the first pass " if (asked.passes or 1) > 1 else ""
    return f"error {100 * row.error:.4g} % {of}before learning (last {row.window:,}: {100 * row.window_error:.4g} %)"


def _report(
    result: StreamResult,
    asked: StreamOptions,
    saved: _Snapshots,
    held_out: Dataset | None,
    as_json: bool,
    reporter: Reporter,
    stop: Interrupts,
) -> None:
    row = result.last
    values: dict[str, Any] = {
        "status": result.status.value,
        "seconds": row.seconds,
        "rows": row.rows,
        "error": row.error,
        "window_error": row.window_error,
        "rows_per_s": row.rows / max(row.seconds, 1e-9),
        "kernel_evaluations": row.kernel_evaluations,
        "n_support": result.model.n_support,
        "memory_mb": row.memory_mb,
        "snapshots": max(0, saved.written - 1),
        "model": saved.path if saved.written else None,
    }
    done = report.ended(result.status)
    line = f"{done} in {row.seconds:.3g} s: {report.counted(row.rows, 'example')}, {_errors(row, asked)}, "
    line += report.counted(result.model.n_support, "support vector")
    where = "model on stdout" if saved.path == "-" else f"{saved.path} written"
    line += f"; {where if saved.written else 'no model written'}"
    if held_out is not None:
        line += report.held_out(values, report.error_on(result.model, held_out, stop, reporter), held_out.n)
    report.tell(values, line, complete=report.complete(result.status), as_json=as_json, reporter=reporter)
