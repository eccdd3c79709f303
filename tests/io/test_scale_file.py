"""Range files: what is written reads back, and damage is found."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svmkit.errors import DataError
from svmkit.io.scale_file import parse_ranges, ranges_text, read_ranges, write_ranges
from svmkit.scaling import LabelRange, Scaling

FINITE = st.floats(allow_nan=False, allow_infinity=False)
RANGES = st.dictionaries(st.integers(1, 40), st.tuples(FINITE, FINITE).filter(lambda ends: ends[0] != ends[1]), max_size=6)
LABELS = st.one_of(st.none(), st.builds(LabelRange, FINITE, FINITE, FINITE, FINITE))


def scaling_of(lower: float, upper: float, ranges: dict[int, tuple[float, float]], labels: LabelRange | None = None) -> Scaling:
    index = sorted({0, *ranges})
    ends = np.array([ranges.get(i, (0.0, 0.0)) for i in index])
    return Scaling(lower, upper, np.array(index), ends[:, 0], ends[:, 1], np.array([i in ranges for i in index]), labels)


def fields(scaling: Scaling) -> tuple[object, ...]:
    arrays = scaling.index.tolist(), scaling.minimum.tolist(), scaling.maximum.tolist(), scaling.known.tolist()
    return scaling.lower, scaling.upper, *arrays, scaling.labels


@given(FINITE, FINITE, RANGES, LABELS)
def test_what_is_written_reads_back(
    lower: float, upper: float, ranges: dict[int, tuple[float, float]], labels: LabelRange | None
) -> None:
    scaling = scaling_of(lower, upper, ranges, labels)
    assert fields(parse_ranges(ranges_text(scaling), "-")) == fields(scaling)


def test_the_text_is_svm_scale_s(tmp_path: Path) -> None:
    scaling = scaling_of(-1, 1, {2: (0.1, 5), 3: (4, 4), 12: (-1e300, 1)}, LabelRange(0, 1, -2, 1e10))
    path = tmp_path / "ranges"
    write_ranges(str(path), scaling)
    text = "y\n0 1\n-2 10000000000\nx\n-1 1\n2 0.10000000000000001 5\n12 -1.0000000000000001e+300 1\n"
    assert path.read_text() == text
    read = read_ranges(str(path))
    assert read.index[read.known].tolist() == [2, 12]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "ranges: ends where `x` or `y` should stand"),
        ("foo\n", "ranges, line 1: must be `x` or `y`"),
        ("x\n", "ranges: ends where the limits of the features"),
        ("x\n-1\n", "ranges, line 2: must be the limits of the features"),
        ("x\n-1 one\n", "ranges, line 2:"),
        ("x\n-1 1\n1 2\n", "ranges, line 3: must be a feature's index and range"),
        ("x\n-1 1\n\n1 2 nan\n", "ranges, line 4:"),
        ("x\n-1 1\n1 2 1e999\n", "ranges, line 3:"),
        ("x\n-1 1\n1.5 2 3\n", "ranges, line 3: a feature's index is a whole number"),
        ("x\n-1 1\n-1 2 3\n", "ranges, line 3: a feature's index is a whole number"),
        ("x\n-1 1\n2147483648 2 3\n", "ranges, line 3: a feature's index is a whole number"),
        ("x\n-1 1\n1_0 2 3\n", "ranges, line 3:"),
        ("y\n0 1\n", "ranges: ends where the range of the labels"),
        ("y\n0 1\n2 3\ny\n0 1\n", "ranges, line 4: must be `x`, not"),
    ],
)
def test_damage_is_found(text: str, where: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_ranges(text, "ranges")
    assert caught.value.summary == "ERROR: failed to read scaling parameters"
    assert caught.value.detail.startswith(where)


@given(st.text("xy0123456789.-+e \nnai", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(DataError):
        assert isinstance(parse_ranges(text, "ranges"), Scaling)
