"""Corners of the face of optima of a quadratic of low rank: few free variables, and nothing that matters has moved."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit import parallel
from svmkit.data import Bools, Floats
from svmkit.engine.corner import corner


def amidst(n: int, rank: int, seed: int, nearest: float = 1.0) -> tuple[Floats, Floats, Floats, Floats]:
    """L of columns of very different lengths, and β of which a tenth is at an end; boxes from 0 up, down, and both ways.

    The others are ``nearest``, as a share of their box, to the lower end or farther in.
    """
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, rank)) * 10.0 ** -np.linspace(0.0, 5.0, rank)
    size = 10.0 ** rng.uniform(-2.0, 2.0, n)
    kind = rng.integers(0, 3, n)
    lower, upper = np.where(kind == 0, 0.0, -size), np.where(kind == 1, 0.0, 2.0 * size)
    beta = lower + rng.random(n) * nearest ** rng.random(n) * (upper - lower)
    beta[::20], beta[10::20] = lower[::20], upper[10::20]
    return L, beta, lower, upper


def are_free(beta: Floats, lower: Floats, upper: Floats) -> Bools:
    return (lower < beta) & (beta < upper)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("nearest", [1.0, 1e-12])
@pytest.mark.parametrize(("n", "rank"), [(300, 1), (300, 7), (1000, 40), (90, 40)])
def test_no_more_are_free_than_the_rank_and_nothing_else_changes(n: int, rank: int, nearest: float, bias: bool) -> None:
    L, beta, lower, upper = amidst(n, rank, rank, nearest)
    found = corner(L, beta, lower, upper, bias)
    assert (lower <= found).all()
    assert (found <= upper).all()
    assert np.count_nonzero(are_free(found, lower, upper)) <= rank + bias < np.count_nonzero(are_free(beta, lower, upper))
    size = float(np.abs(beta).sum())
    assert (np.abs(L.T @ (found - beta)) <= 1e-14 * size * np.abs(L).max()).all()
    if bias:
        assert abs(float((found - beta).sum())) <= 1e-14 * size
    at_end = ~are_free(beta, lower, upper)
    assert np.array_equal(found[at_end], beta[at_end])


def test_of_rows_that_are_alike_as_few_are_left_as_can_be() -> None:
    n = 50
    found = corner(np.ones((n, 1)), np.full(n, 0.3), np.zeros(n), np.ones(n), False)
    assert sorted(found) == pytest.approx([0.0] * 35 + [1.0] * 15)


def test_each_goes_to_the_end_that_is_nearer_to_0() -> None:
    """Where nothing holds it: without a bias, rows of 0."""
    lower, upper = np.array([-1.0, 0.0, -1.0, -2.0]), np.array([0.0, 1.0, 2.0, 1.0])
    found = corner(np.zeros((4, 1)), 0.5 * (lower + upper), lower, upper, False)
    assert found.tolist() == [0.0, 0.0, -1.0, 1.0]


def test_rows_that_depend_on_one_another_leave_fewer_free() -> None:
    L, beta, lower, upper = amidst(400, 10, seed=5)
    L[:, 5:] = 2.0 * L[:, :5]
    found = corner(L, beta, lower, upper, True)
    assert np.count_nonzero(are_free(found, lower, upper)) <= 6


def test_at_a_corner_it_stays() -> None:
    L, beta, lower, upper = amidst(300, 8, seed=2)
    found = corner(L, beta, lower, upper, True)
    assert np.array_equal(corner(L, found, lower, upper, True), found)


def test_it_can_be_left() -> None:
    L, beta, lower, upper = amidst(300, 8, seed=2)
    with pytest.raises(parallel.Left), parallel.heeding(lambda: True), parallel.leavable():
        corner(L, beta, lower, upper, True)
