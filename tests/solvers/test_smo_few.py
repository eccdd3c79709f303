"""Machines of a large class and a tiny one, trained on few of the large: the optimum of all their examples comes out."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
from oracle import dense_kernel, dual_objective, primal_objective, violation
from together_and_alone import KERNELS, alone, assert_same
from zoo import classes

from svmkit import parallel, schedule
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Ints, Rows
from svmkit.engine.kernels import Engine
from svmkit.engine.together import Ended
from svmkit.fit import fit, kernel_of
from svmkit.io.model_libsvm import model_text
from svmkit.model import class_pairs
from svmkit.pairs import pairs_of
from svmkit.problem import Problem
from svmkit.solvers import smo, smo_few, smo_together
from svmkit.solvers.base import Several
from svmkit.trace import Status

pytestmark = pytest.mark.usefixtures("two_threads")

CONFIG = TrainConfig(C=4.0, gamma=0.03)
#: One class of 300 examples among fifteen of a few: first, in the midst, last.
TINY = [4, 5, 6] * 5
SIZES = {"first": [300, *TINY], "in the midst": [*TINY[:7], 300, *TINY[7:]], "last": [*TINY, 300]}


@pytest.fixture(autouse=True)
def machines_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of more than 100 examples."""
    monkeypatch.setattr(smo_together, "MOST_VARIABLES", 100)


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of the machines that were trained on few, in any order, whether they ended so."""
    found: list[bool] = []

    def counted(*given: Any) -> None:
        smo_few.train_on_few(*given)
        ended: Ended = given[-1]
        found.extend((ended.finished == 1).tolist())

    monkeypatch.setattr(smo_together, "train_on_few", counted)
    return found


def several(data: Dataset, config: TrainConfig) -> tuple[Several, Ints, Ints]:
    """All machines of the classes, one against one, the sizes of them and of their smaller classes."""
    labels, members = np.unique(data.y), [np.flatnonzero(data.y == label) for label in np.unique(data.y)]
    machines = pairs_of(data.weights, config, members, np.ones(len(labels)), class_pairs(len(labels), "ovo"))
    return machines, machines.sizes, schedule.fewer_of(members, class_pairs(len(labels), "ovo"))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("place", SIZES)
def test_the_optimum_of_all_examples_comes_out(kernel: str, bias: Any, place: str, finished: list[bool]) -> None:
    config = replace(CONFIG, bias=bias, **KERNELS[kernel])
    data = classes(SIZES[place], spread=1.5)
    machines, sizes, fewer = several(data, config)
    of = kernel_of(config, data.n_features)
    together = smo.together(data.rows, of, smo.Options(), sizes, fewer)
    assert together is not None
    ended = together.train(machines, bias, config.eps, None)
    assert ended is not None
    assert len(ended.converged) == len(sizes)
    assert len(finished) == 15
    least = 12 if bias == "free" else 4  # without a bias more examples of a large class matter
    assert sum(finished) >= least
    assert np.count_nonzero(ended.converged[sizes > 100]) >= least
    for number in np.flatnonzero(sizes > 100).tolist():
        if not ended.converged[number]:
            continue
        here = slice(machines.starts[number], machines.starts[number + 1])
        case = Problem(data.rows.take(machines.examples[here]), machines.y[here], machines.upper[here], of, bias)
        K, beta, rho = dense_kernel(case.rows, case.rows, of), ended.beta[here], float(ended.rho[number])
        assert (case.y * beta >= 0).all()
        assert (case.y * beta <= case.upper).all()
        assert violation(K, case, beta) <= config.eps * (1 + 1e-6)
        dual, primal = dual_objective(K, case.y, beta), primal_objective(K, case, beta, rho)
        assert ended.certificates.dual[number] == pytest.approx(dual, rel=1e-9)
        assert ended.certificates.primal[number] == pytest.approx(primal, rel=1e-9)
        assert ended.evaluations[number] >= 300 * np.count_nonzero(beta)


@pytest.mark.parametrize("first", [1, 32])
@pytest.mark.parametrize("more", [1, 32])
@pytest.mark.parametrize("sample", [40, 1024])
def test_it_does_not_matter_which_examples_come_first(
    first: int, more: int, sample: int, finished: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = classes(SIZES["first"], spread=1.5)
    alone_model = fit(data, replace(CONFIG, solver="pair"))
    for name, value in (("_LARGEST", first), ("_MORE", more), ("_SAMPLE", sample), ("_FEWER", inf), ("_ROUNDS", 400)):
        monkeypatch.setattr(smo_few, name, value)
    found = fit(data, CONFIG)
    assert all(finished)
    for one, other in zip(found.machines, alone_model.machines, strict=True):
        assert one.status is Status.CONVERGED
        assert one.certificate.dual == pytest.approx(other.certificate.dual, abs=one.certificate.gap + other.certificate.gap)


def test_machines_in_which_most_examples_matter_are_left_to_smo(finished: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    data, config = classes(SIZES["in the midst"], spread=1.5), replace(CONFIG, gamma=200.0)
    found = fit(data, config)
    assert finished == [False] * 15
    alone(monkeypatch)
    assert_same(found, fit(data, config))


@pytest.mark.parametrize(
    "changes", [{"max_iter": 3}, {"kernel": "polynomial", "gamma": 1e60, "degree": 9}], ids=["limit", "overflow"]
)
def test_machines_that_do_not_converge_are_left_to_smo(
    changes: Any, finished: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, config = classes(SIZES["last"], spread=1.5), replace(CONFIG, **changes)
    found = fit(data, config)
    assert finished == [False] * 15
    alone(monkeypatch)
    assert_same(found, fit(data, config))


@pytest.mark.parametrize("n_threads", [1, 5])
def test_threads_make_no_difference(n_threads: int, finished: list[bool]) -> None:
    data = classes(SIZES["in the midst"], spread=1.5)
    expected = fit(data, CONFIG)
    parallel.use_threads(n_threads)
    assert model_text(fit(data, CONFIG).model) == model_text(expected.model)
    assert sum(finished) >= 24


def test_a_precomputed_kernel_is_trained_on_few_as_well(finished: list[bool]) -> None:
    data = classes(SIZES["first"], spread=1.5)
    every = np.arange(data.n)
    of = kernel_of(CONFIG, data.n_features)
    K = Engine(data.rows, of, "f8").block(every, every)
    rows = Rows(np.empty(0), np.empty(0, np.int32), np.zeros(data.n + 1, np.int64), data.n, K, every + 1)
    expected, found = fit(data, CONFIG), fit(replace(data, rows=rows), replace(CONFIG, kernel="precomputed"))
    assert sum(finished) >= 24
    for one, other in zip(found.machines, expected.machines, strict=True):
        assert one.status is Status.CONVERGED
        assert one.certificate.dual == pytest.approx(other.certificate.dual, abs=one.certificate.gap + other.certificate.gap)


def test_machines_that_nobody_waits_for_are_left(finished: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a signal or the time limit says is heard in the midst of a call."""
    data = classes(SIZES["first"], spread=1.5)
    began: list[bool] = []

    def sums(*given: Any) -> Any:
        began.append(True)
        return found(*given)

    found = smo_few._Some._sums
    monkeypatch.setattr(smo_few._Some, "_sums", sums)
    result = fit(data, CONFIG, interrupted=lambda: bool(began))
    assert finished == [False] * len(finished)
    assert 1 <= len(began) <= 2  # one on each thread
    assert {machine.status for machine in result.machines} >= {Status.INTERRUPTED}


def test_steps_of_all_rounds_are_within_the_limit(finished: list[bool]) -> None:
    data = classes(SIZES["first"], spread=1.5)
    steps = sorted(machine.steps for machine in fit(data, CONFIG).machines)
    found = fit(data, replace(CONFIG, max_iter=steps[-8]))
    assert 0 < sum(finished[len(finished) // 2 :]) < len(finished) // 2
    assert all(machine.steps <= steps[-8] for machine in found.machines)


def test_larger_classes_are_not_tiny(finished: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smo_together, "MOST_OF_TINY", 32)
    fit(classes([300, 33, 32, *TINY], spread=1.5), CONFIG)
    assert len(finished) == 16
