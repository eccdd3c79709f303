"""The folder of small data that the old tools and ours are run in."""

from __future__ import annotations

from pathlib import Path

import pytest
from old_tools import write_data


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Never changed: runs take copies of it."""
    made = tmp_path_factory.mktemp("old") / "data"
    made.mkdir()
    write_data(made)
    return made
