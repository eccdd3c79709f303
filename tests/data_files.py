"""Data files in LIBSVM's format, written in the plainest way, and read."""

from __future__ import annotations

from pathlib import Path

import pytest

from svmkit.data import Dataset, Floats, Rows
from svmkit.errors import DataError
from svmkit.io.libsvm_data import line_heads, read_dataset


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


def read(folder: Path, content: bytes, **options: bool) -> tuple[Dataset, list[str]]:
    """A file of ``content`` in ``folder``, read; and the warnings."""
    path = folder / "data"
    path.write_bytes(content)
    warnings: list[str] = []
    return read_dataset(str(path), on_warning=warnings.append, **options), warnings


def refused(folder: Path, content: bytes, **options: bool) -> DataError:
    """What is said of it."""
    with pytest.raises(DataError) as caught:
        read(folder, content, **options)
    return caught.value
