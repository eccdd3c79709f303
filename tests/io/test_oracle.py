"""Who answers: files, commands; and the log that loses nothing."""

from __future__ import annotations

import os
import shlex
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from svmkit.errors import DataError, OutputError
from svmkit.io.oracle import Command, LabelFile, Lines, Log, _kept, is_known


def never() -> bool:
    return False


def test_a_file_answers_by_its_first_words(tmp_path: Path) -> None:
    (tmp_path / "l").write_bytes(
        "# labels\n1 # of page\f2\u2028\n -1 1:5 2:3\n  # an empty line, and no UTF-8\n\n".encode() + b"\xe9 1:1\n+1\n"
    )
    oracle = LabelFile(str(tmp_path / "l"), 5)
    answers = [oracle.ask(row, "", never) for row in (4, 0, 1, 2, 3)]
    assert answers == ["+1", "1", "-1", "", "\N{REPLACEMENT CHARACTER}"]
    oracle.close()


def test_a_file_of_another_length_is_refused(tmp_path: Path) -> None:
    (tmp_path / "l").write_text("1\n-1\n")
    for n_rows in (1, 3):
        with pytest.raises(DataError, match=f"2 labels for a pool of {n_rows} examples"):
            LabelFile(str(tmp_path / "l"), n_rows)


def test_the_shell_says_whether_it_knows_a_command(tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("#!/bin/sh\n")
    (tmp_path / "answers").chmod(0o755)
    assert is_known("answers 1 2", {"PATH": str(tmp_path)})
    assert not is_known("answers 1 2")
    assert is_known("read row")
    assert is_known("$ANSWERS 1")
    assert is_known("")


@contextmanager
def command(text: str) -> Iterator[Command]:
    oracle = Command(text)
    try:
        yield oracle
    finally:
        oracle.close()


def test_a_command_reads_rows_and_answers(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with command(
        f'while read -r row rest; do echo "$row $rest" >> {shlex.quote(str(seen))}; echo $((row * 10)); done'
    ) as oracle:
        assert [oracle.ask(row, text, never) for row, text in ((4, "1:1 2:3"), (0, ""), (4, "x"))] == ["50", "10", "50"]
    assert seen.read_text() == "5 1:1 2:3\n1 \n5 x\n"


@pytest.mark.parametrize("head", ["#!/bin/sh\n", ""])
def test_a_program_in_a_file_is_a_command(head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name needs no ./ and no quotes."""
    (tmp_path / "my answers.sh").write_text(f"{head}while read -r row rest; do echo $((row * 10)); done\n")
    (tmp_path / "my answers.sh").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with command("my answers.sh") as oracle:
        assert oracle.ask(4, "", never) == "50"


@pytest.mark.parametrize(
    ("text", "n_good", "wrote"),
    [
        ("while read -r line; do printf '1\n-1\n'; done", 1, r"-1\\n"),
        ("echo ready; while read -r line; do echo 1; done", 0, r"ready\\n"),
        ("printf '\\351%099d\n' 7; read -r line", 0, "\N{REPLACEMENT CHARACTER}" + "0" * 79),
    ],
)
def test_more_than_a_line_an_answer_is_noticed(text: str, n_good: int, wrote: str) -> None:
    with command(text) as oracle:
        for row in range(n_good):
            assert oracle.ask(row, "", never) == "1"
        until = time.monotonic() + 60
        while not oracle._lines.waiting():
            assert time.monotonic() < until
        with pytest.raises(DataError, match=rf"it wrote '{wrote}' before row {n_good + 1} was asked for"):
            oracle.ask(n_good, "", never)


def test_a_command_that_ends_without_an_answer(tmp_path: Path) -> None:
    with command("read -r line; echo 1; exit 7") as oracle:
        assert oracle.ask(0, "", never) == "1"
        for _ in range(2):  # writing to it fails at the latest the second time
            with pytest.raises(DataError, match=r"it ended \(exit code 7\) without an answer for row 3"):
                oracle.ask(2, "", never)


def test_a_command_that_the_same_ctrl_c_has_ended_is_given_up() -> None:
    """Ended before it is asked, or while it is waited for."""
    with command("read -r line; echo 1; exit 7") as oracle:
        assert oracle.ask(0, "", never) == "1"
        oracle._process.wait()
        assert oracle.ask(1, "", lambda: True) is None
    answers = iter([False, True])
    with command("read -r line; exit 7") as oracle:
        assert oracle.ask(0, "", lambda: next(answers, True)) is None


def test_a_command_that_has_closed_its_output_and_lives_on_can_be_given_up() -> None:
    began = time.monotonic()
    with command("read row; exec >&-; sleep 30") as oracle:
        assert oracle.ask(0, "", lambda: time.monotonic() - began > 0.5) is None
    assert time.monotonic() - began < 20


def test_a_command_that_does_not_read_a_long_question_can_be_given_up() -> None:
    began = time.monotonic()
    with command("sleep 30 >&-") as oracle:
        assert oracle.ask(0, "1:1 " * 100_000, lambda: time.monotonic() - began > 0.5) is None
    assert time.monotonic() - began < 20


def test_a_long_question_is_asked_whole() -> None:
    with command("read -r row text; echo ${#text}; read -r end") as oracle:
        assert oracle.ask(0, "1:1 " * 100_000 + ".", lambda: False) == "400001"


def test_waiting_for_a_command_can_be_given_up() -> None:
    asked: list[int] = []
    with command("read -r line; read -r line") as oracle:
        assert oracle.ask(0, "", lambda: len(asked) > 2 or bool(asked.append(1))) is None
    assert len(asked) == 3


def test_lines_in_pieces_and_the_end() -> None:
    read, write = os.pipe()
    lines = Lines(read)
    os.write(write, b"one\ntw")
    assert lines.next(never) == "one"
    threading.Timer(0.05, os.write, (write, b"o\n\xe9 \n\nthre\xe9")).start()
    assert lines.next(never) == "two"
    assert lines.next(never) == "\N{REPLACEMENT CHARACTER}"
    assert lines.next(never) == " "  # a line without a word is not the end
    os.close(write)
    assert lines.next(never) == "thre\N{REPLACEMENT CHARACTER}"
    assert lines.next(never) == ""
    os.close(read)


# --- the log --------------------------------------------------------------------------------------------------------------


def log_at(path: Path, n_rows: int = 5) -> Log:
    return Log(str(path), f"{n_rows} rows", n_rows, [1, -1])


def begin(path: Path) -> None:
    log = log_at(path)
    log.add(3, -1)
    log.close()


def answers(path: Path) -> dict[int, int]:
    log = log_at(path)
    log.close()
    return log.answers


HEAD, OTHER_HEAD = (f"# labels asked for by svmkit train, of a pool of {n} rows\n" for n in (5, 6))


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ("", ""),
        (HEAD[:10], ""),
        (HEAD[:-1], ""),
        (HEAD, ""),
        (f"{HEAD}# remark\n", ""),
        (f"{OTHER_HEAD}# remark\n4", ""),
        (f"{HEAD}4 -1\n# remark\n", f"{HEAD}4 -1\n# remark\n"),
        (f"{HEAD}4 -1\n12", f"{HEAD}4 -1\n"),
        (f"{OTHER_HEAD}4 -1\n", f"{OTHER_HEAD}4 -1\n"),  # and refused then, as are those that are no log
        ("1 1:1\n", "1 1:1\n"),
        ("# remark\n", "# remark\n"),
        ("no line at all", "no line at all"),
    ],
)
def test_what_is_kept_of_a_log(content: str, kept: str) -> None:
    assert _kept(content.encode(), HEAD.encode()) == kept.encode()


def test_answers_are_there_at_once_and_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = log_at(path)
    log.add(3, -1)
    log.note("remark")
    log.add(0, 1)
    assert path.read_text().splitlines()[1:] == ["4 -1", "# remark", "1 1"]
    log.close()
    log = log_at(path)
    assert log.answers == {3: -1, 0: 1}
    log.add(1, 1)
    log.close()
    assert answers(path) == {3: -1, 0: 1, 1: 1}


def test_a_line_cut_short_is_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "log"
    begin(path)
    with path.open("a") as file:
        file.write("12")
    log = log_at(path)
    assert log.answers == {3: -1}
    log.add(2, 1)
    log.close()
    assert path.read_text().splitlines()[1:] == ["4 -1", "3 1"]


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    begin(path)
    before = path.read_bytes()
    with pytest.raises(DataError, match="its answers are about another pool"):
        log_at(path, 6)
    assert path.read_bytes() == before
    path.write_text("1 1:1\n")
    with pytest.raises(DataError, match="no log of labels"):
        log_at(path)
    for line, why in (
        ("four", "'four' is not a row and its label"),
        ("4" * 90 + " x", f"'{'4' * 80}' is not a row and its label"),
        ("6 1", "there is no row 6 in a pool of 5"),
        ("0 1", "there is no row 0"),
        ("2 3", "the label of row 2 is 3, not 1 or -1"),
    ):
        path.write_bytes(before + f"{line}\n".encode())
        with pytest.raises(DataError, match=f"log, line 3: {why}"):
            log_at(path)
        assert path.read_bytes() == before + f"{line}\n".encode()
    path.write_bytes(b"\xff" * 90 + b"\n")
    with pytest.raises(DataError, match=r"begins with '\ufffd{80}'"):
        log_at(path)
    path.write_text("no line at all")
    with pytest.raises(DataError, match="no log of labels"):
        log_at(path)
    assert path.read_text() == "no line at all"


def test_a_log_whose_first_line_was_cut_short_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    begin(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:10])
    begin(path)
    assert path.read_bytes() == whole


def test_a_log_without_an_answer_gives_way_to_another_pools(tmp_path: Path) -> None:
    for n_rows in (6, 5):
        log = log_at(tmp_path / "log", n_rows)
        log.close()
    assert (tmp_path / "log").read_text().count("\n") == 1
    begin(tmp_path / "log")
    assert answers(tmp_path / "log") == {3: -1}


def test_what_is_no_file_is_no_log(tmp_path: Path) -> None:
    """/dev/full, for one, can be read for ever."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OutputError, match="it must be a file"):
            log_at(path)
    log = log_at(Path(os.devnull))  # nobody wants it
    log.add(1, 1)
    log.close()


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"--oracle-log .*no/log"):
        log_at(tmp_path / "no" / "log")


def test_a_full_disk_is_said_once(tmp_path: Path) -> None:
    log = log_at(tmp_path / "log")
    log._file.close()
    log._file = open("/dev/full", "ab")  # noqa: SIM115  (closed by close)
    with pytest.raises(OutputError, match=r"--oracle-log .*: cannot be written: No space left on device"):
        log.add(3, 1)
    log.close()
