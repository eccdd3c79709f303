"""The runs of a model's machines: which held-out examples each of them is judged by, and what time is theirs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from golden_data import dataset_of
from numpy.testing import assert_allclose

from svmkit import fit as fit_module
from svmkit import training
from svmkit.config import TrainConfig
from svmkit.errors import Abandoned, UsageError
from svmkit.fit import fit
from svmkit.metrics import error
from svmkit.model import decision_values, predict
from svmkit.solvers import solver


def test_patience_is_for_solvers_that_are_not_exact_and_needs_held_out_data() -> None:
    config = TrainConfig(patience=3)
    with pytest.raises(UsageError, match="--holdout"):
        fit(dataset_of("two"), config)
    with pytest.raises(UsageError, match="solver smo is exact"):
        fit(dataset_of("two"), config, holdout=dataset_of("two.t"))


def test_held_out_error_is_that_of_the_pairs_own_classes() -> None:
    dataset, holdout = dataset_of("three"), dataset_of("three.t")
    rows = []
    result = fit(dataset, TrainConfig(gamma=0.5), on_trace=rows.append, holdout=holdout)
    assert result.model.labels is not None
    decisions = decision_values(result.model, holdout.rows)
    finals = [machine.trace[-1].holdout_error for machine in result.machines]
    for column, ((i, j), final) in enumerate(zip(result.model.pairs, finals, strict=True)):
        first, second = (holdout.y == label for label in result.model.labels[[i, j]])
        wrong = (decisions[:, column] > 0) != first
        assert_allclose(final, wrong[first | second].mean())
    assert len(rows) == sum(len(machine.trace) for machine in result.machines)


def test_held_out_error_against_the_rest_is_that_of_all_examples() -> None:
    dataset, holdout = dataset_of("three"), dataset_of("three.t")
    result = fit(dataset, TrainConfig(gamma=0.5, multiclass="ovr"), on_trace=lambda row: None, holdout=holdout)
    assert result.model.labels is not None
    decisions = decision_values(result.model, holdout.rows)
    for column, (label, machine) in enumerate(zip(result.model.labels, result.machines, strict=True)):
        wrong = (decisions[:, column] > 0) != (holdout.y == label)
        assert_allclose(machine.trace[-1].holdout_error, wrong.mean())


def test_held_out_examples_of_other_labels_are_errors_of_a_single_machine() -> None:
    """As they are of its model."""
    dataset, holdout = dataset_of("two"), dataset_of("two.t")
    y = np.where(np.arange(holdout.n) % 3 == 0, 7.0, holdout.y)
    rows = []
    result = fit(dataset, TrainConfig(gamma=0.5), on_trace=rows.append, holdout=replace(holdout, y=y))
    expected = error(y, predict(result.model, decision_values(result.model, holdout.rows)))
    assert rows[-1].holdout_error == expected > 1 / 3


def test_what_is_asked_of_the_solver_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, pair = [], solver("pair")
    start = pair.start
    monkeypatch.setattr(pair, "start", lambda *given: seen.append(given[1:]) or start(*given))
    fit(dataset_of("two"), TrainConfig(solver="pair", cache_mb=7.0, shrinking=False, eps=0.5, seed=9))
    assert seen == [(pair.Options(cache_mb=7.0, shrinking=False), 0.5, 9)]


def test_the_time_that_making_a_map_takes_is_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    run = training.run

    def noted(*args: Any, limits: Any, **more: Any) -> Any:
        seen.append(limits.time_limit_s)
        return run(*args, limits=limits, **more)

    monkeypatch.setattr(training, "run", noted)
    monkeypatch.setattr(fit_module, "Clock", lambda: SimpleNamespace(seconds=lambda: 50.0))
    config = TrainConfig(solver="sdca", map="nystroem", dim=8, gamma=0.5)
    result = fit(dataset_of("two"), replace(config, time_limit_s=1000.0))
    assert seen == [950.0]
    assert 50.0 <= result.seconds < 1000.0
    with pytest.raises(Abandoned, match="time was over before the map was made"):
        fit(dataset_of("two"), replace(config, time_limit_s=50.0))
