"""Rows that a round of Newton steps sets aside: the optimum, the smoothed loss and what is told on the way are as without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from zoo import points, problem

from svmkit.certificate import certify
from svmkit.data import Floats, Rows
from svmkit.problem import LINEAR, Bias, Kernel, Problem
from svmkit.solvers import newton, newton_samples, newton_state
from svmkit.solvers.base import run
from svmkit.trace import Status


def weighted(n: int, d: int, bias: Bias, C: float) -> Problem:
    X, y = points(n, d, seed=n)
    costs = C * np.random.default_rng(n).uniform(0.5, 2.0, n) * (np.arange(n) % 9 > 0)
    return replace(problem(X, y, Kernel(LINEAR), costs), bias=bias)


def from_few_rows(monkeypatch: pytest.MonkeyPatch, near: float) -> None:
    """Rows are set aside whatever their number, where their margin is more than ``near``/s from where the loss bends."""
    monkeypatch.setattr(newton_state, "_NEAR", near)
    monkeypatch.setattr(newton_state, "_FEW", 1)
    monkeypatch.setattr(newton_state, "_MANY_VALUES", 0)


def all_of(state: newton.State) -> tuple[Rows, Floats, Floats, Floats, Floats]:
    """All rows, y, C, the centre and α."""
    if state.aside is None:
        return state.rows, state.y, state.upper, state.centre, state.alpha
    alpha = state.aside.alpha.copy()
    alpha[state.aside.near] = state.alpha
    return state.aside.part.rows, state.aside.part.y, state.aside.part.upper, state.aside.centre, alpha


def smoothed_loss(state: newton.State, w: Floats, b: float) -> float:
    """Of all rows, from its definition, but that those set aside stay at the bound they are at."""
    rows, y, upper, centre, alpha = all_of(state)
    z = 1 - y * (rows.to_dense()[:, 1:] @ w + b)
    a = np.clip(centre + state.s * z, 0, 1)
    if state.aside is not None:
        far = np.ones(len(y), dtype=bool)
        far[state.aside.near] = False
        a[far] = alpha[far] / upper[far]
    return float(0.5 * w @ w + upper @ (a * z - (a - centre) ** 2 / (2 * state.s)))


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize(("near", "C"), [(8.0, 10.0), (1.0, 10.0), (0.0, 10.0), (0.0, 1000.0)])
def test_the_optimum_is_that_without(near: float, C: float, bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where steps of a round bring in rows that had been set aside: at 0 that is every row that comes to bend the loss."""
    case = weighted(400, 5, bias, C)
    plain = run(newton, case, newton.Options(), eps=1e-8)
    from_few_rows(monkeypatch, near)
    state, sizes = newton.start(case, newton.Options(), 1e-8, 0), set[int]()
    while not newton.advance(state, 1).ended:
        sizes.add(len(state.used))
        assert state.folded == pytest.approx(_folded(state), rel=1e-12, abs=1e-11 * C)
    assert state.done
    assert min(sizes) < 200 < max(sizes)
    certificate = certify(case, newton.solution(state))
    assert certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-9)
    assert certificate.violation <= 1e-8
    assert newton.primal(state) == pytest.approx(certificate.primal, rel=1e-12)


def _folded(state: newton.State) -> Floats:
    rows, y, _, _, alpha = all_of(state)
    return np.append(0.0, rows.to_dense()[:, 1:].T @ (y * alpha))


@pytest.mark.parametrize("bias", ["free", "none"])
def test_steps_are_those_on_all_rows_where_none_comes_back(bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same w and b after each, but for rounding: what is set aside counts in the slopes and in a step's length."""
    case = weighted(400, 5, bias, 100.0)
    plain, found = newton.start(case, newton.Options(), 1e-4, 0), newton.start(case, newton.Options(), 1e-4, 0)
    fewer = 0
    for _ in range(200):
        from_few_rows(monkeypatch, 60.0)
        some = newton.advance(found, 1)
        fewer += found.aside is not None
        monkeypatch.undo()
        everything = newton.advance(plain, 1)
        assert plain.aside is None
        assert found.s == plain.s
        assert found.w == pytest.approx(plain.w, rel=1e-7)
        assert found.b == pytest.approx(plain.b, rel=1e-7)
        assert (some.done, some.steps) == (everything.done, everything.steps)
        if some.done:
            break
    assert some.done
    assert fewer > 10


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_step_is_as_long_as_the_loss_of_all_rows_falls(bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    from_few_rows(monkeypatch, 8.0)
    state = newton.start(weighted(300, 4, bias, 100.0), newton.Options(), 1e-6, 0)
    before, seen = (np.inf, None), 0
    while not newton.advance(state, 1).ended:
        now = smoothed_loss(state, state.w[1:], state.b)
        kind = state.s, state.aside
        assert now <= before[0] * (1 + 1e-12) or kind != before[1]
        seen += state.aside is not None and kind == before[1]
        before = now, kind
    assert seen > 5


@pytest.mark.parametrize("longer", [1.0, 50.0])
@pytest.mark.parametrize("bias", ["free", "none"])
def test_what_steps_lose_on_rows_set_aside_is_taken_back(bias: Bias, longer: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that go far too long are gain where only the rows near count; all rows then go on from where they began."""
    from_few_rows(monkeypatch, 8.0)
    state = newton.start(weighted(300, 4, bias, 100.0), newton.Options(), 1e-6, 0)
    while state.aside is None:
        newton.advance(state, 1)
    aside = state.aside
    newton.advance(state, 1)
    assert state.aside is aside
    state.w, state.b = aside.w + longer * (state.w - aside.w), aside.b + longer * (state.b - aside.b)
    w, b = state.w, state.b
    newton_state.bring_back(state, aside)
    before, after = smoothed_loss(state, aside.w[1:], aside.b), smoothed_loss(state, w[1:], b)
    assert aside.loss == pytest.approx(before, rel=1e-12)
    assert (after > before) == (longer > 1)
    assert (state.w is (aside.w if longer > 1 else w), state.b) == (True, aside.b if longer > 1 else b)
    assert state.products == pytest.approx(state.rows.to_dense()[:, 1:] @ state.w[1:], rel=1e-9, abs=1e-9)
    assert newton.advance(state, 500).done


def test_steps_on_few_rows_with_huge_features_lead_nowhere_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they bend the loss so little that rounding decides, the objective is far below that of w = 0, as without."""
    from_few_rows(monkeypatch, 8.0)
    rng = np.random.default_rng(1081)
    for number in range(12):
        n, scale = 528, 10.0 ** rng.uniform(7, 8)
        X = scale * rng.standard_normal((n, 5))
        y = np.where(X @ rng.standard_normal(5) > 0, 1.0, -1.0)
        found = run(newton, problem(X, y, Kernel(LINEAR), 8000.0), newton.Options(), eps=1e-3)
        assert found.certificate.primal < 0.01 * n * 8000.0, number


def test_small_steps_on_few_rows_end_no_round_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows may promise much where those near have long promised next to nothing."""
    from_few_rows(monkeypatch, 8.0)
    state = newton.start(weighted(300, 4, "free", 100.0), newton.Options(), 1e-6, 0)
    while state.aside is None:
        newton.advance(state, 1)
    s = state.s
    newton_state.bring_back(state, state.aside)
    state.small = newton._MOST_SMALL + 1
    newton.advance(state, 1)
    assert (state.s, state.small) == (s, newton._MOST_SMALL + 1)


def test_what_is_told_on_the_way_is_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """α of a run cut short, in the box, at its bound where a row was set aside; and the α of least violation so far."""
    from_few_rows(monkeypatch, 8.0)
    monkeypatch.setattr(newton, "_LOOK_FROM", np.inf)
    case = weighted(300, 4, "free", 100.0)
    state = newton.start(case, newton.Options(), 1e-9, 0)
    looked_at = 0
    while not newton.advance(state, 1).ended:
        if state.aside is None:
            continue
        alpha = newton.solution(state).alpha
        assert alpha is not None
        assert ((alpha >= 0) & (alpha <= case.upper)).all()
        far = np.setdiff1d(state.aside.part.used, state.used)
        assert (np.minimum(alpha, case.upper - alpha)[far] == 0).all()
        assert (alpha[state.used] == state.upper * np.clip(state.pulled(), 0, 1)).all()
        nearest, violation = newton.nearest(state)
        assert len(nearest) == case.n
        if state.closed is not None:
            looked_at += 1
            assert violation < np.inf
            assert (nearest[state.aside.part.used] == state.closed.alpha).all()
    assert looked_at > 3


@pytest.mark.parametrize("bias", ["free", "none"])
def test_the_most_steps_end_with_all_rows(bias: Bias, monkeypatch: pytest.MonkeyPatch) -> None:
    from_few_rows(monkeypatch, 8.0)
    case = weighted(300, 4, bias, 100.0)
    state = newton.start(case, newton.Options(), 1e-9, 0)
    while state.aside is None:
        assert not newton.advance(state, 1).ended
    monkeypatch.setattr(newton, "MOST_STEPS", state.steps)
    progress = newton.advance(state, 10)
    assert progress.stalled
    assert state.aside is None
    found = newton.solution(state)
    assert found.alpha is not None
    assert certify(case, found).violation == pytest.approx(progress.violation, rel=1e-9)


@pytest.mark.parametrize("name", ["set_aside", "bring_back"])
def test_the_sum_of_products_is_of_its_rows_whatever_their_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from_few_rows(monkeypatch, 8.0)
    state = newton.start(weighted(300, 4, "free", 100.0), newton.Options(), 1e-6, 0)
    renumber, seen = getattr(newton, name), []

    def checked(state: newton.State, *more: newton_state.Aside) -> None:
        renumber(state, *more)
        inside = state.gram.inside
        assert inside.any()
        numbers = np.flatnonzero(inside) if state.which is None else state.which[inside]
        X, upper = state.rows.to_dense()[numbers, 1:], state.upper[inside]
        found = state.gram.over(inside, state.rows.take(numbers), upper, 1.0)
        assert found == pytest.approx(X.T @ (upper[:, None] * X), rel=1e-9)
        seen.append(len(state.used))

    monkeypatch.setattr(newton, name, checked)
    newton.advance(state, 200)
    assert state.done
    assert len(set(seen)) > (3 if name == "set_aside" else 0)


def test_samples_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    from_few_rows(monkeypatch, 8.0)
    monkeypatch.setattr(newton_samples, "_SAMPLES", (newton_samples.Size(0, 50, 6, 0.5, 256.0),))
    state = newton.start(weighted(400, 5, "free", 100.0), newton.Options(), 1e-6, 1)
    seen = 0
    while not newton.advance(state, 1).ended:
        assert state.aside is None or not state.wider
        seen += len(state.used) == 50
    assert seen > 5


def test_few_rows_and_few_values_stay_together() -> None:
    """They go alone where rows near are a quarter at most, and a look at all takes time."""
    small = newton.start(weighted(400, 5, "free", 100.0), newton.Options(), 1e-6, 0)
    while not newton.advance(small, 1).ended:
        assert small.aside is None


@pytest.mark.parametrize(("least", "most"), [(1, 100), (101, 400)])
def test_rows_are_set_aside_where_those_near_are_a_quarter_at_most(
    least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newton_state, "_MANY_VALUES", 400)
    X, y = points(400, 1, seed=3)
    state = newton.start(problem(X, y, Kernel(LINEAR), 1.0), newton.Options(), 1e-6, 0)
    state.s = 64.0
    for near in (least, most):
        state.products = state.y * np.where(np.arange(400) < near, 1.0, 3.0)
        newton_state.set_aside(state)
        assert (state.aside is not None) == (near <= 100)
        if state.aside is not None:
            assert state.used.tolist() == list(range(near))
            newton_state.bring_back(state, state.aside)
    state.products = 3.0 * state.y
    newton_state.set_aside(state)
    assert state.aside is None  # no row is near


def test_of_a_huge_cost_nothing_is_left_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    from_few_rows(monkeypatch, 8.0)
    X, y = points(100, 3, seed=2, noise=0.3)
    found = run(newton, problem(X, y, Kernel(LINEAR), 1e155), newton.Options(), eps=1e-3)
    assert found.status in (Status.STALLED, Status.CONVERGED)
    assert np.isfinite(found.solution.own.data).all()
