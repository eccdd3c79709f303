"""The characters that compiled code reads and writes, as bytes."""

from __future__ import annotations

TAB, NEWLINE, RETURN, SPACE, HASH, COLON = b"\t\n\r #:"
ZERO, NINE, POINT, PLUS, MINUS, E, LARGE_E = b"09.+-eE"
