"""Water levels against linear programmes, and the kept level against the one found by sorting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import scipy.optimize
from hypothesis import example, given, settings
from hypothesis import strategies as st

from svmkit.data import Floats
from svmkit.engine import level

BASINS = pytest.mark.parametrize("basins", [1, 2])


class Pool(NamedTuple):
    """Responses, positives first, and their weights."""

    c: Floats
    weight: Floats
    positives: int

    @property
    def y(self) -> Floats:
        return np.where(np.arange(len(self.c)) < self.positives, 1.0, -1.0)


def pool(n: int, positives: int, seed: int, *, tied: bool, weighted: bool) -> Pool:
    rng = np.random.default_rng(seed)
    c = rng.integers(-2, 3, n).astype(np.float64) if tied else rng.normal(size=n)
    return Pool(c, rng.uniform(0.1, 3.0, n) if weighted else np.ones(n), positives)


POOLS = [
    pool(n, positives, seed, tied=tied, weighted=weighted)
    for n, positives in ((2, 1), (9, 1), (30, 13), (30, 28))
    for seed in (0, 1)
    for tied in (False, True)
    for weighted in (False, True)
]


def highest_level(asked: Pool, basins: int, volume: float) -> tuple[float, float, float]:
    """max γ over γ, b, ξ ≥ 0 with Σ weight·ξ ≤ volume, c_i + y_i b + ξ_i ≥ γ; and the least and the largest b at it."""
    n = len(asked.c)
    shortfall = np.hstack([np.ones((n, 1)), -asked.y[:, None], -np.eye(n)])
    A, limits = np.vstack([shortfall, np.r_[0.0, 0.0, asked.weight]]), np.r_[asked.c, volume]
    biases = (None, None) if basins == 2 else (0.0, 0.0)
    free = [(None, None), biases, *[(0.0, None)] * n]
    best = scipy.optimize.linprog(np.r_[-1.0, np.zeros(n + 1)], A, limits, bounds=free)
    fixed = [(-best.fun - 1e-9, None), *free[1:]]
    ends = [scipy.optimize.linprog(np.r_[0.0, sign, np.zeros(n)], A, limits, bounds=fixed).fun * sign for sign in (1.0, -1.0)]
    return -best.fun, *ends


@BASINS
@pytest.mark.parametrize("asked", POOLS)
@pytest.mark.parametrize("volume", [0.01, 1.0, 40.0])
def test_the_level_is_the_highest_there_is(asked: Pool, basins: int, volume: float) -> None:
    found = level.fill_volume(*asked, basins, volume)
    highest, least, most = highest_level(asked, basins, volume)
    assert found.level == pytest.approx(highest, abs=1e-7)
    assert found.b == pytest.approx((least + most) / 2, abs=1e-6)
    under = np.maximum(0.0, found.level - asked.c - asked.y * found.b)
    assert asked.weight @ under == pytest.approx(volume)
    assert found.volume == pytest.approx(volume)


def least_loss(asked: Pool, basins: int, push: float) -> float:
    """min over s > 0 and b of push·s²/2 + Σ weight·max(0, 1 − s c_i − b y_i): b among its kinks, s by search."""

    def at(s: float) -> float:
        biases = asked.y * (1 - s * asked.c) if basins == 2 else [0.0]
        return push * s * s / 2 + min(asked.weight @ np.maximum(0.0, 1 - s * asked.c - b * asked.y) for b in biases)

    found = scipy.optimize.minimize_scalar(at, bounds=(0.0, 50.0), method="bounded", options={"xatol": 1e-9})
    return min(float(found.fun), at(0.0))


@BASINS
@pytest.mark.parametrize("asked", POOLS)
@pytest.mark.parametrize("push", [0.1, 10.0])
def test_the_margin_is_that_of_the_best_multiple(asked: Pool, basins: int, push: float) -> None:
    found = level.fill_margin(*asked, basins, push)
    s = 1 / found.level
    loss = asked.weight @ np.maximum(0.0, 1 - s * (asked.c + asked.y * found.b)) + push * s * s / 2
    nothing = asked.weight.sum() if basins == 1 else 2 * min(asked.weight[asked.y > 0].sum(), asked.weight[asked.y < 0].sum())
    if found == level.NO_LEVEL:
        loss = nothing
    else:
        assert asked.weight @ np.maximum(0.0, found.level - asked.c - asked.y * found.b) == pytest.approx(found.volume)
    assert loss == pytest.approx(least_loss(asked, basins, push), rel=1e-6)


@pytest.mark.parametrize(
    ("c", "level_then"), [([0.0, 1.0, 2.0], 1.0), ([-1.0, 1.0, 3.0], 3.0), ([0.0, 0.0, 0.0], np.inf), ([1.0, 2.0, 3.0], 1.0)]
)
def test_the_margin_where_w_has_no_length(c: list[float], level_then: float) -> None:
    """Responses of any size from ‖w‖ = 0, as rounding may leave them: a covered Σ weight·c of 0 alone says nothing of s."""
    found = level.fill_margin(np.array(c), np.ones(3), 3, 1, 0.0)
    assert found.level == level_then


# --- the level that is kept from step to step -----------------------------------------------------------------------------


def kept(asked: Pool, basins: int, nu: float, scale: float = 1.0) -> tuple[Floats, np.ndarray]:
    numbers, counts = np.zeros(level.N_NUMBERS), np.zeros(level.N_COUNTS, np.int64)
    numbers[[level.SCALE, level.NU]] = scale, nu
    counts[[level.POSITIVES, level.BASINS]] = asked.positives, basins
    return numbers, counts


def move(asked: Pool, numbers: Floats, counts: np.ndarray) -> None:
    level.find_level(asked.c, asked.weight, np.empty((2, len(asked.c))), numbers, counts)


def assert_level(asked: Pool, numbers: Floats, counts: np.ndarray) -> None:
    """Edges at the best level; what they cover has the volume and the mean that are said, and as much of either class."""
    volume, basins = numbers[level.NU] * len(asked.c) / numbers[level.SCALE], int(counts[level.BASINS])
    best = level.fill_volume(*asked, basins, volume)
    size = 1e-9 * (1 + np.abs(asked.c).max() + abs(best.level))
    u, v = numbers[[level.EDGE, level.EDGE_NEGATIVE]]
    assert (u + v) / 2 == pytest.approx(best.level, abs=size)
    edge = np.where(asked.y > 0, u, v)
    share = np.where(asked.y > 0, *numbers[[level.ON_EDGE, level.ON_EDGE_NEGATIVE]])
    covered = asked.weight * np.where(asked.c < edge, 1.0, np.where(asked.c == edge, share, 0.0))
    rounding = level.ROUNDING * (abs(u + v) + max(abs(u), abs(v))) * (asked.weight @ (asked.c <= edge))  # of the edges
    assert asked.weight @ np.maximum(0.0, edge - asked.c) == pytest.approx(volume, rel=1e-6, abs=rounding)
    if basins == 1:  # a response that is the edge itself adds no volume, and may count or not
        assert u == v
        below, touched = asked.weight * (asked.c < u - size), asked.weight * (asked.c <= u + size)
        least, most = (counted @ asked.c / counted.sum() if counted.sum() > 0 else u for counted in (below, touched))
        assert least - size <= numbers[level.MEAN] <= most + size
    else:
        assert numbers[level.MEAN] == pytest.approx(covered @ asked.c / covered.sum(), abs=size)
        assert covered[asked.y > 0].sum() == pytest.approx(covered[asked.y < 0].sum(), abs=1e-9 * asked.weight.sum())


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    n = draw(st.integers(2, 60))
    tied, weighted = draw(st.booleans()), draw(st.booleans())
    return pool(n, draw(st.integers(1, n - 1)), draw(st.integers(0, 10**6)), tied=tied, weighted=weighted)


@BASINS
@settings(max_examples=150, deadline=None)
@example(  # one of the levels is a response that four examples have
    asked=Pool(np.array([-2.0, -2, -1, -1, -1, -2, 1, -2, 2]), np.ones(9), 1), nu=0.5, scale=0.25, seed=0
)
@given(asked=pools(), nu=st.sampled_from([1e-6, 0.03, 0.5, 8.0]), scale=st.sampled_from([1.0, 0.25]), seed=st.integers(0, 99))
def test_the_kept_level_follows_whatever_changes(basins: int, asked: Pool, nu: float, scale: float, seed: int) -> None:
    """From nothing, then for other responses, a little and far off, and another volume."""
    rng = np.random.default_rng(seed)
    numbers, counts = kept(asked, basins, nu, scale)
    for change in (0.0, 0.01, 0.01, 3.0, 1e3, 1e-3):
        asked = asked._replace(c=asked.c + change * rng.integers(-1, 2, len(asked.c)))
        move(asked, numbers, counts)
        assert_level(asked, numbers, counts)
        numbers[level.NU] *= rng.choice([0.1, 1.0, 1.0, 5.0])


@BASINS
def test_many_responses_far_more_than_a_window_holds(basins: int) -> None:
    asked = pool(20_000, 7000, 3, tied=False, weighted=True)
    numbers, counts = kept(asked, basins, 0.2)
    for _ in range(20):
        move(asked, numbers, counts)
        assert_level(asked, numbers, counts)
        asked = asked._replace(c=asked.c + np.random.default_rng(4).normal(scale=0.01, size=20_000))


def test_all_responses_equal_are_covered_alike() -> None:
    """Ten against thirty at 0: the rarer class sinks whole, a third of the other lies on the edge."""
    asked = Pool(np.zeros(40), np.ones(40), 10)
    numbers, counts = kept(asked, 2, 0.5)
    move(asked, numbers, counts)
    assert_level(asked, numbers, counts)
    assert numbers[[level.EDGE, level.EDGE_NEGATIVE]] == pytest.approx([2.0, 0.0])
    assert numbers[[level.ON_EDGE, level.ON_EDGE_NEGATIVE]] == pytest.approx([0.0, 1 / 3])


def test_where_many_biases_are_best_the_edges_stand_in_their_middle() -> None:
    """One response of each class is covered; either edge may lie 0 … 2 above it, together 2."""
    c, weight = np.array([0.0, 10.0, 0.0, 10.0]), np.ones(4)
    numbers, counts = np.zeros(level.N_NUMBERS), np.zeros(level.N_COUNTS, np.int64)
    counts[[level.POSITIVES, level.BASINS]] = 2, 2
    numbers[[level.SCALE, level.NU]] = 1.0, 2.0 / 4
    level.find_level(c, weight, np.empty((2, 4)), numbers, counts)
    assert numbers[[level.EDGE, level.EDGE_NEGATIVE]].tolist() == [1.0, 1.0]
