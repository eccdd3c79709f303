"""Pools: the same rows with labels, with ``?`` and without, and each one's text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from svmkit.errors import DataError
from svmkit.io.pool import Pool

FEATURES = ["1:0.5 3:2", "2:1", "", "7:1e-3  9:1", "1:1"]
FORMS = {
    "labelled": [f"{label} {text}".strip() for label, text in zip(["1", "-1", "+1", "3", "-1"], FEATURES, strict=True)],
    "unknown": [f"? {text}".strip() for text in FEATURES],
    "bare": FEATURES,
}


def write(path: Path, lines: list[str], end: str = "\n") -> Path:
    path.write_text("\n".join(["# a comment", *lines[:2], " " * 300 + "# and another", *lines[2:]]) + end)
    return path


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", ["\n", ""])
def test_rows_and_texts(form: str, end: str, tmp_path: Path) -> None:
    pool = Pool(str(write(tmp_path / "p", FORMS[form], end)), pytest.fail)
    assert pool.n == 5
    assert np.isnan(pool.dataset.y).all()
    assert [pool.text_of(row) for row in range(5)] == FEATURES
    dense = pool.dataset.rows.to_dense()
    assert [np.flatnonzero(row).tolist() for row in dense] == [[1, 3], [2], [], [7, 9], [1]]


def test_a_tab_may_stand_behind_the_label(tmp_path: Path) -> None:
    lines = [f"?\t{text}" for text in FEATURES]
    pool = Pool(str(write(tmp_path / "p", lines, "\r\n")), pytest.fail)
    assert [pool.text_of(row) for row in range(5)] == FEATURES


def test_long_lines_are_whole(tmp_path: Path) -> None:
    long = " ".join(f"{i}:1" for i in range(1, 3000))
    pool = Pool(str(write(tmp_path / "p", [long, "1:1"])), pytest.fail)
    assert [pool.text_of(0), pool.text_of(1)] == [long, "1:1"]


@pytest.mark.parametrize("form", FORMS)
def test_a_pool_may_begin_with_many_comments(form: str, tmp_path: Path) -> None:
    pool = Pool(str(write(tmp_path / "p", ["# a longer comment, with 1:1 in it"] * 3000 + FORMS[form])), pytest.fail)
    assert [pool.text_of(row) for row in range(5)] == FEATURES


def test_forms_cannot_be_mixed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 3, column 1: '[?]'"):
        Pool(str(write(tmp_path / "p", ["1:1", "? 1:1"])), pytest.fail)


def test_empty_lines_alone_are_no_pool(tmp_path: Path) -> None:
    """Of rows without features: what a row has is not known before one has something."""
    (tmp_path / "p").write_text("\n\n")
    with pytest.raises(DataError, match="line 1, column 1: the line is empty"):
        Pool(str(tmp_path / "p"), pytest.fail)


def test_what_else_stands_in_a_line(tmp_path: Path) -> None:
    """A weight counts, a remark may be in another encoding, and words that are left out are told."""
    path, told = tmp_path / "p", list[str]()
    path.write_bytes(b"? cost:3 1:1 # caf\xe9\n? 2:1 word\n")
    pool = Pool(str(path), told.append)
    assert (pool.dataset.weights.tolist(), pool.dataset.source) == ([3.0, 1.0], str(path))
    assert [pool.text_of(row) for row in range(2)] == ["cost:3 1:1 # caf\N{REPLACEMENT CHARACTER}", "2:1 word"]
    assert told == [f"{path}: words after the last index:value pair were left out on line 2"]


def test_marks_tell_pools_apart(tmp_path: Path) -> None:
    one, same, other = (
        Pool(str(write(tmp_path / name, lines)), pytest.fail).mark
        for name, lines in (("a", FEATURES), ("b", FEATURES), ("c", [*FEATURES[:4], "1:2"]))
    )
    assert one == same != other
    assert one.startswith("5 rows, crc32 ")
