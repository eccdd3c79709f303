"""Reading and writing descriptors that are open already, and may not block: whoever shares a pipe or a terminal with us may
have made it so.
"""

from __future__ import annotations

import io
import os
import re
import select
from typing import Any

_STANDARD = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}


def named(path: str) -> int | None:
    """The descriptor that an output of this name is written to as it stands, or None: a file by its name is made anew."""
    number = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]{1,9})", path)
    return int(number[1]) if number else _STANDARD.get(path)


def read_some(descriptor: int, n: int) -> bytes:
    """The next bytes, at most n, waiting for the first; none at the end. Raises OSError."""
    while True:
        try:
            return os.read(descriptor, n)
        except BlockingIOError:
            select.select([descriptor], [], [])


class Patient(io.RawIOBase):
    """Writes to a descriptor, waiting where it would not; the descriptor stays open when this is closed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        while True:
            try:
                return os.write(self._descriptor, content)
            except BlockingIOError:
                select.select([], [self._descriptor], [])
