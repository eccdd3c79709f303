"""What the old tools have in common: how they speak, and how they end. Exit codes are 0 and 1 only, nothing is said twice."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from svmkit.cli import streams
from svmkit.cli.compat.argv import Usage
from svmkit.cli.interrupt import Stop, stopping
from svmkit.errors import DataError, OutputError, SvmkitError, UsageError, reason_of

if TYPE_CHECKING:
    from svmkit.cli.cold_start import ColdStart

_listening: list[ColdStart] = []


def run_tool(name: str, usage: str, body: Callable[[list[str]], None], argv: list[str] | None) -> int:
    """Runs ``body`` on the arguments; whatever goes wrong becomes a line for people and a 1.

    Returns the exit code; without ``argv`` they are the process's own, which it ends.
    """
    if argv is None:
        streams.leave(run_tool(name, usage, body, sys.argv[1:]))
    streams.settle()
    with stopping() as stop:
        return _exit_code(name, usage, lambda: body(list(argv)), stop)


def _exit_code(name: str, usage: str, action: Callable[[], None], stop: Stop) -> int:
    try:
        try:
            action()
            _flush()
        finally:
            stop.over = True
        return 0
    except Usage as error:
        return _show_usage(error.complaint, usage)
    except UsageError as error:
        return _fail(f"ERROR: {error}")
    except SvmkitError as error:
        return _fail(*error.args)
    except KeyboardInterrupt:
        return _fail_stopped(name)
    except BrokenPipeError:
        return _fail(f"{name}: standard output was closed by its reader before all was written")
    except Exception as error:
        return _fail_stopped(name) if stop.signum else _fail(f"{name}: {streams.complaint(error)}")
    finally:
        for listener in _listening:
            listener.end()


def say(text: str) -> None:
    """Writes ``text``, a result, to standard output at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def inform(text: str) -> None:
    """Writes what is good to know but no result; where it cannot be written the work goes on."""
    with suppress(OSError):  # closed, a full disk, or a reader that has seen enough: training for hours is not lost over that
        say(text)


def warn(*lines: str) -> None:
    """Writes lines to standard error, or nothing where that is full or lost."""
    streams.tell(*lines)


def check_input(path: str, complaint: str) -> None:
    """Raises DataError, ``complaint`` and the reason, unless ``path`` can be read; opens nothing, so pipes stay whole."""
    if path == "-":
        return
    try:
        os.stat(path)
        reason = "it is a folder" if os.path.isdir(path) else None if os.access(path, os.R_OK) else "Permission denied"
    except (OSError, ValueError) as error:
        reason = reason_of(error)
    if reason is not None:
        raise DataError(complaint, reason)


def check_one_reader(*inputs: str | None) -> None:
    """Raises SvmkitError if more than one of the ``inputs`` is standard input."""
    if inputs.count("-") > 1:
        raise SvmkitError("two of the files are standard input (-), which can be read only once; give one of them by name")


def check_output(path: str, complaint: str, *inputs: str) -> None:
    """Raises OutputError, ``complaint`` and the reason, if ``path`` cannot be written or is one of the ``inputs``."""
    from svmkit.io.outputs import check_writable, would_overwrite

    with prefaced(complaint):
        if any(would_overwrite(path, name) for name in inputs):
            raise OutputError(f"{path}: names one file for two purposes, and would be overwritten")
        check_writable(path)


@contextmanager
def prefaced(complaint: str) -> Iterator[None]:
    """Puts ``complaint``, LIBSVM's own first line, before the reason of an OutputError in the block."""
    try:
        yield
    except OutputError as error:
        raise OutputError(complaint, *error.args) from None


def announce_compiling(name: str) -> None:
    """Prepares for a first run: the tool ``name`` says so if it has to compile for long (until ``run_tool`` ends)."""
    from svmkit.cli.cold_start import ColdStart

    _listening.append(ColdStart(lambda text: warn(f"{name}: {text}")))
    _listening[-1].listen()


def _show_usage(complaint: str, usage: str) -> int:
    try:
        if complaint:
            warn(complaint)
        say(usage)
    except OSError:
        streams.forget(sys.stdout)
    return 1


def _fail(*lines: str) -> int:
    """Says the ``lines``, after what is left for standard output; the exit code."""
    _flush()
    warn(*lines)
    return 1


def _fail_stopped(name: str) -> int:
    return _fail("", f"{name}: interrupted before it was done")


def _flush() -> None:
    """Drops what standard output still holds if that cannot be written; for a result, ``say`` has found that out."""
    try:
        sys.stdout.flush()
    except OSError:
        streams.forget(sys.stdout)
