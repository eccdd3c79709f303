"""Scaling against the formula written out over dense matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from svmkit import scaling as scaling_module
from svmkit.cli.scaled_text import ScaledText, Words
from svmkit.data import Dataset, Floats, Rows
from svmkit.io.libsvm_data import parse_dataset
from svmkit.io.numbers_out import shortest
from svmkit.scaling import (
    LabelRange,
    Scaling,
    count_nonzeros,
    gaps,
    measure,
    measure_labels,
    occurring,
    scale_labels,
    scale_values,
    scaled_zeros,
    survey,
    unscalable,
)

VALUES = st.sampled_from([0.0, 0.0, 1.0, -2.5, 3.0, 1e-300, 7.25])
MATRICES = hnp.arrays(np.float64, st.tuples(st.integers(0, 6), st.integers(0, 5)), elements=VALUES)


def scale(rows: Rows, scaling: Scaling) -> Rows:
    """What is written of ``rows``, read back."""
    words = Words(
        lambda dataset, first, last: ["0"] * (last - first),
        " {}:".format,
        lambda values: shortest(values).without_zeros(values),
    )
    scaling = scaling.covering(occurring(rows))
    text = b"".join(ScaledText(scaling, words).lines(Dataset(scaling.placed(rows), np.zeros(rows.n))))
    return parse_dataset(np.frombuffer(text, np.uint8), "text").rows if text else Rows.from_dense(np.zeros((0, 0)))


def by_number(lower: float, upper: float, minimum: Floats, maximum: Floats, labels: LabelRange | None = None) -> Scaling:
    """Of features 0, 1, …, of which those with different ends are known."""
    return Scaling(lower, upper, np.arange(len(minimum)), minimum, maximum, minimum != maximum, labels)


def naive(matrix: Floats, lower: float, upper: float) -> Floats:
    out = np.zeros_like(matrix)
    for j, column in enumerate(matrix.T):
        low, high = column.min(), column.max()
        if low == high:
            continue
        for i, value in enumerate(column):
            at_end = lower if value == low else upper if value == high else None
            out[i, j] = lower + (upper - lower) * (value - low) / (high - low) if at_end is None else at_end
    return out


@settings(deadline=None)  # the first may be compiled
@given(MATRICES, st.sampled_from([(-1.0, 1.0), (0.0, 1.0), (2.0, 5.0), (-3.0, 0.0)]))
def test_scaled_rows_are_the_formula_s(matrix: Floats, limits: tuple[float, float]) -> None:
    rows = Rows.from_dense(matrix)
    scaling = measure(rows, *limits)
    width = rows.n_features
    expected = naive(matrix[:, :width], *limits) if matrix.size else np.zeros((len(matrix), width))
    scaled = scale(rows, scaling)
    dense = np.zeros((rows.n, width + 1))
    dense[:, : scaled.n_features + 1] = scaled.to_dense()
    assert dense[:, 1:].tolist() == expected.tolist()
    assert np.all(scaled.data != 0)
    assert count_nonzeros(scaling.placed(rows), scaling) == len(scaled.data) == np.count_nonzero(expected)
    for start, stop in zip(scaled.indptr[:-1], scaled.indptr[1:], strict=True):
        assert np.all(np.diff(scaled.indices[start:stop]) > 0)


@settings(deadline=None)
@given(MATRICES, st.integers(0, 6), st.booleans())
def test_a_survey_of_parts_is_that_of_the_whole(matrix: Floats, cut: int, zero_based: bool) -> None:
    rows = Rows.from_dense(matrix)
    rows = rows._replace(indices=rows.indices - np.int32(zero_based))
    data = Dataset(rows, np.arange(rows.n) - 2.5)
    parts = [data.take(np.arange(min(cut, rows.n))), data.take(np.arange(min(cut, rows.n), rows.n))]
    whole = survey([data] if data.n else [], -1.0, 1.0, (0.0, 1.0))
    found = survey([part for part in parts if part.n], -1.0, 1.0, (0.0, 1.0))
    assert (found.n_values, found.y.tolist()) == (whole.n_values, whole.y.tolist())
    one, other = found.scaling, whole.scaling
    assert (one.lower, one.upper, one.labels) == (other.lower, other.upper, other.labels)
    for field in ("index", "minimum", "maximum", "known"):
        assert getattr(one, field).tolist() == getattr(other, field).tolist()
    if data.n:
        own = measure(rows, -1.0, 1.0)
        assert (own.minimum.tolist(), own.maximum.tolist()) == (other.minimum.tolist(), other.maximum.tolist())


def test_zeros_in_the_file_and_missing_values_are_alike() -> None:
    spelt = Rows(np.array([0.0, 2.0, 4.0]), np.array([1, 2, 2], dtype=np.int32), np.array([0, 2, 3]), 2)
    missing = Rows(np.array([2.0, 4.0]), np.array([2, 2], dtype=np.int32), np.array([0, 1, 2]), 2)
    for rows in (spelt, missing):
        scaling = measure(rows)
        assert (scaling.index[-1], scaling.minimum[-1], scaling.maximum[-1]) == (2, 2, 4)
        assert scale(rows, scaling).to_dense().tolist() == [[0, 0, -1], [0, 0, 1]]


def test_index_0_is_not_filled_in() -> None:
    rows = Rows(np.array([5.0, 7.0, 1.0]), np.array([0, 0, 1], dtype=np.int32), np.array([0, 1, 2, 3]), 1)
    scaling = measure(rows)
    assert (scaling.minimum[0], scaling.maximum[0]) == (5, 7)
    assert scale(rows, scaling).to_dense().tolist() == [[-1, -1], [1, -1], [0, 1]]


def test_new_data_may_leave_the_range_and_bring_new_features() -> None:
    scaling = by_number(0.0, 1.0, np.array([0.0, 0.0]), np.array([0.0, 10.0]))
    rows = Rows.from_dense(np.array([[20.0, 3.0], [0.0, 4.0]]))
    assert scale(rows, scaling).to_dense().tolist() == [[0, 2], [0, 0]]
    wider = scaling.covering(np.array([1, 4]))
    assert (wider.index.tolist(), wider.known.tolist()) == ([0, 1, 4], [False, True, False])


def test_features_the_data_lack_are_filled() -> None:
    scaling = by_number(-1.0, 1.0, np.zeros(4), np.array([0.0, 0.0, 0.0, 2.0]))
    assert scaled_zeros(scaling).tolist() == [0, 0, 0, -1]
    assert scale(Rows.from_dense(np.array([[5.0], [0.0]])), scaling).to_dense().tolist() == [[0, 0, 0, -1], [0, 0, 0, -1]]


def test_ends_are_exact() -> None:
    scaling = by_number(0.1, 0.7, np.array([0.0, 0.1]), np.array([0.0, 0.3]))
    assert scale_values(scaling, np.array([1, 1, 0]), np.array([0.1, 0.3, 5.0])).tolist() == [0.1, 0.7, 0.0]


def test_huge_ranges_raise_no_warning() -> None:
    rows = Rows.from_dense(np.array([[1.7e308], [-1.7e308]]))
    assert scale(rows, measure(rows)).to_dense()[:, 1].tolist() == [1, -1]


def test_features_that_are_scaled_to_no_number_are_found() -> None:
    ends = np.array([0.0, 0.0, -1.7e308, -1.7e308, -1.7e308, 0.0])
    scaling = by_number(-1.0, 1.0, ends, -ends)
    rows = Rows.from_dense(np.array([[1.0, 1.7e308, 1.7e308, 5.0], [0.0, -1.7e308, 0.0, 5.0]]))

    def lost(rows: Rows, scaling: Scaling) -> list[int]:
        scaling = scaling.covering(occurring(rows))
        return unscalable(scaling.placed(rows), scaling).tolist()

    assert lost(rows, scaling) == [3, 4]
    assert lost(rows, measure(Rows.from_dense(np.ones((1, 2))))) == []
    assert lost(rows.take(np.array([0])), by_number(-1.0, 1.0, ends[:4], -ends[:4])) == []


def test_rows_are_looked_at_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty rows among them, and a feature that is missing in one row alone."""
    rng = np.random.default_rng(4)
    matrix = rng.normal(size=(30, 6)) * (rng.random((30, 6)) < 0.6)
    matrix[:, 2], matrix[17, 2], matrix[5] = 1.0 + rng.random(30), 0.0, 0.0
    rows, scalings = Rows.from_dense(matrix), []
    for at_a_time in (1, 1 << 20):
        monkeypatch.setattr(scaling_module, "_AT_A_TIME", at_a_time)
        scaling = measure(rows)
        placed = scaling.placed(rows)
        huge = replace(scaling, maximum=np.where(np.arange(7) == 3, scaling.minimum + 5e-324, scaling.maximum))
        figures = count_nonzeros(placed, scaling), unscalable(placed, huge).tolist()
        scalings.append((scaling.minimum.tolist(), scaling.maximum.tolist(), *figures))
    assert scalings[0] == scalings[1]
    assert scalings[0][0][3] == 0.0
    assert scalings[0][2] == np.count_nonzero(scale(rows, scaling).to_dense())
    assert scalings[0][3] == [3]


def test_features_that_occur_nowhere_take_no_room() -> None:
    indices = np.array([7, 2_000_000_000, 2_147_483_646, 7], dtype=np.int32)
    rows = Rows(np.array([1.0, 2.0, 3.0, 4.0]), indices, np.array([0, 3, 4]), 2_147_483_646)
    scaling = measure(rows)
    assert scaling.index.tolist() == [0, 7, 2_000_000_000, 2_147_483_646]
    assert (scaling.minimum.tolist(), scaling.maximum.tolist()) == ([0, 1, 0, 0], [0, 4, 2, 3])
    scaled = scale(rows, scaling)
    assert scaled.indices.tolist() == [7, 2_000_000_000, 2_147_483_646] * 2
    assert scaled.data.tolist() == [-1, 1, 1, 1, -1, -1]


def test_labels() -> None:
    y = np.array([2.0, 4.0, 3.0])
    scaling = measure(Rows.from_dense(np.ones((3, 1))))
    assert scale_labels(scaling, y) is y
    with_labels = by_number(-1, 1, np.zeros(1), np.zeros(1), measure_labels(y, 0.0, 10.0))
    assert with_labels.labels == LabelRange(0.0, 10.0, 2.0, 4.0)
    assert scale_labels(with_labels, y).tolist() == [0, 10, 5]
    single = by_number(-1, 1, np.zeros(1), np.zeros(1), LabelRange(-1.0, 1.0, 3.0, 3.0))
    assert scale_labels(single, np.array([3.0, 4.0])).tolist() == [-1, -1]


@pytest.mark.parametrize(("indices", "before"), [([2, 5], [1, 3]), ([1, 2], [1, 2]), ([0, 3], [1, 1])])
def test_gaps(indices: list[int], before: list[int]) -> None:
    rows = Rows(np.ones(2), np.array(indices, dtype=np.int32), np.array([0, 0, 2]), 5)
    assert [part.tolist() for part in gaps(rows)] == [before, [1, indices[-1] + 1]]


def test_a_range_of_one_point_is_known_and_that_of_what_occurs_nowhere_is_not() -> None:
    found = measure(Rows.from_dense(np.array([[2.0, 1.0], [2.0, 3.0]])))
    assert (found.index.tolist(), found.known.tolist()) == ([0, 1, 2], [False, True, True])
    assert (found.minimum.tolist(), found.maximum.tolist()) == ([0, 2, 1], [0, 2, 3])
