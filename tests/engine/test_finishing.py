"""The finishing of a dual over a few rows, by gradients recomputed from a dense K; and how it says that it has stalled."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import points

from svmkit.data import Floats, Rows
from svmkit.engine import finishing, reviews
from svmkit.engine.finishing import Finishing
from svmkit.engine.kernels import Engine
from svmkit.problem import LINEAR, RBF, Kernel


def begun(X: Floats, y: Floats, C: float, kernel: Kernel, eps: float) -> tuple[Finishing, Floats]:
    """From α = 0, and K."""
    engine = Engine(Rows.from_dense(X), kernel, "f8")
    every = np.arange(len(y))
    lower, upper = np.minimum(0.0, C * y), np.maximum(0.0, C * y)
    run = Finishing(engine, every, np.zeros(len(y)), y.copy(), lower, upper, eps)
    return run, engine.block(every, every)


def violation(alpha: Floats, g: Floats, y: Floats, C: float) -> float:
    return float(g[alpha < np.maximum(0.0, C * y)].max() - g[alpha > np.minimum(0.0, C * y)].min())


@pytest.mark.parametrize("budget", [400, 37])
def test_it_ends_at_the_tolerance_with_true_gradients(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that were left out on the way, too; ``point`` is right at any time."""
    monkeypatch.setattr(finishing, "_BLOCK", 64)
    X, y = points(700, 4, seed=3)
    run, K = begun(X, y, 1.0, Kernel(RBF, 0.5), 1e-4)
    left_out = 0
    while not run.ended:
        assert run.advance(budget) <= budget
        left_out = max(left_out, 700 - len(run._variables.active.number))
        alpha, g = run.point()
        if run._open is not None:
            here = run._variables.active.number[run._open.place]
            assert g[here] == pytest.approx((y - K @ alpha)[here], abs=1e-9)
    assert left_out > 100
    assert not run.stalled
    alpha, g = run.point()
    assert g == pytest.approx(y - K @ alpha, abs=1e-9)
    assert run.violation == pytest.approx(violation(alpha, g, y, 1.0), abs=1e-12)
    assert run.violation <= 1e-4
    assert abs(alpha.sum()) < 1e-9


def unscaled() -> tuple[Floats, Floats]:
    """One feature of values around 10^4 whose classes overlap: pair steps crawl."""
    rng = np.random.default_rng(1)
    y = np.where(np.arange(300) % 2 == 0, 1.0, -1.0)
    return (1e4 * (rng.normal(size=300) + 0.5 * y))[:, None], y


def test_a_violation_that_hardly_falls_is_said_to_have_stalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """After four reviews without a fifth less than when it last had fallen so far; gradients are true then."""
    monkeypatch.setattr(reviews, "_STEPS", 2_000)
    monkeypatch.setattr(finishing, "_BLOCK_STEPS", 500)
    X, y = unscaled()
    run, K = begun(X, y, 100.0, Kernel(LINEAR), 1e-9)
    least: list[float] = []
    while not run.ended:
        run.advance(500)
        least.append(run._least)
    assert run.stalled
    assert run.violation > 1e-9
    assert run.steps >= 4 * 2_000
    alpha, g = run.point()
    assert g == pytest.approx(y - K @ alpha, rel=1e-6, abs=1e-6 * float(np.abs(K @ alpha).max()))
