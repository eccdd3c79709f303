"""The perceptron against the algorithm written plainly: the same orders, a dense kernel matrix, one example after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from oracle import beta_of, kernel_matrix
from zoo import named

from svmkit.data import Floats
from svmkit.engine import rng
from svmkit.engine.kernels import Engine
from svmkit.problem import Problem
from svmkit.solvers import perceptron


def naive(problem: Problem, K: Floats, seed: int, options: perceptron.Options) -> Iterator[tuple[Floats, int]]:
    """After each example: the coefficients of the result and the kernel values used."""
    n, y, omega = problem.n, problem.y, problem.upper / problem.upper.mean()
    beta, total, used, step = np.zeros(n), np.zeros(n), 0, 0
    for epoch in range(options.epochs):
        wrong = 0
        for i in rng.permutation(seed, epoch, n):
            used += np.count_nonzero(beta)
            if K[i, i] != 0 and y[i] * (K[i] @ beta) <= options.beta:
                wrong += 1
                beta[i] += omega[i] * y[i]
                inside = np.flatnonzero(beta)
                if 0 < options.budget < len(inside):
                    f = K @ beta
                    beta[max(inside, key=lambda s: y[s] * (f[s] - beta[s] * K[s, s]))] = 0.0
            total += beta
            step += 1
            yield (total / step if options.average and not options.budget else beta.copy()), used
        if wrong == 0:
            return


VARIANTS: list[dict[str, Any]] = [
    {"average": False},
    {"average": True},
    {"average": False, "beta": 0.3},
    {"budget": 2},
    {"budget": 9},
    {"budget": 60, "beta": 0.3},
    {"budget": 1000},
]
NAMES = ["linear", "rbf", "polynomial", "sigmoid", "precomputed", "example weights", "300 rows, rbf", "separable, linear"]
#: With rows that are equal it is a matter of rounding which of them leaves S.
EQUAL_ROWS = ["empty rows", "two equal rows"]


@pytest.mark.parametrize(
    ("name", "given"),
    [*product(NAMES, VARIANTS), *product(EQUAL_ROWS, [given for given in VARIANTS if "budget" not in given])],
    ids=str,
)
@pytest.mark.parametrize("block", [256, 11])
def test_every_step_is_that_of_the_plain_algorithm(
    name: str, given: dict[str, Any], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perceptron, "Engine", partial(Engine, real="f8"))
    monkeypatch.setattr(perceptron, "_BLOCK", block)
    case = replace(named(name), bias="none")
    options = perceptron.Options(**given, epochs=3)
    state = perceptron.start(case, options, 1e-3, seed=2)
    for step, (beta, used) in enumerate(naive(case, kernel_matrix(case), 2, options), 1):
        progress = perceptron.advance(state, 1)
        assert progress.kernel_evaluations == used
        assert progress.steps == step
        if step % 5 == 0 or progress.completed:
            found = perceptron.solution(state)
            assert beta_of(case, found) == pytest.approx(beta, rel=1e-9, abs=1e-12)
            assert found.n_support == progress.n_support == np.count_nonzero(beta)
            assert not options.budget or progress.n_support <= options.budget
    assert progress.completed
    assert perceptron.advance(state, 100) == progress


def test_what_can_be_separated_is_and_the_run_ends_there() -> None:
    case = replace(named("separable, rbf"), bias="none")
    K = kernel_matrix(case)
    state = perceptron.start(case, perceptron.Options(average=False, epochs=1000), 1e-3, seed=0)
    progress = perceptron.advance(state, 10**9)
    assert progress.completed
    assert progress.steps < 1000 * case.n
    assert (case.y * (K @ beta_of(case, perceptron.solution(state))) > 0).all()
