"""Scaled data as text, however much of it there is: both scaling commands write it, each in words of its own.

Scaling turns most zeros into other values, so lines are long and alike: the text of everything missing is made once, and a line
is cut together from it and the texts of what it stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit import parallel
from svmkit.data import Dataset, Floats, Ints, row_blocks
from svmkit.io.texts import Texts, joined, lines
from svmkit.scaling import Scaling, gaps, scale_values, scaled_zeros

#: Pairs to a piece of work; bytes of text of what rows lack that all threads together make at a time.
_PAIRS_A_PIECE, _BYTES_A_GROUP = 1 << 17, 1 << 24


class Words(NamedTuple):
    """What a line is made of: ``heads(dataset, first, last)`` of rows first … last − 1, then of each pair the ``feature``, the
    value as ``texts`` has it, and an ``ending``.
    """

    heads: Callable[[Dataset, int, int], Sequence[str]]
    feature: Callable[[int], str]
    texts: Callable[[Floats], Texts]
    ending: str = ""


class ScaledText:
    """The lines of data by one scaling, in some words."""

    def __init__(self, scaling: Scaling, words: Words) -> None:
        self._scaling, self._words = scaling, words
        self._names = joined([words.feature(index) for index in scaling.index.tolist()])
        self._missing, self._place = _missing_text(scaling, words)

    def lines(self, dataset: Dataset) -> Iterator[bytes]:
        """Those of a ``scaling.scaled`` data set, many at a time."""
        most_rows = max(1, _BYTES_A_GROUP // (len(self._missing) + 16) // parallel.threads())
        cuts = list(row_blocks(dataset.rows.indptr, _PAIRS_A_PIECE, most_rows))
        for some in range(0, len(cuts), parallel.threads()):
            group = cuts[some : some + parallel.threads()]
            texts = [b""] * len(group)

            def piece(i: int, group: list[tuple[int, int]] = group, texts: list[bytes] = texts) -> None:
                texts[i] = self._text_of(dataset, *group[i])

            parallel.run_pieces(piece, len(group))
            yield from texts

    def _text_of(self, dataset: Dataset, first: int, last: int) -> bytes:
        some, words, place = dataset.rows.part(first, last), self._words, self._place
        values = words.texts(scale_values(self._scaling, some.indices, some.data))
        before, after = gaps(some)
        runs = place[before], place[np.maximum(some.indices, before)], place[after]
        heads = joined(words.heads(dataset, first, last))
        return lines(heads, some.indptr, runs, self._names, some.indices.astype(np.int64), values, words.ending, self._missing)


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
