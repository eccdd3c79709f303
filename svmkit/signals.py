"""The signals that end a command: Ctrl-C, SIGTERM, a terminal that is gone, and processor time that is used up."""

from __future__ import annotations

import signal

#: Those that come again by themselves, from the shell and the system, or every second: not a second wish of anybody's.
REPEATED = tuple(getattr(signal, name) for name in ("SIGHUP", "SIGXCPU") if hasattr(signal, name))
STOPPING = (signal.SIGINT, signal.SIGTERM, *REPEATED)
