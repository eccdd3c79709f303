"""Feature numbers: which occur in rows, and by which place each goes where those that do not shall take no room.

They go up to 2³¹ − 1, however few there are: a table of all serves where there are as many to look up, else a search.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Ints, Rows


def feature_names(rows: Rows) -> NDArray[np.int32]:
    """The feature numbers that occur, ascending; of dense rows all."""
    if rows.form == "dense":
        return np.arange(1, rows.n_features + 1, dtype=np.int32)
    if rows.n_features >= len(rows.indices):
        return np.unique(rows.indices)
    occurs = np.zeros(rows.n_features + 1, dtype=bool)
    occurs[rows.indices] = True
    return np.flatnonzero(occurs).astype(np.int32)


def places_of(names: Ints | NDArray[np.int32], wanted: Ints | NDArray[np.int32]) -> NDArray[np.int32]:
    """Where each of ``wanted`` stands in ``names``, which ascend and have all of them."""
    if len(names) == 0 or names[-1] >= len(wanted):
        return np.searchsorted(names, wanted).astype(np.int32)
    table = np.zeros(int(names[-1]) + 1, np.int32)
    table[names] = np.arange(len(names))
    return table[wanted]


def narrowed(rows: Rows) -> tuple[Rows, NDArray[np.int32]]:
    """``rows`` as loops want them whose w has a place for each of the features that occur, and these."""
    names = feature_names(rows)
    return (rows._replace(indices=places_of(names, rows.indices)) if rows.form == "sparse" else rows), names
