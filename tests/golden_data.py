"""The files in tests/golden (scripts/make_golden.py writes them), read in the plainest way, and the genuine tools."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from svmkit.data import Dataset, Floats, Rows

GOLDEN = Path(__file__).parent / "golden"
MODELS = sorted(path.name.removesuffix(".model") for path in GOLDEN.glob("*.model"))
#: Where the genuine svm-train, svm-predict and svm-scale are; our own scripts of these names may come first in PATH.
TOOLS = Path(os.environ.get("LIBSVM_TOOLS", "/usr/bin"))

_THERE = all((TOOLS / name).exists() for name in ("svm-train", "svm-predict", "svm-scale"))
needs_tools = pytest.mark.skipif(not _THERE, reason="the genuine LIBSVM tools are not installed")


def read_rows(path: Path) -> tuple[Floats, Rows]:
    """Labels and rows of a data file; a file named gram… holds kernel values."""
    words = [line.split() for line in path.read_text().splitlines()]
    y = np.array([float(word[0]) for word in words])
    pairs = [[(int(i), float(v)) for i, v in (pair.split(":") for pair in word[1:])] for word in words]
    flat = [] if path.name.startswith("gram") else [pair for row in pairs for pair in row]
    indptr = np.zeros(len(y) + 1, dtype=np.int64)
    if flat:
        np.cumsum([len(row) for row in pairs], out=indptr[1:])
    index = np.array([i for i, _ in flat], dtype=np.int32)
    rows = Rows(np.array([v for _, v in flat], dtype=np.float64), index, indptr, int(index.max(initial=0)))
    if flat:
        return y, rows
    gram = np.array([[v for _, v in row[1:]] for row in pairs])
    return y, rows._replace(gram=gram, serial=np.array([int(row[0][1]) for row in pairs]), n_features=gram.shape[1])


def dataset_of(name: str) -> Dataset:
    """The examples of a file in tests/golden."""
    y, rows = read_rows(GOLDEN / name)
    return Dataset(rows, y)


def data_of(model_name: str) -> Path:
    """The test data that belong to a golden model."""
    return GOLDEN / f"{model_name.split('.')[0]}.t"


def numbers(path: Path, skip: int = 0) -> Floats:
    """The numbers of a text file, one row a line, after ``skip`` lines."""
    return np.array([[float(word) for word in line.split()] for line in path.read_text().splitlines()[skip:]])
