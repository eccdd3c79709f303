"""Ctrl-C as tests expect it; numbers of threads, and a store, that a test asks for and does not leave behind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import svmkit.cli  # noqa: F401 - before NumPy loads: it keeps BLAS to one thread, here as in the command
from svmkit import _store, parallel


def pytest_configure() -> None:
    """Jobs in a script's background ignore Ctrl-C, and so would every command that a test starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def threads() -> Iterator[None]:
    """For tests that call ``parallel.use_threads``."""
    yield
    parallel.use_threads(0)


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Two worker threads, or as many as the test says later."""
    parallel.use_threads(2)
    yield
    parallel.use_threads(0)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store for this process."""
    monkeypatch.setattr(_store, "store", lambda: tmp_path)
    return tmp_path
