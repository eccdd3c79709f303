"""Vectors that move: what is left alone, and where a way ends that has no numbers. What they gain is in test_compress.py."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from models import model_of
from zoo import points

from svmkit.compress import compress
from svmkit.data import Rows
from svmkit.io.model_libsvm import model_text
from svmkit.model import Machine
from svmkit.problem import RBF, Kernel
from svmkit.reduced import Distance, moved


def test_vectors_stay_where_they_were_where_a_way_leads_to_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when vectors that move come to be one, and rounding leaves their kernel matrix no Cholesky factor."""
    X, coef = points(60, 3, seed=1)
    model = model_of("epsilon_svr", Kernel(RBF, 0.4), Rows.from_dense(X), (Machine(np.arange(60), coef, 0.7),))
    expected = compress(model, 8, steps=0)
    assert model_text(compress(model, 8, steps=2)) != model_text(expected)

    def refuse(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr("scipy.linalg.cho_factor", refuse)
    assert model_text(compress(model, 8, steps=2)) == model_text(expected)


def test_machines_that_are_next_to_0_are_left_out() -> None:
    """Rows that are all but the same with coefficients that cancel: scaled to norm 1, they would be made of rounding."""
    rng, X = np.random.default_rng(1), np.repeat(points(20, 3, seed=1)[0], 2, axis=0)
    X[1::2, 0] += 1e-5
    every, kernel = np.arange(40), Kernel(RBF, 1.0)
    pairs = np.repeat(rng.choice([-1.0, 1.0], (12, 20)), 2, axis=1)
    machines = Machine(every, np.ones(40), 0.0), *(Machine(every, np.tile([1.0, -1.0], 20) * pair, 0.0) for pair in pairs)
    classes = {"labels": np.arange(13), "class_counts": np.append(np.zeros(12, int), 40), "multiclass": "ovr"}
    model = model_of("c_svc", kernel, Rows.from_dense(X), machines, **classes)
    distance = Distance(model, X, [np.arange(5)] * 13, 5)
    assert distance.alphas[:, 0].all()
    assert not distance.alphas[:, 1:].any()


def test_support_vectors_take_no_more_memory_than_is_said() -> None:
    """Five times 32 MB, the matrix in float64."""
    X = np.random.default_rng(0).random((4000, 1000))
    model = model_of("epsilon_svr", Kernel(RBF, 0.01), Rows.from_dense(X), [Machine(np.arange(4000), np.ones(4000), 0.0)])
    tracemalloc.start()
    moved(model, model.rows.part(0, 5), [np.arange(5)], 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5.5 * X.nbytes
