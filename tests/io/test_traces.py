"""Trace files: what is written is read back, line by line as it comes."""

from __future__ import annotations

import json
from math import nan
from pathlib import Path

import pytest

from svmkit.errors import DataError, OutputError
from svmkit.io.traces import TraceWriter, read_trace
from svmkit.trace import TraceRow

ROWS = [TraceRow(0.125, 1, 10, nan, nan, nan, nan, 0), TraceRow(1 / 3, 20, 300, 5.0, 4.5, 1e-3, 0.25, 7)]


def test_rows_come_back_bit_for_bit(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with TraceWriter(path, pytest.fail) as writer:
        for number, row in enumerate(ROWS, start=1):
            writer.write(row, machine=0)
            assert len(read_trace(path)) == number  # readable while it grows
    assert repr(read_trace(path)) == repr(ROWS)


def test_lines_are_strict_json(tmp_path: Path) -> None:
    with TraceWriter(str(tmp_path / "t"), pytest.fail) as writer:
        writer.write(ROWS[0], machine=3)
    (line,) = (tmp_path / "t").read_text().splitlines()
    assert json.loads(line) == {
        **{"machine": 3, "seconds": 0.125, "steps": 1, "kernel_evaluations": 10},
        **{"primal": None, "dual": None, "violation": None, "holdout_error": None, "n_support": 0},
    }


def test_an_unwritable_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"--trace .*no/t"):
        TraceWriter(str(tmp_path / "no" / "t"), pytest.fail)


def test_a_full_disk_ends_the_trace_with_one_word_and_nothing_else() -> None:
    said: list[str] = []
    with TraceWriter("/dev/full", said.append) as writer:
        for row in ROWS:
            writer.write(row)
    (line,) = said
    assert line.startswith("--trace /dev/full: cannot be written: No space left on device; the trace is cut short")


@pytest.mark.parametrize("text", ["{}", "[1]", "{", '{"seconds": 1}', "3"])
def test_rubbish_is_refused_by_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text + "\n")
    with pytest.raises(DataError, match="line 1"):
        read_trace(str(tmp_path / "t"))
