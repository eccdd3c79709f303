"""Rows moved to the origin for rbf values, which are those of differences and do not change.

A feature such as a time in seconds has values far from 0 and near one another. What a product of two of them leaves of their
difference is lost in rounding, in float32 soon. So where it matters, a feature that all rows have, with values that lie close
together for their size, is counted from the middle of those of the last rows, the basis: x − c is rounded once, by 2^−53.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmkit._jit import compiled
from svmkit.data import Floats, Ints, Rows
from svmkit.problem import RBF, Kernel

#: A feature is moved if the middle of its values is so many times as far from 0 as from their ends.
_CLOSE = 4.0
#: Rows are moved at all if gamma times the square of how far is at least this.
_MATTERS = 1.0
#: Where among so many rows no feature's values lie close together, none of all rows' do.
_FIRST_ROWS = 64


def centred(kernel: Kernel, *parts: Rows) -> tuple[Rows, ...]:
    """The same rows, or of an rbf kernel rows of the same distances, nearer the origin where that matters."""
    if kernel.kind != RBF or any(rows.n == 0 or rows.form == "dense" for rows in parts):
        return parts
    *others, basis = parts
    if len(_close_together(basis.part(0, min(_FIRST_ROWS, basis.n)))[0]) == 0:
        return parts
    features, middle = _close_together(basis)
    centre = np.zeros(max(rows.n_features for rows in parts) + 1)
    centre[features] = middle
    for rows in others:
        if not _matters(kernel.gamma, centre):
            return parts
        centre[np.bincount(rows.indices, minlength=len(centre)) < rows.n] = 0.0
    if not _matters(kernel.gamma, centre):
        return parts
    return tuple(rows._replace(data=rows.data - centre[rows.indices]) for rows in parts)


@np.errstate(over="ignore")
def _matters(gamma: float, centre: Floats) -> bool:
    return gamma * float(centre @ centre) >= _MATTERS


def _close_together(rows: Rows) -> tuple[Ints, Floats]:
    """The features that all rows have, with values close together for their size, and the middle of each one's."""
    counts = np.zeros(rows.n_features + 1, np.int64)
    least, most = np.full(len(counts), np.inf), np.full(len(counts), -np.inf)
    _look(rows.indices, rows.data, counts, least, most)
    everywhere = np.flatnonzero(counts == rows.n)
    least, most = least[everywhere], most[everywhere]
    middle, reach = 0.5 * least + 0.5 * most, 0.5 * most - 0.5 * least
    with np.errstate(over="ignore"):
        close = np.abs(middle) >= _CLOSE * reach
    return everywhere[close], middle[close]


@compiled("void(i4[:], f8[:], i8[:], f8[:], f8[:])")
def _look(indices: Any, data: Any, counts: Any, least: Any, most: Any) -> None:
    """Of each feature how many rows have it, and its least and largest value."""
    for k in range(len(indices)):
        f = indices[k]
        counts[f] += 1
        least[f] = min(least[f], data[k])
        most[f] = max(most[f], data[k])
