"""``svmkit approx --model`` from the outside: a smaller model file, what it says of it, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from data_files import write_dataset
from shell import strict_json, svmkit, write_blobs
from zoo import points

from svmkit.compress import compress
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Rows
from svmkit.fit import fit
from svmkit.io.libsvm_data import read_dataset
from svmkit.io.model_libsvm import model_text, read_model, write_model
from svmkit.model import decision_values, predict


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model ``m`` of three classes and its data ``d``."""
    X, _ = points(200, 4, seed=1)
    dataset = Dataset(Rows.from_dense(X), np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.4]).astype(np.float64))
    write_dataset(tmp_path / "d", dataset)
    write_model(str(tmp_path / "m"), fit(dataset, TrainConfig(C=5.0, gamma=0.3)).model)
    return tmp_path


@pytest.mark.parametrize("on_data", [False, True])
def test_the_report_is_what_the_files_say(on_data: bool, folder: Path) -> None:
    more = ("--data", folder / "d") if on_data else ()
    done = svmkit("approx", "--model", folder / "m", "--basis", "20", *more, "--json", "-q", folder / "s")
    assert (done.returncode, done.stderr) == (0, "")
    report = strict_json(done.stdout)
    big, small = read_model(str(folder / "m")), read_model(str(folder / "s"))
    dataset = read_dataset(str(folder / "d"))
    rows = dataset.rows if on_data else big.rows
    assert model_text(small) == model_text(compress(big, 20, data=rows if on_data else None))
    f, g = decision_values(big, rows), decision_values(small, rows)
    assert report["basis_vectors"] == [big.n_support, 20]
    assert report["bytes"] == [(folder / "m").stat().st_size, (folder / "s").stat().st_size]
    assert report["rows"] == rows.n
    assert report["largest_change"] == pytest.approx(np.abs(f - g).max(), rel=1e-6)
    assert report["mean_change"] == pytest.approx(np.abs(f - g).mean(), rel=1e-6)
    assert report["flipped_labels"] == np.count_nonzero(predict(big, f) != predict(small, g))
    assert min(report["predict_seconds"]) > 0
    if on_data:
        assert report["errors"] == [int((predict(m, d) != dataset.y).sum()) for m, d in ((big, f), (small, g))]
    else:
        assert "errors" not in report


def test_people_are_told_on_standard_error(folder: Path) -> None:
    done = svmkit("approx", "--model", folder / "m", "--basis", "10", "--data", folder / "d", folder / "s")
    assert (done.returncode, done.stdout) == (0, "")
    for word in ("basis vectors", "200 rows of DATA", "labels flip", "labels wrong there"):
        assert word in done.stderr


def test_one_is_told_as_one(folder: Path) -> None:
    (folder / "one").write_text("1 1:1\n")
    done = svmkit("approx", "--model", folder / "m", "--basis", "3", "--data", folder / "one", folder / "s")
    assert "on the 1 row of DATA" in done.stderr
    mapped = svmkit("approx", "--map", "nystroem", "-g", "1", folder / "one", folder / "mapped")
    assert mapped.stderr == "svmkit: 1 example of 1 feature written\n"


def test_a_regression_has_no_labels_to_flip(folder: Path) -> None:
    rows = "".join(f"{k % 3 - 0.9} 1:{k} 2:{k % 7}\n" for k in range(30))
    (folder / "r").write_text(f"svm_type epsilon_svr\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 30\nrho 0.5\nSV\n{rows}")
    call = ("approx", "--model", folder / "r", "--basis", "10", "--data", folder / "d")
    report = strict_json(svmkit(*call, "--json", "-q", folder / "s").stdout)
    dataset = read_dataset(str(folder / "d"))
    off = [predict(m, decision_values(m, dataset.rows)) - dataset.y for m in (read_model(str(folder / n)) for n in "rs")]
    assert report["mse"] == pytest.approx([float(np.mean(each**2)) for each in off])
    assert (report["flipped_labels"], "errors" in report) == (None, False)
    told = svmkit(*call, folder / "s").stderr
    assert "mean squared error there" in told
    assert "flip" not in told
    without_data = strict_json(svmkit(*call[:-2], "--json", "-q", folder / "s").stdout)
    assert not without_data.keys() & {"errors", "mse"}


def test_a_one_class_model_has_labels_to_flip_and_none_to_get_wrong(folder: Path) -> None:
    rows = "".join(f"1 1:{k} 2:{k % 7}\n" for k in range(30))
    (folder / "o").write_text(f"svm_type one_class\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 30\nrho 1.2\nSV\n{rows}")
    call = ("approx", "--model", folder / "o", "--basis", "10", "--data", folder / "d", "--json", "-q", folder / "s")
    report = strict_json(svmkit(*call).stdout)
    assert isinstance(report["flipped_labels"], int)
    assert not report.keys() & {"errors", "mse"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["s"], "--basis N"),
        (["--basis", "5"], "--model: name the file to write"),
        (["--basis", "5", "s", "t"], "--data FILE"),
        (["--basis", "5", "-g", "2", "s"], "-g beside --model"),
        (["--basis", "5", "--dim", "2", "s"], "--dim beside --model"),
        (["--basis", "5", "--save", "x", "s"], "--save goes with --map"),
        (["--basis", "5", "--json", "-"], "--json"),
        (["--basis", "2", "s"], "3 classes"),
        (["--basis", "5", "--report", "s"], "one of them"),
    ],
)
def test_what_makes_no_sense_is_refused(given: list[str], reason: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = svmkit("approx", "--model", "m", *given)
    assert done.returncode != 0
    assert reason in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["d", "m"]


def test_model_and_data_cannot_both_be_standard_input(tmp_path: Path) -> None:
    done = svmkit("approx", "--model", "-", "--data", "-", "--basis", "5", "s", cwd=tmp_path)
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "cannot both be standard input" in done.stderr


def test_basis_and_data_go_with_a_model(folder: Path) -> None:
    done = svmkit("approx", "--map", "fourier", "--basis", "5", folder / "d", folder / "out")
    assert done.returncode != 0
    assert "--basis goes with --model" in done.stderr


def test_the_seed_draws_the_vectors(tmp_path: Path) -> None:
    write_blobs(tmp_path / "d", n=200)
    svmkit("train", "-q", "-t", "1", "-r", "1", "-c", "0.1", "d", "m", cwd=tmp_path)
    made = set()
    for seed in range(3):
        svmkit("approx", "-q", "--model", "m", "--basis", "3", "--seed", seed, "small", cwd=tmp_path)
        made.add((tmp_path / "small").read_bytes())
    assert len(made) > 1
