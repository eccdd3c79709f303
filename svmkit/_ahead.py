"""Compiling on other cores: processes that fill the store with what this one will need next, or with everything.

Processes, because numba holds Python's lock while it works. Each compiles what some modules mark,
leaving out what other processes have claimed (_store.py), until all is done or its standard input is closed: so it learns that
the process which started it has ended.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from svmkit import _jit, _store

#: The modules whose code most runs need once they have read their data, as they need it.
_AFTER_READING = (
    "svmkit.engine.by_need",
    "svmkit.io.doubles",
    "svmkit.io.texts",
    "svmkit.engine.qp",
    "svmkit.engine.table",
)
#: With ``-m`` modules would be looked for in the user's folder first.
_BEGIN = r"import sys; sys.path[:] = sys.argv.pop(1).split('\n'); from svmkit._ahead import main; main(sys.argv[1:])"
_started: list[Any] = []  # keeps their standard input open for as long as this process lives


def start_if_cold(cores: int) -> None:
    """If nothing is compiled yet, and there is another core, lets a process compile there what comes after the reader."""
    if not _jit.plain_numba() and cores > 1 and _store.is_empty():
        start(_AFTER_READING)


def start(modules: Iterable[str], processes: int = 1) -> None:
    """Starts processes that compile the functions of ``modules``; where that fails, nothing is lost but time."""
    import subprocess

    for _ in range(processes):
        try:
            started = subprocess.Popen(
                command(modules), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        except OSError:
            return
        _started.append(started)


def command(modules: Iterable[str]) -> list[str]:
    """What such a process runs; it looks for modules where this one does."""
    return [sys.executable, "-c", _BEGIN, "\n".join(sys.path), *modules]


def main(modules: Sequence[str]) -> None:
    """Compiles the functions of ``modules`` in their order, then those that they import; float64 first, which all runs need."""
    import select

    for module in modules:
        import_module(module)
    order = {module: number for number, module in enumerate(modules)}

    def turn(function: _jit.Compiled) -> tuple[int, bool]:
        return order.get(function.__module__, len(order)), function.name.endswith("_f4")

    for function in sorted(_jit.registry(), key=turn):
        if select.select([sys.stdin], [], [], 0)[0]:
            return
        function.load(wait=False)
