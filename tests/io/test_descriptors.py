"""Descriptors beyond 1024, of which ``select`` knows nothing: a program that calls svmkit may have as many files open."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from svmkit.io.descriptors import Patient, read_some, ready
from svmkit.io.inputs import open_bytes
from svmkit.io.oracle import Command


@pytest.fixture(autouse=True)
def crowd() -> Iterator[None]:
    """What is opened meanwhile has such a descriptor."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != before[1] < 2048:
        pytest.skip("this system gives no process so many")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, before[1]))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    while taken[-1] < 1024:
        taken.append(os.dup(taken[0]))
    yield
    for descriptor in taken:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """One that does not block."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    yield ends
    for end in ends:
        os.close(end)


@contextmanager
def later(function: Callable[..., object], *args: object) -> Iterator[None]:
    """Calls it while what is inside waits."""
    timer = threading.Timer(0.2, function, args)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_what_does_not_block_is_waited_for(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    assert not ready(reading, 0)
    with later(os.write, writing, b"late"):
        assert read_some(reading, 9) == b"late"


def test_what_is_full_is_waited_for(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    while ready(writing, 0, to_write=True):
        os.write(writing, bytes(4096))
    with later(os.read, reading, 1 << 20):
        assert Patient(writing).write(b"late") == 4
    assert read_some(reading, 9) == b"late"


def test_a_file_is_always_ready(tmp_path: Path) -> None:
    with open(tmp_path / "empty", "a+b") as file:
        assert ready(file.fileno(), 0)
        assert ready(file.fileno(), 0, to_write=True)


def test_what_has_come_of_a_pipe_is_handed_on(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"1 1:2\n")
    with open_bytes(f"/dev/fd/{pipe[0]}") as read:
        assert read(1000) == b"1 1:2\n"


def test_a_command_answers() -> None:
    with closing(Command("while read -r row rest; do echo $((row * 10)); done")) as oracle:
        assert [oracle.ask(row, "", lambda: False) for row in (4, 0)] == ["50", "10"]
