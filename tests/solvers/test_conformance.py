"""What every registered solver must do on every problem of the zoo. It may decline (``refusal``); none is exempt."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from itertools import product
from statistics import median

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import best_gap, beta_of, dual_objective, kernel_matrix, optimum, same_bytes, sums_at, violation
from zoo import CASES, LARGER, SMALL, Case, named, points, problem, without_bias

from svmkit import parallel, solvers
from svmkit.certificate import UNKNOWN, certify
from svmkit.data import Floats
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, SIGMOID, Kernel, Problem, Solution
from svmkit.solvers.base import Solver, refusal, run
from svmkit.trace import Limits, Progress, Status

EVERY = 10**9
#: Solvers whose Q is rounded to float32: each entry is off by at most 2⁻²⁴ of the largest kernel value.
ROUNDED_Q = {"pair"}
EXACT = [name for name in solvers.NAMES if solvers.solver(name).EXACT]
INEXACT = [name for name in solvers.NAMES if name not in EXACT]

solver_names = pytest.mark.parametrize("name", solvers.NAMES)
exact_names = pytest.mark.parametrize("name", EXACT)
inexact_names = pytest.mark.parametrize("name", INEXACT)
BOTH_BIASES = [*SMALL, *LARGER, *map(without_bias, SMALL)]
PLAIN = [named("rbf"), named("linear"), named("300 rows, rbf"), named("two rows")]


def begin(name: str, case: Problem, eps: float = 1e-3, seed: int = 0) -> tuple[Solver, object]:
    solver = solvers.solver(name)
    return solver, solver.start(case, solver.Options(), eps, seed)


def finish(name: str, case: Problem, eps: float = 1e-3, seed: int = 0, budget: int = EVERY) -> tuple[Progress, Solution]:
    """Runs in calls of ``budget`` steps until the solver says that it has ended."""
    solver, state = begin(name, case, eps, seed)
    progress = solver.advance(state, budget)
    while not progress.ended:
        progress = solver.advance(state, budget)
    return progress, solver.solution(state)


def own_form(name: str, case: Problem) -> Problem:
    """``case`` in the bias that the solver takes where none is asked for."""
    return replace(case, bias=solvers.solver(name).BIASES[0])


def declines(name: str, case: Problem) -> bool:
    """Whether the solver has a reason not to take ``case``."""
    return refusal(solvers.solver(name), case) is not None


def assert_valid(name: str, found: Solution, case: Problem) -> None:
    """Numbers that a model can be made of. An exact solver's is a point of the dual's feasible set."""
    assert len(found.coef) == len(found.origin) == found.n_support
    assert np.count_nonzero(found.origin < 0) == found.own.n in (0, found.n_support)
    assert np.isfinite(found.coef).all()
    assert math.isfinite(found.rho)
    assert case.bias == "free" or found.rho == 0
    named = found.origin[found.origin >= 0]
    assert len(np.unique(named)) == len(named)
    assert np.isfinite(found.own.data).all()
    if name in EXACT and len(named) == found.n_support:
        alpha = found.coef * case.y[found.origin]
        assert (alpha >= 0).all()
        assert (alpha <= case.upper[found.origin]).all()
        assert case.bias == "none" or abs(found.coef.sum()) <= 1e-10 * np.abs(found.coef).sum()


def rounding(name: str, K: Floats, beta: Floats) -> float:
    """How far the violation may be off for a solver's own rounding of Q: two gradients, each Σ|β| · 2⁻²⁴ max|K|, and as
    much again for bringing them up to date step by step."""
    return 2**-22 * float(np.abs(beta).sum() * np.abs(K).max()) if name in ROUNDED_Q else 0.0


def float64_noise(K: Floats, beta: Floats) -> float:
    """The float64 rounding of a gradient, which oracle and solver sum in different orders."""
    return 1e-12 + 2**-50 * float(np.abs(beta).sum() * np.abs(K).max())


# --- every solver ---------------------------------------------------------------------------------------------------------


@solver_names
@pytest.mark.parametrize("case", BOTH_BIASES, ids=str)
def test_it_gives_a_reason_or_runs(name: str, case: Case) -> None:
    solver = solvers.solver(name)
    reason = refusal(solver, case.problem)
    if reason is not None:
        assert reason.strip()
        with pytest.raises(UsageError) as refused:
            run(solver, case.problem, solver.Options(), eps=1e-3)
        assert reason in str(refused.value)
        return
    result = run(solver, case.problem, solver.Options(), eps=1e-3)
    assert result.status in (Status.CONVERGED, Status.COMPLETED)
    assert_valid(name, result.solution, case.problem)


@solver_names
def test_every_option_says_what_it_is(name: str) -> None:
    assert all(option.metadata.get("help") for option in fields(solvers.solver(name).Options))


@solver_names
def test_a_plain_problem_is_always_taken(name: str) -> None:
    """A linear one; a kernel, too, unless the reason says how it can be had."""
    X, y = points(30, 3, seed=9)
    assert not declines(name, own_form(name, problem(X, y, Kernel(LINEAR))))
    assert "--map" in (refusal(solvers.solver(name), own_form(name, problem(X, y, Kernel(RBF, 0.5)))) or "--map")


@solver_names
def test_it_takes_the_biases_it_names_and_no_other(name: str) -> None:
    solver, plain = solvers.solver(name), named("linear")
    assert solver.BIASES
    for bias in ("free", "none"):
        reason = refusal(solver, replace(plain, bias=bias))
        assert (reason is None) == (bias in solver.BIASES)
        assert reason is None or f"use --bias {solver.BIASES[0]}" in reason


@solver_names
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_cutting_into_calls_changes_nothing(name: str, case: Case) -> None:
    asked = own_form(name, case.problem)
    if refusal(solvers.solver(name), asked) is None:
        whole = finish(name, asked)
        for budget in (1, 7):
            pieces = finish(name, asked, budget=budget)
            assert pieces[0] == whole[0]
            assert same_bytes(pieces[1], whole[1])


@solver_names
@pytest.mark.parametrize("case", LARGER, ids=str)
def test_same_seed_same_bytes_whatever_the_threads(name: str, case: Case, threads: None) -> None:
    asked = own_form(name, case.problem)
    if refusal(solvers.solver(name), asked) is None:
        runs = []
        for count in (1, 2, 2):
            parallel.use_threads(count)
            runs.append(finish(name, asked, seed=5))
        for progress, found in runs[1:]:
            assert progress == runs[0][0]
            assert same_bytes(found, runs[0][1])


@solver_names
@pytest.mark.parametrize("case", [*SMALL, *map(without_bias, SMALL)], ids=str)
def test_solution_at_any_time_without_a_trace(name: str, case: Case) -> None:
    if refusal(solvers.solver(name), case.problem) is not None:
        return
    solver, watched = begin(name, case.problem)
    _, alone = begin(name, case.problem)
    assert_valid(name, solver.solution(watched), case.problem)
    progress = Progress(0, 0)
    while not progress.ended:
        progress = solver.advance(watched, 3)
        assert solver.advance(alone, 3) == progress
        first, again = solver.solution(watched), solver.solution(watched)
        assert_valid(name, first, case.problem)
        assert same_bytes(first, again)
    assert same_bytes(solver.solution(alone), solver.solution(watched))


@solver_names
@pytest.mark.parametrize("case", [named("rbf"), named("linear"), named("300 rows, rbf")], ids=lambda case: f"n={case.n}")
def test_counts_only_grow(name: str, case: Problem) -> None:
    if declines(name, own_form(name, case)):
        return
    solver, state = begin(name, own_form(name, case))
    before = Progress(0, 0)
    while not before.ended:
        now = solver.advance(state, 10)
        assert before.steps <= now.steps <= before.steps + 10
        assert now.kernel_evaluations >= max(1, before.kernel_evaluations)
        before = now
    assert before.steps > 0


@solver_names
def test_nothing_is_printed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    for case in PLAIN:
        if not declines(name, own_form(name, case)):
            finish(name, own_form(name, case))
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


EXTREMES = [
    (kernel, C, bias)
    for kernel in (Kernel(LINEAR), Kernel(RBF, 0.5), Kernel(SIGMOID, 0.5, 1.0))
    for C in (1e-6, 1e8)
    for bias in ("free", "none")
]


@solver_names
@pytest.mark.parametrize(("kernel", "C", "bias"), EXTREMES)
def test_extreme_costs_end_with_the_truth(name: str, kernel: Kernel, C: float, bias: str) -> None:
    X, y = points(40, 4, seed=11)
    case = replace(problem(X, y, kernel, C), bias=bias)
    solver = solvers.solver(name)
    if refusal(solver, case) is not None:
        return
    result = run(solver, case, solver.Options(), eps=1e-3, limits=Limits(max_iter=20_000, time_limit_s=5.0))
    assert_valid(name, result.solution, case)
    assert result.steps <= 20_000
    if name in EXACT:
        K, beta = kernel_matrix(case), beta_of(case, result.solution)
        converged = violation(K, case, beta) <= 1e-3 + rounding(name, K, beta) + float64_noise(K, beta)
        assert converged or result.status != Status.CONVERGED


@solver_names
@pytest.mark.parametrize(("scale", "C"), [(1e8, 0.01), (1e30, 0.01), (1e140, 0.01), (1e149, 1e100), (1e-120, 1e-40)])
@pytest.mark.parametrize("kernel", [Kernel(LINEAR), Kernel(POLYNOMIAL, 0.5, 0.5, 3)], ids=lambda kernel: kernel.name)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_values_that_overflow_end_in_numbers(name: str, scale: float, C: float, kernel: Kernel) -> None:
    X, y = points(40, 3, seed=13)
    solver = solvers.solver(name)
    for bias in solver.BIASES:
        case = replace(problem(X * scale, y, kernel, C), bias=bias)
        if refusal(solver, case) is not None:
            continue
        result = run(solver, case, solver.Options(), eps=1e-3, limits=Limits(max_iter=20_000, time_limit_s=5.0))
        assert_valid(name, result.solution, case)
        if not (result.status == Status.TIME_LIMIT or result.certificate is UNKNOWN):  # else it may be from float32
            assert_allclose(result.certificate.primal, certify(case, result.solution).primal, rtol=1e-6)
        assert (
            result.status != Status.CONVERGED
            or result.certificate.violation <= 1e-3 + result.certificate.noise
            or name not in EXACT
        )


@solver_names
@pytest.mark.parametrize("label", [1.0, -1.0])
def test_one_class_only_ends(name: str, label: float) -> None:
    X, _ = points(10, 3, seed=12)
    for kernel, bias in product((Kernel(LINEAR), Kernel(RBF, 0.5)), ("free", "none")):
        case = replace(problem(X, np.full(10, label), kernel), bias=bias)
        if refusal(solvers.solver(name), case) is not None:
            continue
        progress, found = finish(name, case)
        assert_valid(name, found, case)
        if bias == "free" and name in EXACT:
            assert progress.done
            assert found.n_support == 0
            assert label * (0.0 - found.rho) >= 1.0  # f = −rho is on the side of the only label, with margin
        elif bias == "free" or kernel.kind == RBF:  # else no hyperplane through the origin has them all on one side
            f = sums_at(case.rows, case, found) - found.rho
            assert (label * f > 0).all()


# --- exact solvers --------------------------------------------------------------------------------------------------------


@exact_names
@pytest.mark.parametrize("eps", [1e-1, 1e-3, 1e-5])
@pytest.mark.parametrize("case", BOTH_BIASES, ids=str)
def test_violation_is_within_eps(name: str, case: Case, eps: float) -> None:
    if refusal(solvers.solver(name), case.problem) is None:
        progress, found = finish(name, case.problem, eps)
        K, beta = kernel_matrix(case.problem), beta_of(case.problem, found)
        assert progress.done
        allowed = eps + rounding(name, K, beta) + float64_noise(K, beta)
        assert violation(K, case.problem, beta) <= allowed
        assert progress.violation <= eps


@exact_names
@pytest.mark.parametrize("case", [c for c in BOTH_BIASES if c.definite and c.problem.n <= 40], ids=str)
def test_objective_is_the_optimum(name: str, case: Case) -> None:
    if refusal(solvers.solver(name), case.problem) is None:
        K = kernel_matrix(case.problem)
        best = optimum(case.problem, K)
        _, found = finish(name, case.problem, 1e-6)
        reached = dual_objective(K, case.problem.y, beta_of(case.problem, found))
        assert reached <= best * (1 + 1e-9) + 1e-12
        assert reached >= best * (1 - 1e-6)


def same_function(K: Floats, case: Problem, one: Floats, other: Floats) -> bool:
    """Whether two dual points are as near in ‖w‖ as their own gaps say they must be: ½‖w − w*‖² ≤ gap."""
    difference = one - other
    apart = math.sqrt(max(0.0, float(difference @ K @ difference)))
    allowed = sum(math.sqrt(2 * max(0.0, best_gap(K, case, beta))) for beta in (one, other))
    return apart <= allowed + 1e-7


VARIED = [c for c in (*SMALL, *map(without_bias, SMALL)) if c.definite and not c.problem.rows.precomputed]


@exact_names
@pytest.mark.parametrize("case", VARIED, ids=str)
def test_the_answer_does_not_depend_on_how_it_is_asked(name: str, case: Case) -> None:
    """Labels flipped, rows in another order, every row twice at half the cost: the same function."""
    asked = case.problem
    if refusal(solvers.solver(name), asked) is not None:
        return
    n, K = asked.n, kernel_matrix(asked)
    beta = beta_of(asked, finish(name, asked, 1e-6)[1])

    flipped = beta_of(asked, finish(name, replace(asked, y=-asked.y), 1e-6)[1])
    assert same_function(K, asked, beta, -flipped)

    order = np.random.default_rng(3).permutation(n)
    shuffled = replace(asked, rows=asked.rows.take(order), y=asked.y[order], upper=asked.upper[order])
    back = np.empty(n)
    back[order] = beta_of(shuffled, finish(name, shuffled, 1e-6)[1])
    assert same_function(K, asked, beta, back)

    twice = np.concatenate([np.arange(n), np.arange(n)])
    doubled = replace(asked, rows=asked.rows.take(twice), y=asked.y[twice], upper=asked.upper[twice] / 2)
    both = beta_of(doubled, finish(name, doubled, 1e-6)[1])
    assert same_function(K, asked, beta, both[:n] + both[n:])


# --- inexact solvers ------------------------------------------------------------------------------------------------------


def excess(case: Problem, found: Solution, best: float) -> float:
    """How far a solution's primal objective lies above the optimum ``best``, relative to that; ‖w‖² and hinge from scratch."""
    f = sums_at(case.rows, case, found) - found.rho
    basis, weights = found.expansion(case.rows)
    norm2 = weights @ sums_at(basis, case, found)
    primal = 0.5 * norm2 + case.upper @ np.maximum(0.0, 1.0 - case.y * f)
    return float(primal / best - 1.0)


MANY = [named("rbf"), named("300 rows, rbf"), named("300 rows, linear")]
WEIGHTED = [named("class weights"), named("example weights")]


@inexact_names
@pytest.mark.parametrize("case", [*PLAIN, *WEIGHTED], ids=lambda case: f"{case.kernel.name}, n={case.n}, C {case.upper[:1]}")
def test_a_run_ends_as_near_the_optimum_as_it_states(name: str, case: Problem) -> None:
    solver = solvers.solver(name)
    for bias in solver.BIASES if solver.ACCURACY is not None else ():
        asked = replace(case, bias=bias)
        if declines(name, asked):
            continue
        best = optimum(asked, kernel_matrix(asked))
        for seed in (0, 1):
            assert -1e-9 <= excess(asked, finish(name, asked, seed=seed)[1], best) <= solver.ACCURACY


@inexact_names
@pytest.mark.parametrize("case", MANY, ids=lambda case: f"{case.kernel.name}, n={case.n}")
def test_more_steps_come_nearer(name: str, case: Problem) -> None:
    """Median over seeds: an eighth of a run is further from the optimum than all of it."""
    asked = own_form(name, case)
    if solvers.solver(name).ACCURACY is None or declines(name, asked):
        return
    best = optimum(asked, kernel_matrix(asked))
    early, late = [], []
    for seed in range(5):
        progress, found = finish(name, asked, seed=seed)
        solver, state = begin(name, asked, seed=seed)
        few = max(1, progress.steps // 8)
        made = solver.advance(state, few)
        while not made.ended and made.steps < few:  # a call may take fewer steps than it is allowed
            made = solver.advance(state, few - made.steps)
        early.append(excess(asked, solver.solution(state), best))
        late.append(excess(asked, found, best))
    assert median(late) < median(early)


def test_the_zoo_says_truly_which_kernels_are_definite() -> None:
    for case in CASES:
        K = kernel_matrix(case.problem)
        assert (np.linalg.eigvalsh(K)[0] >= -1e-9 * np.abs(K).max()) == case.definite, case
