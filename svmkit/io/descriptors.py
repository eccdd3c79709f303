"""Reading and writing descriptors that are open already, and may not block: whoever shares a pipe or a terminal with us may
have made it so.
"""

from __future__ import annotations

import io
import os
import re
import sys
from typing import Any

_STANDARD = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}


def named(path: str) -> int | None:
    """The open descriptor that an output of this name is written to, as it stands; None where the name is that of a file."""
    number = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]{1,9})", path)
    return int(number[1]) if number else _STANDARD.get(path)


def ready(descriptor: int, wait_s: float | None = None, *, to_write: bool = False) -> bool:
    """Whether reading (or writing) waits for nothing, or for nothing any more before ``wait_s`` are over (None: for ever)."""
    import selectors  # half a millisecond, which plain files need not spend

    # select knows no descriptors from 1024 on, poll on macOS no terminals, epoll no files.
    kind = selectors.SelectSelector if sys.platform in ("darwin", "win32") else selectors.PollSelector
    with kind() as selector:
        selector.register(descriptor, selectors.EVENT_WRITE if to_write else selectors.EVENT_READ)
        return bool(selector.select(wait_s))


def read_some(descriptor: int, n: int) -> bytes:
    """The next bytes, at most n, waiting for the first; none at the end. Raises OSError."""
    while True:
        try:
            return os.read(descriptor, n)
        except BlockingIOError:
            ready(descriptor)


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
                ready(self._descriptor, to_write=True)
