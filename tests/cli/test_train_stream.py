"""What the command line says of a stream: which data are one, what is refused, and how its end is told."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from shell import process, strict_json, svmkit, write_blobs

from svmkit import stream
from svmkit.cli import train_stream
from svmkit.cli.train_stream import StreamOptions
from svmkit.errors import UsageError
from svmkit.io.model_libsvm import read_model

NOTHING_SAID = StreamOptions(stream=None, labels=None, n_rows=None, passes=None, snapshot_rows=None, snapshot_s=None)
STREAM = ("train", "--solver", "perceptron", "--bias", "none", "--stream", "-g", "0.5")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_blobs(tmp_path / "d", n=200)


@pytest.mark.parametrize(
    ("said", "where", "solver", "pool", "expected"),
    [
        (None, "-", "lasvm", False, True),
        (None, "-", "perceptron", False, False),
        (None, "file", "lasvm", False, False),
        (None, "-", "lasvm", True, False),  # DATA are then what a pool is begun with
        (False, "-", "lasvm", False, False),
        (True, "-", "perceptron", False, True),
        (True, "file", "perceptron", False, True),
    ],
)
def test_what_is_learned_as_a_stream(said: bool | None, where: str, solver: str, pool: bool, expected: bool) -> None:
    assert replace(NOTHING_SAID, stream=said).wanted(where, solver, pool) is expected


@pytest.mark.parametrize("field", ["n_rows", "passes", "snapshot_rows", "snapshot_s"])
@pytest.mark.parametrize("value", [0, -1])
def test_numbers_that_cannot_be_are_refused(field: str, value: int) -> None:
    asked = replace(NOTHING_SAID, stream=True, **{field: value})
    option = {"n_rows": "--rows", "snapshot_s": "--snapshot-seconds"}.get(field, "--" + field.replace("_", "-"))
    with pytest.raises(UsageError, match=f"^{option} {value}: must be greater than 0"):
        asked.wanted("d", "lasvm", pool=False)
    with pytest.raises(UsageError, match=f"^{option} is for streams only"):
        replace(asked, stream=None).wanted("d", "lasvm", pool=True)


def test_labels_are_32_bit_integers(data: Path, model: Path) -> None:
    lowest, highest = -(2**31), 2**31 - 1
    data.write_text(f"{lowest} 1:1\n{highest} 1:2\n")
    assert svmkit(*STREAM, "-q", "--labels", f"{lowest},{highest}", data, model).returncode == 0
    assert read_model(str(model)).labels.tolist() == [lowest, highest]
    for label in (lowest - 1, highest + 1):
        assert "a label must lie in" in svmkit(*STREAM, "--labels", f"1,{label}", data, model).stderr


def test_the_held_out_error_is_by_the_streams_own_labels(model: Path, tmp_path: Path) -> None:
    data, other = (write_blobs(tmp_path / name, n=60, seed=seed, classes=(7, 4)) for name, seed in (("d", 1), ("o", 2)))
    done = svmkit(*STREAM, "--json", "--labels", "7,4", "--holdout", other, data, model)
    assert (done.returncode, "none of those trained on" in done.stderr) == (0, False)
    assert strict_json(done.stdout)["holdout_error"] < 0.5


def test_numbers_of_the_report_are_of_the_whole_stream_and_model(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many machines hold a support vector, and however often has been reported before."""
    monkeypatch.setattr(stream, "WINDOW", 90)
    data, trace = write_blobs(tmp_path / "d", n=1500, classes=(4, 2, 9)), tmp_path / "t"
    done = svmkit(*STREAM, "--json", "--trace", trace, "--labels", "4,2,9", data, model)
    found, row = strict_json(done.stdout), strict_json(trace.read_text().splitlines()[-1])
    assert found["n_support"] == read_model(str(model)).n_support
    assert found["rows_per_s"] == pytest.approx(1500 / found["seconds"])
    assert all(found[key] == row[key] for key in ("seconds", "error", "window_error"))
    assert f"error {100 * row['error']:.4g} % before learning (last 90: {100 * row['window_error']:.4g} %)" in done.stderr
    assert row["error"] != row["window_error"]


def test_a_stream_that_is_cut_short_exits_with_3_where_that_is_asked_for(data: Path, model: Path) -> None:
    for more, code in ((("--strict", "--max-iter", 50), 3), (("--max-iter", 50), 0), (("--strict",), 0)):
        done = svmkit(*STREAM, "-q", *more, data, model)
        assert (done.returncode, "warning: stopped (MAX_ITER)" in done.stderr) == (code, "--max-iter" in more)


@pytest.mark.parametrize(("limit", "status"), [("--max-iter", "MAX_ITER"), ("--budget-evals", "MAX_EVALUATIONS")])
def test_limits_hold_for_streams(limit: str, status: str, data: Path, model: Path) -> None:
    found = strict_json(svmkit(*STREAM, "--json", limit, 100, data, model).stdout)
    assert found["status"] == status
    assert 0 < found["rows"] < 200


def test_words_that_are_left_out_are_told_once_however_often_they_are_read(data: Path, model: Path) -> None:
    data.write_text(data.read_text() + "1 1:1 word\n")
    for passes in (1, 3):
        done = svmkit(*STREAM, "--passes", passes, data, model)
        assert (done.returncode, done.stderr.count("were left out on line 201")) == (0, 1)


def test_a_stream_is_told_that_it_has_no_bias(data: Path, model: Path) -> None:
    args = ("train", "--solver", "perceptron", "--stream", "-g", "0.5", data, model)
    assert "warning: solver perceptron trains without a bias" in svmkit(*args).stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_trace_that_is_lost_is_told_and_the_model_written(data: Path, model: Path) -> None:
    done = svmkit(*STREAM, "--trace", "/dev/full", data, model)
    assert (done.returncode, "/dev/full" in done.stderr, model.exists()) == (1, True, True)


def test_reports_come_by_the_clock_alone(data: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for every_s, told in ((1e9, False), (0.0, True)):
        monkeypatch.setattr(train_stream, "_REPORT_EVERY_S", every_s)
        done = svmkit(*STREAM, data, model)
        assert (done.returncode, " 200 examples, " in done.stderr, " a second, error " in done.stderr) == (0, True, told)
        assert (done.stderr.count(f", {read_model(str(model)).n_support} support vectors") > 1) is told


def test_what_is_said_of_a_snapshot_that_was_not_yet_due(data: Path, model: Path) -> None:
    data.write_text("1 1:1\n1 1:x\n")
    assert "was too soon for a snapshot" in svmkit(*STREAM, "--snapshot-seconds", 1000, data, model).stderr


def test_where_nothing_came_in_time_only_that_is_told(data: Path, model: Path) -> None:
    done = svmkit(*STREAM, "--time-limit", 1e-9, "/dev/null", model)
    assert (done.returncode, model.exists(), "had the label" in done.stderr) == (0, False, False)
    assert "stopped (TIME_LIMIT)" in done.stderr
    assert ": 0 examples, no error known yet, " in done.stderr


def test_a_model_on_standard_output_is_said_to_be_there(data: Path) -> None:
    assert svmkit(*STREAM, data, "-").stderr.endswith("; model on stdout\n")


def test_lasvm_reads_all_of_standard_input_first_where_it_is_told_to(data: Path, model: Path, tmp_path: Path) -> None:
    lasvm = ("train", "-q", "--solver", "lasvm", "-g", "0.5")
    assert svmkit(*lasvm, data, tmp_path / "batch").returncode == 0
    assert svmkit(*lasvm, "--stream", data, tmp_path / "stream").returncode == 0
    for more, same in (((), "stream"), (("--no-stream",), "batch")):
        assert process(*lasvm, *more, "-", model, stdin=data.read_bytes()).returncode == 0
        assert model.read_bytes() == (tmp_path / same).read_bytes()
    assert (tmp_path / "batch").read_bytes() != (tmp_path / "stream").read_bytes()
