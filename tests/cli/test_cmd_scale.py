"""``svmkit scale`` from the outside."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from shell import process, svmkit

from svmkit.io.libsvm_data import read_dataset

DATA = "1 1:2 2:0.1 4:7\n-1 1:4 3:-0.5 4:7 # a comment\n1 1:3 2:0.3 4:7\n"


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "d").write_text(DATA)
    return str(tmp_path / "d")


def test_every_feature_spans_the_range(data: str, tmp_path: Path) -> None:
    done = svmkit("scale", "--lower", "0", "--upper", "5", data, tmp_path / "out")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    before, after = read_dataset(data), read_dataset(str(tmp_path / "out"))
    X = before.rows.to_dense()[:, 1:4]
    assert np.allclose(after.rows.to_dense()[:, 1:], 5 * (X - X.min(0)) / (X.max(0) - X.min(0)), rtol=1e-15)
    assert after.n_features == 3  # the fourth never varies
    assert after.y.tolist() == before.y.tolist()


def test_the_default_range_fills_zeros_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("1 1:2\n-1 2:4\n1\n")
    done = svmkit("scale", tmp_path / "d")
    assert done.stdout == "1 1:1 2:-1\n-1 1:-1 2:1\n1 1:-1 2:-1\n"
    assert "2 values became 6" in done.stderr
    assert "--lower 0" in done.stderr


def test_saved_ranges_do_the_same_to_other_data(data: str, tmp_path: Path) -> None:
    ranges, other = tmp_path / "ranges", tmp_path / "other"
    first = svmkit("scale", "-l", "0", "-s", ranges, data)
    assert svmkit("scale", "-r", ranges, data).stdout == first.stdout
    other.write_text("5 1:8 9:1\n")
    done = svmkit("scale", "--restore", ranges, other)
    assert done.stdout == "5 1:3 3:1\n"
    assert "no range for 1 feature, left out: 9" in done.stderr


@pytest.mark.parametrize(("count", "listed"), [(10, "10"), (11, "10 …")])
def test_of_features_without_a_range_ten_are_named(count: int, listed: str, tmp_path: Path) -> None:
    """Index 0 among them, unless the file has it."""
    (tmp_path / "r").write_text("x\n-1 1\n90 0 1\n")
    pairs = " ".join(f"{index}:1" for index in range(count))
    (tmp_path / "d").write_text(f"1 {pairs} 90:1\n")
    done = svmkit("scale", "-r", "r", "d", cwd=tmp_path)
    names = ", ".join(map(str, range(10))) + listed.removeprefix("10")
    assert done.stdout == "1 90:1\n"
    assert done.stderr == f"svmkit: warning: r has no range for {count} features, left out: {names}\n"


def test_the_smallest_normal_number_is_written_and_what_is_below_is_0(tmp_path: Path) -> None:
    """No reader takes subnormal ones."""
    (tmp_path / "d").write_text("1 1:0\n1 1:1\n1 1:2\n")
    done = svmkit("scale", "-q", "-l", "0", "-u", "2.2250738585072014e-308", tmp_path / "d")
    assert done.stdout == "1\n1 1:0\n1 1:2.2250738585072014e-308\n"


def test_as_many_values_as_before_are_not_told_of(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("1 1:2 2:5\n-1 1:4 2:1\n")
    assert svmkit("scale", tmp_path / "d").stderr == ""


def test_labels_too(data: str, tmp_path: Path) -> None:
    done = svmkit("scale", "-l", "0", "-y", "10", "20", "-s", tmp_path / "r", data)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["20", "10", "20"]
    assert svmkit("scale", "-r", tmp_path / "r", data).stdout == done.stdout


def test_costs_and_groups_stay(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("1 qid:3 cost:0.5 1:2\n-1 qid:4 cost:2 1:4\n1 1:4\n")
    lines = svmkit("scale", "-l", "0", tmp_path / "d").stdout.splitlines()
    assert lines == ["1 qid:3 cost:0.5", "-1 qid:4 cost:2 1:1", "1 1:1"]


def test_pipes(data: str) -> None:
    assert process("scale", "-", stdin=DATA.encode()).stdout == svmkit("scale", data).stdout


def test_memory_does_not_grow_with_what_is_written(tmp_path: Path) -> None:
    """4 million values, of which one in 400 is stored."""
    rows = (" ".join(f"{25 * r + k}:1" for k in range(1, 26)) for r in range(400))
    (tmp_path / "d").write_text("".join(f"1 {row}\n" for row in rows))
    tracemalloc.start()
    done = svmkit("scale", "-q", tmp_path / "d", tmp_path / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert done.returncode == 0
    assert "10,000 values became 4,000,000" in done.stderr
    assert peak < 100e6


def test_what_leaves_the_range_of_doubles_is_refused_by_feature(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("x\n-1 1\n2 -1.7e308 1.7e308\n")
    (tmp_path / "out").write_text("before")
    (tmp_path / "d").write_text("1 2:1\n")
    done = svmkit("scale", "-r", "r", "d", "out", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "can't write out: scaled values of feature 2 leave the range of doubles; nothing was overwritten" in done.stderr
    assert (tmp_path / "out").read_text() == "before"


def test_labels_that_leave_the_range_of_doubles_are_refused(tmp_path: Path) -> None:
    """As nan, too, where a difference overflows above and below."""
    (tmp_path / "d").write_text("-1.7e308 1:1\n1.6e308 1:2\n1.7e308 1:3\n0 1:3\n")
    done = svmkit("scale", "-y", 0, 1, "d", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "can't write to standard output: scaled labels leave the range of doubles" in done.stderr


def test_a_range_file_is_not_written_where_the_output_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("-1 1:-8e307\n1 1:8e307\n1 1:0\n")
    (tmp_path / "saved").write_text("before")
    done = svmkit("scale", "-s", "saved", "-l", "-8e307", "-u", "8e307", "d", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert "nothing was overwritten" in done.stderr
    assert (tmp_path / "saved").read_text() == "before"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["nosuch"], 1, "nosuch"),
        (["d", "d"], 2, "overwritten"),
        (["-s", "d", "d"], 2, "overwritten"),
        (["-s", "x", "d", "x"], 2, "overwritten"),
        (["-r", "r", "d", "r"], 2, "overwritten"),
        (["-s", "r", "-r", "r", "d"], 2, "--restore"),
        (["-l", "1", "-u", "1", "d"], 2, "limit"),
        (["-y", "2", "1", "d"], 2, "limit"),
        (["-r", "d", "d"], 1, "d, line 1"),
        (["-s", "no/such/r", "d"], 1, "no/such"),
        (["-l", "nan", "d"], 2, "limit"),
        (["-u", "inf", "d"], 2, "limit"),
        (["-l", "-1e308", "-u", "1e308", "d"], 2, "limit"),
        (["-r", "-", "-"], 2, "standard input"),
        (["-r", "r", "-l", "0", "d"], 2, "-l beside --restore"),
        (["-s", "-", "data"], 2, "standard output"),
    ],
)
def test_refusals_say_why_and_write_nothing(args: list[str], code: int, words: str, data: str, tmp_path: Path) -> None:
    (tmp_path / "r").write_text("x\n0 1\n1 0 2\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = svmkit("scale", *args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_labels_beside_a_range_of_one_point_are_told(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("y\n0 1\n5 5\nx\n-1 1\n1 0 10\n")
    (tmp_path / "d").write_text("5 1:5\n7 1:10\n8 1:0\n")
    done = svmkit("scale", "-r", tmp_path / "r", tmp_path / "d")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["0", "0", "0"]
    assert "its range of labels is one point, 5; 2 other labels become 0 as well" in done.stderr


@pytest.mark.parametrize("tool", ["scale", "svm-scale"])
def test_index_0_is_not_filled_in(tool: str, tmp_path: Path) -> None:
    (tmp_path / "d").write_text("1 0:2 1:1\n-1 0:4 1:2\n1 1:3\n")
    lines = svmkit(tool, tmp_path / "d").stdout.splitlines()
    assert [[pair.split(":")[0] for pair in line.split()[1:]] for line in lines][2] == ["1"]
