"""The clock of a training: it stands still while code is compiled, and while somebody only looks."""

from __future__ import annotations

import time

from svmkit._jit import seconds_compiling


class Clock:
    """Tells the seconds since it was made, less compiling and what went on inside ``stopped()``."""

    def __init__(self) -> None:
        self._start = time.perf_counter() - seconds_compiling()

    def seconds(self) -> float:
        """Those so far."""
        return time.perf_counter() - seconds_compiling() - self._start

    def stopped(self) -> _Stopped:
        """A context whose time does not count."""
        return _Stopped(self)


class _Stopped:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __enter__(self) -> None:
        self._since = self._clock.seconds()

    def __exit__(self, *_: object) -> None:
        self._clock._start += self._clock.seconds() - self._since
