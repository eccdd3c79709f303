"""Standard streams that are closed, full or unbuffered: one line, the right code, and no file in their place."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from shell import process, write_blobs

from svmkit.cli.streams import complaint, shown
from svmkit.io.descriptors import ready


def closing(*numbers: int) -> Callable[[], None]:
    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


def test_tabs_and_letters_are_shown_as_they_are() -> None:
    assert shown("row\t1:2 é\n\x00\x85") == "row\t1:2 é\\n\\x00\\x85"


@pytest.mark.parametrize("numbers", [(0,), (1,), (2,), (0, 1, 2)])
def test_what_uses_no_stream_does_without_it(numbers: tuple[int, ...], data: Path, tmp_path: Path) -> None:
    done = process("train", "--trace", tmp_path / "t", data, tmp_path / "m", before=closing(*numbers))
    assert (done.returncode, done.stdout) == (0, "")
    assert process("train", data, tmp_path / "same").returncode == 0
    assert (tmp_path / "m").read_bytes() == (tmp_path / "same").read_bytes()


@pytest.mark.parametrize("args", ["eval blobs m", "predict blobs m", "scale blobs", "train --json blobs m2", "--help"])
def test_a_closed_standard_output_is_one_line(args: str, data: Path, tmp_path: Path) -> None:
    assert process("train", data, tmp_path / "m").returncode == 0
    there = [str(tmp_path / arg) if arg in ("blobs", "m", "m2") else arg for arg in args.split()]
    done = process(*there, before=closing(1))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "svmkit: can't write to standard output: it is closed"


def test_a_closed_standard_input_is_told_as_that(tmp_path: Path) -> None:
    done = process("train", "-", tmp_path / "m", before=closing(0))
    assert (done.returncode, done.stderr.splitlines()[-2:]) == (1, ["svmkit: can't open input file -", "it is closed"])


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "can't write to standard output: No space left on device"),
        (OSError(errno.EAGAIN, "Resource temporarily unavailable"), "Resource temporarily unavailable"),  # of a fork
        (OSError("cannot load it"), "cannot load it"),
        (OSError(errno.ENOENT, "No such file or directory", "x"), "x: No such file or directory"),
        (ImportError("a.so: failed to map segment from shared object"), "not enough memory for this"),
    ],
)
def test_what_went_wrong_is_said_as_what_it_is(error: OSError, says: str) -> None:
    assert complaint(error) == says


def test_memory_that_was_not_there_is_said_with_its_size() -> None:
    """Which tells whoever gave an option of memory, or of a matrix's size, that it is that."""
    with pytest.raises(MemoryError) as caught:
        np.empty((10**6, 10**6, 10), np.float32)
    assert complaint(caught.value) == "not enough memory for this: 40,000.0 GB at once"


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


@contextmanager
def lost(how: str) -> Iterator[int]:
    """What to write to where nobody will hear it: a full disk, or a pipe whose reader has gone."""
    if how == "full":
        with open("/dev/full", "wb") as full:
            yield full.fileno()
        return
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.parametrize("how", ["full", "reader gone"])
@pytest.mark.parametrize(
    ("args", "code"),
    [
        ([], 2),
        (["train", "nothing", "m"], 1),
        (["train", "--colour", "blobs", "m"], 2),
        (["train", "-w7", "2", "blobs", "m"], 0),
        (["train", "--solver", "lasvm", "--stream", "-g", "1", "-c", "1", "blobs", "m"], 0),
    ],
)
def test_a_lost_standard_error_changes_nothing_else(args: list[str], code: int, how: str, data: Path, tmp_path: Path) -> None:
    with lost(how) as stderr:
        command = [sys.executable, "-m", "svmkit", *args]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=stderr, cwd=data.parent, timeout=60, check=False)
    assert done.returncode == code
    assert (tmp_path / "m").exists() == (code == 0)


def read_slowly(*args: object, **env: str) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors of ``svmkit args``, whose output does not block and is full for a while."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    command = [sys.executable, "-m", "svmkit", *map(str, args)]
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, env={**os.environ, **env}) as running:
        os.close(writing)
        time.sleep(1.0)
        with open(reading, "rb") as file:
            out = file.read()
        _, err = running.communicate()
    return running.returncode, out, err


MAP = ("approx", "-q", "--map", "fourier", "-g", "1", "--dim", "200")


@pytest.mark.parametrize("args", [("scale",), ("svm-scale",), MAP], ids=str)
def test_a_standard_output_that_does_not_block_is_waited_for(args: tuple[str, ...], tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "many", n=6000)
    rest = (data,) if args[0] == "svm-scale" else (data, "-")
    assert read_slowly(*args, *rest) == (0, process(*args, *rest).stdout.encode(), b"")


def test_a_standard_error_that_does_not_block_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    while ready(writing, 0, to_write=True):
        os.write(writing, bytes(4096))
    with subprocess.Popen([sys.executable, "-m", "svmkit", "train", "/nowhere"], stderr=writing) as running:
        os.close(writing)
        time.sleep(1.0)
        with open(reading, "rb") as file:
            told = file.read().lstrip(b"\0")
    assert (running.returncode, told) == (1, process("train", "/nowhere").stderr.encode())


def test_what_an_encoding_lacks_is_written_as_an_escape() -> None:
    command = [sys.executable, "-m", "svmkit", "train", "--help"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, check=True)
    assert "C = 1/(\\u03bb n)" in done.stdout.decode("latin-1")
