"""The memory of an online SVM's support set."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from zoo import points

from svmkit.data import Rows
from svmkit.engine import slots
from svmkit.engine.kernels import Engine
from svmkit.engine.support import STAGED, SupportSet, give_up, zeros_by_page
from svmkit.problem import RBF, Kernel


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_zeros_are_zeros_and_can_be_written() -> None:
    K = zeros_by_page((3, 5), "f4")
    assert K.dtype == np.float32
    assert K.tolist() == [[0.0] * 5] * 3
    K[1, 2] = 7.0
    assert K.sum() == 7.0


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's count of a process's pages")
@pytest.mark.skipif(mmap.PAGESIZE > 4096, reason="a page holds more than is written of a row")
def test_rows_take_memory_for_what_is_written() -> None:
    K = zeros_by_page((2048, 16384), "f4")  # 128 MB in all
    before = resident_mb()
    K[:, :1024] = 1.0
    assert resident_mb() - before < 16  # of which 8 MB were written


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's count of a process's pages")
def test_rows_that_are_given_up_take_no_memory_and_the_others_stay() -> None:
    K = zeros_by_page((2048, 5000), "f4")  # rows of 4.9 pages, 41 MB in all
    K[:] = np.arange(2048)[:, None]
    before = resident_mb()
    give_up(K, 3, 2000)
    give_up(K, 2010, 2010)
    give_up(K, 2011, 2012)
    assert before - resident_mb() > 35
    kept = [0, 1, 2, *range(2000, 2011), *range(2012, 2048)]
    assert (K[kept] == np.array(kept)[:, None]).all()


def test_there_is_room_for_what_is_staged_however_few_members_were_foreseen() -> None:
    """A set made for 3 members, at 144 slots, that takes in 700."""
    X, y = points(700, 3, seed=1)
    engine = Engine(Rows.from_dense(X), Kernel(RBF, 0.5), "f8")
    support = SupportSet(engine, 10.0, 3, 1e-3, 1.0, 0.0, 0)
    assert support.reals.shape[1] < 2 * STAGED
    for first in range(0, 700, STAGED):
        some = np.arange(first, min(first + STAGED, 700))
        assert support.room() >= len(some)
        assert support.counts[slots.TOP] + STAGED <= support.reals.shape[1]
        support.adopt(some, np.ones(len(some)), y[some], 0.5 * y[some], np.zeros(len(some)))
    assert support.size == 700


@pytest.mark.parametrize("cache_mb", [0.3, 0.7, 100.0])
def test_where_slots_become_more_rows_used_last_keep_a_place(cache_mb: float) -> None:
    """Of 256 members, 144, 256 and 256 have a row, and 91, 197 and 256 after that."""
    X, y = points(256, 3, seed=1)
    engine = Engine(Rows.from_dense(X), Kernel(RBF, 0.5), "f8")
    support = SupportSet(engine, cache_mb, None, 1e-3, 1.0, 0.0, 0)
    for some in (np.arange(STAGED), np.arange(STAGED, 256)):
        support.adopt(some, np.ones(STAGED), y[some], 0.5 * y[some], np.zeros(STAGED))
    support._empty_stage()
    owner, tick = support.kept[slots.OWNER].copy(), support.kept[slots.TICK].copy()
    tick[: len(tick) // 2] += 1000  # used since
    support.kept[slots.TICK] = tick
    support._grow()
    n_rows, n_before = len(support.K), np.count_nonzero(owner >= 0)
    used = np.flatnonzero(support.kept[slots.OWNER] >= 0)
    assert len(used) == min(n_rows, n_before)
    place_of = support.kept[slots.OWNER, used]
    assert set(place_of) == set(owner[np.argsort(-np.where(owner >= 0, tick, -1))[: len(used)]])
    assert (support.slots[slots.PLACE, place_of] == used).all()
    assert np.count_nonzero(support.slots[slots.PLACE] >= 0) == len(used)
    members = np.arange(256)
    values = engine.block(support.slots[slots.ROW, place_of], support.slots[slots.ROW, members])
    np.testing.assert_array_equal(support.K[used, :256], values)
    free = support.kept[slots.FREE_ROW, : support.counts[slots.N_FREE_ROWS]]
    assert sorted([*used, *free]) == list(range(n_rows))
