"""Doubles as decimal text, in compiled code: the fewest digits that read back as the same number, or so many significant ones.

``shortest`` is Schubfach (Giulietti, "The Schubfach way to render doubles", 2021): a double c·2^q and the ends of the interval
that rounds to it, times a power of ten that leaves 17 digits before the point, from a 128-bit table; of the whole numbers in
that interval the one with most zeros at its end, or else the nearest. ``significant`` is C's ``%.ng``, from one such product:
what follows the digits is known to 2^−64 of their unit, so unless it is that near to a half, it says which way to round; the
few other numbers are left to Python.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy import int64, uint64
from numpy.typing import NDArray

from svmkit._jit import compiled, helper
from svmkit.data import Floats
from svmkit.io.characters import MINUS, PLUS, ZERO, E
from svmkit.io.digits import put_digits, put_plain
from svmkit.io.numbers_in import bits_of, high_product, leading_zeros
from svmkit.io.texts import Texts

#: The most bytes of a number: sign, digit, point, 16 digits, e, sign, 3 digits; or sign, 0.000 and 17 digits.
_WIDEST = 24
_LEAST_POWER, _MOST_POWER = -303, 340
#: Python writes numbers from 10^16 on with an exponent.
_PLAIN_BELOW = 16
_UNDECIDED = 255
_NAN, _INF = tuple(b"nan"), tuple(b"inf")
_FRACTION, _HIDDEN = uint64((1 << 52) - 1), uint64(1 << 52)
_1, _2, _4, _10, _40 = uint64(1), uint64(2), uint64(4), uint64(10), uint64(40)


def shortest(values: Floats) -> Texts:
    """The shortest text that reads back as each value, as Python writes it, but a whole number without a point."""
    values, texts = np.ascontiguousarray(values), _room(len(values))
    _shortest(values, _powers(), *texts)
    return texts


def significant(values: Floats, digits: int) -> Texts:
    """``%.{digits}g`` of each value, of 6 to 17 digits."""
    values, texts = np.ascontiguousarray(values), _room(len(values))
    _significant(values, digits, _powers(), *texts)
    for i in np.flatnonzero(texts.lengths == _UNDECIDED).tolist():
        text = f"{values[i]:.{digits}g}".encode("ascii")
        texts.lengths[i] = len(text)
        texts.characters[i] = np.frombuffer(text.ljust(_WIDEST, b"\0"), np.uint8)
    return texts


def _room(n: int) -> Texts:
    return Texts(np.zeros((n, _WIDEST), np.uint8), np.zeros(n, np.uint8))


@cache
def _powers() -> NDArray[np.uint64]:
    """10^p for p = −303 … 340, rounded up to 128 bits of which the first is 1; high word and low word in turn."""
    words = []
    for p in range(_LEAST_POWER, _MOST_POWER + 1):
        power = 10 ** abs(p)
        bits = power.bit_length()
        value = -(-(power << 128) >> bits) if p >= 0 else -(-(1 << (bits + 127)) // power)
        words += [value >> 64, value & (2**64 - 1)]
    return np.array(words, dtype=np.uint64)


@compiled("void(f8[:], u8[:], u1[:, :], u1[:])")
def _shortest(values: Any, powers: Any, characters: Any, lengths: Any) -> None:
    for i in range(len(values)):
        out = characters[i]
        c, q, at = _begin(values[i], out)
        if c == uint64(0):
            lengths[i] = at
        else:
            digits, exponent = _fewest(c, q, powers)
            lengths[i] = _put(digits, exponent, int64(_PLAIN_BELOW), out, at)  # as int64 compiled but once


@compiled("void(f8[:], i8, u8[:], u1[:, :], u1[:])")
def _significant(values: Any, n: Any, powers: Any, characters: Any, lengths: Any) -> None:
    limit = _1
    for _ in range(n):
        limit *= _10
    for i in range(len(values)):
        out = characters[i]
        c, q, at = _begin(values[i], out)
        if c == uint64(0):
            lengths[i] = at
        else:
            digits, exponent = _rounded(c, q, n, limit, powers)
            lengths[i] = _UNDECIDED if digits == uint64(0) else _put(digits, exponent, n, out, at)


@helper()
def _begin(value: Any, out: Any) -> Any:
    """Writes the sign, and all of 0 and of what is no number; (c, q, where to go on), the size being c·2^q: c 0 when done."""
    bits = bits_of(value)
    at = 0
    if bits >> uint64(63) and value == value:
        out[0] = MINUS
        at = 1
    exponent, c = int64((bits >> uint64(52)) & uint64(2047)), bits & _FRACTION
    if exponent == 2047:
        for k in range(3):
            out[at + k] = _INF[k] if c == uint64(0) else _NAN[k]
        return uint64(0), 0, at + 3
    if exponent == 0:
        if c == uint64(0):
            out[at] = ZERO
            at += 1
        return c, int64(-1074), at
    return c | _HIDDEN, exponent - 1075, at


@helper()
def _fewest(c: Any, q: Any, powers: Any) -> Any:
    """(digits, e): digits·10^e has the fewest digits of all numbers that round to c·2^q, and is the nearest of these."""
    if -53 < q <= 0 and (c & ((_1 << uint64(-q)) - _1)) == uint64(0):  # a whole number
        return c >> uint64(-q), int64(0)
    odd = c & _1  # the ends of the interval round to c·2^q where c is even
    closer = c == _HIDDEN and q > -1074  # the next double below is half as far as that above
    k = (q * 1262611 - (524031 if closer else 0)) >> 22  # floor of log10 of the interval's length
    h = uint64(q + _log2_of_power(-k) + 1)
    at = 2 * (-k - _LEAST_POWER)
    high, low = powers[at], powers[at + 1]
    middle = _4 * c
    below = _to_odd(high, low, (middle - (_1 if closer else _2)) << h) + odd
    scaled = _to_odd(high, low, middle << h)
    above = _to_odd(high, low, (middle + _2) << h) - odd
    s = scaled >> _2
    if s >= _10:
        fewer = s // _10
        low_fits, high_fits = below <= _40 * fewer, _40 * fewer + _40 <= above
        if low_fits != high_fits:
            return fewer + (_1 if high_fits else uint64(0)), k + 1
    low_fits, high_fits = below <= _4 * s, _4 * s + _4 <= above
    if low_fits != high_fits:
        return s + (_1 if high_fits else uint64(0)), k
    half = _4 * s + _2
    up = scaled > half or (scaled == half and (s & _1) != uint64(0))
    return s + (_1 if up else uint64(0)), k


@helper()
def _to_odd(high: Any, low: Any, factor: Any) -> Any:
    """The first word of a 128-bit number times ``factor``, its last bit 1 also where anything follows."""
    carried, middle = high_product(low, factor), high * factor
    first, middle = high_product(high, factor), middle + carried
    if middle < carried:
        first += _1
    return first | (_1 if middle > _1 else uint64(0))


@helper()
def _rounded(c: Any, q: Any, n: Any, limit: Any, powers: Any) -> Any:
    """(digits, e): c·2^q ≈ digits·10^e with ``n`` digits; 10^n is ``limit``. Digits 0 where rounding is not decided."""
    zeros = leading_zeros(c)
    c, q = c << zeros, q - int64(zeros)
    exponent = ((q + 63) * 1262611) >> 22  # floor(log10) of the power of two below it: its own, or one less
    for _ in range(2):
        power = n - 1 - exponent
        at = 2 * (power - _LEAST_POWER)
        high, low = powers[at], powers[at + 1]
        carried, middle = high_product(low, c), high * c
        first, middle = high_product(high, c), middle + carried
        if middle < carried:
            first += _1
        # the number times 10^power is (first, middle) / 2^(64 + shift), too large by less than 1 in the last place of middle
        shift = uint64(-(q + _log2_of_power(power) + 1))
        digits, rest = first >> shift, first & ((_1 << shift) - _1)
        if digits < limit:
            half = _1 << (shift - _1)
            if (rest == half and middle <= _2) or (rest == half - _1 and middle >= ~_2):
                return uint64(0), exponent
            digits += _1 if rest >= half else uint64(0)
            return digits, -power
        exponent += 1
    return uint64(0), exponent


@helper()
def _log2_of_power(p: Any) -> Any:
    """floor(log2(10^p))."""
    return (p * 1741647) >> 19


@helper()
def _put(digits: Any, exponent: Any, plain_below: Any, out: Any, at: Any) -> Any:
    """Writes digits·10^exponent as ``%g`` does, plain below 10^plain_below; returns where it ends."""
    while digits % _10 == uint64(0):
        digits //= _10
        exponent += 1
    length, more = int64(1), digits // _10
    while more > uint64(0):
        length += 1
        more //= _10
    exponent += length - 1
    whole = int64(digits)
    if -4 <= exponent < plain_below:
        return put_plain(whole, length, exponent, out, at)
    at = put_digits(whole, length, 1, out, at)
    out[at], out[at + 1] = E, MINUS if exponent < 0 else PLUS
    size = abs(exponent)
    return put_digits(size, 3 if size >= 100 else 2, 0, out, at + 2)
