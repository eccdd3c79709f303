"""Lines of ``numbers index:value index:value …``, the body of data files and of model files alike, parsed in compiled code.

A line holds ``n_leading`` numbers (a label; or an SV's coefficients), then pairs with ascending indices. Data files may add
notes: ``qid:N`` and ``cost:W`` among the pairs, ``# comment`` to the end of a line or on a line of its own, and words after
the last pair, which LIBSVM drops. The text is cut at newlines into pieces of fixed size; a first pass counts what each can
hold, so that all pieces can be parsed at once into their own part of the result. Numbers that compiled code cannot settle are
listed and left to Python.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit._jit import compiled, helper
from svmkit.io.decimals import byte_of, digits_value, first_marked, non_digits, read_number, tables, word_at
from svmkit.parallel import run_pieces

Text = NDArray[np.uint8]

_PIECE_BYTES = 1 << 18
_UNSETTLED_PER_CALL = 4096
_SMALLEST_NORMAL = 2.0**-1022

# Fields of a piece's state, shared with compiled code. _QID_ROW and _COST_ROW: 1 + the last row with such a note, 0 for none.
_AT, _ROW, _PAIR, _MAX_INDEX, _UNSETTLED, _FULL, _TAILS, _FIRST_TAIL, _QID_ROW, _COST_ROW, _FAULT, _FAULT_AT, _FIELDS = range(
    13
)

# How a word or a line comes out: well, at the line's end, or wrong.
_FINE, _END, _EMPTY, _FEW_NUMBERS, _NO_COLON, _BAD_INDEX, _NEGATIVE, _LARGE, _REPEATED, _DESCENDING = range(10)
_NO_VALUE, _CONTROL, _NOT_A_PAIR, _SECOND_NOTE, _BAD_QID, _NEGATIVE_COST = range(10, 16)

# Where a number belongs: the second column of the list of unsettled ones.
_LEADING, _VALUE, _COST = np.arange(3)

_REASONS = {
    _EMPTY: "the line is empty; delete it",
    _FEW_NUMBERS: "the line ends before all of its coefficients",
    _NO_COLON: "a pair is written index:value without blanks inside, and this word has no colon",
    _BAD_INDEX: "a feature index must be a whole number (write names as numbers, 1 for the first feature)",
    _NEGATIVE: "a feature index must not be negative",
    _LARGE: "a feature index must be below 2147483648",
    _REPEATED: "this feature index is given twice in the line",
    _DESCENDING: "feature indices must ascend within a line; sort the pairs",
    _NO_VALUE: "the value after the colon is missing",
    _CONTROL: "a control character stands between the pairs; separate them by blanks, and lines by newlines",
    _NOT_A_PAIR: "only index:value pairs may follow here",
    _SECOND_NOTE: "qid: and cost: may be given once in a line",
    _BAD_QID: "qid must be a whole number of at most 18 digits",
    _NEGATIVE_COST: "cost must not be negative",
}

_DECIMAL = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_HEXADECIMAL = re.compile(rb"[+-]?0[xX](?:[\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)(?:[pP][+-]?\d+)?")
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
        start = _line_start(text, position)
        self.line = 1 + count_newlines(text, start)
        self.column = position - start + 1
        self.token = _token(text, position)
        self.reason = reason
        super().__init__(f"line {self.line}, column {self.column}: {self.token!r}: {reason}")


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
    run_pieces(lambda p: _count(text, cuts[p], cuts[p + 1], counts[p]), len(counts))
    if len(text) and text[-1] != ord("\n"):
        counts[-1, 0] += 1
    bounds = np.zeros((len(cuts), 2), dtype=np.int64)
    np.cumsum(counts, axis=0, out=bounds[1:])
    filling = _Filling(text, manner, int(bounds[-1, 0]), int(bounds[-1, 1]), len(counts))
    run_pieces(lambda p: filling.piece(p, cuts[p], cuts[p + 1], bounds[p]), len(counts))
    return filling.result(bounds)


def count_newlines(text: Text, stop: int) -> int:
    """Number of newlines in ``text[:stop]``."""
    counts = np.zeros(2, dtype=np.int64)
    _count(text, 0, stop, counts)
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
        self.states = np.zeros((n_pieces, _FIELDS), dtype=np.int64)
        self.errors: dict[int, TextError] = {}

    def piece(self, p: int, start: int, stop: int, bound: NDArray[np.int64]) -> None:
        """Parses piece p into its part of the arrays, unless an earlier piece is already known to be wrong."""
        if any(q < p for q in self.errors):
            return
        state = self.states[p]
        state[_AT], (state[_ROW], state[_PAIR]), state[_FIRST_TAIL] = start, bound, -1
        unsettled = np.empty((_UNSETTLED_PER_CALL, 4), dtype=np.int64)
        tens, fives = tables()
        while state[_AT] < stop:
            state[_UNSETTLED] = 0
            _fill(
                *(self.padded, stop, self.manner.n_leading, int(self.manner.notes), tens, fives),
                *(self.leading, self.data, self.indices, self.indptr, self.cost, self.qid, unsettled, state),
            )
            try:
                self._settle(unsettled[: state[_UNSETTLED]])
                if state[_FAULT] != _FINE:
                    raise TextError(self.text, int(state[_FAULT_AT]), _REASONS[int(state[_FAULT])])
            except TextError as error:
                self.errors[p] = error
                return
            if state[_FULL] and not state[_UNSETTLED]:  # one line alone holds more than the list does
                unsettled = np.empty((2 * len(unsettled), 4), dtype=np.int64)

    def _settle(self, unsettled: NDArray[np.int64]) -> None:
        """Converts the listed numbers: (place, kind, end, slot)."""
        targets = {_LEADING: self.leading, _VALUE: self.data, _COST: self.cost}
        for at, kind, end, slot in unsettled.tolist():
            token = self.text[at:end].tobytes()
            if kind == _LEADING and self.manner.unknown and token == b"?":
                self.leading[slot] = np.nan
                continue
            value = _to_float(token)
            if isinstance(value, str):
                if kind == _LEADING and self.manner.notes:
                    value += "; a line begins with its label, a finite number such as 1 or -1"
                raise TextError(self.text, at, value)
            if kind == _VALUE and not self.manner.subnormal and abs(value) < _SMALLEST_NORMAL and _has_digits(token):
                raise TextError(self.text, at, "the value is too small to be a normal double; write 0")
            targets[kind][slot] = value

    def result(self, bounds: NDArray[np.int64]) -> SparseText:
        """The whole; gaps that comments and notes left between the pieces are closed. Raises the first piece's error."""
        if self.errors:
            raise self.errors[min(self.errors)]
        states = self.states
        rows, pairs = states[:, _ROW], states[:, _PAIR]
        leading, qid, cost = self.leading.reshape(-1, self.manner.n_leading), self.qid, self.cost
        data, indices, indptr = self.data, self.indices, self.indptr
        if not np.array_equal(states[:, [_ROW, _PAIR]], bounds[1:]):
            row_parts = [slice(a, b) for a, b in zip(bounds[:-1, 0], rows, strict=True)]
            pair_parts = [slice(a, b) for a, b in zip(bounds[:-1, 1], pairs, strict=True)]
            leading, qid, cost = (np.concatenate([a[s] for s in row_parts]) for a in (leading, qid, cost))
            data, indices = (np.concatenate([a[s] for s in pair_parts]) for a in (data, indices))
            shifts = bounds[:-1, 1] - np.concatenate([[0], np.cumsum(pairs - bounds[:-1, 1])[:-1]])
            ends = [indptr[1:][s] - shift for s, shift in zip(row_parts, shifts, strict=True)]
            indptr = np.concatenate([[np.int64(0)], *ends])
        tails = states[:, _FIRST_TAIL]
        return SparseText(
            leading=leading,
            data=data,
            indices=indices,
            indptr=indptr,
            max_index=int(states[:, _MAX_INDEX].max(initial=0)),
            cost=cost if states[:, _COST_ROW].any() else None,
            qid=qid if states[:, _QID_ROW].any() else None,
            n_tails=int(states[:, _TAILS].sum()),
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
        return "not a finite number; leave the example or the feature out"
    elif b"\0" in token:
        return "a NUL byte: this is no text file"
    else:
        return "not a number (decimals take a point)" if b"," in token else "not a number"
    return value if abs(value) < np.inf else "the number is too large for a double"


def _has_digits(token: bytes) -> bool:
    """Whether a number has a digit other than 0 before its exponent."""
    mantissa = re.split(rb"[pP]" if b"x" in token.lower() else rb"[eE]", token)[0]
    return re.search(rb"[1-9a-fA-F]", mantissa) is not None


def _line_start(text: Text, position: int) -> int:
    while position > 0 and text[position - 1] != ord("\n"):
        position -= 1
    return position


def _token(text: Text, position: int) -> str:
    """The word at ``position``, at most 40 characters of it, unprintable ones escaped."""
    word = re.split(rb"[ \t\r\n]", text[position : position + 200].tobytes(), maxsplit=1)[0]
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in word.decode("utf-8", "backslashreplace"))
    return shown if len(shown) <= 40 else shown[:37] + "..."


@compiled("void(u1[:], i8, i8, i8[:])")
def _count(text: Any, start: int, stop: int, counts: Any) -> None:
    """Adds the newlines and the colons of text[start:stop] to counts[0] and counts[1]."""
    newlines = 0
    colons = 0
    for i in range(start, stop):
        newlines += text[i] == 10
        colons += text[i] == 58
    counts[0] += newlines
    counts[1] += colons


@helper()
def _is_blank(byte: Any) -> Any:
    return byte == 32 or byte == 9


@helper()
def _skip_blanks(text: Any, i: int, stop: int) -> int:
    while i < stop and (text[i] == 32 or text[i] == 9):
        i += 1
    return i


@helper()
def _ends_word(text: Any, i: int, stop: int) -> bool:
    return i >= stop or text[i] == 32 or text[i] == 10 or text[i] == 9 or text[i] == 13


@helper()
def _ends_line(text: Any, i: int, stop: int) -> bool:
    """Whether nothing but carriage returns stands between i and the end of the line."""
    while i < stop and text[i] == 13:
        i += 1
    return i >= stop or text[i] == 10


@helper()
def _next_line(text: Any, i: int, stop: int) -> int:
    while i < stop and text[i] != 10:
        i += 1
    return min(i + 1, stop)


@helper(inline=True)
def _number(text: Any, i: int, stop: int, kind: int, slot: int, tens: Any, fives: Any, unsettled: Any, state: Any) -> Any:
    """(value, place after the word); a word that is no plain number goes onto the list, or sets state[_FULL]."""
    value, after, certain = read_number(text, i, tens, fives)
    if certain and _ends_word(text, after, stop):
        return value, after
    after = i
    while not _ends_word(text, after, stop):
        after += 1
    n = state[_UNSETTLED]
    if n == len(unsettled):
        state[_FULL] = 1
        return 0.0, after
    unsettled[n, 0] = i
    unsettled[n, 1] = kind
    unsettled[n, 2] = after
    unsettled[n, 3] = slot
    state[_UNSETTLED] = n + 1
    return 0.0, after


@helper()
def _read_index(text: Any, i: int, stop: int) -> Any:
    """(outcome, place after the colon, index) of ``[sign]digits:`` at i."""
    negative = text[i] == 45
    j = i + 1 if negative or text[i] == 43 else i
    first = j
    index: Any = 0
    while j < stop and text[j] >= 48 and text[j] <= 57:
        index = min(index * 10 + np.int64(text[j]) - 48, 1 << 40)
        j += 1
    if j == first or j >= stop or text[j] != 58:
        return _BAD_INDEX, i, index
    if negative and index > 0:
        return _NEGATIVE, i, index
    return (_FINE if index < 1 << 31 else _LARGE), j + 1, index


@helper()
def _without_pairs(text: Any, i: int, stop: int) -> bool:
    """Whether no colon follows in the line, but for colons right at i: the words that LIBSVM drops."""
    while i < stop and text[i] == 58:
        i += 1
    while i < stop and text[i] != 10 and not (text[i] == 35 and _is_blank(text[i - 1])):
        if text[i] == 58:
            return False
        i += 1
    return True


@helper()
def _odd_word(text: Any, i: int, stop: int, notes: int, state: Any) -> int:
    """What stands at i instead of a plain pair: _END (line's end, comment or dropped words), else what is wrong with it."""
    if _ends_line(text, i, stop):
        return _END
    if text[i] == 13:
        return _CONTROL
    if not notes:
        return _NOT_A_PAIR
    if text[i] == 35:
        return _END
    if _without_pairs(text, i, stop):
        if state[_TAILS] == 0:
            state[_FIRST_TAIL] = i
        state[_TAILS] += 1
        return _END
    j = i
    while not _ends_word(text, j, stop):
        if text[j] == 58:
            return _BAD_INDEX
        j += 1
    return _NO_COLON


@helper()
def _note(
    text: Any, i: int, stop: int, row: int, tens: Any, fives: Any, cost: Any, qid: Any, unsettled: Any, state: Any
) -> Any:
    """(outcome, place after) of ``qid:N`` or ``cost:W`` at i; _NOT_A_PAIR where neither stands there."""
    word = word_at(text, i)
    if (word & np.uint64(0xFFFFFFFF)) == np.uint64(0x3A646971):  # qid:
        if state[_QID_ROW] == row + 1:
            return _SECOND_NOTE, i
        first = i + 4
        j = first
        number: Any = 0
        while j < stop and text[j] >= 48 and text[j] <= 57 and j - first < 18:
            number = number * 10 + np.int64(text[j]) - 48
            j += 1
        if j == first or not _ends_word(text, j, stop):
            return _BAD_QID, i
        qid[row] = number
        state[_QID_ROW] = row + 1
        return _FINE, j
    if (word & np.uint64(0xFFFFFFFFFF)) == np.uint64(0x3A74736F63):  # cost:
        if state[_COST_ROW] == row + 1:
            return _SECOND_NOTE, i
        if i + 5 < stop and text[i + 5] == 45:
            return _NEGATIVE_COST, i
        if _ends_word(text, i + 5, stop):
            return _NO_VALUE, i
        cost[row], j = _number(text, i + 5, stop, _COST, row, tens, fives, unsettled, state)
        state[_COST_ROW] = row + 1
        return _FINE, j
    return _NOT_A_PAIR, i


@helper(inline=True)
def _leading_numbers(
    text: Any, i: int, stop: int, row: int, n_leading: int, tens: Any, fives: Any, leading: Any, unsettled: Any, state: Any
) -> Any:
    """(outcome, place after) of the numbers that begin a line."""
    for t in range(n_leading):
        i = _skip_blanks(text, i, stop)
        if _ends_line(text, i, stop):
            return (_EMPTY if t == 0 else _FEW_NUMBERS), i
        slot = row * n_leading + t
        leading[slot], i = _number(text, i, stop, _LEADING, slot, tens, fives, unsettled, state)
    return _FINE, i


@helper()
def _other_word(
    text: Any, i: int, stop: int, row: int, notes: int, tens: Any, fives: Any, cost: Any, qid: Any, unsettled: Any, state: Any
) -> Any:
    """(outcome, place after, index) of what stands at i instead of an index of plain digits; index −1 for a note."""
    if i >= stop:
        return _END, i, -1
    outcome, after, index = _read_index(text, i, stop)
    if outcome != _BAD_INDEX:
        return outcome, after, index
    outcome = _NOT_A_PAIR
    if notes:
        outcome, after = _note(text, i, stop, row, tens, fives, cost, qid, unsettled, state)
    if outcome == _NOT_A_PAIR:
        outcome = _odd_word(text, i, stop, notes, state)
    return outcome, after, -1


@helper(inline=True)
def _line(
    text: Any, i: int, stop: int, row: int, pair: int, n_leading: int, notes: int, tens: Any, fives: Any,
    leading: Any, data: Any, indices: Any, cost: Any, qid: Any, unsettled: Any, state: Any,
) -> Any:  # fmt: skip
    """(outcome, place, pairs so far) of the line at i; the place is where it ends, or where it is wrong."""
    cost[row] = 1.0
    qid[row] = 0
    outcome, i = _leading_numbers(text, i, stop, row, n_leading, tens, fives, leading, unsettled, state)
    if outcome != _FINE:
        return outcome, i, pair
    previous = -1
    while True:
        i = _skip_blanks(text, i, stop)
        word = word_at(text, i)
        marks = non_digits(word)
        digits = first_marked(marks)
        end = first_marked(marks & (marks - np.uint64(1)))
        if digits > 0 and digits < 8 and byte_of(word, digits) == np.uint64(58):
            after = i + digits + 1
            index: Any = np.int64(digits_value(word, digits))
        elif byte_of(word, 0) == np.uint64(10):
            outcome = _END
            break
        else:
            end = 8
            outcome, after, index = _other_word(text, i, stop, row, notes, tens, fives, cost, qid, unsettled, state)
            if outcome != _FINE:
                break
            if index < 0:
                i = after
                continue
        if index <= previous:
            outcome = _REPEATED if index == previous else _DESCENDING
            break
        # Most often the eight bytes hold all of the pair, its value a whole number, and the blank behind it.
        if end < 8 and end > digits + 1 and byte_of(word, end) == np.uint64(32):
            data[pair] = np.float64(np.int64(digits_value(word >> np.uint64(8 * (digits + 1)), end - digits - 1)))
            i += end
        else:
            start = _skip_blanks(text, after, stop)
            if _ends_line(text, start, stop):
                outcome = _NO_VALUE
                break
            data[pair], i = _number(text, start, stop, _VALUE, pair, tens, fives, unsettled, state)
        indices[pair] = index
        previous = index
        pair += 1
    state[_MAX_INDEX] = max(state[_MAX_INDEX], previous)
    return outcome, i, pair


@compiled(
    "void(u1[:], i8, i8, i8, f8[:], u8[:], f8[:], f8[:], i4[:], i8[:], f8[:], i8[:], i8[:, :], i8[:])",
)
def _fill(
    text: Any, stop: int, n_leading: int, notes: int, tens: Any, fives: Any,
    leading: Any, data: Any, indices: Any, indptr: Any, cost: Any, qid: Any, unsettled: Any, state: Any,
) -> None:  # fmt: skip
    """Parses lines from state[_AT] until ``stop``, a fault, or a full list; state[_AT] is then where the next line begins."""
    i = state[_AT]
    row = state[_ROW]
    pair = state[_PAIR]
    state[_FAULT] = _FINE
    state[_FULL] = 0
    while i < stop:
        settled = state[_UNSETTLED]
        first = _skip_blanks(text, i, stop)
        if not (notes and first < stop and text[first] == 35):
            outcome, at, after = _line(
                text, i, stop, row, pair, n_leading, notes, tens, fives, leading, data, indices, cost, qid, unsettled, state
            )
            if state[_FULL]:
                state[_UNSETTLED] = settled
                state[_QID_ROW] = min(state[_QID_ROW], row)
                state[_COST_ROW] = min(state[_COST_ROW], row)
                break
            if outcome != _END:
                state[_FAULT] = outcome
                state[_FAULT_AT] = at
                break
            first = at
            pair = after
            row += 1
            indptr[row] = pair
        i = _next_line(text, first, stop)
    state[_AT] = i
    state[_ROW] = row
    state[_PAIR] = pair
