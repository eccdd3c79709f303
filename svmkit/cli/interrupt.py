"""Ctrl-C and SIGTERM during training: the first lets the solver stop and its model be saved; the second stops at once."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_NOTICE = b"\nsvmkit: stopping; the model so far will be saved (once more: stop at once, save nothing)\n"


class Interrupts:
    """Inside ``with Interrupts() as stop:`` the first signal only makes ``stop.interrupted()`` true."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.signum = 0
        self._previous: dict[int, Any] = {}

    def interrupted(self) -> bool:
        """Whether a signal has come."""
        return self.signum != 0

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM, 0 if neither came."""
        return 128 + self.signum if self.signum else 0

    def __enter__(self) -> Interrupts:
        self._previous = {signum: signal.signal(signum, self._handle) for signum in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._previous.items():
            signal.signal(signum, handler)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.signum:
            if signum == signal.SIGINT:
                raise KeyboardInterrupt
            raise SystemExit(128 + signum)
        self.signum = signum
        if not self.quiet:
            os.write(2, _NOTICE)  # stderr's buffer may be in use by the code that the signal cut into
