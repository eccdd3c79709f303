"""Learning from a pool: the same course whether labels are asked for or known already, and none asked for in vain."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from zoo import points

from svmkit import active, parallel
from svmkit.active import ActiveResult, Learner, learn_pool
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Rows
from svmkit.errors import DataError, UsageError
from svmkit.fit import fit
from svmkit.io.model_libsvm import write_model
from svmkit.model import Model, answers
from svmkit.solvers import lasvm
from svmkit.trace import ActiveRow, Limits, Progress, Status

LABELS = np.array([3, 8])
CONFIG = TrainConfig(solver="lasvm", C=2.0, gamma=0.4)


def examples(n: int = 400, seed: int = 4) -> tuple[Dataset, Floats]:
    X, y = points(n, 4, seed=seed, noise=0.1)
    labels = np.where(y > 0, 3.0, 8.0)
    return Dataset(Rows.from_dense(X), np.full(n, np.nan)), labels


def learner(config: TrainConfig = CONFIG, n_begin: int = 0) -> tuple[Learner, Floats]:
    pool, labels = examples()
    begin = None
    if n_begin:
        other, known = examples(n_begin, seed=9)
        begin = replace(other, y=known)
    return Learner(config, LABELS, begin, pool), labels


def asking(labels: Floats, asked: list[int]) -> Callable[[int, Callable[[], bool]], int]:
    def ask(row: int, give_up: Callable[[], bool]) -> int:
        asked.append(row)
        return int(labels[row])

    return ask


def course(config: TrainConfig = CONFIG, n_begin: int = 0, **more: Any) -> tuple[ActiveResult, list[int]]:
    asked: list[int] = []
    taught, labels = learner(config, n_begin)
    return learn_pool(taught, more.pop("known", {}), asking(labels, asked), **more), asked


def same(a: Model, b: Model, tmp_path: Any) -> bool:
    write_model(str(tmp_path / "a"), a)
    write_model(str(tmp_path / "b"), b)
    return bool((tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes())


@pytest.mark.parametrize("n_begin", [0, 200])
@pytest.mark.parametrize("selection", ["active", "autoactive", "random"])
def test_every_row_is_asked_for_once(selection: str, n_begin: int) -> None:
    found, asked = course(replace(CONFIG, solver_options=(("selection", selection),)), n_begin)
    assert sorted(asked) == list(range(400))
    assert (found.status, found.last.labels, found.n_asked) == (Status.COMPLETED, 400, 400)


def test_the_time_limit_holds_for_the_work_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(active.Clock, "seconds", lambda self: clock[0])

    def endless() -> Progress:
        clock[0] += 1.0
        return Progress(0, 0)

    monkeypatch.setattr(lasvm, "finish", lambda state, budget: endless())
    found, asked = course(limits=Limits(time_limit_s=5.0), max_labels=20)
    assert (found.status, clock[0], len(asked)) == (Status.TIME_LIMIT, 5.0, 20)


def test_a_signal_during_the_work_at_the_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_often = iter([False] * 30)
    monkeypatch.setattr(lasvm, "finish", lambda state, budget: Progress(0, 0))
    found, _ = course(interrupted=lambda: next(asked_often, True), max_labels=10)
    assert found.status is Status.INTERRUPTED


def test_a_budget_of_kernel_values_that_is_met_is_used_up() -> None:
    seen: list[int] = []
    course(max_labels=30, on_label=lambda progress, labels: seen.append(progress.kernel_evaluations))
    found, asked = course(limits=Limits(max_evaluations=seen[20]))
    assert (found.status, len(asked)) == (Status.MAX_EVALUATIONS, 21)
    assert seen[19] < seen[20]


def test_a_finishing_that_stalls_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasvm, "finish", lambda state, budget: Progress(0, 0, stalled=True))
    assert course(max_labels=10)[0].status is Status.STALLED


@pytest.mark.parametrize("more", [{}, {"eps": 1e-6}, {"seed": 5, "C": 0.3}], ids=str)
def test_the_whole_pool_makes_the_model_that_train_makes_of_known_labels(more: dict[str, Any], tmp_path: Any) -> None:
    """To the byte: the same choices, and what is written of them."""
    config = replace(CONFIG, **more)
    pool, labels = examples()
    known = fit(replace(pool, y=labels), replace(config, solver_options=(("selection", "active"),))).model
    assert known.labels is not None
    found = learn_pool(Learner(config, known.labels, None, pool), {}, asking(labels, []))
    assert same(found.model, known, tmp_path)


def test_a_run_goes_on_where_its_answers_end(tmp_path: Any) -> None:
    whole, asked = course(max_labels=120)
    _, labels = learner()
    known = {row: int(labels[row]) for row in asked[:70]}
    again, rest = course(max_labels=120, known=known)
    assert rest == asked[70:]
    assert same(whole.model, again.model, tmp_path)
    assert (again.last.labels, again.n_asked) == (120, 50)


def test_answers_that_nobody_had_asked_for_do_not_part_a_run_from_the_one_it_goes_on_from(tmp_path: Any) -> None:
    """They stand first in the log, what was asked for behind them."""
    _, labels = learner()
    known = {row: int(labels[row]) for row in range(100, 150)}
    whole, asked = course(max_labels=120, known=known)
    again, rest = course(max_labels=120, known=known | {row: int(labels[row]) for row in asked})
    assert rest == []
    assert same(whole.model, again.model, tmp_path)


def test_answers_that_are_not_chosen_again_are_learned_all_the_same() -> None:
    _, labels = learner()
    known = {row: int(labels[row]) for row in range(100, 150)}
    found, asked = course(known=known, max_labels=80)
    assert found.last.labels == 80
    assert set(asked).isdisjoint(known)
    assert len(asked) == 30


@pytest.mark.parametrize("selection", ["active", "autoactive", "random"])
def test_all_known_answers_are_learned_before_anything_is_asked_for(selection: str) -> None:
    _, labels = learner()
    known = {row: int(labels[row]) for row in range(100, 150)}
    config = replace(CONFIG, solver_options=(("selection", selection),))
    for most in (20, 50):
        found, asked = course(config, known=known, max_labels=most)
        assert (found.last.labels, asked) == (most, [])
    taught, _ = learner(config)
    found = learn_pool(taught, known, lambda row, give_up: None)
    assert (found.last.labels, found.n_asked) == (50, 0)
    found, asked = course(config, known=known)
    assert sorted([*asked, *known]) == list(range(400))


def test_kernel_values_that_find_no_memory_are_computed_again() -> None:
    """Of sixteen rows at least, however little the memory; where none stays that cannot violate, the course is the same."""
    config = replace(CONFIG, solver_options=(("keep_within", "0"),))
    (roomy, asked), (narrow, again) = (course(replace(config, cache_mb=most)) for most in (100.0, 1e-3))
    assert again == asked
    assert narrow.last.kernel_evaluations > roomy.last.kernel_evaluations


def test_where_no_row_is_left_none_is_chosen() -> None:
    taught, labels = learner(n_begin=20)
    for row in range(len(labels)):
        taught.learn(row, int(labels[row]))
    assert taught.choose() == -1


def test_the_pools_row_of_a_label_that_is_none_is_named() -> None:
    with pytest.raises(DataError, match=r"^pool row 3: label 5 is none of 3, 8"):
        learner(n_begin=20)[0].learn(2, 5)


def test_examples_to_begin_with_are_checked_as_those_of_the_pool_are() -> None:
    pool, labels = examples()
    for wrong, why in (
        ({"rows": Rows.from_dense(np.full((1, 2), 1e200))}, "example 1 has 1e.200"),
        ({"weight": np.full(1, -1.0)}, "weight"),
    ):
        begin = replace(Dataset(Rows.from_dense(np.ones((1, 2))), labels[:1]), **wrong)
        for one, other in ((begin, pool), (None, replace(begin, y=np.full(1, np.nan)))):
            with pytest.raises(DataError, match=why):
                Learner(CONFIG, LABELS, one, other)


def test_the_last_answer_may_be_none() -> None:
    taught, labels = learner()
    asked: list[int] = []
    found = learn_pool(taught, {}, lambda *q: None if len(asked) == 33 else asking(labels, asked)(*q))
    assert (found.status, found.last.labels, len(asked)) == (Status.INTERRUPTED, 33, 33)
    stopped: list[int] = []
    taught, labels = learner()
    found = learn_pool(taught, {}, asking(labels, stopped), interrupted=lambda: len(stopped) == 12)
    assert (found.status, found.last.labels) == (Status.INTERRUPTED, 12)


@pytest.mark.parametrize("selection", ["active", "autoactive", "random"])
def test_rows_of_weight_0_are_not_asked_for_and_take_no_part(selection: str) -> None:
    pool, labels = examples()
    other, first = examples(20, seed=9)
    begin = replace(other, y=first, weight=np.arange(20) % 2 + 0.0)
    pool = replace(pool, weight=(np.arange(400) % 4 > 0) + 0.0)
    config = replace(CONFIG, solver_options=(("selection", selection),))
    asked: list[int] = []
    known = {0: int(labels[0]), 1: int(labels[1])}
    found = learn_pool(Learner(config, LABELS, begin, pool), known, asking(labels, asked))
    assert sorted([1, *asked]) == np.flatnonzero(pool.weights).tolist()
    for dataset in (begin, pool):
        without = dataset.rows.take(np.flatnonzero(dataset.weights == 0)).to_dense()
        assert not set(map(tuple, found.model.rows.to_dense().tolist())) & set(map(tuple, without.tolist()))


def test_a_class_whose_examples_have_weight_0_is_missing() -> None:
    pool, labels = examples()
    begin, _ = examples(2, seed=9)
    taught = Learner(CONFIG, LABELS, replace(begin, y=np.array([3.0, 8.0]), weight=np.array([1.0, 0.0])), pool)
    assert taught.missing().tolist() == [8]
    taught.learn(int(np.flatnonzero(labels == 8)[0]), 8)
    assert taught.missing().tolist() == []


def test_costs_that_are_no_doubles_are_refused() -> None:
    pool, _ = examples()
    with pytest.raises(DataError, match="is above"):
        Learner(replace(CONFIG, C=1e95), LABELS, None, replace(pool, weight=np.full(400, 1e10)))


def test_held_out_errors_are_told_at_root_two_times_as_many() -> None:
    told: list[ActiveRow] = []
    other, known = examples(100, seed=6)
    holdout = replace(other, y=known + 0.5)  # cut to integers, as training cuts labels
    found, _ = course(max_labels=40, holdout=holdout, on_row=told.append)
    assert [row.labels for row in told] == [8, 11, 15, 21, 29, 40]
    assert found.last.holdout_error == np.mean(answers(found.model, holdout.rows) != known)
    assert told[-1] == found.last


def test_a_held_out_error_that_takes_long_is_given_up_where_learning_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still meanwhile."""

    def slow(*_: Any) -> Any:
        for _ in range(100):
            time.sleep(0.1)
            parallel.stay()
        return np.ones(100)

    monkeypatch.setattr(active, "answers", slow)
    other, known = examples(100, seed=6)
    began = time.monotonic()
    found, _ = course(max_labels=20, holdout=replace(other, y=known), interrupted=lambda: time.monotonic() > began + 0.1)
    assert time.monotonic() - began < 5
    assert found.status is Status.INTERRUPTED
    assert np.isnan(found.last.holdout_error)
    assert found.last.seconds < 0.5


def test_models_have_the_labels_and_their_classes() -> None:
    found, asked = course(n_begin=10, max_labels=60)
    assert found.model.labels is not None
    assert found.model.class_counts is not None
    assert found.model.labels.tolist() == [3, 8]
    coef = found.model.machines[0].coef
    assert found.model.class_counts.tolist() == [np.count_nonzero(coef > 0), np.count_nonzero(coef < 0)]
    assert found.model.n_support <= 10 + len(asked)


@pytest.mark.parametrize(
    ("config", "labels", "why"),
    [
        (replace(CONFIG, solver="smo"), LABELS, "--solver smo: does not choose examples; .*lasvm"),
        (replace(CONFIG, kernel="precomputed"), LABELS, "-t 4"),
        (replace(CONFIG, svm_type="nu_svc"), LABELS, r"-s 1 \(nu_svc\): training this type is not available"),
        (replace(CONFIG, bias="none"), LABELS, "bias"),
        (replace(CONFIG, C=0.0), LABELS, "-c: C 0 must be greater than 0"),
        (replace(CONFIG, map="nystroem"), LABELS, "--map"),
        (replace(CONFIG, lam=1e-3), LABELS, "--lambda"),
        (replace(CONFIG, class_weight=((3, 2.0),)), LABELS, "-w: "),
        (replace(CONFIG, solver_options=(("epochs", "3"),)), LABELS, "-O epochs"),
        (replace(CONFIG, solver_options=(("selection", "gradient"),)), LABELS, "-O selection=gradient"),
        (replace(CONFIG, bias="none"), LABELS, "--solver lasvm: it trains with a bias only"),
        (CONFIG, np.array([1, 2, 3]), "--labels"),
    ],
)
def test_what_a_pool_cannot_have_is_refused(config: TrainConfig, labels: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Learner(config, labels, None, examples()[0])


def test_labels_to_begin_with_are_checked() -> None:
    pool, _ = examples()
    with pytest.raises(DataError, match="seed, example 1: label 4 is none of 3, 8; see --labels"):
        Learner(CONFIG, LABELS, replace(pool, y=np.full(400, 4.0), source="seed"), pool)
