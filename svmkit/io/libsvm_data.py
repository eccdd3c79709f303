"""LIBSVM's data files: ``label index:value index:value …``, one example a line.

Read as svm-train reads them, with these differences: ``# comments``, ``qid:N`` and ``cost:W`` are understood; nan and infinity
are refused, and so are indices that do not fit 32 bits; lines with words after the last pair are read with a warning. What is
refused gets LIBSVM's own first line (``Wrong input format at line N``), then file, line, column, word and reason.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from svmkit.data import Dataset, Floats, Ints, Rows
from svmkit.errors import DataError
from svmkit.io.inputs import map_bytes
from svmkit.io.numbers_out import shortest
from svmkit.io.sparse_text import SparseText, Text, TextError, count_newlines, parse

_MARKS = {
    b"\xef\xbb\xbf": "the file begins with a byte-order mark (BOM); save it as UTF-8 without one",
    b"\xff\xfe": "the file is UTF-16 text (it begins with a byte-order mark); save it as UTF-8 or ASCII",
    b"\xfe\xff": "the file is UTF-16 text (it begins with a byte-order mark); save it as UTF-8 or ASCII",
}


def read_dataset(
    path: str,
    *,
    precomputed: bool = False,
    training: bool = False,
    on_warning: Callable[[str], None] | None = None,
) -> Dataset:
    """The examples in ``path`` (``-`` is standard input; compression is undone).

    ``precomputed``: lines ``label 0:serial 1:K(x, x_1) … L:K(x, x_L)`` of a kernel matrix; with ``training``, serials must lie
    in 1 … L. ``on_warning`` is told, once, of what was left out. Raises DataError for what cannot be opened, is empty, or is
    not such a file.
    """
    return parse_dataset(map_bytes(path), path, precomputed=precomputed, training=training, on_warning=on_warning)


def parse_dataset(
    text: Text,
    path: str,
    *,
    precomputed: bool = False,
    training: bool = False,
    unknown_labels: bool = False,
    on_warning: Callable[[str], None] | None = None,
    first_line: int | None = None,
    labels: bool = True,
) -> Dataset:
    """The examples in ``text``; ``path`` is for messages. Raises DataError as ``read_dataset``.

    ``unknown_labels`` reads the label ``?`` as nan. With ``first_line``, the text is the part of the file that begins on that
    line, and may hold no example. Without ``labels`` its lines have none, and ``y`` is nan.
    """
    before = 0 if first_line is None else first_line - 1
    try:
        parsed = parse(text, n_leading=int(labels), unknown=unknown_labels)
    except TextError as error:
        head = text[:3].tobytes() if before == 0 else b""
        reason = next((why for mark, why in _MARKS.items() if head.startswith(mark)), error.reason)
        raise _WrongLine(path, before + error.line, error.column, error.token, reason) from None
    if first_line is None and not len(parsed.leading):
        raise empty(path)
    if parsed.n_tails and on_warning is not None:
        line = before + 1 + count_newlines(text, parsed.first_tail)
        lines = f"line {line}" if parsed.n_tails == 1 else f"{parsed.n_tails} lines (line {line} is the first)"
        on_warning(f"{path}: words after the last index:value pair were left out on {lines}")
    rows = Rows(parsed.data, parsed.indices, parsed.indptr, parsed.max_index)
    if precomputed:
        rows = _kernel_rows(parsed, text, path, before, training)
    y = parsed.leading[:, 0].copy() if labels else np.full(rows.n, np.nan)
    return Dataset(rows=rows, y=y, weight=parsed.cost, qid=parsed.qid, source=path)


def empty(path: str) -> DataError:
    """The complaint about a file without examples."""
    return DataError("Wrong input format at line 1", f"{path}: the file holds no example")


class _WrongLine(DataError):
    """A line that is no example."""

    def __init__(self, path: str, line: int, column: int, token: str, reason: str) -> None:
        word = f" '{token}':" if token else ""
        super().__init__(f"Wrong input format at line {line}", f"{path}, line {line}, column {column}:{word} {reason}")
        self.line = line


def parse_up_to_fault(
    text: Text, path: str, first_line: int, on_warning: Callable[[str], None]
) -> tuple[Dataset, DataError | None]:
    """The examples in a part of a file, those before the first wrong line if there is one, and what is wrong with it."""
    try:
        return parse_dataset(text, path, first_line=first_line, on_warning=on_warning), None
    except _WrongLine as error:
        ends = np.flatnonzero(text == ord("\n"))
        good = text[: ends[error.line - first_line - 1] + 1] if error.line > first_line else text[:0]
        return parse_dataset(good, path, first_line=first_line, on_warning=on_warning), error


def _kernel_rows(parsed: SparseText, text: Text, path: str, before: int, training: bool) -> Rows:
    """Rows of a kernel matrix. Raises DataError unless each line gives all columns 0, 1, … L, the first a serial number.

    ``before`` lines of the file stand before the text.
    """
    n, width = len(parsed.leading), parsed.max_index + 1
    filled = np.diff(parsed.indptr) > 0
    first = np.zeros(n, dtype=np.int64)
    first[filled] = parsed.indptr[:-1][filled]
    bad = np.flatnonzero(~filled | ((parsed.indices[first] != 0) if len(parsed.indices) else True))
    if len(bad):
        where = f"{path}, line {before + line_of_row(text, int(bad[0]))}"
        reason = f"{where}: rows of a precomputed kernel begin with 0:serial, the number of the training example they belong to"
        raise DataError("Wrong input format: first column must be 0:sample_serial_number", reason)
    if (np.diff(parsed.indptr) != width).any():
        raise _uneven(parsed, text, path, before)
    table = parsed.data.reshape(n, width)
    serial = table[:, 0]
    bad = np.flatnonzero((serial != np.floor(serial)) | (serial < 1) | (serial > width - 1))
    if training and len(bad):
        where = f"{path}, line {before + line_of_row(text, int(bad[0]))}"
        reason = f"{where}: serial number {float(serial[bad[0]]):.17g} is not a whole number from 1 to {width - 1}"
        raise DataError("Wrong input format: sample_serial_number out of range", reason)
    return Rows(
        data=np.empty(0),
        indices=np.empty(0, dtype=np.int32),
        indptr=np.zeros(n + 1, dtype=np.int64),
        n_features=width - 1,
        serial=np.clip(serial, 0, width).astype(np.int64),  # of test rows it may be any number, and means nothing
        gram=_without_first_column(table),
    )


def _without_first_column(table: Floats) -> Floats:
    """The other columns, put together in the memory of ``table``: a kernel matrix may be most of what there is."""
    n, width = table.shape
    values = table.reshape(-1)
    for r in range(n):
        values[r * (width - 1) : (r + 1) * (width - 1)] = table[r, 1:]
    return values[: n * (width - 1)].reshape(n, width - 1)


def _uneven(parsed: SparseText, text: Text, path: str, before: int) -> DataError:
    """The complaint about the first row of a kernel matrix that is not as most are: from column 0 to the same last one."""
    counts, last = np.diff(parsed.indptr), parsed.indices[parsed.indptr[1:] - 1]
    found, times = np.unique(counts, return_counts=True)
    usual = int(found[times == times.max()][-1])
    row = int(np.flatnonzero((counts != usual) | (last != usual - 1))[0])
    line = before + line_of_row(text, row)
    given = parsed.indices[parsed.indptr[row] : parsed.indptr[row + 1]]
    gaps = np.flatnonzero(given != np.arange(len(given)))
    this = f"has none for column {gaps[0]}" if len(gaps) else f"gives {counts[row]} up to column {last[row]}, others {usual}"
    reason = "rows of a precomputed kernel give every column from 0 to the same last one, zeros too: this one"
    return DataError(f"Wrong input format at line {line}", f"{path}, line {line}: {reason} {this}")


def line_of_row(text: Text, row: int) -> int:
    """The 1-based line that example ``row`` stands on: comments take lines too."""
    return 1 + count_newlines(text, int(example_starts(text)[row]))


def example_starts(text: Text) -> Ints:
    """Where the lines of examples begin, those that are no comments."""
    starts = np.concatenate([[0], np.flatnonzero(text == ord("\n")) + 1]).astype(np.int64)
    starts = starts[starts < len(text)]
    ends = np.append(starts[1:], len(text))
    first = text[starts]
    comment = first == ord("#")
    for line in np.flatnonzero((first == ord(" ")) | (first == ord("\t"))):  # seldom any
        comment[line] = text[starts[line] : ends[line]].tobytes().lstrip(b" \t").startswith(b"#")
    examples: Ints = starts[~comment]
    return examples


def shortest_texts(values: Floats) -> NDArray[np.object_]:
    """The shortest text of each value, ``?`` for an unknown one."""
    return np.array(["?" if text == "nan" else text for text in shortest(values).line().split()], dtype=object)


def line_heads(
    dataset: Dataset, start: int, stop: int, texts: Callable[[Floats], NDArray[np.object_]] = shortest_texts
) -> NDArray[np.object_]:
    """What stands before the values in the lines of examples start … stop − 1: the label, a group but 0, a weight but 1."""
    heads = texts(dataset.y[start:stop])
    if dataset.qid is not None:
        heads = heads + np.array([f" qid:{q}" if q else "" for q in dataset.qid[start:stop].tolist()], dtype=object)
    if dataset.weight is not None:
        weight = dataset.weight[start:stop]
        heads = heads + np.where(weight == 1.0, "", " cost:" + texts(weight))
    return heads


def texts_of(values: Floats, text: Callable[[float], str]) -> NDArray[np.object_]:
    """``text`` of each value, made once for equal bits: 0 and −0 are written differently."""
    distinct, which = np.unique(values.view(np.int64), return_inverse=True)
    return np.array([text(value) for value in distinct.view(np.float64).tolist()], dtype=object)[which]
