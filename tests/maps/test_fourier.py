"""Random Fourier features: the definition in the plain, the kernel within the known bound, and numbers that never change."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from oracle import dense_kernel
from zoo import points

from svmkit import maps, parallel
from svmkit.config import TrainConfig
from svmkit.data import Floats, Rows, stack
from svmkit.engine import rng
from svmkit.errors import DataError, ModelError, UsageError
from svmkit.maps import fourier
from svmkit.problem import POLYNOMIAL, RBF, Kernel


def some_rows(seed: int = 1, d: int = 6) -> Rows:
    return Rows.from_dense(points(80, d, seed=seed, density=0.7)[0])


def frequencies(made: fourier.FourierMap, n_features: int) -> Floats:
    """(n_features, dim) of independent ones, from the generator's draws."""
    streams = [rng.normals(made.seed, fourier._FREQUENCIES + j, 0, made.dim) for j in range(1, n_features + 1)]
    return math.sqrt(2 * made.gamma) * np.array(streams)


def test_features_are_cosines() -> None:
    rows = some_rows()
    made = fourier.fit(rows, Kernel(RBF, 0.4), 50, seed=3)
    phases = 2 * math.pi * rng.uniforms(3, fourier._PHASES, 0, 50)
    expected = math.sqrt(2 / 50) * np.cos(rows.to_dense()[:, 1:] @ frequencies(made, 6) + phases)
    np.testing.assert_allclose(made.transform(rows), expected, atol=2.0**-23 * math.sqrt(2 / 50))


def test_orthogonal_frequencies_are_orthogonal_with_the_lengths_of_independent_ones() -> None:
    """20 frequencies over 6 features: groups of 6, 6, 6 and 2."""
    made = fourier.fit(some_rows(), Kernel(RBF, 0.4), 20, seed=3, orthogonal=True)
    nu, independent = 2 * math.pi * made._orthogonal(lambda doing: None).T, frequencies(made, 6)
    np.testing.assert_allclose(np.linalg.norm(nu, axis=0), np.linalg.norm(independent, axis=0), rtol=1e-12)
    for first in range(0, 20, 6):
        group = slice(first, first + 6)
        gram, across = nu[:, group].T @ nu[:, group], nu[:, group].T @ independent[:, group]
        assert np.abs(gram - np.diag(np.diagonal(gram))).max() < 1e-12 * gram.max()
        assert np.abs(np.tril(across, -1)).max() < 1e-12 * gram.max()  # each is orthogonal to the independent ones before it,
        assert (np.diagonal(across) > 0).all()  # and on the side of its own, whichever signs LAPACK gives
    phases = 2 * math.pi * rng.uniforms(3, fourier._PHASES, 0, 20)
    expected = math.sqrt(2 / 20) * np.cos(some_rows().to_dense()[:, 1:] @ nu + phases)
    np.testing.assert_allclose(made.transform(some_rows()), expected, atol=1e-6)


@pytest.mark.parametrize("orthogonal", [False, True])
def test_inner_products_are_the_kernel_within_the_known_bound(orthogonal: bool) -> None:
    """Each of 80·80 is a mean of d numbers in [−2, 2]: Hoeffding's bound, with chance 1e-6 that any goes beyond."""
    rows, kernel, d = some_rows(), Kernel(RBF, 0.2), 4096
    phi = fourier.fit(rows, kernel, d, seed=1, orthogonal=orthogonal).transform(rows).astype(np.float64)
    error = np.abs(phi @ phi.T - dense_kernel(rows, rows, kernel)).max()
    assert error < 2 * math.sqrt(2 * math.log(2 * 80**2 / 1e-6) / d)


def test_orthogonal_features_have_less_variance() -> None:
    rows, kernel = Rows.from_dense(points(40, 10, seed=2)[0]), Kernel(RBF, 0.05)
    K = dense_kernel(rows, rows, kernel)
    squares = np.zeros(2)
    for seed in range(20):
        for orthogonal in (False, True):
            phi = fourier.fit(rows, kernel, 20, seed, orthogonal=orthogonal).transform(rows)
            squares[int(orthogonal)] += ((phi @ phi.T - K) ** 2).sum()
    assert squares[1] < 0.9 * squares[0]


def test_golden_frequencies() -> None:
    """These numbers are part of what a stored map means: the same on every platform, in every version."""
    made = fourier.FourierMap(gamma=0.5, dim=3, seed=7, orthogonal=False, n_features=2)
    turns = made._drawn(np.array([1, 2])).T.tolist()
    phases = rng.uniforms(7, fourier._PHASES, 0, 3).tolist()
    assert [[value.hex() for value in line] for line in [*turns, phases]] == GOLDEN


GOLDEN = [
    ["-0x1.a9836525d08f4p-4", "-0x1.92a261415225ap-5", "0x1.58a6f5a75759ep-4"],
    ["0x1.aba97f7708193p-4", "0x1.20b3567b26661p-4", "-0x1.7326c6485cb67p-2"],
    ["0x1.362d888143374p-1", "0x1.39d97be03a968p-4", "0x1.686664ed81230p-1"],
]


def test_a_row_is_mapped_alike_wherever_it_stands(threads: None) -> None:
    """Alone, in a part, among others with more features, on one thread or two."""
    rows, wide = some_rows(), some_rows(seed=2, d=9)
    for orthogonal in (False, True):
        made = fourier.fit(rows, Kernel(RBF, 0.3), 40, seed=5, orthogonal=orthogonal)
        whole = made.transform(rows)
        assert np.array_equal(made.transform(rows.part(7, 30)), whole[7:30])
        again = made.transform(stack([wide, *[rows] * 20]))
        parallel.use_threads(1)
        fresh = fourier.fit(rows, Kernel(RBF, 0.3), 40, seed=5, orthogonal=orthogonal)
        assert np.array_equal(again, fresh.transform(stack([wide, *[rows] * 20])))
        assert np.array_equal(again[80:160], whole)
        parallel.use_threads(0)


def test_a_row_is_mapped_alike_however_many_features_are_known() -> None:
    """So many that another loop would suit them."""
    few, more = (rows._replace(data=1e6 * rows.data) for rows in (some_rows(seed=3, d=90), some_rows(seed=4, d=200)))
    made = fourier.fit(few, Kernel(RBF, 0.3), 40, seed=5)
    before = made.transform(few)
    made.transform(more)
    assert np.array_equal(made.transform(few), before)
    assert np.array_equal(fourier.fit(few, Kernel(RBF, 0.3), 40, seed=5).transform(stack([more, few]))[more.n :], before)


def test_an_orthogonal_map_keeps_what_it_knows_of_features_beyond_its_own() -> None:
    """Rows that bring new features one after another, as the parts of a file may: each is mapped as it is by itself."""
    made = fourier.fit(some_rows(d=3), Kernel(RBF, 0.3), 10, seed=5, orthogonal=True)
    for number in (5, 7):
        row = Rows.from_dense(np.ones((1, number)))
        alone = maps.from_dict(made.to_dict())
        assert np.array_equal(made.transform(row), alone.transform(row))


def test_features_of_very_large_numbers() -> None:
    """Hashed features cost no more memory than others."""
    rows = some_rows()
    names = np.array([3, 5000, 10**6, 10**8, 2**31 - 2, 2**31 - 1])
    hashed = rows._replace(indices=names[rows.indices - 1].astype(np.int32), n_features=2**31 - 1)
    made = fourier.fit(hashed, Kernel(RBF, 0.4), 10, seed=3)
    nu = math.sqrt(0.8) * np.array([rng.normals(3, fourier._FREQUENCIES + j, 0, 10) for j in names.tolist()])
    expected = math.sqrt(2 / 10) * np.cos(rows.to_dense()[:, 1:] @ nu + 2 * math.pi * rng.uniforms(3, fourier._PHASES, 0, 10))
    np.testing.assert_allclose(made.transform(hashed), expected, atol=1e-7)


def test_it_comes_back_from_text_to_the_bit() -> None:
    made = fourier.fit(some_rows(), Kernel(RBF, 0.1), 20, seed=2, orthogonal=True)
    again = maps.from_dict(json.loads(json.dumps(made.to_dict())))
    assert np.array_equal(again.transform(some_rows(3)), made.transform(some_rows(3)))


@pytest.mark.parametrize(
    "damage",
    [
        {"gamma": -1},
        {"gamma": float("nan")},
        {"dim": 0},
        {"dim": 2**20 + 1},
        {"dim": 5.0},
        {"seed": "x"},
        {"seed": -1},
        {"seed": True},
        {"n_features": None},
        {"orthogonal": 0},
        {"orthogonal": True, "n_features": 2**31 - 1},
    ],
    ids=str,
)
def test_damaged_text_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises(ModelError, match="map"):
        maps.from_dict(fourier.fit(some_rows(), Kernel(RBF, 0.1), 20, seed=2).to_dict() | damage)


@pytest.mark.parametrize(("gamma", "size"), [(1.0, 1e140), (1.0, 1e20), (1.0, 1e17), (1e200, 1.0), (1e308, 1.0)])
@pytest.mark.parametrize("orthogonal", [False, True])
def test_angles_without_a_digit_are_refused(gamma: float, size: float, orthogonal: bool) -> None:
    X = some_rows().to_dense()[:, 1:]
    X[70] *= size
    made = fourier.fit(some_rows(), Kernel(RBF, gamma), 20, seed=1, orthogonal=orthogonal)
    with pytest.raises(DataError, match=r"in size are too large for random Fourier features of gamma .*; scale the data"):
        made.transform(Rows.from_dense(X))


def test_angles_that_many_features_take_the_digits_of_are_refused() -> None:
    """Though each feature's part of the angle has some."""
    made = fourier.fit(Rows.from_dense(np.ones((1, 400))), Kernel(RBF, 1.0), 30, seed=1)
    turns = frequencies(made, 400) / (2 * math.pi)
    size = 0.9 * 2.0**50 / np.abs(turns).max()
    assert np.abs(size * turns.sum(axis=0)).max() > 2.0**50
    with pytest.raises(DataError, match="too large for random Fourier features"):
        made.transform(Rows.from_dense(np.full((1, 400), size)))


def test_orthogonal_frequencies_that_would_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "_ORTHOGONAL_VALUES", 29)
    with pytest.raises(UsageError, match=r"--orthogonal: 5 frequencies over features 1 to 6 take .* GB"):
        fourier.fit(some_rows(), Kernel(RBF, 0.1), 5, seed=2, orthogonal=True)
    assert fourier.fit(some_rows(), Kernel(RBF, 0.1), 5, seed=2).dim == 5


def test_making_orthogonal_frequencies_can_be_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "_HEEDED", 2)
    told: list[str] = []
    made = fourier.fit(some_rows(), Kernel(RBF, 0.1), 20, seed=2, orthogonal=True, heed=told.append)
    assert told[:2] == ["frequencies: over 0 of 6 features drawn", "frequencies: over 2 of 6 features drawn"]
    assert told[-1] == "frequencies: 18 of 20 made orthogonal"
    as_needed = fourier.FourierMap(0.1, 20, 2, True, made.n_features)
    assert np.array_equal(made.transform(some_rows()), as_needed.transform(some_rows()))
    assert len(made._known) == 1


def test_other_kernels_are_refused() -> None:
    with pytest.raises(UsageError, match=r"only the rbf kernel .*, not polynomial; try --map nystroem"):
        maps.fit(some_rows(), Kernel(POLYNOMIAL, 1.0), TrainConfig(map="fourier"))
