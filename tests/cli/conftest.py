"""A cold store must not change what commands say: the note about compiling comes by the clock."""

from __future__ import annotations

import pytest

from svmkit.cli import cold_start


@pytest.fixture(autouse=True)
def no_note_about_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold_start, "_COLD_S", 600.0)
