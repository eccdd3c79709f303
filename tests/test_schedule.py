"""Which machines are trained in one call."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from svmkit import schedule
from svmkit.data import Ints, Rows
from svmkit.model import class_pairs
from svmkit.solvers import smo, wolfe


@pytest.mark.parametrize(("multiclass", "expected"), [("ovo", [8, 12, 14]), ("ovr", [17, 17, 17])])
def test_sizes_are_those_of_the_classes_of_a_machine_or_of_all(multiclass: str, expected: list[int]) -> None:
    members = [np.arange(n) for n in (3, 5, 9)]
    assert schedule.sizes_of(members, class_pairs(3, multiclass)).tolist() == expected


def work(n: int, _: int) -> float:
    """Machines of up to 1000 examples are small."""
    return 8000.0 * n if n <= 1000 else inf


def jobs_of(sizes: Ints) -> list[range]:
    """Of machines of that work."""
    return schedule.jobs_of(schedule.works_of(sizes, sizes, work))


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
    assert [list(job) for job in jobs_of(np.array(sizes, int))] == expected


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
    assert schedule.side_by_side(smo, rows, np.array(sizes), jobs_of(np.array(sizes))) is expected
    assert not schedule.side_by_side(wolfe, rows, np.array(sizes), jobs_of(np.array(sizes)))


@pytest.mark.parametrize(
    ("sizes", "nonzeros", "expected"),
    [
        ([10_000] * 4, 1, True),
        ([10_001] * 4, 1, False),
        ([1000] * 4 + [1001] * 1, 8, True),  # two calls of three jobs
        ([1000] * 4 + [1001] * 2, 8, False),  # half of the jobs are none that hardly wait
    ],
)
def test_bounds_of_what_goes_side_by_side(sizes: list[int], nonzeros: int, expected: bool) -> None:
    rows = Rows.from_dense(np.ones((2, nonzeros)))
    assert schedule.side_by_side(smo, rows, np.array(sizes), jobs_of(np.array(sizes))) is expected


def test_rows_of_a_kernel_matrix_cost_what_rows_of_16_values_do() -> None:
    rows = Rows(np.empty(0), np.empty(0, np.int32), np.zeros(3, np.int64), 2, np.eye(2), np.array([1, 2]))
    for n in (999, 1000):
        assert schedule.side_by_side(smo, rows, np.full(4, n), [range(k, k + 1) for k in range(4)]) is (n == 1000)


def test_time_of_machines_adds_up_one_after_another_and_runs_by_itself_side_by_side() -> None:
    one_by_one, beside = schedule.TrainingTime(5.0, False), schedule.TrainingTime(5.0, True)
    for spent in (one_by_one, beside):
        spent.add(1000.0)
        spent.add(500.0)
    assert one_by_one.seconds() == 1505.0
    assert 5.0 <= beside.seconds() < 500.0
