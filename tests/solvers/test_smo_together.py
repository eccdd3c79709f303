"""Small machines trained together: the results are those of each alone, and what cannot be done together is left to smo."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from together_and_alone import KERNELS, alone, assert_same
from zoo import classes, precomputed

from svmkit import parallel, schedule
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Ints, Rows, dense_rows
from svmkit.engine import by_need
from svmkit.engine.kernels import Engine
from svmkit.engine.together import Ended
from svmkit.fit import fit
from svmkit.io.model_libsvm import model_text
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, Kernel
from svmkit.solvers import smo, smo_few, smo_together
from svmkit.solvers.base import Several, SeveralEnded
from svmkit.trace import Status
from svmkit.warm import join

pytestmark = pytest.mark.usefixtures("two_threads")

CONFIG = TrainConfig(C=4.0, gamma=0.3)
DATA = classes([40, 3, 90, 1, 150, 64])


def count_together(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether machines trained together converge, as they come."""
    results: list[bool] = []
    train = smo_together.SmallMachines.train

    def counted(self: Any, *args: Any) -> SeveralEnded | None:
        found = train(self, *args)
        results.extend([] if found is None else found.converged.tolist())
        return found

    monkeypatch.setattr(smo_together.SmallMachines, "train", counted)
    return results


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_results_are_those_of_each_machine_alone(
    kernel: str, bias: Any, multiclass: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(CONFIG, bias=bias, multiclass=multiclass, class_weight=((2, 0.3),), **KERNELS[kernel])
    together = count_together(monkeypatch)
    found = fit(DATA, config)
    assert sum(together) >= len(found.machines) // 3
    alone(monkeypatch)
    assert_same(found, fit(DATA, config))


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_neither_threads_nor_company_make_a_difference(n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fit(DATA, CONFIG)
    parallel.use_threads(n_threads)
    monkeypatch.setattr(schedule, "_IN_ONE_CALL", 500_000)
    assert_same(fit(DATA, CONFIG), expected)


@pytest.mark.parametrize("work", [300, 3000])
def test_a_call_that_has_done_its_work_leaves_the_rest_to_the_next(work: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fit(DATA, CONFIG)
    monkeypatch.setattr(smo_together, "_MOST_WORK", work)
    together = count_together(monkeypatch)
    assert_same(fit(DATA, CONFIG), expected)
    assert len(together) == len(expected.machines)


def test_machines_of_more_steps_than_a_round_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Features on scales far apart, as of unscaled data: their solutions are others than smo's, to the tolerance as good."""
    data = classes([20, 25, 30, 35], spread=2.0)
    data = replace(data, rows=data.rows._replace(data=data.rows.data * 5.0 ** (data.rows.indices % 3)))
    config = replace(CONFIG, kernel="linear", C=0.1)
    together = count_together(monkeypatch)
    found = fit(data, config)
    assert all(together)
    assert sum(machine.steps > 20_000 for machine in found.machines) >= 2
    alone(monkeypatch)
    for one, other in zip(found.machines, fit(data, config).machines, strict=True):
        assert one.status is other.status is Status.CONVERGED
        assert one.certificate.violation <= config.eps
        assert_allclose(one.certificate.dual, other.certificate.dual, atol=one.certificate.gap + other.certificate.gap)


def test_machines_whose_rows_are_nearly_all_needed() -> None:
    """Classes overlap. Those that none needs do not count, as in by_need.py, which makes them."""
    data = classes([120, 130, 140], spread=4.0)
    machines = sorted(fit(data, CONFIG).machines, key=lambda machine: machine.kernel_evaluations)
    for machine, n in zip(machines, (250, 260, 270), strict=True):
        assert n * machine.solution.n_support <= machine.kernel_evaluations < n**2
        assert machine.kernel_evaluations % n == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"max_iter": 3},  # steps that are cut off
        {"C": 1e7, "eps": 1e-9, "kernel": "polynomial", "gamma": 5.0, "degree": 4},  # more steps than a block may take
        {"kernel": "polynomial", "gamma": 1e60, "degree": 9},  # kernel values that overflow
    ],
    ids=["few steps", "many steps", "overflow"],
)
def test_machines_that_do_not_converge_are_left_to_smo(changes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data, config = classes([30, 40, 50], spread=3.0), replace(CONFIG, **changes)
    together = count_together(monkeypatch)
    found = fit(data, config)
    assert False in together
    alone(monkeypatch)
    expected = fit(data, config)
    assert model_text(found.model) == model_text(expected.model)
    assert [machine.status for machine in found.machines] == [machine.status for machine in expected.machines]
    assert [machine.steps for machine in found.machines] == [machine.steps for machine in expected.machines]


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("eps", [0.9, 1.0, 1.5, 3.0])
def test_a_coarse_tolerance_ends_before_the_first_step(bias: Any, eps: float, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(CONFIG, eps=eps, bias=bias)
    found = fit(DATA, config)
    alone(monkeypatch)
    assert_same(found, fit(DATA, config))


def test_what_is_trained_together() -> None:
    options = smo.Options()
    rbf = Kernel(RBF, gamma=1.0)
    rows = classes([30, 30, 30]).rows
    found = smo.together(rows, rbf, options, np.array([60, 60, 3000]), np.array([30, 30, 129]))
    assert found is not None
    most, tiny = smo_together.MOST_VARIABLES, smo_few.MOST_OF_TINY
    assert found.work(most, most // 2) < np.inf
    assert found.work(most + 1, tiny + 1) == np.inf
    assert found.work(most + 1, tiny) < np.inf
    assert 10_000 * found.work(2, 1) <= schedule._IN_ONE_CALL
    too_few = {
        "one small machine alone": ([60, 3000, 3000], [30, 129, 129]),
        "all rows would be packed for a few": ([10, 10, 3000], [5, 5, 129]),
        "and for three of a tiny class": ([10, 3000, 3000, 3000], [5, 128, 128, 128]),
        "calls of one machine": ([90_000] * 4, [32] * 4),
    }
    for sizes, fewer in too_few.values():
        assert smo.together(rows, rbf, options, np.array(sizes), np.array(fewer)) is None
    assert (
        smo.together(rows, rbf, options, np.array([10, 3000, 3000, 3000, 3000]), np.array([5, 128, 128, 128, 128])) is not None
    )
    assert smo.together(rows, rbf, smo.Options(working_set=64), np.array([60, 60, 60]), np.array([30, 30, 30])) is None
    assert (
        smo.together(
            dense_rows(np.ones((90, 3), np.float32)), Kernel(LINEAR), options, np.array([60, 60, 60]), np.array([30, 30, 30])
        )
        is None
    )


def with_a_matrix(data: Dataset, change: float = 0.0) -> Dataset:
    """The same with rbf values of the examples in their place, one of them changed."""
    every = np.arange(data.n)
    K = Engine(data.rows, Kernel(RBF, gamma=CONFIG.gamma), "f8").block(every, every)
    K[-1, 0] += change
    return replace(data, rows=precomputed(K, data.y, 1.0).rows)


def test_a_symmetric_precomputed_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machines are those of the kernel itself; one that is not symmetric is left to smo."""
    config = replace(CONFIG, kernel="precomputed")
    monkeypatch.setattr(smo_together, "_COMPARED_VALUES", 1000)
    together = count_together(monkeypatch)
    found = fit(with_a_matrix(DATA), config)
    assert len(together) == 15
    fit(with_a_matrix(DATA, 1e-9), config)
    assert len(together) == 15
    for one, other in zip(found.machines, fit(DATA, CONFIG).machines, strict=True):
        assert_allclose(one.certificate.dual, other.certificate.dual, rtol=1e-9)
        assert_allclose(one.solution.rho, other.solution.rho, atol=1e-7)


def wide(data: Dataset) -> Dataset:
    """Words: few of very many features a row, and no loop of by_need.py for them."""
    rng = np.random.default_rng(5)
    indices = np.concatenate([np.sort(rng.choice(30_000, 40, replace=False)) + 1 for _ in range(data.n)]).astype(np.int32)
    rows = Rows(rng.random(len(indices)), indices, 40 * np.arange(data.n + 1), 30_000)
    assert not by_need.suits(rows, Kernel(RBF, gamma=1.0), 20)
    return replace(data, rows=rows)


def far(data: Dataset) -> Dataset:
    """So far from the origin that values take differences."""
    rows = data.rows._replace(data=data.rows.data + 1e6)
    assert Engine(rows, Kernel(RBF, gamma=CONFIG.gamma), "f8", by_need.LAYOUT).packed.far
    return replace(data, rows=rows)


@pytest.mark.parametrize("made", [wide, far])
def test_rows_of_any_kind(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where smo's own values may come from another loop, the last bits may be others."""
    data = made(DATA)
    together = count_together(monkeypatch)
    found = fit(data, CONFIG)
    assert sum(together) >= 12
    alone(monkeypatch)
    expected = fit(data, CONFIG)
    assert_allclose(
        [machine.certificate.dual for machine in found.machines],
        [machine.certificate.dual for machine in expected.machines],
        rtol=1e-9,
    )
    for one, other in zip(found.model.machines, expected.model.machines, strict=True):
        assert_allclose(one.rho, other.rho, atol=1e-7)
        assert_allclose(one.coef, other.coef, atol=1e-6)


@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_machines_of_which_smo_would_not_make_the_matrix_whole(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where most rows are needed, smo goes on with blocks in float32: another answer, as good."""
    data = classes([700, 600, 20], spread)
    together = count_together(monkeypatch)
    found = fit(data, CONFIG)
    assert together == [True, True, True]
    alone(monkeypatch)
    expected = fit(data, CONFIG)
    for one, other in zip(found.machines, expected.machines, strict=True):
        assert one.status is other.status is Status.CONVERGED
        assert one.certificate.violation <= CONFIG.eps
        assert one.certificate.dual <= other.certificate.primal
        assert other.certificate.dual <= one.certificate.primal


def test_values_that_are_not_kept_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fit(DATA, CONFIG)
    monkeypatch.setattr(smo_together, "_KEPT_VALUES", 5000)
    assert_same(fit(DATA, CONFIG), expected)


def test_threads_keep_values_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes to make them; those of a class are made once."""
    members, block = [np.flatnonzero(DATA.y == c) for c in range(6)], Engine.block
    machines = smo.together(DATA.rows, Kernel(RBF, gamma=0.3), smo.Options(), np.full(9, DATA.n), np.full(9, DATA.n))
    assert machines is not None
    made: list[int] = []

    def slow(self: Engine, rows: Ints, *args: Any, **out: Any) -> Any:
        made.append(len(rows))
        time.sleep(0.005)
        return block(self, rows, *args, **out)

    monkeypatch.setattr(Engine, "block", slow)
    with ThreadPoolExecutor(12) as pool:
        begins = list(pool.map(machines._keep, [*range(6)] * 2, members * 2))
    assert sorted(made) == sorted(map(len, members))
    for begin, rows in zip(begins, members * 2, strict=True):
        assert np.array_equal(machines._kept[begin : begin + len(rows) ** 2], block(machines._engine, rows, rows).ravel())


def test_runs_that_are_watched_or_continued_train_each_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    first = fit(DATA, CONFIG).model
    together = count_together(monkeypatch)
    fit(DATA, CONFIG, on_trace=lambda row: None)
    fit(DATA, replace(CONFIG, max_evaluations=10**6))
    fit(DATA, CONFIG, warm=join(DATA, first))
    assert together == []


FIFTH_POWER = Kernel(POLYNOMIAL, gamma=1.0, degree=5)
FAR_UP = 1e12


@pytest.mark.parametrize(
    ("kernel", "x", "alpha", "product", "finished", "converged"),
    [
        (Kernel(LINEAR), [1.0, -1.0], [0.5, 0.5], None, 1, True),
        (Kernel(LINEAR), [1.0, -1.0], [0.5, 0.5 + 1e-6], None, 1, False),
        (Kernel(LINEAR), [1.0, -1.0], [0.5, 0.5], None, 0, False),
        (Kernel(LINEAR), [1.0, 1.0], [2.0, 2.0], None, 1, True),
        (Kernel(LINEAR), [1e7, 1e7], [2.0, 2.0], None, 1, False),
        (FIFTH_POWER, [1.0, -1.0], [0.5, 0.5], [1.0, -1.0], 1, True),
        (FIFTH_POWER, [1.0, -1.0], [2.0, 2.0 - 1e-11], [FAR_UP, FAR_UP], 1, False),
        (FIFTH_POWER._replace(coef0=-1.0), [1.0, -1.0], [2.0, 2.0], [-np.inf, np.inf], 1, False),
    ],
    ids=["optimum", "out of balance", "cut off", "at bounds", "sums drown", "given", "gap", "overflow"],
)
def test_what_the_certificate_does_not_bear_out_is_left_to_smo(
    kernel: Kernel, x: Any, alpha: Any, product: Any, finished: int, converged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps that end at α, one of each class and both of C 2, with Kβ as ``product``, or as it is; no KKT condition is hurt."""
    machines = smo.together(Rows.from_dense(np.array(x)[:, None]), kernel, smo.Options(), np.array([2, 2]), np.array([1, 1]))
    assert machines is not None
    classes, starts, one = np.array([0]), np.array([0, 2]), np.ones(1, np.int64)
    several = Several(classes, classes + 1, starts, np.arange(2), np.array([1.0, -1.0]), np.full(2, 2.0))
    ended = Ended(several.y * alpha, np.zeros(2) if product is None else np.array(product), one, 4 * one, finished * one)
    monkeypatch.setattr(smo_together.SmallMachines, "_ended", lambda *args: ended)
    found = machines.train(several, "free", 1e-3, None)
    assert found is not None
    assert found.certificates.violation.tolist() == [pytest.approx(0.0, abs=1e-5)]
    assert found.converged.tolist() == [converged]


def test_machines_whose_sums_drown_are_left_to_smo_and_end_with_w() -> None:
    X = np.random.default_rng(5).normal(size=(60, 2)).round(3) + 1e6
    found = fit(Dataset(Rows.from_dense(X), np.arange(60) % 3.0), TrainConfig(kernel="linear", C=100.0))
    assert [len(machine.index) for machine in found.model.machines] == [1, 1, 1]
