"""Data files in LIBSVM's format, written in the plainest way."""

from __future__ import annotations

from pathlib import Path

from svmkit.data import Dataset, Floats, Rows
from svmkit.io.libsvm_data import line_heads


def write_dataset(path: Path, dataset: Dataset) -> None:
    """``dataset`` as text that reads back equal."""
    rows, lines = dataset.rows, []
    for k, head in enumerate(line_heads(dataset, 0, rows.n)):
        here = slice(rows.indptr[k], rows.indptr[k + 1])
        pairs = zip(rows.indices[here].tolist(), rows.data[here].tolist(), strict=True)
        lines.append(" ".join([head, *(f"{index}:{value!r}" for index, value in pairs)]))
    path.write_text("\n".join(lines) + "\n", "ascii")


def write_points(path: Path, X: Floats, y: Floats) -> None:
    """The rows of a dense matrix and their labels."""
    write_dataset(path, Dataset(Rows.from_dense(X), y))
