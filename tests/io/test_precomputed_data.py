"""Data files of precomputed kernels (-t 4)."""

from __future__ import annotations

from pathlib import Path

import pytest
from data_files import read, refused


def test_precomputed_rows(tmp_path: Path) -> None:
    text = b"# K\n1 0:2 1:0.5 2:1 3:0\n-1 0:1 1:1 2:0.5 3:0.25\n"
    rows = read(tmp_path, text, precomputed=True, training=True)[0].rows
    assert rows.serial.tolist() == [2, 1]
    assert rows.gram.tolist() == [[0.5, 1, 0], [1, 0.5, 0.25]]
    assert (rows.n, rows.n_features, len(rows.data), rows.precomputed) == (2, 3, 0, True)


FIRST_COLUMN = "Wrong input format: first column must be 0:sample_serial_number"
SERIAL_RANGE = "Wrong input format: sample_serial_number out of range"


@pytest.mark.parametrize(
    ("row", "summary"),
    [
        (b"1 1:1 2:2", FIRST_COLUMN),
        (b"1", FIRST_COLUMN),
        (b"1 0:1 2:2", "Wrong input format at line 3"),
        (b"1 0:1 1:1", "Wrong input format at line 3"),
        (b"1 0:0 1:1 2:1", SERIAL_RANGE),
        (b"1 0:3 1:1 2:1", SERIAL_RANGE),
        (b"1 0:1.5 1:1 2:1", SERIAL_RANGE),
    ],
)
def test_precomputed_rows_refused(tmp_path: Path, row: bytes, summary: str) -> None:
    error = refused(tmp_path, b"1 0:1 1:1 2:0\n# comment\n" + row + b"\n", precomputed=True, training=True)
    assert error.summary == summary
    assert f"{tmp_path}/data, line 3: " in error.detail


@pytest.mark.parametrize(
    ("odd", "gives"),
    [
        ("0:2 1:1 2:2 7:9", "has none for column 3"),
        ("0:2 1:1 2:2 3:9", "gives 4 up to column 3, others 3"),
        ("0:2 1:1", "gives 2 up to column 1, others 3"),
        ("0:2 2:1", "has none for column 1"),
        ("0:2 1:1 3:1", "has none for column 2"),
    ],
)
def test_the_uneven_row_is_the_odd_one_out(odd: str, gives: str, tmp_path: Path) -> None:
    error = refused(tmp_path, f"1 0:1 1:2 2:1\n-1 {odd}\n1 0:1 1:2 2:1\n".encode(), precomputed=True, training=True)
    assert error.summary == "Wrong input format at line 2"
    assert error.detail.endswith(f"every column from 0 to the same last one, zeros too: this one {gives}")


def test_rows_that_are_all_uneven_are_refused_by_the_first(tmp_path: Path) -> None:
    error = refused(tmp_path, b"1 0:1 2:2\n-1 0:2 2:1\n", precomputed=True)
    assert error.summary == "Wrong input format at line 1"
    assert error.detail.endswith("this one has none for column 1")


def test_serial_numbers_of_test_files_may_be_any(tmp_path: Path) -> None:
    rows = read(tmp_path, b"1 0:-7 1:1\n1 0:99 1:2\n1 0:1.5 1:3\n1 0:1e300 1:4\n", precomputed=True)[0].rows
    assert rows.precomputed
    assert rows.gram.tolist() == [[1], [2], [3], [4]]


def test_precomputed_without_any_pair(tmp_path: Path) -> None:
    assert refused(tmp_path, b"1\n1\n", precomputed=True).summary == FIRST_COLUMN
