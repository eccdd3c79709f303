"""``svmkit train -v``: what is asked for reaches every fold, and what is reported of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from shell import strict_json, svmkit, write_blobs

from svmkit import folds
from svmkit.cli import progress
from svmkit.config import TrainConfig


def uneven(path: Path) -> Path:
    path.write_text("".join(f"{1 if i < 10 else 2} 1:{i % 7} 2:{i % 3}\n" for i in range(40)))
    return path


def test_balanced_weights_hold_in_cross_validation_too(tmp_path: Path) -> None:
    ask = ("train", "-q", "-v", "4", uneven(tmp_path / "d"))
    balanced = svmkit(*ask, "--class-weight", "balanced").stdout
    assert balanced == svmkit(*ask, "-w1", 2, "-w2", repr(40 / 60)).stdout != svmkit(*ask).stdout


def test_weights_of_labels_that_only_a_fold_lacks_are_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("1 1:1\n2 1:2\n3 1:3\n")
    assert "in weight" not in svmkit("train", "-v", 3, "--class-weight", "balanced", tmp_path / "d").stderr
    assert (
        svmkit("train", "-v", 3, "-w5", 2, tmp_path / "d").stderr.count("class label 5 specified in weight is not found") == 1
    )


def test_a_class_weight_of_examples_that_take_no_part_is_told_of_once(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("1 1:1\n2 1:2\n" * 4 + "5 cost:0 1:3\n" * 2)
    for how in ((), ("-v", 3)):
        said = svmkit("train", *how, "-w5", 2, tmp_path / "d", cwd=tmp_path).stderr
        assert said.count("class label 5 specified in weight is not found") == 1


def test_a_fold_without_weights_predicts_nothing(tmp_path: Path) -> None:
    rows = ["1 cost:1 1:1", "-1 cost:1 1:2", "1 cost:0 1:3", "-1 cost:0 1:1", "1 cost:0 1:2", "-1 cost:0 1:4"]
    (tmp_path / "d").write_text("\n".join(rows) + "\n")
    for seed in range(4):
        assert svmkit("train", "-q", "-v", 2, "--seed", seed, tmp_path / "d").returncode == 0


def test_weights_that_are_given_multiply_balanced_ones(tmp_path: Path) -> None:
    ask = ("train", "-q", uneven(tmp_path / "d"), "-")
    both = svmkit(*ask, "--class-weight", "balanced", "-w1", 3).stdout
    assert both == svmkit(*ask, "-w1", 6, "-w2", repr(40 / 60)).stdout


def test_the_seed_draws_the_folds(tmp_path: Path) -> None:
    ask = ("train", "-q", "-v", "3", write_blobs(tmp_path / "d"))
    assert len({svmkit(*ask, "--seed", seed).stdout for seed in range(8)}) > 1
    assert svmkit(*ask).stdout == svmkit("svm-train", "-q", "-v", "3", ask[-1]).stdout


def test_folds_share_the_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float | None] = []
    whole = folds.cross_validate

    def noted(dataset: Any, config: TrainConfig, *rest: Any, **more: Any) -> Any:
        seen.append(config.time_limit_s)
        return whole(dataset, config, *rest, **more)

    monkeypatch.setattr(folds, "cross_validate", noted)
    assert svmkit("train", "-v", "5", "--time-limit", "100", write_blobs(tmp_path / "d")).returncode == 0
    assert seen == [20.0]


def test_time_left_is_that_of_all_folds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PLAIN_EVERY_S", 0.0)
    said = svmkit("train", "-v", "5", "--time-limit", "10000", write_blobs(tmp_path / "d")).stderr
    left = [int(seconds) for seconds in re.findall(r"at most (\d+) s left", said)]
    assert len(left) >= 5
    assert min(left) > 9000


def test_seeds_beyond_those_of_svm_trains_generator_go_round(tmp_path: Path) -> None:
    """With RAND_MAX it would draw nothing but zeros."""
    ask = ("train", "-q", "-v", "3", write_blobs(tmp_path / "d", n=90))
    said = [svmkit(*ask, "--seed", seed).stdout for seed in (0, 1, 2**31 - 2, 2**31 - 1)]
    assert said[2:] == said[:2] != said[1::-1]


def test_cross_validation_prints_its_accuracy(data: Path, tmp_path: Path) -> None:
    done = svmkit("train", "-v", "5", data, cwd=tmp_path)
    assert done.returncode == 0
    assert not (tmp_path / "blobs.model").exists()
    percent = float(done.stdout.removeprefix("Cross Validation Accuracy = ").removesuffix("%\n"))
    report = strict_json(svmkit("train", "-v", "5", "--json", data).stdout)
    assert report["accuracy"] * 100 == pytest.approx(percent, rel=1e-5)
    wrong = round(60 * (1 - report["accuracy"]))
    assert report == {"folds": 5, "n": 60, "accuracy": (60 - wrong) / 60, "error": wrong / 60, "unfinished": 0}
    assert (
        svmkit("train", "-v", "5", "--json", "--seed", "5", data).stdout
        == svmkit("train", "-v", "5", "--json", "--seed", "5", "-j", "1", data).stdout
    )


def test_cross_validation_says_which_folds_are_unfinished(tmp_path: Path) -> None:
    data = write_blobs(tmp_path / "d", n=300)
    limit = ["train", "-v", "3", "--solver", "pair", "--max-iter", "2", data]
    loose, strict = svmkit(*limit), svmkit(*limit, "--strict")
    assert (loose.returncode, strict.returncode) == (0, 3)
    assert loose.stderr.splitlines()[-1] == "svmkit: warning: in 3 of 3 folds training stopped before the tolerance (MAX_ITER)"
    assert strict_json(svmkit(*limit, "--json").stdout)["unfinished"] == 3


def test_labels_between_classes_are_those_of_the_class_that_they_train(tmp_path: Path) -> None:
    """By svm-train's rule a label of 1.5 trains class 1 and is never equal to it."""
    data = write_blobs(tmp_path / "d")
    (tmp_path / "cut").write_text(data.read_text().replace("\n1 ", "\n1.5 "))
    assert svmkit("train", "-v", "2", tmp_path / "cut").stdout == svmkit("train", "-v", "2", data).stdout
    theirs = svmkit("svm-train", "-q", "-v", "2", tmp_path / "cut").stdout
    assert theirs != svmkit("svm-train", "-q", "-v", "2", data).stdout
