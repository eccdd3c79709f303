"""Texts of many numbers, and lines cut together from them."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit.io.numbers_out import shortest, significant
from svmkit.io.texts import by_rows, joined, lines


def test_texts_of_zeros_can_be_left_out() -> None:
    values = np.array([2.5, 0.0, -1.0, -0.0])
    texts = shortest(values)
    assert texts.line().split(" ") == ["2.5", "0", "-1", "-0"]
    assert texts.without_zeros(values).line().split(" ") == ["2.5", "", "-1", ""]


def test_texts_by_rows() -> None:
    values = np.array([1.0, -0.25, 3e20, 4.0, 5.5, 6.0])
    found = by_rows(shortest(values), 3, "; ")
    assert found.characters.tobytes() == b"1; -0.25; 3e+20; 4; 5.5; 6; "
    assert found.ends.tolist() == [17, 28]
    for per_row in (0, 3):
        nothing = by_rows(shortest(np.empty(0)), per_row, " ")
        assert len(nothing.characters) == len(nothing.ends) == 0


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
        significant(values, 6).without_zeros(values),
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


def test_lines_of_the_longest_texts_fit() -> None:
    n, longest = 100, -2.2250738585072014e-308
    values = shortest(np.full(n, longest))
    assert values.lengths.max() == values.characters.shape[1] == len(repr(longest))
    zeros, missing = np.zeros(n, np.int64), joined(["6:1 "]).characters
    gaps = (zeros, zeros + 4, np.array([4]))
    found = lines(joined(["1 "]), np.array([0, n]), gaps, joined(["7:"]), zeros, values, "; ", missing)
    assert found.decode() == "1 " + n * f"6:1 7:{longest!r}; " + "\n"
