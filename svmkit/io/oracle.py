"""Where labels come from that are asked for one by one: a file of them, a command, and the log of what was answered.

A command is started once. For each question it reads a line ``row TAB features``, rows counted from 1, and answers with a line
that holds the label; it should write each answer at once (flush). The log is a text file that is only ever appended to, a line
``row label`` each, so that no answer is lost or asked for again, whatever happens.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from svmkit.errors import DataError, OutputError
from svmkit.io.descriptors import ready
from svmkit.io.inputs import map_bytes

#: Between looks whether to give up an answer; what a command gets to end by itself, and again once it has been told to; and
#: what it gets where an answer was given up.
_LOOK_S, _END_S, _LEFT_S = 0.1, 5.0, 0.2
#: A command's first word where it is the name of a program, or one of the shell's own.
_PLAIN = re.compile(r"[\w./+-]+")
#: How a log begins.
_HEAD = b"# labels asked for by svmkit train,"


class LabelFile:
    """Answers from a file: the first word of line k is the label of row k, so that a labelled data file serves as well."""

    def __init__(self, path: str, n_rows: int) -> None:
        """Raises DataError where the number of lines is not ``n_rows``."""
        lines = map_bytes(path).tobytes().splitlines()  # of bytes: in a text other signs than ends of lines would cut too
        self._words = [
            line.split(maxsplit=1)[0].decode("utf-8", "replace") if line.strip() else ""
            for line in lines
            if not line.lstrip().startswith(b"#")
        ]
        if len(self._words) != n_rows:
            raise DataError(
                f"--oracle {path}: {len(self._words):,} labels for a pool of {n_rows:,} examples; line k is that of row k"
            )

    def ask(self, row: int, text: str, give_up: Callable[[], bool]) -> str | None:
        """The label of a row (from 0)."""
        return self._words[row]

    def close(self) -> None:
        """Nothing to do."""


def is_known(command: str, environment: Mapping[str, str] | None = None) -> bool:
    """Whether the shell knows what the command begins with; true where that is not a plain word."""
    first = next(iter(command.split()), "")
    if not _PLAIN.fullmatch(first):
        return True
    asked = subprocess.run(["/bin/sh", "-c", 'command -v "$1"', "sh", first], env=environment, stdout=subprocess.DEVNULL)
    return asked.returncode == 0


class Command:
    """Answers from a command of the shell's, or from the program in a file, by its name alone."""

    def __init__(self, command: str, environment: Mapping[str, str] | None = None) -> None:
        self.name = command
        self._answers, end = os.pipe()
        line = shlex.quote(os.path.abspath(command)) if os.path.isfile(command) else command
        self._process = subprocess.Popen(["/bin/sh", "-c", line], stdin=subprocess.PIPE, stdout=end, env=environment)
        os.close(end)
        self._lines = Lines(self._answers)
        self._left = False

    def ask(self, row: int, text: str, give_up: Callable[[], bool]) -> str | None:
        """The line it answers; None once ``give_up()`` is true.

        Raises DataError where it has ended, or has written before it was asked: that would put labels to the wrong rows.
        """
        if unasked := self._lines.waiting():
            raise DataError(
                f"--oracle {self.name}: it wrote {unasked!r} before row {row + 1} was asked for; "
                "it must answer each question with one line, and write nothing else"
            )
        line: str | None = ""
        with suppress(BrokenPipeError):
            line = self._lines.next(give_up) if self._asked(f"{row + 1}\t{text}\n".encode(), give_up) else None
        if line == "":
            code = self._exit_code(give_up)
            if give_up():  # Ctrl-C ends the command too
                return None
            raise DataError(f"--oracle {self.name}: it ended (exit code {code}) without an answer for row {row + 1}")
        self._left = line is None
        return line

    def _asked(self, question: bytes, give_up: Callable[[], bool]) -> bool:
        """Whether it has been sent the question; a long one takes as long as the command takes to read it."""
        assert self._process.stdin is not None
        descriptor = self._process.stdin.fileno()
        while question and not give_up():
            if ready(descriptor, _LOOK_S, to_write=True):
                question = question[os.write(descriptor, question[: select.PIPE_BUF]) :]  # so much has room, and does not wait
        return not question

    def _exit_code(self, give_up: Callable[[], bool]) -> int | None:
        """Its exit code once it has ended, which one that closed its output may be long in doing; or None."""
        while not give_up():
            with suppress(subprocess.TimeoutExpired):
                return self._process.wait(timeout=_LOOK_S)
        return None

    def close(self) -> None:
        """Ends its input, upon which it should end too."""
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        for end in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(timeout=_LEFT_S if self._left else _END_S)
                break
            except subprocess.TimeoutExpired:
                end()
        self._process.wait()
        os.close(self._answers)


class Lines:
    """Lines as they come on a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def waiting(self) -> str:
        """What has come already and was not taken, "" for nothing."""
        if not self._rest and ready(self._descriptor, 0):
            self._rest = os.read(self._descriptor, 1 << 16)
        return self._rest[:80].decode("utf-8", "replace")

    def next(self, give_up: Callable[[], bool]) -> str | None:
        """The next line, without its end; "" where there is none any more; None once ``give_up()``, asked while waiting."""
        while b"\n" not in self._rest:
            if give_up():
                return None
            if not ready(self._descriptor, _LOOK_S):
                continue
            content = os.read(self._descriptor, 1 << 16)
            if not content:
                line, self._rest = self._rest, b""
                return line.decode("utf-8", "replace")
            self._rest += content
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").strip() or " "  # an empty line is not the end


def _is_answer(line: bytes) -> bool:
    return not line.startswith(b"#")


def _kept(content: bytes, head: bytes) -> bytes:
    """What stays of a file that is to be the log whose first line is ``head``; b"" where it begins anew."""
    if head.startswith(content):  # new, or cut short in its head by a crash
        return b""
    whole = content[: content.rfind(b"\n") + 1]
    if whole.startswith(_HEAD) and not any(map(_is_answer, whole.splitlines())):  # of any pool: nobody was asked anything
        return b""
    return whole or content  # without a line cut short, which is no answer; what is no log at all is refused as it is


class Log:
    """The answers so far, {row (from 0): label}, and the file they stand in."""

    def __init__(self, path: str, pool_mark: str, n_rows: int, labels: Sequence[int]) -> None:
        """Reads the log, or begins one. Raises DataError for a file that is no log, or that of another pool, or holds an answer
        that this pool of ``n_rows`` with these ``labels`` cannot have; OutputError where it cannot be written.
        """
        self.path = path
        self._n_rows, self._labels = n_rows, labels
        self.answers: dict[int, int] = {}
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.samefile(path, os.devnull):
            raise OutputError(f"--oracle-log {path}: answers are read from it too, so it must be a file")
        head = f"{_HEAD.decode()} of a pool of {pool_mark}\n"
        try:
            self._file = open(path, "a+b")  # noqa: SIM115  (closed by close)
            self._file.seek(0)
            content = self._file.read()
        except OSError as error:
            raise OutputError(f"--oracle-log {path}: cannot be written: {error.strerror}") from None
        kept = _kept(content, head.encode())
        if kept:
            try:
                self._read(kept.decode("utf-8", "replace"), head)
            except DataError:
                self._file.close()
                raise
        if len(kept) < len(content):
            self._file.truncate(len(kept))
        if not kept:
            self._append(head)

    def _read(self, text: str, head: str) -> None:
        lines = text.splitlines(keepends=True)
        if lines[0] != head:
            why = "its answers are about another pool" if lines[0].encode().startswith(_HEAD) else "it is no log of labels"
            raise DataError(f"--oracle-log {self.path}: {why}; name another file", f"it begins with {lines[0].strip()[:80]!r}")
        for number, line in enumerate(lines[1:], start=2):
            if not _is_answer(line.encode()):
                continue
            where = f"--oracle-log {self.path}, line {number}"
            try:
                row, label = map(int, line.split())
            except ValueError:
                raise DataError(f"{where}: {line.strip()[:80]!r} is not a row and its label") from None
            if not 1 <= row <= self._n_rows:
                raise DataError(f"{where}: there is no row {row} in a pool of {self._n_rows:,}; mend or remove the line")
            if label not in self._labels:
                known = " or ".join(map(str, self._labels))
                raise DataError(f"{where}: the label of row {row} is {label}, not {known}; see --labels")
            self.answers[row - 1] = label

    def add(self, row: int, label: int) -> None:
        """Notes an answer; when this returns the file has it, whatever becomes of this process."""
        self.answers[row] = label
        self._append(f"{row + 1} {label}\n")

    def note(self, text: str) -> None:
        """A line for people."""
        self._append(f"# {text}\n")

    def _append(self, text: str) -> None:
        try:
            self._file.write(text.encode())
            self._file.flush()
        except OSError as error:
            raise OutputError(f"--oracle-log {self.path}: cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Closes the file."""
        with suppress(OSError):  # of a line that could not be written, as has been said
            self._file.close()
