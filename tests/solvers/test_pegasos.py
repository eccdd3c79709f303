"""Pegasos against the algorithm written plainly: the same draws, a dense kernel matrix, one step after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest
from naive_pegasos import iterates
from oracle import beta_of, kernel_matrix, optimum, primal_objective
from zoo import named, points, problem

from svmkit.certificate import certify
from svmkit.data import Floats
from svmkit.engine import rng
from svmkit.engine.kernels import Engine
from svmkit.problem import LINEAR, RBF, Bias, Kernel, Problem
from svmkit.solvers import pegasos
from svmkit.solvers.base import run
from svmkit.trace import Status


def naive(problem: Problem, K: Floats, seed: int, options: pegasos.Options) -> Iterator[tuple[Floats, int, int]]:
    """After each step: the coefficients of the result, and the kernel values used on demand and with all responses kept."""
    n, k, used = problem.n, options.batch, [0, 0]

    def step_of(w: Floats, K: Floats, omega: Floats, step: int) -> tuple[list[int], Floats]:
        batch = rng.integers(seed, 0, step * k, k, n)
        wrong = [i for i in batch if K[i, i] != 0 and problem.y[i] * (K[i] @ w) < 1]
        used[0] += k * np.count_nonzero(w)
        used[1] += n * len(wrong)
        return wrong, omega

    for beta in iterates(problem, K, options, step_of):
        yield beta, used[0], used[1]


@pytest.fixture
def float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel values in float64, so that a margin falls on the same side of 1 as in the plain run."""
    monkeypatch.setattr(pegasos, "Engine", partial(Engine, real="f8"))


VARIANTS: list[dict[str, Any]] = [
    dict(average="none", projection=False, hold_step=False, batch=1),
    dict(average="none", projection=True, hold_step=True, batch=7),
    dict(average="uniform", projection=False, hold_step=True, batch=1),
    dict(average="uniform", projection=True, hold_step=False, batch=7),
    dict(average="step", projection=True, hold_step=False, batch=1),
    dict(average="step", projection=False, hold_step=True, batch=7),
    dict(average="step", projection=True, hold_step=True, batch=1),
]
NAMES = ["rbf", "polynomial", "sigmoid", "example weights", "rbf, C 100000", "duplicated rows", "empty rows", "two rows"]
LINEAR_NAMES = ["linear", "linear, C 100", "empty rows, linear", "sparse, linear", "two equal rows"]


@pytest.mark.parametrize(("name", "bias"), [*((name, "none") for name in NAMES), ("rbf", "free"), ("empty rows", "free")])
@pytest.mark.parametrize("responses", ["all", "demand"])
def test_every_step_is_that_of_the_plain_algorithm(name: str, bias: Bias, responses: str, float64: None) -> None:
    case = replace(named(name), bias=bias)
    K = kernel_matrix(case)
    for given in VARIANTS:
        options = pegasos.Options(**given, responses=responses, bias=0.7, epochs=1000)
        state = pegasos.start(case, options, 1e-9, seed=3)
        for step, (beta, on_demand, kept) in enumerate(naive(case, K, 3, options), 1):
            progress = pegasos.advance(state, 1)
            assert progress.kernel_evaluations == (kept if responses == "all" else on_demand)
            if step % 20 == 0:
                found, scale = pegasos.solution(state), np.abs(beta).max()
                assert beta_of(case, found) == pytest.approx(beta, rel=1e-7, abs=1e-9 * scale)
                assert found.rho == pytest.approx(-0.49 * beta.sum() * (bias == "free"), rel=1e-7, abs=1e-7 * scale)
                assert progress.n_support == np.count_nonzero(beta)
            if step * options.batch >= 400:
                break


@pytest.mark.parametrize(("name", "bias"), [*((name, "none") for name in LINEAR_NAMES), ("empty rows, linear", "free")])
def test_every_linear_step_is_that_of_the_plain_algorithm(name: str, bias: Bias) -> None:
    """w of the plain run's coefficients, at first and after so many steps that w's scale is taken up many times."""
    case = replace(named(name), bias=bias)
    K, X = kernel_matrix(case), case.rows.to_dense()
    for given in VARIANTS:
        options = pegasos.Options(**given, bias=0.7, epochs=5000)
        state = pegasos.start(case, options, 1e-9, seed=4)
        for step, (beta, _, _) in enumerate(naive(case, K, 4, options), 1):
            progress = pegasos.advance(state, 1)
            assert progress.kernel_evaluations == step * options.batch
            if step % 100 == 0:
                found = pegasos.solution(state)
                w = X.T @ beta
                dense = np.zeros(len(w))
                dense[found.own.indices] = found.own.data
                assert dense == pytest.approx(w, rel=1e-6, abs=1e-7 * np.abs(w).max() + 1e-12 * np.abs(beta).max())
                rho = -0.49 * beta.sum() * (bias == "free")
                assert found.rho == pytest.approx(rho, rel=1e-6, abs=1e-7 * np.abs(beta).max())
                alpha = np.minimum(beta * case.y, case.upper)
                assert found.alpha == pytest.approx(alpha, rel=1e-6, abs=1e-7 * np.abs(alpha).max())
            if step >= 700:
                break


@pytest.mark.parametrize("average", ["uniform", "step"])
def test_an_average_keeps_its_digits_where_lambda_is_tiny(average: str) -> None:
    """Each hit is 10⁵ times as long as what its projection leaves."""
    case = replace(named("linear"), bias="none")
    case = replace(case, upper=np.full(case.n, 1e10 / case.n))
    options = pegasos.Options(average=average, projection=True, epochs=1000)
    state = pegasos.start(case, options, 1e-9, seed=4)
    pegasos.advance(state, 2000)
    *_, (beta, _, _) = islice(naive(case, kernel_matrix(case), 4, options), 2000)
    w = case.rows.to_dense().T @ beta
    found = pegasos.solution(state).own
    assert found.data == pytest.approx(w[found.indices], rel=1e-9, abs=1e-9 * np.abs(w).max())


def test_float32_steps_are_those_of_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    case = replace(named("300 rows, rbf"), bias="none")
    found = []
    for real in ("f4", "f8"):
        monkeypatch.setattr(pegasos, "Engine", partial(Engine, real=real))
        state = pegasos.start(case, pegasos.Options(), 1e-9, seed=1)
        pegasos.advance(state, 3000)
        found.append(beta_of(case, pegasos.solution(state)))
    assert found[0] == pytest.approx(found[1], abs=1e-6 * np.abs(found[1]).max())


@pytest.mark.parametrize("responses", ["all", "demand"])
@pytest.mark.parametrize(("size", "bias"), [(1, "none"), (5, "free"), (64, "none")])
def test_the_size_of_blocks_changes_nothing(
    size: int, bias: Bias, responses: str, monkeypatch: pytest.MonkeyPatch, float64: None
) -> None:
    case = replace(named("300 rows, rbf"), bias=bias)
    found = []
    for block in (512, size):
        monkeypatch.setattr(pegasos, "_BLOCK", block)
        state = pegasos.start(case, pegasos.Options(batch=3, responses=responses), 1e-9, seed=1)
        progress = pegasos.advance(state, 501)
        found.append((beta_of(case, pegasos.solution(state)), progress.kernel_evaluations))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-9, abs=1e-12)
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize("kernel", [Kernel(LINEAR), Kernel(RBF, 0.25)], ids=lambda kernel: kernel.name)
def test_it_comes_as_near_the_optimum_as_theory_has_it(kernel: Kernel) -> None:
    """The mean of 1/(λt) steps weighted by t: at most 2G²/(λ(T + 1)) above the optimum in the λ-form, G = λ‖w‖ + max‖x‖."""
    X, y = points(200, 4, seed=21)
    case = replace(problem(X, y, kernel), bias="none")
    K = kernel_matrix(case)
    best = optimum(case, K)
    lam = 1 / case.n
    G = np.sqrt(lam) + np.sqrt(K.diagonal().max())
    for epochs in (10, 100):
        result = run(pegasos, case, pegasos.Options(epochs=epochs), eps=1e-9, seed=2)
        assert result.status is Status.COMPLETED
        assert result.steps == epochs * case.n
        assert 0 <= (result.certificate.primal - best) * lam <= 2 * G**2 / (lam * (result.steps + 1))
    assert result.certificate.primal <= 1.02 * best
    if kernel.kind == RBF:
        beta = beta_of(case, result.solution)
        assert result.certificate.primal == pytest.approx(primal_objective(K, case, beta, 0.0))


@pytest.mark.parametrize("name", ["300 rows, rbf", "300 rows, linear"])
def test_it_ends_where_the_gap_is_small_enough(name: str) -> None:
    case = replace(named(name), bias="none")
    result = run(pegasos, case, pegasos.Options(epochs=10_000), eps=0.05)
    assert result.status is Status.CONVERGED
    assert result.certificate.gap <= 0.05 * result.certificate.primal
    assert result.steps < 10_000 * case.n


def test_the_end_of_the_run_is_the_end_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a look at the gap comes there, too."""
    monkeypatch.setattr(pegasos, "_LOOK_SHARE", np.inf)
    case = replace(named("300 rows, rbf"), bias="none")
    assert run(pegasos, case, pegasos.Options(epochs=1.0), eps=1e9).status is Status.CONVERGED


@pytest.mark.parametrize(("batch", "steps"), [(1, 300), (7, 43)])
def test_a_linear_run_is_looked_at_where_an_epoch_ends(batch: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nowhere that calls are cut."""
    monkeypatch.setattr(pegasos, "_LOOK_SHARE", np.inf)
    state = pegasos.start(replace(named("300 rows, linear"), bias="none"), pegasos.Options(batch=batch), 1e9, 0)
    while not (progress := pegasos.advance(state, 40)).ended:
        pass
    assert (progress.done, progress.steps) == (True, steps)


def test_w_of_features_with_huge_numbers_keeps_their_names() -> None:
    case = replace(named("sparse, linear"), bias="none")
    far = replace(case, rows=case.rows._replace(indices=case.rows.indices + 2_000_000_000, n_features=2_000_000_300))
    near, there = (run(pegasos, p, pegasos.Options(), eps=1e-9).solution.own for p in (case, far))
    assert np.array_equal(near.indices + 2_000_000_000, there.indices)
    assert near.data.tobytes() == there.data.tobytes()


def test_large_batches_of_a_linear_problem() -> None:
    """Batches of 8000 are nearly the whole gradient: the step-weighted mean comes as near as theory has it with no noise."""
    case = replace(named("300 rows, linear"), bias="none")
    state = pegasos.start(case, pegasos.Options(batch=8000, epochs=15_000), 1e-9, seed=0)
    progress = pegasos.advance(state, 10**9)
    assert progress.completed
    assert progress.steps == 563  # ⌈15,000 · 300 / 8000⌉
    best = optimum(case, kernel_matrix(case))
    assert best <= certify(case, pegasos.solution(state)).primal <= 1.005 * best


def test_an_infinite_objective_is_no_convergence(monkeypatch: pytest.MonkeyPatch) -> None:
    case = named("rbf")
    endless = replace(run(pegasos, case, pegasos.Options(), eps=1e-3).certificate, primal=np.inf, gap=np.inf)
    monkeypatch.setattr(pegasos, "certify", lambda *given: endless)
    assert run(pegasos, case, pegasos.Options(), eps=1e-3).status is Status.COMPLETED
