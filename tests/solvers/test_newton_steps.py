"""Steps of the augmented Lagrangian: Newton's equations, lengths, and what makes them faster and changes no answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from zoo import points, problem

from svmkit.certificate import kkt_violation
from svmkit.data import Floats, dense_rows
from svmkit.engine import weighted as equations
from svmkit.problem import LINEAR, Bias, Kernel, Problem
from svmkit.solvers import newton, newton_state
from svmkit.solvers.base import run


def weighted(n: int, d: int, bias: Bias, C: float = 1.0) -> Problem:
    X, y = points(n, d, seed=n)
    return replace(problem(X, y, Kernel(LINEAR), C * np.random.default_rng(n).uniform(0.5, 2.0, n)), bias=bias)


def smoothed_loss(state: newton.State, w: Floats, b: float) -> float:
    """½‖w‖² + Σ C_i (a_i² − a′_i²)/2s + … as a function of w and b, from its definition: a maximum over each a_i in [0, 1]."""
    Z, y = state.rows.to_dense()[:, 1:], state.y
    z = 1 - y * (Z @ w + b)
    a = np.clip(state.centre + state.s * z, 0, 1)
    return float(0.5 * w @ w + state.upper @ (a * z - (a - state.centre) ** 2 / (2 * state.s)))


def slopes(state: newton.State, w: Floats, b: float) -> Floats:
    """Of the smoothed loss along w and b, by differences."""
    place = np.append(w, b)
    steps = 1e-6 * np.eye(len(place))
    up, down = ([smoothed_loss(state, *(lambda at: (at[:-1], at[-1]))(place + k * step)) for step in steps] for k in (1, -1))
    return (np.array(up) - np.array(down)) / 2e-6


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize(("n", "d"), [(40, 4), (12, 30)])
def test_a_newton_step_solves_all_equations(n: int, d: int, bias: Bias) -> None:
    """H Δ = −slope with H of order d + 1 or d, from dense matrices, in every round, also where rows are fewer than features."""
    case = weighted(n, d, bias)
    state = newton.start(case, newton.Options(), 1e-9, 0)
    X = np.column_stack([state.rows.to_dense()[:, 1:], np.ones(n)])
    curved = np.append(np.ones(d), 0.0)
    for _ in range(9):
        pulled = state.pulled()
        theta = np.where((pulled > 0) & (pulled < 1), state.s * state.upper, 0.0)
        slope = np.append(state.w[1:], state.b) * curved - X.T @ (state.y * state.upper * np.clip(pulled, 0, 1))
        H = np.diag(curved) + X.T @ (theta[:, None] * X)
        if bias == "none":
            H, slope = H[:d, :d], slope[:d]
        found = newton._newton(state, theta, np.append(0.0, slope[:d]), float(slope[d]) if bias == "free" else 0.0)
        assert found is not None
        step = np.append(found[0][1:], found[1])[: len(slope)]
        assert step == pytest.approx(np.linalg.solve(H, -slope), rel=1e-8, abs=1e-10)
        newton.advance(state, 1)
    assert state.s > newton_state.FIRST_S


def test_where_no_row_bends_the_loss_b_goes_as_if_one_did() -> None:
    """The minimum along b of slope·b + ½ s C̄ b², and w where it would be without any row."""
    state = newton.start(weighted(40, 4, "free", C=3.0), newton.Options(), 1e-9, 0)
    slope = np.append(0.0, np.arange(1.0, 5.0))
    found = newton._newton(state, np.zeros(40), slope, 7.0)
    assert found is not None
    assert found[0] == pytest.approx(-slope)
    assert found[1] == pytest.approx(-7.0 / (state.s * state.upper.mean()))


@pytest.mark.parametrize("bias", ["free", "none"])
def test_steps_go_down_the_smoothed_loss_and_rounds_end_where_it_is_flat(bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flat beside the way from the centre, Σ (α_i − α′_i)²/(s C_i)."""
    case = weighted(80, 5, bias, C=30.0)
    state = newton.start(case, newton.Options(), 1e-4, 0)
    end_round, close, rounds, looks = newton._end_round, newton._close, list[bool](), list[float]()

    def looked_at(state: newton.State) -> None:
        moved = np.clip(state.pulled(), 0, 1) - state.centre
        way = float(state.upper @ moved**2) / state.s
        slope = slopes(state, state.w[1:], state.b)[: 6 if bias == "free" else 5]
        weight = np.append(np.ones(5), 1 / (state.s * state.upper.sum()))[: len(slope)]
        rounds.append(weight @ slope**2 <= way + 1e-4)
        came_to = np.clip(state.pulled(), 0, 1)
        end_round(state)
        assert state.centre == pytest.approx(came_to, abs=1e-9)

    def near(state: newton.State) -> None:
        beta = state.y * state.upper * state.centre
        looks.append(kkt_violation(state.y - state.products, beta, state.y, state.upper, bias))
        close(state)

    monkeypatch.setattr(newton, "_end_round", looked_at)
    monkeypatch.setattr(newton, "_close", near)
    before, s = np.inf, 0.0
    while not newton.advance(state, 1).ended:
        now = smoothed_loss(state, state.w[1:], state.b)
        assert now <= before or state.s != s
        before, s = now, state.s
    assert state.done
    assert len(rounds) > 5
    assert all(rounds)
    assert 0 < len(looks) < len(rounds)
    assert max(looks) <= 3.001e-4  # each takes two products a row


def test_a_step_is_as_long_as_the_smoothed_loss_falls() -> None:
    """Along any direction: what is left of the slope there is a tenth at most."""
    case = weighted(60, 3, "free", C=100.0)
    rng = np.random.default_rng(4)
    for size in (1e-3, 0.1, 10.0):
        state = newton.start(case, newton.Options(), 1e-9, 0)
        newton.advance(state, 3)
        w, b = state.w[1:], state.b
        down = -np.sign(slopes(state, w, b)) * size * rng.uniform(0.5, 1.5, 4)
        along = state.rows.to_dense()[:, 1:] @ down[:3] + down[3]
        before = slopes(state, w, b) @ down
        length = newton._length(state, state.pulled(), np.append(0.0, down[:3]), along, 0.0, -before)
        left = slopes(state, w + length * down[:3], b + length * down[3]) @ down
        assert abs(left) <= 0.1 * abs(before) + 1e-4
        assert newton._length(state, state.pulled(), np.append(0.0, -down[:3]), -along, 0.0, before) == 0.0


def test_few_rows_between_the_bounds_are_copied_and_change_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    case = weighted(300, 6, "free", C=10.0)
    found = []
    for few in (1, 10**9):
        monkeypatch.setattr(equations, "_FEW_ROWS", few)
        result = run(newton, case, newton.Options(), eps=1e-6)
        found.append((result.steps, result.solution.own.data, result.solution.rho))
    assert found[0][0] == found[1][0]
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-9)
    assert found[0][2] == pytest.approx(found[1][2], rel=1e-9)


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_steps_solved_in_float32_lead_to_the_same_optimum(C: float, bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equations, "_MANY", 1)
    case, found = weighted(500, 8, bias, C), []
    case = replace(case, rows=dense_rows(case.rows.to_dense()[:, 1:].astype(np.float32)))
    for most in (equations._MOST_ROUNDED, 0.0):
        monkeypatch.setattr(equations, "_MOST_ROUNDED", most)
        state = newton.start(case, newton.Options(), 1e-8, 0)
        assert newton.advance(state, 400).done
        found.append(newton.solution(state))
    assert found[0].own.data == pytest.approx(found[1].own.data, rel=1e-6, abs=1e-9)
    assert found[0].rho == pytest.approx(found[1].rho, rel=1e-6, abs=1e-9)
