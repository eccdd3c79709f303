"""Rows made when steps first need them: the same values, and so the same steps, as with all of them at hand."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit.data import Floats, Rows
from svmkit.engine import by_need, qp
from svmkit.engine.kernels import Engine
from svmkit.engine.space import table_columns
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, SIGMOID, Kernel

KERNELS = [
    Kernel(LINEAR),
    Kernel(POLYNOMIAL, gamma=0.5, coef0=1.0, degree=2),
    Kernel(RBF, gamma=0.4),
    Kernel(SIGMOID, gamma=0.1),
]


def clouds(n: int, apart: float) -> tuple[Rows, Floats]:
    """Two classes whose centres are so far apart; a third of the values are zeros."""
    rng = np.random.default_rng(7)
    y = rng.choice([-1.0, 1.0], n)
    X = rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.7)
    X[:, 1] += apart * y
    return Rows.from_dense(X), y


def solved(rows: Rows, kernel: Kernel, y: Floats, bias: bool, budget: int, needed: bool) -> tuple[Floats, Floats, int, int]:
    """β, F, steps and kernel evaluations of steps to the end, ``budget`` at a time."""
    engine = Engine(rows, kernel, "f8", by_need.LAYOUT)
    beta, F, lower, upper = np.zeros(len(y)), y.copy(), np.minimum(0.0, 2.0 * y), np.maximum(0.0, 2.0 * y)
    made = by_need.RowsByNeed(engine)
    K = engine.block(np.arange(len(y)), np.arange(len(y))) if not needed else made.K
    dense = (qp.pair_steps if bias else qp.coordinate_steps)["f8"]
    steps, used = 0, budget
    while used == budget:
        if needed:
            used = made.steps(bias, F, beta, lower, upper, 1e-5, budget)
        else:
            used = dense(K, made.diagonal, F, beta, lower, upper, np.empty(len(y)), np.empty(len(y)), 1e-5, budget)
        steps += used
    return beta, F, steps, engine.evaluations


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("n", "apart"), [(3, 1.0), (64, 0.1), (150, 3.0), (150, 0.1)])
def test_steps_are_those_over_the_whole_matrix(kernel: Kernel, bias: bool, n: int, apart: float) -> None:
    rows, y = clouds(n, apart)
    beta, F, steps, _ = solved(rows, kernel, y, bias, 10**6, needed=False)
    for budget in (10**6, 1, 17):
        found = solved(rows, kernel, y, bias, budget, needed=True)
        assert np.array_equal(found[0], beta)
        assert np.array_equal(found[1], F)
        assert found[2] == steps


def test_rows_nobody_needs_are_not_made() -> None:
    rows, y = clouds(600, 6.0)
    *_, steps, evaluations = solved(rows, Kernel(RBF, gamma=0.01), y, True, 10**6, needed=True)
    assert evaluations <= 2 * steps * rows.n < rows.n**2 / 4


def test_all_rows_are_made_at_once_where_most_are_needed_and_however_steps_are_cut() -> None:
    rows, y = clouds(200, 0.0)
    kernel, everyone = Kernel(RBF, gamma=2.0), np.arange(rows.n)
    whole = Engine(rows, kernel, "f8", by_need.LAYOUT).block(everyone, everyone)
    for budget in (10**6, 1, 7):
        made = by_need.RowsByNeed(Engine(rows, kernel, "f8", by_need.LAYOUT))
        variables = y.copy(), np.zeros(rows.n), np.minimum(0.0, y), np.maximum(0.0, y)
        while made.steps(True, *variables, 1e-5, budget) == budget:
            pass
        assert np.array_equal(made.K[:, : rows.n], whole)


def test_rows_are_counted_when_a_step_needs_them() -> None:
    """Whenever they were made: two rows a step at most."""
    rows, y = clouds(200, 0.0)
    for bias in (True, False):
        engine = Engine(rows, Kernel(RBF, gamma=2.0), "f8", by_need.LAYOUT)
        made, before = by_need.RowsByNeed(engine), 0
        variables = y.copy(), np.zeros(rows.n), np.minimum(0.0, y), np.maximum(0.0, y)
        while made.steps(bias, *variables, 1e-5, 1) == 1:
            assert engine.evaluations - before in (0, rows.n, 2 * rows.n)
            before = engine.evaluations
        moved = int(np.count_nonzero(variables[1]))
        assert moved * rows.n <= engine.evaluations <= rows.n**2


def test_product_is_known_once_its_rows_are_made() -> None:
    rows, y = clouds(120, 2.0)
    kernel = Kernel(RBF, gamma=0.2)
    made = by_need.RowsByNeed(Engine(rows, kernel, "f8", by_need.LAYOUT))
    assert made.product(y) is None
    beta, F = np.zeros(120), y.copy()
    made.steps(True, F, beta, np.minimum(0.0, y), np.maximum(0.0, y), 1e-3, 10**6)
    product = made.product(beta)
    assert product is not None
    dense = rows.to_dense()
    K = np.exp(-0.2 * ((dense[:, None] - dense[None]) ** 2).sum(axis=2))
    assert np.abs(product - K @ beta).max() < 1e-12
    assert np.abs(F - (y - product)).max() < 1e-12


def test_rows_without_a_weight_are_no_part_of_a_product() -> None:
    """Where a kernel value of theirs has overflowed, 0 times that would be no number."""
    K = np.array([[1.0, np.inf, 3.0, 9.0], [np.inf, np.inf, np.inf, 9.0], [3.0, np.inf, 5.0, 9.0]])
    assert by_need.product_of_rows(K, np.array([2.0, 0.0, -1.0])).tolist()[::2] == [-1.0, 1.0]


def test_many_rows_are_left_to_blocks_only_where_these_would_be_in_float32() -> None:
    rng = np.random.default_rng(3)
    rows, y = Rows.from_dense(rng.normal(size=(1100, 5))), rng.choice([-1.0, 1.0], 1100)
    for kernel, given_up in ((Kernel(RBF, gamma=0.3), True), (Kernel(SIGMOID, gamma=0.01), False)):
        for bias in (True, False):
            made = by_need.RowsByNeed(Engine(rows, kernel, "f8", by_need.LAYOUT))
            made.steps(bias, y.copy(), np.zeros(1100), np.minimum(0.0, y), np.maximum(0.0, y), 1e-3, 2000)
            assert made.given_up is given_up


def test_what_these_loops_take() -> None:
    rows, _ = clouds(50, 1.0)
    rbf = Kernel(RBF, gamma=1.0)
    assert by_need.suits(rows, rbf, 50)
    assert not by_need.suits(rows, Kernel(PRECOMPUTED), 50)
    assert not by_need.suits(rows._replace(n_features=by_need.MOST_BYTES), rbf, 50)
    assert not by_need.suits(rows, rbf, by_need.MOST_ROWS + 1)
    crowded = Rows.from_dense(np.ones((40, 64)) / 3.0)
    fits = by_need.MOST_READ // (8 * 64) - table_columns("f8")
    assert by_need.suits(crowded, rbf, fits)
    assert not by_need.suits(crowded, rbf, fits + 1)
