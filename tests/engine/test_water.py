"""Draws fall where the water is, by weight; those foretold are those drawn; what is owed is a product with kept rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from svmkit.data import Floats, Ints
from svmkit.engine import level, water

N, POSITIVES = 240, 90


class Still:
    """A state in which steps have no length, with the rows of some examples; the level is that of random responses."""

    def __init__(self, basins: int, *, weighted: bool, nu: float, batch: int = 1, rows: Ints | None = None) -> None:
        rng = np.random.default_rng(5)
        self.c, self.weight = rng.normal(size=N), rng.uniform(0.2, 3.0, N) if weighted else np.ones(N)
        self.rows = np.arange(N) if rows is None else rows
        self.K, self.slot_of = np.zeros((len(self.rows), N)), np.full(N, -1)
        self.slot_of[self.rows] = np.arange(len(self.rows))
        self.numbers, self.counts = np.zeros(level.N_NUMBERS), np.zeros(level.N_COUNTS, np.int64)
        self.numbers[[level.SCALE, level.NU]] = 1.0, nu
        heaviest = self.weight.max() if basins == 1 else self.weight[:POSITIVES].max()
        self.numbers[[level.HEAVIEST, level.HEAVIEST_NEGATIVE]] = heaviest, self.weight[POSITIVES:].max()
        self.counts[[level.POSITIVES, level.BASINS, level.BATCH, level.SEED]] = POSITIVES, basins, batch, 7
        self.near = np.empty((2, N))
        self.drawn = np.zeros(batch, np.int64)
        level.find_level(self.c, self.weight, self.near, self.numbers, self.counts)

    def draw(self, steps: int) -> int:
        """How many of ``steps`` steps were taken; the last one's examples are in ``drawn``."""
        slots, n = len(self.rows), N
        return int(
            water.take_steps["f8"](
                *(self.K, self.slot_of, np.zeros(slots, np.int64), np.zeros(slots), self.c.copy(), np.zeros(n), np.zeros(n)),
                *(self.weight, np.ones(n), self.near, self.numbers, self.counts, self.drawn, steps),
            )
        )

    def foresee(self, steps: int, room: int) -> list[int]:
        found = np.empty(room, np.int64)
        count = water.foresee(
            *(self.c, self.weight, np.ones(N), self.numbers, self.counts, self.slot_of, steps, found),
        )
        return [int(i) for i in found[:count]]

    def chances(self) -> Floats:
        """Of each example, from the definition."""
        first = np.arange(N) < POSITIVES
        edge = np.where(first, self.numbers[level.EDGE], self.numbers[level.EDGE_NEGATIVE])
        share = np.where(first, self.numbers[level.ON_EDGE], self.numbers[level.ON_EDGE_NEGATIVE])
        under = self.weight * np.where(self.c < edge, 1.0, np.where(self.c == edge, share, 0.0))
        return np.asarray(under / under.sum())


@pytest.mark.parametrize("basins", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nu", [0.003, 0.5])
def test_draws_fall_where_the_water_is(basins: int, weighted: bool, nu: float) -> None:
    """5,000 draws; ν = 0.003 covers so few that most are found by going through all."""
    state = Still(basins, weighted=weighted, nu=nu)
    chances, seen = state.chances(), np.zeros(N)
    for _ in range(5_000):
        assert state.draw(1) == 1
        seen[state.drawn[0]] += 1
    assert (seen[chances == 0] == 0).all()
    if basins == 2:
        assert chances[:POSITIVES].sum() == pytest.approx(0.5)
    wet = chances > 0
    assert scipy.stats.chisquare(seen[wet], 5_000 * chances[wet]).pvalue > 1e-3


@pytest.mark.parametrize("basins", [1, 2])
def test_where_rounding_leaves_all_dry_the_lowest_is_drawn(basins: int) -> None:
    state = Still(basins, weighted=True, nu=0.5)
    classes = [slice(0, N)] if basins == 1 else [slice(0, POSITIVES), slice(POSITIVES, N)]
    lowest = {part.start + int(state.c[part].argmin()) for part in classes}
    seen = set()
    for _ in range(20):
        state.numbers[[level.EDGE, level.EDGE_NEGATIVE]] = state.c.min() - 1e-9
        assert state.draw(1) == 1
        seen.add(int(state.drawn[0]))
    assert seen == lowest


@pytest.mark.parametrize("batch", [1, 3])
def test_the_foretold_are_those_drawn(batch: int) -> None:
    """The first of them that have no row, each once, as many as there is room for; and steps end before the first of them."""
    held = np.arange(0, N, 2)
    state, whole = Still(2, weighted=True, nu=0.5, batch=batch, rows=held), Still(2, weighted=True, nu=0.5, batch=batch)
    drawn: list[int] = []
    for _ in range(60):
        whole.draw(1)
        drawn += whole.drawn.tolist()
    new = [i for i in dict.fromkeys(drawn) if i % 2]
    assert len(new) > 10
    assert state.foresee(60, N) == new
    assert state.foresee(60, 5) == new[:5]
    assert state.foresee(60, N) == new  # nothing is left behind
    assert state.draw(60) == drawn.index(new[0]) // batch == state.counts[level.STEP]


@pytest.mark.parametrize("real", ["f4", "f8"])
def test_what_is_owed_is_added(real: str) -> None:
    rng = np.random.default_rng(6)
    n = 2 * water.TILE + 77
    K, owed, out = rng.normal(size=(5, n)).astype(real), rng.normal(size=5), rng.normal(size=n)
    sign = np.where(np.arange(n) < 40_000, 1.0, -1.0)
    expected = out.copy()
    expected[100:] += (sign * (owed[[0, 3]] @ K[[0, 3]].astype(np.float64)))[100:]
    for begin, end in ((100, 33_000), (33_000, n)):
        water.add_owed[real](K, np.array([0, 3]), owed, 40_000, begin, end, out)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_edges_are_found_however_far_responses_move(weighted: bool) -> None:
    """A hundred moves of whole classes by far more than the distances between responses, as with a smooth kernel.

    What is looked at about the edges has to stay narrow, or to become so again: else all responses are sorted each time.
    """
    rng = np.random.default_rng(11)
    n, positives = 4_000, 300
    c, weight = rng.normal(size=n), rng.uniform(0.2, 3.0, n) if weighted else np.ones(n)
    numbers, counts = np.zeros(level.N_NUMBERS), np.zeros(level.N_COUNTS, np.int64)
    numbers[[level.SCALE, level.NU]] = 1.0, 0.05
    counts[[level.POSITIVES, level.BASINS]] = positives, 2
    near, looked_at = np.empty((2, n)), []
    for _ in range(100):
        c[:positives] += rng.normal() + 0.01 * rng.normal(size=positives)
        c[positives:] += rng.normal() + 0.01 * rng.normal(size=n - positives)
        level.find_level(c, weight, near, numbers, counts)
        edge = np.where(np.arange(n) < positives, numbers[level.EDGE], numbers[level.EDGE_NEGATIVE])
        height = level.fill_volume(c, weight, positives, 2, 0.05 * n).level
        assert edge[[0, -1]].mean() == pytest.approx(height, rel=1e-12)
        looked_at.append(np.count_nonzero(np.abs(c - edge) < numbers[level.REACH]))
    assert np.mean(looked_at) <= 2 * level.MANY
