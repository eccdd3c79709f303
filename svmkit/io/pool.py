"""Pools of examples whose labels are asked for: LIBSVM lines, all labelled (with ``?``, too) or none, and their text."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from svmkit.data import Dataset
from svmkit.io.inputs import map_bytes
from svmkit.io.libsvm_data import example_starts, parse_dataset
from svmkit.io.sparse_text import Text, line_end


class Pool:
    """``dataset`` has nan for every label; ``text_of(row)`` is what stands in the file of a row, without a label."""

    def __init__(self, path: str, on_warning: Callable[[str], None]) -> None:
        """Reads the file; raises DataError as ``libsvm_data.read_dataset``. A number for a label is not looked at."""
        self._text = map_bytes(path)
        self._starts = example_starts(self._text)
        self._labelled = _begins_with_label(self._text[int(self._starts[0]) :] if len(self._starts) else self._text)
        dataset = parse_dataset(self._text, path, labels=self._labelled, unknown_labels=True, on_warning=on_warning)
        self.dataset = Dataset(rows=dataset.rows, y=np.full(dataset.n, np.nan), weight=dataset.weight, source=path)

    @property
    def n(self) -> int:
        """Number of examples."""
        return self.dataset.n

    @property
    def mark(self) -> str:
        """A text that another pool would hardly have."""
        return f"{self.n} rows, crc32 {zlib.crc32(self._text):08x}"

    def text_of(self, row: int) -> str:
        """The features of a row as they stand in the file, which may be none."""
        start = int(self._starts[row])
        text = self._text[start : line_end(self._text, start)].tobytes().decode("utf-8", "replace").strip()
        return "".join(text.split(maxsplit=1)[1:]) if self._labelled else text


def _begins_with_label(text: Text) -> bool:
    """Whether the first word is no pair."""
    word = text[: 1 << 16].tobytes().split(maxsplit=1)
    return not word or b":" not in word[0]
