"""Which examples are of which class, and C of each example of a machine."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit.config import TrainConfig
from svmkit.data import Dataset, Rows
from svmkit.errors import DataError
from svmkit.pairs import group_classes, pair_of


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
