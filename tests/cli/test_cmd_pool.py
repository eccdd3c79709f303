"""``svmkit train --pool``: oracles, logs that are gone on from, and what is left when something goes wrong."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from shell import process, strict_json, svmkit, wait_for, write_blobs

from svmkit.cli import train_pool
from svmkit.errors import OutputError
from svmkit.io.model_libsvm import read_model
from svmkit.io.oracle import Log

TRAIN = ("train", "--solver", "lasvm", "-c", "2", "-g", "0.4")


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """A pool without labels; the labels stand beside it, and in a data file."""
    lines = write_blobs(tmp_path / "labelled", n=300).read_text().splitlines()
    (tmp_path / "labels").write_text("".join(f"{line.split()[0]}\n" for line in lines))
    (tmp_path / "pool").write_text("".join(f"? {line.split(maxsplit=1)[1]}\n" for line in lines))
    return tmp_path / "pool"


def command_of(pool: Path, after: int = 10**6) -> str:
    """A command that answers from the labels' file, but after so many answers no more.

    What sleeps then may outlive a Ctrl-C that it was started to ignore, so it does not hold stderr open.
    """
    answer = f"sed -n ${{row}}p {shlex.quote(str(pool.parent / 'labels'))}"
    return f"n=0; while read -r row text; do n=$((n + 1)); [ $n -gt {after} ] && sleep 100 2>/dev/null; {answer}; done"


def learned(pool: Path, model: Path, *args: object) -> bytes:
    done = svmkit(*TRAIN, "--pool", pool, *args, "/dev/null", model)
    assert done.returncode == 0, done.stderr
    return model.read_bytes()


def answered(log: Path) -> int:
    """Answers in the log so far, whose first line is its head."""
    return len(log.read_text().splitlines()) - 1 if log.exists() else 0


def log_of(model: Path) -> list[str]:
    return Path(f"{model}.labels").read_text().splitlines()


def test_files_and_commands_answer_alike(pool: Path, model: Path) -> None:
    folder = pool.parent
    results = []
    for oracle in (folder / "labels", folder / "labelled", command_of(pool)):
        Path(f"{model}.labels").unlink(missing_ok=True)
        results.append((learned(pool, model, "--oracle", oracle, "--max-labels", 60), log_of(model)))
    assert results[0] == results[1] == results[2]
    answers = [line.split() for line in results[0][1] if not line.startswith("#")]
    assert len(answers) == 60
    truth = (folder / "labels").read_text().split()
    assert all(truth[int(row) - 1] == label for row, label in answers)


def test_the_report_and_the_log(pool: Path, model: Path, tmp_path: Path) -> None:
    other, seed, log = write_blobs(tmp_path / "o", n=80, seed=3), write_blobs(tmp_path / "s", n=20, seed=4), tmp_path / "log"
    args = ("--oracle", tmp_path / "labels", "--oracle-log", log, "--max-labels", 40, "--holdout", other)
    done = svmkit(*TRAIN, "--pool", pool, *args, "--trace", tmp_path / "t", "--json", seed, model)
    assert done.returncode == 0, done.stderr
    found = strict_json(done.stdout)
    assert list(found) == [
        *("status", "seconds", "labels", "asked", "kernel_evaluations", "n_support", "model", "oracle_log"),
        *("holdout_error", "holdout_n"),
    ]
    assert (found["status"], found["labels"], found["asked"], found["holdout_n"]) == ("COMPLETED", 40, 40, 80)
    assert found["holdout_error"] == pytest.approx(1 - strict_json(svmkit("eval", "--json", other, model).stdout)["accuracy"])
    notes = [line for line in log.read_text().splitlines() if "held-out error" in line]
    assert [note.split()[1] for note in notes] == ["8", "11", "15", "21", "29", "40"]
    assert notes[-1] == f"# 40 labels: held-out error {100 * found['holdout_error']:.4g} % of 80"
    assert len((tmp_path / "t").read_text().splitlines()) == 6
    assert "completed: 40 labels of the pool (40 asked for)" in done.stderr
    before = log.read_text()
    assert "40 labels of the pool (0 asked for)" in svmkit(*TRAIN, "--pool", pool, *args, seed, model).stderr
    assert log.read_text() == before


def test_a_class_that_no_answer_names_is_told(pool: Path, model: Path) -> None:
    (pool.parent / "labels").write_text(300 * "1\n")
    done = svmkit(*TRAIN, "-q", "--pool", pool, "--oracle", pool.parent / "labels", "--max-labels", 5, "/dev/null", model)
    assert done.returncode == 0
    assert (
        done.stderr
        == "svmkit: warning: no example that was learned had the label -1: nothing tells its class from the others\n"
    )


def test_a_second_run_asks_only_for_what_is_new(pool: Path, model: Path, tmp_path: Path) -> None:
    expected = learned(pool, model, "--oracle", tmp_path / "labels", "--max-labels", 80)
    whole = log_of(model)
    Path(f"{model}.labels").unlink()
    learned(pool, model, "--oracle", tmp_path / "labels", "--max-labels", 50)
    done = svmkit(*TRAIN, "--pool", pool, "--oracle", tmp_path / "labels", "--max-labels", 80, "/dev/null", model)
    assert "80 labels of the pool (30 asked for)" in done.stderr
    assert model.read_bytes() == expected
    assert log_of(model) == whole


def test_a_killed_run_is_gone_on_with(pool: Path, model: Path, tmp_path: Path) -> None:
    expected = learned(pool, model, "--oracle", tmp_path / "labels", "--max-labels", 60)
    model.unlink()
    log = Path(f"{model}.labels")
    log.unlink()
    stuck = command_of(pool, after=25)
    args = (*TRAIN, "--pool", pool, "--oracle", stuck, "--max-labels", 60, "/dev/null", model)
    running = subprocess.Popen(
        [sys.executable, "-m", "svmkit", *map(str, args)], stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        wait_for(lambda: answered(log) >= 25, running)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    assert not model.exists()
    with log.open("a") as file:
        file.write("17")  # what a crash may leave of a line
    done = svmkit(*TRAIN, "--pool", pool, "--oracle", tmp_path / "labels", "--max-labels", 60, "/dev/null", model)
    assert "60 labels of the pool (35 asked for)" in done.stderr
    assert model.read_bytes() == expected


def test_you_are_asked_and_may_stop(pool: Path, model: Path, tmp_path: Path) -> None:
    done = process(*TRAIN, "--pool", pool, "--oracle", "-", "/dev/null", model, stdin=b"1\n\nyes\n+1\n-1\n")
    assert done.returncode == 0
    rows = [int(line.split()[0]) for line in log_of(model)[1:]]
    assert [line.split()[1] for line in log_of(model)[1:]] == ["1", "1", "-1"]
    features = pool.read_text().splitlines()[rows[0] - 1].removeprefix("? ")
    assert f"svmkit: row {rows[0]}: {features}\nlabel (1 or -1; end of input to stop)? " in done.stderr
    assert done.stderr.count("label (1 or -1") == 6  # once more after an empty line and after "yes", and at the end
    assert done.stderr.splitlines()[-1].endswith("3 labels of the pool (3 asked for), 3 support vectors; " + f"{model} written")
    assert read_model(str(model)).n_support == 3


def test_classes_may_have_any_labels(pool: Path, model: Path, tmp_path: Path) -> None:
    """Asked for, kept in the log, and held out; a pool's line with a word too many is told."""
    other = write_blobs(tmp_path / "o", n=80, classes=(3, 8), seed=3)
    pool.write_text(pool.read_text().replace("\n", " word\n", 1))
    args = (*TRAIN, "--pool", pool, "--labels", "8,3", "--holdout", other, "--oracle", "-", "--max-labels", 3, "--json")
    done = process(*args, "/dev/null", model, stdin=b"1\n3\n8\n8\n")
    assert done.stderr.count("label (8 or 3; end of input to stop)? ") == 4
    assert f"{pool}: words after the last index:value pair were left out on line 1" in done.stderr
    assert "none of those trained on" not in done.stderr
    assert [line.split()[1] for line in log_of(model) if not line.startswith("#")] == ["3", "8", "8"]
    error = strict_json(done.stdout)["holdout_error"]
    assert error == pytest.approx(1 - strict_json(svmkit("eval", "--json", other, model).stdout)["accuracy"])
    again = strict_json(svmkit(*args, "/dev/null", model).stdout)
    assert (again["labels"], again["asked"], again["holdout_error"]) == (3, 0, error)


def test_labelled_examples_make_a_model_without_any_answer(pool: Path, model: Path) -> None:
    done = process(*TRAIN, "--pool", pool, "--oracle", "-", pool.parent / "labelled", model)
    assert done.returncode == 0
    assert "label (1 or -1; end of input to stop)? \nsvmkit: warning: stopped (INTERRUPTED): 0 labels" in done.stderr
    assert read_model(str(model)).n_support > 0


def test_a_trace_that_is_lost_is_told(pool: Path, model: Path) -> None:
    args = ("--oracle", pool.parent / "labels", "--max-labels", 9, "--trace", "/dev/full")
    done = svmkit(*TRAIN, "--pool", pool, *args, "/dev/null", model)
    assert done.returncode == 1
    assert "/dev/full" in done.stderr
    assert model.exists()


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ("while read -r line; do echo yes; done", "the answer for row"),
        ("while read -r line; do echo 0_1; done", "is '0_1', not 1 or -1"),
        ("read -r line; echo 1; read -r line; echo -1; exit 3", "it ended (exit code 3) without an answer for row"),
    ],
)
def test_an_oracle_that_fails_leaves_the_model_so_far(answers: str, why: str, pool: Path, model: Path) -> None:
    done = svmkit(*TRAIN, "--pool", pool, "--oracle", answers, "/dev/null", model)
    assert done.returncode == 1
    assert why in done.stderr
    n_labels = 2 if "exit" in answers else 0
    assert model.exists() == (n_labels > 0)
    assert n_labels == 0 or read_model(str(model)).labels is not None
    assert len(log_of(model)) == 1 + n_labels


def test_a_long_answer_that_is_no_label_is_not_shown_whole(pool: Path, model: Path) -> None:
    """A command that answers with the features is a likely mistake, and there may be thousands of them."""
    done = svmkit(*TRAIN, "--pool", pool, "--oracle", "while read -r line; do printf '%0999d\\n' 7; done", "/dev/null", model)
    assert f"is '{'0' * 80}', not 1 or -1; see --labels" in done.stderr


def test_a_log_that_takes_no_more_notes_leaves_the_model_so_far(
    pool: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Log._append

    def full(log: Log, text: str) -> None:
        if "held-out" in text:
            raise OutputError("--oracle-log: cannot be written: No space left on device")
        append(log, text)

    monkeypatch.setattr(Log, "_append", full)
    args = ("--oracle", tmp_path / "labels", "--holdout", tmp_path / "labelled", "--json", "/dev/null", model)
    done = svmkit(*TRAIN, "--pool", pool, *args)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert strict_json(done.stdout)["labels"] == 8  # the first mark: nobody is asked for an answer that could not be kept
    assert read_model(str(model)).n_support > 0


def test_the_oracle_has_the_environment_that_we_were_given(pool: Path, model: Path, tmp_path: Path) -> None:
    """Not our own settings: its BLAS may want all cores."""
    answers = f"env > {shlex.quote(str(tmp_path / 'env'))}; {command_of(pool)}"
    args = (*TRAIN, "--pool", pool, "--oracle", answers, "--max-labels", 3, "/dev/null", model)
    for threads in ("7", None):
        env = {**os.environ, "OPENBLAS_NUM_THREADS": threads or ""}
        if threads is None:
            del env["OPENBLAS_NUM_THREADS"]
        subprocess.run(
            [sys.executable, "-m", "svmkit", *map(str, args)], env=env, check=True, stderr=subprocess.DEVNULL, timeout=120
        )
        had = [line for line in (tmp_path / "env").read_text().splitlines() if line.startswith("OPENBLAS_NUM_THREADS=")]
        assert had == ([] if threads is None else ["OPENBLAS_NUM_THREADS=7"])
        Path(f"{model}.labels").unlink()


def test_an_interrupted_dialogue_leaves_the_model_so_far(pool: Path, model: Path) -> None:
    slow = command_of(pool, after=9)
    args = (*TRAIN, "--pool", pool, "--oracle", slow, "/dev/null", model)
    running = subprocess.Popen(
        [sys.executable, "-m", "svmkit", *map(str, args)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        wait_for(lambda: answered(Path(f"{model}.labels")) >= 9, running)
        os.killpg(running.pid, signal.SIGINT)
        _, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130
    assert "stopped (INTERRUPTED): 9 labels of the pool" in err
    assert read_model(str(model)).n_support > 0


def test_a_command_that_does_not_end_is_not_waited_for_once_its_answer_is_given_up(pool: Path, model: Path) -> None:
    deaf = "trap '' TERM; while :; do sleep 0.1; done"
    began = time.monotonic()
    done = svmkit(*TRAIN, "--pool", pool, "--oracle", deaf, "--time-limit", 0.5, "/dev/null", model)
    assert done.returncode == 0
    assert time.monotonic() - began < 4  # five seconds are for those that are at their end


def test_a_standard_input_that_cannot_be_read_is_told(pool: Path, model: Path) -> None:
    done = process(
        *TRAIN, "--pool", pool, "--oracle", "-", pool.parent / "labelled", model, before=lambda: os.close(0)
    )  # fmt: skip
    assert (done.returncode, model.exists()) == (1, False)
    assert done.stderr.splitlines()[-1] == "svmkit: --oracle -: can't read standard input: it is closed"


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--oracle", "labels"), "--oracle is for active learning; give --pool too"),
        (("--max-labels", 3), "--max-labels is for active learning"),
        (("--pool", "pool"), "--pool: who knows the labels?"),
        (("--pool", "pool", "--oracle", "labels", "--max-labels", 0), "--max-labels 0"),
        (("--pool", "pool", "--oracle", "labels", "--stream"), "two ways to learn"),
        (("--pool", "-", "--oracle", "-"), "--pool and --oracle cannot both be standard input"),
        (("--pool", "pool", "--oracle", "labels", "--holdout", "0.1"), "--holdout 0.1"),
        (("--pool", "pool", "--oracle", "no-such-command"), "--oracle no-such-command: there is no such file, and no such"),
        (("--pool", "pool", "--oracle", "no/such -x"), "--oracle no/such -x: there is no such file, and no such command"),
        (("--pool", "pool", "--oracle", "."), "--oracle .: is a folder"),
        (("--pool", "pool", "--oracle", "labels", "--rows", "3"), "--rows is for streams only"),
        (("--pool", "pool", "--oracle", "labels", "--solver", "smo"), "--solver smo: does not choose examples"),
        (("--pool", "pool", "--oracle", "labels", "--max-iter", "9"), "--max-iter: what ends the learning of a pool is"),
        (("--pool", "pool", "--oracle", "labels", "--dim", "9"), "--dim goes with a feature map"),
        (("--pool", "pool", "--oracle", "labels", "--oracle-log", "-"), "--oracle-log -: answers are read from it too"),
        (("--pool", "pool", "--oracle", "labels", "--labels", "99999999999,1"), "a label must lie in −2^31"),
        (("--pool", "pool", "--oracle", "labels", "--labels", "1,1"), "--labels: a pool is of two classes; name both"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(args: tuple[object, ...], why: str, pool: Path, model: Path) -> None:
    done = svmkit(*TRAIN, *args, "/dev/null", model, cwd=pool.parent)
    assert done.returncode == 2
    assert why in done.stderr
    assert not model.exists()
    assert not Path(f"{model}.labels").exists()


def test_the_model_of_a_pool_is_a_file(pool: Path) -> None:
    done = svmkit(*TRAIN, "--pool", pool, "--oracle", "labels", "/dev/null", "-", cwd=pool.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "svmkit: MODEL is standard output, but the answers go beside it; name a file\n"
    assert not (pool.parent / "-.labels").exists()


def test_a_time_limit_ends_the_wait_for_an_answer(pool: Path, model: Path) -> None:
    done = svmkit(*TRAIN, "--pool", pool, "--oracle", command_of(pool, after=3), "--time-limit", 0.5, "/dev/null", model)
    assert done.returncode == 0
    assert "stopped (TIME_LIMIT): 3 labels of the pool" in done.stderr


def test_a_long_wait_for_an_answer_is_told(pool: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a program that keeps its answers in a buffer."""
    monkeypatch.setattr(train_pool, "_REPORT_EVERY_S", 0.2)
    args = (*TRAIN, "--pool", pool, "--oracle", command_of(pool, after=3), "--time-limit", 0.7, "/dev/null", model)
    said = [line for line in svmkit(*args).stderr.splitlines() if "waiting" in line]
    assert 1 <= len(said) <= 4
    assert re.fullmatch(r"svmkit: waiting for --oracle to answer row \d+; it must write each answer at once \(flush\)", said[0])
    assert "waiting" not in svmkit(*args, "--quiet").stderr


def test_labels_may_come_through_a_pipe(pool: Path, model: Path, tmp_path: Path) -> None:
    """As of a command in ‹(…)."""
    expected = learned(pool, model, "--oracle", tmp_path / "labels", "--max-labels", 20)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes((tmp_path / "labels").read_bytes()))
    writer.start()
    assert learned(pool, tmp_path / "other", "--oracle", fifo, "--max-labels", 20) == expected
    writer.join()


@pytest.mark.parametrize("data", ["/dev/null", "labelled"])
def test_without_any_answer_an_older_model_is_left(data: str, pool: Path, model: Path) -> None:
    model.write_text("the old model\n")
    done = svmkit(*TRAIN, "--pool", pool, "--oracle", "exit 3", "--json", data, model, cwd=pool.parent)
    assert done.returncode == 1
    assert strict_json(done.stdout)["model"] is None
    assert "no model written" in done.stderr
    assert model.read_text() == "the old model\n"


def test_limits_end_it_and_strict_makes_that_a_code(pool: Path, model: Path) -> None:
    args = (*TRAIN, "--pool", pool, "--oracle", pool.parent / "labels", "--oracle-log", "/dev/null", "--strict")
    for limit, status in (("--budget-evals", "MAX_EVALUATIONS"), ("--time-limit", "TIME_LIMIT")):
        done = svmkit(*args, limit, "9" if limit == "--budget-evals" else "1e-9", "/dev/null", model)
        assert done.returncode == 3
        assert f"svmkit: warning: stopped ({status})" in done.stderr
    assert svmkit(*args, "--max-labels", 5, "/dev/null", model).returncode == 0


@pytest.mark.parametrize(
    "args",
    [
        ("--pool", "pool", "--oracle", "labels", "/dev/null", "pool"),
        ("--pool", "pool", "--oracle", "labels", "/dev/null", "labels"),
        ("--pool", "pool", "--oracle", "labels", "--trace", "pool", "/dev/null", "m"),
        ("--pool", "pool", "--oracle", "labels", "--trace", "labels", "/dev/null", "m"),
        ("--pool", "pool", "--oracle", "labels", "--trace", "log", "--oracle-log", "log", "/dev/null", "m"),
        ("--pool", "pool", "--oracle", "labels", "--holdout", "labelled", "--oracle-log", "labelled", "/dev/null", "m"),
    ],
    ids=" ".join,
)
def test_no_output_takes_the_place_of_an_input_or_another_output(args: tuple[str, ...], pool: Path) -> None:
    before = {path: path.read_bytes() for path in pool.parent.iterdir()}
    done = svmkit(*TRAIN, *args, cwd=pool.parent)
    assert done.returncode == 2
    assert "names one file for two purposes" in done.stderr
    assert {path: path.read_bytes() for path in pool.parent.iterdir()} == before


def test_labels_of_another_pool_are_refused(pool: Path, model: Path) -> None:
    learned(pool, model, "--oracle", pool.parent / "labels", "--max-labels", 10)
    with pool.open("a") as file:
        file.write("? 1:1\n")
    with (pool.parent / "labels").open("a") as file:
        file.write("1\n")
    done = svmkit(*TRAIN, "--pool", pool, "--oracle", pool.parent / "labels", "/dev/null", model)
    assert done.returncode == 1
    assert "its answers are about another pool" in done.stderr
