"""Texts of many numbers in one array, and lines cut together from such texts, in compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import int64
from numpy.typing import NDArray

from svmkit._jit import compiled, helper
from svmkit.data import Floats, Ints
from svmkit.io.characters import NEWLINE


class Texts(NamedTuple):
    """Text i is the first ``lengths[i]`` bytes of line i of ``characters`` (n, widest), both u1."""

    characters: NDArray[np.uint8]
    lengths: NDArray[np.uint8]

    def line(self) -> str:
        """All of them, with spaces between."""
        return by_rows(self, 1, " ").characters[:-1].tobytes().decode("ascii")

    def without_zeros(self, values: Floats) -> Texts:
        """The same, but no text of ``values`` that are 0."""
        return self._replace(lengths=np.where(values == 0.0, np.uint8(0), self.lengths))


class Joined(NamedTuple):
    """Texts one after another in ``characters`` (u1), and where each ends."""

    characters: NDArray[np.uint8]
    ends: Ints


def joined(texts: Sequence[str]) -> Joined:
    """ASCII ``texts`` one after another."""
    characters = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8)
    return Joined(characters, np.cumsum([len(text) for text in texts], dtype=np.int64))


def by_rows(texts: Texts, per_row: int, ending: str) -> Joined:
    """So many texts to a row, each with ``ending`` behind it."""
    ends = np.empty(len(texts.lengths) // per_row if per_row else 0, np.int64)
    out = np.empty(int(texts.lengths.sum(dtype=np.int64)) + len(ending) * len(texts.lengths), np.uint8)
    _by_rows(*texts, per_row, np.frombuffer(ending.encode("ascii"), np.uint8), out, ends)
    return Joined(out, ends)


def lines(
    heads: Joined, bounds: Ints, gaps: tuple[Ints, Ints, Ints], names: Joined, which: Ints, values: Texts, ending: str,
    missing: NDArray[np.uint8],
) -> bytes:  # fmt: skip
    """A line for each head: its pairs, and what is missing between them.

    Line r has pairs ``bounds[r] … bounds[r + 1] − 1``: name ``which[k]``, value k and ``ending``, nothing where the value has
    no text. Before pair k stands ``missing[gaps[0][k] : gaps[1][k]]``, at the end of line r ``missing[gaps[2][r] :]``.
    """
    between = int((gaps[1] - gaps[0]).sum()) + int((len(missing) - gaps[2]).sum())
    longest = values.characters.shape[1] + len(ending) + int(np.diff(names.ends, prepend=0).max(initial=0))
    out = np.empty(len(heads.characters) + len(bounds) + between + len(which) * longest, np.uint8)
    used = _lines(*heads, bounds, *gaps, *names, which, *values, np.frombuffer(ending.encode("ascii"), np.uint8), missing, out)
    return out[:used].tobytes()


@compiled("void(u1[:, :], u1[:], i8, u1[:], u1[:], i8[:])")
def _by_rows(characters: Any, lengths: Any, per_row: Any, ending: Any, out: Any, ends: Any) -> None:
    at = 0
    for r in range(len(ends)):
        for k in range(r * per_row, (r + 1) * per_row):
            at = _copy(characters[k], 0, int64(lengths[k]), out, at)
            at = _copy(ending, 0, len(ending), out, at)
        ends[r] = at


@compiled("i8(u1[:], i8[:], i8[:], i8[:], i8[:], i8[:], u1[:], i8[:], i8[:], u1[:, :], u1[:], u1[:], u1[:], u1[:])")
def _lines(
    heads: Any, head_ends: Any, bounds: Any, first: Any, last: Any, rest: Any, names: Any, name_ends: Any, which: Any,
    values: Any, lengths: Any, ending: Any, missing: Any, out: Any,
) -> Any:  # fmt: skip
    at, h = 0, 0
    for r in range(len(head_ends)):
        at = _copy(heads, h, head_ends[r], out, at)
        h = head_ends[r]
        for k in range(bounds[r], bounds[r + 1]):
            at = _copy(missing, first[k], last[k], out, at)
            if lengths[k] > 0:
                name = which[k]
                at = _copy(names, name_ends[name - 1] if name > 0 else 0, name_ends[name], out, at)
                for c in range(int64(lengths[k])):
                    out[at + c] = values[k, c]
                at = _copy(ending, 0, len(ending), out, at + int64(lengths[k]))
        at = _copy(missing, rest[r], len(missing), out, at)
        out[at] = NEWLINE
        at += 1
    return at


@helper()
def _copy(source: Any, start: Any, stop: Any, out: Any, at: Any) -> Any:
    for k in range(start, stop):
        out[at] = source[k]
        at += 1
    return at
