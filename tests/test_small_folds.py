"""Small folds trained together: answers and what is heard are those of each alone, and what cannot be so is left to fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from zoo import classes, precomputed

from svmkit import folds as folds_module
from svmkit import parallel, schedule, small_folds
from svmkit.cli.compat.training_text import TrainingText
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Rows
from svmkit.errors import DataError, UsageError
from svmkit.folds import Folds, cross_validate, folds
from svmkit.solvers import smo_together
from svmkit.trace import Status

pytestmark = pytest.mark.usefixtures("two_threads")

CONFIG = TrainConfig(C=4.0, gamma=0.3)
TWO, THREE = classes([40, 50]), classes([20, 30, 25], spread=1.5)
Outcome = tuple[list[float], list[Any], str]


def split_of(data: Dataset, k: int) -> Folds:
    """Into k folds."""
    return folds(data.y, k, np.random.default_rng(2).integers(2**31, size=2 * data.n).tolist().__iter__().__next__)


def outcome(data: Dataset, config: TrainConfig, split: Folds, capfd: pytest.CaptureFixture[str], **more: Any) -> Outcome:
    """The answers; of each fold its status and number of support vectors; and all that svm-train says."""
    text, heard = TrainingText(False, 20, config), list[Any]()

    def on_fold(status: Status, n_support: int) -> None:
        heard.append((status, n_support))
        text.fitted(n_support)

    listeners: dict[str, Any] = {"on_progress": text.progress, "on_machines": text.machines, "on_fold": on_fold}
    answers = cross_validate(data, config, split, on_warning=text.warning, **listeners, **more)
    out = capfd.readouterr()
    return answers.tolist(), heard, out.out + out.err


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes folds be trained each by itself."""
    return lambda: monkeypatch.setattr(folds_module, "small_folds", lambda *args: None)


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many examples each fold has that is trained by itself."""
    fit, sizes = folds_module.fit, list[int]()

    def noted(training: Dataset, *args: Any, **more: Any) -> Any:
        sizes.append(training.n)
        return fit(training, *args, **more)

    monkeypatch.setattr(folds_module, "fit", noted)
    return sizes


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many folds each call has done."""
    train, done = small_folds.SmallFolds.train, list[int]()

    def noted(self: Any, numbers: list[int]) -> Any:
        found = train(self, numbers)
        done.append(len(found))
        return found

    monkeypatch.setattr(small_folds.SmallFolds, "train", noted)
    return done


def weighted(data: Dataset) -> Dataset:
    """Every seventh example has no weight, the others from a half to two."""
    weight = np.linspace(0.5, 2.0, data.n)
    weight[::7] = 0.0
    return replace(data, weight=weight)


def gram_of(data: Dataset) -> Dataset:
    """The same with a linear kernel that is computed before."""
    X = data.rows.to_dense()
    return Dataset(precomputed(X @ X.T, data.y, 1.0).rows, data.y)


CASES: dict[str, tuple[Dataset, TrainConfig]] = {
    "two classes": (TWO, CONFIG),
    "three": (THREE, CONFIG),
    "against the rest": (THREE, replace(CONFIG, multiclass="ovr")),
    "without a bias": (THREE, replace(CONFIG, bias="none")),
    "linear": (THREE, replace(CONFIG, kernel="linear", C=0.1)),
    "polynomial": (THREE, replace(CONFIG, kernel="polynomial", gamma=0.2, coef0=1.0, degree=2)),
    "sigmoid": (TWO, replace(CONFIG, kernel="sigmoid", gamma=0.01)),
    "lambda": (TWO, replace(CONFIG, lam=0.01)),
    "weights": (weighted(THREE), replace(CONFIG, class_weight=((1, 0.3), (7, 2.0)))),
    "gamma of the file": (replace(TWO, rows=TWO.rows._replace(n_features=50)), replace(CONFIG, gamma=0.0)),
    "precomputed": (gram_of(TWO), replace(CONFIG, kernel="precomputed", C=0.1)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("every_fold", [True, False])
@pytest.mark.parametrize("k", [5, None], ids=["five", "leave one out"])
def test_answers_and_text_are_those_of_each_fold_alone(
    case: str,
    every_fold: bool,
    k: int | None,
    fitted: list[int],
    apart: Callable[[], None],
    capfd: pytest.CaptureFixture[str],
) -> None:
    data, config = CASES[case]
    split = split_of(data, k or data.n)
    together = outcome(data, config, split, capfd, every_fold=every_fold)
    assert len(fitted) <= len(together[1]) // 4
    apart()
    alone = outcome(data, config, split, capfd, every_fold=every_fold)
    assert len(fitted) >= len(alone[1]) == len(split.starts) - 1
    assert together == alone


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_neither_threads_nor_company_make_a_difference(
    n_threads: int, fitted: list[int], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    split = split_of(THREE, THREE.n)
    expected = outcome(THREE, CONFIG, split, capfd)
    parallel.use_threads(n_threads)
    monkeypatch.setattr(smo_together, "_MOST_WORK", 40_000)  # a call ends after a few machines, in the midst of a fold
    assert outcome(THREE, CONFIG, split, capfd) == expected
    assert len(fitted) < THREE.n // 2


@pytest.mark.parametrize(("data", "max_iter"), [(TWO, 40), (THREE, 100)], ids=["one machine", "three"])
def test_folds_that_do_not_converge_are_trained_by_themselves(
    data: Dataset, max_iter: int, fitted: list[int], apart: Callable[[], None], capfd: pytest.CaptureFixture[str]
) -> None:
    """Of three machines of a fold most converge here, and one does not."""
    config, split = replace(CONFIG, max_iter=max_iter), split_of(data, data.n)
    together = outcome(data, config, split, capfd)
    assert 0 < len(fitted) <= data.n
    fitted.clear()
    apart()
    assert outcome(data, config, split, capfd) == together
    assert {status for status, _ in together[1]} >= {Status.MAX_ITER}


def test_a_fold_of_one_class_is_left_to_fit_which_warns(
    fitted: list[int], apart: Callable[[], None], capfd: pytest.CaptureFixture[str]
) -> None:
    data = classes([12, 1])
    split = split_of(data, data.n)
    together = outcome(data, CONFIG, split, capfd)
    assert fitted == [data.n - 1]
    assert "only one class" in together[2]
    apart()
    assert outcome(data, CONFIG, split, capfd) == together


def test_a_fold_of_two_classes_of_three_is_one_machine(
    fitted: list[int], apart: Callable[[], None], capfd: pytest.CaptureFixture[str]
) -> None:
    data, config = classes([12, 10, 1]), replace(CONFIG, multiclass="ovr")
    split = split_of(data, data.n)
    together = outcome(data, config, split, capfd)
    assert fitted == []
    apart()
    assert outcome(data, config, split, capfd) == together


def test_where_none_of_a_call_converges_the_rest_of_its_job_is_not_tried(
    fitted: list[int], calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    parallel.use_threads(1)
    monkeypatch.setattr(smo_together, "_MOST_WORK", 400)
    cross_validate(TWO, replace(CONFIG, max_iter=1), split_of(TWO, TWO.n))
    assert len(fitted) == TWO.n > sum(calls)
    small = small_folds.small_folds(TWO, CONFIG, *split_of(TWO, TWO.n))
    assert small is not None
    assert len(calls) == len(schedule.jobs_of(small.works)) < TWO.n // 4


@pytest.mark.parametrize(("n_class", "multiclass"), [(2, "ovo"), (3, "ovr")])
def test_a_label_that_rounding_may_decide_is_left_to_fit(n_class: int, multiclass: str, fitted: list[int]) -> None:
    """That of a row that lies in the middle of all others, as many of each class and all alike."""
    directions = np.array([[1.0], [-1.0]]) if n_class == 2 else np.eye(3)
    X = np.concatenate([0.0 * directions[:1], *(size * directions for size in (0.7, 1.1, 1.3))])
    data = Dataset(Rows.from_dense(X), np.array([0.0, *np.tile(np.arange(n_class), 3)]))
    config = replace(CONFIG, kernel="linear", multiclass=multiclass)
    for middle in (0, 3):
        order = np.roll(np.arange(data.n), middle)
        answers = cross_validate(data.take(order), config, Folds(np.arange(data.n), np.arange(data.n + 1)))
        assert not np.isnan(answers).any()
        assert fitted == [data.n - 1]
        fitted.clear()


def test_kernel_values_that_overflow_are_left_to_fit(fitted: list[int], apart: Callable[[], None]) -> None:
    """Of a row held out; where it is trained on, machines do not converge."""
    huge = np.where(np.arange(TWO.n) == 7, 1e120, 1.0)
    data = replace(TWO, rows=Rows.from_dense(huge[:, None] * TWO.rows.to_dense()))
    config = replace(CONFIG, kernel="polynomial", gamma=1.0, degree=4, max_iter=1000)
    split = Folds(np.arange(TWO.n), np.array([0, 7, 8, TWO.n]))
    answers = cross_validate(data, config, split)
    assert sorted(fitted) == [8, TWO.n - 7, TWO.n - 1]
    apart()
    assert np.array_equal(answers, cross_validate(data, config, split), equal_nan=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"time_limit_s": 1000.0},
        {"max_evaluations": 10**9},
        {"solver": "sdca"},
        {"map": "nystroem", "dim": 10, "solver": "newton"},
        {"solver_options": (("working_set", "64"),)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_asks_for_each_fold_by_itself_has_it(changes: dict[str, Any], fitted: list[int]) -> None:
    cross_validate(TWO, replace(CONFIG, **changes), split_of(TWO, 6))
    assert sorted(fitted) == [74, 74, 75, 75, 76, 76]


def test_large_data_are_left_to_fit(fitted: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_folds, "MOST_EXAMPLES", TWO.n - 1)
    cross_validate(TWO, CONFIG, split_of(TWO, 6))
    assert len(fitted) == 6


@pytest.mark.parametrize("spoilt", ["label", "value", "weight", "cost"])
def test_folds_that_cannot_be_trained_say_so_as_one_alone(spoilt: str, apart: Callable[[], None]) -> None:
    y, weight, values, C = TWO.y.copy(), np.ones(TWO.n), TWO.rows.data.copy(), 1.0
    split = split_of(TWO, 6)
    at = int(split.order[0])  # the first fold does not see it
    if spoilt == "label":
        y[at] = np.nan
    elif spoilt == "value":
        values[int(TWO.rows.indptr[at])] = 1e200
    elif spoilt == "weight":
        weight[at] = -1.0
    else:
        weight[at], C = 1e60, 1e60
    data = Dataset(TWO.rows._replace(data=values), y, weight)
    said: list[tuple[str, int]] = []
    for prepare in (lambda: None, apart):
        prepare()
        heard: list[Status] = []
        with pytest.raises(DataError) as refused:
            cross_validate(data, replace(CONFIG, C=C), split, on_fold=lambda status, _, heard=heard: heard.append(status))
        said.append((str(refused.value), len(heard)))
    assert said[0] == said[1]
    assert said[0][1] == 1


def test_a_config_that_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="--patience"):
        cross_validate(TWO, replace(CONFIG, patience=2), split_of(TWO, 5))


def test_interruptions_are_heard_between_calls(calls: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    parallel.use_threads(1)
    monkeypatch.setattr(smo_together, "_MOST_WORK", 40_000)
    answers: Floats = cross_validate(TWO, CONFIG, split_of(TWO, TWO.n), interrupted=lambda: len(calls) >= 3)
    assert len(calls) == 3
    assert np.count_nonzero(~np.isnan(answers)) == sum(calls) < TWO.n
