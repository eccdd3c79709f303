"""LASVM against the algorithm written plainly: the same orders and draws, a dense kernel matrix, every g from scratch."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest
from naive_lasvm import EPS, Naive, beta, naive_run
from oracle import beta_of, kernel_matrix
from zoo import named, noisy, points, problem

from svmkit import solvers
from svmkit.data import Rows
from svmkit.engine import rng, slots, support
from svmkit.engine.kernels import Engine, cross_apply
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, Kernel, Problem, Stream
from svmkit.solvers import lasvm, lasvm_selection
from svmkit.solvers.base import run
from svmkit.trace import Status

EVERY = 10**9


VARIANTS: list[dict[str, Any]] = [
    {},
    {"epochs": 3},
    {"delta_max": 0.05},
    {"keep_within": 0.3},
    {"keep_within": inf, "epochs": 2},
    {"selection": "gradient", "candidates": 7},
    {"selection": "gradient", "epochs": 2},
    {"selection": "active", "candidates": 7},
    {"selection": "active"},
    {"selection": "autoactive"},
    {"budget": 30, "delta_max": 0.05, "selection": "active"},
]
#: Smaller ones part from the plain run where two extremes are equal to rounding: which of them comes first depends on slots.
BUDGETS: list[dict[str, Any]] = [{"budget": 25}, {"budget": 15}]
PROBLEMS = ["rbf", "polynomial", "class weights", "example weights", "300 rows, rbf", "400 sparse rows, rbf"]


@pytest.mark.parametrize(
    ("name", "given"),
    [*product(PROBLEMS[:4], VARIANTS), *product(PROBLEMS[4:], [{}, {"selection": "autoactive"}]), *product(PROBLEMS, BUDGETS)],
    ids=str,
)
def test_every_step_is_that_of_the_plain_algorithm(name: str, given: dict[str, Any]) -> None:
    case = named(name)
    K, options = kernel_matrix(case), lasvm.Options(**given)
    within = options.keep_within if options.selection == "random" else 0.0
    naive = Naive(K, case.y, case.upper, budget=options.budget, keep_within=within)
    state = lasvm.start(case, options, EPS, seed=3)
    steps = 0
    for steps, _ in enumerate(naive_run(case, K, 3, options, naive), 1):
        progress = lasvm.advance(state, 1)
        assert (progress.steps, progress.kernel_evaluations) == (steps, naive.used)
        if steps % 5 == 0:
            found = lasvm.solution(state)
            assert beta(case, found) == pytest.approx(naive.alpha, rel=1e-7, abs=1e-9)
            assert progress.n_support == np.count_nonzero(naive.alpha)
            assert -found.rho == pytest.approx(naive.bias_and_delta()[0], rel=1e-7, abs=1e-9)
            assert progress.violation == pytest.approx(naive.bias_and_delta()[1], rel=1e-6, abs=1e-9)
            assert sorted(state.support.slots[0, state.support.members()]) == sorted(naive.S)
    assert steps >= case.n


def test_as_many_steps_are_taken_as_are_asked_for() -> None:
    """A step an example here, and more examples than wait at a time."""
    state = lasvm.start(named("300 rows, rbf"), lasvm.Options(), EPS, seed=3)
    assert [lasvm.advance(state, steps).steps for steps in (140, 1, 130)] == [140, 141, 271]


@pytest.mark.parametrize("real", ["f4", "f8"])
@pytest.mark.parametrize("selection", ["random", "active"])
def test_memory_and_groups_change_only_what_is_counted(real: str, selection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen rows kept in place of all, slots that have to be added, groups of any size: the same bytes, unless more stay."""
    X, y = points(400, 5, seed=21, noise=0.6)
    case = problem(X, y, Kernel(RBF, 0.3), 3.0)
    monkeypatch.setattr(lasvm, "Engine", lambda rows, kernel, real_given: Engine(rows, kernel, real))
    options = lasvm.Options(selection=selection, candidates=5, keep_within=0.0)
    runs = []
    for cache_mb, staged in ((100.0, 128), (100.0, 1), (1e-3, 128), (1e-3, 7), (0.5, 128)):
        monkeypatch.setattr(support, "STAGED", staged)
        state = lasvm.start(case, replace(options, cache_mb=cache_mb), EPS, seed=1)
        progress = lasvm.advance(state, EVERY)
        runs.append((lasvm.solution(state), progress))
        if cache_mb < 0.1:
            assert state.support.K.shape[0] == 16
            assert staged < 128 or state.support.K.shape[1] > 272
    for found, progress in runs[1:]:
        assert found.coef.tobytes() == runs[0][0].coef.tobytes()
        assert (found.rho, progress.steps) == (runs[0][0].rho, runs[0][1].steps)
    counts = [progress.kernel_evaluations for _, progress in runs]
    assert counts[0] == counts[1] < min(counts[2:4])


def test_kernel_values_of_an_example_that_leaves_at_once_count_if_it_has_had_a_step() -> None:
    """Two do here whose α the next step takes back to 0, while others stay."""
    X, y = points(150, 3, seed=31, noise=0.6)
    case = problem(X, y, Kernel(RBF, 0.3), 0.1)
    naive, state = Naive(kernel_matrix(case), case.y, case.upper), lasvm.start(case, lasvm.Options(), EPS, seed=1)
    for _ in naive_run(case, naive.K, 1, lasvm.Options(), naive):
        assert lasvm.advance(state, 1).kernel_evaluations == naive.used


@pytest.mark.parametrize("staged", [1, 7])
def test_groups_change_nothing(staged: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = points(400, 5, seed=21, noise=0.6)
    case = problem(X, y, Kernel(RBF, 0.3), 3.0)
    whole = run(lasvm, case, lasvm.Options(), eps=EPS, seed=1)
    monkeypatch.setattr(support, "STAGED", staged)
    cut = run(lasvm, case, lasvm.Options(), eps=EPS, seed=1)
    assert cut.solution.coef.tobytes() == whole.solution.coef.tobytes()
    assert cut.kernel_evaluations == whole.kernel_evaluations


@pytest.mark.parametrize("room", [0, 60, 110])
def test_members_stay_only_while_the_kernel_values_of_all_find_room(room: int) -> None:
    case = named("300 rows, rbf")
    K, sizes, stayed = kernel_matrix(case), [], []
    cache_mb = 8 * (room + 2 * support.STAGED) ** 2 / 2**20
    naive, state = Naive(K, case.y, case.upper, room=room), lasvm.start(case, lasvm.Options(cache_mb=cache_mb), EPS, seed=3)
    for _ in naive_run(case, K, 3, lasvm.Options(), naive):
        progress = lasvm.advance(state, 1)
        assert sorted(state.support.slots[0, state.support.members()]) == sorted(naive.S)
        assert progress.kernel_evaluations == naive.used or room == 0  # then some rows are given up, and count again
        sizes.append(len(naive.S))
        stayed.append(naive.staying)
    assert max(sizes) > room
    assert (max(stayed) > 0) == (room > 0)
    assert beta(case, lasvm.solution(state)) == pytest.approx(naive.alpha, rel=1e-7, abs=1e-9)


def test_float32_steps_are_those_of_the_plain_algorithm_on_rounded_values(monkeypatch: pytest.MonkeyPatch) -> None:
    case = named("300 rows, rbf")
    monkeypatch.setattr(lasvm, "_SMALL", 0)
    every = np.arange(case.n)
    engine = Engine(case.rows, case.kernel)
    assert engine.packed.real == "f4"
    K = engine.block(every, every).astype(np.float64)
    naive, state = Naive(K, case.y, case.upper), lasvm.start(case, lasvm.Options(), EPS, seed=0)
    for _ in naive_run(case, K, 0, lasvm.Options(), naive):
        lasvm.advance(state, 1)
    assert beta(case, lasvm.solution(state)) == pytest.approx(naive.alpha, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "selection"),
    [
        *product(["rbf", "class weights"], ["random", "gradient", "active", "autoactive"]),
        *product(["linear", "example weights", "300 rows, rbf", "400 sparse rows, rbf"], ["random"]),
    ],
)
def test_many_epochs_end_at_the_optimum(name: str, selection: str) -> None:
    case = named(name)
    smo = solvers.solver("smo")
    best = run(smo, case, smo.Options(), eps=1e-6).certificate
    found = run(solvers.solver("lasvm"), case, lasvm.Options(epochs=15, selection=selection, delta_max=0.5), eps=1e-6)
    assert found.status is Status.COMPLETED
    assert found.certificate.dual == pytest.approx(best.dual, rel=1e-9)
    assert found.certificate.primal == pytest.approx(best.primal, rel=1e-5)


def test_a_point_of_both_classes_at_the_begin_does_not_end_all_learning() -> None:
    """f is constant then, and every example at g of one of the extremes, which are equal."""
    X = np.concatenate([np.zeros((2, 2)), np.repeat(np.arange(1.0, 31.0), 2)[:, None] * np.tile(np.eye(2), (30, 1))])
    case = problem(X, np.tile([1.0, -1.0], 31), Kernel(RBF, 1.0), 1.0)
    state = lasvm.start_stream(Stream(case.kernel, 1.0, None, "free"), lasvm.Options(), 1e-3, 0)
    lasvm.extend(state, case.rows, case.y, np.ones(case.n))
    f = cross_apply(case.rows, lasvm.solution(state).own, case.kernel, lasvm.solution(state).coef[:, None])[:, 0]
    assert np.mean((f > lasvm.solution(state).rho) == (case.y > 0)) >= 0.95


@pytest.mark.parametrize("kernel", [Kernel(RBF, 0.2), Kernel(LINEAR)])
@pytest.mark.parametrize("C", [1e-5, 1e-3])
def test_the_threshold_is_known_where_every_alpha_is_at_a_bound(kernel: Kernel, C: float) -> None:
    """A small C and unequal classes: b is bounded by examples with α = 0 alone; without them the gap stays at hundredths."""
    X, y = points(300, 4, seed=3, noise=0.1)
    case = problem(X, y, kernel, C)
    found = run(solvers.solver("lasvm"), case, lasvm.Options(epochs=20), eps=1e-6)
    assert found.certificate.gap <= 1e-4 * found.certificate.primal


@pytest.mark.parametrize("selection", ["active", "autoactive", "random"])
def test_only_labels_of_chosen_examples_are_asked_for(selection: str) -> None:
    case = named("300 rows, rbf")
    hidden = replace(case, y=np.ones(case.n))
    options = lasvm.Options(selection=selection, finish=False)
    state = lasvm.start(hidden, options, EPS, seed=4)
    asked = []
    while len(asked) < 60:
        row = lasvm.choose(state)
        asked.append(row)
        lasvm.learn(state, row, case.y[row])
    if selection == "random":
        assert len(set(asked)) == 60
        return
    known = lasvm.start(case, options, EPS, seed=4)
    lasvm.advance(known, 60)
    assert lasvm.solution(state).coef.tobytes() == lasvm.solution(known).coef.tobytes()
    assert set(lasvm.solution(state).origin) <= set(asked)


def test_no_cost_is_too_large_for_separable_data() -> None:
    """α stays where it is as C grows, though it becomes the smallest share of its box."""
    X, y = points(60, 4, seed=3)
    rows, kernel = Rows.from_dense(X), Kernel(RBF, 1.0)
    few, *others = (
        run(lasvm, Problem(rows, y, np.full(60, C), kernel), lasvm.Options(), eps=EPS).solution for C in (1e6, 1e13, 1e90)
    )
    assert len(few.coef) > 30
    for huge in others:
        np.testing.assert_array_equal(huge.origin, few.origin)
        np.testing.assert_allclose(huge.coef, few.coef, rtol=1e-9)


@pytest.mark.parametrize("cache_mb", [100.0, 0.02])
def test_rows_of_members_that_leave_are_free_again(cache_mb: float) -> None:
    """Each row of the store is free or of a member, which knows it."""
    case = noisy(400, C=10.0)
    state = lasvm.start(case, lasvm.Options(cache_mb=cache_mb, finish=False, epochs=2), EPS, 0)
    left = 0
    while not lasvm.advance(state, 10).ended:
        support = state.support
        members = set(support.slot_of[support.slot_of >= 0].tolist())
        owner = support.kept[slots.OWNER]
        rows = np.flatnonzero(owner >= 0)
        free = support.kept[slots.FREE_ROW, : support.counts[slots.N_FREE_ROWS]]
        assert sorted([*rows.tolist(), *free.tolist()]) == list(range(len(support.K)))
        assert set(owner[rows].tolist()) <= members
        assert (support.slots[slots.PLACE, owner[rows]] == rows).all()
        left = max(left, int(support.counts[slots.TOP]) - len(members))
    assert left > 0


def test_a_step_between_near_points_goes_all_the_way() -> None:
    """Their curvature is 4e-8: small, and yet known."""
    case = problem(np.array([[1e-4], [-1e-4]]), np.array([1.0, -1.0]), Kernel(LINEAR), 1e12)
    state = lasvm.start(case, lasvm.Options(finish=False), EPS, 0)
    lasvm.advance(state, EVERY)
    assert beta(case, lasvm.solution(state)) == pytest.approx([5e7, -5e7], rel=1e-9)


def test_labels_come_back_in_any_order_and_for_any_row() -> None:
    """A run of chosen rows is repeated by learning the same rows again; the one that was chosen comes first."""
    case = named("300 rows, rbf")
    state, again = (lasvm.start(case, lasvm.Options(selection="active"), EPS, seed=4) for _ in range(2))
    for _ in range(40):
        row = lasvm.choose(state)
        lasvm.learn(state, row, case.y[row])
        lasvm.learn(again, row, case.y[row])
    assert lasvm.solution(state).coef.tobytes() == lasvm.solution(again).coef.tobytes()
    assert lasvm.progress(again).kernel_evaluations < lasvm.progress(state).kernel_evaluations
    row = lasvm.choose(state)
    with pytest.raises(ValueError, match=f"row {row} was chosen"):
        lasvm.learn(state, (row + 1) % case.n, 1.0)
    while row >= 0:
        lasvm.learn(state, row, case.y[row])
        row = lasvm.choose(state)
    assert state.selection is not None
    assert sorted(state.selection.order) == list(range(case.n))


def test_an_example_that_was_put_back_may_be_chosen_next() -> None:
    X, y = points(40, 3, seed=0)
    state = lasvm.start(problem(X, y, Kernel(RBF, 0.5)), lasvm.Options(selection="active"), EPS, 0)
    for label in (1.0, -1.0):
        lasvm.learn(state, int(np.flatnonzero(y == label)[0]), label)
    row = lasvm.choose(state)
    lasvm.put_back(state)
    assert lasvm.choose(state) == row
    assert state.selection is not None
    assert sorted(state.selection.order) == list(range(40))


def test_a_warm_start_goes_on_from_what_it_is_given() -> None:
    case = named("300 rows, rbf")
    K = kernel_matrix(case)
    smo = solvers.solver("smo")
    first = run(smo, case, smo.Options(), eps=0.5)
    alpha = case.y * beta_of(case, first.solution)
    warm = replace(case, start=alpha)
    state = lasvm.start(warm, lasvm.Options(), EPS, seed=0)
    assert beta_of(case, lasvm.solution(state)) == pytest.approx(case.y * alpha, abs=1e-15)
    s = first.solution.n_support
    assert lasvm.progress(state).kernel_evaluations == s * (s - 1) // 2
    naive = Naive(K, case.y, case.upper)
    naive.alpha, naive.S = case.y * alpha, np.flatnonzero(alpha).tolist()
    naive.used, naive.seen = s * (s - 1) // 2, s
    order = [k for k in rng.permutation(0, 0, case.n).tolist() if k not in naive.S]
    begin = [k for label in (1, -1) for k in [k for k in order if case.y[k] == label][:5]]
    order = [k for k in order if k in begin] + [k for k in order if k not in begin]
    for steps, k in enumerate(order, 1):
        for _ in naive.learn(k):
            progress = lasvm.advance(state, 1)
        assert progress.steps == steps
        assert progress.kernel_evaluations == naive.used
        assert beta(case, lasvm.solution(state)) == pytest.approx(naive.alpha, rel=1e-7, abs=1e-9)


def test_extremes_that_rounding_keeps_apart_do_not_hold_an_example_for_ever() -> None:
    """Kernel values of 10³⁶ leave no digit of a violation of .01."""
    rng = np.random.default_rng(0)
    case = problem(rng.normal(size=(60, 3)) + 1e6, np.where(rng.random(60) < 0.5, 1.0, -1.0), Kernel(POLYNOMIAL, 0.3, 1.0, 3))
    state = lasvm.start(case, lasvm.Options(delta_max=0.01, finish=False), EPS, 0)
    assert lasvm.advance(state, 5_000_000).completed


def test_a_budget_below_what_the_model_to_go_on_from_has_is_refused() -> None:
    case = named("400 sparse rows, rbf")
    given = np.zeros(case.n)
    given[:30] = 1e-3
    assert lasvm.start(replace(case, start=given), lasvm.Options(budget=30), EPS, 1).support.size == 30
    with pytest.raises(UsageError, match=r"budget=29: .*--init.* has 30 support vectors already; allow as many at least$"):
        lasvm.start(replace(case, start=given), lasvm.Options(budget=29), EPS, 1)


@pytest.mark.parametrize("cache_mb", [100.0, 0.001])
def test_a_budget_bounds_the_members_of_a_long_run(cache_mb: float) -> None:
    """Σ α stays 0, g is that of the α, both classes stay, and what there is no memory for is computed again."""
    case = named("400 sparse rows, rbf")
    K, state = (
        kernel_matrix(case),
        lasvm.start(case, lasvm.Options(budget=40, epochs=3, cache_mb=cache_mb, finish=False), EPS, 1),
    )
    sizes = []
    while not (progress := lasvm.advance(state, 1)).completed:
        sizes.append(state.support.size)
    assert max(sizes) == 40 == sizes[-1]
    found = beta(case, lasvm.solution(state))
    assert abs(found.sum()) < 1e-12
    members = state.support.members()
    rows = state.support.slots[0, members]
    assert abs(case.y[rows].sum()) < 20
    assert state.support.reals[1, members] == pytest.approx((case.y - K @ found)[rows], abs=1e-10)
    assert progress.n_support <= 40


@pytest.mark.parametrize("selection", ["active", "autoactive", "gradient"])
def test_each_example_is_chosen_once_where_kernel_values_overflow(selection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = points(60, 3, seed=8)
    X[::7] *= 2e4
    case = problem(X, y, Kernel(POLYNOMIAL, 1.0, 0.0, 100))
    chosen: list[int] = []
    take_out = lasvm_selection.Selection.take_out

    def noted(self: lasvm_selection.Selection, row: int) -> None:
        chosen.append(row)
        take_out(self, row)

    monkeypatch.setattr(lasvm_selection.Selection, "take_out", noted)
    state = lasvm.start(case, lasvm.Options(selection=selection, candidates=10), EPS, 0)
    while len(chosen) < 60:
        lasvm.advance(state, 1)
    assert sorted(chosen) == list(range(60))


@pytest.mark.parametrize("selection", ["active", "gradient"])
def test_a_candidate_whose_kernel_values_overflow_hides_no_other(selection: str) -> None:
    X, y = points(60, 3, seed=8)
    X[::7] *= 2e4
    case = problem(X, y, Kernel(POLYNOMIAL, 1.0, 0.0, 100))
    state = lasvm.start(case, lasvm.Options(selection=selection, candidates=60), EPS, 0)
    learned = np.arange(1, 7), np.arange(8, 14)
    for row in np.concatenate(learned).tolist():
        lasvm.learn(state, row, case.y[row])
    left = np.delete(np.arange(60), np.concatenate(learned))
    f = state.support.look_at(left)[1]
    assert 0 < np.isnan(f).sum() < len(left)
    assert lasvm.choose(state) == left[np.nanargmin(np.abs(f) if selection == "active" else case.y[left] * f)]
