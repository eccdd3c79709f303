"""The stream driver against naive loops: what is counted, cut, saved and kept."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zoo import points

from svmkit import machines as machines_module
from svmkit import stream
from svmkit.config import TrainConfig
from svmkit.data import Chunk, Dataset, Floats, Ints, Rows
from svmkit.engine.kernels import cross_apply
from svmkit.errors import DataError, UsageError
from svmkit.io.model_libsvm import write_model
from svmkit.machines import Machines
from svmkit.model import REST, Model, answers, decision_values
from svmkit.pairs import WITHOUT_BIAS
from svmkit.problem import Stream
from svmkit.solvers import lasvm
from svmkit.stream import Listener, StreamResult, learn_stream
from svmkit.trace import Limits, Progress, Status, StreamRow

BINARY = np.array([1, -1])
THREE = np.array([2, 7, 4])
CONFIG = TrainConfig(solver="perceptron", gamma=0.3, bias="none")


def data(n: int = 400, labels: Any = BINARY) -> Dataset:
    X, _ = points(n, 4, seed=5)
    score = X[:, 0] + 0.3 * np.random.default_rng(2).normal(size=n)
    cuts = np.quantile(score, np.arange(1, len(labels)) / len(labels))
    return Dataset(Rows.from_dense(X), labels[np.searchsorted(cuts, score)].astype(float))


def chunks(dataset: Dataset, size: int = 10**9, first_line: int = 1) -> Iterator[Chunk]:
    for first in range(0, dataset.n, size):
        index = np.arange(first, min(first + size, dataset.n))
        yield Chunk(dataset.take(index), lambda row, first=first: f"d, line {first_line + first + row}")


def learn(dataset: Dataset, labels: Any = BINARY, config: TrainConfig = CONFIG, size: int = 10**9, **more: Any) -> StreamResult:
    return learn_stream(Machines(config, labels), [chunks(dataset, size)], **more)


def text(model: Model, folder: Path) -> bytes:
    write_model(str(folder / "m"), model)
    return (folder / "m").read_bytes()


CASES = [(BINARY, "ovo"), (THREE, "ovo"), (THREE, "ovr")]
cases = pytest.mark.parametrize(("labels", "multiclass"), CASES, ids=["binary", "ovo", "ovr"])


MAPPED = {"solver": "asset", "lam": 1e-3, "map": "fourier", "dim": 32}


@cases
@pytest.mark.parametrize("settings", [{}, {"kernel": "linear"}, MAPPED], ids=["rbf", "linear", "mapped"])
def test_chunks_change_nothing(labels: Any, multiclass: str, settings: dict[str, Any], tmp_path: Path) -> None:
    dataset, config = data(3000, labels), replace(CONFIG, multiclass=multiclass, **settings)
    whole = learn(dataset, labels, config)
    for size in (37, 1000):
        parts = learn(dataset, labels, config, size)
        assert text(parts.model, tmp_path) == text(whole.model, tmp_path)
        assert (parts.last.error, parts.last.window_error) == (whole.last.error, whole.last.window_error)
        assert parts.last.kernel_evaluations == whole.last.kernel_evaluations
    assert whole.status is Status.COMPLETED


@cases
@pytest.mark.parametrize("settings", [{}, MAPPED], ids=["rbf", "mapped"])
def test_errors_are_those_of_a_naive_loop(
    labels: Any, multiclass: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each example is answered by the model of all before it, then learned. With votes, those are renewed at every example."""
    monkeypatch.setattr(machines_module, "_VOTES_FOR", 1)
    monkeypatch.setattr(stream, "WINDOW", 100)
    dataset, config = data(250, labels), replace(CONFIG, multiclass=multiclass, **settings)
    found = learn(dataset, labels, config)
    naive = Machines(config, labels)
    wrong = []
    for i in range(dataset.n):
        row = dataset.rows.part(i, i + 1)
        wrong.append(bool(answers(naive.model(), row) != dataset.y[i]))
        naive.learn(row, np.flatnonzero(labels == dataset.y[i]), np.ones(1))
    assert sum(wrong) > 20
    assert found.last.error == sum(wrong) / 250
    assert (found.last.window_error, found.last.window) == (sum(wrong[-100:]) / 100, 100)


def test_votes_of_other_machines_lag_by_at_most_a_thousand_examples() -> None:
    machines, renewed, rows = Machines(CONFIG, THREE), [0], data(5000, THREE)
    classes = np.searchsorted(np.sort(THREE), rows.y)
    at = 0
    while at < rows.n:
        size = min(machines.rows_left(), rows.n - at)
        machines.learn(rows.rows.part(at, at + size), np.argsort(THREE)[classes[at : at + size]], np.ones(size))
        at += size
        renewed.append(at)
    assert renewed[:6] == [0, 1, 2, 4, 8, 16]
    assert max(np.diff(renewed)) == 1024


def test_second_passes_count_no_errors(tmp_path: Path) -> None:
    dataset = data()
    once = learn(dataset)
    twice = learn_stream(Machines(CONFIG, BINARY), [chunks(dataset), chunks(dataset)])
    assert (twice.last.error, twice.rows) == (once.last.error, 2 * once.rows)
    doubled = learn(dataset.take(np.tile(np.arange(dataset.n), 2)))
    assert text(twice.model, tmp_path) == text(doubled.model, tmp_path)


def test_weights_multiply_those_of_classes_and_zero_leaves_out(tmp_path: Path) -> None:
    dataset = data()
    weight = np.random.default_rng(0).choice([0.0, 1.0, 3.0], dataset.n)
    by_class = np.where(dataset.y == 1, 2.0, 1.0)
    kept = np.flatnonzero(weight)
    weighted = learn(replace(dataset, weight=weight), config=replace(CONFIG, class_weight=((1, 2.0),)))
    plain = learn(replace(dataset.take(kept), weight=(weight * by_class)[kept]))
    assert text(weighted.model, tmp_path) == text(plain.model, tmp_path)
    assert weighted.rows == len(kept)


def test_before_the_first_example_no_error_is_known() -> None:
    found = learn_stream(Machines(CONFIG, BINARY), [iter([])])
    assert (found.last.window, str(found.last.error), str(found.last.window_error)) == (0, "nan", "nan")


def test_snapshots_are_the_models_of_the_first_rows(tmp_path: Path) -> None:
    dataset, saved = data(1000), []
    learn(dataset, size=170, listener=Listener(on_snapshot=lambda model, rows: saved.append((rows, model)), snapshot_rows=300))
    assert [rows for rows, _ in saved] == [300, 600, 900]
    for rows, model in saved:
        assert text(model, tmp_path) == text(learn(dataset.take(np.arange(rows))).model, tmp_path)


def test_snapshots_by_the_clock_come_once_for_the_same_rows() -> None:
    saved: list[int] = []
    learn(data(2000), listener=Listener(on_snapshot=lambda model, rows: saved.append(rows), snapshot_s=1e-9))
    assert len(saved) == len(set(saved)) > 3
    assert saved == sorted(saved)


def test_rows_are_told_at_doubling_numbers() -> None:
    told: list[tuple[StreamRow, bool]] = []
    found = learn(data(5000), listener=Listener(on_row=lambda row, due: told.append((row, due)), every_s=1e9))
    assert [row.rows for row, _ in told] == [1024, 2048, 4096, 5000]
    assert not any(due for _, due in told)
    assert told[-1][0] == found.last


def test_rows_are_told_by_the_clock() -> None:
    told: list[tuple[StreamRow, bool]] = []
    learn(data(), listener=Listener(on_row=lambda row, due: told.append((row, due)), every_s=1e-9))
    assert len(told) > 3
    assert all(due for _, due in told[:-1])


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        (Limits(max_iter=123), Status.MAX_ITER),
        (Limits(time_limit_s=1e-9), Status.TIME_LIMIT),
        (Limits(max_evaluations=500), Status.MAX_EVALUATIONS),
    ],
)
def test_limits_end_a_stream(limits: Limits, status: Status) -> None:
    """In its first pass; a second is not begun."""

    def passes() -> Iterator[Iterator[Chunk]]:
        yield chunks(data())
        raise AssertionError

    found = learn_stream(Machines(CONFIG, BINARY), passes(), limits=limits)
    assert found.status is status
    assert 0 < found.rows < 400
    assert limits.max_iter is None or found.rows == 123


@pytest.mark.parametrize("most", [1, 500, 20_000])
def test_kernel_evaluations_end_a_stream_at_the_same_row_however_fast_it_goes(most: int, monkeypatch: Any) -> None:
    """And are passed by one example or a hundredth of them, though a call learns many."""
    rows = set()
    for call_s in (1e-9, 0.05, 1e9):
        monkeypatch.setattr(stream, "CALL_S", call_s)
        found = learn(data(1000), limits=Limits(max_evaluations=most))
        assert found.status is Status.MAX_EVALUATIONS
        rows.add(found.rows)
    (n,) = rows
    fewer = n - 1 - n // 100
    assert fewer == 0 or learn(data(1000), limits=Limits(max_iter=fewer)).last.kernel_evaluations < most
    assert found.last.kernel_evaluations >= most


@cases
def test_calls_are_not_too_many_however_long_each_takes(labels: Ints, multiclass: str, monkeypatch: Any) -> None:
    """By each a solver packs anew what it keeps; and no machine is called for nothing."""
    monkeypatch.setattr(stream, "CALL_S", 1e-9)
    machines, sizes = Machines(replace(CONFIG, multiclass=multiclass), labels), []
    extend = machines.solver.extend

    def counted(state: Any, rows: Rows, *more: Any) -> Floats:
        sizes.append(rows.n)
        return extend(state, rows, *more)

    monkeypatch.setattr(machines.solver, "extend", counted)
    found = learn_stream(machines, [chunks(data(2000, labels))])
    assert found.rows == 2000
    assert min(sizes) > 0
    assert len(sizes) <= len(machines.pairs) * (2000 / 64 + 20)  # and those up to rows at which something is due


def test_the_limit_of_kernel_evaluations_is_each_machines() -> None:
    config, most = replace(CONFIG, multiclass="ovr"), 2000
    machines = Machines(config, THREE)
    found = learn_stream(machines, [chunks(data(600, THREE))], limits=Limits(max_evaluations=most))
    assert found.status is Status.MAX_EVALUATIONS
    each = [machines.solver.progress(state).kernel_evaluations for state in machines._states]
    assert most <= max(each) <= 1.1 * most
    assert sum(each) == found.last.kernel_evaluations > most


def test_the_time_limit_holds_for_the_work_at_the_end(monkeypatch: Any) -> None:
    """A stream that has been learned in time, but whose finishing takes long."""
    clock = [0.0]
    monkeypatch.setattr(stream.Clock, "seconds", lambda self: clock[0])

    def endless() -> Progress:
        clock[0] += 1.0
        return Progress(0, 0)

    monkeypatch.setattr(lasvm, "finish", lambda state, budget: endless())
    config = TrainConfig(solver="lasvm", gamma=0.3)
    assert learn(data(), config=config, limits=Limits(time_limit_s=5.0)).status is Status.TIME_LIMIT
    assert clock[0] == 5.0


def test_an_interruption_ends_a_stream_that_waits() -> None:
    over = threading.Event()
    not_yet = iter([False, False])  # asked once more after the last row, then only while it waits

    class Counted(Machines):
        learned = 0

        def learn(self, rows: Rows, classes: Ints, weight: Floats) -> Any:
            self.learned += rows.n
            return super().learn(rows, classes, weight)

    def slow() -> Iterator[Chunk]:
        yield next(chunks(data()))
        assert over.wait(60), "nobody interrupted"

    machines = Counted(CONFIG, BINARY)
    found = learn_stream(machines, [slow()], interrupted=lambda: machines.learned == 400 and next(not_yet, True))
    over.set()
    assert (found.status, found.rows) == (Status.INTERRUPTED, 400)


def test_chunks_do_not_pile_up() -> None:
    """However long the stream: two wait, one is being made, one learned."""
    alive: list[weakref.ref[Floats]] = []

    def counted() -> Iterator[Chunk]:
        for chunk in chunks(data(20_000), size=100):
            alive.append(weakref.ref(chunk.dataset.y))
            if len(alive) % 20 == 0:
                gc.collect()  # looks at all objects of all tests before
                assert sum(ref() is not None for ref in alive) <= 5
            yield chunk

    learn_stream(Machines(replace(CONFIG, kernel="linear"), BINARY), [counted()])
    assert len(alive) == 200


def test_an_example_that_cannot_be_learned_is_named_by_its_place() -> None:
    dataset = data()
    dataset.y[31] = 5
    with pytest.raises(DataError, match=r"d, line 132: label 5 is none of 1, -1; .*--labels"):
        learn_stream(Machines(CONFIG, BINARY), [chunks(dataset, 10, first_line=101)])
    dataset = data()
    dataset.rows.data[dataset.rows.indptr[57] + 1] = -1e200
    with pytest.raises(DataError, match=r"line 58: -1e[+]200 for feature 2: values above 1e[+]150"):
        learn(dataset)


@pytest.mark.parametrize(
    ("config", "labels", "why"),
    [
        (replace(CONFIG, solver="smo"), BINARY, "--solver smo: needs all of the data at once; .*perceptron"),
        (replace(CONFIG, gamma=0.0), BINARY, "-g: "),
        (replace(CONFIG, kernel="precomputed"), BINARY, "-t 4"),
        (replace(CONFIG, svm_type="nu_svc"), BINARY, r"-s 1 \(nu_svc\): training this type is not available"),
        (replace(CONFIG, bias="free"), BINARY, "without a bias"),
        (replace(CONFIG, solver_options=(("epochs", "3"),)), BINARY, "--passes"),
        (replace(CONFIG, map="fourier"), BINARY, "--map: solver perceptron works on kernel values"),
        (replace(CONFIG, **{**MAPPED, "map": "nystroem"}), BINARY, "--map nystroem: chooses its landmarks"),
        (replace(CONFIG, **{**MAPPED, "orthogonal": True}), BINARY, "--orthogonal"),
        (CONFIG, np.array([1]), "--labels"),
        (CONFIG, np.array([1, 1]), "--labels"),
    ],
)
def test_what_a_stream_cannot_have_is_refused(config: TrainConfig, labels: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Machines(config, labels)


def test_a_solver_that_has_no_bias_says_so_unless_none_is_asked_for() -> None:
    said: list[str] = []
    Machines(replace(CONFIG, bias="none"), BINARY, on_warning=said.append)
    assert said == []
    machines = Machines(replace(CONFIG, bias=None), BINARY, on_warning=said.append)
    assert (machines.config.bias, said) == ("none", [WITHOUT_BIAS.format("perceptron")])


def test_rows_relate_the_two_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(labels: Any, n_rows: int | None, **settings: Any) -> tuple[float | None, float | None]:
        streams: list[Any] = []
        module = machines_module.solver_for_streams("perceptron")
        monkeypatch.setattr(module, "start_stream", lambda stream, *rest: streams.append(stream))
        Machines(replace(CONFIG, **settings), labels, n_rows)
        return streams[0].C, streams[0].lam

    assert seen(BINARY, None, C=2.0) == (2.0, None)
    assert seen(BINARY, 100, C=2.0) == (2.0, 1 / 200)
    assert seen(BINARY, None, lam=0.01) == (None, 0.01)
    assert seen(BINARY, 50, lam=0.01) == (2.0, 0.01)
    assert seen(THREE, 150, C=2.0) == (2.0, 1 / 200)  # each machine sees two thirds
    assert seen(THREE, 150, C=2.0, multiclass="ovr") == (2.0, 1 / 300)


def test_a_row_held_by_several_machines_stands_once() -> None:
    dataset = data(300, THREE)
    duplicated = dataset.take(np.concatenate([np.arange(300), np.arange(20)]))
    for multiclass in ("ovo", "ovr"):
        machines = Machines(replace(CONFIG, multiclass=multiclass, solver_options=(("average", "0"),)), THREE)
        found = learn_stream(machines, [chunks(duplicated)])
        rows = found.model.rows
        distinct = {rows.part(i, i + 1).data.tobytes() for i in range(rows.n)}
        assert len(distinct) <= rows.n <= len(distinct) + 20
        assert rows.n < machines.progress().n_support
        alone = [machines.solver.solution(state) for state in machines._states]
        for machine, one in zip(found.model.machines, alone, strict=True):
            assert sorted(machine.coef) == sorted(one.coef[one.coef != 0])
            assert len(np.unique(machine.index)) == len(machine.index)


@cases
def test_naive_sums_of_rows_and_weights(labels: Any, multiclass: str) -> None:
    """What a model answers is what each machine says that has learned its own examples alone, as ±1."""
    dataset, machines = data(300, labels), Machines(replace(CONFIG, multiclass=multiclass), labels)
    solver, y = machines.solver, dataset.y
    values = decision_values(learn_stream(machines, [chunks(dataset)]).model, dataset.rows)
    for column, (first, second) in enumerate(machines.pairs):
        own = np.flatnonzero((y == labels[first]) | (second == REST) | (y == labels[second]))
        state = solver.start_stream(Stream(machines.kernel, 1.0, None, "none"), solver.Options(), CONFIG.eps, CONFIG.seed)
        solver.extend(state, dataset.rows.take(own), np.where(y[own] == labels[first], 1.0, -1.0), np.ones(len(own)))
        one = solver.solution(state)
        expected = cross_apply(dataset.rows, one.own, machines.kernel, one.coef[:, None])[:, 0] - one.rho
        np.testing.assert_allclose(values[:, column], expected, atol=1e-10)


def test_of_several_faults_the_first_row_s_is_told_and_all_before_it_are_learned() -> None:
    rows = Rows.from_dense(np.array([[1.0], [2.0], [1e200], [3.0]]))
    data = Dataset(rows, np.array([1.0, -1.0, 1.0, 7.0]), np.array([1.0, 1.0, 1.0, np.inf]))
    classes, fault = stream._classes_of(Chunk(data, lambda row: f"line {row + 1}"), np.array([1, -1]))
    assert classes.tolist() == [0, 1]
    assert str(fault).startswith("line 3: 1e+200 for feature 1")


def test_rows_a_second_are_those_since_the_row_before() -> None:
    told = [StreamRow(*[0.0] * 9)]
    learn(data(5000), size=100, listener=Listener(lambda row, due: told.append(row), every_s=1e9))
    assert [row.rows for row in told] == [0, 1024, 2048, 4096, 5000]
    for before, row in pairwise(told):
        assert row.rows_per_s == (row.rows - before.rows) / max(row.seconds - before.seconds, 1e-9)


def test_who_does_not_wait_any_longer_hears_of_no_bad_line() -> None:
    dataset = data(20)
    dataset.y[0] = 5.0
    assert learn(dataset, interrupted=lambda: True).status is Status.INTERRUPTED
    with pytest.raises(DataError, match="line 1: label 5 is none of"):
        learn(dataset)


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(weight: float) -> None:
    weights = np.ones(20)
    weights[7] = weight
    with pytest.raises(DataError, match=f"d, line 8: weight {weight:g} is not finite"):
        learn(replace(data(20), weight=weights))
