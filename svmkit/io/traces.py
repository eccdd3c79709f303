"""Trace files: one JSON object a line, one line a row of trace.py; readable while the training still runs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from svmkit.errors import DataError, OutputError
from svmkit.trace import ActiveRow, StreamRow, TraceRow


def trace_line(row: TraceRow | StreamRow | ActiveRow, **more: Any) -> str:
    """One line: an object of ``more`` and the row's fields; nan becomes null."""
    values = {**more, **row._asdict()}
    clean = {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()}
    return json.dumps(clean, allow_nan=False) + "\n"


class TraceWriter:
    """Writes rows to ``path`` (``-`` is standard output) as they come; an existing file is replaced.

    Raises OutputError where the file cannot be opened. A write that fails later (a full disk) ends the trace, not the training:
    ``on_failure`` is told once and rows are dropped from then on.
    """

    def __init__(self, path: str, on_failure: Callable[[str], None]) -> None:
        self.path = path
        self._on_failure = on_failure
        self._failed = False
        try:
            self._file: TextIO = open(1 if path == "-" else path, "w", encoding="ascii", closefd=path != "-")  # noqa: SIM115
        except OSError as error:
            raise self._refusal(error) from None

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()
        except OSError as error:
            self._fail(error)

    def write(self, row: TraceRow | StreamRow | ActiveRow, **more: Any) -> None:
        """Appends the row's ``trace_line``."""
        if self._failed:
            return
        try:
            self._file.write(trace_line(row, **more))
            self._file.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        if not self._failed:
            self._failed = True
            self._on_failure(f"{self._refusal(error)}; the trace is cut short, the model is not")

    def _refusal(self, error: OSError) -> OutputError:
        return OutputError(f"--trace {self.path}: cannot be written: {error.strerror}")


def read_trace(path: str) -> list[TraceRow]:
    """The rows of a trace file, null as nan; keys that are no field of TraceRow are left out. DataError for anything else."""
    rows = []
    for number, line in enumerate(Path(path).read_text(encoding="ascii").splitlines(), start=1):
        try:
            values = json.loads(line)
            rows.append(TraceRow._make(math.nan if values[key] is None else values[key] for key in TraceRow._fields))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}, line {number}: not a trace row ({error})") from None
    return rows
