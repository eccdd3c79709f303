"""Rows of small whole numbers, several to a word, for the loops of pixels.py; and which rows may be taken for such.

Values must be counts 0 … 255 of one unit (``UNITS``). Text with six digits holds 255ths to 5e-7; where that is all there is to
a row's distance from whole numbers, and small enough to keep rbf values within ``ERROR``, such rows are taken as well, in
float32.
"""

from __future__ import annotations

from math import e, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy import rint
from numpy.typing import NDArray

from svmkit import parallel
from svmkit._jit import compiled
from svmkit._llvm import cpu_has
from svmkit.data import Floats, Ints, Rows
from svmkit.problem import LINEAR, RBF, Kernel

#: Whether the CPU multiplies bytes, four to a word; else there are two numbers of 16 bits to one.
BYTES = cpu_has("avx512_vnni")
#: Numbers to a word, as a power of two; the bits of one; what is taken from a column's, 128 or 0, twice.
PER_WORD_LOG2 = 2 if BYTES else 1
_BITS = 32 >> PER_WORD_LOG2
_OFFSETS = 256 if BYTES else 0
#: What 1 may stand for: itself, or a 255th.
UNITS = (1.0, 255.0)
_LARGEST = 255.0
#: Six digits leave half of the sixth uncertain.
_SIX_DIGITS = 5.1e-7
#: What an rbf value may be off by because of them: a bound, of which pictures reach a twentieth.
ERROR = 5e-6
#: By this share of themselves 255ths may be off for having been rounded, k/255 or k·(1/255).
_ROUNDING = 2.0**-51
#: Still a float32; so many halvings leave nothing.
_HUGE = 1e38
#: Values looked at before all are.
_FIRST = 256
#: Words to a nonzero, at most: a word takes AVX2 as long as a nonzero in float32, and half as long as one in float64.
_WORDS_SHARE = 0.75 if BYTES else 1.0
#: Nonzeros that a piece of looking at them, or of packing, holds at least.
_PIECE_NONZEROS = 1 << 18


class Words(NamedTuple):
    """Rows as the loops take them: words of neighbouring features' numbers, ``groups[k]`` saying which.

    ``own`` i4 (n, 2): what 2 products are taken from, for a row on the left and for a column. ``factor`` is f of pixels.py.
    """

    indptr: Ints
    groups: NDArray[np.int32]
    words: NDArray[np.int32]
    own: NDArray[np.int32]
    factor: float


def units_of(rows: Rows, kernel: Kernel, exact: bool) -> float:
    """Which of ``UNITS`` the values are counts of, those of all rows; 0 where of none, or where words would save nothing.

    Unless ``exact``, rbf rows may be a little off (see above).
    """
    n = len(rows.data)
    for units in UNITS if n else ():
        if not _plausible(rows.data[:_FIRST], units):
            continue
        starts, off = _look_at(rows, units)
        if off == 0.0 or (off > 0.0 and not exact and kernel.kind == RBF and _allowed(off, kernel.gamma)):
            return units if starts[-1] <= _WORDS_SHARE * n else 0.0
    return 0.0


def _plausible(few: Floats, units: float) -> bool:
    """Whether ``_look`` may find these to be counts: a quick no for most data."""
    with np.errstate(over="ignore", invalid="ignore"):
        counts = few * units
        off = np.abs(counts - np.rint(counts))
    return bool(off.max() <= 2.0 * _SIX_DIGITS * units and counts.min() > -0.5 and counts.max() < _LARGEST + 0.5)


def _allowed(off: float, gamma: float) -> bool:
    """Whether rows this far, in squared distance, from the whole numbers change rbf values by ``ERROR`` at most.

    |dK| ≤ max_t 2 gamma t e^(−gamma t²) · 2√off, at t² = 1/(2 gamma).
    """
    return 2.0 * sqrt(2.0 * gamma / e * off) <= ERROR


def pack_words(rows: Rows, kernel: Kernel, units: float) -> Words:
    """``rows``, which ``units_of`` has found to be counts of ``units``."""
    indptr, _ = _look_at(rows, units)
    groups, words = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.int32)
    own = np.empty((rows.n, 2), np.int32)
    arrays = (rows.indptr, rows.indices, rows.data)
    rest = units, kernel.kind == RBF, indptr, groups, words, own
    n_pieces = parallel.pieces_of(len(rows.data), _PIECE_NONZEROS)
    parallel.run_ranges(lambda r0, r1: _write(*arrays, r0, r1, *rest), rows.n, n_pieces)
    if kernel.kind == RBF:
        factor = max(-kernel.gamma / (log(2.0) * units**2), -_HUGE)
    else:
        factor = -0.5 * (1.0 if kernel.kind == LINEAR else kernel.gamma) / units**2
    return Words(indptr, groups, words, own, factor)


def _look_at(rows: Rows, units: float) -> tuple[Ints, float]:
    """Where each row's words start (n + 1,); the largest squared distance of a row from whole numbers, −1 for too far."""
    starts, off = np.zeros(rows.n + 1, np.int64), np.zeros(rows.n)
    arrays = (rows.indptr, rows.indices, rows.data)
    n_pieces = parallel.pieces_of(len(rows.data), _PIECE_NONZEROS)
    parallel.run_ranges(lambda r0, r1: _look(*arrays, r0, r1, units, starts, off), rows.n, n_pieces)
    np.cumsum(starts, out=starts)
    return starts, -1.0 if off.min(initial=0.0) < 0.0 else float(off.max(initial=0.0))


@compiled("void(i8[:], i4[:], f8[:], i8, i8, f8, i8[:], f8[:])")
def _look(indptr: Any, indices: Any, data: Any, r0: Any, r1: Any, units: Any, counts: Any, off: Any) -> None:
    """For each row its words, counts[r + 1], and Σ_k (x_k − i_k/units)², i_k the nearest whole numbers: −1 if some are no
    bytes, or farther off than six digits explain.
    """
    for r in range(r0, r1):
        total, last, count = 0.0, -1, 0
        for k in range(indptr[r], indptr[r + 1]):
            whole = rint(data[k] * units)
            away = data[k] - whole / units
            if not (abs(away) <= _SIX_DIGITS and 0.0 <= whole <= _LARGEST):
                off[r] = -1.0
                return
            if abs(away) > _ROUNDING * abs(data[k]):
                total += away * away
            group = indices[k] >> PER_WORD_LOG2
            count += group != last
            last = group
        counts[r + 1], off[r] = count, total


@compiled("void(i8[:], i4[:], f8[:], i8, i8, f8, i8, i8[:], i4[:], i4[:], i4[:, :])")
def _write(
    indptr: Any, indices: Any, data: Any, r0: Any, r1: Any, units: Any, distances: Any,
    starts: Any, groups: Any, words: Any, own: Any,
) -> None:  # fmt: skip
    """The rows' words at ``starts``, and what their products are taken from."""
    for r in range(r0, r1):
        place, last, word = starts[r] - 1, -1, 0
        norm, total = 0, 0
        for k in range(indptr[r], indptr[r + 1]):
            group = indices[k] >> PER_WORD_LOG2
            if group != last:
                place, last, word = place + 1, group, 0
                groups[place] = group
            whole = int(rint(data[k] * units))
            word |= whole << (_BITS * (indices[k] - (group << PER_WORD_LOG2)))
            words[place] = word
            norm += whole * whole
            total += whole
        own[r, 0] = (norm if distances else 0) - _OFFSETS * total
        own[r, 1] = norm if distances else 0
