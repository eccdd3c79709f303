"""Decimal digits of a whole number, written inside compiled code."""

from __future__ import annotations

from typing import Any

from svmkit._jit import helper
from svmkit.io.characters import POINT, ZERO


@helper()
def put_plain(digits: Any, length: Any, exponent: Any, out: Any, at: Any) -> Any:
    """Writes d.ddd · 10^exponent, the ``digits`` being ``length``, in zeros and a point alone; returns where it ends."""
    if exponent < 0:
        out[at], out[at + 1] = ZERO, POINT
        for k in range(2, 1 - exponent):
            out[at + k] = ZERO
        return put_digits(digits, length, 0, out, at + 1 - exponent)
    while length < exponent + 1:
        digits, length = digits * 10, length + 1
    return put_digits(digits, length, exponent + 1, out, at)


@helper()
def put_digits(digits: Any, length: Any, point: Any, out: Any, at: Any) -> Any:
    """Writes ``digits``, ``length`` of them, with a point behind the first ``point`` unless that is none or all."""
    inside = 0 < point < length
    end = at + length + (1 if inside else 0)
    place = end - 1
    for k in range(length, 0, -1):
        out[place] = ZERO + digits % 10
        digits //= 10
        place -= 1
        if inside and k - 1 == point:
            out[place] = POINT
            place -= 1
    return end
