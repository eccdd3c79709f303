"""``svmkit train --init``: what it says, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shell import process, strict_json, svmkit, write_blobs

from svmkit.io.libsvm_data import read_dataset
from svmkit.io.model_libsvm import read_model
from svmkit.warm import join


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A data file ``old`` and its model ``old.model``."""
    data = write_blobs(tmp_path / "old", n=80)
    assert svmkit("train", "-q", "-c", "2", "-g", "0.3", data, tmp_path / "old.model").returncode == 0
    return data


def test_the_model_gives_the_kernel_and_the_start(old: Path, tmp_path: Path) -> None:
    done = svmkit("train", "-c", "2", "--json", "--init", tmp_path / "old.model", old, tmp_path / "m")
    assert done.returncode == 0
    assert "all " in done.stderr
    assert "are among the data" in done.stderr
    assert strict_json(done.stdout)["iterations"] < 40
    assert read_model(str(tmp_path / "m")).kernel == read_model(str(tmp_path / "old.model")).kernel


def test_all_of_the_models_kernel_is_taken(old: Path, tmp_path: Path) -> None:
    poly, m = tmp_path / "poly.model", tmp_path / "m"
    assert svmkit("train", "-q", "-t", "poly", "-d", "2", "-g", "0.25", "-r", "1.5", old, poly).returncode == 0
    assert svmkit("train", "-q", "--init", poly, old, m).returncode == 0
    assert read_model(str(m)).kernel == read_model(str(poly)).kernel
    assert svmkit("train", "-q", "-d", "4", "--init", poly, old, m).returncode == 0
    assert read_model(str(m)).kernel == read_model(str(poly)).kernel._replace(degree=4)


def test_kernel_options_that_are_given_count(old: Path, tmp_path: Path) -> None:
    init = ["--init", tmp_path / "old.model", old, tmp_path / "m"]
    assert svmkit("train", "-q", "-g", "0.7", *init).returncode == 0
    assert read_model(str(tmp_path / "m")).kernel.gamma == 0.7
    assert svmkit("train", "-q", "-t", "linear", *init).returncode == 0
    assert read_model(str(tmp_path / "m")).kernel.name == "linear"
    assert svmkit("train", "-q", "-t", "poly", *init).returncode == 0
    assert read_model(str(tmp_path / "m")).kernel.gamma == 1 / 4  # of another kernel nothing is taken


def test_missing_support_vectors_are_told(old: Path, tmp_path: Path) -> None:
    new = write_blobs(tmp_path / "new", n=50, seed=5)
    done = svmkit("train", "--init", tmp_path / "old.model", new, tmp_path / "m")
    n = read_model(str(tmp_path / "old.model")).n_support
    assert f"{n} of the model's {n} support vectors are not among the data and are added" in done.stderr
    assert "train on both" in done.stderr


def test_other_names_for_the_classes_are_told(old: Path, tmp_path: Path) -> None:
    """Labels 2 and 1 for 1 and −1 make three classes; a class more, or one that is missing, goes without saying."""
    lines = old.read_text().splitlines()
    for names, told in (({"1": "2", "-1": "1"}, True), ({"1": "1", "-1": "-1"}, False), ({"1": "3", "-1": "3"}, True)):
        new = tmp_path / "new"
        new.write_text(
            "".join(names[label.lstrip("+")] + " " + rest + "\n" for label, rest in (x.split(" ", 1) for x in lines))
        )
        done = svmkit("train", "--init", tmp_path / "old.model", new, tmp_path / "m")
        assert done.returncode == 0
        assert ("labels that the model does not know" in done.stderr) == told
        assert ("know (2), the model some that they lack (-1): all are classes now" in done.stderr) == ("2" in names.values())
    first = [line for line in lines if not line.startswith("-")]
    for some in (first, [*lines, "3 1:1"], [*first, "3 cost:0 1:1"]):
        new.write_text("".join(line + "\n" for line in some))
        assert "does not know" not in svmkit("train", "--init", tmp_path / "old.model", new, tmp_path / "m").stderr


def test_balanced_weights_are_of_all_that_is_trained_on(tmp_path: Path) -> None:
    old, new = write_blobs(tmp_path / "old", n=30), write_blobs(tmp_path / "new", n=90, classes=(1, -1), seed=3)
    svmkit("train", "-q", old, tmp_path / "m")
    svmkit("train", "-q", "--class-weight", "balanced", "--init", tmp_path / "m", new, tmp_path / "balanced")
    joined = join(read_dataset(str(new)), read_model(str(tmp_path / "m"))).dataset
    factors = [float(joined.n / (2 * np.count_nonzero(joined.y == label))) for label in (1, -1)]
    assert factors[0] != 1
    weights = ("-w1", repr(factors[0]), "-w-1", repr(factors[1]))
    svmkit("train", "-q", *weights, "--init", tmp_path / "m", new, tmp_path / "weighed")
    assert (tmp_path / "balanced").read_bytes() == (tmp_path / "weighed").read_bytes()


@pytest.mark.parametrize("solver", ["pegasos", "sbp", "asset"])
def test_a_solver_that_cannot_go_on_says_that_alone(solver: str, old: Path, tmp_path: Path) -> None:
    done = svmkit("train", "--init", tmp_path / "old.model", "--solver", solver, old, tmp_path / "m")
    assert done.returncode == 2
    assert done.stderr.startswith(f"svmkit: --solver {solver}: begins anew each time, whatever --init says; those that go on")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--init", "-", "-", "m"], "svmkit: DATA and --init cannot both be standard input"),
        (["--init", "-", "--holdout", "-", "old", "m"], "--init and --holdout cannot both be standard input"),
        (["--init", "old.model", "--holdout", "0.2", "old", "m"], "hold out a file of its own"),
        (["--init", "old.model", "-v", "5", "old"], "-v only cross-validates"),
        (["--init", "old.model", "--solver", "scs", "old", "m"], "--solver scs: begins anew each time"),
        (["--init", "old", "old", "m"], "unknown text in model file"),
        (["--init", "nothing", "old", "m"], "can't open model file nothing"),
        (["--init", "nothing", "--solver", "lasvm", "--stream", "old", "m"], "can't open model file nothing"),
        (["--init", "-", "--solver", "lasvm", "-", "m"], "svmkit: DATA and --init cannot both be standard input"),
        (
            ["--init", "old.model", "--solver", "lasvm", "--pool", "old", "--oracle", "old", "--max-labels", "5", "old", "m"],
            "--init: a pool is begun with examples, not with a model",
        ),
    ],
)
def test_refusals_write_nothing(args: list[str], words: str, old: Path, tmp_path: Path) -> None:
    done = svmkit("train", *args, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert not (tmp_path / "m").exists()


def test_a_stream_goes_on_from_a_model_of_one_class_only_where_all_are_named(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1 1:1\n1 1:2\n")
    assert svmkit("train", "-q", tmp_path / "one", tmp_path / "old.model").returncode == 0
    new = write_blobs(tmp_path / "new", classes=(1, -1))
    stream = ("train", "--solver", "lasvm", "--stream", "-g", "0.5", "--init", "old.model")
    done = svmkit(*stream, new, "m", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == ("svmkit: --init: old.model knows one class, 1; name all classes of the stream, as --labels 1,-1\n")
    done = svmkit(*stream, "--labels", "1,-1", new, "m", cwd=tmp_path)
    assert done.returncode == 0
    assert read_model(str(tmp_path / "m")).n_support > 0


def test_a_file_may_be_held_out(old: Path, tmp_path: Path) -> None:
    done = svmkit("train", "--json", "--init", tmp_path / "old.model", "--holdout", old, old, tmp_path / "m")
    assert (done.returncode, strict_json(done.stdout)["holdout_n"]) == (0, 80)


def test_a_stream_goes_on_from_a_model_with_its_kernel_and_labels(tmp_path: Path) -> None:
    parts = [write_blobs(tmp_path / name, n=200, seed=seed, classes=(7, 4)) for name, seed in (("a", 1), ("b", 2))]
    a, b = tmp_path / "a.model", tmp_path / "b.model"
    stream = ("train", "--solver", "lasvm", "--stream")
    assert svmkit(*stream, "-q", "-g", "0.3", "--labels", "7,4", parts[0], a).returncode == 0
    done = svmkit(*stream, "--json", "--init", a, parts[1], b)
    assert done.returncode == 0
    n = read_model(str(a)).n_support
    assert f"goes on from {n} support vectors; an example of the stream that is among them counts once more" in done.stderr
    made = read_model(str(b))
    assert made.kernel == read_model(str(a)).kernel
    assert made.labels.tolist() == [7, 4]
    anew = strict_json(svmkit(*stream, "--json", "-g", "0.3", "--labels", "7,4", parts[1], tmp_path / "m").stdout)
    assert strict_json(done.stdout)["error"] < anew["error"]  # it knows something before the first example
    assert strict_json(done.stdout)["rows"] == 200
    piped = process("train", "-q", "--solver", "lasvm", "--init", a, "-", a, stdin=parts[1].read_bytes())
    assert (piped.returncode, piped.stderr) == (0, "")
    assert a.read_bytes() == b.read_bytes()
    assert svmkit(*stream, "-q", "--init", b, "-g", "0.7", parts[1], b).returncode == 0
    assert read_model(str(b)).kernel.gamma == 0.7


def test_classes_that_the_model_knows_need_not_come_in_a_stream(old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.write_text("".join(line + "\n" for line in old.read_text().splitlines() if line.startswith(("1", "+1"))))
    done = svmkit("train", "--solver", "lasvm", "--stream", "--init", tmp_path / "old.model", new, tmp_path / "m")
    assert (done.returncode, "no example" in done.stderr) == (0, False)


def test_a_stream_has_no_labels_but_those_of_the_model(old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.write_text("5 1:1\n")
    stream = ("train", "--solver", "lasvm", "--stream", "--init", tmp_path / "old.model")
    done = svmkit(*stream, new, tmp_path / "m")
    assert done.returncode == 1
    assert "new, line 1: label 5 is none of 1, -1; a stream's labels are those of --labels or --init, else" in done.stderr
    assert svmkit(*stream, "--labels", "5,1,-1", new, tmp_path / "m").returncode == 0
    assert read_model(str(tmp_path / "m")).labels.tolist() == [5, 1, -1]


def test_a_model_of_two_classes_is_a_start_for_more_in_either_way(old: Path, tmp_path: Path) -> None:
    """It has one machine, whatever --multiclass says of more."""
    new = tmp_path / "new"
    new.write_text(old.read_text() + "3 1:9\n3 2:9\n")
    for way in ("ovo", "ovr"):
        init = ("--init", tmp_path / "old.model", "--multiclass", way)
        assert svmkit("train", "-q", "-c", "2", *init, new, tmp_path / way).returncode == 0
    refused = svmkit("train", "-q", "--init", tmp_path / "ovo", "--multiclass", "ovr", new, tmp_path / "m")
    assert (refused.returncode, "machines of the kind --multiclass ovo; train with that" in refused.stderr) == (2, True)
