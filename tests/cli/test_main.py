"""The front door: commands are found, and no error escapes as a traceback."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable

import click
import pytest
from shell import process, svmkit

from svmkit import __version__
from svmkit.cli import main, streams
from svmkit.errors import DataError, UsageError


def test_version() -> None:
    assert process("--version").stdout == f"svmkit {__version__}\n"


def test_help_lists_every_command() -> None:
    text = svmkit("--help").stdout
    for name in [*main.COMMANDS, *main.OLD_TOOLS]:
        assert f"  {name} " in text


def test_help_is_whole_where_docstrings_are_left_out() -> None:
    program = "from svmkit.cli.main import COMMANDS, main\nfor name in COMMANDS: main(['--help']), main([name, '--help'])"
    plain, short = (subprocess.run([sys.executable, *how, "-c", program], capture_output=True).stdout for how in ([], ["-OO"]))
    assert (plain == short, plain.count(b"Usage")) == (True, 2 * len(main.COMMANDS))


def test_no_command_is_wrong_usage_and_tells_which_there_are() -> None:
    done = svmkit()
    assert (done.returncode, done.stdout, done.stderr) == (2, "", svmkit("--help").stdout)


def test_an_unknown_command_is_a_usage_error() -> None:
    done = svmkit("trian")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such command: trian" in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["predict", "d", "{}", "-"],
        ["eval", "d", "m", "{}"],
        ["{}"],
        ["train", "-O", "{}=1", "/dev/null", "m"],
        ["svm-train", "{}"],
        ["svm-predict", "/dev/null", "{}", "out"],
        ["svm-predict", "/dev/null", "/dev/null", "no/{}"],
    ],
)
def test_no_terminal_obeys_what_a_user_names(args: list[str]) -> None:
    """Names, and whatever else is said back, hold no control characters, nor lines that look like ours."""
    done = svmkit(*(arg.format("é\x1b[2J\r\nsvmkit: done\x9b\x7f") for arg in args))
    assert done.returncode in (1, 2)
    assert r"é\x1b[2J\r\nsvmkit: done\x9b\x7f" in done.stderr
    assert done.stderr.replace("\n", "").isprintable()
    assert "svmkit: done" not in done.stderr.splitlines()


def raising(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (UsageError("-c: no"), 2, "svmkit: -c: no\n"),
        (DataError("Wrong input format at line 3", "f: why"), 1, "svmkit: Wrong input format at line 3\nf: why\n"),
        (FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "x"), 1, "svmkit: x: No such file or directory\n"),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
            1,
            "svmkit: can't write to standard output: No space left on device\n",
        ),
        (BrokenPipeError(), 1, ""),
        (MemoryError(), 1, "svmkit: not enough memory for this\n"),
        (KeyboardInterrupt(), 130, "svmkit: stopped before it was done\n"),
        (click.UsageError("no"), 2, "Error: no\n"),
    ],
)
def test_exit_codes(
    error: BaseException, code: int, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "forget", lambda stream: None)
    assert main.guarded(raising(error)) == code
    assert capsys.readouterr() == ("", text)


def test_a_fault_of_ours_is_one_line_and_how_to_report_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SVMKIT_DEBUG", raising=False)
    assert main.guarded(raising(ZeroDivisionError("division by zero"))) == 1
    shown = capsys.readouterr().err
    assert "ZeroDivisionError: division by zero" in shown
    assert "SVMKIT_DEBUG=1" in shown
    monkeypatch.setenv("SVMKIT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main.guarded(raising(ZeroDivisionError()))


def test_the_code_of_a_command_is_kept() -> None:
    assert [main.guarded(lambda code=code: code) for code in (None, 0, 3, 130)] == [0, 0, 3, 130]


@pytest.mark.parametrize("tool", main.OLD_TOOLS)
def test_old_tools_get_their_arguments_untouched(tool: str) -> None:
    """``-h`` and friends belong to the tool: without arguments it prints its own usage, on stdout, and exits with 1."""
    done = svmkit(tool)
    assert (done.returncode, done.stdout.startswith(f"Usage: {tool}")) == (1, True)
