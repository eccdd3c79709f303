"""Scaled data in svm-scale's words: ``label index:value index:value`` with six digits a value and a blank at each line's end.

Scaling turns most zeros into other values, so lines are long and alike: the text of everything missing is made once, and a line
is cut together from it and the texts of what it stores.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Dataset, Floats, Ints
from svmkit.scaling import Scaling, gaps, scale_labels, scale_values, scaled_zeros

_PAIRS_A_PIECE = 1 << 18
_BYTES_A_PIECE = 1 << 24


def scaled_lines(dataset: Dataset, scaling: Scaling) -> Iterator[bytes]:
    """The lines of ``dataset`` scaled, many at a time. The scaling has a place for every feature of the data."""
    rows = dataset.rows
    missing, place = _missing_text(scaling)
    before, after = gaps(rows)
    stop = np.maximum(rows.indices, before)
    heads = _heads(dataset, scale_labels(scaling, dataset.y))
    for first, last in _pieces(rows.indptr, len(missing)):
        at = slice(int(rows.indptr[first]), int(rows.indptr[last]))
        index = rows.indices[at]
        pairs = _pair_texts(index, scale_values(scaling, index, rows.data[at]))
        if missing:
            cuts = zip(place[before[at]].tolist(), place[stop[at]].tolist(), pairs, strict=True)
            pairs = [missing[a:b] + pair for a, b, pair in cuts]
        bounds = (rows.indptr[first : last + 1] - rows.indptr[first]).tolist()
        tails = place[after[first:last]].tolist()
        lines = [
            f"{head}{''.join(pairs[bounds[r] : bounds[r + 1]])}{missing[tails[r] :]}\n"
            for r, head in enumerate(heads[first:last])
        ]
        yield "".join(lines).encode("ascii")


def _missing_text(scaling: Scaling) -> tuple[str, Ints]:
    """The line of a row that stores nothing, without its label; where in it each feature's text begins (n_features + 2,)."""
    zeros = scaled_zeros(scaling)
    place = np.zeros(len(zeros) + 1, dtype=np.int64)
    filled = np.flatnonzero(zeros)
    texts = [f"{index}:{value:g} " for index, value in zip(filled.tolist(), zeros[filled].tolist(), strict=True)]
    place[filled + 1] = [len(text) for text in texts]
    return "".join(texts), np.cumsum(place)


def _heads(dataset: Dataset, labels: Floats) -> list[str]:
    """Label, and query and cost where the data have them, of each line."""
    distinct, which = np.unique(labels.view(np.int64), return_inverse=True)
    texts = [f"{label:.17g} " for label in distinct.view(np.float64).tolist()]
    heads = [texts[code] for code in which.tolist()]
    if dataset.qid is not None:
        heads = [f"{head}qid:{qid} " if qid else head for head, qid in zip(heads, dataset.qid.tolist(), strict=True)]
    if dataset.weight is not None:
        heads = [
            f"{head}cost:{cost:.17g} " if cost != 1 else head for head, cost in zip(heads, dataset.weight.tolist(), strict=True)
        ]
    return heads


def _pair_texts(index: NDArray[np.int32], values: Floats) -> list[str]:
    """``index:value `` for each value, nothing for a 0; each distinct number is formatted once."""
    features, of_feature = np.unique(index, return_inverse=True)
    numbers, of_value = np.unique(values, return_inverse=True)
    index_texts = [f"{feature}:" for feature in features.tolist()]
    value_texts = [f"{number:g} " if number else "" for number in numbers.tolist()]
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
