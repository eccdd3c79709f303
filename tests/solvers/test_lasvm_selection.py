"""Which example LASVM learns next."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import zoo

from svmkit.solvers.lasvm_selection import Selection


def test_random_choices_follow_the_order_also_where_both_classes_are_known() -> None:
    selection, known = Selection(zoo.noisy(40, C=1.0), "random", 50, seed=3), np.full(40, -1)
    support: Any = SimpleNamespace(slot_of=known, two_sided=True)
    selection.next_epoch(support)
    order = selection.order.tolist()
    assert sorted(order) == list(range(40))
    assert [selection.choose(support) for _ in order] == [(row, None) for row in order]
