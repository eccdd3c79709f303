"""What cross-validation asks of its folds, and what it tells of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from svmkit import folds as folds_module
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Rows
from svmkit.errors import DataError
from svmkit.folds import Folds, cross_validate
from svmkit.trace import Progress, Status


def pairs_of_rows(n: int) -> tuple[Dataset, Folds]:
    """Rows of two classes in turn, and a fold for every two of them."""
    rows = Rows.from_dense(np.random.default_rng(0).normal(size=(n, 3)))
    return Dataset(rows, np.where(np.arange(n) % 2, 1.0, -1.0)), Folds(np.arange(n), np.arange(0, n + 1, 2))


@pytest.mark.parametrize(("every_fold", "times"), [(False, 1), (True, 4)])
def test_a_weight_of_a_label_that_is_not_there_is_told_once_or_as_svm_train_does_of_each_fold(
    every_fold: bool, times: int
) -> None:
    dataset, split = pairs_of_rows(8)
    said: list[str] = []
    cross_validate(dataset, TrainConfig(class_weight=((7, 2.0),)), split, every_fold=every_fold, on_warning=said.append)
    assert said == ["WARNING: class label 7 specified in weight is not found"] * times


@pytest.mark.usefixtures("two_threads")
def test_a_fold_that_is_being_trained_is_ended_where_one_before_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, split = pairs_of_rows(4)
    running = threading.Event()
    ended: list[bool] = []

    def fit(training: Dataset, config: TrainConfig, *, interrupted: Callable[[], bool], **more: Any) -> Any:
        if training.rows.data.tobytes() == dataset.take(np.array([2, 3])).rows.data.tobytes():  # that of fold 0
            assert running.wait(10)
            raise DataError("fold 0")
        running.set()
        until = time.monotonic() + 10
        while not interrupted() and time.monotonic() < until:
            time.sleep(0.001)
        ended.append(interrupted())
        raise DataError("fold 1")

    monkeypatch.setattr(folds_module, "fit", fit)
    monkeypatch.setattr(folds_module, "side_by_side", lambda *args: True)
    with pytest.raises(DataError, match="fold 0"):
        cross_validate(dataset, TrainConfig(), split)
    assert ended == [True]


def test_seconds_of_a_fold_are_told_behind_those_that_the_folds_before_it_were_trained_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset, split = pairs_of_rows(6)
    heard: list[float] = []

    def fit(training: Dataset, config: TrainConfig, *, on_progress: Callable[..., None], **more: Any) -> Any:
        on_progress(1.0, Progress(1, 1))
        on_progress(2.5, Progress(2, 2))
        return SimpleNamespace(model=SimpleNamespace(n_support=0), status=Status.CONVERGED, seconds=3.0)

    monkeypatch.setattr(folds_module, "small_folds", lambda *args: None)
    monkeypatch.setattr(folds_module, "fit", fit)
    monkeypatch.setattr(folds_module, "answers", lambda model, rows: np.zeros(rows.n))
    cross_validate(dataset, TrainConfig(), split, on_progress=lambda seconds, progress: heard.append(seconds))
    assert heard == [1.0, 2.5, 4.0, 5.5, 7.0, 8.5]
