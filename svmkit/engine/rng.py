"""Random numbers by counter: draw number t of a stream is a function of (seed, stream, t), on every platform and in any order.

Philox 4×32 with 10 rounds (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The key is the
seed, the counter (draw, stream). So threads need no shared state, and a run cut anywhere goes on with the same draws.

Draws are the same to the bit on every platform: what the C library computes (logarithm, cosine) is computed here, by IEEE 754
additions, multiplications, divisions and square roots in a fixed order.
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np
from numpy import float64, int64, uint64

from svmkit._jit import compiled, helper
from svmkit.data import Floats, Ints

_LOW = uint64(0xFFFFFFFF)
_HALF = uint64(32)
_MULTIPLIER_0, _MULTIPLIER_1 = uint64(0xD2511F53), uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = uint64(0x9E3779B9), uint64(0xBB67AE85)
_UNIT = 2.0**-53
_LOG_2 = log(2.0)


@helper()
def bits(seed: Any, stream: Any, draw: Any) -> Any:
    """64 random bits (uint64)."""
    x0, x1 = uint64(draw) & _LOW, uint64(draw) >> _HALF
    x2, x3 = uint64(stream) & _LOW, uint64(stream) >> _HALF
    k0, k1 = uint64(seed) & _LOW, uint64(seed) >> _HALF
    for _ in range(10):
        p0, p1 = _MULTIPLIER_0 * x0, _MULTIPLIER_1 * x2
        x0, x1, x2, x3 = (p1 >> _HALF) ^ x1 ^ k0, p1 & _LOW, (p0 >> _HALF) ^ x3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _WEYL_0) & _LOW, (k1 + _WEYL_1) & _LOW
    return x0 | (x1 << _HALF)


@helper()
def uniform(seed: Any, stream: Any, draw: Any) -> Any:
    """A double in [0, 1), all multiples of 2⁻⁵³ alike."""
    return float64(bits(seed, stream, draw) >> uint64(11)) * _UNIT


@helper()
def below(seed: Any, stream: Any, draw: Any, n: Any) -> Any:
    """A whole number in 0 … n − 1, n < 2³²; no number is likelier than another by more than n·2⁻⁵³."""
    return int64(uniform(seed, stream, draw) * float64(n))


@helper()
def normal(seed: Any, stream: Any, draw: Any) -> Any:
    """A standard normal deviate, by Box and Muller from draws 2·draw and 2·draw + 1."""
    radius = sqrt(-2.0 * _log(1.0 - uniform(seed, stream, 2 * draw)))
    return radius * _cos_of_turn(uniform(seed, stream, 2 * draw + 1))


@helper()
def _log(x: Any) -> Any:
    """ln x for 0 < x ≤ 1, to 2 units in the last place: x = m·2^e, ln m = 2 artanh((m − 1)/(m + 1)) by its series."""
    exponent = 0.0
    while x < 0.7:
        x *= 2.0
        exponent -= 1.0
    s = (x - 1.0) / (x + 1.0)
    z = s * s
    total = 0.0
    for k in range(11, -1, -1):
        total = total * z + 1.0 / (2.0 * k + 1.0)
    return 2.0 * s * total + exponent * _LOG_2


@helper()
def _cos_of_turn(u: Any) -> Any:
    """cos 2πu for 0 ≤ u < 1, to 2⁻⁵²: brought to an eighth of a turn, exactly, where few terms of the series do."""
    v = min(u, 1.0 - u)
    sign = 1.0
    if v > 0.25:
        v = 0.5 - v
        sign = -1.0
    if v > 0.125:
        t = 2.0 * pi * (0.25 - v)
        first, power = 2.0, t
    else:
        t = 2.0 * pi * v
        first, power = 1.0, 1.0
    total = 1.0
    for k in range(8, 0, -1):
        above = first + 2.0 * k
        total = 1.0 - total * (t * t) / ((above - 2.0) * (above - 1.0))
    return sign * power * total


@compiled("void(i8, i8, i8, f8[:])")
def _fill_uniform(seed: Any, stream: Any, first: Any, out: Any) -> None:
    for i in range(len(out)):
        out[i] = uniform(seed, stream, first + i)


@compiled("void(i8, i8, i8, f8[:])")
def _fill_normal(seed: Any, stream: Any, first: Any, out: Any) -> None:
    for i in range(len(out)):
        out[i] = normal(seed, stream, first + i)


@helper()
def put_in_order(seed: Any, stream: Any, values: Any) -> None:
    """Fisher and Yates's shuffle, in place; a draw's two halves serve two exchanges."""
    for i in range(len(values) - 1, 0, -2):
        drawn = bits(seed, stream, i)
        j = int64(((drawn & _LOW) * uint64(i + 1)) >> _HALF)
        values[i], values[j] = values[j], values[i]
        j = int64(((drawn >> _HALF) * uint64(i)) >> _HALF)
        values[i - 1], values[j] = values[j], values[i - 1]


@compiled("void(i8, i8, i8[:])")
def _shuffle(seed: Any, stream: Any, values: Any) -> None:
    put_in_order(seed, stream, values)


def uniforms(seed: int, stream: int, first: int, count: int) -> Floats:
    """Draws first … first + count − 1 of a stream, in [0, 1)."""
    out = np.empty(count)
    _fill_uniform(seed, stream, first, out)
    return out


def normals(seed: int, stream: int, first: int, count: int) -> Floats:
    """Draws first … first + count − 1 of a stream, standard normal."""
    out = np.empty(count)
    _fill_normal(seed, stream, first, out)
    return out


def integers(seed: int, stream: int, first: int, count: int, n: int) -> Ints:
    """Draws first … first + count − 1 of a stream, whole numbers in 0 … n − 1; the same as ``below`` gives one by one."""
    drawn: Ints = (uniforms(seed, stream, first, count) * n).astype(np.int64)
    return drawn


def permutation(seed: int, stream: int, n: int) -> Ints:
    """0 … n − 1 in random order, n < 2³²; a stream holds one permutation of each length."""
    order = np.arange(n)
    _shuffle(seed, stream, order)
    return order
