"""``svmkit train --stream``: from files and standard input to models, snapshots, reports and exit codes."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from shell import process, strict_json, svmkit, wait_for, write_blobs

from svmkit.errors import OutputError
from svmkit.io import model_libsvm
from svmkit.io.model_libsvm import read_model, write_model
from svmkit.model import Model

STREAM = ("train", "--solver", "perceptron", "--bias", "none", "--stream", "-g", "0.5")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_blobs(tmp_path / "d", n=500)


def learned(data: Path, model: Path, *args: object) -> bytes:
    done = svmkit(*STREAM, *args, data, model)
    assert done.returncode == 0, done.stderr
    return model.read_bytes()


def test_standard_input_a_file_and_a_compressed_one_give_the_same_model(data: Path, model: Path) -> None:
    expected = learned(data, model)
    packed = data.with_suffix(".gz")
    packed.write_bytes(gzip.compress(data.read_bytes()))
    assert learned(packed, model) == expected
    for content in (data.read_bytes(), packed.read_bytes()):
        model.unlink()
        done = process(*STREAM, "-", model, stdin=content)
        assert (done.returncode, done.stdout) == (0, "")
        assert model.read_bytes() == expected
    to_stdout = process(*STREAM, "-q", "--passes", 1, "-", "-", stdin=data.read_bytes())
    assert (to_stdout.stdout.encode(), to_stdout.stderr) == (expected, "")


def test_the_report(data: Path, model: Path, tmp_path: Path) -> None:
    trace, other = tmp_path / "t", write_blobs(tmp_path / "o", n=80, seed=3)
    done = svmkit(*STREAM, "--json", "--trace", trace, "--snapshot-rows", 200, "--holdout", other, data, model)
    found = strict_json(done.stdout)
    assert list(found) == [
        *("status", "seconds", "rows", "error", "window_error", "rows_per_s", "kernel_evaluations", "n_support"),
        *("memory_mb", "snapshots", "model", "holdout_error", "holdout_n"),
    ]
    assert (found["status"], found["rows"], found["snapshots"], found["holdout_n"]) == ("COMPLETED", 500, 2, 80)
    assert found["n_support"] == read_model(str(model)).n_support
    evaluated = strict_json(svmkit("eval", "--json", other, model).stdout)
    assert found["holdout_error"] == pytest.approx(1 - evaluated["accuracy"])
    (line,) = trace.read_text().splitlines()
    row = json.loads(line)
    assert all(row[key] == found[key] for key in ("rows", "error", "n_support", "kernel_evaluations"))
    assert "completed in" in done.stderr
    assert f"error {100 * found['error']:.4g} % before learning (last 500: " in done.stderr
    assert svmkit(*STREAM, "-q", data, model).stderr == ""


def test_several_classes_are_named(model: Path, tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "three", n=300, classes=(4, 2, 9))
    refused = svmkit(*STREAM, data, model)
    assert refused.returncode == 1
    assert (
        "line 1: label 4 is none of 1, -1; a stream's labels are those of --labels or --init, else 1 and -1" in refused.stderr
    )
    assert not model.exists()
    for multiclass in ("ovo", "ovr"):
        learned(data, model, "--labels", "4,2,9", "--multiclass", multiclass)
        found = read_model(str(model))
        assert found.labels is not None
        assert (found.labels.tolist(), found.multiclass) == ([4, 2, 9], multiclass)


def test_a_class_that_never_comes_is_told(model: Path, tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "three", n=60, classes=(4, 2))
    done = svmkit(*STREAM, "-q", "--labels", "4,2,9", data, model)
    assert (done.returncode, done.stdout) == (0, "")
    assert (
        done.stderr == "svmkit: warning: no example that was learned had the label 9: nothing tells its class from the others\n"
    )


def test_of_several_passes_the_error_is_the_first_ones(data: Path, model: Path) -> None:
    once, thrice = (svmkit(*STREAM, "--json", "--passes", n, data, model) for n in (1, 3))
    reports = [strict_json(done.stdout) for done in (once, thrice)]
    assert [found["rows"] for found in reports] == [500, 1500]
    assert reports[0]["error"] == reports[1]["error"]
    assert "% in the first pass before learning (last 500: " in thrice.stderr
    assert "% before learning (last 500: " in once.stderr


def test_passes_read_the_file_again(data: Path, model: Path) -> None:
    doubled = data.with_name("twice")
    doubled.write_bytes(2 * data.read_bytes())
    assert learned(data, model, "--passes", 2) == learned(doubled, model)


def test_a_bad_line_leaves_the_last_snapshot(data: Path, model: Path) -> None:
    lines = data.read_text().splitlines(keepends=True)
    (data.with_name("first")).write_text("".join(lines[:400]))
    expected = learned(data.with_name("first"), model)
    lines.insert(440, "1 1:x\n")
    data.write_text("".join(lines))
    done = svmkit(*STREAM, "--snapshot-rows", 200, data, model)
    assert done.returncode == 1
    assert f"{model} is the model after 400 examples" in done.stderr
    assert "Wrong input format at line 441" in done.stderr
    assert model.read_bytes() == expected
    model.unlink()
    done = svmkit(*STREAM, data, model)
    assert f"{model} was not written; --snapshot-rows" in done.stderr
    assert not model.exists()


def test_another_number_of_examples_than_was_said_is_told(data: Path, model: Path) -> None:
    asked = ("train", "--solver", "pegasos", "--stream", "-t", "0", "-c", "1", "--passes", "2")
    assert "500 examples of weight above 0 came, --rows said 20" in svmkit(*asked, "--rows", "20", data, model).stderr
    for enough in (("--rows", "500"), ("--rows", "501", "--max-iter", "20")):
        assert "--rows" not in svmkit(*asked, *enough, data, model).stderr
    assert "--rows" not in svmkit(*asked[:-2], "--rows", "500", data, model).stderr  # one pass, without --passes


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--stream",), "--solver smo: needs all of the data at once"),
        (("--stream", "--solver", "perceptron"), "-g: a stream's number of features is not known ahead"),
        (("--stream", "--solver", "asset", "-t", 0), "--lambda"),
        (("--rows", 5), "--rows is for streams only; give --stream too"),
        (("--snapshot-seconds", 5), "--snapshot-seconds is for streams only"),
        (("--no-stream", "--labels", "1,2"), "--labels is for streams and pools only; give --stream or --pool too"),
        ((*STREAM[1:], "-v", 3), "no -v"),
        ((*STREAM[1:], "--class-weight", "balanced"), "there are no -v, --patience and --class-weight"),
        ((*STREAM[1:], "--init", "d"), "--solver perceptron: begins a stream anew each time, whatever --init says"),
        ((*STREAM[1:], "--holdout", "0.2"), "--holdout 0.2: nothing of a stream can be set aside"),
        ((*STREAM[1:], "--rows", 0), "--rows 0: must be greater than 0"),
        ((*STREAM[1:], "--rows", 2**63), "--rows: must be below 2^63"),
        ((*STREAM[1:], "--rows", 10**400), "--rows: must be below 2^63"),
        ((*STREAM[1:], "--snapshot-seconds", -1), "--snapshot-seconds -1"),
        ((*STREAM[1:], "--labels", "1,a"), "'1,a': labels are whole numbers"),
        ((*STREAM[1:], "--labels", "3"), "--labels: name at least two"),
        ((*STREAM[1:], "--labels", f"1,{-(2**31) - 1}"), "a label must lie in −2^31 … 2^31 − 1"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(args: tuple[object, ...], why: str, data: Path, model: Path) -> None:
    done = svmkit("train", *args, data, *(() if "-v" in args else (model,)))
    assert done.returncode == 2
    assert why in done.stderr
    assert not model.exists()


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--snapshot-rows", 5, "d", "-"), "one behind the other"),
        (("--snapshot-rows", 5, "d", "/dev/stdout"), "one behind the other"),
        (("--snapshot-seconds", 5, "d", "-"), "one behind the other"),
        (("--json", "d", "/dev/stdout"), "svmkit: MODEL /dev/stdout and --json would both write standard output"),
        (("--passes", 2, "-", "m"), "can be read only once"),
    ],
    ids=str,
)
def test_what_standard_streams_cannot_do_is_refused(args: tuple[object, ...], why: str, data: Path) -> None:
    done = svmkit(*STREAM, *args, cwd=data.parent)
    assert done.returncode == 2
    assert why in done.stderr


def test_standard_input_as_a_stream_is_told_where_a_stream_has_no_such_thing() -> None:
    done = svmkit("train", "--solver", "lasvm", "-v", 3, "-")
    assert done.returncode == 2
    assert "lasvm learns standard input as a stream unless told --no-stream" in done.stderr


def test_held_out_labels_that_are_not_learned_are_told(data: Path, model: Path) -> None:
    (data.parent / "other").write_text(data.read_text().replace("-1 ", "0 ", 5))
    done = svmkit(*STREAM, "-q", "--holdout", data.parent / "other", data, model)
    assert "other: 5 of 500 labels, such as 0, are none of those trained on; they count as errors" in done.stderr


# --- streams that do not end ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["5 1:1", "1 1:1e200", "1 1:x", "1 cost:1e200 1:1", "1 cost:1e-200 1:1"])
def test_what_stands_before_a_bad_line_is_learned(line: str, data: Path, model: Path) -> None:
    good = data.read_text().splitlines(keepends=True)
    data.write_text("".join(good[:200]))
    expected = learned(data, model)
    data.write_text("".join([*good[:210], f"{line}\n", *good[210:]]))
    done = svmkit(*STREAM, "--snapshot-rows", 200, data, model)
    assert done.returncode == 1
    assert done.stderr.startswith(f"svmkit: {model} is the model after 200 examples\n")
    assert "line 211" in done.stderr
    assert model.read_bytes() == expected


def test_an_example_that_the_map_cannot_take_is_told_by_its_line(data: Path, model: Path) -> None:
    with data.open("a") as file:
        file.write("1 1:1e120\n")
    done = svmkit("train", "--solver", "asset", "--stream", "--map", "fourier", "-g", "1", "--lambda", "0.1", data, model)
    assert done.returncode == 1
    assert f"svmkit: {data}, line 501: values up to 1e+120 in size are too large" in done.stderr


def test_a_snapshot_that_cannot_be_written_is_missed_and_no_more(
    data: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told once until there is room again; only the model at the end has to be written."""
    expected, calls = learned(data, model), []

    def failing(*numbers: int) -> Callable[[str, Model], None]:
        def write(path: str, found: Model) -> None:
            calls.append(path)
            if len(calls) in numbers:
                raise OutputError(f"can't write {path}: No space left on device")
            write_model(path, found)

        return write

    monkeypatch.setattr(model_libsvm, "write_model", failing(1, 2, 4))
    done = svmkit(*STREAM, "--snapshot-rows", 100, data, model)
    assert (done.returncode, len(calls), done.stderr.count("without this snapshot")) == (0, 6, 2)
    assert model.read_bytes() == expected
    monkeypatch.setattr(model_libsvm, "write_model", failing(12))
    done = svmkit(*STREAM, "--snapshot-rows", 100, data, model)
    assert done.returncode == 1
    assert "after 500 examples" in done.stderr
    monkeypatch.setattr(model_libsvm, "write_model", failing(13))
    done = svmkit(*STREAM, "-q", data, model)
    assert (done.returncode, done.stderr) == (1, f"svmkit: can't write {model}: No space left on device\n")


def test_what_is_said_of_the_model_after_an_error(data: Path, model: Path) -> None:
    with data.open("a") as file:
        file.write("1 1:x\n")
    assert "--snapshot-rows or --snapshot-seconds would have kept" in svmkit(*STREAM, data, model).stderr
    assert "too soon for a snapshot" in svmkit(*STREAM, "--snapshot-rows", 10**6, data, model).stderr
    assert svmkit(*STREAM, data.with_name("none"), model).stderr.startswith("svmkit: can't open input file")
    assert not model.exists()


def test_several_passes(data: Path, model: Path) -> None:
    assert "(last 500: " in svmkit(*STREAM, "--passes", 3, data, model).stderr  # later passes see nothing new
    for passes in (1, 2):
        assert ("% in the first pass before" in svmkit(*STREAM, "--passes", passes, data, model).stderr) is (passes > 1)
    os.mkfifo(data.with_name("pipe"))
    refused = svmkit(*STREAM, "--passes", 2, data.with_name("pipe"), model)
    assert (refused.returncode, "is no file, and can be read only once" in refused.stderr) == (2, True)


@contextmanager
def endless(data: Path, model: Path, *args: object) -> Iterator[subprocess.Popen[str]]:
    """Training on a pipe that has delivered ``data`` and stays open."""
    running = subprocess.Popen(
        [sys.executable, "-m", "svmkit", *map(str, STREAM), *map(str, args), "-", str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stdin is not None
        running.stdin.write(data.read_text())
        running.stdin.flush()
        yield running
    finally:
        running.kill()
        running.communicate()


def holding(path: Path, content: bytes = b"") -> Callable[[], bool]:
    """Whether the file is there, and holds ``content`` if that is given."""
    return lambda: path.exists() and content in (b"", path.read_bytes())


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_stream_leaves_the_model_so_far(signum: int, code: int, data: Path, model: Path, tmp_path: Path) -> None:
    expected = learned(data, model)
    model.unlink()
    trace = tmp_path / "t"
    with endless(data, model, "--json", "--trace", trace, "--snapshot-rows", 500) as running:
        wait_for(holding(model), running)  # all has been learned
        model.unlink()
        running.send_signal(signum)
        out, err = running.communicate(timeout=60)
    assert running.returncode == code
    found = strict_json(out)
    assert (found["status"], found["rows"]) == ("INTERRUPTED", 500)
    assert "stopped (INTERRUPTED)" in err
    assert model.read_bytes() == expected


@pytest.mark.parametrize("rest", ["", "1 1:0.5 2:"])
def test_ctrl_c_for_a_whole_pipeline_is_no_bad_data(rest: str, data: Path, model: Path) -> None:
    """It ends whoever writes, too, in the midst of a line or before the first."""
    expected = learned(data, model) if rest else b""
    model.unlink(missing_ok=True)
    data.write_text(data.read_text() + rest if rest else "")
    with endless(data, model, "--snapshot-rows", 500) as running:
        if rest:
            wait_for(holding(model), running)  # all has been learned
            model.unlink()
        else:
            time.sleep(2.0)  # it waits for data by now
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)  # closes the pipe
    assert running.returncode == 130, err
    assert "Wrong input" not in err
    assert (model.read_bytes() if rest else b"") == expected


def test_a_stream_stopped_before_its_first_example_leaves_an_older_model(data: Path, model: Path, tmp_path: Path) -> None:
    expected = learned(data, model)
    empty = tmp_path / "empty"
    empty.write_text("")
    with endless(empty, model, "--json") as running:
        time.sleep(1.0)
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=60) == 143  # its input still open
        out, err = running.communicate()
    if out:  # the signal came during training, not before
        found = strict_json(out)
        assert (found["rows"], found["snapshots"], found["model"]) == (0, 0, None)
        assert "no model written" in err
    assert model.read_bytes() == expected


def test_a_stream_of_nothing_to_learn_is_refused_and_leaves_an_older_model(model: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.write_text("1 cost:0 1:1\n-1 cost:0 1:2\n")
    model.write_text("an older one\n")
    done = svmkit("train", "--stream", "--solver", "lasvm", "-g", "1", nothing, model)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{nothing}: every example has weight 0, none is left to learn" in done.stderr
    assert model.read_text() == "an older one\n"


def test_a_killed_stream_leaves_the_last_snapshot(data: Path, model: Path) -> None:
    head = data.with_name("head")
    head.write_text("".join(data.read_text().splitlines(keepends=True)[:450]))
    expected = learned(head, model)
    model.unlink()
    with endless(data, model, "--snapshot-rows", 150) as running:
        wait_for(holding(model, expected), running)
        running.send_signal(signal.SIGKILL)
        running.wait(timeout=60)
    assert model.read_bytes() == expected
    assert svmkit("predict", "-q", data, model).returncode == 0
    assert sorted(os.listdir(model.parent)) == ["d", "head", "m"]


def test_snapshots_by_the_clock_come_while_the_stream_pauses(data: Path, model: Path) -> None:
    expected = learned(data, model)
    model.unlink()
    with endless(data, model, "--snapshot-seconds", 0.2) as running:
        wait_for(holding(model, expected), running)
