"""The smoothed hinge loss against its definition, row by row, however many pieces the rows make."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit import parallel
from svmkit.engine import smoothed
from svmkit.engine.smoothed import look, slope


def loss(z: float, C: float, centre: float, s: float) -> float:
    """C max {a z − (a − a′)²/2s : 0 ≤ a ≤ 1}, by trying many a."""
    a = np.linspace(0, 1, 100_001)
    return float(C * (a * z - (a - centre) ** 2 / (2 * s)).max())


@pytest.fixture(params=[1, 7, 16384])
def _pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoothed, "_PIECE_ROWS", request.param)


def rows(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    return {
        "products": rng.normal(0, 2, n),
        "centre": np.clip(rng.uniform(-0.5, 1.5, n), 0, 1),
        "upper": rng.uniform(0.1, 5, n),
        "y": np.where(rng.random(n) < 0.4, 1.0, -1.0),
    }


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("s", [0.3, 3.0])
def test_a_look_is_what_the_definitions_say(s: float) -> None:
    n, b = 200, -0.3
    given, alpha = rows(n), np.random.default_rng(1).uniform(0, 2, n)
    before = alpha.copy()
    seen = look(b=b, s=s, alpha=alpha, **given)
    z = 1 - given["y"] * (given["products"] + b)
    h = 1e-3
    for i, (C, centre) in enumerate(zip(given["upper"], given["centre"], strict=True)):
        across = (loss(z[i] + h, C, centre, s) - loss(z[i] - h, C, centre, s)) / (2 * h)
        assert alpha[i] == pytest.approx(across, abs=1e-3 * C * (1 + s))
    pulled = given["centre"] + s * z
    assert seen.pulled == pytest.approx(pulled, rel=1e-12)
    assert alpha == pytest.approx(given["upper"] * np.clip(pulled, 0, 1), rel=1e-12)
    assert seen.theta == pytest.approx(np.where((pulled > 0) & (pulled < 1), s * given["upper"], 0))
    assert 0 < np.count_nonzero(seen.theta) < n
    assert seen.change == pytest.approx(given["y"] * (alpha - before), abs=1e-12)
    assert seen.balance == pytest.approx(given["y"] @ alpha)
    assert seen.total == pytest.approx(alpha.sum())
    moved = alpha - given["upper"] * given["centre"]
    assert seen.way == pytest.approx(float(np.sum(moved**2 / (s * given["upper"]))))


@pytest.mark.usefixtures("_pieces")
def test_the_slope_is_the_difference_of_losses() -> None:
    n, s, t, h = 30, 2.0, 0.7, 1e-3
    given, along = rows(n), np.random.default_rng(2).normal(0, 1, n)
    seen = look(b=0.0, s=s, alpha=np.zeros(n), **given)

    def total(t: float) -> float:
        z = 1 - given["y"] * (given["products"] + t * along)
        return sum(loss(*each, s) for each in zip(z, given["upper"], given["centre"], strict=True))

    found = slope(seen.pulled, along, given["upper"], given["y"], s, t)
    assert found == pytest.approx((total(t + h) - total(t - h)) / (2 * h), rel=1e-3)


def test_threads_change_no_bit(threads: None) -> None:
    n = 100_000
    given, along, found = rows(n), np.random.default_rng(3).normal(0, 1, n), []
    for count in (1, 2, 3):
        parallel.use_threads(count)
        seen = look(b=0.1, s=3.0, alpha=np.zeros(n), **given)
        found.append((seen.balance, seen.total, seen.way, slope(seen.pulled, along, given["upper"], given["y"], 3.0, 0.5)))
    assert found[0] == found[1] == found[2]
