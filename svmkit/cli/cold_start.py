"""What a person is told who waits for the first run's compiling."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

#: Compiling for less than this is not worth a word.
_COLD_S = 2.0


class ColdStart:
    """Hears what is compiled; where that takes long, says so once by ``say``, with the ``remark`` if later runs will not."""

    def __init__(self, say: Callable[[str], None], remark: str = "first run only") -> None:
        self._say = say
        self._remark = remark
        self._timer: threading.Timer | None = None
        self._silent = False

    def listen(self) -> None:
        """Hears from now on; on a first run another core compiles ahead meanwhile."""
        import numpy  # noqa: F401  # behind ctypes, which comes next, it takes 8 ms longer to load

        from svmkit import _ahead, _jit, parallel

        _jit.on_compile(self.hear)
        _ahead.start_if_cold(parallel.cores())

    def hear(self, function: str) -> None:
        """``function`` is about to be compiled."""
        waiting = self._timer is not None and self._timer.is_alive()
        if not self._silent and not waiting:
            self._timer = threading.Timer(_COLD_S, self._tell)
            self._timer.daemon = True
            with suppress(RuntimeError):  # the system has no more threads for this process
                self._timer.start()

    def end(self) -> None:
        """Nothing is said any more."""
        self._silent = True
        if self._timer is not None:
            self._timer.cancel()

    def _tell(self) -> None:
        from svmkit import _jit, _store

        if self._silent or not _jit.is_compiling():  # it was soon over; what is compiled next is heard again
            return
        self._silent = True
        trouble = _store.unwritable()
        how_often = f" ({self._remark})" if trouble is None else f", as every run will: {trouble}"
        self._say(f"compiling the inner loops for this machine{how_often}")
