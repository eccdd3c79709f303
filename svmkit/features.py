"""Feature numbers: which occur in rows, and the place of each of these where the others are to take no room.

They go up to 2³¹ − 1, however few there are: a table of all serves where it is no larger than pays, else sorting and search.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Ints, Rows

#: Places for feature numbers, to a nonzero and in all, up to which a table takes less time than sorting, and little memory.
_MOST_PLACES, _MOST_NUMBERS = 64, 1 << 22


def feature_names(*parts: Rows) -> NDArray[np.int32]:
    """The feature numbers that occur in any of ``parts``, ascending; of dense rows all."""
    n_features = max(rows.n_features for rows in parts)
    if parts[0].form == "dense":
        return np.arange(1, n_features + 1, dtype=np.int32)
    if not _fits_a_table(n_features, sum(len(rows.indices) for rows in parts)):
        return np.unique(np.concatenate([rows.indices for rows in parts]))
    occurs = np.zeros(n_features + 1, dtype=bool)
    for rows in parts:
        occurs[rows.indices] = True
    return np.flatnonzero(occurs).astype(np.int32)


def places_of(names: Ints | NDArray[np.int32], wanted: Ints | NDArray[np.int32]) -> NDArray[np.int32]:
    """Where each of ``wanted`` stands in ``names``, which ascend and have all of them."""
    if len(names) == 0 or not _fits_a_table(int(names[-1]), len(wanted)):
        return np.searchsorted(names, wanted).astype(np.int32)
    table = np.zeros(int(names[-1]) + 1, np.int32)
    table[names] = np.arange(len(names))
    return table[wanted]


def _fits_a_table(largest: int, nonzeros: int) -> bool:
    return largest <= max(nonzeros, min(_MOST_PLACES * nonzeros, _MOST_NUMBERS))


def renamed(rows: Rows, names: Ints | NDArray[np.int32]) -> Rows:
    """Sparse ``rows`` whose features, all of them among ``names``, are numbered 1, 2, … in their order."""
    return rows._replace(indices=places_of(names, rows.indices) + np.int32(1), n_features=len(names))


def narrowed(rows: Rows) -> tuple[Rows, NDArray[np.int32]]:
    """``rows`` numbered by place, 0, 1, …, among the features that occur, for loops whose w has these alone; and the features.

    Dense rows, which have all of their features, stay as they are.
    """
    names = feature_names(rows)
    return (rows._replace(indices=places_of(names, rows.indices)) if rows.form == "sparse" else rows), names
