"""What every solver must do that learns from a stream."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from oracle import kernel_matrix, same_bytes
from zoo import points

from svmkit import solvers
from svmkit.data import Floats, Rows, dense_rows, stack
from svmkit.engine.kernels import cross_apply
from svmkit.engine.layouts import TABLE_FEATURES
from svmkit.errors import UsageError
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, Kernel, Problem, Solution, Stream
from svmkit.solvers import pegasos, perceptron

ONLINE = [name for name in solvers.NAMES if hasattr(solvers.solver(name), "start_stream")]
N = 700


def begin(name: str, kernel: Kernel, **options: Any) -> tuple[Any, Any]:
    module: Any = solvers.solver(name)
    stream = Stream(kernel, C=1.0, lam=1.0 / N, bias=module.BIASES[0])
    return module, module.start_stream(stream, module.Options(**options), 1e-3, 0)


def takes(name: str, kernel: Kernel) -> bool:
    try:
        begin(name, kernel)
    except UsageError:
        return False
    return True


KERNELS = [Kernel(LINEAR), Kernel(RBF, 0.2), Kernel(POLYNOMIAL, 0.3, 1.0, 2)]
CASES = [(name, kernel) for name in ONLINE for kernel in KERNELS if takes(name, kernel)]
cases = pytest.mark.parametrize(("name", "kernel"), CASES, ids=lambda value: getattr(value, "name", value))


def examples(n: int = N, d: int = 6) -> tuple[Rows, Floats, Floats]:
    """Sparse rows with an empty one and a duplicate, labels, weights; the last third has features that the others lack."""
    X, y = points(n, d, seed=3, density=0.7)
    X[5], X[7] = 0.0, X[6]
    X[: 2 * n // 3, d - 2 :] = 0.0
    return Rows.from_dense(X), y, np.random.default_rng(1).choice([0.5, 1.0, 2.0], n)


def values_at(found: Solution, rows: Rows, kernel: Kernel) -> Floats:
    return cross_apply(rows, found.own, kernel, found.coef[:, None])[:, 0] - found.rho


def test_every_solver_here_takes_some_kernel() -> None:
    assert {name for name, _ in CASES} == set(ONLINE)


@pytest.mark.parametrize("name", [name for name in ONLINE if name in solvers.LINEAR_FORM])
def test_a_stream_of_a_solver_that_learns_w_must_say_lambda_and_have_no_kernel(name: str) -> None:
    with pytest.raises(UsageError, match=f"^solver {name} learns .*: with -t 0, or of the rbf kernel with --map fourier$"):
        begin(name, Kernel(POLYNOMIAL, 1.0, 1.0, 2))
    module: Any = solvers.solver(name)
    with pytest.raises(UsageError, match=f"^solver {name} needs λ before .*: give --lambda, or -c with --rows N$"):
        module.start_stream(Stream(Kernel(LINEAR), 1.0, None, "none"), module.Options(), 1e-3, 0)


@cases
@pytest.mark.parametrize("size", [1, 7, 300])
def test_cuts_change_no_bit(name: str, kernel: Kernel, size: int) -> None:
    rows, y, weight = examples()
    module, whole = begin(name, kernel)
    f = module.extend(whole, rows, y, weight)
    _, parts = begin(name, kernel)
    g = []
    for first in range(0, N, size):
        here = np.arange(first, min(first + size, N))
        g.append(module.extend(parts, rows.take(here), y[here], weight[here]))
    assert np.concatenate(g).tobytes() == f.tobytes()
    assert module.progress(parts) == module.progress(whole)
    assert same_bytes(module.solution(parts), module.solution(whole))


def special(kind: str) -> Rows:
    """200 rows that would be packed in a way of their own, or in one that depends on the rows they come with."""
    rng = np.random.default_rng(6)
    X = rng.integers(0, 256, (200, 40)) * (rng.random((200, 40)) < 0.7)
    if kind == "ones":
        X = np.minimum(X, 1)
    if kind == "wide":
        wide = rng.normal(size=(200, 5000)) * (rng.random((200, 5000)) < 0.01)
        wide[100:, [17, 4000, 4999]] = rng.normal(size=(100, 3))  # only later ones often have these
        return Rows.from_dense(wide)
    return Rows.from_dense(X.astype(float) * (1.0 if kind != "255ths" else 1 / 255))


@cases
@pytest.mark.parametrize("kind", ["pixels", "255ths", "ones", "wide"])
def test_cuts_change_no_bit_of_special_rows(name: str, kernel: Kernel, kind: str) -> None:
    rows, y = special(kind), np.where(np.random.default_rng(7).random(200) < 0.5, 1.0, -1.0)
    kernel = kernel._replace(gamma=1e-5) if kind == "pixels" else kernel
    module, whole = begin(name, kernel)
    f = module.extend(whole, rows, y, np.ones(200))
    _, parts = begin(name, kernel)
    g = [module.extend(parts, rows.part(i, i + 9), y[i : i + 9], np.ones(len(y[i : i + 9]))) for i in range(0, 189, 9)]
    g.append(module.extend(parts, rows.part(189, 200), y[189:], np.ones(11)))
    assert np.concatenate(g).tobytes() == f.tobytes()
    assert same_bytes(module.solution(parts), module.solution(whole))


@cases
def test_each_example_is_answered_by_the_solution_before_it(name: str, kernel: Kernel) -> None:
    rows, y, weight = examples(120)
    module, state = begin(name, kernel)
    for i in range(rows.n):
        row = rows.part(i, i + 1)
        expected = values_at(module.solution(state), row, kernel)
        f = module.extend(state, row, y[i : i + 1], weight[i : i + 1])
        assert f == pytest.approx(expected, rel=1e-9, abs=1e-9)


@cases
def test_the_solution_stands_on_its_own(name: str, kernel: Kernel) -> None:
    rows, y, weight = examples()
    module, state = begin(name, kernel)
    module.extend(state, rows, y, weight)
    found = module.solution(state)
    assert (found.origin == -1).all()
    assert found.own.n == len(found.coef) == len(found.origin) <= N
    assert np.isfinite(found.coef).all()
    module.extend(state, rows, y, weight)
    again = module.solution(state)
    assert module.progress(state).steps == 2 * N
    assert not same_bytes(found, again)


@cases
def test_looking_leaves_the_state_as_it_is(name: str, kernel: Kernel) -> None:
    rows, y, weight = examples()
    module, state = begin(name, kernel)
    _, watched = begin(name, kernel)
    for first, last in ((0, 300), (300, N)):
        part = rows.part(first, last)
        module.extend(state, part, y[first:last], weight[first:last])
        module.extend(watched, part, y[first:last], weight[first:last])
        module.solution(watched)
        module.progress(watched)
    assert same_bytes(module.solution(state), module.solution(watched))


# --- the perceptron -------------------------------------------------------------------------------------------------------


def naive(K: Floats, y: Floats, omega: Floats, options: perceptron.Options) -> tuple[Floats, Floats, int]:
    """Coefficients at the end, f before each example and kernel values used, of one pass in order."""
    n = len(y)
    beta, total, used, before = np.zeros(n), np.zeros(n), 0, np.zeros(n)
    averaged = options.average and not options.budget
    for i in range(n):
        used += np.count_nonzero(beta)
        before[i] = K[i] @ (total / i if averaged and i else beta)
        if K[i, i] != 0 and y[i] * (K[i] @ beta) <= options.beta:
            beta[i] += omega[i] * y[i]
            inside = np.flatnonzero(beta)
            if 0 < options.budget < len(inside):
                f = K @ beta
                beta[max(inside, key=lambda s: y[s] * (f[s] - beta[s] * K[s, s]))] = 0.0
        total += beta
    return (total / n if averaged else beta), before, used


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize(
    "options", [{}, {"average": False}, {"average": False, "beta": 0.3}, {"budget": 40}, {"budget": 1000, "beta": 0.1}], ids=str
)
def test_perceptron_equals_the_algorithm_written_plainly(kernel: Kernel, options: dict[str, Any]) -> None:
    rows, y, weight = examples()
    coef, before, used = naive(kernel_matrix(Problem(rows, y, weight, kernel)), y, weight, perceptron.Options(**options))
    module, state = begin("perceptron", kernel, **options)
    f = module.extend(state, rows, y, weight)
    scale = np.abs(before).max()
    np.testing.assert_allclose(f, before, rtol=0, atol=1e-9 * scale)
    found = module.solution(state)
    expected = kernel_matrix(Problem(rows, y, weight, kernel)) @ coef
    np.testing.assert_allclose(values_at(found, rows, kernel), expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    if kernel.kind == LINEAR and not options.get("budget"):
        assert found.n_support == 1  # w
        assert module.progress(state).kernel_evaluations == N
    else:
        assert found.n_support == np.count_nonzero(coef)
        assert module.progress(state).kernel_evaluations == used


# --- pegasos --------------------------------------------------------------------------------------------------------------


def naive_pegasos(X: Floats, y: Floats, omega: Floats, lam: float, options: pegasos.Options, constant: float, end: bool) -> Any:
    """w after one pass in order (the constant feature's last), f before each example; at the ``end`` all are learned."""
    Z = np.hstack([X, np.full((len(X), 1), constant)])
    w, total, weights, t, k = np.zeros(Z.shape[1]), np.zeros(Z.shape[1]), 0.0, 1, options.batch
    before = np.empty(len(y))
    for first in range(0, len(y), k):
        batch = np.arange(first, min(first + k, len(y)))
        before[batch] = Z[batch] @ (total / weights if weights else w)
        if len(batch) < k and not end:
            break
        wrong = [i for i in batch if y[i] * (Z[i] @ w) < 1 and Z[i].any()]
        w = (1 - 1 / t) * w + sum((omega[i] * y[i] * Z[i] for i in wrong), np.zeros(len(w))) / (lam * t * len(batch))
        if options.projection:
            w *= min(1.0, 1 / np.sqrt(lam) / max(np.linalg.norm(w), 1e-300))
        weight = {"none": 0.0, "uniform": 1.0, "step": float(t)}[options.average]
        total, weights = total + weight * w, weights + weight
        t += bool(wrong) or not options.hold_step
    return (total / weights if weights else w), before


@pytest.mark.parametrize("form", ["sparse", "dense"])
@pytest.mark.parametrize(
    "options",
    [
        *({}, {"average": "none"}, {"average": "uniform", "projection": False}, {"batch": 7}, {"batch": 1000}),
        *({"batch": 3, "hold_step": True, "average": "none"}, {"bias": 2.0, "batch": 2}, {"bias": 0.5, "projection": False}),
    ],
    ids=str,
)
def test_pegasos_equals_the_algorithm_written_plainly(options: dict[str, Any], form: str) -> None:
    rows, y, weight = examples()
    X = rows.to_dense()[:, 1:]
    if form == "dense":
        X = X.astype(np.float32)
        rows = dense_rows(X)
    lam = 1e-3
    asked = pegasos.Options(**options)
    constant = asked.bias if "bias" in options else 0.0
    _, before = naive_pegasos(X.astype(float), y, weight, lam, asked, constant, end=False)
    state = pegasos.start_stream(Stream(Kernel(LINEAR), None, lam, "free" if constant else "none"), asked, 1e-3, 0)
    cuts = [0, 5, 6, 400, N]
    f = np.concatenate([pegasos.extend(state, rows.part(a, b), y[a:b], weight[a:b]) for a, b in itertools.pairwise(cuts)])
    np.testing.assert_allclose(f, before, rtol=1e-8, atol=1e-9 * np.abs(before).max())
    for end in (False, True):
        if end:
            assert pegasos.finish(state, 1).completed
        expected, _ = naive_pegasos(X.astype(float), y, weight, lam, asked, constant, end=True)  # those that wait among them
        found = pegasos.solution(state)
        w = np.zeros(X.shape[1] + 1)
        if found.n_support:
            w[found.own.indices] = found.own.data
        np.testing.assert_allclose(w[1:], expected[:-1], rtol=1e-8, atol=1e-9 * max(np.abs(expected).max(), 1e-300))
        assert found.rho == pytest.approx(-constant * expected[-1], rel=1e-8)
    assert pegasos.progress(state).steps == N


# --- features -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["perceptron", "pegasos", "asset"])
def test_hashed_features_have_places_as_they_come(name: str) -> None:
    rows, y, weight = examples()
    far = rows._replace(indices=(rows.indices.astype(np.int64) * 300_000_000 // 2).astype(np.int32), n_features=2**31 - 1)
    module, near_state = begin(name, Kernel(LINEAR))
    _, far_state = begin(name, Kernel(LINEAR))
    for first, last in ((0, 100), (100, N)):
        f = module.extend(near_state, rows.part(first, last), y[first:last], weight[first:last])
        g = module.extend(far_state, far.part(first, last), y[first:last], weight[first:last])
        assert f.tobytes() == g.tobytes()
    near, found = module.solution(near_state), module.solution(far_state)
    assert found.own.data.tobytes() == near.own.data.tobytes()
    assert (found.own.indices == near.own.indices.astype(np.int64) * 300_000_000 // 2).all()


def test_wide_rows_among_narrow_ones_change_no_bit_by_cuts() -> None:
    """The engine has other loops for more than 4096 features; which ones are used must not depend on the cuts."""
    rows, y, weight = examples()
    wide = Rows(np.ones(1), np.array([9000], np.int32), np.array([0, 1]), 9000)
    rows = stack([rows.part(0, 400), wide, rows.part(400, N)])
    y, weight = np.insert(y, 400, 1.0), np.insert(weight, 400, 1.0)
    module, whole = begin("perceptron", Kernel(RBF, 0.2))
    module.extend(whole, rows, y, weight)
    _, parts = begin("perceptron", Kernel(RBF, 0.2))
    for i in range(0, rows.n, 50):
        module.extend(parts, rows.part(i, min(i + 50, rows.n)), y[i : i + 50], weight[i : i + 50])
    assert same_bytes(module.solution(whole), module.solution(parts))


@pytest.mark.parametrize("index", [TABLE_FEATURES - 1, TABLE_FEATURES, TABLE_FEATURES + 1])
@pytest.mark.parametrize(("name", "options"), [("perceptron", {"beta": 1.0}), ("lasvm", {})])
def test_a_late_feature_of_many_support_vectors_changes_no_bit_by_cuts(name: str, options: dict[str, Any], index: int) -> None:
    """The two loops sum more than 1024 values in another order."""
    rng, n, late = np.random.default_rng(3), 2000, 1950
    narrow = Rows.from_dense(rng.normal(size=(n, 12)))
    wide = Rows(np.ones(1), np.array([index], np.int32), np.array([0, 1]), index)
    y = np.where(rng.random(n + 1) < 0.5, 1.0, -1.0)
    parts = [
        narrow.part(0, late - 50),
        narrow.part(late - 50, late),
        wide,
        narrow.part(late, late + 20),
        narrow.part(late + 20, n),
    ]
    found = []
    for pieces in ([stack(parts)], parts):
        module, state = begin(name, Kernel(RBF, 0.2), **options)
        ends = np.cumsum([rows.n for rows in pieces]).tolist()
        f = [module.extend(state, rows, y[end - rows.n : end], np.ones(rows.n)) for rows, end in zip(pieces, ends, strict=True)]
        found.append((np.concatenate(f), module.solution(state)))
    assert found[0][1].n_support > 1500
    assert found[0][0].tobytes() == found[1][0].tobytes()
    assert same_bytes(found[0][1], found[1][1])


@pytest.mark.parametrize("name", ONLINE)
@pytest.mark.parametrize("scale", [1e8, 1e30, 1e140])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_stream_of_raw_data_goes_on_and_ends_in_numbers(name: str, scale: float) -> None:
    """Kernel values so large that multipliers vanish beside them: S may become empty on the way."""
    module, state = begin(name, Kernel(LINEAR))
    for seed in range(3):
        X, y = points(30, 3, seed=seed)
        module.extend(state, Rows.from_dense(X * scale), y, np.ones(30))
    found = module.solution(state)
    assert np.isfinite([found.rho, *found.coef, *found.own.data]).all()


def test_examples_that_do_not_fill_a_batch_are_part_of_the_solution() -> None:
    """As if the stream ended there; more of it goes on as if nobody had asked."""
    X, y = points(25, 3, seed=2)
    rows, w = Rows.from_dense(X), np.ones(25)
    stream = Stream(Kernel(LINEAR), None, 0.1, "none")
    asked, ended, whole = (pegasos.start_stream(stream, pegasos.Options(batch=7), 1e-3, 0) for _ in range(3))
    for state in (asked, ended):
        pegasos.extend(state, rows.part(0, 10), y[:10], w[:10])
    found = pegasos.solution(asked)
    pegasos.finish(ended, 10**9)
    assert np.array_equal(found.own.to_dense(), pegasos.solution(ended).own.to_dense())
    pegasos.extend(asked, rows.part(10, 25), y[10:], w[10:])
    pegasos.extend(whole, rows, y, w)
    assert np.array_equal(pegasos.solution(asked).own.to_dense(), pegasos.solution(whole).own.to_dense())
