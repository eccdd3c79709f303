"""What a waiting person sees, with the clock and the terminal made up."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan

import pytest

from svmkit import _jit, _store
from svmkit.cli import cold_start, progress
from svmkit.cli.cold_start import ColdStart
from svmkit.cli.progress import MachineProgress, Reporter
from svmkit.config import TrainConfig
from svmkit.trace import Progress


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(progress.time, "perf_counter", made)
    return made


def test_plain_lines_come_every_five_seconds(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Reporter(False) as reporter:
        machines = MachineProgress(reporter, 1, TrainConfig())
        for _ in range(48):  # 12 s
            clock.now += 0.25
            machines.progress(0.0, Progress(1234, 5, 0.25, n_support=17))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0] == "svmkit: 5.0 s, 1,234 iterations, violation 0.25 (stops at 0.001), 17 support vectors"


def test_a_terminal_has_one_line_that_is_wiped_at_the_end(
    clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    with Reporter(False) as reporter:
        assert reporter.live
        machines = MachineProgress(reporter, 3, TrainConfig(max_iter=2000, time_limit_s=60))
        machines.done(1, None)
        for _ in range(10):
            clock.now += 1
            machines.progress(0.0, Progress(1234, 5, nan, n_support=17))
        reporter.note("a note")
    pieces = capsys.readouterr().err.split("\r")
    assert len(pieces) == 12
    assert pieces[1].startswith("machine 2 of 3, 1.0 s, 1,234 iterations")
    assert all(len(piece.removesuffix("\x1b[K")) < 40 for piece in pieces[1:-1])
    assert pieces[-1] == "\x1b[Ksvmkit: a note\n"


def test_the_line_of_a_terminal_obeys_no_name(
    clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "21")
    with Reporter(False) as reporter:
        clock.now += 1
        reporter.doing("reading \x1b[2J\n")
    assert capsys.readouterr().err == "\r1.0 s, reading \\x1b[\x1b[K\r\x1b[K"


def test_limits_are_the_only_promise(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Reporter(False) as reporter:
        clock.now += 10
        machines = MachineProgress(reporter, 1, TrainConfig(max_iter=2000, time_limit_s=60))
        machines.progress(9.0, Progress(1234, 5, nan, n_support=17))
    assert capsys.readouterr().err == (
        "svmkit: 10.0 s, 1,234 iterations, 17 support vectors, at most 766 iterations left, at most 51 s left\n"
    )


@pytest.mark.parametrize(
    ("progress", "said"),
    [(Progress(9, 5, violation=0.25), "violation 0.25"), (Progress(9, 5, gap=0.25), "relative gap 0.25")],
)
def test_what_a_solver_stops_by_has_its_name(
    clock: Clock, capsys: pytest.CaptureFixture[str], progress: Progress, said: str
) -> None:
    with Reporter(False) as reporter:
        clock.now += 10
        MachineProgress(reporter, 1, TrainConfig(eps=0.01)).progress(9.0, progress)
    assert capsys.readouterr().err == f"svmkit: 10.0 s, 9 iterations, {said} (stops at 0.01), 0 support vectors\n"


def test_a_limit_that_is_passed_leaves_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Reporter(False) as reporter:
        clock.now += 10
        MachineProgress(reporter, 1, TrainConfig(max_iter=10, time_limit_s=5)).progress(9.0, Progress(12, 5, nan, n_support=1))
    assert capsys.readouterr().err.endswith("1 support vector, at most 0 iterations left, at most 0 s left\n")


def test_machines_that_are_done_are_counted_where_they_are_several(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    for total in (1, 30):
        with Reporter(False) as reporter:
            machines = MachineProgress(reporter, total, TrainConfig())
            for count in (1, 7):
                clock.now += 10
                machines.done(count, None)
    assert capsys.readouterr().err == "svmkit: 1 of 30 machines, 10.0 s\nsvmkit: 8 of 30 machines, 20.0 s\n"


def test_quiet_shows_warnings_only(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Reporter(True) as reporter:
        clock.now += 100
        MachineProgress(reporter, 1, TrainConfig()).progress(0.0, Progress(1, 1))
        reporter.warn("WARNING: mind this")
    assert capsys.readouterr().err == "svmkit: warning: mind this\n"


def hear_and_wait(cold: ColdStart) -> None:
    """Compiling begins, and goes on until it would be worth a word."""
    with _jit._counted():
        hear_in_passing(cold)


def hear_in_passing(cold: ColdStart) -> None:
    """The same, but then the compiling is over."""
    cold.hear("f")
    if cold._timer is not None:
        cold._timer.join()


def test_a_cold_start_says_what_it_does(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold_start, "_COLD_S", 0.0)
    with Reporter(False) as reporter:
        hear_and_wait(reporter.cold)
        hear_and_wait(reporter.cold)
    told = "compiling the inner loops for this machine (first run only; 'svmkit warmup' does it ahead of time)"
    assert capsys.readouterr().err == f"svmkit: {told}\n"


def test_after_the_end_and_with_quiet_it_says_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cold_start, "_COLD_S", 0.0)
    with Reporter(False) as reporter:
        pass
    hear_and_wait(reporter.cold)
    with Reporter(True) as reporter:
        hear_and_wait(reporter.cold)
    assert capsys.readouterr().err == ""


def test_a_cold_start_of_every_run_is_not_called_the_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_store, "unwritable", lambda: "can't write X: Not a directory")
    monkeypatch.setattr(cold_start, "_COLD_S", 0.0)
    with Reporter(False) as reporter:
        hear_and_wait(reporter.cold)
    told = "compiling the inner loops for this machine, as every run will: can't write X: Not a directory\n"
    assert capsys.readouterr().err == f"svmkit: {told}"


def test_a_quick_compilation_is_not_worth_a_word_but_a_long_one_after_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold_start, "_COLD_S", 0.0)
    said: list[str] = []
    cold = ColdStart(said.append)
    hear_in_passing(cold)
    assert said == []
    hear_and_wait(cold)
    assert said == ["compiling the inner loops for this machine (first run only)"]
