"""Data files as svm-scale takes them: anything that has a label on every line.

A label is whatever number its word begins with; a line ends, silently, at the first word that is no ``index:value``; indices
need not ascend.
"""

from __future__ import annotations

import math
import re

import numpy as np

from svmkit.cli.compat.argv import leading_number
from svmkit.data import Dataset, Rows
from svmkit.errors import DataError

_INDEX = re.compile(r"\s*([+-]?\d{1,10}):\s*", re.ASCII)
_REST_OF_WORD = re.compile(r"\s*\S*", re.ASCII)


def parse_lenient(text: str, path: str, otherwise: DataError) -> Dataset:
    """The examples in ``text``. Raises DataError for a line without a label, and ``otherwise`` for what no scaling can take: a
    number that is not finite, an index that is negative or too large.
    """
    y, data, indices, indptr = [], [], [], [0]
    for number, line in enumerate(text.split("\n")[: _n_lines(text)], 1):
        label = leading_number(line)
        if label is None:
            raise DataError("ERROR: failed to read labels", f"{path}, line {number}: {line.strip()[:40]!r} is no label")
        y.append(label)
        at = _end_of_word(line, 0)
        while match := _INDEX.match(line, at):
            value = leading_number(line[match.end() : match.end() + 400])
            if value is None:
                break
            data.append(value)
            indices.append(int(match[1]))
            at = _end_of_word(line, match.end())
        indptr.append(len(data))
    if not all(map(math.isfinite, y + data)) or not all(0 <= index < 2**31 for index in indices):
        raise otherwise
    pairs = np.array(data, dtype=np.float64), np.array(indices, dtype=np.int32)
    return Dataset(Rows(*pairs, np.array(indptr, dtype=np.int64), max(indices, default=0)), np.array(y, dtype=np.float64))


def _n_lines(text: str) -> int:
    """Lines, the last with or without its newline."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def _end_of_word(line: str, at: int) -> int:
    match = _REST_OF_WORD.match(line, at)
    assert match  # it matches nothing too
    return match.end()
