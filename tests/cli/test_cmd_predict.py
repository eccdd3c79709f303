"""``svmkit predict`` from the outside."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from shell import process, svmkit, write_blobs

from svmkit import model as model_module
from svmkit.calibrate import probabilities
from svmkit.cli.compat import svm_predict
from svmkit.io import chunks
from svmkit.io.libsvm_data import read_dataset
from svmkit.io.model_libsvm import read_model
from svmkit.model import decision_values, predict

REGRESSION = """svm_type epsilon_svr
kernel_type linear
nr_class 2
total_sv 1
rho 0.25
SV
2 1:1
"""


@pytest.fixture(params=[(1, -1), (4, 2, 9)], ids=["two", "three"])
def trained(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Data not trained on, and a model."""
    train = write_blobs(tmp_path / "train", classes=request.param)
    assert svmkit("train", "-q", train, tmp_path / "m").returncode == 0
    return str(write_blobs(tmp_path / "test", n=41, classes=request.param, seed=5)), str(tmp_path / "m")


def calibrated(model: str, folder: Path) -> str:
    """A copy of the model, with probabilities."""
    text, n_pairs = Path(model).read_text(), len(read_model(model).machines)
    sigmoids = f"probA{' -1.5' * n_pairs}\nprobB{' 0.25' * n_pairs}\n"
    (folder / "calibrated").write_text(text.replace("nr_sv", sigmoids + "nr_sv", 1))
    return str(folder / "calibrated")


def test_labels_are_the_models(trained: tuple[str, str], tmp_path: Path) -> None:
    data, model = trained
    dataset, machine = read_dataset(data), read_model(model)
    expected = predict(machine, decision_values(machine, dataset.rows))
    done = svmkit("predict", data, model)
    assert done.returncode == 0
    assert done.stdout == "".join(f"{label:.17g}\n" for label in expected)
    right = int((expected == dataset.y).sum())
    assert done.stderr == f"svmkit: accuracy {100 * right / 41:g} % ({right} of 41)\n"
    quiet = svmkit("predict", "-q", data, model, tmp_path / "out")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    assert (tmp_path / "out").read_text() == done.stdout


def test_decision_values_read_back_exactly(trained: tuple[str, str]) -> None:
    data, model = trained
    machine = read_model(model)
    expected = decision_values(machine, read_dataset(data).rows)
    lines = svmkit("predict", "--output", "decision", data, model).stdout.splitlines()
    assert np.array_equal([[float(word) for word in line.split(" ")] for line in lines], expected)


def test_all_has_named_columns(trained: tuple[str, str]) -> None:
    data, model = trained
    machine = read_model(model)
    decisions = decision_values(machine, read_dataset(data).rows)
    assert machine.labels is not None
    header, *lines = svmkit("predict", "--output", "all", data, model).stdout.splitlines()
    pairs = [f"{machine.labels[i]}_vs_{machine.labels[j]}" for i, j in machine.pairs]
    assert header.split("\t") == ["label", *pairs]
    table = np.array([[float(word) for word in line.split("\t")] for line in lines])
    assert np.array_equal(table, np.column_stack([predict(machine, decisions), decisions]))


def test_probabilities_where_the_model_has_them(trained: tuple[str, str], tmp_path: Path) -> None:
    data, model = trained[0], calibrated(trained[1], tmp_path)
    machine = read_model(model)
    expected = probabilities(machine, decision_values(machine, read_dataset(data).rows))
    assert machine.labels is not None
    header, *lines = svmkit("predict", "--output", "all", data, model).stdout.splitlines()
    k = len(machine.labels)
    assert header.split("\t")[-k:] == [f"p_{label}" for label in machine.labels]
    assert np.array_equal([[float(word) for word in line.split("\t")[-k:]] for line in lines], expected)


def test_some_rows_at_a_time_say_the_same(trained: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, model = trained[0], calibrated(trained[1], tmp_path)

    def said() -> list[str]:
        assert svm_predict.main(["-q", "-b", "1", data, model, str(tmp_path / "out")]) == 0
        calls = [("predict", "--output", kind) for kind in ("label", "decision", "all")] + [("eval", "--json")]
        return [(tmp_path / "out").read_text(), *(svmkit(*call, data, model).stdout for call in calls)]

    at_once = said()
    monkeypatch.setattr(model_module, "_DECISIONS_HELD", 7)
    assert said() == at_once


def test_parts_of_a_file_get_the_answers_of_the_whole(
    trained: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To rounding: rows are moved to a middle of their own, by which last digits may differ."""
    data, model = trained[0], calibrated(trained[1], tmp_path)

    def said() -> tuple[list[str], list[str], NDArray[np.float64]]:
        scores = svmkit("eval", data, model).stdout
        tool = [svm_predict.main(["-b", "1", data, model, str(tmp_path / "out")]), (tmp_path / "out").read_text()]
        labels, table = (svmkit("predict", "--output", kind, data, model) for kind in ("label", "all"))
        header, *lines = table.stdout.splitlines()
        texts = [*map(str, tool), scores, labels.stdout, labels.stderr, table.stderr, header]
        return texts, lines, np.array([[float(word) for word in line.split("\t")] for line in lines])

    whole = said()
    monkeypatch.setattr(chunks, "PART_BYTES", 100)
    parts = said()
    assert len(list(chunks.read_parts(data))) > 10
    assert parts[0] == whole[0]
    assert_allclose(parts[2], whole[2], rtol=1e-12)


def test_what_is_wrong_with_a_later_part_leaves_no_file(
    trained: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "PART_BYTES", 100)
    (tmp_path / "bad").write_text(Path(trained[0]).read_text() + "1 2:1 1:1\n")
    done = svmkit("predict", tmp_path / "bad", trained[1], tmp_path / "out")
    assert (done.returncode, (tmp_path / "out").exists()) == (1, False)
    assert "bad, line 42, column 7" in done.stderr
    piped = svmkit("predict", tmp_path / "bad", trained[1])
    assert svmkit("predict", trained[0], trained[1]).stdout.startswith(piped.stdout)


def test_labels_of_classes_are_what_stands_before_the_point(tmp_path: Path) -> None:
    train = write_blobs(tmp_path / "train")
    assert svmkit("train", "-q", train, tmp_path / "m").returncode == 0
    (tmp_path / "cut").write_text(
        "".join(line.replace("1 ", "1.5 ", 1) for line in train.read_text().splitlines(keepends=True))
    )
    told = svmkit("predict", train, tmp_path / "m", tmp_path / "out").stderr
    assert "(0 of " not in told
    assert svmkit("predict", tmp_path / "cut", tmp_path / "m", tmp_path / "out").stderr == told


@pytest.mark.parametrize("command", [("predict",), ("eval",), ("eval", "--certificate")])
def test_words_that_are_left_out_are_told(command: tuple[str, ...], tmp_path: Path) -> None:
    train = write_blobs(tmp_path / "train")
    assert svmkit("train", "-q", train, tmp_path / "m").returncode == 0
    (tmp_path / "d").write_text(train.read_text() + "1 1:1 word\n")
    done = svmkit(*command, "-q", tmp_path / "d", tmp_path / "m")
    assert (done.returncode, "words after the last index:value pair were left out on line 61\n" in done.stderr) == (0, True)


def test_half_of_what_probabilities_take_is_none(trained: tuple[str, str], tmp_path: Path) -> None:
    data, model = trained
    text, n_pairs = Path(model).read_text(), len(read_model(model).machines)
    (tmp_path / "half").write_text(text.replace("nr_sv", f"probA{' -1.5' * n_pairs}\nnr_sv", 1))
    done, plain = (svmkit("predict", "--output", "all", data, name) for name in (tmp_path / "half", model))
    assert (done.returncode, done.stdout) == (0, plain.stdout)


def test_regression(tmp_path: Path) -> None:
    (tmp_path / "m").write_text(REGRESSION)
    (tmp_path / "d").write_text("1.5 1:1\n0 1:0.1\n")
    done = svmkit("predict", tmp_path / "d", tmp_path / "m")
    assert [float(line) for line in done.stdout.splitlines()] == [1.75, pytest.approx(-0.05)]
    assert "mean squared error 0.0325 " in done.stderr
    assert svmkit("predict", "--output", "all", tmp_path / "d", tmp_path / "m").stdout.startswith(
        "label\tdecision\n1.75\t1.75\n"
    )


def test_data_may_come_by_pipe(trained: tuple[str, str]) -> None:
    data, model = trained
    assert process("predict", "-", model, stdin=Path(data).read_bytes()).stdout == svmkit("predict", data, model).stdout


def test_a_reader_that_leaves_early_is_no_trouble(trained: tuple[str, str]) -> None:
    data, model = trained
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = process("predict", "-q", data, model, stdout=write_end)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_standard_output_is_one_line(trained: tuple[str, str]) -> None:
    with open("/dev/full", "wb") as full:
        done = process("predict", "-q", *trained, stdout=full.fileno())
    assert (done.returncode, done.stderr) == (1, "svmkit: can't write to standard output: No space left on device\n")


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["nosuch", "m"], 1, "nosuch"),
        (["d", "nosuch"], 1, "nosuch"),
        (["d", "d"], 1, "d"),
        (["d", "cut"], 1, "cut"),
        (["d", "m", "d"], 2, "overwritten"),
        (["d", "m", "m"], 2, "overwritten"),
        (["d", "m", "no/such/out"], 1, "no/such"),
        (["-", "-"], 2, "standard input"),
        (["d"], 2, "MODEL"),
        (["d", "m", "--output", "x"], 2, "--output"),
    ],
)
def test_refusals_say_why_and_write_nothing(args: list[str], code: int, words: str, tmp_path: Path) -> None:
    (tmp_path / "m").write_text(REGRESSION)
    (tmp_path / "cut").write_text(REGRESSION.rsplit("\n", 2)[0])
    (tmp_path / "d").write_text("1 1:1\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = svmkit("predict", *args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_model_of_one_class_has_no_decision_values(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("1 1:1\n1 1:2\n")
    assert svmkit("train", "-q", tmp_path / "d", tmp_path / "m").returncode == 0
    assert svmkit("predict", "-q", "--output", "all", tmp_path / "d", tmp_path / "m").stdout == "label\n1\n1\n"
    assert svmkit("predict", "-q", "--output", "decision", tmp_path / "d", tmp_path / "m").stdout == "\n\n"


def test_numbers_are_as_short_as_read_back_exactly(tmp_path: Path) -> None:
    """Values of every kind; nothing is written of what is refused."""
    (tmp_path / "m").write_text(REGRESSION.replace("rho 0.25", "rho 0").replace("2 1:1", "1 1:1"))
    (tmp_path / "d").write_text("0 1:1\n0 1:-3\n0\n0 1:1e22\n0 1:1e-5\n0 1:0.1\n")
    done = svmkit("predict", "-q", "--output", "decision", tmp_path / "d", tmp_path / "m")
    assert done.stdout.split("\n") == ["1", "-3", "0", "1e+22", "1e-05", "0.1", ""]
    (tmp_path / "m").write_text(REGRESSION.replace("linear", "precomputed").replace("2 1:1", "1 0:3"))
    (tmp_path / "d").write_text("0 0:1 1:1 2:1\n")
    done = svmkit("predict", "-q", "--output", "all", tmp_path / "d", tmp_path / "m")
    assert (done.returncode, done.stdout) == (1, "")
