"""Dense single-precision rows as LIBSVM text: ``label 1:value 2:value …``, each value in the fewest digits that tell it.

A value is written with at most 9 significant digits, fewer where those lie so near that they round to it in single precision.
Zeros are left out.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy import float64, floor, int64
from numpy.typing import NDArray

from svmkit import parallel
from svmkit._jit import compiled, helper
from svmkit.data import Dataset
from svmkit.io.characters import MINUS, NEWLINE, E
from svmkit.io.digits import put_digits, put_plain
from svmkit.io.libsvm_data import line_heads
from svmkit.io.texts import joined

#: Values to a piece of work, and the most bytes that one takes: sign, digit, point, 8 digits, exponent of 4.
_PIECE_VALUES, _VALUE_BYTES = 1 << 18, 16
#: Powers of ten from 10^−60 on, each the nearest double.
_LEAST = -60
#: A little less than half of 2^−23, by more than rounding in double precision; the least of single precision's steps, likewise.
_SURE = 1.0 - 2.0**-20
_HALF_STEP, _LEAST_HALF = _SURE * 2.0**-24, _SURE * 2.0**-150


def lines(dataset: Dataset, start: int, features: NDArray[np.float32]) -> list[bytes]:
    """The lines of examples from ``start`` on, in a few pieces; row i of ``features``, finite, belongs to example start + i."""
    n, d = features.shape
    names, name_ends = joined([f" {j + 1}:" for j in range(d)])
    step = max(1, _PIECE_VALUES // max(1, d))
    out = [b""] * -(-n // step)

    def piece(number: int) -> None:
        first, last = number * step, min(n, (number + 1) * step)
        heads, head_ends = joined(line_heads(dataset, start + first, start + last).tolist())
        room = np.empty(len(heads) + (last - first) * (len(names) + 1 + d * _VALUE_BYTES), dtype=np.uint8)
        used = _write(features[first:last], heads, head_ends, names, name_ends, _tens(), room)
        out[number] = room[:used].tobytes()

    parallel.run_pieces(piece, len(out))
    return out


@cache
def _tens() -> NDArray[np.float64]:
    return np.array([float(f"1e{k}") for k in range(_LEAST, -_LEAST + 1)])


@compiled("i8(f4[:, :], u1[:], i8[:], u1[:], i8[:], f8[:], u1[:])")
def _write(features: Any, heads: Any, head_ends: Any, names: Any, name_ends: Any, tens: Any, out: Any) -> Any:
    at, h = 0, 0
    for i in range(features.shape[0]):
        while h < head_ends[i]:
            out[at] = heads[h]
            at, h = at + 1, h + 1
        c = 0
        for j in range(features.shape[1]):
            if features[i, j] == 0:
                c = name_ends[j]
                continue
            while c < name_ends[j]:
                out[at] = names[c]
                at, c = at + 1, c + 1
            at = _value(features[i, j], tens, out, at)
        out[at] = NEWLINE
        at += 1
    return at


@helper()
def _value(value: Any, tens: Any, out: Any, at: Any) -> Any:
    """Writes a value that is not 0; returns where it ends."""
    size = float64(value)
    if size < 0:
        out[at] = MINUS
        at += 1
        size = -size
    exponent, near = _exponent(size, tens), _half_a_step(size)
    digits, places = int64(floor(size * tens[8 - exponent - _LEAST] + 0.5)), 8 - exponent  # value = digits / 10^places
    for n in range(8, 0, -1):
        fewer, fewer_places = int64(floor(size * tens[n - 1 - exponent - _LEAST] + 0.5)), n - 1 - exponent
        if abs(float64(fewer) * tens[-fewer_places - _LEAST] - size) > near:
            break
        digits, places = fewer, fewer_places
    while digits % 10 == 0:
        digits, places = digits // 10, places - 1
    length = 1
    while digits >= 10**length:
        length += 1
    exponent = length - 1 - places
    if -5 <= exponent < 9:
        return put_plain(digits, length, exponent, out, at)
    at = put_digits(digits, length, 1, out, at)
    out[at] = E
    at += 1
    if exponent < 0:
        out[at] = MINUS
        at += 1
        exponent = -exponent
    return put_digits(exponent, 2 if exponent >= 10 else 1, 0, out, at)


@helper()
def _half_a_step(size: Any) -> Any:
    """Numbers no further from ``size`` than this, and no others but for a millionth part, round to it in single precision."""
    power = 1.0
    while power * 2.0 <= size:
        power *= 2.0
    while power > size:
        power *= 0.5
    return max(power * _HALF_STEP * (0.5 if power == size else 1.0), _LEAST_HALF)


@helper()
def _exponent(size: Any, tens: Any) -> Any:
    """e with 10^e ≤ size < 10^(e + 1), for a positive single-precision number."""
    exponent = 0
    while size >= tens[exponent + 1 - _LEAST]:
        exponent += 1
    while size < tens[exponent - _LEAST]:
        exponent -= 1
    return exponent
