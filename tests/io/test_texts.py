"""Texts of many numbers against Python's own, and lines cut together from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svmkit.data import Floats
from svmkit.io.texts import Texts, each_once, joined, lines, six_digits


def strings(texts: Texts) -> list[str]:
    return [bytes(line[:length]).decode() for line, length in zip(*texts, strict=True)]


def as_c_has_it(values: Floats) -> list[str]:
    return [f"{value:g}" if value else "" for value in values.tolist()]


@settings(deadline=None)  # the first may be compiled
@given(st.lists(st.floats(), max_size=20))
def test_any_six_digits(numbers: list[float]) -> None:
    values = np.array(numbers, dtype=np.float64)
    assert strings(six_digits(values)) == as_c_has_it(values)


def test_six_digits_near_the_edges() -> None:
    """Powers of ten, halves of the last digit, whole numbers, and their neighbours on either side."""
    rng = np.random.default_rng(5)
    tens = 10.0 ** np.arange(-20, 25)
    halves = (rng.integers(100_000, 1_000_000, 20_000) + 0.5) * 10.0 ** rng.integers(-20, 18, 20_000)
    whole = rng.integers(1, 10**7, 5_000).astype(float)
    spread = rng.normal(size=50_000) * 10.0 ** rng.integers(-18, 23, 50_000)
    values = np.concatenate([tens, 9.999995 * tens, 9.9999949999999 * tens, halves, whole, whole / 2**10, spread])
    values = np.concatenate([values, np.nextafter(values, np.inf), -np.nextafter(values, 0.0)])
    assert strings(six_digits(values)) == as_c_has_it(values)


def test_each_number_is_asked_for_once() -> None:
    asked: list[float] = []

    def text_of(value: float) -> str:
        asked.append(value)
        return f"<{value}>"

    values = np.array([2.5, 0.0, -1.0, 2.5, -0.0, 2.5])
    assert strings(each_once(text_of, values)) == ["<2.5>", "", "<-1.0>", "<2.5>", "", "<2.5>"]
    assert sorted(asked) == [-1.0, 2.5]
    assert strings(each_once(text_of, np.empty(0))) == []


@pytest.mark.parametrize("ending", ["", " ", "; "])
def test_lines_are_cut_together(ending: str) -> None:
    heads, names, missing = ["+1", "", "label 3"], ["a:", "", "long name:"], "0123456789"
    pairs = [[(0, 2, 0, 1.5), (4, 4, 2, 0.0)], [], [(1, 3, 1, -2.0), (3, 9, 2, 1e-7), (9, 9, 0, 3.0)]]
    tails = [6, 0, 10]
    flat = [pair for row in pairs for pair in row]
    values = np.array([value for *_, value in flat])
    found = lines(
        joined(heads),
        np.cumsum([0, *map(len, pairs)]),
        (np.array([a for a, *_ in flat]), np.array([b for _, b, *_ in flat]), np.array(tails)),
        joined(names),
        np.array([name for _, _, name, _ in flat]),
        six_digits(values),
        ending,
        joined([missing]).characters,
    )
    expected = ""
    for head, row, tail in zip(heads, pairs, tails, strict=True):
        expected += head
        for start, stop, name, value in row:
            expected += missing[start:stop] + (f"{names[name]}{value:g}{ending}" if value else "")
        expected += missing[tail:] + "\n"
    assert found.decode() == expected
