"""The data types below the readers: ``Rows``, the only matrix type, ``Dataset``, rows with their labels, and ``Chunk``, a part
of a file that is read part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit.gather import gather, gather_dense

Floats = NDArray[np.float64]
Reals = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Nonzeros that are squared at a time: few, so that the squares stay in a shared cache and take little new memory.
_SQUARED_AT_A_TIME = 1 << 18

#: How rows are stored; see ``Rows``.
Form = Literal["sparse", "dense"]

_NO_GRAM = np.empty((0, 0))
_NO_SERIAL = np.empty(0, dtype=np.int64)


class Rows(NamedTuple):
    """n examples as compressed sparse rows; column numbers are the file's own indices (0 is allowed, 1 is usual).

    ``data`` f8 (nnz,), ``indices`` i4 (nnz,) ascending within a row, ``indptr`` i8 (n + 1,), all C-contiguous. Zeros that the
    file spells out stay. ``n_features`` is the largest index. Mapped data are dense: ``data`` is f4 (n · n_features,), each row
    has features 1 … n_features, and ``indices`` is empty. For a precomputed kernel row r instead holds
    ``serial[r]`` (1-based number of the training row it is) and, where known, ``gram[r]``: its kernel values against training
    rows 1 … L, and the sparse arrays are empty.
    """

    data: NDArray[Any]
    indices: NDArray[np.int32]
    indptr: Ints
    n_features: int
    gram: Floats = _NO_GRAM
    serial: Ints = _NO_SERIAL

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def precomputed(self) -> bool:
        """Whether these are rows of a kernel matrix."""
        return len(self.serial) > 0

    @property
    def form(self) -> Form:
        """Dense rows are told by their single precision."""
        return "dense" if self.data.dtype == np.float32 else "sparse"

    def take(self, index: Ints) -> Rows:
        """The rows numbered ``index``, in that order, as new arrays."""
        if self.form == "dense":
            return dense_rows(gather_dense(self.matrix(), index))
        indptr, indices, data = gather(self.indptr, index, self.indices, self.data)
        gram = self.gram[index] if len(self.gram) else self.gram
        serial = self.serial[index] if len(self.serial) else self.serial
        return self._replace(data=data, indices=indices, indptr=indptr, gram=gram, serial=serial)

    def part(self, first: int, last: int) -> Rows:
        """Rows first … last − 1, sharing this one's arrays."""
        here = slice(self.indptr[first], self.indptr[last])
        return self._replace(
            data=self.data[here],
            indices=self.indices[here],
            indptr=self.indptr[first : last + 1] - self.indptr[first],
            gram=self.gram[first:last] if len(self.gram) else self.gram,
            serial=self.serial[first:last],
        )

    def sqnorms(self) -> Floats:
        """Squared Euclidean norms (n,); infinite where they leave the range of doubles."""
        sums = np.zeros(self.n)
        filled = np.flatnonzero(np.diff(self.indptr))
        ends = np.append(self.indptr[:-1][filled], self.indptr[-1])
        for first, last in row_blocks(ends, _SQUARED_AT_A_TIME):
            values = self.data[ends[first] : ends[last]].astype(np.float64, copy=False)
            with np.errstate(over="ignore"):
                sums[filled[first:last]] = np.add.reduceat(values * values, ends[first:last] - ends[first])
        return sums

    def matrix(self) -> NDArray[np.float32]:
        """Dense rows as the matrix (n, n_features) they are, sharing memory."""
        return self.data.reshape(self.n, self.n_features)

    def to_dense(self) -> Floats:
        """The matrix (n, n_features + 1), column 0 for index 0."""
        dense = np.zeros((self.n, self.n_features + 1))
        if self.form == "dense":
            dense[:, 1:] = self.matrix()
            return dense
        dense[np.repeat(np.arange(self.n), np.diff(self.indptr)), self.indices] = self.data
        return dense

    @staticmethod
    def from_dense(matrix: Floats) -> Rows:
        """Rows of a matrix whose column j is feature j + 1; zeros are left out."""
        matrix = np.asarray(matrix, dtype=np.float64)
        row, column = np.nonzero(matrix)
        indptr = np.zeros(len(matrix) + 1, dtype=np.int64)
        np.cumsum(np.bincount(row, minlength=len(matrix)), out=indptr[1:])
        return Rows(matrix[row, column], (column + 1).astype(np.int32), indptr, matrix.shape[1])


#: Rows of no example.
NO_ROWS = Rows(np.empty(0), np.empty(0, np.int32), np.zeros(1, np.int64), 0)


def dense_rows(matrix: NDArray[np.float32]) -> Rows:
    """Dense rows over a C-contiguous matrix (n, d), whose column j is feature j + 1; nothing is copied."""
    n, d = matrix.shape
    return Rows(matrix.reshape(-1), np.empty(0, dtype=np.int32), d * np.arange(n + 1, dtype=np.int64), d)


def row_blocks(indptr: Ints, nonzeros: int, most_rows: int | None = None) -> Iterator[tuple[int, int]]:
    """Ranges (first, last + 1) of rows with about ``nonzeros`` nonzeros, and at most ``most_rows`` rows, else ``nonzeros``."""
    first, n = 0, len(indptr) - 1
    while first < n:
        last = int(np.searchsorted(indptr, indptr[first] + nonzeros, side="right")) - 1
        last = min(max(last, first + 1), first + (most_rows or nonzeros), n)
        yield first, last
        first = last


def stack(parts: Sequence[Rows]) -> Rows:
    """The sparse rows of all parts, one below the other; ``n_features`` is the largest."""
    nonzeros = np.cumsum([0, *(len(part.data) for part in parts)])
    starts = [part.indptr[:-1] + offset for part, offset in zip(parts, nonzeros, strict=False)]
    return Rows(
        data=np.concatenate([part.data for part in parts]),
        indices=np.concatenate([part.indices for part in parts]),
        indptr=np.concatenate([*starts, nonzeros[-1:]]),
        n_features=max(part.n_features for part in parts),
    )


@dataclass(frozen=True)
class Dataset:
    """Rows with labels. ``y`` f8 (n,), nan where unknown; ``weight`` multiplies an example's C (``cost:``); ``qid`` groups."""

    rows: Rows
    y: Floats
    weight: Floats | None = None
    qid: Ints | None = None
    source: str = ""

    @property
    def n(self) -> int:
        """Number of examples."""
        return self.rows.n

    @property
    def n_features(self) -> int:
        """The largest feature index."""
        return self.rows.n_features

    @property
    def name(self) -> str:
        """What messages call it: its source, where it has one."""
        return self.source or "the data"

    def take(self, index: Ints) -> Dataset:
        """The examples numbered ``index``, in that order."""
        return Dataset(
            rows=self.rows.take(index),
            y=self.y[index],
            weight=None if self.weight is None else self.weight[index],
            qid=None if self.qid is None else self.qid[index],
            source=self.source,
        )

    @property
    def classes(self) -> Floats:
        """Labels as classification takes them, LIBSVM's way (n,): what is before the point; nan where unknown."""
        return np.trunc(self.y)

    @property
    def learned_classes(self) -> Floats:
        """``classes`` of the examples that take part in training: those whose weight is not 0."""
        return self.classes[self.weights > 0]

    @cached_property
    def weights(self) -> Floats:
        """``weight``, or ones."""
        return np.ones(self.n) if self.weight is None else self.weight


def label_places(labels: Floats | Ints, order: Floats | Ints) -> Ints:
    """Where each label stands in ``order``, −1 where it does not."""
    sorter = np.argsort(order)
    places: Ints = sorter[np.minimum(np.searchsorted(order, labels, sorter=sorter), len(order) - 1)]
    return np.where(order[places] == labels, places, -1)


class Chunk(NamedTuple):
    """Consecutive examples of a file; ``where(row)`` says in words, file and line, where one of them stands."""

    dataset: Dataset
    where: Callable[[int], str]
