"""What the conformance suite cannot see of the block solver: many rounds, drops from the active set, and float64 at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import oracle
import pytest
import zoo

from svmkit.certificate import certify
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Ints, Rows
from svmkit.engine import active, kernels, layouts
from svmkit.engine.kernels import Engine
from svmkit.fit import fit
from svmkit.problem import LINEAR, RBF, Kernel, Problem
from svmkit.solvers import smo, smo_pace, smo_state
from svmkit.solvers.base import run as solve
from svmkit.trace import Limits, Progress, Status

EVERY = 10**9


def run(problem: Problem, eps: float = 1e-3, budget: int = EVERY, **options: object) -> tuple[smo_state.State, Progress]:
    state = smo.start(problem, smo.Options(**options), eps, seed=0)  # type: ignore[arg-type]
    progress = smo.advance(state, budget)
    while not (progress.done or progress.stalled):
        progress = smo.advance(state, budget)
    return state, progress


@pytest.fixture
def eager_shrinking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smo, "_SHRINK_ROUNDS", 1)
    monkeypatch.setattr(active, "_WORTH", 0.0)


@pytest.mark.parametrize("case", [c for c in zoo.CASES if c.definite and c.problem.n >= 30], ids=repr)
@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("working_set", [4, 9])
def test_small_blocks_reach_the_same_optimum(case: zoo.Case, bias: str, working_set: int, eager_shrinking: None) -> None:
    problem = case.problem if bias == "free" else zoo.without_bias(case).problem
    eps = 1e-3 * max(1.0, float(np.abs(kernels.diagonal(problem.rows, problem.kernel)).max())) ** 0.5
    state, progress = run(problem, eps, working_set=working_set)
    assert progress.done
    K = oracle.kernel_matrix(problem)
    beta = oracle.beta_of(problem, smo.solution(state))
    rounding = 1e-13 * float(np.abs(K).max()) * float(np.abs(beta).sum())
    assert oracle.violation(K, problem, beta) <= eps + rounding
    whole, _ = run(problem, eps)
    assert len(whole.K) > working_set
    other = oracle.beta_of(problem, smo.solution(whole))
    slack = eps * float(problem.upper.sum())
    assert abs(oracle.dual_objective(K, problem.y, beta) - oracle.dual_objective(K, problem.y, other)) <= slack


@pytest.mark.parametrize("budget", [1, 7, 1000])
@pytest.mark.parametrize("bias", ["free", "none"])
def test_cutting_into_calls_changes_nothing_over_many_rounds(budget: int, bias: str, eager_shrinking: None) -> None:
    case = zoo.Case("large", zoo.noisy(400))
    problem = case.problem if bias == "free" else zoo.without_bias(case).problem
    (one, first), (other, second) = (run(problem, budget=b, working_set=24) for b in (EVERY, budget))
    assert one.rounds == other.rounds > 10
    assert first == second
    assert np.array_equal(one.variables.whole.beta, other.variables.whole.beta)


@pytest.mark.parametrize("budget", [100, 333])
def test_F_inside_an_open_block_is_known_in_float64(budget: int) -> None:
    """Steps keep it in float32; what a run cut short reports comes from the float32 kernel values, summed in float64."""
    problem = zoo.noisy()
    state = smo.start(problem, smo.Options(working_set=64), 1e-3, seed=0)
    smo.advance(state, budget)
    while state.block is None:  # a call may end with a round
        smo.advance(state, 20)
    assert state.block.F.dtype == np.float32
    every = np.arange(problem.n)
    K = state.variables.engine.block(every, every).astype(np.float64)
    beta, F = smo_state.current(state)
    inside = state.variables.active.number[state.block.place]
    assert np.count_nonzero(beta[inside]) > 10
    exact = (problem.y - K @ beta)[inside]
    assert np.abs(F[inside] - exact).max() <= 1e-13 * float(np.abs(beta).sum())
    kept = state.block.F - (exact - exact.mean())
    assert np.ptp(kept) < 1e-5 * float(np.abs(beta).sum())


def test_rounds_grow_with_the_support_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where most variables end at β = 0, few of them could move in a first round."""
    choose = active.ActiveSet.choose
    asked: list[tuple[int, int]] = []

    def asks(self: active.ActiveSet, size: int, *rest: Any) -> Ints:
        if len(self.active.number) > 1536:
            asked.append((int(np.count_nonzero(self.active.beta)), size))
        return choose(self, size, *rest)

    monkeypatch.setattr(active.ActiveSet, "choose", asks)
    run(zoo.noisy(2500, C=1.0))
    assert asked[0] == (0, 512)
    assert all(size == min(1536, max(512, 4 * n_support)) for n_support, size in asked)
    assert len({size for _, size in asked}) > 2


def test_support_vectors_are_counted_whether_dropped_or_inside_a_round(eager_shrinking: None) -> None:
    problem = zoo.noisy()
    state = smo.start(problem, smo.Options(working_set=32), 1e-3, seed=0)
    told = smo.advance(state, 1).n_support
    while state.block is None or state.variables.is_whole:
        told = smo.advance(state, 10).n_support
    assert told == smo.solution(state).n_support > np.count_nonzero(state.variables.active.beta)


def test_values_that_bring_variables_back_are_counted_when_the_engine_changes(eager_shrinking: None) -> None:
    problem = zoo.noisy()
    state = smo.start(problem, smo.Options(working_set=32), 1e-3, seed=0)
    while state.variables.is_whole:
        smo.advance(state, 10)
    for _ in range(10):  # β changes that those dropped have yet to hear of
        smo.advance(state, 10)
    assert not state.variables.is_whole
    old = state.variables.engine
    before = old.evaluations
    smo_state.use(state, Engine(problem.rows, problem.kernel, "f8"))
    assert old.evaluations > before
    assert smo.advance(state, 0).kernel_evaluations == old.evaluations + state.variables.engine.evaluations


@pytest.mark.parametrize("n", [12, 300])
def test_of_a_matrix_that_is_not_symmetric_the_model_is_certified_and_not_the_transposes(n: int) -> None:
    """f(x_i) takes row i of the file, steps take it for column i."""
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 3)), np.where(np.arange(n) % 2, 1.0, -1.0)
    problem = zoo.precomputed(X @ X.T + 0.3 * rng.normal(size=(n, n)), y, 10.0)
    result = solve(smo, problem, smo.Options(), eps=1e-3, limits=Limits(max_iter=20_000))
    fresh = certify(problem, result.solution)
    assert result.certificate.violation == pytest.approx(fresh.violation, abs=1e-9)
    assert result.certificate.primal == pytest.approx(fresh.primal, rel=1e-9)
    assert (result.status is Status.CONVERGED) <= (fresh.violation <= 1e-3)


def test_dropped_variables_come_back_with_the_right_F(eager_shrinking: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """F of variables dropped at different rounds equals −p − Kβ afresh, to float32 kernel rounding."""
    problem = zoo.noisy()
    K = oracle.kernel_matrix(problem)
    drops: list[int] = []
    restore = active.ActiveSet.restore

    def checked(variables: active.ActiveSet, places: Ints) -> Ints:
        drops.append(len(variables.drops))
        places = restore(variables, places)
        beta, F = variables.current()
        assert np.abs(F - (problem.y - K @ beta)).max() <= 1e-6 * np.abs(beta).sum()
        return places

    monkeypatch.setattr(active.ActiveSet, "restore", checked)
    state = smo.start(problem, smo.Options(working_set=32), 1e-3, seed=0)
    monkeypatch.setattr(smo, "_SHRINK_ROUNDS", 1)
    while not smo.advance(state, 50).done and not drops:
        pass
    assert max(drops) > 2


def test_shrinking_changes_the_work_and_not_the_answer() -> None:
    problem = zoo.noisy()
    K = oracle.kernel_matrix(problem)
    values, evaluations = [], []
    for shrinking in (True, False):
        state, progress = run(problem, 1e-4, working_set=64, shrinking=shrinking)
        beta = oracle.beta_of(problem, smo.solution(state))
        values.append(oracle.dual_objective(K, problem.y, beta))
        evaluations.append(progress.kernel_evaluations)
        assert oracle.violation(K, problem, beta) <= 1e-4
    assert values[0] == pytest.approx(values[1], rel=1e-7)
    assert evaluations[0] < evaluations[1]


def coarse_problems() -> Iterator[Problem]:
    X, y = zoo.points(300, 4, seed=12)
    yield zoo.problem(X + 3.0, y, Kernel(RBF, 0.3), 1e4)
    yield zoo.problem(X * 30.0, y, Kernel(LINEAR), 1e2)
    yield zoo.problem(X * 10.0, y, Kernel(RBF, 0.02), 1e5)


@pytest.mark.parametrize("problem", list(coarse_problems()), ids=["rbf far from the origin", "linear unscaled", "rbf, C 1e5"])
def test_converged_holds_in_float64_where_float32_is_too_coarse(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "suited", lambda *rows_and_kernel: ("f4", layouts.layout_of(*rows_and_kernel, "f4")))
    state = smo.start(problem, smo.Options(working_set=64), 1e-3, seed=0)
    assert state.variables.engine.packed.real == "f4"
    progress = smo.advance(state, 3_000_000)
    if progress.done:
        K = oracle.kernel_matrix(problem)
        beta = oracle.beta_of(problem, smo.solution(state))
        assert oracle.violation(K, problem, beta) <= 1e-3 + 1e-14 * np.abs(K).max() * np.abs(beta).sum()
    else:
        assert progress.violation > 1e-3


def test_training_turns_to_float64_when_corrections_do_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """gamma‖x‖² = 1e4 leaves float32 kernels three digits; the answer is right all the same."""
    X, y = zoo.points(300, 4, seed=13)
    X += 100.0
    X[0] = 0.0  # else rows would be moved to the origin
    problem = zoo.problem(X, y, Kernel(RBF, 0.5), 100.0)
    monkeypatch.setattr(kernels, "suited", lambda *rows_and_kernel: ("f4", layouts.layout_of(*rows_and_kernel, "f4")))
    state, progress = run(problem, working_set=64)
    assert progress.done
    assert state.variables.engine.packed.real == "f8"
    K = oracle.kernel_matrix(problem)
    assert oracle.violation(K, problem, oracle.beta_of(problem, smo.solution(state))) <= 1e-3 + 1e-7


def test_a_block_that_float32_makes_indefinite_turns_to_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values up to 3e6 and C 1e8: pair steps on rounded kernel values would climb for ever."""
    monkeypatch.setattr(smo, "_MOST_UNFINISHED", 20_000)
    X, y = zoo.points(90, 6, seed=14)
    problem = zoo.problem(np.floor(4 * X) / 4 * 1e6 + 7e5, y, Kernel(LINEAR), 1e8)
    state = smo.start(problem, smo.Options(working_set=32), 1e-3, seed=0)
    assert state.variables.engine.packed.real == "f4"
    previous = 0.0
    K = oracle.kernel_matrix(problem)
    for _ in range(40):
        smo.advance(state, 20_000)
        if state.variables.engine.packed.real == "f8":
            value = oracle.dual_objective(K, problem.y, smo_state.current(state)[0])
            assert previous == 0.0 or value >= previous - 1e-9 * abs(previous)
            previous = value
    assert state.variables.engine.packed.real == "f8"


def test_rounds_that_cannot_move_turn_to_float64_with_variables_dropped(
    monkeypatch: pytest.MonkeyPatch, eager_shrinking: None
) -> None:
    """An idle round is claimed while some variables are dropped; the run goes on with all of them, to the same end."""
    open_round, dropped = smo._open_round, []

    def claim_idle(state: smo_state.State) -> None:
        if not dropped and not state.variables.is_whole and state.rounds > 20:
            dropped.append(state.problem.n - len(state.variables.active.number))
            state.idle = True
        open_round(state)

    monkeypatch.setattr(smo, "_open_round", claim_idle)
    problem = zoo.noisy()
    state, progress = run(problem, working_set=64)
    assert dropped
    assert progress.done
    assert state.variables.engine.packed.real == "f8"
    K = oracle.kernel_matrix(problem)
    assert oracle.violation(K, problem, oracle.beta_of(problem, smo.solution(state))) <= 1e-3 + 1e-9


def test_responses_handed_on_certify_as_float64_ones_do() -> None:
    """Those of examples beyond the margin are rough, which no figure shows, and those of vectors at C are left out."""
    problem = zoo.noisy()
    state, progress = run(problem, working_set=64)
    assert progress.done
    assert state.variables.engine.packed.real == "f4"
    found = smo.solution(state)
    assert found.responses is not None
    known = ~np.isnan(found.responses)
    at_bound = found.origin[np.abs(found.coef) >= 3.0]
    assert known.sum() > problem.n // 2 > len(at_bound) > np.count_nonzero(known[at_bound])
    exact = oracle.kernel_matrix(problem)[:, found.origin] @ found.coef
    assert 1e-9 < np.abs(found.responses - exact)[known].max() < 1e-4
    one, other = certify(problem, found), certify(problem, replace(found, responses=None))
    for name in ("primal", "dual", "violation"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-12)


def test_a_start_counts_as_moved_from_0() -> None:
    """F of a given start comes from float32 values too, and the margin of the last check grows with it."""
    problem = zoo.noisy()
    assert run(problem)[0].drift2 > 0.0
    alpha = np.full(problem.n, 0.5)
    state = smo.start(replace(problem, start=alpha), smo.Options(working_set=64), 1e-3, seed=0)
    assert state.drift2 == pytest.approx(0.25 * problem.n)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_newton_steps_end_an_ill_conditioned_run(bias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With them and without: the same optimum; with them it takes a fraction of the pair steps. Rounds are on their own."""
    monkeypatch.setattr(smo_pace, "_NEAR_SHARE", 0.0)
    steps = np.zeros(2)
    for seed in (20, 21, 22):
        X, y = zoo.points(700, 6, seed=seed, noise=0.3)
        problem = replace(zoo.problem(X, y, Kernel(RBF, 0.05), 300.0), bias=bias)
        K = oracle.kernel_matrix(problem)
        found = []
        for start in (1e4, np.inf):
            monkeypatch.setattr(smo_pace, "_NEWTON_START", start)
            state, progress = run(problem, 1e-4, working_set=64)
            assert progress.done
            beta = oracle.beta_of(problem, smo.solution(state))
            assert oracle.violation(K, problem, beta) <= 1e-4 + 1e-9
            found.append((oracle.dual_objective(K, problem.y, beta), progress.steps))
        assert abs(found[0][0] - found[1][0]) <= 1e-6 * abs(found[1][0])
        steps += [count for _, count in found]
    assert steps[0] < 0.7 * steps[1]


@pytest.mark.parametrize("bias", ["free", "none"])
def test_minima_in_the_span_of_rounds_shorten_an_ill_conditioned_run(bias: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With them and without: the same optimum, and at most 70 % of the kernel values; Newton steps are kept out of it."""
    monkeypatch.setattr(smo_pace, "_NEWTON_START", np.inf)
    X, y = zoo.points(1500, 6, seed=21, noise=0.3)
    problem = replace(zoo.problem(X, y, Kernel(RBF, 0.5), 300.0), bias=bias)
    K = oracle.kernel_matrix(problem)
    found = []
    for share in (smo_pace._NEAR_SHARE, 0.0):
        monkeypatch.setattr(smo_pace, "_NEAR_SHARE", share)
        state, progress = run(problem, 1e-3, working_set=128)
        assert progress.done
        beta = oracle.beta_of(problem, smo.solution(state))
        assert oracle.violation(K, problem, beta) <= 1e-3 + 1e-9
        found.append((oracle.dual_objective(K, problem.y, beta), progress.kernel_evaluations))
    assert abs(found[0][0] - found[1][0]) <= 1e-6 * abs(found[1][0])
    assert found[0][1] < 0.7 * found[1][1]


@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_stalled_run_returns_to_the_least_primal_objective_noted(bias: str) -> None:
    """Of three β: the one in the middle of a run is better than 0 and than one far off."""
    problem = replace(zoo.noisy(300, C=100.0), bias=bias)
    state = smo.start(problem, smo.Options(working_set=32), 1e-3, 0)
    smo.advance(state, 4000)
    middle = smo_state.current(state)[0]
    primal = []
    for beta in (np.zeros(300), middle, 0.5 * problem.y * problem.upper, np.zeros(300)):
        smo_state.take(state, beta)
        smo_state.note(state)
        primal.append(certify(problem, smo.solution(state)).primal)
    assert primal[1] < min(primal[0], primal[2])
    smo_state.return_to_the_best(state)
    assert certify(problem, smo.solution(state)).primal == pytest.approx(primal[1], rel=1e-12)


@pytest.mark.parametrize(
    ("config", "n", "d", "apart", "scale"),
    [
        (TrainConfig(kernel="linear", solver="smo", eps=1e-308), 60, 3, 0.3, 1.0),
        (TrainConfig(kernel="linear", solver="newton", eps=1e-308), 60, 3, 0.3, 1.0),
        (TrainConfig(gamma=1.0, C=100.0, eps=1e-16), 40, 2, 0.5, 30.0),
    ],
    ids=["w", "newton", "interior"],
)
def test_a_tolerance_beyond_all_numbers_ends_all_the_same(
    config: TrainConfig, n: int, d: int, apart: float, scale: float
) -> None:
    """Where steps, rounds and complementarity come to nothing."""
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = scale * (np.random.default_rng(0).normal(size=(n, d)) + apart * y[:, None])
    found = fit(Dataset(Rows.from_dense(X), y), config)
    assert found.status is Status.STALLED
    assert 0.0 <= found.certificate.gap <= 1e-9 * found.certificate.primal


def test_kernel_values_that_overflow_end_a_small_training() -> None:
    data = Dataset(Rows.from_dense(np.array([[1e5], [3.0]])), np.array([1.0, -1.0]))
    found = fit(data, TrainConfig(kernel="polynomial", gamma=1.0, degree=50))
    assert found.status is Status.STALLED
