"""Wolfe's search ends where its two conditions hold, and the least-norm point is that of the hull."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit.data import Floats
from svmkit.engine.conjugate import Line, least_norm, search

FLAT, DECREASE = 0.1, 0.02


def some_line(seed: int, n: int = 60, lam: float = 0.1) -> tuple[Line, float]:
    """A line as a solver sees it, along minus a subgradient of a random problem at a random point; and ‖d‖²."""
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(n, 5)), rng.choice([-1.0, 1.0], n), rng.uniform(0.5, 1.5, n) / n
    here = rng.normal(size=5)
    m = y * (X @ here)
    g = lam * here - (w * y * (m < 1)) @ X
    return Line(m, y * (X @ -g), w, lam, float(here @ -g), float(g @ g)), float(g @ g)


def value(line: Line, t: float) -> float:
    """φ(t) less its part at t = 0 that is not the hinge, from the definition."""
    hinge = sum(w * max(0.0, 1.0 - m - t * s) for m, s, w in zip(line.margin, line.slope, line.weight, strict=True))
    return float(hinge + line.lam * (t * line.cross + 0.5 * t * t * line.curvature))


def slope(line: Line, t: float) -> float:
    below = line.margin + t * line.slope < 1
    return float(line.lam * (line.cross + t * line.curvature) - line.weight[below] @ line.slope[below])


@pytest.mark.parametrize("seed", range(5))
def test_value_and_slope_along_a_line(seed: int) -> None:
    line, square = some_line(seed)
    assert slope(line, 0.0) == pytest.approx(-square)
    for t in (0.0, 0.3, 2.0, 50.0):
        assert line.at(t) == pytest.approx((value(line, t), slope(line, t)), rel=1e-12)


@pytest.mark.parametrize("first", [1e-4, 0.3, 10.0, 1e5])
@pytest.mark.parametrize("seed", range(8))
def test_the_step_is_in_L_and_R(seed: int, first: float) -> None:
    line, square = some_line(seed)
    t, tried = search(line, square, first, 1e-12, 1e9, FLAT, DECREASE)
    assert t == tried > 0
    assert value(line, t) - value(line, 0.0) <= -DECREASE * square * t
    at_a_kink = slope(line, t * (1 - 1e-8)) < -FLAT * square < FLAT * square < slope(line, t)
    assert abs(slope(line, t)) <= FLAT * square or at_a_kink


def test_a_kink_that_jumps_over_R_is_stepped_just_across() -> None:
    line = Line(np.zeros(1), np.ones(1), np.ones(1), 0.1, 0.0, 10.0)  # max(0, 1 − t) + ½t²
    steep = Line(np.zeros(1), np.ones(1), np.ones(1), 0.09, 0.0, 10.0)  # falls by .1 before t = 1 and rises by .9 after
    assert search(line, 1.0, 0.1, 1e-9, 10.0, FLAT, DECREASE)[0] == pytest.approx(0.95, abs=0.05)
    t, _ = search(steep, 0.5, 0.1, 1e-9, 10.0, 0.1, DECREASE)
    assert 1.0 <= t <= 1.0 + 1e-8


def test_steps_stay_inside_the_radius() -> None:
    line, square = some_line(0)
    free, _ = search(line, square, 1.0, 1e-12, 1e9, FLAT, DECREASE)
    assert search(line, square, 1.0, 1e-12, free / 3, FLAT, DECREASE) == (free / 3, free / 3)


def test_where_no_step_gains_a_subgradient_beyond_is_named() -> None:
    line = Line(np.ones(1), -np.ones(1), np.ones(1), 0.1, -1.0, 1.0)  # rises at once: the hinge is at its corner
    t, tried = search(line, 0.1, 5.0, 1e-6, 10.0, FLAT, DECREASE)
    assert t == 0.0
    assert 1e-6 <= tried <= 5.0
    assert slope(line, tried) >= -FLAT * 0.1


def test_the_first_trial_is_the_quadratic_minimiser() -> None:
    line = Line(np.full(3, -9.0), np.ones(3), np.full(3, 1 / 3), 2.0, 0.0, 4.0)
    assert line.first(10.0) == pytest.approx(1 / 8)
    assert line.first(0.1) == 0.1


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
