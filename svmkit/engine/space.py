"""Arrays on cache lines; and the work space of the loops over kernel values, each thread's own, kept from call to call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit._llvm import cpu_has
from svmkit.data import Floats, Ints
from svmkit.engine.binary import BYTES, byte_places
from svmkit.engine.layouts import Real
from svmkit.engine.packed import Packed
from svmkit.engine.pixels import COLUMNS, SUMS
from svmkit.engine.sorted import CHUNK_ROWS as SORTED_ROWS
from svmkit.engine.sorted import FREQUENT
from svmkit.engine.tiled import CHUNK_ROWS
from svmkit.engine.vector import REGISTER_BYTES
from svmkit.problem import Kernel

#: Columns the sorted form takes at a time, a multiple of 8 registers.
WIDE_COLUMNS = 1024

_own = threading.local()


def lanes(real: Real) -> int:
    """Columns to a register."""
    return REGISTER_BYTES // np.dtype(real).itemsize


@cache
def table_columns(real: Real) -> int:
    """Columns whose sums stay in the CPU's registers: 8 of 64 bytes with AVX-512, 4 in the smaller files of other CPUs."""
    return (8 if cpu_has("avx512f") else 4) * lanes(real)


def aligned(shape: int | tuple[int, ...], dtype: str) -> NDArray[Any]:
    """An array that starts on a cache line: vector loads and stores across two lines take twice as long."""
    size = (shape if isinstance(shape, int) else prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, dtype=np.uint8)
    start = -raw.__array_interface__["data"][0] % 64
    return raw[start : start + size].view(dtype).reshape(shape)


def kept(name: str, key: Any, make: Callable[[], Any]) -> Any:
    """This thread's work space of that name, made anew for another key."""
    spaces = _own.__dict__.setdefault(name, {})
    if key not in spaces:
        spaces.clear()
        spaces[key] = make()
    return spaces[key]


def room(name: str, n: int) -> Floats:
    """This thread's work space of that name for n numbers or more: memory that is new at every call takes long to come by."""
    spaces = _own.__dict__.setdefault("room", {})
    if name not in spaces or len(spaces[name]) < n:
        spaces.pop(name, None)  # first, so that both are not there at once
        spaces[name] = aligned(1 << (n - 1).bit_length(), "f8")
    space: Floats = spaces[name]
    return space[:n]


def leave_rooms() -> None:
    """Gives back this thread's work space of every name, for work that needs memory and no such space."""
    _own.__dict__.pop("room", None)


def _doubled(columns: int, n_columns: int, widest: int) -> int:
    """``columns`` doubled until ``n_columns`` find room, or ``widest`` is reached."""
    while columns < min(n_columns, widest):
        columns *= 2
    return columns


def table_space(real: Real, width: int, n_columns: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """This thread's table, norms and values of two rows for a block, no wider than ``n_columns`` ask for: that costs less."""
    widest = table_columns(real)
    columns = _doubled(lanes(real), n_columns, widest)
    table, norms, values = kept("table", (real, width), lambda: [aligned(k * widest, real) for k in (width, 1, 2)])
    return table[: width * columns].reshape(width, columns), norms[:columns], values[: 2 * columns]


def tiled_space(real: Real, width: int, n_columns: int) -> tuple[NDArray[Any], ...]:
    """This thread's table and norms, and room for a chunk of rows' unfinished sums."""
    W, h, _ = table_space(real, width, n_columns)
    sums = kept("tiled", real, lambda: (np.empty(CHUNK_ROWS, np.int64), aligned(CHUNK_ROWS * table_columns(real), real)))
    return (W, h, *sums)


def binary_space(kernel: Kernel, packed: Packed, width: int, n_columns: int) -> tuple[NDArray[Any], ...]:
    """The kernel's powers; where columns lie; this thread's table of bytes, counts and values for a block."""
    real = packed.real
    widest = 4 * BYTES
    columns = _doubled(BYTES, n_columns, widest)
    table, ones, values = kept(
        "binary",
        (real, width),
        lambda: (aligned(4 * width * BYTES, "u1"), aligned(widest, "u1"), aligned(widest, real)),
    )
    fixed = _powers(kernel.gamma, real, packed.few), byte_places(real)
    return (*fixed, table[: width * columns].reshape(width, columns), ones[:columns], values[:columns])


def pixel_space(real: Real, width: int, n_columns: int) -> tuple[NDArray[Any], ...]:
    """This thread's table of words, starts and values for a block."""
    columns = _doubled(SUMS, n_columns, COLUMNS)
    table, starts, values = kept(
        "pixels",
        (real, width),
        lambda: (aligned(width * COLUMNS, "i4"), aligned(COLUMNS, "i4"), aligned(COLUMNS, real)),
    )
    return table[: width * columns].reshape(width, columns), starts[:columns], values


@cache
def _powers(gamma: float, real: Real, few: bool) -> NDArray[Any]:
    """e^(−gamma·D) for D = 0 … 15 and 0, 16, … 240; with ``few`` for D = 0 … 31."""
    first = np.arange(16.0)
    second = 16.0 + first if few else 16.0 * first
    powers = aligned(32, real)
    powers[:] = np.exp(-gamma * np.concatenate([first, second]))
    return powers


def sorted_space(basis: Packed, columns: Ints, real: Real, width: int) -> tuple[Any, ...]:
    """This thread's table of frequent features, room for at most WIDE_COLUMNS sorted by the others, and a chunk's sums."""
    part = _doubled(lanes(real), len(columns), table_columns(real))
    n_parts = -(-min(WIDE_COLUMNS, len(columns)) // part)
    lengths = np.sort(basis.indptr[columns + 1] - basis.indptr[columns])
    n_entries = int(lengths[-n_parts * part :].sum())
    table, h, sums, cursor = kept(
        "sorted",
        real,
        lambda: (*(aligned(k * WIDE_COLUMNS, real) for k in (FREQUENT, 1, SORTED_ROWS)), np.empty(SORTED_ROWS, np.int64)),
    )
    W = table[: n_parts * FREQUENT * part].reshape(n_parts * FREQUENT, part)
    lists = (np.empty(width + 2, np.int64), np.empty(n_entries, np.int32), np.empty(n_entries, real))
    return (W, *lists, h[: n_parts * part], cursor, sums)
