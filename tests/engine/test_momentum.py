"""The best point of one or two moves, against the equations it solves."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit.data import Floats
from svmkit.engine.momentum import Move, farther, gains, noise


def quadratic(seed: int) -> tuple[Floats, Floats, Floats]:
    """K, β and F = 1 − Kβ."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(12, 12))
    K, beta = A @ A.T, rng.normal(size=12)
    return K, beta, 1.0 - K @ beta


def moves(K: Floats, seed: int, count: int) -> list[Move]:
    return [Move(d, -K @ d) for d in np.random.default_rng(seed).normal(size=(count, 12))]


@pytest.mark.parametrize("count", [1, 2])
def test_there_the_gradient_is_across_all_moves(count: int) -> None:
    K, beta, F = quadratic(1)
    given = moves(K, 2, count)
    found = farther(F, given)
    assert found is not None
    np.testing.assert_allclose(found.F, -K @ found.beta, rtol=1e-12)
    after = 1.0 - K @ (beta + found.beta)
    for move in given:
        assert abs(after @ move.beta) < 1e-10 * np.abs(F @ move.beta)
    lengths = np.linalg.lstsq(np.array([move.beta for move in given]).T, found.beta, rcond=None)
    assert lengths[1].max() < 1e-20  # it lies in their plane
    assert gains(beta, F, found)
    assert not gains(beta, F, Move(-found.beta, -found.F))


@pytest.mark.parametrize("off", [0.0, 1e-9])
def test_two_moves_along_one_line_are_one(off: float) -> None:
    K, _, F = quadratic(3)
    first, other = moves(K, 4, 2)
    twice = Move(-2.0 * first.beta + off * other.beta, -2.0 * first.F + off * other.F)
    found, alone = farther(F, [first, twice]), farther(F, [first])
    assert found is not None
    assert alone is not None
    assert np.array_equal(found.beta, alone.beta)
    assert np.array_equal(found.F, alone.F)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan, 1e160])
def test_where_no_point_is_best_there_is_none(scale: float) -> None:
    """K bends the other way along a move, not at all, or is no number; also of the second move alone."""
    K, _, F = quadratic(5)
    first, second = moves(K, 6, 2)
    with np.errstate(invalid="ignore"):
        bad = Move(scale * second.beta, (scale * second.F) if scale >= 0 else second.F)
    with np.errstate(over="ignore", invalid="ignore"):
        assert farther(F, [bad]) is None
        assert farther(F, [first, bad]) is None


def test_a_gain_that_is_next_to_nothing_is_none() -> None:
    K, beta, F = quadratic(7)
    (move,) = moves(K, 8, 1)
    sign = np.sign(F @ move.beta)
    for share, gained in ((1e-9, True), (1e-30, False)):
        assert gains(beta, F, Move(sign * share * move.beta, sign * share * move.F)) == gained


@pytest.mark.parametrize("scale", [1e-150, 1e140])
def test_moves_of_any_size_lead_to_the_same_point(scale: float) -> None:
    """Also where the product of their curvatures is no number."""
    K, _, F = quadratic(9)
    given = moves(K, 10, 2)
    found, same = farther(F, [Move(scale * move.beta, scale * move.F) for move in given]), farther(F, given)
    assert found is not None
    assert same is not None
    np.testing.assert_allclose(found.beta, same.beta, rtol=1e-9)


def test_noise_is_what_rounding_leaves_of_the_way() -> None:
    """A move that K does not bend: from its best point, 10⁹ away, back to 1 away, F is off by about so much."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=12)
    K, along = 1e3 * np.outer(x, x), np.where(np.arange(12) == 0, x[1], np.where(np.arange(12) == 1, -x[0], 0.0))
    more = Move(1e9 * along, -K @ (1e9 * along))
    back = -(1e9 - 1.0) * along
    F = 1.0 - K @ rng.normal(size=12)
    off = np.abs((F + more.F - K @ back) - (F - K @ along)).max()
    assert 0 < off <= noise(more, float(K.diagonal().max())) <= 1e4 * off
    assert noise(Move(1e3 * more.beta, 1e3 * more.F), 1.0) == pytest.approx(1e3 * noise(more, 1.0))
