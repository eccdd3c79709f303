"""The old tools' command lines, read as they read them.

Options stop at the first argument that does not begin with ``-``. Only the letter after the dash counts (``-gamma 0.5`` is
``-g 0.5``); the value is always the next argument, whatever it looks like. Numbers are read as C's atof and atoi read them:
as much of the text as makes a number, 0 if nothing does. A dash alone is a file name, standard input.
"""

from __future__ import annotations

import math
import re

_DECIMAL = re.compile(r"[ \t\n\v\f\r]*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)
_HEX = re.compile(r"[ \t\n\v\f\r]*([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?\d+)?)", re.ASCII)
_NAMED = re.compile(r"[ \t\n\v\f\r]*([+-]?)(inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE)
_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?)0*(\d*)", re.ASCII)


class Usage(Exception):
    """The arguments make no sense: the usage text goes to stdout, ``complaint`` (if any) to stderr before it."""

    def __init__(self, complaint: str = "") -> None:
        super().__init__(complaint)
        self.complaint = complaint


class Arguments:
    """A walk along an argument list: options by ``next_option``, their values by ``value``, then ``rest``."""

    def __init__(self, argv: list[str]) -> None:
        self.rest = list(argv)

    def next_option(self) -> str | None:
        """Takes the next option and returns it without its dash, or None where the file names begin."""
        if not self.rest or not self.rest[0].startswith("-") or self.rest[0] == "-":
            return None
        return self.rest.pop(0)[1:]

    def value(self) -> str:
        """Takes the next argument. Raises Usage if there is none."""
        if not self.rest:
            raise Usage
        return self.rest.pop(0)


def atof(text: str) -> float:
    """The number that ``text`` begins with, as C's atof finds it, else 0."""
    value = leading_number(text)
    return 0.0 if value is None else value


def leading_number(text: str) -> float | None:
    """The number that ``text`` begins with (decimal, hexadecimal, inf or nan, after blanks), or None."""
    if match := _HEX.match(text):
        return _from_hex(match[1])
    if match := _DECIMAL.match(text):
        return float(match[1])
    if match := _NAMED.match(text):
        return math.copysign(float(match[2]), -1.0 if match[1] == "-" else 1.0)
    return None


def atoi(text: str) -> int:
    """The integer that ``text`` begins with, as C's atoi finds it (clamped to 64 bits, then cut to 32), else 0."""
    match = _INTEGER.match(text)
    assert match  # it matches no digits too
    sign, digits = match.groups()
    wide = min(max(int(sign + (digits[:20] or "0")), -(2**63)), 2**63 - 1)
    return (wide + 2**31) % 2**32 - 2**31


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf
