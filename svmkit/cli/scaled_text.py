"""Scaled data as text, part by part, however much of it there is: both scaling commands write it, each in words of its own.

Scaling turns most zeros into other values, so lines are long and alike: the text of everything missing is made once, and a line
is cut together from it and the texts of what it stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit import parallel
from svmkit.data import Floats, Ints, Rows
from svmkit.io.texts import Joined, Texts, joined, lines
from svmkit.scaling import Scaling, gaps, scale_values, scaled_zeros

_PAIRS_A_PIECE = 1 << 17
_BYTES_A_PIECE = 1 << 24


class Words(NamedTuple):
    """What a line is made of: ``heads(first, last)`` of rows first … last − 1, then of each pair the ``feature``, the value as
    ``texts`` has it, and an ``ending``.
    """

    heads: Callable[[int, int], Sequence[str]]
    feature: Callable[[int], str]
    texts: Callable[[Floats], Texts]
    ending: str = ""


def scaled_lines(rows: Rows, scaling: Scaling, words: Words) -> Iterator[bytes]:
    """The lines of ``rows``, ``scaling.placed`` ones, scaled; many at a time."""
    names, name_of = _names(rows, scaling, words)
    missing, place = _missing_text(scaling, words)

    def text_of(first: int, last: int) -> bytes:
        some = rows.part(first, last)
        values = words.texts(scale_values(scaling, some.indices, some.data))
        before, after = gaps(some)
        runs = place[before], place[np.maximum(some.indices, before)], place[after]
        heads = joined(words.heads(first, last))
        return lines(heads, some.indptr, runs, names, name_of[some.indices], values, words.ending, missing)

    cuts = list(_pieces(rows.indptr, len(missing)))
    for some in range(0, len(cuts), parallel.threads()):
        group = cuts[some : some + parallel.threads()]
        texts = [b""] * len(group)

        def piece(i: int, group: list[tuple[int, int]] = group, texts: list[bytes] = texts) -> None:
            texts[i] = text_of(*group[i])

        parallel.run_pieces(piece, len(group))
        yield from texts


def _names(rows: Rows, scaling: Scaling, words: Words) -> tuple[Joined, Ints]:
    """The names of the features that occur, and which of them each place has (m,)."""
    occurs = np.zeros(len(scaling.index), dtype=np.int64)
    occurs[rows.indices] = 1
    return joined([words.feature(index) for index in scaling.index[occurs > 0].tolist()]), np.cumsum(occurs) - 1


def _missing_text(scaling: Scaling, words: Words) -> tuple[NDArray[np.uint8], Ints]:
    """The line of a row that stores nothing, without its head; where in it the text of each place begins (m + 1,)."""
    zeros = scaled_zeros(scaling)
    place = np.zeros(len(zeros) + 1, dtype=np.int64)
    filled = np.flatnonzero(zeros)
    values = words.texts(zeros[filled])
    texts = [
        words.feature(index) + bytes(line[:length]).decode("ascii") + words.ending
        for index, line, length in zip(scaling.index[filled].tolist(), *values, strict=True)
    ]
    place[filled + 1] = [len(text) for text in texts]
    return joined(texts).characters, np.cumsum(place)


def _pieces(indptr: Ints, longest: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows, to bound the memory that the text of as many as there are threads takes."""
    start, n = 0, len(indptr) - 1
    most_rows = max(1, _BYTES_A_PIECE // (longest + 16) // parallel.threads())
    while start < n:
        by_pairs = int(np.searchsorted(indptr, indptr[start] + _PAIRS_A_PIECE, side="right")) - 1
        stop = min(max(by_pairs, start + 1), start + most_rows, n)
        yield start, stop
        start = stop
