"""``--holdout``: what is set aside, and what is said of it."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shell import strict_json, svmkit, write_blobs

from svmkit import parallel
from svmkit.cli.files import set_aside
from svmkit.cli.progress import Reporter
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Rows
from svmkit.io.libsvm_data import read_dataset
from svmkit.io.model_libsvm import read_model
from svmkit.model import decision_values, predict


@pytest.mark.parametrize(("share", "n"), [("0.3", 4), ("0.2", 2), ("0.1", 1)])
def test_a_fraction_is_rounded_to_the_nearest_number(share: str, n: int) -> None:
    dataset = Dataset(Rows.from_dense(np.ones((12, 1))), np.arange(12.0))
    held_out = set_aside(dataset, share, TrainConfig(), Reporter(quiet=True))[1]
    assert held_out is not None
    assert held_out.n == n


@pytest.mark.parametrize("share", ["0.04", "0.96"])
def test_a_fraction_that_leaves_nothing_on_one_side_is_refused(share: str, tmp_path: Path) -> None:
    """0.48 of 12 examples, which is none, and 11.52, which is all."""
    done = svmkit("train", "--holdout", share, write_blobs(tmp_path / "d", n=12), tmp_path / "m")
    assert (done.returncode, done.stderr) == (2, f"svmkit: --holdout {share}: 12 examples leave nothing on one side\n")


@pytest.mark.parametrize("share", ["0", "1", "-0.5", "nan"])
def test_what_is_no_fraction_is_refused(share: str, tmp_path: Path) -> None:
    done = svmkit("train", "--holdout", share, write_blobs(tmp_path / "d", n=12), tmp_path / "m")
    said = f"svmkit: --holdout {share}: a fraction lies between 0 and 1 (and there is no file of that name)\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_a_file_that_bears_the_name_of_a_fraction_is_held_out(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d")
    write_blobs(tmp_path / "0.25", n=37, seed=3)
    found = strict_json(svmkit("train", "--json", "--holdout", "0.25", data, tmp_path / "m", cwd=tmp_path).stdout)
    assert found["holdout_n"] == 37


def test_held_out_labels_that_are_not_trained_on_are_told(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d", classes=(1, -1))
    (tmp_path / "other").write_text(data.read_text().replace("-1 ", "0 ", 5))
    done = svmkit("train", "-q", "--holdout", tmp_path / "other", data, tmp_path / "m")
    assert done.returncode == 0
    assert "other: 5 of 60 labels, such as 0, are none of those trained on; they count as errors" in done.stderr


def test_labels_of_weight_0_alone_are_none_of_those_trained_on(tmp_path: Path) -> None:
    data, other = tmp_path / "d", tmp_path / "other"
    data.write_text("3 cost:0 1:1\n1 1:2\n-1 1:1\n")
    other.write_text("3 1:3\n1 1:4\n")
    done = svmkit("train", "-q", "--holdout", other, data, tmp_path / "m")
    assert "other: 1 of 2 labels, such as 3, are none of those trained on; they count as errors" in done.stderr


def test_labels_that_are_one_class_for_training_are_no_strangers(tmp_path: Path) -> None:
    """1.5 is 1 where it is trained on, and where it is held out."""
    whole = write_blobs(tmp_path / "whole", classes=(1, -1))
    (tmp_path / "cut").write_text(re.sub(r"(?m)^(-?1) ", r"\1.5 ", whole.read_text()))
    for data, other in (("whole", "cut"), ("cut", "whole")):
        done = svmkit("train", "-q", "--holdout", other, data, "m", cwd=tmp_path)
        assert (done.returncode, "trained on" in done.stderr) == (0, False)


def test_labels_with_fractions_are_judged_as_they_are_trained_on(tmp_path: Path) -> None:
    whole = write_blobs(tmp_path / "whole", classes=(1, -1))
    (tmp_path / "cut").write_text(re.sub(r"(?m)^(-?1) ", r"\1.5 ", whole.read_text()))
    told = []
    for data in ("whole", "cut"):
        trained = svmkit("train", "--json", "--holdout", data, data, "m", cwd=tmp_path)
        crossed, judged = (svmkit(*command, cwd=tmp_path).stdout for command in (("train", "-v", 3, data), ("eval", data, "m")))
        predicted = svmkit("predict", data, "m", os.devnull, cwd=tmp_path).stderr
        told.append((strict_json(trained.stdout)["holdout_error"], crossed, judged, predicted))
    assert told[0] == told[1]


def test_held_out_labels_are_cut_to_integers_as_training_s_are(tmp_path: Path) -> None:
    """In the report as in the trace."""
    data, trace = tmp_path / "d", tmp_path / "trace"
    data.write_text("".join(f"{1.5 if i % 2 else -3.2} 1:{i % 2} 2:{i % 5}\n" for i in range(40)))
    done = svmkit("train", "-t", "0", "--json", "--trace", trace, "--holdout", data, data, tmp_path / "m")
    assert strict_json(done.stdout)["holdout_error"] == 0
    assert strict_json(trace.read_text().splitlines()[-1])["holdout_error"] == 0


def test_holdout_file_is_scored(data: Path, tmp_path: Path) -> None:
    other = write_blobs(tmp_path / "other", n=37, seed=3)
    report = strict_json(svmkit("train", "--json", "--holdout", other, data, tmp_path / "m").stdout)
    held_out, model = read_dataset(str(other)), read_model(str(tmp_path / "m"))
    wrong = predict(model, decision_values(model, held_out.rows)) != held_out.y
    assert (report["holdout_n"], report["holdout_error"]) == (37, pytest.approx(wrong.mean()))


def test_holdout_fraction_is_not_trained_on(data: Path, tmp_path: Path) -> None:
    first, second, other = (
        strict_json(svmkit("train", "--json", "--holdout", "0.25", "--seed", seed, data, tmp_path / "m").stdout)
        for seed in (1, 1, 2)
    )
    assert first["holdout_n"] == 15
    assert first["primal"] == second["primal"] != other["primal"]


def test_a_fraction_is_the_same_examples_everywhere() -> None:
    """Whatever NumPy's version, whose own generators promise no stream."""
    dataset = Dataset(Rows.from_dense(np.ones((12, 1))), np.arange(12.0))
    training, held_out = set_aside(dataset, "0.25", TrainConfig(seed=3), Reporter(quiet=True))
    assert held_out is not None
    assert held_out.y.tolist() == [0, 8, 9]
    assert training.y.tolist() == [1, 2, 3, 4, 5, 6, 7, 10, 11]


def test_a_model_may_bear_the_name_of_the_fraction(data: Path, tmp_path: Path) -> None:
    for name in ("m", "0.25"):  # in this order: a file of that name would be held out
        assert svmkit("train", "--holdout", "0.25", data, name, cwd=tmp_path).returncode == 0
    assert (tmp_path / "0.25").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize("mode", [[], ["--stream", "--solver", "lasvm", "-g", "1"]])
def test_a_held_out_error_that_takes_long_is_given_up_at_a_signal(
    mode: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after a second of it; the model is written already."""

    def slow(*_: Any) -> Any:
        time.sleep(1.2)
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(100):
            time.sleep(0.1)
            parallel.stay()
        return np.ones(60)

    monkeypatch.setattr("svmkit.model.answers", slow)
    data, began = write_blobs(tmp_path / "d"), time.monotonic()
    done = svmkit("train", "--json", *mode, "--holdout", data, data, tmp_path / "m")
    assert time.monotonic() - began < 8
    assert done.returncode == 130
    assert strict_json(done.stdout)["holdout_error"] is None
    assert "/m written; no held-out error (it would have taken long)\n" in done.stderr
    assert (tmp_path / "m").exists()
