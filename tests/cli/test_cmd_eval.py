"""``svmkit eval``: scores that can be counted again, certificates that agree with training's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracle import dense_kernel
from shell import strict_json, svmkit, write_blobs

from svmkit.cli.compat import svm_train
from svmkit.data import stack
from svmkit.io.libsvm_data import read_dataset
from svmkit.io.model_libsvm import model_text, read_model
from svmkit.matching import foreign_rows

KEYS = ("primal", "dual", "gap")


def test_scores_agree_with_predict(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d", classes=(2, 7, 5), n=90)
    svmkit("train", "-q", "-c", "0.1", data, tmp_path / "m")
    truth = [int(line.split()[0]) for line in data.read_text().splitlines()]
    answers = [int(line) for line in svmkit("predict", "-q", data, tmp_path / "m").stdout.splitlines()]
    report = strict_json(svmkit("eval", "--json", data, tmp_path / "m").stdout)
    assert report["n"] == 90
    assert report["accuracy"] == pytest.approx(sum(t == a for t, a in zip(truth, answers, strict=True)) / 90)
    assert report["error"] == pytest.approx(1 - report["accuracy"])
    assert report["labels"] == [2, 7, 5]
    for i, true in enumerate(report["labels"]):
        for j, called in enumerate(report["labels"]):
            assert report["confusion"][i][j] == sum((t, a) == (true, called) for t, a in zip(truth, answers, strict=True))
    assert 0.5 < report["auc"] <= 1


def test_auc_is_the_share_of_pairs_in_order(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d")
    svmkit("train", "-q", "-c", "0.01", data, tmp_path / "m")
    truth = [int(line.split()[0]) for line in data.read_text().splitlines()]
    values = [float(line) for line in svmkit("predict", "-q", "--output", "decision", data, tmp_path / "m").stdout.splitlines()]
    scores = [
        (v > w) + 0.5 * (v == w)
        for t, v in zip(truth, values, strict=True)
        for u, w in zip(truth, values, strict=True)
        if (t, u) == (1, -1)
    ]
    report = strict_json(svmkit("eval", "--json", data, tmp_path / "m").stdout)
    assert report["auc"] == pytest.approx(sum(scores) / len(scores))


def test_auc_of_classes_against_the_rest_is_the_mean_over_classes(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d", classes=(2, 7, 5), n=90)
    svmkit("train", "-q", "-c", "0.1", "--multiclass", "ovr", data, tmp_path / "m")
    truth = read_dataset(str(data)).y
    values = np.loadtxt(svmkit("predict", "-q", "--output", "decision", data, tmp_path / "m").stdout.splitlines())
    above = [
        np.mean(column[truth == label][:, None] > column[truth != label])
        for label, column in zip((2, 7, 5), values.T, strict=True)
    ]
    report = strict_json(svmkit("eval", "--json", data, tmp_path / "m").stdout)
    assert report["labels"] == [2, 7, 5]
    assert report["auc"] == pytest.approx(np.mean(above))


def test_unknown_labels_are_counted_as_wrong(tmp_path: Path) -> None:
    svmkit("train", "-q", write_blobs(tmp_path / "d"), tmp_path / "m")
    (tmp_path / "test").write_text("8 1:1\n2.5 1:1\n")
    report = strict_json(svmkit("eval", "--json", tmp_path / "test", tmp_path / "m").stdout)
    assert (report["accuracy"], report["labels"], report["auc"]) == (0, [1, -1], None)
    assert (report["confusion"], sum(report["other"])) == ([[0, 0], [0, 0]], 2)
    assert "\nother " in svmkit("eval", tmp_path / "test", tmp_path / "m").stdout.replace("\n ", "\n")


@pytest.mark.parametrize(
    "options",
    [["-c", "2"], ["-c", "2", "-w1", "3", "-w-1", "0.5"], ["--no-bias"], ["--lambda", "0.01"]],
    ids=lambda options: " ".join(options),
)
@pytest.mark.parametrize("classes", [(1, -1), (3, 1, 2)], ids=["two", "three"])
def test_the_certificate_is_the_one_of_training(classes: tuple[int, ...], options: list[str], tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d", classes=classes)
    data.write_text(data.read_text() + "".join(data.read_text().splitlines(keepends=True)[:9]))  # some rows twice
    trained = strict_json(svmkit("train", "--json", "-g", "0.2", *options, data, tmp_path / "m").stdout)
    found = strict_json(svmkit("eval", "--json", "--certificate", *options, data, tmp_path / "m").stdout)
    for key in KEYS:
        assert found[key] == pytest.approx(trained[key], rel=1e-6, abs=1e-6)
    assert found["violation"] == pytest.approx(trained["violation"], abs=1e-9)
    assert [machine["classes"] for machine in found["machines"]] == [machine["classes"] for machine in trained["machines"]]


def primal_objective(model: Path, data: Path, C: float) -> float:
    """Over all machines, from a dense kernel matrix."""
    found, dataset, total = read_model(str(model)), read_dataset(str(data)), 0.0
    assert found.labels is not None
    for (i, j), machine in zip(found.pairs, found.machines, strict=True):
        own = dataset.take(np.flatnonzero(np.isin(dataset.y, found.labels[[i, j]])))
        basis = found.rows.take(machine.index)
        margin = np.where(own.y == found.labels[i], 1, -1) * (
            dense_kernel(own.rows, basis, found.kernel) @ machine.coef - machine.rho
        )
        total += 0.5 * machine.coef @ dense_kernel(basis, basis, found.kernel) @ machine.coef
        total += C * np.maximum(0, 1 - margin).sum()
    return float(total)


@pytest.mark.parametrize("classes", [(1, -1), (3, 1, 2)], ids=["two", "three"])
@pytest.mark.parametrize("kind", ["nystroem", "approx"])
def test_a_model_on_vectors_of_its_own_has_an_exact_primal_and_a_gap_that_holds(
    kind: str, classes: tuple[int, ...], tmp_path: Path
) -> None:
    data, model, options = write_blobs(tmp_path / "d", classes=classes), tmp_path / "m", ("--json", "-g", "0.2", "-c", "2")
    bias = ("--no-bias",) if kind == "nystroem" else ()
    optimum = strict_json(svmkit("train", *options, "-e", "1e-6", *bias, data, tmp_path / "best").stdout)
    if kind == "nystroem":
        svmkit("train", *options, "--map", "nystroem", "--dim", "8", "--solver", "sdca", data, model)
    else:
        svmkit("approx", "--model", tmp_path / "best", "--basis", "12", model)
    found = strict_json(svmkit("eval", "--json", "--certificate", "-c", "2", *bias, data, model).stdout)
    assert found["primal"] == pytest.approx(primal_objective(model, data, C=2.0), rel=1e-9)
    assert found["dual"] < optimum["primal"] < found["primal"]
    assert found["gap"] == pytest.approx(found["primal"] - found["dual"])


def test_few_vectors_of_its_own_may_all_have_the_signs_of_their_classes(tmp_path: Path) -> None:
    """That other data are meant is known of a model whose coefficients add up to 0, as those of two vectors do not."""
    data = write_blobs(tmp_path / "d")
    optimum = strict_json(svmkit("train", "--json", "-g", "0.2", "-e", "1e-6", data, tmp_path / "best").stdout)
    svmkit("approx", "--model", tmp_path / "best", "--basis", "2", tmp_path / "m")
    model = read_model(str(tmp_path / "m"))
    assert not foreign_rows(model).any()
    done = svmkit("eval", "--json", "--certificate", data, tmp_path / "m")
    found = strict_json(done.stdout)
    assert found["primal"] == pytest.approx(primal_objective(tmp_path / "m", data, C=1.0), rel=1e-9)
    assert found["dual"] < optimum["primal"] < found["primal"]
    assert "none of the model's support vectors is an example of the data" in done.stderr

    even = replace(model, coef=np.array([[1.0], [-1.0]]))
    (tmp_path / "m").write_bytes(model_text(even))
    done = svmkit("eval", "--json", "--certificate", data, tmp_path / "m")
    assert (done.returncode, done.stdout) == (1, "")
    assert "give the very training set; or is it a model on vectors of its own" in done.stderr

    dataset, labels = read_dataset(str(data)), model.labels
    assert labels is not None
    example = dataset.rows.take(np.flatnonzero(dataset.y == labels[0])[:1])
    (tmp_path / "m").write_bytes(model_text(replace(model, rows=stack([example, model.rows.part(1, 2)]))))
    done = svmkit("eval", "--json", "--certificate", data, tmp_path / "m")
    assert (done.returncode, done.stdout) == (1, "")
    assert "support vector 2 of the model is no example of the data" in done.stderr


def test_coefficients_without_a_threshold_do_not_tell_that_other_data_are_meant(tmp_path: Path) -> None:
    """Those of examples add up to anything."""
    svmkit("train", "--no-bias", write_blobs(tmp_path / "d"), tmp_path / "m")
    done = svmkit("eval", "--no-bias", "--certificate", write_blobs(tmp_path / "other", seed=2), tmp_path / "m")
    assert (done.returncode, done.stdout) == (1, "")
    assert "support vector 1 of the model is no example of the data" in done.stderr


@pytest.mark.parametrize("classes", [(1, -1), (3, 1, 2)], ids=["two", "three"])
def test_bounds_may_be_rounded_to_single_precision(classes: tuple[int, ...], tmp_path: Path) -> None:
    """As svm-train 3.24 has them: its α at a bound is not a free one below C, or beyond it."""
    data, rounded = write_blobs(tmp_path / "d", classes=classes), np.float32([0.3, 0.1, 0.7]).astype(float)
    for C in rounded.tolist():
        trained = strict_json(svmkit("train", "--json", "-c", repr(C), "-g", "0.05", data, tmp_path / "m").stdout)
        found = strict_json(svmkit("eval", "--json", "--certificate", "-c", f"{C:.6g}", data, tmp_path / "m").stdout)
        assert found["violation"] == pytest.approx(trained["violation"], abs=1e-6)
        assert found["gap"] == pytest.approx(trained["gap"], abs=1e-5)
        assert found["primal"] == pytest.approx(primal_objective(tmp_path / "m", data, float(f"{C:.6g}")), rel=1e-12)


def test_rows_that_svm_train_cut_are_judged_as_they_stand_in_the_model(tmp_path: Path) -> None:
    """Eight digits leave of these values multiples of 100, at which f is another."""
    data, options = tmp_path / "d", ("-g", "1e-5", "-c", "10")
    draw = np.random.default_rng(3)
    values = (1_700_000_000 + 100 * draw.permutation(40) + draw.integers(-45, 45, 40)).tolist()
    data.write_text("".join(f"{1 if v % 300 < 150 else -1} 1:{v}\n" for v in values))
    assert svm_train.main(["-q", *options, str(data), str(tmp_path / "m")]) == 0
    optimum = strict_json(svmkit("train", "--json", "-e", "1e-6", *options, data, tmp_path / "best").stdout)
    found = strict_json(svmkit("eval", "--json", "--certificate", "-c", "10", data, tmp_path / "m").stdout)
    assert found["primal"] == pytest.approx(primal_objective(tmp_path / "m", data, C=10.0), rel=1e-8)  # K is, so far from 0
    assert found["primal"] > 1.01 * optimum["primal"]  # so it matters
    assert found["dual"] == pytest.approx(optimum["dual"], rel=1e-3)
    assert found["violation"] < 1.1e-3


def test_of_equal_rows_the_heavier_has_the_larger_coefficient(tmp_path: Path) -> None:
    data = tmp_path / "d"
    data.write_text("1 cost:0.1 1:1\n1 cost:5 1:1\n-1 1:-1\n1 cost:.3 1:1 2:.5\n1 cost:.01 1:1 2:.5\n1 cost:9 1:1 2:.5\n")
    trained = strict_json(svmkit("train", "--json", data, tmp_path / "m").stdout)
    found = strict_json(svmkit("eval", "--json", "--certificate", data, tmp_path / "m").stdout)
    for key in KEYS:
        assert found[key] == pytest.approx(trained[key], rel=1e-9, abs=1e-9)


def test_a_weight_of_a_label_that_is_not_there_is_told(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d")
    svmkit("train", "-q", data, tmp_path / "m")
    said = svmkit("eval", "-q", "--certificate", "-w9", "2", data, tmp_path / "m").stderr
    assert said == "svmkit: warning: class label 9 specified in weight is not found\n"


@pytest.mark.parametrize("n", [10, 11])
def test_data_of_more_classes_than_the_models_are_refused(n: int, tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d")
    svmkit("train", "-q", data, tmp_path / "m")
    data.write_text(data.read_text() + "".join(f"{label} 1:1\n" for label in range(2, n)))
    done = svmkit("eval", "--certificate", data, tmp_path / "m")
    assert done.returncode == 1
    own = ", ".join(map(str, [-1, *range(1, 10)])) + (" …" if n > 10 else "")
    assert f"its labels are {own}, the model's -1, 1" in done.stderr.replace("\n", " ")


def test_a_serial_that_no_column_belongs_to_is_refused(tmp_path: Path) -> None:
    """A certificate asks for K_ii of every row, not of support vectors alone."""
    (tmp_path / "d").write_text("1 0:1 1:2 2:0 3:0\n-1 0:2 1:0 2:2 3:0\n1 0:3 1:0 2:0 3:2\n")
    svmkit("train", "-q", "-t", "4", tmp_path / "d", tmp_path / "m")
    for serial in ("0", "9"):
        (tmp_path / "e").write_text(f"1 0:1 1:2 2:0 3:0\n-1 0:2 1:0 2:2 3:0\n1 0:{serial} 1:0 2:0 3:2\n")
        done = svmkit("eval", "--certificate", tmp_path / "e", tmp_path / "m")
        assert (done.returncode, done.stdout) == (1, "")
        assert "sample_serial_number" in done.stderr


def test_without_certificate_there_is_none(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d")
    svmkit("train", "-q", data, tmp_path / "m")
    assert not strict_json(svmkit("eval", "--json", data, tmp_path / "m").stdout).keys() & set(KEYS)


def test_the_table_for_people_says_the_same(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d")
    svmkit("train", "-q", data, tmp_path / "m")
    report = strict_json(svmkit("eval", "--json", "--certificate", data, tmp_path / "m").stdout)
    text = svmkit("eval", "--certificate", data, tmp_path / "m").stdout
    rows = {line.rsplit(maxsplit=1)[0].strip(): line.split()[-1] for line in text.splitlines() if line.strip()}
    assert rows["examples"] == "60"
    for key in ("primal", "dual"):
        assert float(rows[key]) == pytest.approx(report[key], rel=1e-6)
    assert f"{100 * report['accuracy']:.4g} %" in text
    assert not any(name.startswith("other") for name in rows)  # all labels are the model's own


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--certificate", "other", "m"], 1, "support vector 1"),
        (["--certificate", "relabelled", "m"], 1, "labels"),
        (["--certificate", "--no-bias", "d", "m"], 1, "rho"),
        (["--certificate", "d", "regression"], 1, "epsilon_svr"),
        (["--certificate", "-c", "-1", "d", "m"], 2, "-c: C -1"),
        (["-c", "1", "d", "m"], 2, "-c goes with --certificate"),
        (["-c", "1", "--lambda", "1", "d", "m"], 2, "--lambda"),
        (["empty", "m"], 1, "empty"),
        (["d", "nosuch"], 1, "nosuch"),
    ],
)
def test_refusals(args: list[str], code: int, words: str, tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d")
    write_blobs(tmp_path / "other", seed=4)
    write_blobs(tmp_path / "relabelled", classes=(1, 2))
    (tmp_path / "regression").write_text("svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\nSV\n1 1:1\n")
    (tmp_path / "empty").write_text("")
    svmkit("train", "-q", data, tmp_path / "m")
    done = svmkit("eval", *args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


def test_regression(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("svm_type nu_svr\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\nSV\n2 1:1\n")
    (tmp_path / "d").write_text("2 1:1\n4 1:2\n7 1:3\n")
    report = strict_json(svmkit("eval", "--json", tmp_path / "d", tmp_path / "m").stdout)
    assert report == {"n": 3, "mse": pytest.approx(1 / 3), "squared_correlation": pytest.approx(0.98684, abs=1e-5)}
    assert "squared correlation" in svmkit("eval", tmp_path / "d", tmp_path / "m").stdout


def test_one_class(tmp_path: Path) -> None:
    """Inside is 1: f = x − 2 > 0."""
    (tmp_path / "m").write_text("svm_type one_class\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 2\nSV\n1 1:1\n")
    (tmp_path / "d").write_text("1 1:3\n1 1:5\n1 1:1\n-1 1:1.5\n-1 1:2.5\n")
    found = strict_json(svmkit("eval", "--json", tmp_path / "d", tmp_path / "m").stdout)
    assert (found["labels"], found["confusion"], found["other"]) == ([1, -1], [[2, 1], [1, 1]], [0, 0])
    assert (found["accuracy"], found["auc"]) == (3 / 5, pytest.approx(4 / 6))
    (tmp_path / "e").write_text("1 1:3\n1 1:5\n2 1:4\n")
    found = strict_json(svmkit("eval", "--json", tmp_path / "e", tmp_path / "m").stdout)
    assert (found["confusion"], found["other"], found["auc"]) == ([[2, 0], [0, 0]], [1, 0], 0.5)  # 1 against all others


@pytest.mark.parametrize("args", [["-c", "1"], ["--lambda", "1"], ["-w1", "2"], ["--bias", "none"], ["--no-bias"]])
def test_what_only_a_certificate_needs_is_refused_without_one(args: list[str], tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d")
    svmkit("train", "-q", data, tmp_path / "m")
    done = svmkit("eval", *args, data, tmp_path / "m")
    assert (done.returncode, done.stdout) == (2, "")
    assert "goes with --certificate" in done.stderr


def test_a_label_is_the_class_before_its_point_as_in_training(tmp_path: Path) -> None:
    whole = write_blobs(tmp_path / "d")
    lines = [line.split(maxsplit=1) for line in whole.read_text().splitlines()]
    (tmp_path / "cut").write_text("".join(f"{label}.75 {pairs}\n" for label, pairs in lines))
    assert svmkit("train", "-q", whole, tmp_path / "m").returncode == 0
    scores = [svmkit("eval", "--json", data, tmp_path / "m").stdout for data in (whole, tmp_path / "cut")]
    assert scores[0] == scores[1]
