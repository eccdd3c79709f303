"""Range files, in which svm-scale keeps a scaling to apply it to other data:

y                     only if labels are scaled
lower upper
minimum maximum
x
lower upper
index minimum maximum     one line a feature; those that are constant are left out
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from svmkit.errors import DataError
from svmkit.io.inputs import read_bytes
from svmkit.io.outputs import atomic_output
from svmkit.scaling import LabelRange, Scaling, unmeasured

_SUMMARY = "ERROR: failed to read scaling parameters"


def write_ranges(path: str, scaling: Scaling) -> None:
    """Writes ``scaling`` to ``path``, which is complete or untouched. Raises OutputError where it cannot be written."""
    with atomic_output(path) as out:
        out.write(ranges_text(scaling).encode("ascii"))


def ranges_text(scaling: Scaling) -> str:
    """The file's text: numbers as svm-scale writes them, which read back exactly."""
    lines = []
    if scaling.labels is not None:
        at = scaling.labels
        lines += ["y", f"{at.lower:.17g} {at.upper:.17g}", f"{at.minimum:.17g} {at.maximum:.17g}"]
    lines += ["x", f"{scaling.lower:.17g} {scaling.upper:.17g}"]
    varying = np.flatnonzero(scaling.minimum != scaling.maximum)
    for place in varying[varying > 0].tolist():
        lines.append(f"{scaling.index[place]} {scaling.minimum[place]:.17g} {scaling.maximum[place]:.17g}")
    return "\n".join(lines) + "\n"


def read_ranges(path: str) -> Scaling:
    """The scaling in the file ``path`` ("-" is standard input).

    Raises DataError where it cannot be opened or is not a whole range file, naming file, line and reason.
    """
    return parse_ranges(read_bytes(path).decode("latin-1"), path)


def parse_ranges(text: str, path: str) -> Scaling:
    """The scaling in ``text``; ``path`` is for messages. Raises DataError as ``read_ranges``."""
    lines = _Lines(text, path)
    labels = None
    head = lines.next_words("`x` or `y`")
    if head == ["y"]:
        lower, upper = lines.next_numbers(2, "the limits of the labels")
        minimum, maximum = lines.next_numbers(2, "the range of the labels")
        labels = LabelRange(lower, upper, minimum, maximum)
        head = lines.next_words("`x`")
    if head != ["x"]:
        lines.fail(f"must be `x`{'' if labels else ' or `y`'}, not {' '.join(head)[:40]!r}")
    lower, upper = lines.next_numbers(2, "the limits of the features")
    ranges = {index: (minimum, maximum) for index, minimum, maximum in lines.features()}
    scaling = unmeasured(lower, upper, np.unique([0, *ranges]).astype(np.int64), labels)
    for place, index in enumerate(scaling.index.tolist()):
        if index in ranges:
            scaling.minimum[place], scaling.maximum[place] = ranges[index]
            scaling.known[place] = True
    return scaling


class _Lines:
    """The file's lines with something on them, in turn."""

    def __init__(self, text: str, path: str) -> None:
        self.lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        self.path = path
        self.at = 0

    def fail(self, why: str) -> NoReturn:
        """Raises DataError about the line last taken."""
        raise DataError(_SUMMARY, f"{self.path}, line {self.lines[self.at - 1][0]}: {why}")

    def next_words(self, what: str) -> list[str]:
        if self.at == len(self.lines):
            raise DataError(_SUMMARY, f"{self.path}: ends where {what} should stand: not a range file, or cut short")
        self.at += 1
        return self.lines[self.at - 1][1]

    def next_numbers(self, count: int, what: str) -> list[float]:
        words = self.next_words(what)
        numbers = [_number(word) for word in words]
        if len(words) != count or not all(map(math.isfinite, numbers)):
            self.fail(f"must be {what}, {count} finite numbers, not {' '.join(words)[:60]!r}")
        return numbers

    def features(self) -> Iterator[tuple[int, float, float]]:
        while self.at < len(self.lines):
            index, minimum, maximum = self.next_numbers(3, "a feature's index and range")
            if index != int(index) or not 0 <= index < 2**31:
                self.fail(f"a feature's index is a whole number below 2^31, not {index:g}")
            yield int(index), minimum, maximum


def _number(word: str) -> float:
    try:
        return float(word.replace("_", "?"))  # float() would read 1_0
    except ValueError:
        return math.nan
