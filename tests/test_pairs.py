"""Which examples are of which class, and C of each example of a machine."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit.config import MOST_C, TrainConfig
from svmkit.data import Dataset, Rows
from svmkit.errors import DataError
from svmkit.pairs import LARGEST_VALUE, bias_of, costs, group_classes, huge_value, pair_of, usable_examples


def test_one_factor_for_all_classes_multiplies_C() -> None:
    rows = Rows.from_dense(np.arange(8.0).reshape(4, 2))
    dataset = Dataset(rows, np.array([1.0, -1, 1, -1]), np.array([1.0, 2, 1, 1]))
    members = group_classes(dataset.y, np.arange(4))[1]
    pair = pair_of(dataset, TrainConfig(C=2.0), members, np.array([3.0, 3.0]), 0, 1)
    assert pair.upper.tolist() == [6, 12, 6, 6]


@pytest.mark.parametrize("label", [-(2.0**31) - 1, 2.0**31])
def test_labels_are_cut_to_integers_of_32_bits(label: float) -> None:
    """The next double towards 0 is the last that fits, the first whose integer part does not is refused."""
    inside = np.nextafter(label, 0.0)
    labels, members = group_classes(np.array([inside, 0.0, -0.9, np.trunc(inside)]), np.arange(4))
    assert labels.tolist() == [int(np.trunc(inside)), 0]
    assert [group.tolist() for group in members] == [[0, 3], [1, 2]]
    with pytest.raises(DataError, match=f"the data: example 2 has label {label:.17g}: .* below 2\\^31 in size"):
        group_classes(np.array([inside, label]), np.arange(2))


def test_an_infinite_weight_is_refused_like_one_that_is_no_number() -> None:
    dataset = Dataset(Rows.from_dense(np.ones((3, 1))), np.ones(3), np.array([1.0, np.inf, np.nan]))
    with pytest.raises(DataError, match=r"^the data: example 2 has weight inf: it must be 0 or more, and finite$"):
        usable_examples(dataset)


def test_the_largest_value_is_none_too_many() -> None:
    beyond = np.nextafter(LARGEST_VALUE, np.inf)
    for sign in (1.0, -1.0):
        assert huge_value(Rows.from_dense(np.array([[1.0, sign * LARGEST_VALUE]]))) is None
        row, why = huge_value(Rows.from_dense(np.array([[1.0, 0.0], [2.0, sign * beyond]]))) or (-1, "")
        assert row == 1
        assert f"{sign * beyond:g} for feature 2: values above 1e+150" in why
    kernel_row = Rows(np.empty(0), np.empty(0, np.int32), np.zeros(2, np.int64), 2, np.array([[1.0, beyond]]), np.array([1]))
    assert (huge_value(kernel_row) or (-1, ""))[1].startswith("1e+150 for feature 2: ")


def test_bounds_of_what_an_error_may_cost() -> None:
    least = 1e-150
    assert costs(1.0, np.array([MOST_C, least, 1.0])).tolist() == [MOST_C, least, 1.0]
    below, above = np.nextafter(least, 0.0), np.nextafter(MOST_C, np.inf)
    with pytest.raises(DataError, match=r"^C 2, .* is below 1e-150: .*; a weight of 0 leaves an example out$"):
        costs(np.array([3.0, 2.0]), np.array([1.0, below / 2.0]))
    with pytest.raises(DataError, match=r"^C 3, .* is above 1e\+100: "):  # which is told first
        costs(np.array([2.0, 3.0]), np.array([below / 2.0, above]))


def test_a_bias_that_is_left_open_is_free() -> None:
    assert [bias_of(TrainConfig(bias=bias)) for bias in (None, "free", "none")] == ["free", "free", "none"]
