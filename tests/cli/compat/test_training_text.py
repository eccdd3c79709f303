"""What svm-train says of its machines, by what is known of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from zoo import named

from svmkit.cli.compat import training_text
from svmkit.cli.compat.training_text import TrainingText
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Rows
from svmkit.fit import fit
from svmkit.pairs import Pair
from svmkit.solvers import pair, smo
from svmkit.solvers.base import run
from svmkit.trace import Status


@pytest.mark.parametrize(("steps", "says"), [(10_000_000, True), (9_999_999, False)])
def test_a_machine_has_its_own_limit_of_iterations(steps: int, says: bool, capfd: pytest.CaptureFixture[str]) -> None:
    """A file of 300,000 examples allows 30 million; a machine of few of them ends after 10 million."""
    problem = named("two rows")
    result = replace(run(pair, problem, pair.Options(), eps=1e-3), status=Status.STALLED, steps=steps)
    text = TrainingText(True, 1000, TrainConfig(solver="pair", max_iter=30_000_000))
    machine = Pair(0, 1, np.arange(problem.n), problem.y, problem.upper)
    text.machines(1, lambda: iter([(machine, result)]))
    assert capfd.readouterr().err == "\nWARNING: reaching max number of iterations\n" * says


def test_at_the_limit_of_iterations_svm_trains_own_steps_always_say_so(capfd: pytest.CaptureFixture[str]) -> None:
    """Even where fresh kernel values, less coarse than its own, find the tolerance met."""
    problem = named("two rows")
    result = replace(run(pair, problem, pair.Options(), eps=1e-3), status=Status.CONVERGED, steps=10_000_000)
    machine = Pair(0, 1, np.arange(problem.n), problem.y, problem.upper)
    TrainingText(True, 2, TrainConfig(solver="pair")).machines(1, lambda: iter([(machine, result)]))
    assert capfd.readouterr().err == "\nWARNING: reaching max number of iterations\n"


@pytest.mark.parametrize(("status", "says"), [(Status.MAX_ITER, "reaching max"), (Status.STALLED, "no further progress")])
def test_a_machine_that_stalls_late_has_not_reached_the_limit(
    status: Status, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    problem = named("two rows")
    result = replace(run(smo, problem, smo.Options(), eps=1e-3), status=status, steps=20_000_000)
    machine = Pair(0, 1, np.arange(problem.n), problem.y, problem.upper)
    TrainingText(True, 1000, TrainConfig(max_iter=30_000_000)).machines(1, lambda: iter([(machine, result)]))
    assert capfd.readouterr().err.startswith(f"\nWARNING: {says}")


@pytest.mark.parametrize("weighted", [False, True])
def test_figures_of_machines_trained_together_are_those_of_each(weighted: bool) -> None:
    """Also where the C_i differ, and of machines without support vectors, as of examples that are all the same."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(80, 3)), np.repeat(np.arange(8.0), 10)
    X[:20] = 1.0
    dataset = Dataset(Rows.from_dense(X + np.where(y > 1, y, 0.0)[:, None]), y)
    heard: list[Any] = []
    config = TrainConfig(C=2.0, gamma=0.3, class_weight=((5, 3.0),) if weighted else ())
    fit(dataset, config, on_machines=lambda count, each: heard.append(each))
    assert sum(len(each.part.steps) for each in heard) == 28
    for each in heard:
        found = training_text._reports(each)
        for one, (machine, result) in zip(found, each(), strict=True):
            expected = training_text._figures(machine, result)
            assert one._replace(nu=None) == expected._replace(nu=None)
            assert one.nu == (None if expected.nu is None else pytest.approx(expected.nu, rel=1e-12))
