"""Makes ``oracle``, ``zoo`` and ``golden_data`` importable from every folder of tests, and leaves no setting behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from svmkit import parallel


@pytest.fixture
def threads() -> Iterator[None]:
    """For tests that call ``parallel.use_threads``."""
    yield
    parallel.use_threads(0)
