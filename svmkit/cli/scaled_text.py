"""Scaled data as text, part by part, however much of it there is: both scaling commands write it, each in words of its own.

Scaling turns most zeros into other values, so lines are long and alike: the text of everything missing is made once, and a line
is cut together from it and the texts of what it stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Floats, Ints, Rows
from svmkit.scaling import Scaling, gaps, scale_values, scaled_zeros

_PAIRS_A_PIECE = 1 << 18
_BYTES_A_PIECE = 1 << 24


class Words(NamedTuple):
    """What a line is made of: ``heads(first, last)`` of rows first … last − 1, then ``feature`` and ``value`` of each pair."""

    heads: Callable[[int, int], Sequence[str]]
    feature: Callable[[int], str]
    value: Callable[[float], str]


def scaled_lines(rows: Rows, scaling: Scaling, words: Words) -> Iterator[bytes]:
    """The lines of ``rows`` scaled, many at a time. The scaling has a place for every feature of the rows."""
    missing, place = _missing_text(scaling, words)
    before, after = gaps(rows)
    stop = np.maximum(rows.indices, before)
    for first, last in _pieces(rows.indptr, len(missing)):
        at = slice(int(rows.indptr[first]), int(rows.indptr[last]))
        index = rows.indices[at]
        pairs = _pair_texts(index, scale_values(scaling, index, rows.data[at]), words)
        if missing:
            cuts = zip(place[before[at]].tolist(), place[stop[at]].tolist(), pairs, strict=True)
            pairs = [missing[a:b] + pair for a, b, pair in cuts]
        bounds = (rows.indptr[first : last + 1] - rows.indptr[first]).tolist()
        tails = place[after[first:last]].tolist()
        lines = [
            f"{head}{''.join(pairs[bounds[r] : bounds[r + 1]])}{missing[tails[r] :]}\n"
            for r, head in enumerate(words.heads(first, last))
        ]
        yield "".join(lines).encode("ascii")


def _missing_text(scaling: Scaling, words: Words) -> tuple[str, Ints]:
    """The line of a row that stores nothing, without its head; where in it each feature's text begins (n_features + 2,)."""
    zeros = scaled_zeros(scaling)
    place = np.zeros(len(zeros) + 1, dtype=np.int64)
    filled = np.flatnonzero(zeros)
    texts = [
        words.feature(index) + words.value(value) for index, value in zip(filled.tolist(), zeros[filled].tolist(), strict=True)
    ]
    place[filled + 1] = [len(text) for text in texts]
    return "".join(texts), np.cumsum(place)


def _pair_texts(index: NDArray[np.int32], values: Floats, words: Words) -> list[str]:
    """The text of each pair, nothing for a 0; each distinct number is formatted once."""
    features, of_feature = np.unique(index, return_inverse=True)
    numbers, of_value = np.unique(values, return_inverse=True)
    index_texts = [words.feature(feature) for feature in features.tolist()]
    value_texts = [words.value(number) if number else "" for number in numbers.tolist()]
    pairs = zip(of_feature.tolist(), of_value.tolist(), strict=True)
    return [index_texts[i] + value_texts[v] if value_texts[v] else "" for i, v in pairs]


def _pieces(indptr: Ints, longest: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows, to bound the memory that their text takes."""
    start, n = 0, len(indptr) - 1
    most_rows = max(1, _BYTES_A_PIECE // (longest + 16))
    while start < n:
        by_pairs = int(np.searchsorted(indptr, indptr[start] + _PAIRS_A_PIECE, side="right")) - 1
        stop = min(max(by_pairs, start + 1), start + most_rows, n)
        yield start, stop
        start = stop
