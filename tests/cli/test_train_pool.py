"""Who is asked, and what is kept of what goes wrong in a dialogue."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from svmkit.cli import train_pool
from svmkit.cli.progress import Reporter
from svmkit.errors import DataError, OutputError
from svmkit.trace import ActiveRow, Progress

LABELS = np.array([1, -1])


def never() -> bool:
    return False


def test_a_file_that_can_be_executed_is_asked_not_read(tmp_path: Path) -> None:
    path = tmp_path / "my oracle"
    path.write_text("#!/bin/sh\nread -r question\necho -1\n")
    path.chmod(0o755)
    pool: Any = SimpleNamespace(n=1)
    with Reporter(True) as reporter, closing(train_pool._oracle(str(path), pool, LABELS, reporter)) as oracle:
        assert (oracle.ask(0, "1:0.5", never) or "").strip() == "-1"
    path.chmod(0o644)
    path.write_text("1\n")
    with Reporter(True) as reporter, closing(train_pool._oracle(str(path), pool, LABELS, reporter)) as oracle:
        assert (oracle.ask(0, "1:0.5", never) or "").strip() == "1"


def test_what_went_wrong_first_is_what_is_told() -> None:
    """That a note of the log finds no room either comes of it."""
    first = DataError("first")

    def refuse(*_: object) -> None:
        raise OutputError("no room")

    log: Any = SimpleNamespace(note=refuse, add=refuse)
    oracle: Any = SimpleNamespace(ask=lambda *_: pytest.fail("asked once more"))
    pool: Any = SimpleNamespace(text_of=lambda row: "1:0.5")
    with Reporter(True) as reporter:
        dialogue = train_pool._Dialogue(oracle, pool, LABELS, log, reporter)
        dialogue.failure = first
        dialogue.note("a line")
        assert dialogue.failure is first
        assert dialogue.ask(0, never) is None
        dialogue.failure = None
        dialogue.note("a line")
        assert isinstance(dialogue.failure, OutputError)


def test_a_held_out_error_that_was_given_up_is_not_noted() -> None:
    noted: list[str] = []
    dialogue: Any = SimpleNamespace(note=noted.append)
    held_out: Any = SimpleNamespace(n=1000)
    with Reporter(True) as reporter:
        listener = train_pool._Listener(dialogue, 8, held_out, None, reporter)
        for labels, error in ((8, 0.5), (11, math.nan), (15, 0.25)):
            listener.on_row(ActiveRow(0.0, labels, error, 0, 0))
    assert noted == ["15 labels: held-out error 25 % of 1,000"]


def test_a_person_is_not_told_to_hurry(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(train_pool, "_REPORT_EVERY_S", 0.0)
    pool: Any = SimpleNamespace(text_of=lambda row: "1:0.5")
    unused: Any = None
    with Reporter(False) as reporter:
        for oracle, told in ((train_pool.Person((1, -1), reporter), 0), (SimpleNamespace(), 1)):
            dialogue = train_pool._Dialogue(oracle, pool, LABELS, unused, reporter)
            assert not dialogue._patience(0, never)()
            assert capfd.readouterr().err.count("waiting for --oracle to answer row 1;") == told


def test_reports_are_so_many_seconds_apart(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    clock = SimpleNamespace(now_s=0.0)
    monkeypatch.setattr(train_pool, "time", SimpleNamespace(perf_counter=lambda: clock.now_s))

    unused: Any = None
    with Reporter(False) as reporter:
        listener = train_pool._Listener(unused, 0, None, None, reporter)
        for labels in range(1, 31):
            clock.now_s += 1.0
            listener.on_label(Progress(labels, 0, n_support=labels), labels)
    assert [line.split(" label")[0].split()[-1] for line in capfd.readouterr().err.splitlines()] == ["10", "20", "30"]
