"""The set S of an online SVM with all that belongs to its members, and the kernel values among them.

Slots are numbered as examples come and used again when they leave, so S stays together in memory. Rows of K over S × S are kept
in a stated number of bytes; those used longest ago are given up and computed again when a step asks for them. New examples come
in small groups, staged with their kernel values against S from one block of the engine, before the first of them is learned.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit import parallel
from svmkit.data import Floats, Ints
from svmkit.engine import online, slots
from svmkit.engine.kernels import Engine
from svmkit.engine.space import aligned

#: Examples staged at most.
STAGED = 128
#: Rows of K kept at least, and slots at least.
_LEAST_ROWS, _LEAST_SLOTS = 16, 256
#: Slots at first; they become this many times more at once where that many are needed and find room, later by the last factor.
_FIRST_SLOTS, _FIRST_GROWTH, _GROWTH = 4096, 4, 1.5
#: Entries that a piece of work in emptying the stage writes.
_PIECE = 20_000
#: Rows of K in a piece of work where they move to longer ones.
_ROWS_AT_A_TIME = 256
#: Slots in a piece of work where few rows are evaluated against all of them.
_SLOTS_AT_A_TIME = 1024


def zeros_by_page(shape: tuple[int, int], real: str) -> NDArray[Any]:
    """Zeros whose memory comes a page at a time, as it is written.

    On Linux np.zeros asks for pages of 2 MB, and so each row would take what lies between its last entry and the next row too.
    Raises MemoryError where there is no room for them.
    """
    if not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.zeros(shape, real)
    size = shape[0] * shape[1] * np.dtype(real).itemsize
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size / 1e6:.0f} MB for kernel rows") from error
    with suppress(OSError):  # a kernel that has no such pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, real).reshape(shape)


def give_up(K: NDArray[Any], first: int, last: int) -> None:
    """Gives the memory of rows first … last − 1 back, but for pages that others share, if ``K`` is of zeros_by_page.

    What they held is lost.
    """
    memory = getattr(getattr(K.base, "base", None), "obj", None)  # what np.frombuffer looks at
    begin, end = -(-first * K.strides[0] // mmap.PAGESIZE), last * K.strides[0] // mmap.PAGESIZE
    if isinstance(memory, mmap.mmap) and begin < end:
        memory.madvise(mmap.MADV_DONTNEED, begin * mmap.PAGESIZE, (end - begin) * mmap.PAGESIZE)


class SupportSet:
    """S over the rows of ``engine``, which may be changed for another over which ``renumber`` says where S's rows are now.

    ``reals``, ``slots``, ``counts``, ``numbers`` as in slots.py, ``examples`` and ``staged`` for those staged; ``slot_of`` has
    for each row its slot, or −1.
    """

    def __init__(
        self, engine: Engine, cache_mb: float, most: int | None, eps: float, delta_max: float, keep_within: float, budget: int
    ) -> None:
        """An empty set; kernel values come from ``engine``, and ``cache_mb`` MiB of those among members are kept.

        ``most``: members there can be, if that is known; of more than ``budget`` (0: any number) the oldest leave. A pair that
        violates by at most ``eps`` takes no step; after an example, REPROCESS comes again while one does by more than
        ``delta_max``. Members with α = 0 stay near violating, within ``keep_within`` times the share of the examples so far
        that S has and a third of the violation in it, as long as the kernel values of all find room.
        """
        self.engine = engine
        self._values = max(int(cache_mb * 2**20) // np.dtype(engine.real).itemsize, 1)
        whole = max(isqrt(self._values), _LEAST_SLOTS)
        room = min(whole - 2 * STAGED, budget or slots.LATER)
        if budget:
            most = budget + 1 if most is None else min(most, budget + 1)
        self._whole = whole if most is None else min(whole, most + STAGED)
        capacity = _whole_lines(min(self._whole, _FIRST_SLOTS))
        self.reals = aligned((8, capacity), "f8")
        self.slots = aligned((6, capacity), "i8")
        self.reals[:], self.slots[:] = 0.0, 0
        self._clear_slots(0)
        self.slot_of = np.full(engine.rows.n, -1)
        self.counts = np.zeros(slots.N_COUNTS, np.int64)
        self.counts[[slots.FIRST, slots.SECOND, slots.TOP_UP, slots.TOP_LOW, slots.LEAVING]] = -1
        self.counts[slots.MOST_MEMBERS], self.counts[slots.ROOM] = budget or slots.LATER, room
        self.numbers = np.array([-slots.HUGE, slots.HUGE, eps, delta_max, slots.HUGE, keep_within])
        self.examples = np.zeros((4, STAGED))
        self.staged = np.zeros((4, STAGED), np.int64)
        self._make_room(capacity)
        self._among = np.empty((0, 0), engine.real)
        self._space = np.empty(0, engine.real)
        self._first = 0

    def _make_room(self, capacity: int) -> None:
        real = self.engine.real
        n_rows = max(min(self._values // capacity, capacity), _LEAST_ROWS)
        self.K = zeros_by_page((n_rows, capacity), real)
        self.kept = np.zeros((4, n_rows), np.int64)
        self.kept[slots.OWNER] = -1
        self.kept[slots.FREE_ROW] = np.arange(n_rows)[::-1]
        self.counts[slots.N_FREE_ROWS] = n_rows
        self.stage = aligned((STAGED, capacity), real)
        self.stage[:] = 0.0

    def _clear_slots(self, first: int) -> None:
        self.reals[slots.UP, first:], self.reals[slots.LOW, first:] = -slots.HUGE, slots.HUGE
        self.slots[slots.PLACE, first:] = slots.NOWHERE
        self.slots[slots.ZERO_AT, first:] = -1
        self.slots[slots.SINCE, first:] = slots.LATER

    # --- what it is -------------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Members of S."""
        return int(self.counts[slots.SIZE])

    @property
    def n_terms(self) -> int:
        """Members with α ≠ 0: the terms of f."""
        return int(self.counts[slots.SIZE] - self.counts[slots.N_ZEROS])

    @property
    def evaluations(self) -> int:
        """Kernel values used so far."""
        return int(self.counts[slots.EVALUATIONS])

    @property
    def steps(self) -> int:
        """REPROCESSes so far."""
        return int(self.counts[slots.STEPS])

    @property
    def last_row(self) -> int:
        """The example staged last."""
        return int(self.staged[slots.EXAMPLE_ROW, self.counts[slots.N_STAGED] - 1])

    @property
    def waiting(self) -> int:
        """Staged examples not learned yet."""
        return int(self.counts[slots.N_STAGED] - self.counts[slots.AT])

    @property
    def two_sided(self) -> bool:
        """Whether S has members of both classes."""
        return bool((self.counts[[slots.TOP_UP, slots.TOP_LOW]] >= 0).all())

    @property
    def delta(self) -> float:
        """The largest violation inside S."""
        return max(0.0, float(self.numbers[slots.MOST] - self.numbers[slots.LEAST])) if self.two_sided else 0.0

    @property
    def bias(self) -> float:
        """b of f = Σ α K + b: the middle of the extremes, the one there is, or 0."""
        ends = [self.numbers[k] for k, at in ((slots.MOST, slots.TOP_UP), (slots.LEAST, slots.TOP_LOW)) if self.counts[at] >= 0]
        return float(np.mean(ends)) if ends else 0.0

    @property
    def holds_all(self) -> bool:
        """Whether there is room for every row of K over S × S."""
        return self.size <= len(self.K)

    def members(self) -> Ints:
        """Slots in use, ascending."""
        used = np.arange(self.counts[slots.TOP])
        members: Ints = used[self.slot_of[self.slots[slots.ROW, used]] == used]
        return members

    # --- staging and learning ---------------------------------------------------------------------------------------------

    def room(self) -> int:
        """How many more examples can be staged; where there were none, the stage is emptied first."""
        if self.counts[slots.N_STAGED] == STAGED:
            self._empty_stage()
            if self.counts[slots.TOP] + STAGED > self.reals.shape[1]:
                self._grow()
        return STAGED - int(self.counts[slots.N_STAGED])

    def _empty_stage(self) -> None:
        n = slots.close_stage(self.staged, self.slots, self.kept, self.counts)
        top, n_rows = int(self.counts[slots.TOP]), len(self.K)
        n_pieces = max(1, min(top * n // _PIECE, 16))
        cuts = [min(top, n_rows) * k // n_pieces for k in range(n_pieces)] + [n_rows]

        def piece(k: int) -> None:
            slots.spread[self.engine.real](self.K, self.stage, self.staged, self.kept, top, n, cuts[k], cuts[k + 1])

        parallel.run_pieces(piece, n_pieces)

    def open(self, rows: Ints, C: Floats, values: NDArray[Any] | None = None) -> None:
        """Stages examples, as many as there is room for at most; ``values`` (TOP,) are the kernel values of a single one."""
        first, n = int(self.counts[slots.N_STAGED]), len(rows)
        here = slice(first, first + n)
        top = int(self.counts[slots.TOP])
        if values is None:
            self.engine.block(rows, self.slots[slots.ROW, :top], self.stage[here])
        else:
            self.stage[first, :top] = values
        self._among = self.engine.block(rows, rows)
        self._first = first
        self.examples[slots.EXAMPLE_C, here] = C
        self.examples[slots.EXAMPLE_DIAGONAL, here] = np.diagonal(self._among)
        self.staged[slots.EXAMPLE_ROW, here] = rows
        self.staged[slots.SLOT, here] = -1
        self.counts[slots.N_STAGED] += n

    def unstage(self) -> None:
        """Takes back the example staged last, which waits."""
        self.counts[slots.N_STAGED] -= 1

    def label(self, y: Floats) -> None:
        """Says the labels of the examples staged last."""
        self.examples[slots.EXAMPLE_LABEL, self._first : self._first + len(y)] = y

    def learn(self, budget: int) -> int:
        """Learns staged examples, in at most ``budget`` steps; returns how many it took."""
        before = int(self.counts[slots.STEPS])
        while online.learn[self.engine.real](
            *(self.K, self.stage, self._among, self._first, self.examples, self.staged),
            *(self.reals, self.slots, self.kept, self.slot_of, self.counts, self.numbers),
            *(int(self.counts[slots.N_STAGED]), budget - int(self.counts[slots.STEPS]) + before),
        ):
            self._compute_rows()
        return int(self.counts[slots.STEPS]) - before

    def responses(self) -> Floats:
        """f of the examples staged last, each just before it was learned; nan where S was empty."""
        return self.examples[slots.RESPONSE, self._first : int(self.counts[slots.N_STAGED])].copy()

    def _compute_rows(self) -> None:
        """The rows that the step under way misses."""
        pair = self.counts[[slots.FIRST, slots.SECOND]]
        missing = pair[self.slots[slots.PLACE, pair] == slots.NOWHERE]
        occupants = self.slots[slots.ROW, : self.counts[slots.TOP]]
        values = self._against(occupants[missing])
        for s, row in zip(missing, values.T.copy(), strict=True):
            slots.put_row[self.engine.real](self.K, row, int(s), self.slots, self.kept, self.counts)
        self.counts[slots.EVALUATIONS] += len(missing) * self.size

    def _against(self, rows: Ints) -> NDArray[Any]:
        """Kernel values (TOP, k) of all slots against a few rows, by pieces of slots; the next call overwrites them."""
        occupants = self.slots[slots.ROW, : self.counts[slots.TOP]]
        if len(self._space) < len(occupants) * len(rows):
            self._space = aligned(self.reals.shape[1] * len(rows), self.engine.real)
        values = self._space[: len(occupants) * len(rows)].reshape(len(occupants), len(rows))
        block = self.engine.block
        parallel.run_stretches(lambda a, b: block(occupants[a:b], rows, values[a:b]), len(occupants), _SLOTS_AT_A_TIME)
        return values

    def _grow(self) -> None:
        """More slots, while none is staged. Longer rows take more room: those used last keep one."""
        old, K, kept = self.reals.shape[1], self.K, self.kept
        needed = int(self.counts[slots.TOP]) + STAGED
        with_room = min(_FIRST_GROWTH * old, self._whole)
        capacity = _whole_lines(with_room if needed <= with_room else max(int(_GROWTH * old), needed))
        self.reals, self.slots = (_widened(part, capacity) for part in (self.reals, self.slots))
        self._clear_slots(old)
        self._make_room(capacity)
        n_rows, owned = len(self.K), np.flatnonzero(kept[slots.OWNER] >= 0)
        last = np.sort(owned[np.argsort(-kept[slots.TICK, owned])[:n_rows]])
        self.slots[slots.PLACE][self.slots[slots.PLACE] >= 0] = slots.NOWHERE
        self.slots[slots.PLACE, kept[slots.OWNER, last]] = np.arange(len(last))
        self.kept[: slots.FREE_ROW, : len(last)] = kept[: slots.FREE_ROW, last]

        def move(first: int, end: int) -> None:
            some = last[first:end]
            self.K[first:end, :old] = K[some]
            give_up(K, int(some[0]), int(some[-1]))

        parallel.run_stretches(move, len(last), _ROWS_AT_A_TIME)
        self.kept[slots.FREE_ROW, : n_rows - len(last)] = np.arange(len(last), n_rows)[::-1]
        self.counts[slots.N_FREE_ROWS] = n_rows - len(last)

    def adopt(self, rows: Ints, C: Floats, y: Floats, alpha: Floats, g: Floats) -> None:
        """Examples join S with these coefficients and gradients, without steps; then members that cannot violate leave."""
        done = 0
        while done < len(rows):
            some = slice(done, done + self.room())
            self.open(rows[some], C[some])
            self.label(y[some])
            online.adopt[self.engine.real](
                *(self.stage, self._among, self._first, self.examples, self.staged),
                *(self.reals, self.slots, self.slot_of, self.counts, alpha[some], g[some]),
            )
            done += len(rows[some])
        self.refresh()

    def count(self, evaluations: int) -> None:
        """Counts kernel values used outside."""
        self.counts[slots.EVALUATIONS] += evaluations

    # --- selection --------------------------------------------------------------------------------------------------------

    def look_at(self, rows: Ints) -> tuple[NDArray[Any], Floats]:
        """Kernel values (TOP, k) of the slots against rows, until the next call, and f (k,) of the rows."""
        values, out = self._against(rows), np.zeros(len(rows))
        online.respond[self.engine.real](values, self.reals[slots.ALPHA], len(values), out)
        return values, out + self.bias

    # --- changes from outside ---------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Puts in order what follows from α and g after they were changed; members that cannot violate leave."""
        online.refresh(self.reals, self.slots, self.kept, self.slot_of, self.counts, self.numbers)

    def renumber(self, engine: Engine, rows: Ints) -> None:
        """From now on the members, in the order of ``members()``, are rows ``rows`` of ``engine``; none is waiting."""
        members = self.members()
        self.engine = engine
        self.slots[slots.ROW] = 0
        self.slots[slots.ROW, members] = rows
        self.slot_of = np.full(max(engine.rows.n, 1), -1)  # slots out of use say row 0, which must be there
        self.slot_of[rows] = members


def _widened(part: NDArray[Any], width: int) -> NDArray[Any]:
    """The same columns, and zeros up to ``width`` of them."""
    wide = aligned((len(part), width), part.dtype.str)
    wide[:, : part.shape[1]], wide[:, part.shape[1] :] = part, 0
    return wide


def _whole_lines(capacity: int) -> int:
    """An odd number of cache lines of floats: columns of K are then spread over the whole cache."""
    return (-(-capacity // 16) | 1) * 16
