"""LIBSVM's rules around a solver: label order, pairs, weights, folds, limits. The solver here is the plainest there is."""

from __future__ import annotations

import math
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from golden_data import GOLDEN, TOOLS, dataset_of, needs_tools, numbers
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from svmkit import fit as fit_module
from svmkit import pairs, small_folds
from svmkit.certificate import Certificate
from svmkit.cli.compat.glibc_rand import glibc_rand
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Rows, stack
from svmkit.engine.kernels import cross_apply
from svmkit.errors import DataError, UsageError
from svmkit.fit import ONE_CLASS, fit
from svmkit.folds import cross_validate, folds
from svmkit.io.model_libsvm import model_text, parse_model, read_model
from svmkit.metrics import accuracy
from svmkit.model import decision_values, predict
from svmkit.pairs import Pair, group_classes, kernel_of
from svmkit.problem import Kernel, Problem, Solution, of_other_rows
from svmkit.solvers.base import SolverResult
from svmkit.trace import Progress, Status


@dataclass(frozen=True)
class Options:
    """``first``: a knob to be set by -O."""

    first: int = 0


class State:
    def __init__(self, problem: Problem, eps: float) -> None:
        self.problem, self.eps, self.steps = problem, eps, 0
        self.K = cross_apply(problem.rows, problem.rows, problem.kernel, np.eye(problem.n))
        self.beta, self.F = np.zeros(problem.n), problem.y.copy()

    def pair(self) -> tuple[int, int, float]:
        y, C = self.problem.y, self.problem.upper
        i = int(np.where(self.beta < np.maximum(0, C * y), self.F, -np.inf).argmax())
        j = int(np.where(self.beta > np.minimum(0, C * y), self.F, np.inf).argmin())
        return i, j, float(self.F[i] - self.F[j])


def advance(state: State, budget: int) -> Progress:
    """The most violating pair, moved to its optimum or a bound."""
    y, C, K, beta = state.problem.y, state.problem.upper, state.K, state.beta
    for _ in range(budget):
        i, j, violation = state.pair()
        if violation < state.eps:
            return Progress(state.steps, state.steps, violation, done=True)
        room = min(max(0.0, C[i] * y[i]) - beta[i], beta[j] - min(0.0, C[j] * y[j]))
        step = min(violation / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12), room)
        beta[i] += step
        beta[j] -= step
        state.F -= step * (K[:, i] - K[:, j])
        state.steps += 1
    return Progress(state.steps, state.steps, state.pair()[2])


def solution(state: State) -> Solution:
    """rho as the mean over free support vectors, else the middle."""
    C, beta = state.problem.upper, state.beta
    free = (np.abs(beta) > 0) & (np.abs(beta) < C)
    i, j, _ = state.pair()
    rho = -float(state.F[free].mean()) if free.any() else -float(state.F[i] + state.F[j]) / 2
    support = np.flatnonzero(beta)[::-1]  # in any order
    return Solution(support, beta[support], rho)


def start(problem: Problem, options: Options, eps: float, seed: int) -> State:
    return State(problem, eps)


@pytest.fixture(autouse=True)
def plain_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"Options": Options, "start": start, "advance": advance, "solution": solution}
    module = SimpleNamespace(SUMMARY="toy", PAPER="none", EXACT=True, BIASES=("free", "none"), **parts)
    for user in (fit_module, pairs, small_folds):
        monkeypatch.setattr(user, "solver_named", lambda name: module)


#: What three.exact.model was trained with.
EXACT = TrainConfig(gamma=0.25, eps=1e-9, class_weight=((7, 2.0), (4, 0.5)))


def test_the_model_is_svm_trains() -> None:
    result = fit(dataset_of("three"), EXACT)
    theirs = read_model(str(GOLDEN / "three.exact.model"))
    assert theirs.labels is not None
    assert theirs.class_counts is not None
    assert_array_equal(result.model.labels, theirs.labels)
    assert_array_equal(result.model.class_counts, theirs.class_counts)
    assert_array_equal(result.model.rows.to_dense(), theirs.rows.to_dense())
    assert_array_equal(dataset_of("three").rows.take(result.sv_index).to_dense(), theirs.rows.to_dense())
    assert_allclose(result.model.coef, theirs.coef, atol=1e-6)
    assert_allclose(result.model.rho, theirs.rho, atol=1e-6)
    for machine in result.model.machines:
        assert (np.diff(machine.index) > 0).all()
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("name", ["two", "three", "gram-two", "gram-three"])
def test_the_model_survives_its_file(name: str) -> None:
    config = TrainConfig(kernel="precomputed" if name.startswith("gram") else "rbf")
    model = fit(dataset_of(name), config).model
    text = model_text(model)
    again = parse_model(text, "m")
    assert model_text(again) == text
    assert again.rows.n_features == model.rows.n_features
    test = dataset_of(f"{name}.t").rows
    assert_array_equal(decision_values(model, test), decision_values(again, test))


def folded(state: State) -> Solution:
    """``solution`` on rows of its own: half of its support vectors, and the others in one, as of linear methods w."""
    found = solution(state)
    rows = state.problem.rows.take(found.origin)
    w = Rows.from_dense(found.coef[None, 1::2] @ rows.to_dense()[1::2, 1:])
    own, coef = stack([w, rows.take(np.arange(0, rows.n, 2))]), np.append(1.0, found.coef[::2])
    return of_other_rows(own, coef, found.rho, state.beta * state.problem.y)


@pytest.mark.parametrize("name", ["two", "three"])
def test_rows_that_are_no_training_rows_take_part(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    linear = TrainConfig(kernel="linear", C=0.5)
    dataset, test = dataset_of(name), dataset_of(f"{name}.t").rows
    plain = fit(dataset, linear).model
    monkeypatch.setattr(fit_module.solver_named("toy"), "solution", folded)
    result = fit(dataset, linear)
    model = result.model
    decisions = decision_values(model, test)
    assert_allclose(decisions, decision_values(plain, test), atol=1e-12)
    assert (result.sv_index == -1).all()
    assert model.class_counts is not None
    assert len(model.machines) < model.class_counts.sum() == model.n_support
    assert model.n_support == sum(machine.solution.n_support for machine in result.machines)
    text = model_text(model)
    assert_array_equal(decision_values(parse_model(text, "m"), test), decisions)
    assert model_text(parse_model(text, "m")) == text
    for machine in result.machines:
        assert machine.certificate.gap == pytest.approx(machine.certificate.primal - machine.certificate.dual)
        assert 0 <= machine.certificate.gap <= 1e-2 * machine.certificate.primal


@needs_tools
@pytest.mark.parametrize("name", ["two", "three"])
def test_genuine_svm_predict_reads_such_models(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fit_module.solver_named("toy"), "solution", folded)
    model = fit(dataset_of(name), TrainConfig(kernel="linear", C=0.5)).model
    (tmp_path / "m").write_bytes(model_text(model))
    argv = [TOOLS / "svm-predict", "-q", GOLDEN / f"{name}.t", tmp_path / "m", tmp_path / "o"]
    subprocess.run(argv, check=True, capture_output=True)
    ours = predict(model, decision_values(model, dataset_of(f"{name}.t").rows))
    assert_array_equal(numbers(tmp_path / "o")[:, 0], ours)


def test_sums_and_lists_of_the_machines() -> None:
    seen: list[tuple[Pair, SolverResult]] = []
    dataset = dataset_of("three")
    result = fit(dataset, TrainConfig(gamma=0.5), on_machines=lambda count, each: seen.extend(each()))
    assert [(pair.positive, pair.negative) for pair, _ in seen] == [(0, 1), (0, 2), (1, 2)]
    for (_, found), machine in zip(seen, result.machines, strict=True):
        assert_array_equal(found.solution.coef, machine.solution.coef)
        assert (found.certificate, found.steps) == (machine.certificate, machine.steps)
    assert result.steps == sum(m.steps for m in result.machines) > 0
    assert result.kernel_evaluations == sum(m.kernel_evaluations for m in result.machines)
    whole = result.certificate
    assert_allclose(whole.gap, whole.primal - whole.dual)
    assert whole.violation == max(m.certificate.violation for m in result.machines)
    for pair, _ in seen:
        rows = pair.problem(dataset, TrainConfig(), result.model.kernel).rows
        assert_array_equal(rows.to_dense(), dataset.rows.take(pair.examples).to_dense())
        labels = [int(dataset.y[e]) for e in pair.examples]
        first = int(result.model.labels[pair.positive])  # type: ignore[index]
        assert_array_equal(pair.y > 0, [label == first for label in labels])


@pytest.mark.parametrize(
    ("y", "labels", "groups"),
    [
        ([-1, 1, -1], [1, -1], [[1], [0, 2]]),
        ([1, -1, 1], [1, -1], [[0, 2], [1]]),
        ([0, 1], [0, 1], [[0], [1]]),
        ([1.7, -1.2, 1.1, -1.9], [1, -1], [[0, 2], [1, 3]]),
        ([-1, 1, 2], [-1, 1, 2], [[0], [1], [2]]),
        ([0.5, -0.5], [0], [[0, 1]]),
        ([-(2**31) - 0.5, 2**31 - 0.5], [-(2**31), 2**31 - 1], [[0], [1]]),
    ],
)
def test_labels_in_libsvms_order(y: list[float], labels: list[int], groups: list[list[int]]) -> None:
    found, members = group_classes(np.array(y, dtype=float), np.arange(len(y)))
    assert found.tolist() == labels
    assert [group.tolist() for group in members] == groups


def upper_of(config: TrainConfig, weight: list[float] | None = None) -> list[Floats]:
    """The C_i of every pair of a five-row, three-class data set."""
    rows = Rows.from_dense(np.arange(10.0).reshape(5, 2))
    pairs: list[Pair] = []
    dataset = Dataset(rows, np.array([3.0, 5, 5, 3, 4]), None if weight is None else np.array(weight))
    fit(dataset, config, on_machines=lambda count, each: pairs.extend(pair for pair, _ in each()))
    return [pair.upper for pair in pairs]


def test_what_C_each_example_gets() -> None:
    assert [u.tolist() for u in upper_of(TrainConfig(C=2.0))] == [[2] * 4, [2] * 3, [2] * 3]
    weighted = TrainConfig(C=2.0, class_weight=((3, 2.0), (5, 0.5), (3, 3.0)))
    assert [u.tolist() for u in upper_of(weighted)] == [[12, 1, 1, 12], [12, 12, 2], [1, 1, 2]]
    costs = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [u.tolist() for u in upper_of(TrainConfig(), costs)] == [[1, 2, 3, 4], [1, 4, 5], [2, 3, 5]]
    assert_allclose(np.concatenate(upper_of(TrainConfig(lam=0.1))), [2.5] * 4 + [10 / 3] * 6)


def test_examples_of_weight_zero_take_no_part() -> None:
    assert [u.tolist() for u in upper_of(TrainConfig(), [1, 0, 1, 1, 1])] == [[1, 1, 1], [1, 1, 1], [1, 1]]
    assert [u.tolist() for u in upper_of(TrainConfig(), [1, 1, 1, 1, 0])] == [[1, 1, 1, 1]]


def test_gammas_default_and_the_numbers_a_kernel_uses() -> None:
    assert kernel_of(TrainConfig(), 4) == Kernel(2, 0.25)
    assert kernel_of(TrainConfig(), 0) == Kernel(2, 0.0)
    assert kernel_of(TrainConfig(kernel="linear", gamma=3.0, coef0=1.0, degree=7), 4) == Kernel(0)
    assert kernel_of(TrainConfig(kernel="polynomial", gamma=3.0, coef0=1.0, degree=7), 4) == Kernel(1, 3.0, 1.0, 7)
    assert kernel_of(TrainConfig(kernel="sigmoid", gamma=3.0, coef0=1.0, degree=7), 4) == Kernel(3, 3.0, 1.0)


def test_warnings_are_libsvms() -> None:
    said: list[str] = []
    dataset = dataset_of("one")
    result = fit(dataset, TrainConfig(gamma=0.3, class_weight=((7, 2.0),)), on_warning=said.append)
    assert said == [ONE_CLASS, "WARNING: class label 7 specified in weight is not found"]
    assert (result.machines, result.status, len(result.sv_index)) == ((), Status.CONVERGED, 0)
    assert result.certificate == Certificate(0, 0, 0, 0)
    theirs = (GOLDEN / "one.s0t2.model").read_bytes()
    assert model_text(result.model, style="libsvm").split(b"gamma")[0] == theirs.split(b"gamma")[0]
    assert model_text(result.model, style="libsvm").split(b"nr_class")[1] == theirs.split(b"nr_class")[1]
    assert_array_equal(predict(result.model, decision_values(result.model, dataset.rows)), np.full(5, -1.0))


@pytest.mark.parametrize(
    ("y", "weight", "why"),
    [
        ([], None, "no examples to train on"),
        ([1, math.nan], None, "the data: example 2 has label nan"),
        ([1, 3e9], None, "example 2 has label 3000000000: "),
        ([1, math.inf], None, "example 2 has label inf"),
        ([1, -1], [1, -1], "the data: example 2 has weight -1"),
        ([1, -1], [math.nan, 1], "example 1 has weight nan"),
        ([1, -1], [0, 0], "every example has weight 0"),
    ],
)
def test_data_that_cannot_be_trained_on(y: list[float], weight: list[float] | None, why: str) -> None:
    rows = Rows.from_dense(np.ones((len(y), 1)))
    dataset = Dataset(rows, np.array(y, dtype=float), None if weight is None else np.array(weight, dtype=float))
    with pytest.raises(DataError, match=why):
        fit(dataset, TrainConfig())


def test_types_and_knobs_that_are_not_there() -> None:
    with pytest.raises(UsageError, match=r"^-s 3 \(epsilon_svr\): training this type is not available in this version"):
        fit(dataset_of("two"), TrainConfig(svm_type="epsilon_svr"))
    with pytest.raises(UsageError, match="has no option 'second'; it has first"):
        fit(dataset_of("two"), TrainConfig(solver_options=(("second", "1"),)))
    with pytest.raises(UsageError, match="-c"):
        fit(dataset_of("two"), TrainConfig(C=-1.0))


def test_limits_and_interruption_leave_a_whole_model() -> None:
    dataset = dataset_of("three")
    limited = fit(dataset, TrainConfig(eps=1e-12, max_iter=4))
    assert [m.steps for m in limited.machines] == [4, 4, 4]
    assert limited.status is Status.MAX_ITER
    late = fit(dataset, TrainConfig(eps=1e-12, time_limit_s=1e-9))
    assert late.status is Status.TIME_LIMIT
    stopped = fit(dataset, TrainConfig(eps=1e-12), interrupted=lambda: True)
    assert stopped.status is Status.INTERRUPTED
    for result in (limited, late, stopped):
        assert len(result.machines) == len(result.model.machines) == 3
        assert parse_model(model_text(result.model), "m").n_support == result.model.n_support
    calls = iter([False] * 3 + [True] * 100)
    assert fit(dataset, TrainConfig(eps=1e-12), interrupted=lambda: next(calls)).status is Status.INTERRUPTED


def test_the_solvers_own_bias_stands_where_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    toy, dataset = fit_module.solver_named("toy"), dataset_of("two")
    seen: list[str] = []
    said: list[str] = []

    def start_seen(problem: Problem, options: Options, eps: float, seed: int) -> State:
        seen.append(problem.bias)
        return start(problem, options, eps, seed)

    monkeypatch.setattr(toy, "start", start_seen)
    for bias in (None, "free", "none"):
        fit(dataset, TrainConfig(bias=bias), on_warning=said.append)
    assert (seen, said) == (["free", "free", "none"], [])

    monkeypatch.setattr(toy, "BIASES", ("none",))
    seen.clear()
    fit(dataset, TrainConfig(bias="none"), on_warning=said.append)
    assert said == []
    fit(dataset, TrainConfig(solver="pair"), on_warning=said.append)
    cross_validate(dataset, TrainConfig(), folds(dataset.y, 3, glibc_rand()), on_warning=said.append)
    assert said == [pairs.WITHOUT_BIAS.format(name) for name in ("pair", "smo")]
    assert seen == ["none"] * 5
    with pytest.raises(UsageError, match=r"^--solver smo: it trains without a bias only: use --bias none, or another solver$"):
        fit(dataset, TrainConfig(bias="free"))


def test_limits_reach_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_module.solver_named("toy"), "EXACT", False)
    found = fit(dataset_of("two"), TrainConfig(max_evaluations=5))
    assert (found.status, found.kernel_evaluations) == (Status.MAX_EVALUATIONS, 5)
    found = fit(dataset_of("two"), TrainConfig(patience=1, eps=1e-12), holdout=dataset_of("two.t"))
    assert found.status is Status.EARLY_STOP


@pytest.mark.parametrize("k", [2, 5, 24])
def test_cross_validation_is_svm_trains(k: int) -> None:
    dataset = dataset_of("three")
    predictions = cross_validate(dataset, EXACT, folds(dataset.y, k, glibc_rand()))
    printed = f"Cross Validation Accuracy = {100 * accuracy(dataset.y, predictions):g}%\n"
    assert printed == (GOLDEN / f"three.v{k}").read_text()


@given(st.lists(st.integers(0, 3), min_size=2, max_size=40), st.integers(2, 9), st.randoms())
def test_folds_are_even_and_stratified(labels: list[int], k: int, draw: Any) -> None:
    k = min(k, len(labels))
    y = np.array(labels, dtype=float)
    split = folds(y, k, lambda: int(draw.getrandbits(31)))
    assert sorted(split.order.tolist()) == list(range(len(y)))
    assert (split.starts[0], split.starts[-1]) == (0, len(y))
    parts = [y[split.order[a:b]] for a, b in zip(split.starts[:-1], split.starts[1:], strict=True)]
    for group in np.unique(y) if k < len(y) else [None]:
        sizes = [len(part) if group is None else int((part == group).sum()) for part in parts]
        assert max(sizes) - min(sizes) <= 1


def test_folds_that_cannot_be() -> None:
    for k in (1, 4):
        with pytest.raises(UsageError, match=f"^-v {k}: folds must be at least 2 and at most"):
            folds(np.ones(3), k, lambda: 0)


def test_cross_validation_of_classes_of_one_example() -> None:
    """Two folds of three single-example classes: one fold is empty, the other leaves nothing to train on."""
    dataset = Dataset(Rows.from_dense(np.arange(1.0, 4.0)[:, None]), np.array([1.0, 2.0, 3.0]))
    fitted: list[tuple[Status, int]] = []

    def on_fold(status: Status, n_support: int) -> None:
        fitted.append((status, n_support))

    split = folds(dataset.y, 2, lambda: 0)
    assert np.isnan(cross_validate(dataset, TrainConfig(), split, on_fold=on_fold)).all()
    assert fitted == []
    assert np.isnan(cross_validate(dataset, TrainConfig(), split, every_fold=True, on_fold=on_fold)).all()
    assert fitted == [(Status.CONVERGED, 3)]


def test_an_interrupted_cross_validation_stops() -> None:
    dataset = dataset_of("two")
    predictions = cross_validate(dataset, TrainConfig(), folds(dataset.y, 3, glibc_rand()), interrupted=lambda: True)
    assert np.isnan(predictions).all()
