"""Dense rows as text: every value back to the bit in single precision, in no more digits than it needs by much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svmkit import parallel
from svmkit.data import Dataset, Rows
from svmkit.io import dense_text
from svmkit.io.dense_text import lines
from svmkit.io.libsvm_data import parse_dataset


def written(*rows: list[float], **more: object) -> str:
    features = np.array(rows, dtype=np.float32)
    dataset = Dataset(Rows.from_dense(np.zeros((len(rows), 1))), np.arange(1.0, len(rows) + 1), **more)  # type: ignore[arg-type]
    return b"".join(lines(dataset, 0, features)).decode()


def test_forms() -> None:
    """Plain between 1e-5 and 1e9, else with an exponent; zeros left out."""
    text = written([0.5, -0.25, 0, 1, 10, 3.14159274], [1e-5, 9.99999e-6, 123456792, 1e9, -1.5e30, 1e-45], [0, 0, 0, 0, 0, 0])
    assert text == ("1 1:0.5 2:-0.25 4:1 5:10 6:3.1415927\n2 1:0.00001 2:9.99999e-6 3:123456790 4:1e9 5:-1.5e30 6:1e-45\n3\n")


@example([4.737879785445786e16])  # the shortest is near the middle between two numbers
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_every_number_comes_back(values: list[float]) -> None:
    """And no text is longer than the shortest that NumPy finds for single precision, but by one digit.

    Or where that lies within a millionth of what would be another number.
    """
    text = written(values)
    pairs = [pair.split(":") for pair in text.split()[1:]]
    read = {int(index): word for index, word in pairs}
    for j, value in enumerate(values, 1):
        if value == 0:
            assert j not in read
            continue
        assert np.float32(float(read[j])) == np.float32(value)
        shortest = np.format_float_scientific(np.float32(value), unique=True, trim="-")
        with np.errstate(over="ignore"):
            beyond = np.nextafter(np.float32(value), np.float32(np.inf if float(shortest) > value else -np.inf))
        if abs(float(shortest) - value) > (1.0 - 2.0**-19) * abs(float(beyond) - value) / 2.0:
            continue
        digits = len(read[j].partition("e")[0].replace(".", "").strip("-").strip("0"))
        assert digits <= len(shortest.partition("e")[0].replace(".", "").strip("-").strip("0")) + 1


def test_random_numbers_come_back_by_our_reader(threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several pieces, the same on one thread and on two; labels, groups and weights too."""
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(300, 7)) * 10.0 ** rng.integers(-30, 30, (300, 7))).astype(np.float32)
    dataset = Dataset(Rows.from_dense(np.zeros((400, 1))), rng.normal(size=400), rng.random(400), rng.integers(1, 9, 400))
    monkeypatch.setattr(dense_text, "_PIECE_VALUES", 70)
    found = []
    for count in (1, 2):
        parallel.use_threads(count)
        found.append(b"".join(lines(dataset, 50, X)))
    assert found[0] == found[1]
    again = parse_dataset(np.frombuffer(found[0], dtype=np.uint8), "t")
    assert np.array_equal(again.rows.to_dense()[:, 1:].astype(np.float32), X)
    assert np.array_equal(again.y, dataset.y[50:350])
    assert np.array_equal(again.weights, dataset.weights[50:350])
    assert dataset.qid is not None
    assert np.array_equal(again.qid, dataset.qid[50:350])
