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

#: What a first training needs once its data are read, in an order that leaves neither process waiting: the first one is busy
#: with the reader for half of the time, and then goes through the rest in the order that it needs.
FIRST = (
    "svmkit.engine.by_need._spread",
    "svmkit.engine.by_need._all_of_product_f8",
    "svmkit.engine.by_need.pair_steps",
    "svmkit.engine.table.block_table_f8",
    "svmkit.io.numbers_out._shortest",
    "svmkit.io.texts._lines",
    "svmkit.io.numbers_out._significant",
    "svmkit.io.texts._by_rows",
    "svmkit.engine.qp.extremes",
    "svmkit.engine.qp.choose_block",
)
#: With ``-m`` modules would be looked for in the user's folder first.
_BEGIN = r"import sys; sys.path[:] = sys.argv.pop(1).split('\n'); from svmkit._ahead import main; main(sys.argv[1:])"
_started: list[Any] = []  # keeps their standard input open for as long as this process lives


def start_if_cold(cores: int) -> None:
    """If nothing is compiled yet, and there is another core, lets a process compile there what comes after the reader."""
    if not _jit.plain_numba() and cores > 1 and _store.is_empty():
        start(dict.fromkeys(name.rpartition(".")[0] for name in FIRST))


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
    """Compiles ``FIRST``, the functions of ``modules`` in their order, then those that they import; float64, which all runs
    need, before float32.
    """
    import select

    for module in modules:
        import_module(module)
    first, order = ({name: number for number, name in enumerate(names)} for names in (FIRST, modules))

    def turn(function: _jit.Compiled) -> tuple[int, int, bool]:
        place = first.get(function.name, len(first)), order.get(function.__module__, len(order))
        return *place, function.name.endswith("_f4")

    for function in sorted(_jit.registry(), key=turn):
        if select.select([sys.stdin], [], [], 0)[0]:
            return
        function.load(wait=False)
