"""A growing Gram matrix equals the one evaluated at once, and evaluates each pair once."""

from __future__ import annotations

import numpy as np
import pytest
import zoo

from svmkit.data import Rows
from svmkit.engine.gram import GrowingGram
from svmkit.engine.kernels import Engine
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, Kernel


@pytest.mark.parametrize("kernel", [Kernel(LINEAR), Kernel(POLYNOMIAL, 0.2, 1.0, 2), Kernel(RBF, 0.4)], ids=lambda k: k.name)
def test_grown_equals_evaluated_at_once(kernel: Kernel) -> None:
    X, _ = zoo.points(200, 6, seed=1)
    engine = Engine(Rows.from_dense(X), kernel)
    order = np.random.default_rng(2).permutation(200)
    gram = GrowingGram(engine)
    assert gram.values.shape == (0, 0)
    for part in (order[:1], order[1:1], order[1:60], order[60:61], order[61:170], order[:3]):
        gram.extend(part)
    rows = np.concatenate([order[:170], order[:3]])
    assert np.array_equal(gram.rows, rows)
    assert engine.evaluations == 1 * 1 + 59 * 60 + 1 * 61 + 109 * 170 + 3 * 173
    assert np.array_equal(gram.values, engine.block(rows, rows))
    assert np.array_equal(gram.values, gram.values.T)


def test_room_grows_by_doubling() -> None:
    engine = Engine(Rows.from_dense(np.eye(64)), Kernel(LINEAR))
    gram = GrowingGram(engine)
    sizes = []
    for row in range(64):
        gram.extend(np.array([row]))
        sizes.append(len(gram._room))
    assert sorted(set(sizes)) == [1, 2, 4, 8, 16, 32, 64]
    assert np.array_equal(gram.values, np.eye(64))
