"""Trace files: one JSON object a line, one line a row of trace.py; readable while the training still runs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, TextIO

from svmkit.io.descriptors import named
from svmkit.trace import ActiveRow, StreamRow, TraceRow


def trace_line(row: TraceRow | StreamRow | ActiveRow, **more: Any) -> str:
    """One line: an object of ``more`` and the row's fields; nan becomes null."""
    values = {**more, **row._asdict()}
    clean = {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()}
    return json.dumps(clean, allow_nan=False) + "\n"


class TraceWriter:
    """Writes rows to ``path`` (``-`` is standard output) as they come.

    An existing file is replaced when the first row comes, or at the end without any, but not where an error comes before that:
    the training was not possible, and its trace would be none. A write that fails (a full disk) ends the trace, not the
    training: ``on_failure`` is told once and rows are dropped from then on.
    """

    def __init__(self, path: str, on_failure: Callable[[str], None]) -> None:
        self.path = path
        self._on_failure = on_failure
        self._failed = False
        self._file: TextIO | None = None

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self._file is not None or (error is None and not self._failed):
            try:
                self._opened().close()
            except OSError as failure:
                self._fail(failure)

    def write(self, row: TraceRow | StreamRow | ActiveRow, **more: Any) -> None:
        """Appends the row's ``trace_line``."""
        if self._failed:
            return
        try:
            file = self._opened()
            file.write(trace_line(row, **more))
            file.flush()
        except OSError as error:
            self._fail(error)

    def _opened(self) -> TextIO:
        if self._file is None:
            descriptor = named(self.path)
            place = self.path if descriptor is None else descriptor
            self._file = open(place, "w", encoding="ascii", closefd=descriptor is None)  # noqa: SIM115
        return self._file

    def _fail(self, error: OSError) -> None:
        if not self._failed:
            self._failed = True
            self._on_failure(
                f"--trace {self.path}: cannot be written: {error.strerror}; the trace is cut short, the model is not"
            )
