"""Standard streams that are closed, full or unbuffered: one line, the right code, and no file in their place."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from shell import process, write_blobs


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_blobs(tmp_path / "blobs")


def closing(*numbers: int) -> Callable[[], None]:
    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


@pytest.mark.parametrize("numbers", [(0,), (1,), (2,), (0, 1, 2)])
def test_what_uses_no_stream_does_without_it(numbers: tuple[int, ...], data: Path, tmp_path: Path) -> None:
    done = process("train", "--trace", tmp_path / "t", data, tmp_path / "m", before=closing(*numbers))
    assert (done.returncode, done.stdout) == (0, "")
    assert process("train", data, tmp_path / "same").returncode == 0
    assert (tmp_path / "m").read_bytes() == (tmp_path / "same").read_bytes()


@pytest.mark.parametrize("args", [["eval", "blobs", "m"], ["train", "--json", "blobs", "m2"], ["--help"]])
def test_a_closed_standard_output_is_one_line(args: list[str], data: Path, tmp_path: Path) -> None:
    assert process("train", data, tmp_path / "m").returncode == 0
    there = [str(tmp_path / arg) if arg in ("blobs", "m", "m2") else arg for arg in args]
    done = process(*there, before=closing(1))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "svmkit: can't write to standard output: it is closed"


@pytest.mark.parametrize("tool", ["svm-scale", "scale"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_does_not_fit_is_an_error(tool: str, unbuffered: str, data: Path, tmp_path: Path) -> None:
    """A first write may store a part and succeed."""

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    with open(tmp_path / "out", "wb") as out:
        done = process(tool, data, stdout=out.fileno(), before=little_room, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 1
    assert done.stderr.endswith("standard output: File too large\n")


def test_a_full_standard_error_does_not_end_in_a_traceback(data: Path, tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*process("--version").args[:3], "train", "nothing", str(tmp_path / "m")], stderr=full, timeout=60, check=False
        )
    assert done.returncode == 1
