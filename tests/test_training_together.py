"""Machines that are trained together: what is heard of them, how they are counted, and when they are left untrained."""

from __future__ import annotations

import re
from dataclasses import astuple, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from zoo import classes

from svmkit import parallel, schedule, training
from svmkit.certificate import total
from svmkit.cli.compat.training_text import TrainingText
from svmkit.clock import Clock
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Rows
from svmkit.engine.space import room
from svmkit.fit import fit
from svmkit.pairs import Pair
from svmkit.problem import LINEAR, Kernel
from svmkit.solvers import smo
from svmkit.solvers.base import SolverResult
from svmkit.trace import Status

pytestmark = pytest.mark.usefixtures("two_threads")

CONFIG = TrainConfig(C=4.0, gamma=0.3)
DATA = classes([40, 3, 90, 1, 150, 64])


def test_what_is_done_in_vain_counts_as_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a run of machines some of which do not end together with the others; a call takes half a minute here."""
    parallel.use_threads(1)
    calls: list[Clock] = []

    class Slow(Clock):
        def __init__(self) -> None:
            super().__init__()
            calls.append(self)

        def seconds(self) -> float:
            return 30.0

    monkeypatch.setattr(training, "Clock", Slow)
    seconds: list[float] = []
    data, config = classes([4, 90, 5, 100, 6, 110]), replace(CONFIG, max_iter=100)
    found = fit(data, config, on_progress=lambda second, progress: seconds.append(second))
    statuses = [machine.status for machine in found.machines]
    assert Status.CONVERGED in statuses[statuses.index(Status.MAX_ITER) :]
    assert seconds == sorted(seconds)
    assert_allclose(found.seconds, sum(machine.seconds for machine in found.machines), rtol=1e-9)
    assert 30.0 * len(calls) < found.seconds < 30.0 * len(calls) + 20.0


class Asked:
    """Says yes from the time on that it is asked for the ``count``-th time."""

    def __init__(self, count: int) -> None:
        self.left = count

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_machines_that_do_not_end_can_be_interrupted_soon() -> None:
    """Thousands of hard ones: a call works on some of them for a short time, and none is trained once the limit is over."""
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(60.0), 10)
    hard = Dataset(Rows.from_dense(100.0 * rng.normal(size=(600, 2))), y)
    config = replace(CONFIG, kernel="linear", C=1e9)
    found = fit(hard, config, interrupted=Asked(3))
    assert found.status is Status.INTERRUPTED
    together = smo.together(hard.rows, Kernel(LINEAR), smo.Options(), np.full(1770, 20), np.full(1770, 10))
    assert together is not None
    jobs = schedule.jobs_of(np.full(1770, together.work(20, 10)))
    assert all(len(job) * together.work(20, 10) <= schedule._IN_ONE_CALL for job in jobs)
    assert len(jobs) > 8
    assert sum(machine.steps > 0 for machine in found.machines) <= 3 * len(jobs[0])


def test_listeners_hear_each_machine_in_order() -> None:
    heard: list[tuple[Pair, SolverResult]] = []
    found = fit(DATA, CONFIG, on_machines=lambda count, each: heard.extend(each()))
    assert [(pair.positive, pair.negative) for pair, _ in heard] == [(i, j) for i in range(6) for j in range(i + 1, 6)]
    for (pair, result), machine in zip(heard, found.machines, strict=True):
        assert (result.steps, result.kernel_evaluations) == (machine.steps, machine.kernel_evaluations)
        assert np.array_equal(result.solution.coef, machine.solution.coef)
        assert np.array_equal(result.solution.origin, machine.solution.origin)
        assert set(np.unique(DATA.y[pair.examples[pair.y > 0]])) <= {float(found.model.labels[pair.positive])}


def test_svm_train_says_each_machines_own_steps(capfd: pytest.CaptureFixture[str]) -> None:
    """A dot for so many of them, the hardest machine being the last of its call."""
    data = classes([20, 20, 60], spread=3.0)
    order = np.argsort(data.y, kind="stable")
    data, config = data.take(order), replace(CONFIG, C=1000.0)
    text = TrainingText(False, 50, config)
    found = fit(data, config, on_progress=text.progress, on_machines=text.machines)
    out = capfd.readouterr().out
    assert [len(line) for line in re.findall(r"^(\.*)\*$", out, re.M)] == [m.steps // 50 for m in found.machines]
    assert found.machines[-1].steps // 50 > found.machines[0].steps // 50


def test_counts_are_those_of_all_machines() -> None:
    counts: list[int] = []
    found = fit(DATA, CONFIG, on_machines=lambda count, each: counts.append(count))
    assert sum(counts) == len(found.machines) == 15 > len(counts)
    assert {machine.status for machine in found.machines} == {Status.CONVERGED}
    assert found.steps == sum(machine.steps for machine in found.machines)
    assert found.kernel_evaluations == sum(machine.kernel_evaluations for machine in found.machines)
    expected = total([machine.certificate for machine in found.machines])
    assert_allclose(found.certificate.primal, expected.primal, rtol=1e-13)
    assert found.certificate.violation == expected.violation


def test_once_interrupted_no_more_machines_are_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "_IN_ONE_CALL", 500_000)
    parallel.use_threads(1)
    heard: list[int] = []
    found = fit(DATA, CONFIG, interrupted=lambda: bool(heard), on_machines=lambda count, each: heard.append(count))
    assert found.status is Status.INTERRUPTED
    assert found.machines[0].status is Status.CONVERGED
    assert [machine.steps for machine in found.machines[-3:]] == [0, 0, 0]
    assert (len(found.machines), found.has_learned) == (15, True)
    assert not fit(DATA, CONFIG, interrupted=lambda: True).has_learned


@pytest.mark.parametrize("bias", ["free", "none"])
def test_machines_that_are_left_have_the_certificate_of_nothing(bias: str) -> None:
    """That of the problem with their bias, as where they are stopped one by one before they begin."""
    config = replace(CONFIG, bias=bias)
    found = fit(DATA, config, interrupted=lambda: True)
    one_by_one = fit(DATA, config, interrupted=lambda: True, on_trace=lambda row: None)
    for machine, one in zip(found.machines, one_by_one.machines, strict=True):
        assert_allclose(astuple(machine.certificate), astuple(one.certificate), rtol=1e-12)


def test_a_time_limit_that_is_over_leaves_the_other_machines_untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "_IN_ONE_CALL", 500_000)
    parallel.use_threads(1)
    fit(DATA, CONFIG)  # compiles
    found = fit(DATA, replace(CONFIG, time_limit_s=1e-7))
    assert found.status is Status.TIME_LIMIT
    assert [machine.steps for machine in found.machines[-3:]] == [0, 0, 0]
    assert len(found.machines) == 15


@pytest.mark.parametrize("limits", [{"max_evaluations": 1}, {"max_iter": 5}], ids=str)
def test_limits_are_every_machines(limits: dict[str, int]) -> None:
    """As of machines that come one after another, for a trace is wanted of each."""
    config = replace(CONFIG, **limits)
    found, traced = fit(DATA, config), fit(DATA, config, on_trace=lambda row: None)
    assert found.status is traced.status
    assert found.status is not Status.CONVERGED
    for machine, one in zip(found.machines, traced.machines, strict=True):
        assert (machine.status, machine.steps) == (one.status, one.steps)


def test_the_tolerance_is_every_machines() -> None:
    assert fit(DATA, CONFIG).certificate.violation > 1e-8
    assert fit(DATA, replace(CONFIG, eps=1e-8)).certificate.violation <= 1e-8


def test_a_machine_trained_alone_does_not_take_memory_beside_the_work_space_of_others() -> None:
    parallel.use_threads(1)
    before = room("together", 5000)
    fit(classes([40, 40]), CONFIG)
    assert not np.shares_memory(room("together", 10), before)
