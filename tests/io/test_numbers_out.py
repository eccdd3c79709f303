"""Doubles as text against Python's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from svmkit.data import Floats
from svmkit.io import numbers_out
from svmkit.io.numbers_out import shortest, significant

DIGITS = [6, 8, 17]


def near_the_edges() -> Floats:
    """Powers of two and ten, whole numbers, halves of the last digit, least and largest; and their neighbours."""
    rng = np.random.default_rng(5)
    tens = 10.0 ** np.arange(-323, 309)
    twos = 2.0 ** np.arange(-1074, 1024)
    halves = (rng.integers(100_000, 1_000_000, 20_000) + 0.5) * 10.0 ** rng.integers(-20, 18, 20_000)
    whole = np.concatenate([rng.integers(1, 10**7, 5_000), rng.integers(10**14, 10**18, 5_000)]).astype(float)
    spread = rng.normal(size=50_000) * 10.0 ** rng.integers(-18, 23, 50_000)
    subnormal = rng.integers(0, 2**52, 5_000, dtype=np.uint64).view(np.float64)
    any_bits = rng.integers(0, 2**64, 50_000, dtype=np.uint64).view(np.float64)
    named = [5e-324, 1.7976931348623157e308, 9007199254740993.0, 9.5e-3, 2.2250738585072014e-308, 0.1 + 0.2, np.inf, 0.0]
    values = np.concatenate(
        [tens, 9.999995 * tens[:-1], twos, halves, whole, whole / 2**10, spread, subnormal, any_bits, named]
    )
    with np.errstate(over="ignore", invalid="ignore"):
        return np.concatenate([values, np.nextafter(values, np.inf), -np.nextafter(values, 0.0)])


def as_python_has_it(values: Floats) -> list[str]:
    return [repr(value).removesuffix(".0") for value in values.tolist()]


def as_c_has_it(values: Floats, digits: int) -> list[str]:
    return [f"{value:.{digits}g}" for value in values.tolist()]


@settings(deadline=None)  # the first may be compiled
@given(st.lists(st.floats(), max_size=20))
@example([9.5367431640625e-07, 1e16, 9999999999999998.0, 1e-5, 1e-4, -0.0, float("nan")])
def test_any_numbers(numbers: list[float]) -> None:
    values = np.array(numbers, dtype=np.float64)
    assert shortest(values).line().split() == as_python_has_it(values)
    for digits in DIGITS:
        assert significant(values, digits).line().split() == as_c_has_it(values, digits)


def test_the_shortest_near_the_edges() -> None:
    values = near_the_edges()
    assert shortest(values).line().split() == as_python_has_it(values)


@pytest.mark.parametrize("digits", DIGITS)
def test_significant_digits_near_the_edges(digits: int) -> None:
    values = near_the_edges()
    assert significant(values, digits).line().split() == as_c_has_it(values, digits)


def test_a_half_is_left_to_python() -> None:
    """Which rounds it to even; nothing that is known here says that it is one."""
    values = np.array([1.000005, 100000.5, 100001.5, 2.0**-20])
    rounded = numbers_out._room(len(values))
    numbers_out._significant(values, 6, numbers_out._powers(), *rounded)
    assert (rounded.lengths == numbers_out._UNDECIDED).tolist() == [False, True, True, False]
    assert significant(values, 6).line().split() == as_c_has_it(values, 6) == ["1.00001", "100000", "100002", "9.53674e-07"]
