"""The feasible points that rounds of newton.py lead to."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit.data import Floats, Rows
from svmkit.problem import Bias
from svmkit.solvers.newton_point import point_at

N = 40
seeds = pytest.mark.parametrize("seed", range(8))


def examples(seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Features, labels, C_i, and shares of C_i, some 0 and some 1."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(N, 3)), np.resize([1.0, -1.0], N)
    return x, y, rng.uniform(0.5, 2.0, N), np.clip(rng.normal(0.5, 0.4, N), 0.0, 1.0)


@seeds
@pytest.mark.parametrize("bias", ["free", "none"])
def test_w_and_the_violation_are_those_of_alpha(seed: int, bias: Bias) -> None:
    x, y, upper, shares = examples(seed)
    point = point_at(Rows.from_dense(x), y, upper, shares, bias, 1.0)
    assert point is not None
    beta = y * point.alpha
    np.testing.assert_allclose(point.w[1:], x.T @ beta, rtol=1e-12)
    F = y - x @ point.w[1:]
    m, M = F[beta < np.maximum(0.0, y * upper)].max(), F[beta > np.minimum(0.0, y * upper)].min()
    if bias == "free":
        assert -point.rho == pytest.approx((m + M) / 2, rel=1e-12)
        assert point.violation == pytest.approx(m - M, rel=1e-12)
    else:
        assert point.rho == 0.0
        assert point.violation == pytest.approx(max(m, -M), rel=1e-12)


@seeds
def test_what_is_missing_is_shared_by_the_room_of_each(seed: int) -> None:
    x, y, upper, shares = examples(seed)
    before = upper * shares
    room, excess = np.minimum(before, upper - before), float(y @ before)
    assert 0 < abs(excess) < room.sum()
    point = point_at(Rows.from_dense(x), y, upper, shares, "free", 1.0)
    assert point is not None
    assert abs(float(y @ point.alpha)) < 1e-13
    np.testing.assert_allclose(point.alpha, before - y * room * (excess / room.sum()), rtol=1e-12)


def test_where_it_has_no_room_there_is_no_point() -> None:
    x, y, upper, shares = examples(0)
    at_bounds = np.round(shares)
    assert float(y @ (upper * at_bounds)) != 0
    assert point_at(Rows.from_dense(x), y, upper, at_bounds, "free", 1.0) is None


def test_what_rounding_has_taken_off_a_bound_is_at_it() -> None:
    y, upper = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), np.ones(6)
    shares = np.array([1.0 - 2.0**-52, 1.0 - 2.0**-52, 2.0**-52, 2.0**-52, 0.5, 0.5])
    point = point_at(Rows.from_dense(np.arange(6.0)[:, None]), y, upper, shares, "free", 1.0)
    assert point is not None
    assert point.alpha.tolist() == [1.0, 1.0, 0.0, 0.0, 0.5, 0.5]


def test_of_rows_at_their_bounds_b_lies_between_those_that_can_move() -> None:
    """Where all features are 0, F is y: positives at C can only fall, negatives at C only rise."""
    point = point_at(Rows.from_dense(np.zeros((4, 1))), np.array([1.0, -1.0, 1.0, -1.0]), np.ones(4), np.ones(4), "free", 1.0)
    assert point is not None
    assert (point.rho, point.violation) == (0.0, 0.0)


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_of_one_class_b_is_what_gives_every_row_its_margin(label: float) -> None:
    """As of a sample that has none of a rare class."""
    rows, y = Rows.from_dense(np.array([[1.0], [2.0]])), np.full(2, label)
    point = point_at(rows, y, np.ones(2), np.zeros(2), "free", 1.0)
    assert point is not None
    assert (point.rho, point.violation) == (-label, 0.0)
    assert not point.w.any()
