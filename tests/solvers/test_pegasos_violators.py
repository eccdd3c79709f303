"""Pegasos that draws from the violators, against the algorithm written plainly: a dense kernel matrix, step after step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from naive_pegasos import iterates
from oracle import beta_of, kernel_matrix, optimum
from zoo import named, points, problem

from svmkit.data import Floats
from svmkit.engine import kept_rows, rng
from svmkit.engine.kernels import Engine
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, RBF, Bias, Kernel, Problem
from svmkit.solvers import pegasos, pegasos_violators
from svmkit.solvers.base import run
from svmkit.trace import Status

VARIANTS: list[dict[str, Any]] = [
    dict(average="none", projection=False, hold_step=False, batch=1),
    dict(average="none", projection=True, hold_step=True, batch=7),
    dict(average="uniform", projection=True, hold_step=False, batch=7),
    dict(average="step", projection=False, hold_step=True, batch=1),
    dict(average="step", projection=True, hold_step=False, batch=1),
]
NAMES = [
    "300 rows, rbf",
    "rbf",
    "polynomial",
    "sigmoid",
    "example weights",
    "rbf, C 100000",
    "duplicated rows",
    "empty rows",
    "two rows",
]


def draw(violates: Floats, heaviest: float, seed: int, step: int, number: int) -> int:
    """The first of random examples that violates and is let through by its weight; after many, the one at a share of it."""
    n, first = len(violates), number * 2**32
    for place in range(first, first + 2 * (16 + n // 64), 2):
        which, let_through = rng.uniforms(seed, step, place, 2)
        if let_through * heaviest < violates[int(which * n)]:
            return int(which * n)
    share = rng.uniforms(seed, step, first + 2**32 - 1, 1)[0]
    return int(np.searchsorted(np.cumsum(violates), share * violates.sum(), "right"))


def naive(problem: Problem, K: Floats, seed: int, options: pegasos.Options) -> Iterator[tuple[Floats, int]]:
    """After each step: the coefficients of the result, and how many rows have been used."""
    used = set[int]()

    def step_of(w: Floats, K: Floats, omega: Floats, step: int) -> tuple[list[int], Floats]:
        omega = np.where(K.diagonal() == 0, 0.0, omega)
        violates = omega * (problem.y * (K @ w) < 1)
        numbers = range(options.batch if violates.any() else 0)
        drawn = [draw(violates, omega.max(), seed, step, number) for number in numbers]
        used.update(drawn)
        return drawn, np.full(problem.n, violates.sum() / problem.n)

    for beta in iterates(problem, K, options, step_of):
        yield beta, len(used)


@pytest.fixture
def float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel values in float64, so that a margin falls on the same side of 1 as in the plain run."""
    monkeypatch.setattr(pegasos_violators, "Engine", partial(Engine, real="f8"))
    monkeypatch.setattr(kept_rows, "_LARGEST", 0.0)


@pytest.mark.parametrize(("name", "bias"), [*((name, "none") for name in NAMES), ("rbf", "free"), ("empty rows", "free")])
def test_every_step_is_that_of_the_plain_algorithm(name: str, bias: Bias, float64: None) -> None:
    case = replace(named(name), bias=bias)
    K = kernel_matrix(case)
    for given in VARIANTS:
        options = pegasos.Options(**given, draw="violators", bias=0.7, epochs=1000)
        state = pegasos.start(case, options, 1e-9, seed=3)
        for step, (beta, used) in enumerate(naive(case, K, 3, options), 1):
            progress = pegasos.advance(state, 1)
            assert progress.steps == step
            assert progress.kernel_evaluations == case.n * used
            assert progress.n_support == used
            if step % 20 == 0:
                found, scale = pegasos.solution(state), np.abs(beta).max()
                assert beta_of(case, found) == pytest.approx(beta, rel=1e-7, abs=1e-9 * scale)
                assert found.rho == pytest.approx(-0.49 * beta.sum() * (bias == "free"), rel=1e-7, abs=1e-7 * scale)
            if step * options.batch >= 400:
                break


@pytest.mark.parametrize("hold", [False, True])
def test_where_none_violates_w_shrinks_until_one_does(hold: bool, float64: None) -> None:
    case = replace(named("two rows"), bias="none")
    case = replace(case, upper=np.full(case.n, 50.0))
    K, used = kernel_matrix(case), 0
    options = pegasos.Options(draw="violators", average="none", hold_step=hold, epochs=1000)
    state = pegasos.start(case, options, 1e-9, seed=0)
    for _, (beta, _) in zip(range(300), naive(case, K, 0, options), strict=False):
        margins = case.y * (K @ beta_of(case, pegasos.solution(state)))
        before = int(state.form.counts[pegasos.loops.HITS])
        pegasos.advance(state, 1)
        used += int(state.form.counts[pegasos.loops.HITS]) - before
        assert int(state.form.counts[pegasos.loops.HITS]) - before == int((margins < 1).any())
        assert beta_of(case, pegasos.solution(state)) == pytest.approx(beta, rel=1e-9)
    assert 10 < used < 290


def test_few_rows_kept_change_only_the_count() -> None:
    """Of 300 rows 8 at a time: those that have gone are evaluated again."""
    case = replace(named("300 rows, rbf"), bias="none")
    options = [pegasos.Options(draw="violators", batch=2, cache_mb=mb) for mb in (100.0, 0.01)]
    many, few = (pegasos.start(case, given, 1e-12, 3) for given in options)
    all_kept, some_kept = pegasos.advance(many, 600), pegasos.advance(few, 600)
    assert isinstance(few.form, pegasos_violators.State)
    assert len(few.form.rows.K) == 8
    assert pegasos.solution(few).coef == pytest.approx(pegasos.solution(many).coef, rel=1e-9)
    assert all_kept.kernel_evaluations == 300 * np.count_nonzero(many.form.beta)
    assert all_kept.kernel_evaluations < some_kept.kernel_evaluations <= few.form.rows.engine.evaluations


def test_where_calls_are_cut_changes_nothing() -> None:
    case = replace(named("300 rows, rbf"), bias="none")
    whole, cut = (pegasos.start(case, pegasos.Options(draw="violators", epochs=5.0), 1e-12, 1) for _ in range(2))
    ended = pegasos.advance(whole, 10**9)
    assert (ended.steps, ended.completed) == (1500, True)
    while not (progress := pegasos.advance(cut, 37)).ended:
        pass
    assert progress == ended
    assert np.array_equal(pegasos.solution(whole).coef, pegasos.solution(cut).coef)


def test_float32_rows_lead_where_float64_rows_do(monkeypatch: pytest.MonkeyPatch) -> None:
    case = replace(named("300 rows, rbf"), bias="none")
    found = []
    for real, largest in (("f4", 1e30), ("f8", 0.0)):
        monkeypatch.setattr(kept_rows, "_LARGEST", largest)
        monkeypatch.setattr(pegasos_violators, "Engine", partial(Engine, real=real))
        state = pegasos.start(case, pegasos.Options(draw="violators"), 1e-12, 1)
        pegasos.advance(state, 3000)
        assert isinstance(state.form, pegasos_violators.State)
        found.append((state.form.rows.real, beta_of(case, pegasos.solution(state))))
    assert [real for real, _ in found] == ["f4", "f8"]
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-6 * np.abs(found[1][1]).max())


def test_few_violators_are_found_where_uniform_draws_seldom_fall_on_them() -> None:
    """1 example in 50 violates at the optimum: after 10n steps the objective is a tenth as far from it."""
    X, y = points(500, 4, seed=21, noise=0.0)
    case = replace(problem(X, y, Kernel(RBF, 0.25), 100.0), bias="none")
    best = optimum(case, kernel_matrix(case))
    over = {}
    for draw in ("uniform", "violators"):
        result = run(pegasos, case, pegasos.Options(epochs=10, draw=draw), eps=1e-9, seed=2)
        assert (result.status, result.steps) == (Status.COMPLETED, 5000)
        over[draw] = result.certificate.primal / best - 1
    assert 0 <= over["violators"] < 0.1 * over["uniform"]


def test_it_ends_where_the_gap_is_small_enough() -> None:
    case = replace(named("300 rows, rbf"), bias="none")
    result = run(pegasos, case, pegasos.Options(epochs=10_000, draw="violators"), eps=0.05)
    assert result.status is Status.CONVERGED
    assert result.certificate.gap <= 0.05 * result.certificate.primal
    assert result.steps < 10_000 * case.n


@pytest.mark.parametrize(
    ("kernel", "given", "why"),
    [
        (Kernel(LINEAR), {}, "of linear f"),
        (Kernel(RBF, 1.0), {"responses": "demand"}, "-O responses=demand keeps none"),
    ],
)
def test_where_responses_are_not_kept_it_is_refused(kernel: Kernel, given: dict[str, str], why: str) -> None:
    case = replace(named("rbf"), kernel=kernel, bias="none")
    with pytest.raises(UsageError, match=f"-O draw=violators: needs .* {why}"):
        pegasos.start(case, pegasos.Options(draw="violators", **given), 1e-3, 0)  # type: ignore[arg-type]
