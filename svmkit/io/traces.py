"""Trace files: one JSON object a line, one line a ``TraceRow``; readable while the training still runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, TextIO

from svmkit.errors import DataError, OutputError
from svmkit.trace import TraceRow


class TraceWriter:
    """Writes rows to ``path`` (``-`` is standard output) as they come; an existing file is replaced.

    Raises OutputError where the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self.path = path
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
            raise self._refusal(error) from None

    def write(self, row: TraceRow, **more: Any) -> None:
        """Appends one line, the row's fields and ``more``; nan becomes null."""
        values = {**more, **row._asdict()}
        clean = {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()}
        try:
            self._file.write(json.dumps(clean, allow_nan=False) + "\n")
            self._file.flush()
        except OSError as error:
            raise self._refusal(error) from None

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
