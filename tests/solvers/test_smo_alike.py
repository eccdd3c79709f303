"""Examples that stand in the data more than once: the answer is one to the problem of all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from zoo import points, problem

from svmkit.certificate import certify
from svmkit.data import Rows, dense_rows
from svmkit.engine.alike import first_alike, shared_out
from svmkit.problem import LINEAR, PRECOMPUTED, RBF, Bias, Kernel, Problem
from svmkit.solvers import smo, smo_alike
from svmkit.solvers.base import SolverResult, run
from svmkit.trace import Status

KERNEL = Kernel(RBF, gamma=0.5)


def repeated(n: int = 2500, distinct: int = 300, kernel: Kernel = KERNEL, bias: Bias = "free") -> Problem:
    """Rows drawn from few, some of them with either label, each with a weight of its own."""
    X, y = points(distinct, 4, seed=2)
    rng = np.random.default_rng(7)
    drawn = rng.integers(0, distinct, n)
    sign = np.where((rng.random(n) < 0.1) & (drawn % 3 == 0), -1.0, 1.0)
    case = problem(X[drawn], y[drawn] * sign, kernel, C=2.0)
    return replace(case, upper=case.upper * rng.choice([0.0, 0.5, 1.0, 3.0], n), bias=bias)


def each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smo_alike, "LEAST_EXAMPLES", 10**9)


def test_the_first_of_equal_rows_is_found() -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, (400, 3)) * np.array([1.0, -1e-300, 0.1])
    X[rng.random(X.shape) < 0.3] = 0.0  # places without a feature
    y = rng.choice([-1.0, 1.0], 400)
    rows = Rows.from_dense(X)
    seen: dict[tuple[float, ...], int] = {}
    expected = [seen.setdefault((*x, side), i) for i, (x, side) in enumerate(zip(X.tolist(), y.tolist(), strict=True))]
    assert len(seen) < 100
    assert first_alike(rows, y).tolist() == expected
    assert first_alike(rows.take(np.arange(0)), y[:0]).tolist() == []


def test_values_that_differ_in_the_last_bit_are_not_alike() -> None:
    rows = Rows.from_dense(np.array([[1.0, 0.0], [np.nextafter(1.0, 2.0), 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]))
    assert first_alike(rows, np.ones(5)).tolist() == [0, 1, 2, 3, 0]


def test_sums_are_shared_out_within_the_bounds() -> None:
    rng = np.random.default_rng(3)
    place, upper = rng.integers(0, 40, 500), rng.choice([0.0, 0.1, 0.3, 1.0], 500)
    most = np.bincount(place, upper, 40)
    sums = most * rng.choice([0.0, 0.25, 0.9, 1.0], 40)
    alpha = shared_out(sums, place, upper, most)
    assert ((alpha >= 0) & (alpha <= upper)).all()
    assert_allclose(np.bincount(place, alpha, 40), sums, rtol=1e-11)
    assert (alpha == upper)[(sums >= most)[place]].all()
    free = (alpha > 0) & (alpha < upper)
    assert np.bincount(place[free], minlength=40).max() <= 1


def trained(case: Problem, **options: float) -> SolverResult:
    return run(smo, case, smo.Options(), **{"eps": 1e-3, **options})


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("kernel", [KERNEL, Kernel(LINEAR)], ids=["rbf", "linear"])
def test_the_answer_is_as_good_as_that_of_each_example_alone(
    kernel: Kernel, bias: Bias, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = repeated(kernel=kernel, bias=bias)
    found = trained(case)
    assert smo_alike.alike(case) is not None
    solution = found.solution
    assert found.status is Status.CONVERGED
    assert found.certificate.violation <= 1e-3
    fresh = certify(case, replace(solution, responses=None))
    assert_allclose([fresh.primal, fresh.dual], [found.certificate.primal, found.certificate.dual], rtol=1e-9)
    if (solution.origin >= 0).all():
        alpha = case.y[solution.origin] * solution.coef
        assert ((alpha > 0) & (alpha <= case.upper[solution.origin])).all()
    each_alone(monkeypatch)
    alone = trained(case)
    assert found.certificate.dual <= alone.certificate.primal
    assert alone.certificate.dual <= found.certificate.primal
    assert found.kernel_evaluations < alone.kernel_evaluations


def test_a_start_is_gone_on_from() -> None:
    case = repeated()
    found = trained(case).solution
    alpha = np.zeros(case.n)
    alpha[found.origin] = case.y[found.origin] * found.coef
    again = trained(replace(case, start=alpha))
    assert again.steps <= 1
    assert again.solution.rho == pytest.approx(found.rho, abs=1e-3)


def test_what_is_not_worth_it_is_left_as_it_is() -> None:
    case = repeated()
    assert smo_alike.alike(repeated(n=smo_alike.LEAST_EXAMPLES)) is None
    X, y = points(2500, 4, seed=2)
    assert smo_alike.alike(problem(X, y, KERNEL)) is None
    precomputed = replace(case, kernel=Kernel(PRECOMPUTED), rows=case.rows._replace(gram=np.eye(2), serial=np.ones(2500, int)))
    assert smo_alike.alike(precomputed) is None
    assert smo_alike.alike(replace(case, kernel=Kernel(LINEAR), rows=dense_rows(np.ones((2500, 3), np.float32)))) is None
