"""Lines of ``numbers index:value index:value …`` in compiled code: ``count`` and ``fill``, which sparse_text.py drives.

``fill`` parses one piece of text into shared arrays, line by line. Of a line the pairs of the plainest kind are read many at a
time (``_plain_pairs``), what else there is word by word. The piece's ``state`` says where it stands and how it came out.
Numbers that ``fill`` cannot settle go onto a list for Python; a line for which that is too short is taken back and read again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from svmkit._jit import compiled, helper, intrinsic
from svmkit.io.characters import COLON, HASH, MINUS, NEWLINE, NINE, PLUS, POINT, RETURN, SPACE, TAB, ZERO
from svmkit.io.numbers_in import byte_of, digit_run, digits_value, load8, lowest, marks64, read_number, two_values, word_at

# Fields of a piece's state: the next byte, row and pair; the largest index; how many numbers are on the list, and whether it is
# too short; lines with dropped words, and the first such word; 1 + the last row with a qid, or a cost, 0 for none; the fault.
AT, ROW, PAIR, MAX_INDEX, UNSETTLED, FULL, TAILS, FIRST_TAIL, QID_ROW, COST_ROW, FAULT, FAULT_AT, FIELDS = range(13)

# How a word comes out: well, as a note and no pair, as the line's end, or wrong.
FINE, NOTE, END, EMPTY, FEW_NUMBERS, NO_COLON, BAD_INDEX, NEGATIVE, LARGE, REPEATED, DESCENDING = range(11)
NO_VALUE, CONTROL, NOT_A_PAIR, SECOND_NOTE, BAD_QID, NEGATIVE_COST = range(11, 17)

# Where a number belongs: the second column of the list of unsettled ones.
LEADING, VALUE, COST = np.arange(3)

# In place of where a value ends: it is no plain one, or not all of it is in the bytes at hand.
_NOT_PLAIN, _CUT_OFF = -1, 0

# How notes begin, as words of which the first byte is the lowest.
_QID, _QID_BYTES = np.uint64(int.from_bytes(b"qid:", "little")), np.uint64((1 << 32) - 1)
_COST, _COST_BYTES = np.uint64(int.from_bytes(b"cost:", "little")), np.uint64((1 << 40) - 1)


@intrinsic
def _equal_bytes() -> Any:
    """equal_bytes(bytes, offset, byte): how many of the 64 bytes from the offset on are ``byte``."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    def equal_bytes(typing: Any, array: Any, offset: Any, byte: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, args[0])
            wide, i32 = ir.VectorType(ir.IntType(8), 64), ir.IntType(32)
            place = builder.bitcast(builder.gep(view.data, [args[1]]), wide.as_pointer())
            one = builder.insert_element(ir.Constant(wide, ir.Undefined), builder.trunc(args[2], ir.IntType(8)), i32(0))
            wanted = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(i32, 64), [0] * 64))
            same = builder.icmp_unsigned("==", builder.load(place, align=1), wanted)
            return builder.ctpop(builder.bitcast(same, ir.IntType(64)))

        return types.int64(array, types.int64, types.int64), code

    return numba_intrinsic(equal_bytes)


@compiled("void(u1[:], i8, i8, i8[:])")
def count(text: Any, start: int, stop: int, counts: Any) -> None:
    """Adds the newlines and the colons of text[start:stop] to counts[0] and counts[1]."""
    newlines = colons = 0
    i = start
    while i + 64 <= stop:
        newlines += _equal_bytes(text, i, NEWLINE)
        colons += _equal_bytes(text, i, COLON)
        i += 64
    while i < stop:
        newlines += text[i] == NEWLINE
        colons += text[i] == COLON
        i += 1
    counts[0] += newlines
    counts[1] += colons


@helper()
def _is_blank(byte: Any) -> Any:
    return byte == SPACE or byte == TAB  # compiled shorter than "in"


@helper()
def _skip_blanks(text: Any, i: int, stop: int) -> int:
    while i < stop and _is_blank(text[i]):
        i += 1
    return i


@helper()
def _ends_word(text: Any, i: int, stop: int) -> bool:
    return i >= stop or text[i] == SPACE or text[i] == NEWLINE or text[i] == TAB or text[i] == RETURN


@helper()
def _ends_line(text: Any, i: int, stop: int) -> bool:
    """Whether nothing but carriage returns stands between i and the end of the line."""
    while i < stop and text[i] == RETURN:
        i += 1
    return i >= stop or text[i] == NEWLINE


@helper()
def _next_line(text: Any, i: int, stop: int) -> int:
    while i < stop and text[i] != NEWLINE:
        i += 1
    return min(i + 1, stop)


@helper(inline=True)
def _number(text: Any, i: int, stop: int, kind: int, slot: int, tens: Any, fives: Any, unsettled: Any, state: Any) -> Any:
    """(value, place after the word); a word that is no plain number goes onto the list, or sets state[FULL]."""
    value, after, certain = read_number(text, i, tens, fives)
    if certain and _ends_word(text, after, stop):
        return value, after
    after = i
    while not _ends_word(text, after, stop):
        after += 1
    n = state[UNSETTLED]
    if n == len(unsettled):
        state[FULL] = 1
        return 0.0, after
    unsettled[n, 0] = i
    unsettled[n, 1] = kind
    unsettled[n, 2] = after
    unsettled[n, 3] = slot
    state[UNSETTLED] = n + 1
    return 0.0, after


@helper()
def _read_index(text: Any, i: int, stop: int) -> Any:
    """(outcome, place after the colon, index) of ``[sign]digits:`` at i."""
    negative = text[i] == MINUS
    j = i + 1 if negative or text[i] == PLUS else i
    first = j
    index: Any = 0
    while j < stop and text[j] >= ZERO and text[j] <= NINE:
        index = min(index * 10 + np.int64(text[j]) - ZERO, 1 << 40)
        j += 1
    if j == first or j >= stop or text[j] != COLON:
        return BAD_INDEX, i, index
    if negative and index > 0:
        return NEGATIVE, i, index
    return (FINE if index < 1 << 31 else LARGE), j + 1, index


@helper()
def _without_pairs(text: Any, i: int, stop: int) -> bool:
    """Whether no colon follows in the line, but for colons right at i: the words that LIBSVM drops."""
    while i < stop and text[i] == COLON:
        i += 1
    while i < stop and text[i] != NEWLINE and not (text[i] == HASH and _is_blank(text[i - 1])):
        if text[i] == COLON:
            return False
        i += 1
    return True


@helper()
def _odd_word(text: Any, i: int, stop: int, notes: int, state: Any) -> int:
    """What stands at i instead of a plain pair: END (line's end, comment or dropped words), else what is wrong with it."""
    if _ends_line(text, i, stop):
        return END
    if text[i] == RETURN:
        return CONTROL
    if not notes:
        return NOT_A_PAIR
    if text[i] == HASH:
        return END
    if _without_pairs(text, i, stop):
        if state[TAILS] == 0:
            state[FIRST_TAIL] = i
        state[TAILS] += 1
        return END
    j = i
    while not _ends_word(text, j, stop):
        if text[j] == COLON:
            return BAD_INDEX
        j += 1
    return NO_COLON


@helper()
def _note(
    text: Any, i: int, stop: int, row: int, tens: Any, fives: Any, cost: Any, qid: Any, unsettled: Any, state: Any
) -> Any:
    """(outcome, place after) of ``qid:N`` or ``cost:W`` at i: NOTE, or what is wrong; NOT_A_PAIR where neither stands there."""
    word = word_at(text, i)
    if (word & _QID_BYTES) == _QID:
        if state[QID_ROW] == row + 1:
            return SECOND_NOTE, i
        first = i + 4
        j = first
        number: Any = 0
        while j < stop and text[j] >= ZERO and text[j] <= NINE and j - first < 18:
            number = number * 10 + np.int64(text[j]) - ZERO
            j += 1
        if j == first or not _ends_word(text, j, stop):
            return BAD_QID, i
        qid[row] = number
        state[QID_ROW] = row + 1
        return NOTE, j
    if (word & _COST_BYTES) == _COST:
        if state[COST_ROW] == row + 1:
            return SECOND_NOTE, i
        if i + 5 < stop and text[i + 5] == MINUS:
            return NEGATIVE_COST, i
        if _ends_word(text, i + 5, stop):
            return NO_VALUE, i
        cost[row], j = _number(text, i + 5, stop, COST, row, tens, fives, unsettled, state)
        state[COST_ROW] = row + 1
        return NOTE, j
    return NOT_A_PAIR, i


@helper(inline=True)
def _leading_numbers(
    text: Any, i: int, stop: int, row: int, n_leading: int, tens: Any, fives: Any, leading: Any, unsettled: Any, state: Any
) -> Any:
    """(outcome, place after) of the numbers that begin a line."""
    for t in range(n_leading):
        i = _skip_blanks(text, i, stop)
        if _ends_line(text, i, stop):
            return (EMPTY if t == 0 else FEW_NUMBERS), i
        slot = row * n_leading + t
        leading[slot], i = _number(text, i, stop, LEADING, slot, tens, fives, unsettled, state)
    return FINE, i


@helper()
def _other_word(
    text: Any, i: int, stop: int, row: int, notes: int, tens: Any, fives: Any, cost: Any, qid: Any, unsettled: Any, state: Any
) -> Any:
    """(outcome, place after, index) of what stands at i instead of an index of plain digits; the index only where FINE."""
    if i >= stop:
        return END, i, 0
    outcome, after, index = _read_index(text, i, stop)
    if outcome != BAD_INDEX:
        return outcome, after, index
    outcome = NOT_A_PAIR
    if notes:
        outcome, after = _note(text, i, stop, row, tens, fives, cost, qid, unsettled, state)
    if outcome == NOT_A_PAIR:
        outcome = _odd_word(text, i, stop, notes, state)
    return outcome, after, 0


@helper(inline=True)
def _plain_value(text: Any, start: int, marks: Any, begun: int, tens: Any) -> Any:
    """(value, place after it, marks behind that) of ``[-]digits[.digits]`` at ``start``; for the place _NOT_PLAIN where that is
    not what stands there, _CUT_OFF where the 64 bytes from ``begun`` on, which ``marks`` is about, end before it does.
    """
    negative = text[start] == MINUS
    if negative:
        start += 1
        marks = marks & (marks - np.uint64(1))
    if marks == np.uint64(0):
        return 0.0, _CUT_OFF, marks
    end = begun + lowest(marks)
    digits = end - start
    if digits < 1 or digits > 8:
        return 0.0, _NOT_PLAIN, marks
    value = np.float64(np.int64(digits_value(load8(text, start), digits)))
    if text[end] == POINT:
        marks = marks & (marks - np.uint64(1))
        if marks == np.uint64(0):
            return 0.0, _CUT_OFF, marks
        start = end + 1
        end = begun + lowest(marks)
        places = end - start
        if places < 1 or places > 8 or places + digits > 15:
            return 0.0, _NOT_PLAIN, marks
        part = np.float64(np.int64(digits_value(load8(text, start), places)))
        value = (value * tens[places] + part) / tens[places]  # of numbers that are exact: rounded once
    return (-value if negative else value), end, marks & (marks - np.uint64(1))


@helper(inline=True)
def _plain_pairs(text: Any, i: int, pair: int, previous: int, tens: Any, data: Any, indices: Any) -> Any:
    """(place, pairs, last index) after the pairs at i of the plainest kind, ``digits:[-]digits[.digits]`` with at most eight
    digits on either side of colon and point and 15 in all of a value, a blank or the line's end behind them.

    Where words end is read off 64 bytes at once, so that no pair waits for the one before it to be understood.
    """
    last = len(text) - 72  # what begins within the 64 bytes may take eight more
    begun = -1
    while i <= last and i > begun:
        begun = i
        marks = marks64(text, begun)
        while marks != np.uint64(0):
            colon = begun + lowest(marks)
            width = colon - i
            if text[colon] != COLON or width < 1 or width > 8:
                return i, pair, previous
            marks = marks & (marks - np.uint64(1))
            end = begun + lowest(marks)
            digits = end - colon - 1
            if width <= 4 and digits >= 1 and digits <= 3 and text[end] == SPACE and marks != np.uint64(0):
                index, value = two_values(load8(text, i), width, digits)
                marks = marks & (marks - np.uint64(1))
            else:
                value, end, marks = _plain_value(text, colon + 1, marks, begun, tens)
                if end == _CUT_OFF:
                    break
                if end == _NOT_PLAIN or (text[end] != SPACE and text[end] != NEWLINE):
                    return i, pair, previous
                index = np.int64(digits_value(load8(text, i), width))
            if index <= previous:
                return i, pair, previous
            indices[np.uint64(pair)] = index
            data[np.uint64(pair)] = value
            previous = index
            pair += 1
            if text[end] == NEWLINE:
                return end, pair, previous
            i = end + 1
    return i, pair, previous


@helper(inline=True)
def _line(
    text: Any, i: int, stop: int, row: int, pair: int, n_leading: int, notes: int, tens: Any, fives: Any,
    leading: Any, data: Any, indices: Any, cost: Any, qid: Any, unsettled: Any, state: Any,
) -> Any:  # fmt: skip
    """(outcome, place, pairs so far) of the line at i; the place is where it ends, or where it is wrong."""
    cost[row] = 1.0
    qid[row] = 0
    outcome, i = _leading_numbers(text, i, stop, row, n_leading, tens, fives, leading, unsettled, state)
    if outcome != FINE:
        return outcome, i, pair
    previous = np.int64(-1)  # of a plain −1 numba would compile _plain_pairs, once more, for just that
    plain = True
    while True:
        i = _skip_blanks(text, i, stop)
        if plain:
            so_far = pair
            i, pair, previous = _plain_pairs(text, i, pair, previous, tens, data, indices)
            plain = pair > so_far  # where a line's numbers are long, most often all are
            i = _skip_blanks(text, i, stop)
        word = word_at(text, i)
        digits = digit_run(word)
        outcome = FINE
        if digits > 0 and digits < 8 and byte_of(word, digits) == np.uint64(COLON):
            after = i + digits + 1
            index = np.int64(digits_value(word, digits))
        elif byte_of(word, 0) == np.uint64(NEWLINE):
            outcome = END
            break
        else:
            outcome, after, index = _other_word(text, i, stop, row, notes, tens, fives, cost, qid, unsettled, state)
            if outcome == NOTE:
                i = after
                continue
            if outcome != FINE:
                break
        if index <= previous:
            outcome = REPEATED if index == previous else DESCENDING
            break
        start = _skip_blanks(text, after, stop)
        if _ends_line(text, start, stop):
            outcome = NO_VALUE
            break
        data[pair], i = _number(text, start, stop, VALUE, pair, tens, fives, unsettled, state)
        indices[pair] = index
        previous = index
        pair += 1
    state[MAX_INDEX] = max(state[MAX_INDEX], previous)
    return outcome, i, pair


@compiled("void(u1[:], i8, i8, i8, f8[:], u8[:], f8[:], f8[:], i4[:], i8[:], f8[:], i8[:], i8[:, :], i8[:])")
def fill(
    text: Any, stop: int, n_leading: int, notes: int, tens: Any, fives: Any,
    leading: Any, data: Any, indices: Any, indptr: Any, cost: Any, qid: Any, unsettled: Any, state: Any,
) -> None:  # fmt: skip
    """Parses lines from state[AT] until ``stop``, a fault, or a full list; state[AT] is then where the next line begins."""
    i, row, pair = state[AT], state[ROW], state[PAIR]
    state[FAULT], state[FULL] = FINE, 0
    while i < stop:
        settled, tails = state[UNSETTLED], state[TAILS]
        end = _skip_blanks(text, i, stop)
        if not (notes and end < stop and text[end] == HASH):  # else all of the line is a comment, and no row
            outcome, end, pairs = _line(
                text, i, stop, row, pair, n_leading, notes, tens, fives, leading, data, indices, cost, qid, unsettled, state
            )
            if state[FULL]:
                state[UNSETTLED], state[TAILS] = settled, tails
                state[QID_ROW] = min(state[QID_ROW], row)
                state[COST_ROW] = min(state[COST_ROW], row)
                break
            if outcome != END:
                state[FAULT], state[FAULT_AT] = outcome, end
                break
            pair = pairs
            row += 1
            indptr[row] = pair
        i = _next_line(text, end, stop)
    state[AT], state[ROW], state[PAIR] = i, row, pair
