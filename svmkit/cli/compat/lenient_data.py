"""Data files as svm-scale takes them: anything that has a label on every line.

A label is whatever number its word begins with; a line ends at the first word that is no ``index:value``; indices need not
ascend.
"""

from __future__ import annotations

import math
import re

import numpy as np

from svmkit.cli.compat.argv import leading_number
from svmkit.data import Dataset, Rows
from svmkit.errors import DataError

_INDEX = re.compile(r"\s*([+-]?\d+):\s*", re.ASCII)
_REST_OF_WORD = re.compile(r"\s*\S*", re.ASCII)
_BARE_HEX = re.compile(r"\s*[+-]?0[xX](?![0-9a-fA-F.])", re.ASCII)

_NOT_FINITE = "not a finite number; leave the example or the feature out"
_NEGATIVE = "a feature index must not be negative"
_LARGE = "a feature index must be below 2147483648"


def parse_lenient(text: str, path: str, first_line: int) -> Dataset:
    """The examples in ``text``, which begins on that line of the file. Raises DataError for the first line without a label or
    with what no scaling can take: a number that is not finite, an index that is negative or too large.
    """
    y, data, indices, indptr = [], [], [], [0]
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, first_line):
        label = _scanned_number(line)
        if label is None:
            raise DataError("ERROR: failed to read labels", f"{path}, line {number}: {_shown(line.strip())} is no label")
        at = _end_of_word(line, 0)
        if not math.isfinite(label):
            raise _unscalable(path, number, line, at, _NOT_FINITE)
        y.append(label)
        while match := _INDEX.match(line, at):
            value = _scanned_number(line[match.end() : match.end() + 400])
            if value is None:
                break
            at = _end_of_word(line, match.end())
            index = float(match[1])  # int() refuses thousands of digits
            if not 0 <= index < 2**31:
                raise _unscalable(path, number, line, at, _NEGATIVE if index < 0 else _LARGE)
            if not math.isfinite(value):
                raise _unscalable(path, number, line, at, _NOT_FINITE)
            data.append(value)
            indices.append(int(index))
        indptr.append(len(data))
    pairs = np.array(data, dtype=np.float64), np.array(indices, dtype=np.int32)
    return Dataset(Rows(*pairs, np.array(indptr, dtype=np.int64), max(indices, default=0)), np.array(y, dtype=np.float64))


def _scanned_number(text: str) -> float | None:
    """The number that ``text`` begins with, as C's scanf finds it: of a bare ``0x`` atof makes 0, scanf nothing."""
    return None if _BARE_HEX.match(text) else leading_number(text)


def _unscalable(path: str, number: int, line: str, end: int, reason: str) -> DataError:
    """The complaint about the word that ends at ``end``."""
    word = line[:end].split()[-1]
    return DataError(f"Wrong input format at line {number}", f"{path}, line {number}: {_shown(word)}: {reason}")


def _shown(text: str) -> str:
    """``text``, a character a byte, for people, whose encoding is UTF-8."""
    return repr(text.encode("latin-1").decode("utf-8", "replace")[:40])


def _end_of_word(line: str, at: int) -> int:
    match = _REST_OF_WORD.match(line, at)
    assert match  # it matches nothing too
    return match.end()
