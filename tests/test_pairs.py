"""C of each example of a machine."""

from __future__ import annotations

import numpy as np

from svmkit.config import TrainConfig
from svmkit.data import Dataset, Rows
from svmkit.pairs import group_classes, pair_of


def test_one_factor_for_all_classes_multiplies_C() -> None:
    rows = Rows.from_dense(np.arange(8.0).reshape(4, 2))
    dataset = Dataset(rows, np.array([1.0, -1, 1, -1]), np.array([1.0, 2, 1, 1]))
    members = group_classes(dataset.y, np.arange(4))[1]
    pair = pair_of(dataset, TrainConfig(C=2.0), members, np.array([3.0, 3.0]), 0, 1)
    assert pair.upper.tolist() == [6, 12, 6, 6]
