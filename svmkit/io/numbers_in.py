"""Decimal text to the nearest double inside compiled code, eight digits at a time; every result equals Python's ``float()``.

Three steps of rising cost. A mantissa below 2^53 with a power of ten up to 22 takes one exact multiplication or division
(Clinger, PLDI 1990). Up to 19 digits and any power take one or two 64 × 64 → 128 bit products with a table of powers of five
(Lemire, Software: Practice and Experience 51, 2021). What that leaves undecided (more digits, subnormal results, overflow,
hexadecimal) the caller hands to Python.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit._jit import helper, intrinsic
from svmkit.engine.llvm import reinterpret
from svmkit.io.characters import LARGE_E, MINUS, NINE, PLUS, POINT, ZERO, E

_SMALLEST_POWER, _LARGEST_POWER = -342, 308
#: 10^0 … 10^22 are doubles.
_EXACT_TENS = 23


@cache
def tables() -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    """10^0 … 10^22, all exact; and 5^q for q = −342 … 308 as normalised 128-bit numbers, high word and low word in turn.

    Powers with negative q are rounded up, the others down, as the proof of the method asks.
    """
    words = []
    for q in range(_SMALLEST_POWER, _LARGEST_POWER + 1):
        power = 5 ** abs(q)
        bits = power.bit_length()
        value = (power << 384) >> (bits + 256) if q >= 0 else (1 << (bits + 127)) // power + 1
        words += [value >> 64, value & (2**64 - 1)]
    return np.array([10.0**k for k in range(_EXACT_TENS)]), np.array(words, dtype=np.uint64)


@intrinsic
def load8() -> Any:
    """load8(bytes, offset): the eight bytes there as one number, the first byte lowest."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    def load8(typing: Any, array: Any, offset: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, args[0])
            place = builder.gep(view.data, [args[1]])
            return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

        return types.uint64(array, types.int64), code

    return numba_intrinsic(load8)


@intrinsic
def marks64() -> Any:
    """marks64(bytes, offset): a bit for each of the 64 bytes from the offset on, set where it is no decimal digit."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    def marks64(typing: Any, array: Any, offset: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, args[0])
            wide = ir.VectorType(ir.IntType(8), 64)
            place = builder.bitcast(builder.gep(view.data, [args[1]]), wide.as_pointer())
            digits = builder.sub(builder.load(place, align=1), ir.Constant(wide, [ZERO] * 64))
            marked = builder.icmp_unsigned(">", digits, ir.Constant(wide, [9] * 64))
            return builder.bitcast(marked, ir.IntType(64))

        return types.uint64(array, types.int64), code

    return numba_intrinsic(marks64)


@intrinsic
def high_product() -> Any:
    """high_product(a, b): the upper 64 bits of the 128-bit product."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    def high_product(typing: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            wide = ir.IntType(128)
            product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
            return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

        return types.uint64(types.uint64, types.uint64), code

    return numba_intrinsic(high_product)


#: _from_bits(word): the double with these bits; bits_of(value): the bits of a double.
_from_bits = reinterpret("uint64", "float64")
bits_of = reinterpret("float64", "uint64")


def _zero_counter(instruction: str) -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    def zeros(typing: Any, word: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(args[0], ir.Constant(ir.IntType(1), 0))

        return types.uint64(types.uint64), code

    return numba_intrinsic(zeros)


@intrinsic
def leading_zeros() -> Any:
    """leading_zeros(word): number of zero bits above the highest one."""
    return _zero_counter("ctlz")


@intrinsic
def _trailing_zeros() -> Any:
    """trailing_zeros(word): number of zero bits below the lowest one; 64 for 0."""
    return _zero_counter("cttz")


@helper()
def lowest(marks: Any) -> Any:
    """The place of the lowest bit set; 64 for none."""
    return np.int64(_trailing_zeros(marks))


@helper()
def word_at(text: Any, i: int) -> Any:
    """Eight bytes of ``text`` from i, zeros beyond its end; the text has eight bytes or more."""
    beyond = i + 8 - len(text)
    if beyond <= 0:
        return load8(text, i)
    half = np.uint64(4 * beyond)  # in two halves: a shift by 64 bits is undefined
    return (load8(text, len(text) - 8) >> half) >> half


@helper()
def non_digits(word: Any) -> Any:
    """The top bit of each byte that is no decimal digit. Exact up to the first byte above 127, and no such byte is missed."""
    nibbles = word ^ np.uint64(0x3030303030303030)
    # A digit leaves 0 … 9 here; adding 0x76 carries any larger value into the byte's top bit.
    return ((nibbles + np.uint64(0x7676767676767676)) | nibbles) & np.uint64(0x8080808080808080)


@helper()
def first_marked(marks: Any) -> Any:
    """The first byte whose top bit is set in ``marks``; 8 for none."""
    return np.int64(_trailing_zeros(marks) >> np.uint64(3))


@helper()
def digit_run(word: Any) -> Any:
    """How many of the word's bytes, from the first, are decimal digits (0 … 8)."""
    return first_marked(non_digits(word))


@helper()
def byte_of(word: Any, k: int) -> Any:
    """Byte k of the word, the first being 0."""
    return (word >> np.uint64(8 * k)) & np.uint64(0xFF)


@helper()
def digits_value(word: Any, count: int) -> Any:
    """The number that the word's first ``count`` bytes (1 … 8, all digits) spell."""
    # The digits move to the last places, zeros before them; then neighbours are joined: 8 × 1, 4 × 2, 2 × 4 digits.
    digits = (word ^ np.uint64(0x3030303030303030)) << np.uint64(64 - 8 * count)
    digits = digits * np.uint64(10) + (digits >> np.uint64(8))
    mask = np.uint64(0x000000FF000000FF)
    upper = (digits & mask) * np.uint64(100 + (1000000 << 32))
    lower = ((digits >> np.uint64(16)) & mask) * np.uint64(1 + (10000 << 32))
    return (upper + lower) >> np.uint64(32)


@helper()
def two_values(word: Any, first: int, second: int) -> Any:
    """The numbers that the word's bytes 0 … first − 1 and first + 1 … first + second spell, each of one to four digits."""
    # Each moves to the end of its half of the word; then neighbours are joined as in ``digits_value``, both halves at once.
    digits = word & np.uint64(0x0F0F0F0F0F0F0F0F)
    left = (digits << np.uint64(32 - 8 * first)) & np.uint64(0xFFFFFFFF)
    right = (digits >> np.uint64(8 * first + 8)) << np.uint64(64 - 8 * second)
    digits = left | right
    digits = (digits * np.uint64(10) + (digits >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    digits = digits * np.uint64(100) + (digits >> np.uint64(16))
    return np.int64(digits & np.uint64(0xFFFF)), np.float64(np.int64((digits >> np.uint64(32)) & np.uint64(0xFFFF)))


@helper()
def _scale(mantissa: Any, exponent: int, fives: Any) -> Any:
    """(double nearest to mantissa · 10^exponent, certain or not), mantissa > 0; subnormal and infinite ones are not."""
    if exponent < _SMALLEST_POWER or exponent > _LARGEST_POWER:
        return 0.0, False
    shift = leading_zeros(mantissa)
    scaled = mantissa << shift
    at = 2 * (exponent - _SMALLEST_POWER)
    high = high_product(scaled, fives[at])
    low = scaled * fives[at]
    if (high & np.uint64(0x1FF)) == np.uint64(0x1FF):  # the bits kept could still change: take the table's second word
        more = high_product(scaled, fives[at + 1])
        low = low + more
        if low < more:
            high = high + np.uint64(1)
    if low == np.uint64(0xFFFFFFFFFFFFFFFF) and (exponent < -27 or exponent > 55):
        return 0.0, False
    top = high >> np.uint64(63)
    bits = high >> (top + np.uint64(9))  # 54 bits: the significand and one to round by
    # floor(log2(10^exponent)) from 217706 / 2^16, in integers
    binary = ((217706 * exponent) >> 16) + 63 + np.int64(top) - np.int64(shift) + 1023
    if binary <= 0:
        return 0.0, False
    halfway = low <= np.uint64(1) and exponent >= -4 and exponent <= 23 and (bits & np.uint64(3)) == np.uint64(1)
    if halfway and (bits << (top + np.uint64(9))) == high:
        bits = bits & np.uint64(0xFFFFFFFFFFFFFFFE)  # exactly between two doubles: to the even one
    bits = (bits + (bits & np.uint64(1))) >> np.uint64(1)
    if bits >= np.uint64(1 << 53):
        bits = np.uint64(1 << 52)
        binary += 1
    if binary >= 2047:
        return 0.0, False
    return _from_bits((bits & np.uint64((1 << 52) - 1)) | (np.uint64(binary) << np.uint64(52))), True


@helper()
def _read_exponent(text: Any, i: int) -> Any:
    """(power, next place) of ``e±digits`` at i, or (0, i) where that is not what stands there."""
    j = i + 1
    negative = False
    if j < len(text) and (text[j] == PLUS or text[j] == MINUS):
        negative = text[j] == MINUS
        j += 1
    power: Any = 0
    first = j
    while j < len(text) and text[j] >= ZERO and text[j] <= NINE:
        power = min(power * 10 + np.int64(text[j]) - ZERO, 1 << 40)
        j += 1
    if j == first:
        return 0, i
    return -power if negative else power, j


@helper()
def _too_long(text: Any, i: int, digits: int) -> bool:
    """Whether the number whose ``digits`` digits start at i has more than 19 after its leading zeros."""
    while digits > 19 and (text[i] == ZERO or text[i] == POINT):
        if text[i] == ZERO:
            digits -= 1
        i += 1
    return digits > 19


@helper(inline=True)
def _more_digits(text: Any, i: int, mantissa: Any, tens: Any) -> Any:
    """(``mantissa`` with the digits from i on behind its own, the place after them)."""
    count = 8
    while count == 8:
        word = word_at(text, i)
        count = digit_run(word)
        if count > 0:
            mantissa = mantissa * np.uint64(tens[count]) + digits_value(word, count)
        i += count
    return mantissa, i


@helper(inline=True)
def read_number(text: Any, i: int, tens: Any, fives: Any) -> Any:
    """(value, place after it, certain) of the decimal number at i; not certain: Python must decide, or it is no number."""
    size = len(text)
    negative = i < size and text[i] == MINUS
    if negative or (i < size and text[i] == PLUS):
        i += 1
    start = i
    mantissa, i = _more_digits(text, i, np.uint64(0), tens)
    digits = i - start
    exponent = 0
    if i < size and text[i] == POINT:
        i += 1
        fraction = i
        mantissa, i = _more_digits(text, i, mantissa, tens)
        exponent = fraction - i
        digits -= exponent
    if digits == 0:
        return 0.0, i, False
    if i < size and (text[i] == E or text[i] == LARGE_E):
        power, i = _read_exponent(text, i)
        exponent += power
    if digits > 19 and _too_long(text, start, digits):
        return 0.0, i, False
    if mantissa == np.uint64(0):
        return (-0.0 if negative else 0.0), i, True
    if mantissa <= np.uint64(1 << 53) and exponent >= -22 and exponent <= 22:
        value = np.float64(mantissa)
        value = value / tens[-exponent] if exponent < 0 else value * tens[exponent]
        return (-value if negative else value), i, True
    value, certain = _scale(mantissa, exponent, fives)
    return (-value if negative else value), i, certain
