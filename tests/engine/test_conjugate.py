"""Wolfe's search ends where its two conditions hold, and the least-norm point is that of the hull."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit.data import Floats
from svmkit.engine.conjugate import Line, least_norm, search

FLAT, DECREASE = 0.1, 0.02


def some_line(seed: int, n: int = 60, lam: float = 0.1) -> Line:
    """A line as a solver sees it, along minus a subgradient of a random problem at a random point."""
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(n, 5)), rng.choice([-1.0, 1.0], n), rng.uniform(0.5, 1.5, n) / n
    here = rng.normal(size=5)
    m = y * (X @ here)
    g = lam * here - (w * y * (m < 1)) @ X
    return Line(m, y * (X @ -g), w, lam, float(here @ -g), float(g @ g))


def value(line: Line, t: float) -> float:
    """φ(t) less its part at t = 0 that is not the hinge, from the definition."""
    hinge = sum(w * max(0.0, 1.0 - m - t * s) for m, s, w in zip(line.margin, line.slope, line.weight, strict=True))
    return float(hinge + line.lam * (t * line.cross + 0.5 * t * t * line.square))


def slope(line: Line, t: float) -> float:
    below = line.margin + t * line.slope < 1
    return float(line.lam * (line.cross + t * line.square) - line.weight[below] @ line.slope[below])


@pytest.mark.parametrize("last", [1e-4, 0.1, 10.0, np.inf])
@pytest.mark.parametrize("seed", range(8))
def test_the_step_is_in_L_and_R(seed: int, last: float) -> None:
    line = some_line(seed)
    t, tried = search(line, last, 1e-12, 1e9, FLAT, DECREASE)
    assert t == tried > 0
    assert value(line, t) - value(line, 0.0) <= -DECREASE * line.square * t
    at_a_kink = slope(line, t * (1 - 1e-8)) < -FLAT * line.square < FLAT * line.square < slope(line, t)
    assert abs(slope(line, t)) <= FLAT * line.square or at_a_kink


def test_a_kink_that_jumps_over_R_is_stepped_just_across() -> None:
    line = Line(np.zeros(1), np.ones(1), np.ones(1), 1.0, 0.0, 1.0)  # max(0, 1 − t) + ½t²
    steep = Line(np.zeros(1), np.ones(1), np.ones(1), 1.8, 0.0, 0.5)  # falls by .1 before t = 1 and rises by .9 after
    assert search(line, 0.025, 1e-9, 10.0, FLAT, DECREASE)[0] == pytest.approx(0.95, abs=0.05)
    t, _ = search(steep, 0.025, 1e-9, 10.0, FLAT, DECREASE)
    assert 1.0 <= t <= 1.0 + 1e-8


def test_steps_stay_inside_the_radius() -> None:
    line = some_line(0)
    free, _ = search(line, 0.25, 1e-12, 1e9, FLAT, DECREASE)
    assert search(line, 0.25, 1e-12, free / 3, FLAT, DECREASE) == (free / 3, free / 3)


def test_where_no_step_gains_a_subgradient_beyond_is_named() -> None:
    line = Line(np.ones(1), -np.ones(1), np.ones(1), 1.0, -0.1, 0.1)  # rises at once: the hinge is at its corner
    t, tried = search(line, 1.25, 1e-6, 10.0, FLAT, DECREASE)
    assert t == 0.0
    assert 1e-6 <= tried <= 5.0
    assert slope(line, tried) >= -FLAT * 0.1


def test_the_first_trial_is_the_quadratic_minimiser_or_four_times_the_last_step() -> None:
    """Each is taken: the slope is 0 there, or with so large a ``flat`` flat enough."""
    line = Line(np.full(3, -9.0), np.ones(3), np.full(3, 1 / 3), 2.0, 0.0, 4.0)
    assert search(line, np.inf, 1e-9, 10.0, FLAT, DECREASE) == pytest.approx((1 / 8, 1 / 8))
    assert search(line, np.inf, 1e-9, 0.1, FLAT, DECREASE) == (0.1, 0.1)
    assert search(line, 0.02, 1e-9, 10.0, 10.0, DECREASE) == (0.08, 0.08)


@pytest.mark.parametrize("b", [1, 2, 3, 8, 20])
def test_least_norm_point_of_a_hull(b: int) -> None:
    rng = np.random.default_rng(b)
    G = rng.normal(size=(b, 12)) + 0.8
    theta = least_norm(G @ G.T, np.eye(b)[0])
    p = theta @ G
    assert theta.min() >= 0
    assert theta.sum() == pytest.approx(1.0, abs=1e-12)
    assert (G @ p).min() >= (1 - 1e-8) * (p @ p)  # no point of the hull is nearer to 0 along any g: p is the least


def test_least_norm_of_two_is_the_closed_form() -> None:
    g, h = np.array([3.0, 1.0]), np.array([-1.0, 1.0])
    share = (h @ h - g @ h) / ((g - h) @ (g - h))
    gram: Floats = np.array([[g @ g, g @ h], [g @ h, h @ h]])
    assert least_norm(gram, np.array([1.0, 0.0])) == pytest.approx([share, 1 - share])
    assert least_norm(np.diag([1.0, 0.0]), np.array([1.0, 0.0])) == pytest.approx([0.0, 1.0])
