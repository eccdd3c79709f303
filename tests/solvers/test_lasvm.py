"""LASVM against the algorithm written plainly: the same orders and draws, a dense kernel matrix, every g from scratch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from oracle import beta_of, dual_objective, kernel_matrix, violation
from zoo import named, points, problem

from svmkit import solvers
from svmkit.data import Floats, Rows
from svmkit.engine import finishing, reviews, rng, support
from svmkit.engine.kernels import Engine, cross_apply
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, Kernel, Problem, Solution, Stream
from svmkit.solvers import lasvm, lasvm_selection
from svmkit.solvers.base import run
from svmkit.trace import Status

EVERY = 10**9
EPS = 1e-3


@dataclass
class Naive:
    """S as a list, α of every example; ``used`` counts each kernel value between an example and S when it comes."""

    K: Floats
    y: Floats
    upper: Floats
    eps: float = EPS
    budget: int = 0

    def __post_init__(self) -> None:
        self.alpha = np.zeros(len(self.y))
        self.S: list[int] = []
        self.levelled = (-1, -1)
        self.leaving = -1
        self.stale = True
        self.used = 0

    def g(self) -> Floats:
        if self.stale:
            self.gradient, self.stale = self.y - self.K @ self.alpha, False
        return self.gradient

    def extremes(self) -> tuple[int | None, int | None]:
        g, S = self.g(), np.array([s for s in self.S if s != self.leaving], dtype=np.int64)
        up = S[self.alpha[S] < np.maximum(0, self.upper[S] * self.y[S])]
        low = S[self.alpha[S] > np.minimum(0, self.upper[S] * self.y[S])]
        i = int(up[np.argmax(g[up])]) if len(up) else None
        j = int(low[np.argmin(g[low])]) if len(low) else None
        first, second = self.levelled  # the last step has made them equal: the first one counts
        return first if i == second and first in up else i, first if j == second and first in low else j

    def bias_and_delta(self) -> tuple[float, float]:
        g, (i, j) = self.g(), self.extremes()
        ends = [g[s] for s in (i, j) if s is not None]
        return (float(np.mean(ends)) if ends else 0.0), (max(0.0, g[i] - g[j]) if len(ends) == 2 else 0.0)

    def f(self, rows: Any) -> Floats:
        return self.K[rows] @ self.alpha + self.bias_and_delta()[0]

    def step(self, i: int | None, j: int | None) -> bool:
        g = self.g()
        if i is None or j is None or not g[i] - g[j] > self.eps:
            return False
        most = max(0, self.upper[i] * self.y[i]) - self.alpha[i]
        least = self.alpha[j] - min(0, self.upper[j] * self.y[j])
        curvature = max(self.K[i, i] + self.K[j, j] - 2 * self.K[i, j], 1e-12)
        step = min((g[i] - g[j]) / curvature, most, least)
        self.levelled = (i, j) if step < min(most, least) else (-1, -1)
        for k, new in ((i, self.alpha[i] + step), (j, self.alpha[j] - step)):
            ends = [end for end in (0.0, self.upper[k] * self.y[k]) if abs(new - end) < 1e-12 * self.upper[k]]
            self.alpha[k] = ends[0] if ends else new
        self.stale = True
        return True

    def process(self, k: int) -> None:
        i, j = self.extremes()
        if k in self.S or self.upper[k] == 0:
            return
        self.used += len(self.S)
        if (j if self.y[k] > 0 else i) is None and len(self.S) >= 5:
            return  # more of one class than anything can be learned from
        self.S.append(k)
        self.step(*((k, j) if self.y[k] > 0 else (i, k)))

    def reprocess(self) -> bool:
        moved = self.step(*self.extremes())
        (i, j), g = self.extremes(), self.g()
        if i is not None and j is not None:
            zeros = [s for s in self.S if self.alpha[s] == 0]
            gone = [s for s in zeros if (g[s] >= g[i] if self.y[s] < 0 else g[s] <= g[j])]
            if g[i] <= g[j]:
                gone = [s for s in gone if s not in (i, j)]
            self.S = [s for s in self.S if s not in gone]
        return moved

    def learn(self, k: int, delta_max: float = math.inf) -> Iterator[None]:
        """Yields after each step."""
        self.process(k)
        while True:
            moved = self.reprocess()
            over = not moved or self.bias_and_delta()[1] <= delta_max
            while over and self.budget and len(self.S) > self.budget:
                self.retire()
            yield
            if over:
                return

    def retire(self) -> None:
        """The oldest of the larger class leaves, its α passed on."""
        larger = 1 if sum(self.y[self.S]) > 0 else -1
        self.leaving = r = next(s for s in self.S if self.y[s] == larger)
        while self.alpha[r] != 0:
            i, j = self.extremes()
            other = i if self.alpha[r] > 0 else j
            if other is None:
                assert abs(self.alpha[r]) < 1e-12  # what rounding has left
                self.alpha[r] = 0
                break
            end = self.upper[other] * self.y[other]
            room = max(0, end) - self.alpha[other] if self.alpha[r] > 0 else self.alpha[other] - min(0, end)
            step = math.copysign(min(abs(self.alpha[r]), room), self.alpha[r])
            self.alpha[r] -= step
            near = [bound for bound in (0.0, end) if abs(self.alpha[other] + step - bound) < 1e-12 * self.upper[other]]
            self.alpha[other] = near[0] if near else self.alpha[other] + step
            self.levelled, self.stale = (-1, -1), True
        self.S.remove(r)
        self.leaving = -1


def first_order(case: Problem, seed: int, seeded: bool) -> list[int]:
    order = rng.permutation(seed, 0, case.n).tolist()
    if not seeded:
        return order
    first = [[k for k in order if case.y[k] == label][:5] for label in (1, -1)]
    begin = [k for k in order if k in first[0] + first[1]]
    return begin + [k for k in order if k not in begin]


def chosen(naive: Naive, left: list[int], options: lasvm.Options, seed: int, drawn: int) -> tuple[int, int]:
    """The choice among those left, and how many were drawn for it."""
    wanted = 100 if options.selection == "autoactive" else options.candidates
    rows = [left[k] for k in rng.integers(seed, 1 << 32, drawn, wanted, len(left))] if wanted < len(left) else list(left)
    if options.selection == "autoactive":
        b, delta = naive.bias_and_delta()
        inside = [place for place, row in enumerate(rows) if abs(naive.K[row] @ naive.alpha + b) < 1 + delta / 2]
        rows = rows[: inside[4] + 1] if len(inside) >= 5 else rows
    f = naive.f(rows)
    score = naive.y[rows] * f if options.selection == "gradient" else abs(f)
    naive.used += (len(rows) - 1) * len(naive.S)
    return rows[int(np.argmin(score))], len(rows)


def naive_run(case: Problem, K: Floats, seed: int, options: lasvm.Options, naive: Naive) -> Iterator[None]:
    """After each step; S as it is at the begin."""
    drawn = 0
    for epoch in range(options.epochs):
        seeded = options.selection in ("random", "gradient")
        order = first_order(case, seed, seeded) if epoch == 0 else rng.permutation(seed, epoch, case.n).tolist()
        left = [k for k in order if epoch > 0 or k not in naive.S]
        for at in range(len(left)):
            seeding = options.selection == "gradient" and epoch == 0 and at < 10
            if options.selection == "random" or seeding or None in naive.extremes():
                k = left[at]
            else:
                k, more = chosen(naive, left[at:], options, seed, drawn)
                drawn += more
            place = left.index(k)
            left[at], left[place] = left[place], left[at]
            yield from naive.learn(k, options.delta_max)


def beta(case: Problem, found: Solution) -> Floats:
    out = np.zeros(case.n)
    out[found.origin] = found.coef
    return out


VARIANTS: list[dict[str, Any]] = [
    {},
    {"epochs": 3},
    {"delta_max": 0.05},
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
    naive = Naive(K, case.y, case.upper, budget=options.budget)
    state = lasvm.start(case, options, EPS, seed=3)
    steps = 0
    for steps, _ in enumerate(naive_run(case, K, 3, options, naive), 1):
        progress = lasvm.advance(state, 1)
        assert (progress.steps, progress.kernel_evaluations) == (steps, naive.used)
        if steps % 5 == 0:
            found = lasvm.solution(state)
            assert beta(case, found) == pytest.approx(naive.alpha, rel=1e-7, abs=1e-9)
            assert -found.rho == pytest.approx(naive.bias_and_delta()[0], rel=1e-7, abs=1e-9)
            assert progress.violation == pytest.approx(naive.bias_and_delta()[1], rel=1e-6, abs=1e-9)
            assert sorted(state.support.slots[0, state.support.members()]) == sorted(naive.S)
    assert steps >= case.n


@pytest.mark.parametrize("real", ["f4", "f8"])
@pytest.mark.parametrize("selection", ["random", "active"])
def test_memory_and_groups_change_only_what_is_counted(real: str, selection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen rows kept in place of all, slots that have to be added, groups of any size: the same bytes."""
    X, y = points(400, 5, seed=21, noise=0.6)
    case = problem(X, y, Kernel(RBF, 0.3), 3.0)
    monkeypatch.setattr(lasvm, "Engine", lambda rows, kernel, real_given: Engine(rows, kernel, real))
    options = lasvm.Options(selection=selection, candidates=5)
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


@pytest.mark.parametrize("name", ["rbf", "linear", "class weights", "300 rows, rbf", "rbf, C 100"])
def test_finishing_solves_for_the_members(name: str) -> None:
    """S's own dual to within eps, from which nothing is lost: neither Σα = 0 nor the box."""
    case = named(name)
    K = kernel_matrix(case)
    ends = {}
    for finish in (False, True):
        state = lasvm.start(case, lasvm.Options(finish=finish), 1e-5, seed=0)
        members = np.empty(0, np.int64)
        progress = lasvm.advance(state, case.n)
        members = state.support.slots[0, state.support.members()]
        while not progress.ended:
            progress = lasvm.advance(state, 7)
        ends[finish] = beta_of(case, lasvm.solution(state))
        inside = replace(case, rows=case.rows.take(members), y=case.y[members], upper=case.upper[members])
        within = violation(K[np.ix_(members, members)], inside, ends[finish][members])
        assert (within <= 1.001e-5) == finish
        assert progress.violation == pytest.approx(within, abs=1e-9)
        alpha = case.y * ends[finish]
        assert abs(ends[finish].sum()) <= 1e-9 * alpha.sum()
        assert ((alpha >= 0) & (alpha <= case.upper)).all()
    assert dual_objective(K, case.y, ends[True]) > dual_objective(K, case.y, ends[False])


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
    f = cross_apply(case.rows, lasvm.solution(state).basis, case.kernel, lasvm.solution(state).coef[:, None])[:, 0]
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
    naive.used = s * (s - 1) // 2
    order = [k for k in rng.permutation(0, 0, case.n).tolist() if k not in naive.S]
    begin = [k for label in (1, -1) for k in [k for k in order if case.y[k] == label][:5]]
    order = [k for k in order if k in begin] + [k for k in order if k not in begin]
    for steps, k in enumerate(order, 1):
        for _ in naive.learn(k):
            progress = lasvm.advance(state, 1)
        assert progress.steps == steps
        assert progress.kernel_evaluations == naive.used
        assert beta(case, lasvm.solution(state)) == pytest.approx(naive.alpha, rel=1e-7, abs=1e-9)


# --- streams --------------------------------------------------------------------------------------------------------------


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


def stream_of(case: Problem, chunk: int, options: lasvm.Options = lasvm.Options(), C: float = 1.0) -> tuple[Any, Floats]:
    state = lasvm.start_stream(Stream(case.kernel, C, None, "free"), options, EPS, 0)
    parts = []
    for first in range(0, case.n, chunk):
        last = min(first + chunk, case.n)
        part = slice(first, last)
        parts.append(lasvm.extend(state, case.rows.part(first, last), case.y[part], case.upper[part] / C))
        assert state.rows.n == state.support.size
    return state, np.concatenate(parts)


@pytest.mark.parametrize("name", ["300 rows, rbf", "300 rows, linear", "400 sparse rows, rbf", "example weights"])
@pytest.mark.parametrize("cache_mb", [100.0, 1e-3])
def test_a_stream_in_chunks_is_the_stream_in_one(name: str, cache_mb: float) -> None:
    case = named(name)
    whole, f = stream_of(case, case.n, lasvm.Options(cache_mb=cache_mb))
    naive = Naive(kernel_matrix(case), case.y, case.upper)
    for k in range(case.n):
        assert (f[k] == pytest.approx(naive.f([k])[0], rel=1e-7, abs=1e-9)) if naive.S else f[k] == 0
        for _ in naive.learn(k):
            pass
    for chunk in (1, 50, 129):
        state, responses = stream_of(case, chunk, lasvm.Options(cache_mb=cache_mb))
        assert responses.tobytes() == f.tobytes()
        assert lasvm.progress(state) == lasvm.progress(whole)
        for at_the_end in (False, True):
            if at_the_end:
                while not lasvm.finish(state, 3).ended:
                    pass
                while not lasvm.finish(whole, EVERY).ended:
                    pass
            one, other = lasvm.solution(state), lasvm.solution(whole)
            assert one.coef.tobytes() == other.coef.tobytes()
            assert one.basis.data.tobytes() == other.basis.data.tobytes()
            assert one.rho == other.rho
            assert (one.origin == -1).all()
        whole, _ = stream_of(case, case.n, lasvm.Options(cache_mb=cache_mb))


def test_a_budget_on_a_stream_does_not_depend_on_how_it_is_cut() -> None:
    case, options = named("300 rows, rbf"), lasvm.Options(budget=30)
    whole, f = stream_of(case, case.n, options)
    for chunk in (1, 50, 129):
        state, responses = stream_of(case, chunk, options)
        assert responses.tobytes() == f.tobytes()
        assert lasvm.solution(state).coef.tobytes() == lasvm.solution(whole).coef.tobytes()
        assert state.support.size == 30 == state.rows.n


def test_a_stream_goes_on_after_its_finishing() -> None:
    case = named("300 rows, rbf")
    state, _ = stream_of(case, 100)
    before = lasvm.finish(state, EVERY)
    assert before.completed
    lasvm.extend(state, case.rows.part(0, 50), case.y[:50], case.upper[:50])
    after = lasvm.progress(state)
    assert not after.completed
    assert after.steps > before.steps
    assert lasvm.finish(state, EVERY).completed


def test_a_stream_of_one_class_keeps_few_and_then_learns_the_other() -> None:
    X, _ = points(200, 3, seed=5)
    y = np.where(np.arange(200) < 150, 1.0, -1.0)
    state, f = stream_of(problem(X, y, Kernel(RBF, 0.5)), 10)
    assert f[0] == 0
    assert (f[1:150] == 1.0).all()
    assert (np.sign(lasvm.solution(state).coef) == -1).any()


def test_rows_with_more_features_than_the_first() -> None:
    narrow, wide = Rows.from_dense(np.array([[1.0], [2.0]])), Rows.from_dense(np.array([[0.0, 0.0, 3.0]]))
    state = lasvm.start_stream(Stream(Kernel(LINEAR), 1.0, None, "free"), lasvm.Options(), EPS, 0)
    lasvm.extend(state, narrow, np.array([1.0, -1.0]), np.ones(2))
    lasvm.extend(state, wide, np.array([1.0]), np.ones(1))
    assert lasvm.solution(state).basis.n_features == 3


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


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (lasvm.Options(epochs=0), "epochs=0"),
        (lasvm.Options(selection="best"), "selection=best.*autoactive"),
        (lasvm.Options(candidates=0), "candidates=0"),
        (lasvm.Options(budget=-1), "budget=-1: must be 0 .* at least 2"),
        (lasvm.Options(budget=1), "budget=1: must be 0 .* at least 2"),
        (lasvm.Options(delta_max=0.0), "delta_max=0"),
        (lasvm.Options(delta_max=float("nan")), "delta_max=nan"),
    ],
    ids=str,
)
def test_options_that_cannot_be(options: lasvm.Options, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        lasvm.start(named("rbf"), options, EPS, 0)
    with pytest.raises(UsageError, match=says):
        lasvm.start_stream(Stream(Kernel(RBF, 1.0), 1.0, None, "free"), options, EPS, 0)


@pytest.mark.parametrize(
    ("stream", "options", "says"),
    [
        (Stream(Kernel(RBF, 1.0), None, 0.1, "free"), lasvm.Options(), "needs -c"),
        (Stream(Kernel(RBF, 1.0), 1.0, None, "none"), lasvm.Options(), "bias"),
        (Stream(Kernel(PRECOMPUTED), 1.0, None, "free"), lasvm.Options(), "precomputed"),
        (Stream(Kernel(RBF, 1.0), 1.0, None, "free"), lasvm.Options(selection="active"), "own order"),
        (Stream(Kernel(RBF, 1.0), 1.0, None, "free"), lasvm.Options(epochs=2), "own order"),
    ],
    ids=str,
)
def test_streams_that_cannot_be(stream: Stream, options: lasvm.Options, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        lasvm.start_stream(stream, options, EPS, 0)


def test_a_finishing_that_stalls_ends_the_run_as_stalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as one whose epochs are over, which says nothing of the tolerance."""
    monkeypatch.setattr(reviews, "_STEPS", 2_000)
    monkeypatch.setattr(finishing, "_BLOCK_STEPS", 500)
    draw = np.random.default_rng(1)
    y = np.where(np.arange(300) % 2 == 0, 1.0, -1.0)
    X = (1e4 * (draw.normal(size=300) + 0.5 * y))[:, None]
    problem = Problem(Rows.from_dense(X), y, np.full(300, 100.0), Kernel(LINEAR))
    result = run(lasvm, problem, lasvm.Options(), eps=1e-9)
    assert result.status is Status.STALLED
    assert result.certificate.violation > 1e-9
