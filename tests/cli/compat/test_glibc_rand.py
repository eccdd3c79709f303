"""The sequence behind svm-train's folds."""

from __future__ import annotations

import ctypes
import platform

import pytest

from svmkit.cli.compat.glibc_rand import RAND_MAX, glibc_rand


def test_first_values() -> None:
    rand = glibc_rand()
    assert [rand() for _ in range(3)] == [1804289383, 846930886, 1681692777]


def test_two_sequences_are_independent() -> None:
    first, second = glibc_rand(), glibc_rand()
    assert [first() for _ in range(40)] == [second() for _ in range(40)]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this machine's C library is another")
def test_long_run_is_the_c_library_s() -> None:
    c = ctypes.CDLL(None)
    c.srand(1)
    rand = glibc_rand()
    drawn = [rand() for _ in range(5000)]
    assert drawn == [c.rand() for _ in range(5000)]
    assert 0 <= min(drawn) <= max(drawn) <= RAND_MAX
