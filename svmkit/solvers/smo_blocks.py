"""How many variables a round of block SMO takes: as suits the data, and no more than the support vectors so far call for."""

from __future__ import annotations

import numpy as np

from svmkit.data import Floats, Rows
from svmkit.engine import qp
from svmkit.engine.layouts import Real

#: Variables of a round at most; and where rounds begin in float32 on rows whose kernel values are cheap.
_BLOCK, _CHEAP_BLOCK = 1024, 1536
#: Of rows with so many nonzeros in the mean kernel values are dear: to make them anew round by round takes up to three times as
#: long as to have all variables in one block, if they are so many at most.
_DEAR_NONZEROS, _LARGER_BLOCK = 40, 2048
#: Variables that a round wants for each support vector there is, and in all at least.
_A_SUPPORT_VECTOR, _LEAST = 4, 512


def are_few(m: int, working_set: int) -> bool:
    """Whether a block holds all of ``m`` variables, and float64 values for it cost little."""
    return m <= min(working_set or m, _BLOCK)


def most_at_once(rows: Rows, m: int, real: Real) -> int:
    """Variables of a round at most: all where they are few and a kernel value dear, so that one round will do, or few."""
    if len(rows.data) >= _DEAR_NONZEROS * rows.n:
        return _LARGER_BLOCK if m <= _LARGER_BLOCK else _BLOCK
    return _CHEAP_BLOCK if real == "f4" else _BLOCK


def may_grow(rows: Rows, m: int, working_set: int) -> bool:
    """Whether a block may come to hold all variables, once as many kernel values have been made as it has."""
    return not working_set and m <= qp.LARGEST_BLOCK and len(rows.data) >= _DEAR_NONZEROS * rows.n


def wanted(beta: Floats, most: int) -> int:
    """Variables of the next round, ``most`` where that is all of the active ones, whose ``beta`` these are.

    Where there are few support vectors most variables of a large block would not move, and their values be for nothing.
    """
    if len(beta) <= most:
        return most
    return min(most, max(_LEAST, _A_SUPPORT_VECTOR * int(np.count_nonzero(beta))))
