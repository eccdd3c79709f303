"""ASSET against the algorithm written plainly: the same draws, dense rows, every iterate kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, sqrt

import numpy as np
import pytest
from oracle import kernel_matrix, optimum
from zoo import named, points, problem

from svmkit.certificate import certify
from svmkit.data import Floats, Rows, dense_rows
from svmkit.engine import rng
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, RBF, Bias, Kernel, Problem, Stream
from svmkit.solvers import asset
from svmkit.solvers.base import run
from svmkit.trace import Status

NAMES = ["linear", "linear, C 100", "linear, C 0.001", "empty rows, linear", "sparse, linear", "two equal rows"]


def naive(case: Problem, seed: int, options: asset.Options) -> Iterator[tuple[Floats, float, Floats]]:
    """After each step w, b and the dual point of the result."""
    X, y, n, free = case.rows.to_dense(), case.y, case.n, case.bias == "free"
    lam, omega = 1.0 / case.upper.sum(), case.upper / case.upper.mean()
    B = options.bound or 1.0 + max(np.linalg.norm(X, axis=1)) / sqrt(lam)
    drawn = rng.integers(seed, 1, 0, options.draws, n)
    D_G = sqrt(np.mean([omega[i] ** 2 * (X[i] @ X[i] + 1.0) for i in drawn]))
    D_X = sqrt(1.0 / lam + B * B)
    N = ceil(options.epochs * n)
    w, b, alpha = np.zeros(X.shape[1]), 0.0, np.zeros(n)
    draws = rng.integers(seed, 0, 0, N, n)
    w_sum, b_sum, alpha_sum, weights = np.zeros(X.shape[1]), 0.0, np.zeros(n), 0.0
    for j in range(1, N + 1):
        i = draws[j - 1]
        eta = min(options.step * D_X / (D_G * sqrt(j)), 0.5 / lam) if free else 1.0 / (lam * j)
        wrong = y[i] * (w @ X[i] + b) < 1
        w, alpha = (1 - eta * lam) * w, (1 - eta * lam) * alpha
        if wrong:
            w = w + eta * omega[i] * y[i] * X[i]
            alpha[i] += eta * omega[i]
            b = float(np.clip(b + eta * omega[i] * y[i], -B, B)) if free else 0.0
        norm = np.linalg.norm(w)
        if norm > 1 / sqrt(lam):
            w, alpha = w / (sqrt(lam) * norm), alpha / (sqrt(lam) * norm)
        if j >= max(1, ceil(options.burn_in * N)):
            w_sum, b_sum, alpha_sum = w_sum + eta * w, b_sum + eta * b, alpha_sum + eta * alpha
            weights += eta
        yield (w_sum / weights, b_sum / weights, alpha_sum / weights) if weights else (w, b, alpha)


OPTIONS = [
    asset.Options(epochs=12),
    asset.Options(epochs=12, burn_in=0.0, step=1.0),
    asset.Options(epochs=12, burn_in=0.9, bound=0.3, draws=5, step=5.0),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: f"step {options.step}")
def test_every_step_is_that_of_the_plain_algorithm(name: str, bias: Bias, options: asset.Options) -> None:
    case = replace(named(name), bias=bias)
    weighted = replace(case, upper=case.upper * np.random.default_rng(5).uniform(0.2, 3.0, case.n))
    state = asset.start(weighted, options, 1e-3, seed=7)
    for step, (w, b, alpha) in enumerate(naive(weighted, 7, options), 1):
        progress = asset.advance(state, 1)
        assert progress.steps == progress.kernel_evaluations == step
        if step % 9:
            continue
        found = asset.solution(state)
        dense = np.zeros(len(w))
        dense[found.own.indices] = found.own.data
        assert dense == pytest.approx(w, rel=1e-7, abs=1e-7 * np.abs(w).max(initial=1e-9))
        assert -found.rho == pytest.approx(b, rel=1e-7, abs=1e-9)
        assert found.alpha == pytest.approx(np.minimum(alpha, weighted.upper), rel=1e-7, abs=1e-7 * alpha.max(initial=1e-9))
    assert progress.completed


def test_a_scale_that_grows_small_is_taken_up() -> None:
    """Where λη is near a half at each step, w = scale·v would leave the range of doubles."""
    case = replace(named("linear"), upper=np.full(40, 1e-8))
    options = asset.Options(epochs=30, step=1e9)
    state = asset.start(case, options, 1e-3, seed=1)
    asset.advance(state, 10**9)
    *_, (w, b, alpha) = naive(case, 1, options)
    found = asset.solution(state)
    assert found.own.data == pytest.approx(w[found.own.indices], rel=1e-7)
    assert -found.rho == pytest.approx(b, rel=1e-7)
    assert found.alpha == pytest.approx(np.minimum(alpha, case.upper), rel=1e-7)


def test_an_average_keeps_its_digits_where_lambda_is_tiny() -> None:
    """Each hit is 10⁵ times as long as what its projection leaves."""
    case = replace(named("linear"), bias="none")
    case = replace(case, upper=np.full(case.n, 1e10 / case.n))
    options = asset.Options(epochs=50, burn_in=0.0)
    state = asset.start(case, options, 1e-3, seed=4)
    asset.advance(state, 10**9)
    *_, (w, _, _) = naive(case, 4, options)
    found = asset.solution(state).own
    assert found.data == pytest.approx(w[found.indices], rel=1e-9, abs=1e-9 * np.abs(w).max())


def naive_stream(X: Floats, y: Floats, omega: Floats, lam: float, bias: Bias, options: asset.Options) -> list[Floats]:
    """After each example (w, b) of the average over all iterates since the last power of two but one; before any, zeros."""
    free = bias == "free"
    w, b, iterates, averages = np.zeros(X.shape[1]), 0.0, [], [np.zeros(X.shape[1] + 1)]
    for j in range(1, len(y) + 1):
        x, sign, weight = X[j - 1], y[j - 1], omega[j - 1]
        B = options.bound or 1.0 + max(np.linalg.norm(X[:j], axis=1)) / sqrt(lam)
        first = slice(0, min(j, options.draws))
        D_G = sqrt(np.mean(omega[first] ** 2 * ((X[first] ** 2).sum(axis=1) + 1.0)))
        eta = min(options.step * sqrt(1.0 / lam + B * B) / (D_G * sqrt(j)), 0.5 / lam) if free else 1.0 / (lam * j)
        wrong = sign * (w @ x + b) < 1
        w = (1 - eta * lam) * w + wrong * eta * weight * sign * x
        b = float(np.clip(b + wrong * eta * weight * sign, -B, B)) if free else 0.0
        w = w / max(1.0, np.linalg.norm(w) * sqrt(lam))
        iterates.append((eta, np.append(w, b)))
        begin = 2 ** max(0, j.bit_length() - 2)
        kept = iterates[begin - 1 :]
        averages.append(sum(e * one for e, one in kept) / sum(e for e, _ in kept))
    return averages


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: f"step {options.step}")
def test_a_stream_is_learned_as_by_the_plain_algorithm_however_it_is_cut(bias: Bias, options: asset.Options) -> None:
    X, y = points(300, 8, seed=3, density=0.5)
    X[:100, 5:] = 0.0  # later rows have more features
    omega, lam = np.random.default_rng(1).uniform(0.2, 3.0, 300), 0.01
    averages = naive_stream(X, y, omega, lam, bias, options)
    before = [float(x @ average[:-1] + average[-1]) for x, average in zip(X, averages, strict=False)]
    ends = set()
    for size in (1, 7, 300):
        state = asset.start_stream(Stream(Kernel(LINEAR), None, lam, bias), options, 1e-3, seed=0)
        decisions = []
        for first in range(0, 300, size):
            some = slice(first, first + size)
            rows = Rows.from_dense(X[some, : 5 if first + size <= 100 else 8])
            decisions.append(asset.extend(state, rows, y[some], omega[some]))
        assert np.concatenate(decisions) == pytest.approx(before, rel=1e-7, abs=1e-8)
        assert asset.progress(state).steps == 300
        found = asset.solution(state)
        assert np.append(found.own.to_dense()[0, 1:], -found.rho) == pytest.approx(averages[-1], rel=1e-7, abs=1e-9)
        ends.add((found.own.data.tobytes(), found.rho))
    assert len(ends) == 1


@pytest.mark.parametrize("bias", ["free", "none"])
def test_dense_rows_are_learned_as_sparse_ones(bias: Bias) -> None:
    X, y = points(200, 30, seed=5)
    X = X.astype(np.float32)
    found = []
    for rows in (Rows.from_dense(X), dense_rows(X)):
        case = Problem(rows, y, np.full(200, 0.3), Kernel(LINEAR), bias)
        state = asset.start(case, asset.Options(epochs=20), 1e-3, seed=2)
        asset.advance(state, 10**9)
        online = asset.start_stream(Stream(case.kernel, None, 0.01, bias), asset.Options(), 1e-3, seed=2)
        decisions = asset.extend(online, rows, y, np.ones(200))
        w, v = asset.solution(state), asset.solution(online)
        assert list(w.own.indices) == list(v.own.indices) == list(range(1, 31))
        found.append(np.concatenate([w.own.data, [w.rho], w.alpha, v.own.data, [v.rho], decisions]))
    assert found[1] == pytest.approx(found[0], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_it_comes_near_the_optimum_and_its_dual_point_proves_it(bias: Bias) -> None:
    X, y = points(500, 6, seed=8)
    case = replace(problem(X, y, Kernel(LINEAR), 0.2), bias=bias)
    best = optimum(case, kernel_matrix(case))
    result = run(asset, case, asset.Options(epochs=2000), eps=1e-3)
    assert result.status is Status.COMPLETED
    assert best * (1 - 1e-9) <= result.certificate.primal <= best * (1 + 1e-3)
    assert best * (1 - 3e-2) <= result.certificate.dual <= best * (1 + 1e-9)


def test_kernels_are_sent_to_a_map() -> None:
    X, y = points(20, 3, seed=1)
    case = problem(X, y, Kernel(RBF, 0.5))
    with pytest.raises(UsageError, match="--map"):
        run(asset, case, asset.Options(), eps=1e-3)


def test_a_certificate_of_no_steps() -> None:
    state = asset.start(named("linear"), asset.Options(), 1e-3, 0)
    assert certify(named("linear"), asset.solution(state)).primal == named("linear").upper.sum()


def test_weights_whose_squares_vanish_do_not_divide_by_zero() -> None:
    """All examples that the step length is judged by weigh 1e-170."""
    X, y = points(200, 3, seed=1)
    case = problem(X, y, Kernel(LINEAR), np.where(np.arange(200) == 7, 1.0, 1e-140))
    state = asset.start(replace(case, upper=np.where(np.arange(200) == 7, 1.0, 1e-170)), asset.Options(draws=3), 1e-3, 0)
    assert asset.advance(state, 10).steps == 10
    assert np.isfinite(asset.solution(state).coef).all()
