"""The feasible points that rounds of newton.py lead to, where rows are of one class alone."""

from __future__ import annotations

import numpy as np
import pytest

from svmkit.data import Rows
from svmkit.solvers.newton_point import point_at


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_of_one_class_b_is_what_gives_every_row_its_margin(label: float) -> None:
    """As of a sample that has none of a rare class."""
    rows, y = Rows.from_dense(np.array([[1.0], [2.0]])), np.full(2, label)
    point = point_at(rows, y, np.ones(2), np.zeros(2), "free", 1.0)
    assert point is not None
    assert (point.rho, point.violation) == (-label, 0.0)
    assert not point.w.any()
