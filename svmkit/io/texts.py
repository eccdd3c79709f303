"""Texts of many numbers in one array, and lines cut together from such texts, in compiled code.

``six_digits`` writes what C's ``%g`` does. A number times a power of ten that is a double itself (10^0 … 10^22) is rounded
once, by less than 2^−33 where six digits stand before the point; so unless what follows them is that near to a half, it says
which way to round. The few other numbers are left to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import floor, int64
from numpy.typing import NDArray

from svmkit._jit import compiled, helper
from svmkit.data import Floats, Ints
from svmkit.io.digits import MINUS, put_digits, put_plain

#: The most bytes that ``%g`` takes: sign, digit, point, 5 digits, e, sign, 3 digits.
_WIDEST = 13
_TENS = 10.0 ** np.arange(23)
#: Sizes whose power of ten is at hand, and how near to a half is too near.
_LEAST, _MOST, _NEAR = 1e-16, 1e22, 1e-9
_UNDECIDED = 255
_E, _PLUS = 101, 43


class Texts(NamedTuple):
    """Text i is the first ``lengths[i]`` bytes of line i of ``characters`` (n, widest), both u1."""

    characters: NDArray[np.uint8]
    lengths: NDArray[np.uint8]


class Joined(NamedTuple):
    """Texts one after another in ``characters`` (u1), and where each ends."""

    characters: NDArray[np.uint8]
    ends: Ints


def joined(texts: Sequence[str]) -> Joined:
    """ASCII ``texts`` one after another."""
    characters = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8)
    return Joined(characters, np.cumsum([len(text) for text in texts], dtype=np.int64))


def six_digits(values: Floats) -> Texts:
    """``%g`` of each value; of 0 no text at all."""
    texts = Texts(np.empty((len(values), _WIDEST), np.uint8), np.empty(len(values), np.uint8))
    _six_digits(values, _TENS, *texts)
    for i in np.flatnonzero(texts.lengths == _UNDECIDED).tolist():
        text = f"{values[i]:g}".encode("ascii")
        texts.lengths[i] = len(text)
        texts.characters[i, : len(text)] = np.frombuffer(text, np.uint8)
    return texts


def each_once(text_of: Callable[[float], str], values: Floats) -> Texts:
    """``text_of`` each value, asked once for equal ones; of 0 no text at all."""
    distinct, which = np.unique(values, return_inverse=True)
    texts = np.array([text_of(value) if value else "" for value in distinct.tolist()], dtype=np.bytes_)
    widest = max(1, texts.itemsize)
    characters = texts.view(np.uint8).reshape(len(texts), widest) if len(texts) else np.empty((0, 1), np.uint8)
    return Texts(characters[which], np.char.str_len(texts).astype(np.uint8)[which])


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


@compiled("void(f8[:], f8[:], u1[:, :], u1[:])")
def _six_digits(values: Any, tens: Any, characters: Any, lengths: Any) -> None:
    for i in range(len(values)):
        lengths[i] = _put_six_digits(values[i], tens, characters[i])


@helper()
def _put_six_digits(value: Any, tens: Any, out: Any) -> Any:
    size = abs(value)
    if size == 0.0:
        return 0
    if not (_LEAST <= size < _MOST):
        return _UNDECIDED
    exponent = 0  # 10^exponent ≤ size < 10^(exponent + 1), or rounding to six digits makes it so
    if size >= 1.0:
        while size >= tens[exponent + 1]:
            exponent += 1
    else:
        exponent = -1
        while size * tens[-exponent] < 1.0:
            exponent -= 1
    shift = 5 - exponent
    scaled = size * tens[shift] if shift >= 0 else size / tens[-shift]
    whole = floor(scaled)
    rest = scaled - whole
    if abs(rest - 0.5) < _NEAR:
        return _UNDECIDED
    digits = int64(whole) + (1 if rest > 0.5 else 0)
    if digits >= 1_000_000:
        digits, exponent = digits // 10, exponent + 1
    length = 6
    while digits % 10 == 0:
        digits, length = digits // 10, length - 1
    at = 0
    if value < 0.0:
        out[0] = MINUS
        at = 1
    if -4 <= exponent < 6:
        return put_plain(digits, length, exponent, out, at)
    at = put_digits(digits, length, 1, out, at)
    out[at], out[at + 1] = _E, _PLUS if exponent > 0 else MINUS
    return put_digits(abs(exponent), 2, 0, out, at + 2)


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
        out[at] = 10
        at += 1
    return at


@helper()
def _copy(source: Any, start: Any, stop: Any, out: Any, at: Any) -> Any:
    for k in range(start, stop):
        out[at] = source[k]
        at += 1
    return at
