"""The problems every solver is run on, and data that tests of several files make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from svmkit.data import Dataset, Floats, Rows, dense_rows
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, SIGMOID, Bias, Kernel, Problem


@dataclass(frozen=True)
class Case:
    """A problem and what may be asked of it: ``definite``, that its kernel is positive semidefinite."""

    name: str
    problem: Problem
    definite: bool = True

    def __repr__(self) -> str:
        return self.name


def points(n: int, d: int, seed: int, noise: float = 0.2, density: float = 1.0) -> tuple[Floats, Floats]:
    """Points of two classes, split by a hyperplane and a curve; a share ``noise`` of the labels is drawn anew."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    score = X[:, 0] + X[:, 1 % d] + 0.5 * X[:, 0] * X[:, 2 % d]
    y = np.where(score > np.median(score), 1.0, -1.0)
    drawn = rng.random(n) < noise
    y[drawn] = rng.choice([-1.0, 1.0], drawn.sum())
    return X, y


def sparse_matrix(n: int, d: int, density: float, seed: int, scale: float = 0.7) -> Floats:
    """One row empty, one a copy of another."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(scale=scale, size=(n, d)) * (rng.random((n, d)) < density)
    matrix[n // 3] = 0.0
    matrix[n // 2] = matrix[0]
    return matrix


def problem(X: Floats, y: Floats, kernel: Kernel, C: float | Floats = 1.0) -> Problem:
    """A Problem over a dense matrix."""
    return Problem(Rows.from_dense(X), y, np.broadcast_to(np.asarray(C, dtype=np.float64), len(y)).copy(), kernel)


def noisy(n: int = 1500, C: float = 3.0, gamma: float = 0.5) -> Problem:
    """Five features; a tenth of the labels are wrong."""
    X, y = points(n, 5, seed=11, noise=0.1)
    return problem(X, y, Kernel(RBF, gamma), C)


def ill_conditioned(n: int, C: float | Floats, bias: Bias, kernel: Kernel = Kernel(RBF, 0.05)) -> Problem:
    """A smooth kernel, large C, noisy labels: many free variables."""
    X, y = points(n, 6, seed=n, noise=0.3)
    return replace(problem(X, y, kernel, C), bias=bias)


def unbiased(n: int, C: float | Floats) -> Problem:
    """An rbf Problem over n points, without a bias."""
    return replace(problem(*points(n, 4, seed=3), Kernel(RBF, 0.3), C), bias="none")


def single(X: Floats) -> Rows:
    """The dense form of rows, in single precision."""
    return dense_rows(X.astype(np.float32))


def sixty_fourths() -> tuple[Floats, Floats]:
    """600 sparse rows whose values are multiples of 1/64, so that every decimal text of them is exact; positives first."""
    X, y = points(600, 8, seed=20, density=0.7)
    order = np.argsort(-y, kind="stable")
    return np.round(X[order] * 64) / 64, y[order]


def classes(sizes: list[int], spread: float = 1.0, columns: int = 6) -> Dataset:
    """Clouds of points, a class each, a third of the values 0, some points twice."""
    rng = np.random.default_rng(11)
    y = np.repeat(np.arange(len(sizes), dtype=float), sizes)
    X = 2.0 * rng.normal(size=(len(sizes), columns))[y.astype(int)] + spread * rng.normal(size=(len(y), columns))
    X[rng.random(X.shape) < 0.33] = 0.0
    X[1::7] = X[::7][: len(X[1::7])]
    order = rng.permutation(len(y))
    return Dataset(Rows.from_dense(X[order]), y[order], weight=rng.choice([0.5, 1.0, 3.0], len(y)))


def in_bands(n_class: int = 2, seed: int = 1) -> Dataset:
    """200 points: two classes, 1 and −1, or more, 5, 6, …, by the size of the first feature."""
    X, y = points(200, 4, seed=seed)
    return Dataset(Rows.from_dense(X), y if n_class == 2 else np.floor(np.abs(X[:, 0]) * 2).clip(0, n_class - 1) + 5)


def precomputed(K: Floats, y: Floats, C: float) -> Problem:
    """A Problem over a kernel matrix."""
    n = len(y)
    rows = Rows(
        data=np.empty(0),
        indices=np.empty(0, dtype=np.int32),
        indptr=np.zeros(n + 1, dtype=np.int64),
        n_features=n,
        gram=np.ascontiguousarray(K),
        serial=np.arange(1, n + 1),
    )
    return Problem(rows, y, np.full(n, C), Kernel(PRECOMPUTED))


def _kernels() -> Iterator[Case]:
    X, y = points(40, 5, seed=1)
    yield Case("linear", problem(X, y, Kernel(LINEAR)))
    yield Case("rbf", problem(X, y, Kernel(RBF, 0.25)))
    yield Case("polynomial", problem(X, y, Kernel(POLYNOMIAL, 0.25, 1.0, 3), 0.5))
    yield Case("polynomial of degree 0", problem(X, y, Kernel(POLYNOMIAL, 0.25, 1.0, 0)))
    yield Case("sigmoid", problem(X, y, Kernel(SIGMOID, 0.02, -0.5)), definite=False)
    yield Case("precomputed", precomputed(X @ X.T + 1.0, y, 2.0))
    yield Case("precomputed, indefinite", precomputed(X @ X.T - 2.0, y, 2.0), definite=False)


def _costs() -> Iterator[Case]:
    X, y = points(40, 4, seed=2)
    for C in (1e-3, 0.1, 100.0, 1e5):
        yield Case(f"rbf, C {C:g}", problem(X, y, Kernel(RBF, 0.5), C))
    yield Case("linear, C 0.001", problem(X, y, Kernel(LINEAR), 1e-3))
    yield Case("linear, C 100", problem(X, y, Kernel(LINEAR), 100.0))
    yield Case("class weights", problem(X, y, Kernel(RBF, 0.5), np.where(y > 0, 8.0, 0.5)))
    yield Case("example weights", problem(X, y, Kernel(RBF, 0.5), np.random.default_rng(0).uniform(0.01, 5.0, 40)))
    rare = np.where(np.arange(40) < 2, 1.0, -1.0)
    yield Case("2 against 38", problem(X, rare, Kernel(RBF, 0.5), 10.0))


def _shapes() -> Iterator[Case]:
    X, y = points(36, 4, seed=3)
    easy, easy_y = points(30, 3, seed=4, noise=0.0)
    easy[:, 0] += 3 * easy_y
    yield Case("separable, linear", problem(easy, easy_y, Kernel(LINEAR), 1e5))
    yield Case("separable, rbf", problem(easy, easy_y, Kernel(RBF, 0.1), 1e5))
    sparse, sparse_y = points(40, 300, seed=5, density=0.03)
    yield Case("sparse, linear", problem(sparse, sparse_y, Kernel(LINEAR)))
    yield Case("sparse, rbf", problem(sparse, sparse_y, Kernel(RBF, 0.05), 10.0))
    yield Case("unscaled, linear", problem(X * [1e-2, 1.0, 30.0, 200.0], y, Kernel(LINEAR), 1e-3))
    yield Case("unscaled, rbf", problem(X * [1e-2, 1.0, 30.0, 200.0] + 500.0, y, Kernel(RBF, 1e-4), 10.0))
    yield Case("duplicated rows", problem(np.repeat(X[:18], 2, axis=0), y, Kernel(RBF, 0.5)))
    yield Case("empty rows", problem(X * (np.arange(36) % 3 > 0)[:, None], y, Kernel(RBF, 0.5)))
    yield Case("empty rows, linear", problem(X * (np.arange(36) % 3 > 0)[:, None], y, Kernel(LINEAR)))
    yield Case("all rows equal", problem(np.ones((20, 3)), np.where(np.arange(20) < 8, 1.0, -1.0), Kernel(RBF, 0.5)))
    yield Case("all rows empty", problem(np.zeros((10, 3)), np.where(np.arange(10) < 4, 1.0, -1.0), Kernel(LINEAR)))
    yield Case("two rows", problem(np.array([[1.0, 2.0], [2.0, 0.5]]), np.array([1.0, -1.0]), Kernel(RBF, 0.5)))
    yield Case("two equal rows", problem(np.ones((2, 2)), np.array([-1.0, 1.0]), Kernel(LINEAR), 3.0))


def _larger() -> Iterator[Case]:
    X, y = points(300, 6, seed=6)
    yield Case("300 rows, rbf", problem(X, y, Kernel(RBF, 0.25), 4.0))
    yield Case("300 rows, linear", problem(X, y, Kernel(LINEAR), 0.5))
    sparse, sparse_y = points(400, 500, seed=7, density=0.02)
    yield Case("400 sparse rows, rbf", problem(sparse, sparse_y, Kernel(RBF, 0.05), 2.0))


#: At most 40 rows each; free bias.
SMALL = (*_kernels(), *_costs(), *_shapes())
LARGER = tuple(_larger())
CASES = (*SMALL, *LARGER)


def without_bias(case: Case) -> Case:
    """The same with rho = 0."""
    return Case(f"{case.name}, no bias", replace(case.problem, bias="none"), case.definite)


def named(name: str) -> Problem:
    """The problem of the case called ``name``."""
    (found,) = (case.problem for case in CASES if case.name == name)
    return found
