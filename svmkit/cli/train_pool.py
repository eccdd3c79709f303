"""``svmkit train --pool``: options, dialogue and report of a training that asks for the labels it wants."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol

import click

from svmkit.cli import ENVIRONMENT, files, report, streams
from svmkit.cli.interrupt import Interrupts
from svmkit.cli.options import F, stack
from svmkit.cli.progress import Reporter
from svmkit.config import TrainConfig
from svmkit.errors import DataError, SvmkitError, UsageError, reason_of

if TYPE_CHECKING:
    from svmkit.active import ActiveResult
    from svmkit.data import Dataset, Ints
    from svmkit.io.oracle import Log
    from svmkit.io.pool import Pool
    from svmkit.io.traces import TraceWriter
    from svmkit.trace import ActiveRow, Progress

#: Seconds between reports where no person is asked.
_REPORT_EVERY_S = 10.0


@dataclass(frozen=True)
class PoolOptions:
    """What the command line says of a pool; None where it says nothing."""

    pool: str | None
    oracle: str | None
    oracle_log: str | None
    max_labels: int | None

    def wanted(self) -> bool:
        """Whether there is a pool. Raises UsageError for options of one where there is none, or one that cannot be."""
        if self.pool is None:
            given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
            if given:
                raise UsageError(f"--{given[0].replace('_', '-')} is for active learning; give --pool too")
            return False
        if self.oracle is None:
            raise UsageError("--pool: who knows the labels? give --oracle FILE, --oracle COMMAND or --oracle - (you)")
        if self.max_labels is not None and self.max_labels < 1:
            raise UsageError(f"--max-labels {self.max_labels}: must be at least 1")
        return True


def pool_options(function: F) -> F:
    """Declares the options of active learning."""
    return stack(
        click.option(
            "--pool",
            metavar="FILE",
            help="Active learning: examples without labels (? or none); those are asked for that the solver chooses. DATA are "
            "labelled ones to begin with (/dev/null: none).",
        ),
        click.option(
            "--oracle",
            metavar="FILE|CMD|-",
            help="Who is asked: a file whose line k begins with the label of row k; a command that reads a line 'row TAB "
            "features' and answers with the label in a line, again and again; - is you.",
        ),
        click.option(
            "--oracle-log",
            metavar="FILE",
            show_default="MODEL.labels",
            help="Answers are added to this file; those that are in it are not asked for again.",
        ),
        click.option(
            "--max-labels", type=int, metavar="N", show_default="all", help="Stop when N labels of the pool are known."
        ),
    )(function)


class Oracle(Protocol):
    """Who answers."""

    def ask(self, row: int, text: str, give_up: Callable[[], bool]) -> str | None:
        """The answer for a row (from 0) with these features, or None where there will be none."""

    def close(self) -> None:
        """Says good-bye."""


class Person:
    """Answers from standard input, asked for on standard error."""

    def __init__(self, labels: tuple[int, ...], reporter: Reporter) -> None:
        from svmkit.io.oracle import Lines

        self._labels, self._reporter = [str(label) for label in labels], reporter
        self._lines = Lines(0)

    def ask(self, row: int, text: str, give_up: Callable[[], bool]) -> str | None:
        """Asks until one of the labels is the answer; None at the end of input."""
        self._reporter.say(f"row {row + 1}: {text}")
        while not give_up():
            streams.tell(f"label ({' or '.join(self._labels)}; end of input to stop)? ", end="")
            try:
                answer = self._lines.next(give_up)
            except OSError as error:
                raise DataError(f"--oracle -: can't read standard input: {reason_of(error)}") from None
            if not answer:
                streams.tell("")
                return None
            if answer.strip().removeprefix("+") in self._labels:
                return answer
        return None

    def close(self) -> None:
        """Nothing to do."""


def train_pool(
    data: str,
    model: str,
    config: TrainConfig,
    asked: PoolOptions,
    labels: tuple[int, ...] | None,
    reported: report.ReportOptions,
) -> int:
    """Learns DATA and what the solver chooses of the pool, writes MODEL, reports; the exit code."""
    import numpy as np

    from svmkit.active import Learner, learn_pool
    from svmkit.io.model_libsvm import write_model
    from svmkit.io.oracle import Log
    from svmkit.io.pool import Pool
    from svmkit.trace import Limits

    assert asked.pool is not None
    assert asked.oracle is not None
    holdout = reported.holdout
    log_path = asked.oracle_log or f"{model}.labels"
    _check_files(data, model, asked, holdout, log_path, reported.trace)
    names = np.array(labels or (1, -1), dtype=np.int64)
    lost: list[str] = []
    with Reporter(reported.quiet) as reporter:
        files.begin(config.threads, reporter)
        pool = Pool(asked.pool, reporter.warn)
        learner = Learner(config, names, _begin(data, reporter), pool.dataset)
        held_out = None if holdout is None else files.read_held_out(holdout, names, reporter)
        with (
            closing(Log(log_path, pool.mark, pool.n, names.tolist())) as log,
            closing(_oracle(asked.oracle, pool, names, reporter)) as oracle,
            Interrupts(reported.quiet) as stop,
            files.tracing(reported.trace, lost.append) as writer,
        ):
            dialogue = _Dialogue(oracle, pool, names, log, reporter)
            listener = _Listener(dialogue, len(log.answers), held_out, writer, reporter)
            result = learn_pool(
                learner,
                dict(log.answers),
                dialogue.ask,
                max_labels=asked.max_labels,
                limits=Limits(time_limit_s=config.time_limit_s, max_evaluations=config.max_evaluations),
                interrupted=stop.interrupted,
                holdout=held_out,
                on_row=listener.on_row,
                on_label=listener.on_label,
            )
            begun = learner.first > 0 and dialogue.failure is None
            written = result.last.labels > 0 or begun  # else an older MODEL is worth more
            if written:
                write_model(model, result.model)
                report.warn_of_missing(learner.missing(), reporter)
        _report(result, model if written else None, log_path, held_out, reported.as_json, reporter)
    code = report.exit_code(result.status, lost, stop, strict=reported.strict, reporter=reporter)
    if dialogue.failure is not None:
        raise dialogue.failure
    return code


def _check_files(data: str, model: str, asked: PoolOptions, holdout: str | None, log: str, trace: str | None) -> None:
    if model == "-":
        raise UsageError("MODEL is standard output, but the answers go beside it; name a file")
    if log == "-":
        raise UsageError("--oracle-log -: answers are read from it too, so it must be a file")
    assert asked.pool is not None
    assert asked.oracle is not None
    _check_oracle(asked.oracle)
    if holdout is not None and files.fraction(holdout) is not None:
        raise UsageError(f"--holdout {holdout}: a pool has no labels to hold out; name a file")
    files.check_output(log, data, model, asked.pool, asked.oracle, holdout, trace)


def _begin(data: str, reporter: Reporter) -> Dataset | None:
    """The labelled examples, or None where DATA is empty."""
    if os.path.exists(data) and os.path.samefile(data, os.devnull):
        return None
    return files.read_data(data, reporter)


def _check_oracle(name: str) -> None:
    """Raises UsageError for a folder, and for a command whose first word the shell does not know."""
    from svmkit.io.oracle import is_known

    if os.path.isdir(name):
        raise UsageError(f"--oracle {name}: is a folder; give a file of labels, a command or -")
    if name != "-" and not os.path.exists(name) and not is_known(name, ENVIRONMENT):
        raise UsageError(f"--oracle {name}: there is no such file, and no such command")


def _oracle(name: str, pool: Pool, labels: Ints, reporter: Reporter) -> Oracle:
    """What exists and is no program holds labels; anything else is a command."""
    from svmkit.io.oracle import Command, LabelFile

    if name == "-":
        return Person(tuple(labels.tolist()), reporter)
    if os.path.exists(name) and not (os.path.isfile(name) and os.access(name, os.X_OK)):
        return LabelFile(name, pool.n)
    return Command(name, ENVIRONMENT)


class _Dialogue:
    """Questions, and answers in the log. What goes wrong is kept as ``failure``: there is a model to save first."""

    def __init__(self, oracle: Oracle, pool: Pool, labels: Ints, log: Log, reporter: Reporter) -> None:
        self._oracle, self._pool, self._labels, self._log, self._reporter = oracle, pool, labels, log, reporter
        self.failure: SvmkitError | None = None

    def ask(self, row: int, give_up: Callable[[], bool]) -> int | None:
        """The label of a row of the pool, noted in the log; None where something has gone wrong."""
        if self.failure is not None:
            return None
        try:
            answer = self._oracle.ask(row, self._pool.text_of(row), self._patience(row, give_up))
            if answer is None:
                return None
            label = self._read(row, answer)
            self._log.add(row, label)
        except SvmkitError as error:
            self.failure = error
            return None
        return label

    def _patience(self, row: int, give_up: Callable[[], bool]) -> Callable[[], bool]:
        """``give_up``, which is asked while an answer is waited for, and a word now and then; a person needs none."""
        if isinstance(self._oracle, Person):
            return give_up
        due = time.perf_counter() + _REPORT_EVERY_S

        def asked() -> bool:
            nonlocal due
            if time.perf_counter() >= due:
                due += _REPORT_EVERY_S
                self._reporter.note(f"waiting for --oracle to answer row {row + 1}; it must write each answer at once (flush)")
            return give_up()

        return asked

    def note(self, text: str) -> None:
        """A line of the log for people."""
        try:
            self._log.note(text)
        except SvmkitError as error:
            self.failure = self.failure or error

    def _read(self, row: int, answer: str) -> int:
        try:
            value = float(answer.replace("_", "?"))  # float() would read 0_1
        except ValueError:
            value = float("nan")
        if value not in self._labels:
            known = " or ".join(map(str, self._labels))
            raise DataError(f"--oracle: the answer for row {row + 1} is {answer.strip()[:80]!r}, not {known}; see --labels")
        return int(value)


class _Listener:
    """Hears how far the learning is: tells the trace and, of held-out errors with labels not ``n_known`` before, the log; and
    now and then whoever waits.
    """

    def __init__(
        self, dialogue: _Dialogue, n_known: int, held_out: Dataset | None, writer: TraceWriter | None, reporter: Reporter
    ) -> None:
        self._dialogue, self._n_known, self._held_out = dialogue, n_known, held_out
        self._writer, self._reporter = writer, reporter
        self._due = time.perf_counter() + _REPORT_EVERY_S

    def on_row(self, row: ActiveRow) -> None:
        """What ``learn_pool`` calls as its ``on_row``."""
        if self._writer is not None:
            self._writer.write(row)
        if self._held_out is not None and row.labels > self._n_known and not math.isnan(row.holdout_error):
            error = f"held-out error {100 * row.holdout_error:.4g} % of {self._held_out.n:,}"
            self._dialogue.note(f"{row.labels} labels: {error}")

    def on_label(self, progress: Progress, labels: int) -> None:
        """What ``learn_pool`` calls as its ``on_label``."""
        if time.perf_counter() >= self._due:
            self._due = time.perf_counter() + _REPORT_EVERY_S
            so_far = report.counted(labels, "label"), report.counted(progress.n_support, "support vector")
            self._reporter.note(", ".join(so_far))


def _report(
    result: ActiveResult, model: str | None, log: str, held_out: Dataset | None, as_json: bool, reporter: Reporter
) -> None:
    row = result.last
    values: dict[str, Any] = {
        "status": result.status.value,
        "seconds": row.seconds,
        "labels": row.labels,
        "asked": result.n_asked,
        "kernel_evaluations": row.kernel_evaluations,
        "n_support": result.model.n_support,
        "model": model,
        "oracle_log": log,
    }
    done = report.ended(result.status)
    line = f"{done}: {report.counted(row.labels, 'label')} of the pool ({result.n_asked:,} asked for), "
    line += report.counted(result.model.n_support, "support vector")
    line += "; no model written" if model is None else f"; {model} written"
    if held_out is not None:
        line += report.held_out(values, row.holdout_error, held_out.n)
    report.tell(values, line, complete=report.complete(result.status), as_json=as_json, reporter=reporter)
