"""What tests of commands need: data to train on, a name for a model, and no note about compiling, which comes by the clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import write_blobs

from svmkit.cli import cold_start


@pytest.fixture(autouse=True)
def no_note_about_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold_start, "_COLD_S", 600.0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """60 examples of two classes."""
    return write_blobs(tmp_path / "blobs")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Where a model may be written."""
    return tmp_path / "m"
