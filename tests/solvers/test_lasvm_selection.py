"""Which example LASVM learns next."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import zoo

from svmkit.data import Floats, Ints
from svmkit.engine import rng
from svmkit.solvers.lasvm_selection import Selection


def test_random_choices_follow_the_order_also_where_both_classes_are_known() -> None:
    selection, known = Selection(zoo.noisy(40, C=1.0), "random", 50, seed=3), np.full(40, -1)
    support: Any = SimpleNamespace(slot_of=known, two_sided=True)
    selection.next_epoch(support)
    order = selection.order.tolist()
    assert sorted(order) == list(range(40))
    assert [selection.choose(support) for _ in order] == [(row, None) for row in order]


@pytest.mark.parametrize("name", ["random", "gradient", "active", "autoactive"])
def test_examples_without_cost_come_in_no_epoch(name: str) -> None:
    case = zoo.noisy(40, C=1.0)
    case.upper[::4] = 0.0
    selection = Selection(case, name, 50, seed=3)
    support: Any = SimpleNamespace(slot_of=np.full(40, -1))
    for _ in range(2):
        selection.next_epoch(support)
        assert sorted(selection.order) == [row for row in range(40) if row % 4]


@pytest.mark.parametrize("seed", range(20))
def test_of_equally_near_candidates_the_first_drawn_is_chosen(seed: int) -> None:
    """f in quarters: many are equal, in one group and across them, and some lie on the margin, which is not inside it."""
    draw, n = np.random.default_rng(seed), 300
    f = draw.choice([-3.0, -1.25, 1.25, 2.0], n, p=[0.4, 0.28, 0.3, 0.02])
    f[draw.permutation(n)[:8]] = 0.75 * draw.choice([-1.0, 1.0], 8)

    def look_at(rows: Ints) -> tuple[Floats, Floats]:
        return rows[None, :].astype(float), f[rows]

    support: Any = SimpleNamespace(
        slot_of=np.full(n, -1), two_sided=True, delta=0.5, n_terms=1, look_at=look_at, count=lambda evaluations: None
    )
    selection = Selection(zoo.noisy(n, C=1.0), "autoactive", 50, seed)
    selection.next_epoch(support)
    drawn = selection.order[rng.integers(seed, 1 << 32, 0, 100, n)].tolist()
    inside = [place for place, row in enumerate(drawn) if abs(f[row]) < 1.25]
    seen = drawn[: inside[4] + 1] if len(inside) >= 5 else drawn
    row, values = selection.choose(support)
    assert row == min(seen, key=lambda row: abs(f[row]))
    assert values is not None
    assert values.tolist() == [row]
    assert selection.drawn == len(seen)
