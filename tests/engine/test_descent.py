"""Linear coordinate descent against its definition, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from zoo import points

from svmkit.data import Floats, Ints, Rows, dense_rows
from svmkit.engine import descent, rng


def single(X: Floats) -> Rows:
    """The dense form of rows."""
    return dense_rows(X.astype(np.float32))


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
    """Rows, every ninth empty, the plain descent on them and its variables in ours."""
    X, y = points(60, 37, seed=6)
    X[::9] = 0.0
    X = X.astype(np.float32).astype(np.float64)
    rows, upper = rows_of(X), np.random.default_rng(7).uniform(0.1, 2.0, len(y))
    return rows, Plain(X, y, upper), np.stack([np.zeros(len(y)), upper, rows.sqnorms(), y], axis=1)


@pytest.mark.parametrize("rows_of", [Rows.from_dense, single])
@pytest.mark.parametrize("budget", [10**9, 5])
@pytest.mark.parametrize("busy", [math.inf, 0.05])
@pytest.mark.parametrize(("above", "below"), [(math.inf, -math.inf), (0.3, -0.3)])
def test_a_sweep_is_the_plain_one(
    rows_of: Callable[[Floats], Rows], above: float, below: float, busy: float, budget: int
) -> None:  # fmt: skip
    rows, plain, variables = case(rows_of)
    n, w = rows.n, np.zeros(rows.n_features + 1)
    order, place, visits, n_busy = np.arange(n), np.array([0, n, 0, 0]), 0, []
    for number in range(6):
        rng.shuffle(1, number, order[: place[1]])
        before = len(order[: place[1]])
        bounds = np.array([above, below, busy, -math.inf, math.inf])
        active, aside, found, extremes = plain.sweep(order[: place[1]].tolist(), bounds.tolist())
        place[0] = place[3] = 0
        while place[0] < place[1]:
            used = descent.sweep(rows, variables, order, place, bounds, budget, w)
            assert 0 < used <= budget
            visits += used
        assert sorted(order[: place[1]].tolist()) == sorted(active)
        assert order[place[1] : before].tolist() == aside[::-1]
        assert order[: place[3]].tolist() == found
        n_busy.append(len(found))
        np.testing.assert_allclose(variables[:, 0], plain.alpha, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(w[1:], plain.w, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(bounds[3:], extremes, rtol=1e-10, atol=1e-12)
    if above < math.inf:
        assert place[1] < n
    else:
        assert visits == 6 * n
    assert 0 < n_busy[-1] < n if busy < math.inf else not any(n_busy)
    assert (variables[::9, 0] == plain.upper[::9]).all()


@pytest.mark.parametrize("rows_of", [Rows.from_dense, single])
@pytest.mark.parametrize("budget", [10**9, 4])
def test_a_few_are_visited_in_turn_until_they_are_settled(rows_of: Callable[[Floats], Rows], budget: int) -> None:
    rows, plain, variables = case(rows_of)
    few, goal = np.array([7, 31, 5, 0, 44]), 1e-3
    rounds, largest = 0, math.inf
    while largest > goal:
        largest = 0.0
        for i in few:
            largest = max(largest, abs(plain.gradients(i)[1]))
            plain.step(i)
        rounds += 1
    assert rounds > 3
    w, place, met = np.zeros(rows.n_features + 1), np.array([len(few)]), np.array([math.inf])
    visits, used = 0, budget
    while used == budget:
        used = descent.settle(rows, variables, few, place, met, goal, budget, w)
        visits += used
    assert visits == rounds * len(few)
    np.testing.assert_allclose(variables[:, 0], plain.alpha, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(w[1:], plain.w, rtol=1e-11, atol=1e-13)


def test_those_that_do_not_settle_end_with_the_budget() -> None:
    rows, plain, variables = case(Rows.from_dense)
    few: Ints = np.array([7, 31, 5])
    place, met = np.array([3]), np.array([math.inf])
    assert descent.settle(rows, variables, few, place, met, -1.0, 301, np.zeros(rows.n_features + 1)) == 301
    assert place.tolist() == [1]
    for i in np.resize(few, 301):
        plain.step(i)
    np.testing.assert_allclose(variables[:, 0], plain.alpha, rtol=1e-12, atol=1e-13)
