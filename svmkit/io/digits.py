"""Decimal digits of a whole number, written inside compiled code."""

from __future__ import annotations

from typing import Any

from svmkit._jit import helper

ZERO, POINT, MINUS = 48, 46, 45


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
