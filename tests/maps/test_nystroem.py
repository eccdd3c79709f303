"""The Nyström map against the kernel matrix: exact among landmarks, never above K, and what a model over it says."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from oracle import dense_kernel
from zoo import points

from svmkit import maps, parallel
from svmkit.config import TrainConfig
from svmkit.data import Floats, Rows
from svmkit.engine.kernels import Columns, cross_apply
from svmkit.errors import DataError, ModelError, UsageError
from svmkit.maps import nystroem, quality
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, SIGMOID, Kernel

KERNEL = {"kind": "rbf", "gamma": 1.0, "coef0": 0.0, "degree": 3}
KERNELS = [Kernel(RBF, 0.3), Kernel(POLYNOMIAL, 0.4, 1.0, 2), Kernel(LINEAR)]


def some_rows(seed: int = 1) -> Rows:
    return Rows.from_dense(points(120, 5, seed=seed)[0])


def exact(made: nystroem.NystroemMap, rows: Rows) -> Floats:
    """The features before they are rounded."""
    features: Floats = Columns(made.landmarks, made.kernel).block(rows) @ made.projection
    return features


@pytest.mark.parametrize("choice", ["uniform", "kmeans", "pivoted"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_inner_products_are_the_projection_of_the_kernel(kernel: Kernel, choice: str) -> None:
    """K_nS K_SS⁺ K_Sn by a pseudo-inverse; K itself among the landmarks; K less it is positive semidefinite."""
    rows = some_rows()
    made = nystroem.fit(rows, kernel, 30, seed=2, landmarks=choice)
    phi = exact(made, rows)
    K, cross = dense_kernel(rows, rows, kernel), dense_kernel(rows, made.landmarks, kernel)
    inner = dense_kernel(made.landmarks, made.landmarks, kernel)
    expected = cross @ np.linalg.pinv(inner, rcond=1e-10, hermitian=True) @ cross.T
    scale = K.max()
    np.testing.assert_allclose(phi @ phi.T, expected, atol=1e-7 * scale)
    own = exact(made, made.landmarks)
    np.testing.assert_allclose(own @ own.T, inner, atol=1e-7 * scale)
    assert np.linalg.eigvalsh(K - phi @ phi.T).min() > -1e-7 * scale * len(K)


def test_all_rows_as_landmarks_give_the_kernel() -> None:
    rows, kernel = some_rows(), Kernel(RBF, 1.0)
    phi = exact(nystroem.fit(rows, kernel, rows.n, seed=0, landmarks="uniform"), rows)
    np.testing.assert_allclose(phi @ phi.T, dense_kernel(rows, rows, kernel), atol=1e-9)


@pytest.mark.parametrize("kernel", [*KERNELS, Kernel(SIGMOID, 0.1, 0.2)], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_linear_function_of_features_is_an_expansion_over_landmarks(kernel: Kernel, scale: float) -> None:
    """To 1e-5 of its scale, also where w is large along small eigenvalues."""
    rows, other = some_rows(1), some_rows(2)
    made = nystroem.fit(rows, kernel, 60, seed=3)
    w = np.random.default_rng(4).normal(size=(made.dim, 2)) * np.logspace(0, np.log10(scale), made.dim)[:, None]
    mapped = exact(made, other) @ w
    pulled = cross_apply(other, made.landmarks, kernel, made.pull_back(w))
    np.testing.assert_allclose(pulled, mapped, atol=1e-5 * np.abs(mapped).max())
    np.testing.assert_allclose(made.pull_back(w[:, 0]), made.pull_back(w)[:, 0])


def test_features_are_rounded_once() -> None:
    made = nystroem.fit(some_rows(), Kernel(RBF, 0.01), 100, seed=5)
    assert np.array_equal(made.transform(some_rows()), exact(made, some_rows()).astype(np.float32))


def test_eigenvalues_below_the_cut_are_left_out() -> None:
    """Duplicated landmarks have eigenvalue 0, which is left out whatever the cut."""
    X = points(10, 3, seed=6)[0]
    twice = Rows.from_dense(np.concatenate([X, X]))
    assert nystroem.fit(twice, Kernel(RBF, 1.0), 20, seed=0, landmarks="uniform").dim == 10
    assert nystroem.fit(Rows.from_dense(np.zeros((3, 2))), Kernel(LINEAR), 3, seed=0, landmarks="uniform").dim == 0
    values = np.linalg.eigvalsh(dense_kernel(some_rows(), some_rows(), Kernel(RBF, 0.1)))
    for cut in (1e-2, 1e-6):
        made = nystroem.fit(some_rows(), Kernel(RBF, 0.1), 120, seed=0, landmarks="uniform", cut=cut)
        assert made.dim == np.count_nonzero(values > cut * values.max())
        np.testing.assert_allclose(np.linalg.norm(made.projection, axis=0) ** -2, values[::-1][: made.dim])  # largest first


def test_eigenvalues_that_are_rounding_are_left_out() -> None:
    """More landmarks than a linear kernel of five features has dimensions: the others' eigenvalues grow with their number."""
    rows = Rows.from_dense(points(200, 5, seed=1)[0])
    assert nystroem.fit(rows, Kernel(LINEAR), 200, seed=0, landmarks="uniform").dim == 5


def test_threads_do_not_change_features(threads: None) -> None:
    X = points(5000, 4, seed=7)[0]
    made = nystroem.fit(Rows.from_dense(X), Kernel(RBF, 0.5), 40, seed=1)
    found: list[Floats] = []
    for count in (1, 2):
        parallel.use_threads(count)
        found.append(made.transform(Rows.from_dense(X)))
    assert np.array_equal(found[0], found[1])


def test_it_comes_back_from_text_to_the_bit() -> None:
    made = nystroem.fit(some_rows(), Kernel(POLYNOMIAL, 0.4, 1.0, 2), 20, seed=2)
    again = maps.from_dict(json.loads(json.dumps(made.to_dict())))
    assert isinstance(again, nystroem.NystroemMap)
    assert again.kernel == made.kernel
    assert np.array_equal(again.transform(some_rows(3)), made.transform(some_rows(3)))


@pytest.mark.parametrize(
    "damage",
    [
        {"map": "wavelet"},
        {"version": 2},
        {"kernel": {"kind": "rbf"}},
        {"data": [1.0]},
        {"projection": [[float("nan")]]},
        {"projection": [[1.0]]},  # for five landmarks
        {"indices": [1, 2]},
        {"projection": [[1.0], [1.0, 2.0]]},
        {"projection": 1.0},
        {"indptr": None},
        {"indptr": 0},
        {"indices": 1},
        {"data": None},
        {"data": 1.0},
        {"n_features": 2.5},
        {"n_features": 1},
        {"kernel": None},
        {"kernel": KERNEL | {"kind": "precomputed"}},
        {"kernel": KERNEL | {"gamma": -1.0}},
        {"kernel": KERNEL | {"gamma": float("nan")}},
        {"kernel": KERNEL | {"coef0": float("inf")}},
        {"kernel": KERNEL | {"degree": 2.5}},
    ],
    ids=str,
)
def test_damaged_text_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises(ModelError, match="map"):
        maps.from_dict(nystroem.fit(some_rows(), Kernel(RBF, 1.0), 5, seed=0).to_dict() | damage)


def test_a_damaged_value_is_told_in_forty_characters() -> None:
    stored = nystroem.fit(some_rows(), Kernel(RBF, 1.0), 5, seed=0).to_dict()
    for length, told in ((38, f"'{38 * 'x'}'"), (39, f"'{36 * 'x'}...")):
        with pytest.raises(ModelError, match=f"`n_features` is {re.escape(told)}, not"):
            maps.from_dict(stored | {"n_features": length * "x"})


@pytest.mark.parametrize("name", ["data", "indices"])
def test_damaged_landmarks_are_refused(name: str) -> None:
    """A value that is no number, an index that is not above the one before."""
    stored = nystroem.fit(some_rows(), Kernel(RBF, 1.0), 5, seed=0).to_dict()
    stored[name][:2] = [float("nan"), 1.0] if name == "data" else [2, 1]
    with pytest.raises(ModelError, match="map"):
        maps.from_dict(stored)


def test_indices_that_32_bits_cannot_hold_are_no_others() -> None:
    stored = nystroem.fit(some_rows(), Kernel(RBF, 1.0), 5, seed=0).to_dict()
    stored["indices"] = [index + 2**32 for index in stored["indices"]]
    with pytest.raises(ModelError, match=r"`indices` is .*, not a list of whole numbers"):
        maps.from_dict(stored)


def test_a_map_of_no_landmarks_comes_back_too() -> None:
    blank = Rows.from_dense(np.zeros((3, 2)))
    again = maps.from_dict(json.loads(json.dumps(nystroem.fit(blank, Kernel(LINEAR), 2, seed=0).to_dict())))
    assert again.transform(some_rows()).shape == (120, 0)
    assert quality.errors(again, blank, np.zeros((3, 3)), quality.norms(np.zeros((3, 3)))) == (0.0, 0.0)


@pytest.mark.parametrize("choice", ["uniform", "kmeans", "pivoted"])
@pytest.mark.parametrize("size", [1e77, 1e103, 1e200])
def test_kernel_values_that_overflow_are_refused(size: float, choice: str) -> None:
    """As sums and eigenvalues, as values, or already as products of vectors."""
    rows = Rows.from_dense(size * points(30, 3, seed=1)[0])
    with pytest.raises(DataError, match="kernel values overflow; scale the data"):
        nystroem.fit(rows, Kernel(POLYNOMIAL, 1.0, 0.0, 2 if size == 1e77 else 3), 8, seed=0, landmarks=choice)


def test_a_precomputed_kernel_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--map nystroem: a precomputed kernel .* has no vectors to map"):
        maps.fit(some_rows(), Kernel(PRECOMPUTED), TrainConfig(map="nystroem"))


@pytest.mark.parametrize("first", [0, 1500])
def test_the_example_whose_features_overflow_is_named_among_many(first: int) -> None:
    features = np.zeros((3000, 2), np.float32)
    features[[first, 2500], 1] = np.inf
    with pytest.raises(DataError, match=f"example {first}: a mapped feature is not finite"):
        maps.refuse_infinite(features, lambda row: f"example {row}")
