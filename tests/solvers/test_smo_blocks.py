"""How many variables a round of the block solver has, and when all of them stay in one block."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
import zoo

from svmkit.data import Ints
from svmkit.engine import by_need
from svmkit.problem import RBF, Kernel, Problem
from svmkit.solvers import smo, smo_blocks, smo_state
from svmkit.trace import Progress

EVERY = 10**9


def run(problem: Problem, eps: float = 1e-3, working_set: int = 0) -> tuple[smo_state.State, Progress]:
    state = smo.start(problem, smo.Options(working_set=working_set), eps, seed=0)
    return state, smo.advance(state, EVERY)


@pytest.mark.parametrize(
    ("n", "n_features", "size"), [(900, 5, 900), (1600, 39, 1536), (1600, 40, 1600), (2048, 40, 2048), (2049, 40, 1024)]
)
def test_few_long_rows_make_one_block(n: int, n_features: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no kernel value of theirs is evaluated twice, but for the check of float32 ones at the end."""
    monkeypatch.setattr(by_need, "MOST_BYTES", 0)  # as where rows have many features more
    rng = np.random.default_rng(15)
    X = rng.normal(size=(n, n_features))
    problem = zoo.problem(X, np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0), Kernel(RBF, 0.5 / n_features), 1.0)
    assert len(smo.start(problem, smo.Options(), 1e-3, 0).K) == size
    state, progress = run(problem)
    assert progress.done
    if size == n:  # float64 blocks serve the check as well
        assert progress.kernel_evaluations == n * n if n <= 1024 else progress.kernel_evaluations <= 2 * n * n
    K = oracle.kernel_matrix(problem)
    assert oracle.violation(K, problem, oracle.beta_of(problem, smo.solution(state))) <= 1e-3 + 1e-7


def test_a_whole_block_in_float32_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_need, "suits", lambda *_: False)
    state = smo.start(zoo.noisy(1300, C=1000.0), smo.Options(), 1e-5, 0)
    block, asked = state.variables.engine.block, list[tuple[int, int]]()

    def counted(rows: Ints, columns: Ints, out: np.ndarray) -> np.ndarray:
        asked.append((len(rows), len(columns)))
        return block(rows, columns, out)

    monkeypatch.setattr(state.variables.engine, "block", counted)
    assert smo.advance(state, EVERY).done
    assert state.variables.engine.packed.real == "f4"
    assert state.rounds > 1
    assert asked == [(1300, 1300)]


@pytest.mark.parametrize(("n", "n_support", "size"), [(3000, 0, 512), (3000, 129, 516), (3000, 400, 1536), (1536, 0, 1536)])
def test_a_block_has_four_variables_for_each_support_vector(n: int, n_support: int, size: int) -> None:
    """But 512 at least, and all of them where they are few."""
    assert smo_blocks.wanted(np.where(np.arange(n) < n_support, -1.0, 0.0), 1536) == size


def test_blocks_of_an_easy_problem_are_small() -> None:
    """Two clouds far from each other, of which a few dozen points are support vectors."""
    X = np.random.default_rng(5).normal(size=(4000, 3))
    y = np.repeat([1.0, -1.0], 2000)
    state = smo.start(zoo.problem(X + 2.5 * y[:, None], y, Kernel(RBF, 0.1), 10.0), smo.Options(), 1e-3, 0)
    progress = smo.advance(state, EVERY)
    assert progress.done
    assert 0 < progress.n_support < 100
    assert progress.kernel_evaluations < 1536**2  # those of one large block


def test_a_problem_of_one_block_is_solved_in_float64() -> None:
    state, progress = run(zoo.noisy(200))
    assert progress.done
    assert state.K.dtype == np.float64


def hard(n: int, n_features: int) -> Problem:
    """Most rows are support vectors, and few of them at a bound."""
    X = np.random.default_rng(21).normal(size=(n, n_features))
    return zoo.problem(X, np.where(X[:, 0] > 0, 1.0, -1.0), Kernel(RBF, 2.0 / n_features), 10.0)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_long_run_on_long_rows_comes_to_keep_all_kernel_values(bias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it has made as many as there are; what was dropped before comes back."""
    monkeypatch.setattr(by_need, "MOST_BYTES", 0)
    monkeypatch.setattr(smo_blocks, "_LARGER_BLOCK", 64)
    monkeypatch.setattr(smo_blocks, "_BLOCK", 64)
    monkeypatch.setattr(smo, "_SHRINK_ROUNDS", 1)
    monkeypatch.setattr(smo, "interior_is_quicker", lambda *_: False)
    monkeypatch.setattr(smo.Pace, "newton_is_quicker", lambda *_: False)
    problem = replace(hard(400, 40), bias=bias)
    state = smo.start(problem, smo.Options(), 1e-5, 0)
    while len(state.K) == 64:
        before = smo.advance(state, 20).kernel_evaluations
    assert 2 * 400**2 <= before <= 2.5 * 400**2  # these, and the matrix
    assert state.variables.is_whole
    progress = smo.advance(state, EVERY)
    assert progress.done
    assert progress.kernel_evaluations <= before + 400**2  # the check in float64
    K = oracle.kernel_matrix(problem)
    assert oracle.violation(K, problem, oracle.beta_of(problem, smo.solution(state))) <= 1e-5 + 1e-7
    _, rounds = run(problem, 1e-5, working_set=64)
    assert rounds.kernel_evaluations > 2 * progress.kernel_evaluations


@pytest.mark.parametrize(("n", "n_features", "working_set"), [(400, 39, 0), (4097, 40, 0), (400, 40, 64)])
def test_short_rows_many_rows_and_blocks_asked_for_stay_as_they_are(n: int, n_features: int, working_set: int) -> None:
    state = smo.start(hard(n, n_features), smo.Options(working_set=working_set), 1e-3, 0)
    assert state.largest_size == state.size


def test_a_small_problem_begins_without_asking_which_precision_rounds_would_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its block has all variables in either, and the answer takes several looks at all values."""

    def refuse(*args: object) -> None:
        raise AssertionError

    X, y = zoo.points(60, 3, seed=6)
    problem = zoo.problem(X, y, Kernel(RBF, 0.5), 1.0)
    monkeypatch.setattr(smo, "training_precision", refuse)
    state, progress = run(problem)
    assert state.by_need is not None
    assert progress.done
    assert len(state.K) >= state.size == 60
