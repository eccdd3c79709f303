"""Trace files: what is written is read back, line by line as it comes."""

from __future__ import annotations

import json
from contextlib import suppress
from math import isnan, nan
from pathlib import Path

import pytest

from svmkit.io.traces import TraceWriter, trace_line
from svmkit.trace import TraceRow

ROWS = [TraceRow(0.125, 1, 10, nan, nan, nan, nan, 0), TraceRow(1 / 3, 20, 300, 5.0, 4.5, 1e-3, 0.25, 7)]


def test_rows_come_back_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with TraceWriter(str(path), pytest.fail) as writer:
        for number, row in enumerate(ROWS, start=1):
            writer.write(row, machine=0)
            assert len(path.read_text().splitlines()) == number  # readable while it grows
    for row, line in zip(ROWS, path.read_text().splitlines(), strict=True):
        expected = {key: None if isnan(value) else value for key, value in row._asdict().items()}
        assert json.loads(line) == {"machine": 0, **expected}


def test_lines_are_strict_json(tmp_path: Path) -> None:
    with TraceWriter(str(tmp_path / "t"), pytest.fail) as writer:
        writer.write(ROWS[0], machine=3)
    (line,) = (tmp_path / "t").read_text().splitlines()
    assert json.loads(line) == {
        **{"machine": 3, "seconds": 0.125, "steps": 1, "kernel_evaluations": 10},
        **{"primal": None, "dual": None, "violation": None, "holdout_error": None, "n_support": 0},
    }


@pytest.mark.parametrize("path", ["/dev/full", "no/t"])
def test_a_trace_that_cannot_be_written_is_one_word_and_nothing_else(path: str, tmp_path: Path) -> None:
    said: list[str] = []
    with TraceWriter(str(tmp_path / path), said.append) as writer:
        for row in ROWS:
            writer.write(row)
    (line,) = said
    why = "No space left on device" if path == "/dev/full" else "No such file or directory"
    assert line.startswith(f"--trace {tmp_path / path}: cannot be written: {why}; the trace is cut short")


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("error", [None, ValueError])
def test_an_old_trace_is_replaced_when_the_new_one_begins(rows: int, error: type[Exception] | None, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("old")
    with suppress(ValueError), TraceWriter(str(path), pytest.fail) as writer:
        assert path.read_text() == "old"
        for row in ROWS[:rows]:
            writer.write(row)
        if error:
            raise error
    assert path.read_text() == ("old" if error and not rows else "".join(map(trace_line, ROWS[:rows])))
