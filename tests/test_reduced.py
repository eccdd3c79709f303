"""Vectors that move: gradient and distance from their definitions, what is left alone, where a way ends that has no numbers.

What they gain is in test_compress.py.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from models import distances, model_of, of_rows, trained
from zoo import points

from svmkit import compress as compressing
from svmkit import parallel, reduced
from svmkit.compress import change, compress
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Rows
from svmkit.fit import fit
from svmkit.io.model_libsvm import model_text
from svmkit.model import Machine, decision_values, with_machines
from svmkit.problem import RBF, Kernel
from svmkit.reduced import Distance, moved

SEVERAL = [(2, "ovo"), (4, "ovo"), (4, "ovr")]
FRESH = Rows.from_dense(points(300, 4, seed=99)[0])


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


@pytest.mark.parametrize(("n_class", "multiclass"), SEVERAL)
def test_the_gradient_is_that_of_the_distance(n_class: int, multiclass: str) -> None:
    model = trained(n_class, multiclass=multiclass, gamma=1.0)
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(model.n_class), 3)
    z = rng.normal(size=(len(groups), 4))
    used = [compressing._members(model, groups, pair) for pair in model.pairs]
    distance = Distance(model, model.rows.to_dense()[:, 1:].astype(np.float32), used, len(groups))
    value, gradient = distance(z.ravel())

    small = replace(model, rows=Rows.from_dense(z), class_counts=np.bincount(groups))
    beta, _ = compressing._in_feature_space(model, small.rows, used)
    machines = tuple(Machine(u, b, m.rho) for u, b, m in zip(used, beta, model.machines, strict=True))
    expected = distances(model, with_machines(small, machines)).sum() - len(used)
    assert value == pytest.approx(expected, rel=1e-5)
    for direction in rng.normal(size=(5, z.size)):
        step = 3e-3
        slope = (distance(z.ravel() + step * direction)[0] - distance(z.ravel() - step * direction)[0]) / (2 * step)
        assert gradient @ direction == pytest.approx(slope, rel=1e-2, abs=1e-3 * np.linalg.norm(gradient))


def test_a_machine_of_all_vectors_leaves_the_others_theirs() -> None:
    """As where a class of several has no vector: one machine uses all of them, the next one some."""
    model, z = trained(3, multiclass="ovr"), points(9, 4, seed=7)[0].ravel()
    support, some = model.rows.to_dense()[:, 1:].astype(np.float32), np.arange(4)
    first, second = ([np.arange(9), some, some], [some, some, np.arange(9)])
    values = [Distance(with_machines(model, [model.machines[i] for i in order]), support, used, 9)(z)[0]
              for order, used in (((0, 1, 2), first), ((1, 2, 0), second))]  # fmt: skip
    assert values[0] == pytest.approx(values[1], rel=1e-5)


@pytest.mark.parametrize("n_class", [2, 4])
def test_tiles_do_not_matter(n_class: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained(n_class, n=900)
    z = points(12, 4, seed=7)[0].ravel()
    used = [compressing._members(model, np.repeat(np.arange(n_class), 12 // n_class), pair) for pair in model.pairs]
    support = model.rows.to_dense()[:, 1:].astype(np.float32)
    value, gradient = Distance(model, support, used, 12)(z)
    monkeypatch.setattr(reduced, "_TILE", 60)
    monkeypatch.setattr(reduced, "_LEAST_COLUMNS", 5)
    cut, cut_gradient = Distance(model, support, used, 12)(z)
    assert cut == pytest.approx(value, rel=1e-5)
    assert np.abs(cut_gradient - gradient).max() <= 1e-4 * np.abs(gradient).max()


def test_the_same_vectors_whatever_the_number_of_threads() -> None:
    model, found = trained(4, n=900), []
    for threads in (1, 2):
        parallel.use_threads(threads)
        found.append(model_text(compress(model, 20)))
    parallel.use_threads(0)
    assert found[0] == found[1]


@pytest.mark.parametrize("n_class", [2, 4])
def test_steps_are_told_with_what_is_left(n_class: int) -> None:
    model, told = trained(n_class), list[tuple[int, float]]()
    small = compress(model, 20, steps=15, on_step=lambda number, left: told.append((number, left)))
    assert [number for number, _ in told] == list(range(1, 16))
    assert np.all(np.diff([left for _, left in told]) < 0)
    assert told[-1][1] == pytest.approx(distances(model, small).mean(), rel=1e-2)


def test_vectors_far_from_the_middle_are_told_apart() -> None:
    """In float32 ‖z − x‖² from squares of 1e8 has an error of 10: what is told would be noise, and the result as well."""
    model, told = trained(), list[float]()
    X = model.rows.to_dense()[:, 1:]
    X[::2] += 1e4
    model = replace(model, rows=Rows.from_dense(X))
    small = compress(model, 20, steps=60, on_step=lambda number, left: told.append(left))
    assert min(told) == told[-1] == pytest.approx(distances(model, small)[0], rel=2e-2)
    assert distances(model, small)[0] < 0.5 * distances(model, compress(model, 20, steps=0))[0]


def test_vectors_that_came_no_nearer_stay_where_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained()
    monkeypatch.setattr(reduced, "_DECIMALS", -3)  # all would be 0
    assert model_text(compress(model, 20, steps=5)) == model_text(compress(model, 20, steps=0))


@pytest.mark.parametrize(("gamma", "decimals"), [(1e-4, 2), (0.3, 4), (3.0, 5)])
def test_moved_vectors_have_no_more_digits_than_they_need(gamma: float, decimals: int) -> None:
    """Four decimals of the kernel's own unit, γ^(−½): 100, 1.8 and 0.58."""
    at = compress(trained(gamma=gamma), 4, steps=5).rows.data
    assert np.array_equal(at, np.round(at, decimals))
    assert not np.array_equal(at, np.round(at, decimals - 1))


def test_vectors_far_apart_leave_no_subnormal_numbers() -> None:
    """Products with them take a hundred times as long."""
    rows = Rows.from_dense(np.arange(-6.0, 6.0)[:, None] * 2.35)
    model = of_rows(Kernel(RBF, 4.0), rows)  # γ‖x − z‖² = 22, 88, 199 …: exp(−88) is subnormal in float32
    support = 2.0 * rows.to_dense()[:, 1:].astype(np.float32)
    distance = Distance(model, support, [np.arange(4)], 4)
    value, gradient = distance(support[::3].astype(np.float64).ravel())
    assert value == pytest.approx(-4 / 12, rel=1e-4)
    assert np.abs(gradient).max() < 1e-4
    assert np.abs(distance.values).min() > np.finfo(np.float32).tiny


@pytest.mark.parametrize(
    ("gamma", "scale"), [(0.0, 1.0), (1e-300, 1.0), (1e-30, 1.0), (1e300, 1.0), (1.0, 1e25), (1.0, 1e140), (1.0, 1e300)]
)
def test_extreme_models_keep_their_chosen_vectors(gamma: float, scale: float) -> None:
    """Those that single precision does not tell apart, or holds no numbers for; what comes of it is a model."""
    model = of_rows(Kernel(RBF, gamma), Rows.from_dense(scale * points(12, 2, seed=3)[0]))
    small = compress(model, 4)
    assert np.array_equal(small.rows.to_dense(), compress(model, 4, steps=0).rows.to_dense())
    assert np.isfinite(decision_values(small, FRESH)).all()
    assert np.isfinite(decision_values(compress(model, 4, data=FRESH), FRESH)).all()


def test_a_machine_that_is_0_does_not_hold_the_others_back() -> None:
    """Of two classes with the same rows."""
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(80, 2)), rng.normal(size=(80, 2)) + np.array([1.5, 0.0])
    data = Dataset(Rows.from_dense(np.vstack([one, two, two])), np.repeat([0.0, 1.0, 2.0], 80))
    model = fit(data, TrainConfig(gamma=1.0)).model
    start, small = compress(model, 15, steps=0), compress(model, 15)
    assert change(model, small, data.rows).mean < 0.7 * change(model, start, data.rows).mean


@pytest.mark.parametrize("scale", [1e3, 1e5, 1e7, 1e9, 1e12])
@pytest.mark.parametrize("near", [False, True])
def test_squares_that_swallow_distances_leave_a_model(scale: float, near: bool) -> None:
    """Far from the middle rounding alone can make the basis vectors' kernel matrix indefinite."""
    X = scale * points(40, 2, seed=3)[0]
    if near:
        X = np.repeat(X[:4], 10, axis=0) + points(40, 2, seed=4)[0]
    model = of_rows(Kernel(RBF, 1.0), Rows.from_dense(X))
    small = compress(model, 12)
    assert small.n_support == 12
    assert np.isfinite(decision_values(small, model.rows)).all()
