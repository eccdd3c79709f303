"""Examples that stand in the data more than once: the answer is one to the problem of all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import beta_of, kernel_matrix, violation
from zoo import points, problem

from svmkit.certificate import certify
from svmkit.data import Rows, dense_rows
from svmkit.engine.alike import first_alike, shared_out
from svmkit.problem import LINEAR, PRECOMPUTED, RBF, Bias, Kernel, Problem, Solution, of_other_rows
from svmkit.solvers import lasvm, smo, smo_alike
from svmkit.solvers.base import SolverResult, run
from svmkit.trace import Limits, Status

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


def test_sums_far_below_the_bounds_are_not_lost() -> None:
    place, upper = np.array([0, 0, 1, 0, 1]), np.array([1e15, 1.0, 1e100, 1e15, 1e-100])
    most = np.bincount(place, upper)
    assert shared_out(np.array([5.0, 1e-5]), place, upper, most).tolist() == [5.0, 0.0, 1e-5, 0.0, 0.0]


def test_what_rounding_leaves_of_a_sum_is_no_share() -> None:
    place, upper = np.zeros(6, np.int64), np.full(6, 0.1)
    sums = np.array([0.1 + 0.1 + 0.1])  # in float64 more than 3 times 0.1 is taken away
    assert shared_out(sums, place, upper, np.array([0.6])).tolist() == [0.1, 0.1, 0.1, 0.0, 0.0, 0.0]


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
    fresh = certify(case, solution)
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


def kkt(case: Problem, solution: Solution) -> float:
    """The violation by a dense kernel matrix."""
    beta = beta_of(case, solution)
    assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    return violation(kernel_matrix(case), case, beta)


@pytest.mark.parametrize("C", [1e9, 1e13, 1e100])
def test_bounds_that_no_example_comes_near(C: float) -> None:
    """α is of the size that separates the classes, whatever C is."""
    X, y = points(300, 4, seed=2)
    X[:, 0] += 3.0 * y
    drawn = np.random.default_rng(7).integers(0, 300, 2500)
    case = problem(X[drawn], y[drawn], KERNEL, C=C)
    found = trained(case)
    assert found.status is Status.CONVERGED
    assert found.solution.n_support > 10
    assert found.certificate.violation == pytest.approx(kkt(case, found.solution), abs=1e-6)
    assert found.certificate.violation <= 1e-3


@pytest.mark.parametrize("most_steps", [1, 50, 400])
def test_a_run_that_is_cut_short(most_steps: int) -> None:
    case = repeated()
    found = run(smo, case, smo.Options(), eps=1e-3, limits=Limits(max_iter=most_steps))
    assert found.status is Status.MAX_ITER
    assert found.certificate.violation == pytest.approx(kkt(case, found.solution), abs=1e-6)


def test_w_has_the_shared_out_alpha_beside_it() -> None:
    case = repeated(kernel=Kernel(LINEAR))
    made = smo_alike.alike(case)
    assert made is not None
    alpha = 0.3 * made.problem.upper
    w = of_other_rows(made.problem.rows.take(np.arange(1)), np.ones(1), 0.5, alpha)
    shared = made.shared_out(w)
    assert shared.own is w.own
    assert shared.alpha is not None
    assert_allclose(np.bincount(made.place, shared.alpha), alpha, rtol=1e-11)
    assert made.shared_out(replace(w, alpha=None)).alpha is None


def test_lasvm_finishes_with_a_variable_for_each_of_its_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which have an α each already."""
    X = np.random.default_rng(0).normal(size=(1500, 3))
    rng = np.random.default_rng(1)
    case = problem(X[rng.integers(0, 1500, 3200)], rng.choice([-1.0, 1.0], 3200), Kernel(RBF, gamma=0.3))

    def finished() -> SolverResult:
        return run(lasvm, case, lasvm.Options(), eps=1e-3)

    found = finished()
    assert found.solution.n_support > smo_alike.LEAST_EXAMPLES
    each_alone(monkeypatch)
    assert found.solution.coef.tolist() == finished().solution.coef.tolist()
