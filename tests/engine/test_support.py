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
from svmkit.engine.support import STAGED, SupportSet, zeros_by_page
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
