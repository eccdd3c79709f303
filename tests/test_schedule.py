"""Which machines are trained in one call."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from svmkit import schedule
from svmkit.data import Rows
from svmkit.solvers import smo, wolfe


def work(n: int) -> float:
    """Machines of up to 1000 examples are small."""
    return 8000.0 * n if n <= 1000 else inf


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([10], [[0]]),
        ([10, 20, 30], [[0, 1, 2]]),
        ([10, 2000, 20, 30, 3000], [[0], [1], [2, 3], [4]]),  # those that are not small stand alone, and part the others
        ([1000] * 5, [[0, 1], [2, 3], [4]]),  # twenty million units of work
        ([2000, 2000], [[0], [1]]),
        ([1] * 2600, [list(range(2500)), list(range(2500, 2600))]),
    ],
)
def test_small_machines_that_follow_one_another_go_together(sizes: list[int], expected: list[list[int]]) -> None:
    assert schedule.jobs_of(sizes, work) == expected


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([10, 20, 30], False),  # one call
        ([1000] * 4, True),
        ([1000] * 4 + [1001], True),
        ([1000] * 2 + [300, 1001, 300], False),  # too little work for a thread, and most calls are of that kind
        ([1000] * 4 + [20_000], False),  # keeps all threads busy
    ],
)
def test_calls_go_side_by_side_where_machines_that_stand_alone_would(sizes: list[int], expected: bool) -> None:
    rows = Rows.from_dense(np.ones((2, 16)))
    assert schedule.side_by_side(smo, rows, sizes, schedule.jobs_of(sizes, work)) is expected
    assert not schedule.side_by_side(wolfe, rows, sizes, schedule.jobs_of(sizes, work))
