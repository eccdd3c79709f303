"""Ctrl-C and other signals that end a command: what they do while it runs; the first during training lets the model so far be
saved.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from svmkit.errors import Abandoned
from svmkit.signals import REPEATED, STOPPING

Handler = Callable[[int, FrameType | None], Any]

#: When a signal that was ignored comes again: not before the callback has ended, which would ignore this one, too.
_AGAIN_S = 0.05
#: How soon the same signal is the same wish: ``timeout`` sends its own to the command, then to the group that it is of.
_ECHO_S = 0.1

_NOTICE = b"\nsvmkit: stopping; the model so far, if there is one, will be saved (once more: stop at once, save nothing)\n"


@contextmanager
def handling(handler: Handler) -> Iterator[None]:
    """Handles the signals that stop, but not those that the process was started to ignore (nohup, a script's ``&``)."""
    previous = {signum: signal.getsignal(signum) for signum in STOPPING}
    taken = {signum: before for signum, before in previous.items() if before not in (signal.SIG_IGN, None)}
    for signum in taken:
        signal.signal(signum, handler)
    try:
        yield
    finally:
        for signum, before in taken.items():
            signal.signal(signum, before)


class Heard:
    """The latest signal, 0 for none."""

    signum = 0
    _at = -math.inf

    def hear(self, signum: int) -> bool:
        """Takes note of a signal; False where it is but the echo of one."""
        now = time.monotonic()
        if signum == self.signum and now - self._at < _ECHO_S:
            return False
        self.signum, self._at = signum, now
        return True

    def forget(self) -> None:
        """What comes next is no echo."""
        self._at = -math.inf


class Stop(Heard):
    """A handler that raises KeyboardInterrupt, and knows which signal it was.

    What it cuts short may make another error of that: extension modules that are being loaded do. Once the command is ``over``,
    where nobody awaits a KeyboardInterrupt any more, a signal ends the process as it ends any other.
    """

    over = False

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        if not self.hear(signum):
            return
        if not self.over:
            raise KeyboardInterrupt
        signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)


@contextmanager
def stopping() -> Iterator[Stop]:
    """Signals end what is inside by a KeyboardInterrupt.

    Where Python ignores that, as in callbacks of weak references, which imports have, the signal is sent once more.
    """
    stop, usual = Stop(), sys.unraisablehook

    def again(lost: Any) -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            stop.forget()
            threading.Timer(_AGAIN_S, os.kill, (os.getpid(), stop.signum)).start()
        else:
            usual(lost)

    sys.unraisablehook = again
    try:
        with handling(stop):
            yield stop
    finally:
        sys.unraisablehook = usual


class Interrupts(Heard):
    """Inside ``with Interrupts() as stop:`` the first signal only makes ``stop.interrupted()`` true."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._before: dict[int, Any] = {}
        self._handling = handling(self._handle)

    def interrupted(self) -> bool:
        """Whether a signal has come."""
        return self.signum != 0

    @property
    def exit_code(self) -> int:
        """128 and the signal's number, as 130 after Ctrl-C; 0 if none came."""
        return 128 + self.signum if self.signum else 0

    def __enter__(self) -> Interrupts:
        self._before = {signum: signal.getsignal(signum) for signum in STOPPING}
        self._handling.__enter__()
        return self

    def __exit__(self, kind: object, error: object, *_: object) -> None:
        self._handling.__exit__(None, None, None)
        if isinstance(error, Abandoned) and self.signum:
            error.exit_code = self.exit_code

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        first = not self.signum
        if (not first and signum in REPEATED) or not self.hear(signum):
            return
        if not first:
            self._before[signum](signum, frame)
        if not self.quiet:
            with suppress(OSError):  # full, or its reader has gone
                os.write(2, _NOTICE)  # stderr's buffer may be in use by the code that the signal cut into
