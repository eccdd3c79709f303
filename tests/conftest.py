"""Numbers of threads that a test asks for and does not leave behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from svmkit import parallel


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
