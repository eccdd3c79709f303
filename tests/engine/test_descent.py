"""Linear coordinate descent against its definition, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from zoo import points, single

from svmkit.data import Floats, Rows
from svmkit.engine import descent, rng


class Plain:
    """The same descent written plainly over dense rows."""

    def __init__(self, X: Floats, y: Floats, upper: Floats) -> None:
        self.X, self.y, self.upper = X, y, upper
        self.alpha, self.w = np.zeros(len(y)), np.zeros(X.shape[1])

    def gradients(self, i: int) -> tuple[float, float]:
        """The gradient and the projected one."""
        gradient = self.y[i] * (self.w @ self.X[i]) - 1
        if self.alpha[i] == 0:
            return gradient, min(gradient, 0.0)
        return gradient, max(gradient, 0.0) if self.alpha[i] == self.upper[i] else gradient

    def step(self, i: int) -> None:
        gradient, projected = self.gradients(i)
        norm2 = self.X[i] @ self.X[i]
        new = min(max(self.alpha[i] - gradient / norm2, 0.0), self.upper[i]) if norm2 else self.upper[i]
        if projected:
            self.w += (new - self.alpha[i]) * self.y[i] * self.X[i]
            self.alpha[i] = new

    def sweep(self, active: list[int], bounds: list[float]) -> tuple[list[int], list[int], list[int], list[float]]:
        """Active ones, those set aside and the busy ones of a sweep over ``active``; extremes of the projected gradient."""
        todo, aside, busy, met = list(active), [], [], []
        at = 0
        while at < len(todo):
            i = todo[at]
            gradient, projected = self.gradients(i)
            low, high = self.alpha[i] == 0, self.alpha[i] == self.upper[i]
            if (low and gradient > bounds[0]) or (high and gradient < bounds[1]):
                aside.append(i)
                last = todo.pop()
                if at < len(todo):
                    todo[at] = last
                continue
            at += 1
            met.append(projected)
            if abs(projected) > bounds[2]:
                busy.append(i)
            self.step(i)
        return todo, aside, busy, [max(met), min(met)]


def case(rows_of: Callable[[Floats], Rows]) -> tuple[Rows, Plain, Floats]:
    """Rows, every ninth empty, two nearly alike but for the label; the plain descent on them and its variables in ours."""
    X, y = points(60, 5, seed=6)
    X[10], y[10] = X[11] * 1.01, -y[11]
    X[::9] = 0.0
    X = X.astype(np.float32).astype(np.float64)
    rows, upper = rows_of(X), np.random.default_rng(7).uniform(0.1, 2.0, len(y))
    upper[10:12] = 1e4
    return rows, Plain(X, y, upper), np.stack([np.zeros(len(y)), upper, rows.sqnorms(), y], axis=1)


class Whole:
    """Sweep after sweep with the busy ones between, of ``plain``; says how many visits they took."""

    def __init__(self, plain: Plain, shrinking: bool) -> None:
        self.plain, self.shrinking = plain, shrinking
        self.order = np.arange(len(plain.y))
        self.active, self.visits, self.settled = len(plain.y), 0, 0
        self.violation, self.beyond_now, self.bounds = 0.0, math.inf, [math.inf, -math.inf]

    def sweep(self, number: int) -> list[int]:
        """One sweep, and what comes of it; the busy ones."""
        self.order[: self.active] = self.order[rng.permutation(1, number, self.active)]
        beyond = 0.03 * self.violation if self.violation else math.inf
        before = self.order[: self.active].tolist()
        active, aside, busy, (most, least) = self.plain.sweep(before, [*self.bounds, beyond])
        rest = list(dict.fromkeys(active))
        for front, i in enumerate(busy):
            at = rest.index(i)
            rest[at], rest[front] = rest[front], i
        self.order[: len(before)] = rest + aside[::-1]
        self.active, self.visits = len(active), self.visits + len(before)
        self.violation = max(0.0, most, -least)
        if self.shrinking:
            self.bounds = [most if most > 0 else math.inf, least if least < 0 else -math.inf]
        else:
            self.active = len(self.order)
        return busy

    def settle(self, busy: list[int]) -> None:
        """Visits the busy ones, if they are few."""
        if not 0 < len(busy) <= 0.25 * self.active:
            return
        spare, largest, at = self.active, math.inf, len(busy)
        while spare > 0:
            if at == len(busy):
                if largest <= self.beyond_now:
                    break
                at, largest = 0, 0.0
            largest = max(largest, abs(self.plain.gradients(busy[at])[1]))
            self.plain.step(busy[at])
            at, spare, self.visits, self.settled = at + 1, spare - 1, self.visits + 1, self.settled + 1


@pytest.mark.parametrize("rows_of", [Rows.from_dense, single])
@pytest.mark.parametrize("budget", [10**9, 5])
@pytest.mark.parametrize("shrinking", [True, False])
def test_a_descent_is_the_plain_one(rows_of: Callable[[Floats], Rows], shrinking: bool, budget: int) -> None:
    """Sweep by sweep, however it is cut into calls."""
    rows, plain, variables = case(rows_of)
    whole, w = Whole(plain, shrinking), np.zeros(rows.n_features + 1)
    order, counts, numbers = np.arange(rows.n), np.empty(descent.N_COUNTS, np.int64), np.empty(descent.N_NUMBERS)
    descent.begin(order, counts, numbers, 1)
    total, least_active = 0, rows.n
    for number in range(60):
        busy = whole.sweep(number)
        while counts[descent.SWEEPS] == number:
            args = rows.form, rows, variables, order, counts, numbers, 1, 1e-300, shrinking
            used = descent.descend(*args, budget, whole.visits - total, w)
            assert 0 < used <= budget
            total += used
        assert total == whole.visits
        assert counts[descent.WHY] == descent.ENOUGH
        assert counts[descent.ACTIVE] == whole.active
        assert sorted(order[: whole.active].tolist()) == sorted(whole.order[: whole.active].tolist())
        assert numbers[descent.VIOLATION] == pytest.approx(whole.violation, rel=1e-9)
        np.testing.assert_allclose(variables[:, 0], plain.alpha, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(w[1:], plain.w, rtol=1e-9, atol=1e-12)
        least_active = min(least_active, whole.active)
        whole.beyond_now = float(numbers[descent.BEYOND])
        whole.settle(busy)
    assert whole.settled > 0
    assert (least_active < rows.n) == shrinking
    assert (variables[::9, 0] == plain.upper[::9]).all()


def test_a_descent_says_that_the_tolerance_is_met_or_that_nothing_moves() -> None:
    rows, _, variables = case(Rows.from_dense)
    variables[:, 1] *= 1e-3  # where all end at their upper ends
    w, order = np.zeros(rows.n_features + 1), np.arange(rows.n)
    counts, numbers = np.empty(descent.N_COUNTS, np.int64), np.empty(descent.N_NUMBERS)
    for eps, why in ((1e-3, descent.MET), (-1.0, descent.IDLE)):
        descent.begin(order, counts, numbers, 1)
        while counts[descent.WHY] == 0:
            descent.descend(rows.form, rows, variables, order, counts, numbers, 1, eps, True, 1000, 1 << 62, w)
        assert counts[descent.WHY] == why
        assert counts[descent.ACTIVE] == rows.n
    assert (variables[:, 0] == variables[:, 1]).all()


def test_rows_of_ones_have_a_loop_that_comes_to_the_same_bits() -> None:
    X = (np.random.default_rng(8).random((400, 30)) < 0.3).astype(np.float64)
    y = np.where(np.random.default_rng(9).random(400) < 0.5, 1.0, -1.0)
    rows = Rows.from_dense(X)
    assert descent.loop_for(rows) == "ones"
    assert descent.loop_for(Rows.from_dense(2.0 * X)) == "sparse"
    assert descent.loop_for(single(X)) == "dense"
    found = []
    for loop in ("ones", "sparse"):
        w, order = np.zeros(rows.n_features + 1), np.arange(rows.n)
        variables = np.stack([np.zeros(400), np.full(400, 0.7), rows.sqnorms(), y], axis=1)
        counts, numbers = np.empty(descent.N_COUNTS, np.int64), np.empty(descent.N_NUMBERS)
        descent.begin(order, counts, numbers, 1)
        descent.descend(loop, rows, variables, order, counts, numbers, 1, 1e-9, True, 50 * rows.n, 1 << 62, w)
        found.append((w.tobytes(), variables.tobytes(), order.tobytes()))
        assert w.any()
    assert found[0] == found[1]
