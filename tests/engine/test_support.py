"""The memory of an online SVM's support set."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from svmkit.engine.support import zeros_by_page


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_zeros_are_zeros_and_can_be_written() -> None:
    K = zeros_by_page((3, 5), "f4")
    assert K.dtype == np.float32
    assert K.tolist() == [[0.0] * 5] * 3
    K[1, 2] = 7.0
    assert K.sum() == 7.0


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's count of a process's pages")
def test_rows_take_memory_for_what_is_written() -> None:
    K = zeros_by_page((2048, 16384), "f4")  # 128 MB in all
    before = resident_mb()
    K[:, :1024] = 1.0
    assert resident_mb() - before < 16  # of which 8 MB were written
