"""Lines of ``numbers index:value index:value …``, the body of data files and of model files alike, parsed in compiled code.

A line holds ``n_leading`` numbers (a label; or an SV's coefficients), then pairs with ascending indices. Data files may add
notes: ``qid:N`` and ``cost:W`` among the pairs, ``# comment`` to the end of a line or on a line of its own, and words after
the last pair, which LIBSVM drops. The text is cut at newlines into pieces of fixed size; a first pass counts what each can
hold, so that all pieces can be parsed at once into their own part of the result. Numbers that compiled code cannot settle are
listed and left to Python.
"""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit.io import sparse_lines as lines
from svmkit.io.numbers_in import tables
from svmkit.parallel import run_pieces

Text = NDArray[np.uint8]

_PIECE_BYTES = 1 << 18
_UNSETTLED_PER_CALL = 4096
_SMALLEST_NORMAL = 2.0**-1022

_REASONS = {
    lines.EMPTY: "the line is empty; delete it",
    lines.FEW_NUMBERS: "the line ends before all of its coefficients",
    lines.NO_COLON: "a pair is written index:value without blanks inside, and this word has no colon",
    lines.BAD_INDEX: "a feature index must be a whole number (write names as numbers, 1 for the first feature)",
    lines.NEGATIVE: "a feature index must not be negative",
    lines.LARGE: "a feature index must be below 2147483648",
    lines.REPEATED: "this feature index is given twice in the line",
    lines.DESCENDING: "feature indices must ascend within a line; sort the pairs",
    lines.NO_VALUE: "the value after the colon is missing",
    lines.CONTROL: "a control character stands between the pairs; separate them by blanks, and lines by newlines",
    lines.NOT_A_PAIR: "only index:value pairs may follow here",
    lines.SECOND_NOTE: "qid: and cost: may be given once in a line",
    lines.BAD_QID: "qid must be a whole number of at most 18 digits",
    lines.NEGATIVE_COST: "cost must not be negative",
}

_DECIMAL = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_HEXADECIMAL = re.compile(rb"[+-]?0[xX](?:[\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)(?:[pP][+-]?\d+)?")
_BEYOND = "not a finite number"
_NOT_FINITE = re.compile(rb"[+-]?(?:nan(?:\(\w*\))?|inf|infinity)", re.IGNORECASE)


class SparseText(NamedTuple):
    """n lines. ``leading`` f8 (n, n_leading); pairs as compressed sparse rows ``data`` f8, ``indices`` i4, ``indptr`` i8 (n +
    1,); ``max_index`` (0 without pairs); ``cost`` f8 (n,), 1 where not given, and ``qid`` i8 (n,), 0 where not given, or None
    where no line has one; ``n_tails`` lines had words dropped after their last pair, the first such word at byte
    ``first_tail``.
    """

    leading: NDArray[np.float64]
    data: NDArray[np.float64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]
    max_index: int
    cost: NDArray[np.float64] | None
    qid: NDArray[np.int64] | None
    n_tails: int
    first_tail: int


class TextError(Exception):
    """A line that cannot be parsed: 1-based ``line`` and ``column`` of ``token`` (shortened, printable), and the reason."""

    def __init__(self, text: Text, position: int, reason: str) -> None:
        start = line_start(text, position)
        self.line = 1 + count_newlines(text, start)
        self.column = position - start + 1
        self.token = _token(text, position)
        self.reason = reason
        super().__init__(f"line {self.line}, column {self.column}: '{self.token}': {reason}")


@dataclass(frozen=True)
class _Manner:
    """What the caller allows."""

    n_leading: int
    notes: bool
    unknown: bool
    subnormal: bool


def parse(text: Text, *, n_leading: int = 1, notes: bool = True, unknown: bool = False, subnormal: bool = False) -> SparseText:
    """Parses every line of ``text``; the result does not depend on the number of threads. Raises TextError for the first bad
    line.

    ``notes`` allows comments, ``qid:``, ``cost:`` and dropped words. ``unknown`` reads a leading ``?`` as nan. ``subnormal``
    allows values below 2^−1022 in size, which LIBSVM refuses in data files. Every number equals Python's ``float()`` of it.
    """
    manner = _Manner(n_leading, notes, unknown, subnormal)
    cuts = _cuts(text)
    counts = np.zeros((len(cuts) - 1, 2), dtype=np.int64)

    def count(p: int) -> None:
        lines.count(text, cuts[p], cuts[p + 1], counts[p])
        let_go(text, cuts[p], cuts[p + 1])

    run_pieces(count, len(counts))
    if len(text) and text[-1] != ord("\n"):
        counts[-1, 0] += 1
    bounds = np.zeros((len(cuts), 2), dtype=np.int64)
    np.cumsum(counts, axis=0, out=bounds[1:])
    filling = _Filling(text, manner, int(bounds[-1, 0]), int(bounds[-1, 1]), len(counts))
    run_pieces(lambda p: filling.piece(p, cuts[p], cuts[p + 1], bounds[p]), len(counts))
    return filling.result(bounds)


def let_go(text: Text, start: int, stop: int) -> None:
    """Gives back the memory of some bytes of a mapped file, or of a part of one, while something else is made of them; whole
    pages of it.

    Whoever looks at them once more has them read once more.
    """
    whole = text.base if isinstance(text.base, np.ndarray) else text
    mapped = whole.base.obj if isinstance(whole.base, memoryview) else None
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        behind = text.ctypes.data - whole.ctypes.data
        first, last = -(-(behind + start) // mmap.PAGESIZE) * mmap.PAGESIZE, (behind + stop) // mmap.PAGESIZE * mmap.PAGESIZE
        if first < last:
            mapped.madvise(mmap.MADV_DONTNEED, first, last - first)


def count_newlines(text: Text, stop: int) -> int:
    """Number of newlines in ``text[:stop]``."""
    counts = np.zeros(2, dtype=np.int64)
    lines.count(text, 0, stop, counts)
    return int(counts[0])


def _cuts(text: Text) -> list[int]:
    """Places that cut the text into pieces, each ending after a newline; they depend on the text alone."""
    cuts = [0]
    while cuts[-1] < len(text):
        at = min(cuts[-1] + _PIECE_BYTES, len(text))
        while at < len(text):
            found = np.flatnonzero(text[at : at + 4096] == ord("\n"))
            if len(found):
                at += int(found[0]) + 1
                break
            at = min(at + 4096, len(text))
        cuts.append(at)
    return cuts


class _Filling:
    """The arrays being filled, and what each piece came to."""

    def __init__(self, text: Text, manner: _Manner, n_lines: int, n_pairs: int, n_pieces: int) -> None:
        self.text, self.manner = text, manner
        self.padded = text if len(text) >= 8 else np.append(text, np.zeros(8, dtype=np.uint8))
        self.leading = np.empty(n_lines * manner.n_leading)
        self.data = np.empty(n_pairs)
        self.indices = np.empty(n_pairs, dtype=np.int32)
        self.indptr = np.zeros(n_lines + 1, dtype=np.int64)
        self.cost = np.empty(n_lines)
        self.qid = np.empty(n_lines, dtype=np.int64)
        self.states = np.zeros((n_pieces, lines.FIELDS), dtype=np.int64)
        self.errors: dict[int, TextError] = {}

    def piece(self, p: int, start: int, stop: int, bound: NDArray[np.int64]) -> None:
        """Parses piece p into its part of the arrays, unless an earlier piece is already known to be wrong."""
        if min(self.errors, default=p) < p:  # in one call: other threads may add to them meanwhile
            return
        state = self.states[p]
        state[lines.AT], (state[lines.ROW], state[lines.PAIR]), state[lines.FIRST_TAIL] = start, bound, -1
        unsettled = np.empty((_UNSETTLED_PER_CALL, 4), dtype=np.int64)
        tens, fives = tables()
        while state[lines.AT] < stop:
            state[lines.UNSETTLED] = 0
            lines.fill(
                *(self.padded, stop, self.manner.n_leading, int(self.manner.notes), tens, fives),
                *(self.leading, self.data, self.indices, self.indptr, self.cost, self.qid, unsettled, state),
            )
            try:
                self._settle(unsettled[: state[lines.UNSETTLED]])
                if state[lines.FAULT] != lines.FINE:
                    raise TextError(self.text, int(state[lines.FAULT_AT]), _REASONS[int(state[lines.FAULT])])
            except TextError as error:
                self.errors[p] = error
                return
            if state[lines.FULL] and not state[lines.UNSETTLED]:  # one line alone holds more than the list does
                unsettled = np.empty((2 * len(unsettled), 4), dtype=np.int64)
        let_go(self.text, start, stop)

    def _settle(self, unsettled: NDArray[np.int64]) -> None:
        """Converts the listed numbers: (place, kind, end, slot)."""
        targets = {lines.LEADING: self.leading, lines.VALUE: self.data, lines.COST: self.cost}
        for at, kind, end, slot in unsettled.tolist():
            token = self.text[at:end].tobytes()
            if kind == lines.LEADING and self.manner.unknown and token == b"?":
                self.leading[slot] = np.nan
                continue
            value = _to_float(token.rstrip(b"\v\f") if kind == lines.VALUE else token)  # svm-train ends values at these too
            if isinstance(value, str):
                if value == _BEYOND and self.manner.notes:
                    value += "; leave the example or the feature out"
                if kind == lines.LEADING and self.manner.notes:
                    value += "; a line begins with its label, a finite number such as 1 or -1"
                raise TextError(self.text, at, value)
            if kind == lines.VALUE and not self.manner.subnormal and abs(value) < _SMALLEST_NORMAL and _has_digits(token):
                raise TextError(self.text, at, "the value is too small to be a normal double; write 0")
            targets[kind][slot] = value

    def result(self, bounds: NDArray[np.int64]) -> SparseText:
        """The whole; gaps that comments and notes left between the pieces are closed. Raises the first piece's error."""
        if self.errors:
            raise self.errors[min(self.errors)]
        states = self.states
        rows, pairs = states[:, lines.ROW], states[:, lines.PAIR]
        leading, qid, cost = self.leading.reshape(len(self.qid), self.manner.n_leading), self.qid, self.cost
        data, indices, indptr = self.data, self.indices, self.indptr
        if not np.array_equal(states[:, [lines.ROW, lines.PAIR]], bounds[1:]):
            row_parts = [slice(a, b) for a, b in zip(bounds[:-1, 0], rows, strict=True)]
            pair_parts = [slice(a, b) for a, b in zip(bounds[:-1, 1], pairs, strict=True)]
            leading, qid, cost = (np.concatenate([a[s] for s in row_parts]) for a in (leading, qid, cost))
            data, indices = (np.concatenate([a[s] for s in pair_parts]) for a in (data, indices))
            shifts = bounds[:-1, 1] - np.concatenate([[0], np.cumsum(pairs - bounds[:-1, 1])[:-1]])
            ends = [indptr[1:][s] - shift for s, shift in zip(row_parts, shifts, strict=True)]
            indptr = np.concatenate([[np.int64(0)], *ends])
        tails = states[:, lines.FIRST_TAIL]
        return SparseText(
            leading=leading,
            data=data,
            indices=indices,
            indptr=indptr,
            max_index=int(states[:, lines.MAX_INDEX].max(initial=0)),
            cost=cost if states[:, lines.COST_ROW].any() else None,
            qid=qid if states[:, lines.QID_ROW].any() else None,
            n_tails=int(states[:, lines.TAILS].sum()),
            first_tail=int(tails[tails >= 0].min(initial=len(self.text))),
        )


def _to_float(token: bytes) -> float | str:
    """The number that ``token`` spells as C's strtod would read it, or why it is none."""
    if _DECIMAL.fullmatch(token):
        value = float(token)
    elif _HEXADECIMAL.fullmatch(token):
        try:
            value = float.fromhex(token.decode())
        except OverflowError:
            value = np.inf
    elif _NOT_FINITE.fullmatch(token):
        return _BEYOND
    elif b"\0" in token:
        return "a NUL byte: this is no text file"
    else:
        return "not a number (decimals take a point)" if b"," in token else "not a number"
    return value if abs(value) < np.inf else "the number is too large for a double"


def _has_digits(token: bytes) -> bool:
    """Whether a number has a digit other than 0 before its exponent."""
    mantissa = re.split(rb"[pP]" if b"x" in token.lower() else rb"[eE]", token)[0]
    return re.search(rb"[1-9a-fA-F]", mantissa) is not None


def line_start(text: Text, position: int) -> int:
    """Where the line begins that ``position`` is in."""
    size = 1 << 16
    while True:
        first = max(0, position - size)
        found = text[first:position].tobytes().rfind(b"\n")
        if found >= 0 or first == 0:
            return first + found + 1
        size *= 2


def line_end(text: Text, position: int) -> int:
    """Where the newline stands that ends the line of ``position``; the text's end if there is none."""
    size = 1 << 12
    while True:
        found = text[position : position + size].tobytes().find(b"\n")
        if found >= 0 or position + size >= len(text):
            return position + found if found >= 0 else len(text)
        size *= 2


def _token(text: Text, position: int) -> str:
    """The word at ``position``, at most 40 characters of it, unprintable ones escaped."""
    word = re.split(rb"[ \t\r\n]", text[position : position + 200].tobytes(), maxsplit=1)[0]
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in word.decode("utf-8", "backslashreplace"))
    return shown if len(shown) <= 40 else shown[:37] + "..."
