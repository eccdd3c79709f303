"""Ctrl-C and SIGTERM: during training the model so far is saved; a second signal stops at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from shell import strict_json, svmkit, wait_for, write_blobs

from svmkit import maps
from svmkit.cli.interrupt import Interrupts, stopping
from svmkit.cli.main import guarded
from svmkit.errors import Abandoned
from svmkit.io.model_libsvm import read_model


@contextmanager
def training(*args: object, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """A training that would take very long."""
    with subprocess.Popen(
        [sys.executable, "-m", "svmkit", "train", "-c", "1e8", "-e", "1e-12", "--solver", "pair", *map(str, args)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # the tests may run under nohup
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def begun(path: Path) -> Callable[[], bool]:
    """Whether the trace has begun: the solver is at work."""
    return lambda: path.exists() and path.stat().st_size > 0


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGXCPU, 152)]
)
def test_the_model_so_far_is_saved(signum: int, code: int, tmp_path: Path) -> None:
    data, model, trace = write_blobs(tmp_path / "d", n=600, d=2), tmp_path / "m", tmp_path / "t"
    with training("--json", "--trace", trace, data, model) as running:
        wait_for(begun(trace), running)
        running.send_signal(signum)
        out, err = running.communicate(timeout=60)
    assert running.returncode == code
    report = strict_json(out)
    assert report["status"] == "INTERRUPTED"
    assert "INTERRUPTED" in err
    assert read_model(str(model)).n_support == report["n_support"]
    assert svmkit("predict", "-q", data, model).returncode == 0


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGHUP, 129), (signal.SIGXCPU, 152)])
def test_a_signal_that_comes_again_by_itself_saves_the_model(signum: int, code: int, tmp_path: Path) -> None:
    """From the shell and the system where a terminal goes; every second where processor time is used up."""
    data, model, trace = write_blobs(tmp_path / "d", n=600, d=2), tmp_path / "m", tmp_path / "t"
    with training("--trace", trace, data, model) as running:
        wait_for(begun(trace), running)
        running.send_signal(signum)
        time.sleep(0.001)
        running.send_signal(signum)
        running.communicate(timeout=60)
    assert running.returncode == code
    assert read_model(str(model)).n_support > 0


def test_the_model_so_far_is_saved_where_nobody_hears_of_it(tmp_path: Path) -> None:
    data, model, trace = write_blobs(tmp_path / "d", n=600, d=2), tmp_path / "m", tmp_path / "t"
    reading, writing = os.pipe()
    os.close(reading)
    with training("--trace", trace, data, model, stderr=writing) as running:
        os.close(writing)
        wait_for(begun(trace), running)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    assert running.returncode == 130
    assert read_model(str(model)).n_support


def test_the_second_signal_stops_at_once(tmp_path: Path) -> None:
    """The signal comes twice before the solver can look: nothing is written, whatever was there stays."""
    script = """
import os, signal, sys, time
from svmkit.cli.interrupt import Interrupts, stopping
from svmkit.cli.main import guarded
from svmkit.errors import Abandoned
def action():
    with Interrupts() as stop:
        os.kill(os.getpid(), signal.{first})
        assert stop.interrupted()
        time.sleep(0.2)
        os.kill(os.getpid(), signal.{second})
        print("not reached")
sys.exit(guarded(action))
"""
    for first, second, code in (("SIGINT", "SIGINT", 130), ("SIGINT", "SIGTERM", 143), ("SIGTERM", "SIGINT", 130)):
        done = subprocess.run(
            [sys.executable, "-c", script.format(first=first, second=second)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (code, "")
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_the_same_signal_at_once_is_an_echo(signum: int) -> None:
    """``timeout`` sends its signal to the command, then to the group that it is of."""

    saved = []

    def action() -> int:
        with Interrupts(quiet=True) as stop:
            os.kill(os.getpid(), signum)
            assert stop.interrupted()
            os.kill(os.getpid(), signum)
            saved.append("the model")
            return stop.exit_code

    assert guarded(action) == 128 + signum
    assert saved


@pytest.mark.parametrize(
    ("second", "code", "tool_code"), [("SIGTERM", 143, 1), ("SIGINT", -signal.SIGINT, -signal.SIGINT)], ids=["echo", "another"]
)
def test_a_signal_while_the_end_is_told_makes_no_traceback(second: str, code: int, tool_code: int) -> None:
    """An echo of the first changes nothing; another ends the process as it ends any other."""
    script = """
import os, signal, sys
from svmkit.cli import main, streams
from svmkit.cli.compat import tool
def told_and_signalled(tell):
    def wrapped(*lines):
        tell(*lines)
        os.kill(os.getpid(), signal.{second})
    return wrapped
main.streams.tell = told_and_signalled(streams.tell)
tool.warn = told_and_signalled(tool.warn)
stopped = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
sys.exit(main.guarded(stopped) if sys.argv[1] == "svmkit" else tool.run_tool("svm-train", "", stopped, []))
"""
    for name, says, expected in (("svmkit", "stopped", code), ("svm-train", "interrupted", tool_code)):
        done = subprocess.run(
            [sys.executable, "-c", script.format(second=second), name], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout, done.stderr.lstrip()) == (expected, "", f"{name}: {says} before it was done\n")


def test_cross_validation_reports_no_accuracy_when_stopped(tmp_path: Path) -> None:
    with training("-v", "2", write_blobs(tmp_path / "d", n=600, d=2)) as running:
        assert running.stderr is not None
        while "iterations" not in (line := running.stderr.readline()):  # a progress line: the solver is at work
            assert line, "ended without one"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (130, "")
    assert "stopped" in err


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_before_training_there_is_nothing_to_save(signum: int, code: int, tmp_path: Path) -> None:
    with training("-", tmp_path / "m", stdin=subprocess.PIPE) as running:
        assert running.stdin is not None
        running.stdin.write("1 1:1\n")
        running.stdin.flush()
        while "numpy" not in Path(f"/proc/{running.pid}/maps").read_text():  # until the command is at work
            time.sleep(0.01)
        running.send_signal(signum)
        assert running.communicate(timeout=60) == ("", "\nsvmkit: stopped before it was done\n")
        assert running.returncode == code
    assert list(tmp_path.iterdir()) == []


def test_before_the_first_step_an_older_model_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, model = write_blobs(tmp_path / "d"), tmp_path / "m"
    model.write_text("the old model\n")
    monkeypatch.setattr(Interrupts, "interrupted", lambda self: True)
    done = svmkit("train", data, model)
    assert done.stderr == "svmkit: stopped before a step was taken; nothing was written\n"
    assert model.read_text() == "the old model\n"


@pytest.mark.parametrize("kind", ["nystroem", "fourier"])
def test_between_the_map_and_the_first_step_an_older_model_is_left(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model, mapped = write_blobs(tmp_path / "d"), tmp_path / "m", list[object]()
    model.write_text("the old model\n")
    monkeypatch.setattr(maps, "refuse_infinite", lambda features, where: mapped.append(features))
    monkeypatch.setattr(Interrupts, "interrupted", lambda self: bool(mapped))
    done = svmkit("train", "-q", "--map", kind, "--dim", "4", "--solver", "newton", data, model)
    assert done.stderr == "svmkit: stopped before a step was taken; nothing was written\n"
    assert model.read_text() == "the old model\n"


@pytest.mark.parametrize("command", ["predict", "scale"])
def test_writing_to_who_does_not_read_ends_by_a_signal(command: str, tmp_path: Path) -> None:
    """As in ``svmkit predict … | less``."""
    data = write_blobs(tmp_path / "d")
    assert svmkit("train", "-q", data, tmp_path / "m").returncode == 0
    (tmp_path / "many").write_bytes(data.read_bytes() * 2000)
    args = ["predict", "--output", "decision", "many", "m"] if command == "predict" else ["scale", "many"]
    with subprocess.Popen(
        [sys.executable, "-m", "svmkit", *args], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        running.stdout.read(1)  # the pipe fills up from now on
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=20) == 130


def test_a_file_that_is_written_when_a_signal_comes_leaves_nothing(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d")
    (tmp_path / "many").write_bytes(data.read_bytes() * 5000)
    with subprocess.Popen(
        [sys.executable, "-m", "svmkit", "scale", "many", "out"], cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as running:
        wait_for(lambda: any(path.name.startswith(".svmkit-") for path in tmp_path.iterdir()), running)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=20) == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "many"]


@pytest.mark.parametrize(
    ("entry", "module"),
    [
        ("svmkit", "click"),
        ("svm_train", "svmkit.config"),
        ("svm_predict", "svmkit.cli.compat.tool"),
        ("svm_scale", "svmkit.cli.compat.tool"),
    ],
)
def test_while_a_command_loads_the_signal_ends_it_without_a_traceback(entry: str, module: str) -> None:
    script = f"""
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from svmkit.__main__ import {entry}
{entry}()
"""
    command = [sys.executable, "-c", script, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, preexec_fn=ignore)
    assert (done.returncode, "Traceback" in done.stderr) == (0 if entry == "svmkit" else 1, False)


@pytest.mark.parametrize(
    ("entry", "signum", "code", "says"),
    [
        ("svmkit", "SIGINT", 130, "\nsvmkit: stopped before it was done\n"),
        ("svmkit", "SIGTERM", 143, "\nsvmkit: stopped before it was done\n"),
        ("svm_predict", "SIGINT", 1, "\nsvm-predict: interrupted before it was done\n"),
    ],
)
def test_an_error_that_a_signal_has_become_is_not_told(entry: str, signum: str, code: int, says: str, tmp_path: Path) -> None:
    """As NumPy's extension modules make an ImportError of it while they are loaded."""
    (tmp_path / "d").write_text("1 1:1\n")
    (tmp_path / "m").write_text("x")
    script = f"""
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            try:
                os.kill(os.getpid(), signal.{signum})
            except KeyboardInterrupt:
                raise ImportError("an extension module could not be imported") from None
sys.meta_path.insert(0, Finder())
from svmkit.__main__ import {entry}
{entry}()
"""
    words = [*(["predict"] if entry == "svmkit" else []), "d", "m", "out"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", says)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_python_ignores_comes_again(signum: int, code: int) -> None:
    """As in the callback of a weak reference, which the loading of modules has."""

    class Watched:
        pass

    def action() -> None:
        watched = Watched()
        last = weakref.ref(watched, lambda _: (os.kill(os.getpid(), signum), time.sleep(0.01)))
        del watched
        assert last() is None
        time.sleep(20)

    before = sys.unraisablehook
    assert guarded(action) == code
    assert sys.unraisablehook is before


def test_signals_ignored_from_the_start_stay_ignored() -> None:
    """As in a script's background jobs: a Ctrl-C meant for what runs in front must not reach them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts(quiet=True) as stop:
            os.kill(os.getpid(), signal.SIGINT)
            assert not stop.interrupted()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_handlers_are_put_back(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Interrupts(quiet=True) as stop:
        assert (stop.interrupted(), stop.exit_code) == (False, 0)
        os.kill(os.getpid(), signal.SIGTERM)
        assert (stop.interrupted(), stop.exit_code) == (True, 143)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (None, 1)])
def test_training_that_a_signal_made_give_up_ends_with_its_code(signum: int | None, code: int) -> None:
    """Where only time was up it is an error like any other."""

    def give_up() -> None:
        with Interrupts(quiet=True):
            if signum is not None:
                os.kill(os.getpid(), signum)
            raise Abandoned("nothing was trained")

    with pytest.raises(Abandoned) as caught:
        give_up()
    assert caught.value.exit_code == code


def test_errors_that_nobody_can_catch_are_told_as_ever() -> None:
    """All but a signal that Python ignores."""
    told: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, told.append
    try:
        with stopping():
            sys.unraisablehook(lost := SimpleNamespace(exc_value=ValueError()))  # type: ignore[arg-type]
    finally:
        sys.unraisablehook = before
    assert told == [lost]
