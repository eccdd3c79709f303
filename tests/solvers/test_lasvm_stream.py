"""LASVM on a stream: however it is cut, what it learns is that of the plain algorithm on the whole of it."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
from naive_lasvm import EPS, Naive
from oracle import kernel_matrix
from zoo import named, points, problem

from svmkit.data import Floats, Rows
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, PRECOMPUTED, RBF, Kernel, Problem, Stream
from svmkit.solvers import lasvm

EVERY = 10**9


def stream_of(case: Problem, chunk: int, options: lasvm.Options = lasvm.Options(), C: float = 1.0) -> tuple[Any, Floats]:
    state = lasvm.start_stream(Stream(case.kernel, C, None, "free"), options, EPS, 0)
    return state, once_over(state, case, chunk, C)


def once_over(state: lasvm.State, case: Problem, chunk: int, C: float = 1.0) -> Floats:
    parts = []
    for first in range(0, case.n, chunk):
        last = min(first + chunk, case.n)
        part = slice(first, last)
        parts.append(lasvm.extend(state, case.rows.part(first, last), case.y[part], case.upper[part] / C))
        assert state.rows.n == state.support.size
    return np.concatenate(parts)


@pytest.mark.parametrize("name", ["300 rows, rbf", "300 rows, linear", "400 sparse rows, rbf", "example weights"])
@pytest.mark.parametrize("cache_mb", [100.0, 1e-3])
def test_a_stream_in_chunks_is_the_stream_in_one(name: str, cache_mb: float) -> None:
    case = named(name)
    whole, f = stream_of(case, case.n, lasvm.Options(cache_mb=cache_mb))
    naive = Naive(kernel_matrix(case), case.y, case.upper, room=0 if cache_mb < 1 else inf)
    for k in range(case.n):
        assert (f[k] == pytest.approx(naive.f([k])[0], rel=1e-7, abs=1e-9)) if naive.S else f[k] == 0
        for _ in naive.learn(k):
            pass
    again = lasvm.progress(whole).kernel_evaluations - naive.used
    assert (again > 0) == (cache_mb < 1 and case.n >= 300)  # of rows that there was no room for
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
            assert one.own.data.tobytes() == other.own.data.tobytes()
            assert one.rho == other.rho
            assert (one.origin == -1).all()
        whole, _ = stream_of(case, case.n, lasvm.Options(cache_mb=cache_mb))


@pytest.mark.parametrize("finished", [False, True])
def test_further_passes_go_over_the_examples_outside_the_set(finished: bool) -> None:
    """Those that are in it when a pass begins have their α; none comes to be in it twice, however the passes are cut."""
    case = named("300 rows, rbf")
    naive, states = Naive(kernel_matrix(case), case.y, case.upper), [stream_of(case, chunk)[0] for chunk in (7, 300)]
    for k in range(case.n):
        deque(naive.learn(k), 0)
    for _ in range(3):
        known = set(naive.S)
        for k in range(case.n):
            deque(naive.learn(k) if k not in known else (), 0)
        for state, chunk in zip(states, (7, 300), strict=True):
            if finished:  # changes α, and may leave some out
                while not lasvm.finish(state, EVERY).ended:
                    pass
            lasvm.begin_pass(state)
            assert len(state.known) == state.support.size
            responses = once_over(state, case, chunk)
            assert (responses[state.known] == 0).all()
            assert len(np.unique(state.place)) == len(state.place)
            if not finished:
                assert sorted(state.place.tolist()) == sorted(naive.S)
    one, other = (lasvm.solution(state) for state in states)
    assert one.coef.tobytes() == other.coef.tobytes()
    assert one.own.data.tobytes() == other.own.data.tobytes()


def test_a_budget_on_a_stream_does_not_depend_on_how_it_is_cut() -> None:
    case, options = named("300 rows, rbf"), lasvm.Options(budget=30)
    whole, f = stream_of(case, case.n, options)
    for chunk in (1, 50, 129):
        state, responses = stream_of(case, chunk, options)
        assert responses.tobytes() == f.tobytes()
        assert lasvm.solution(state).coef.tobytes() == lasvm.solution(whole).coef.tobytes()
        assert state.support.size == 30 == state.rows.n


def test_a_stream_reprocesses_until_no_violation_is_large() -> None:
    case, options = named("300 rows, rbf"), lasvm.Options(delta_max=0.05)
    naive = Naive(kernel_matrix(case), case.y, case.upper)
    steps = sum(1 for k in range(case.n) for _ in naive.learn(k, options.delta_max))
    assert steps > case.n
    progress = lasvm.progress(stream_of(case, 50, options)[0])
    assert (progress.steps, progress.kernel_evaluations) == (steps, naive.used)


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


def test_examples_may_come_in_the_midst_of_the_finishing() -> None:
    case = named("300 rows, rbf")
    state, _ = stream_of(case, 100)
    steps = [lasvm.progress(state).steps]
    for part in range(3):
        assert not lasvm.finish(state, 1).ended
        lasvm.extend(state, case.rows.part(50 * part, 50 * part + 50), case.y[:50], case.upper[:50])
        steps.append(lasvm.progress(state).steps)
    assert steps == sorted(steps)
    assert lasvm.finish(state, EVERY).completed


def test_steps_of_a_finishing_that_has_ended_still_count() -> None:
    """A pair step each: told while it is under way and ever after, a call of one step at a time."""
    state, _ = stream_of(named("300 rows, rbf"), 100)
    told = [lasvm.progress(state).steps]
    while not (progress := lasvm.finish(state, 1)).ended:
        told.append(progress.steps)
    assert told == list(range(told[0], told[0] + len(told)))
    assert len(told) > 100
    assert progress.steps - told[-1] in (0, 1)
    assert lasvm.progress(state).steps == progress.steps


def test_a_stream_without_examples_has_nothing_to_finish() -> None:
    """As a machine of two classes of many may have, which have not come."""
    state = lasvm.start_stream(Stream(Kernel(RBF, 0.5), 1.0, None, "free"), lasvm.Options(), EPS, 0)
    progress = lasvm.finish(state, EVERY)
    assert (progress.completed, progress.steps) == (True, 0)
    assert (lasvm.solution(state).n_support, lasvm.solution(state).rho) == (0, 0.0)


@pytest.mark.parametrize("name", ["300 rows, rbf", "400 sparse rows, rbf", "example weights"])
def test_a_stream_goes_on_from_a_solution_as_the_plain_algorithm_does(name: str) -> None:
    """However it is cut. What it goes on from comes in no pass, and so is in none passed over."""
    case = named(name)
    half = case.n // 2
    K = kernel_matrix(case)
    first = Naive(K[:half, :half], case.y[:half], case.upper[:half])
    for k in range(half):
        deque(first.learn(k), 0)
    given = case.y[:half] * first.alpha
    begun = Problem(case.rows.part(0, half), case.y[:half], case.upper[:half], case.kernel, start=given)
    naive = Naive(K, case.y, case.upper)
    naive.alpha[:half], naive.S = first.alpha, np.flatnonzero(given).tolist()
    naive.seen = len(naive.S)
    f = []
    for k in range(half, case.n):
        f.append(naive.f([k])[0])
        deque(naive.learn(k), 0)
    texts = []
    for chunk in (1, 40, case.n):
        state = lasvm.start_stream(Stream(case.kernel, 1.0, None, "free"), lasvm.Options(), EPS, 0)
        lasvm.resume(state, begun)
        assert np.sort(lasvm.solution(state).coef) == pytest.approx(np.sort(first.alpha[given > 0]))
        responses = []
        for a in range(half, case.n, chunk):
            b = min(a + chunk, case.n)
            responses.append(lasvm.extend(state, case.rows.part(a, b), case.y[a:b], case.upper[a:b]))
        assert np.concatenate(responses) == pytest.approx(np.array(f), rel=1e-7, abs=1e-9)
        found = lasvm.solution(state)
        assert np.sort(found.coef) == pytest.approx(np.sort(naive.alpha[naive.alpha != 0]), rel=1e-7, abs=1e-9)
        texts.append((found.coef.tobytes(), found.rho))
        lasvm.begin_pass(state)
        assert sorted(k for k in state.known.tolist() if k >= 0) == sorted(k - half for k in naive.S if k >= half)
    assert len(set(texts)) == 1


def test_a_stream_that_ends_with_w_goes_on_from_its_own_expansion() -> None:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    rows = Rows.from_dense(rng.normal(size=(60, 3)) + 1e8)
    state = lasvm.start_stream(Stream(Kernel(LINEAR), 1.0, None, "free"), lasvm.Options(), EPS, 0)
    for _ in range(2):
        lasvm.extend(state, rows, y, np.ones(60))
        assert lasvm.solution(state).n_support > 1
        while not lasvm.finish(state, EVERY).ended:
            pass
        assert (lasvm.solution(state).n_support, lasvm.solution(state).alpha) == (1, None)


def test_a_stream_of_one_class_keeps_few_and_then_learns_the_other() -> None:
    X, _ = points(200, 3, seed=5)
    y = np.where(np.arange(200) < 150, 1.0, -1.0)
    state, f = stream_of(problem(X, y, Kernel(RBF, 0.5)), 10)
    assert f[0] == 0
    assert (f[1:150] == 1.0).all()
    assert (np.sign(lasvm.solution(state).coef) == -1).any()


def test_examples_of_no_weight_are_answered_and_join_nothing() -> None:
    """They are answered by what the others have taught, and a step goes on with those."""
    case = named("300 rows, rbf")
    case = replace(case, upper=np.where(np.arange(case.n) % 3 == 1, 0.0, case.upper))
    naive = Naive(kernel_matrix(case), case.y, case.upper)
    state, f = stream_of(case, 50)
    for k in range(case.n):
        assert f[k] == pytest.approx(naive.f([k])[0] if naive.S else 0.0, rel=1e-7, abs=1e-9)
        deque(naive.learn(k), 0)
    assert sorted(state.place.tolist()) == sorted(naive.S)
    assert lasvm.progress(state).kernel_evaluations == naive.used


def test_alpha_that_only_rounding_keeps_from_its_bound_is_at_it() -> None:
    """C in parts whose sum is a bit less in doubles, the last step too small for a share of it to tell; else b would be 1."""
    parts = np.array([0.31638940957447786, 0.6836097640437456, 8.263817764264547e-07])
    assert 1.0 - 2.0**-52 < parts[0] + parts[1] + parts[2] < 1.0
    rows = Rows.from_dense(1e-3 * np.array([[1.0, 0.0], [-1.0, 0.0], [-1.0, 0.1], [-1.0, 0.2]]))
    state = lasvm.start_stream(Stream(Kernel(LINEAR), 1.0, None, "free"), lasvm.Options(), EPS, 0)
    lasvm.extend(state, rows, np.array([1.0, -1.0, -1.0, -1.0]), np.append(1.0, parts))
    found = lasvm.solution(state)
    assert found.coef.tolist() == [1.0, *-parts]
    assert abs(found.rho) < 1e-6


def test_rows_with_more_features_than_the_first() -> None:
    narrow, wide = Rows.from_dense(np.array([[1.0], [2.0]])), Rows.from_dense(np.array([[0.0, 0.0, 3.0]]))
    state = lasvm.start_stream(Stream(Kernel(LINEAR), 1.0, None, "free"), lasvm.Options(), EPS, 0)
    lasvm.extend(state, narrow, np.array([1.0, -1.0]), np.ones(2))
    lasvm.extend(state, wide, np.array([1.0]), np.ones(1))
    assert lasvm.solution(state).own.n_features == 3


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
