"""What a waiting person sees on stderr: one line that overwrites itself on a terminal, a plain line every 5 s elsewhere.

The only time ever promised is a limit the user set: how long a solver still needs is not known, so it is not said.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from svmkit.cli import streams
from svmkit.cli.cold_start import ColdStart
from svmkit.cli.report import counted
from svmkit.config import TrainConfig
from svmkit.trace import Progress

T = TypeVar("T")

_PLAIN_EVERY_S = 5.0
_LIVE_EVERY_S = 0.1


class Reporter:
    """Progress, notes and warnings of one command; all lines go to stderr, neither progress nor notes with ``quiet``."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.live = sys.stderr.isatty()
        self._began = time.perf_counter()
        self._next = self._began + (3 * _LIVE_EVERY_S if self.live else _PLAIN_EVERY_S)
        self._open_line = False
        self._lock = threading.RLock()
        self.cold = ColdStart(self.note, "first run only; 'svmkit warmup' does it ahead of time")
        if quiet:
            self.cold.end()

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        self.cold.end()
        self._end_line()

    def show(self, describe: Callable[[float], str]) -> None:
        """Shows ``describe(seconds so far)`` if it is time for it; cheap enough to be called at every step."""
        now = time.perf_counter()
        if self.quiet or now < self._next:
            return
        self._next = now + (_LIVE_EVERY_S if self.live else _PLAIN_EVERY_S)
        text = describe(now - self._began)
        if not self.live:
            self.note(text)
            return
        import shutil  # 2 ms, which short runs need not spend

        with self._lock:
            width = shutil.get_terminal_size().columns - 1
            streams.tell(streams.shown(text)[:width], begin="\r", end="\x1b[K")
            self._open_line = True

    def doing(self, what: str) -> None:
        """Shows ``what`` is being done, if it is time for it; what ``fit`` calls as its ``on_mapping``."""
        self.show(lambda elapsed: f"{elapsed:.1f} s, {what}")

    def during(self, what: str, work: Callable[[], T]) -> T:
        """``work()``, with ``what`` is being done shown meanwhile. It must write nothing: a signal leaves it to itself."""
        from svmkit.parallel import attended

        return attended(work, lambda: self.doing(what))

    def note(self, text: str) -> None:
        """A line of its own that is good to know."""
        if not self.quiet:
            self.say(text)

    def say(self, text: str) -> None:
        """A line of its own that must be read, whatever ``quiet`` says."""
        with self._lock:
            self._end_line()
            streams.tell(f"svmkit: {text}")

    def warn(self, text: str) -> None:
        """A warning, whatever ``quiet`` says."""
        self.say(f"warning: {text.removeprefix('WARNING: ')}")

    def _end_line(self) -> None:
        if self._open_line:
            streams.tell(end="\r\x1b[K")
            self._open_line = False


class MachineProgress:
    """Follows the training of several machines, one after the other."""

    def __init__(self, reporter: Reporter, total: int, config: TrainConfig) -> None:
        self.reporter = reporter
        self.total = total
        self.config = config
        self.current = 0

    def progress(self, seconds: float, progress: Progress) -> None:
        """What ``fit`` calls as its ``on_progress``."""
        self.reporter.show(lambda elapsed: self._describe(elapsed, seconds, progress))

    def done(self, count: int, each: object) -> None:
        """What ``fit`` calls as its ``on_machines``."""
        self.current += count
        if self.total > 1:
            self.reporter.show(lambda elapsed: f"{self.current} of {self.total} machines, {elapsed:.1f} s")

    def _describe(self, elapsed: float, trained_s: float, progress: Progress) -> str:
        """``progress`` in words; only what is known is said. The time limit counts training alone."""
        config = self.config
        parts = [f"machine {self.current + 1} of {self.total}"] if self.total > 1 else []
        parts += [f"{elapsed:.1f} s", counted(progress.steps, "iteration")]
        for what, value in (("violation", progress.violation), ("relative gap", progress.gap)):
            parts += [f"{what} {value:.3g} (stops at {config.eps:g})"] if math.isfinite(value) else []
        parts.append(counted(progress.n_support, "support vector"))
        if config.max_iter is not None:
            parts.append(f"at most {max(0, config.max_iter - progress.steps):,} iterations left")
        if config.time_limit_s is not None:
            parts.append(f"at most {max(0.0, config.time_limit_s - trained_s):.0f} s left")
        return ", ".join(parts)
