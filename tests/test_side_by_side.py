"""Machines and folds trained side by side: models, what listeners hear, limits and errors are those of one after another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from svmkit import _jit, parallel, schedule, small_folds, solvers, training
from svmkit import fit as fit_module
from svmkit.certificate import UNKNOWN
from svmkit.cli.compat.training_text import TrainingText
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Rows
from svmkit.errors import DataError
from svmkit.fit import fit
from svmkit.folds import cross_validate, folds
from svmkit.io.model_libsvm import model_text
from svmkit.model import class_pairs
from svmkit.problem import Solution
from svmkit.solvers import looks, smo
from svmkit.solvers.base import SolverResult
from svmkit.trace import Progress, Status
from svmkit.trained import Part, Trained, time_spent

pytestmark = pytest.mark.usefixtures("two_threads")

CONFIG = TrainConfig(C=4.0, gamma=0.03)


def classes(sizes: list[int]) -> Dataset:
    """Overlapping clouds of points, a class each."""
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(len(sizes), dtype=float), sizes)
    centres = 0.3 * rng.normal(size=(len(sizes), 64))
    order = rng.permutation(len(y))
    return Dataset(Rows.from_dense((centres[y.astype(int)] + rng.normal(size=(len(y), 64)))[order]), y[order])


DATA = classes([250, 260, 150, 300, 280])
N_MACHINES = 10


def solver_with(monkeypatch: pytest.MonkeyPatch, **parts: Any) -> None:
    """Puts functions in the place of the block solver's, which then trains each machine alone."""
    module = solvers.solver("smo")
    names = ("SUMMARY", "PAPER", "EXACT", "BIASES", "Options", "start", "advance")
    kept = {name: getattr(module, name) for name in names}
    solver = SimpleNamespace(**{**kept, "solution": module.solution, **parts})
    for user in (fit_module, small_folds):
        monkeypatch.setattr(user, "solver_named", lambda name: solver)


@pytest.mark.parametrize(
    ("sizes", "nonzeros", "expected"),
    [
        ([500] * 4, 16, True),
        ([250] * 4, 64, True),  # rows four times as long
        ([400] * 10, 16, False),  # too small
        ([20] * 30 + [1200] * 2, 16, False),  # one large, many too small
        ([5001] * 4, 16, False),  # large enough for all threads
        ([1000] * 3, 16, False),  # three machines on two threads leave one idle
        ([4000, 4000, 50, 50], 16, False),  # all wait for one
        ([1000, 1000], 16, False),
        ([1000], 16, False),
    ],
)
def test_what_is_trained_side_by_side(sizes: list[int], nonzeros: int, expected: bool) -> None:
    members = [np.arange(size) for size in sizes]
    rows = Rows.from_dense(np.ones((2, nonzeros)))
    machines = schedule.sizes_of(members, class_pairs(len(sizes), "ovo"))
    assert schedule.side_by_side(smo, rows, machines, schedule.jobs_of(np.full(len(machines), np.inf))) is expected


def test_machines_really_are_trained_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=20)
    start = solvers.solver("smo").start

    def start_together(*args: Any) -> Any:
        both.wait()
        return start(*args)

    solver_with(monkeypatch, start=start_together)
    assert len(fit(DATA, CONFIG).machines) == N_MACHINES


@pytest.mark.parametrize("solver", ["smo", "pair"])
def test_model_text_and_results_are_those_of_one_thread(solver: str, capfd: pytest.CaptureFixture[str]) -> None:
    config = replace(CONFIG, solver=solver)
    outcomes = []
    for n_threads in (1, 2, 5):
        parallel.use_threads(n_threads)
        text = TrainingText(False, 20, config)
        pairs: list[tuple[int, int]] = []

        def machines(count: int, each: Any, say: Any = text.machines, pairs: list[Any] = pairs) -> None:
            pairs.extend((pair.positive, pair.negative) for pair, _ in each())
            say(count, each)

        found = fit(DATA, config, on_progress=text.progress, on_machines=machines)
        text.fitted(found.model.n_support)
        figures = [(m.steps, m.kernel_evaluations, m.certificate, m.report, m.status) for m in found.machines]
        outcomes.append((model_text(found.model), pairs, figures, found.sv_index.tolist(), capfd.readouterr()))
        assert pairs == sorted(pairs)
        assert len(pairs) == N_MACHINES
    assert outcomes[1:] == outcomes[:1] * 2
    assert outcomes[0][-1].out.count("optimization finished") == N_MACHINES
    assert ".*" in outcomes[0][-1].out


@pytest.mark.parametrize("k", [3, 5], ids=["folds by themselves", "folds side by side"])
def test_cross_validation_says_the_same(k: int, capfd: pytest.CaptureFixture[str]) -> None:
    outcomes = []
    for n_threads in (1, 2):
        parallel.use_threads(n_threads)
        text = TrainingText(False, 20, CONFIG)
        split = folds(DATA.y, k, np.random.default_rng(2).integers(2**31, size=2 * DATA.n).tolist().__iter__().__next__)
        answers = cross_validate(
            DATA,
            CONFIG,
            split,
            on_progress=text.progress,
            on_machines=text.machines,
            on_fold=lambda _, n_support, text=text: text.fitted(n_support),
            on_warning=text.warning,
        )
        outcomes.append((answers.tolist(), capfd.readouterr()))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1].out.count("Total nSV") == k


@pytest.mark.parametrize(("limit_s", "most"), [(None, 2), (1000.0, 1)])
def test_folds_really_are_trained_side_by_side(limit_s: float | None, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """But one after another where each has a share of the time."""
    data, lock = classes([600, 600]), threading.Lock()
    both, running = threading.Barrier(most, timeout=20), [0]
    start = solvers.solver("smo").start
    seen = []

    def start_together(*args: Any) -> Any:
        with lock:
            running[0] += 1
        both.wait()
        time.sleep(0.05)  # of those that should not run beside each other, one might be over before the next begins
        seen.append(running[0])
        both.wait()
        with lock:
            running[0] -= 1
        return start(*args)

    solver_with(monkeypatch, start=start_together)
    config = replace(CONFIG, time_limit_s=limit_s)
    assert not np.isnan(cross_validate(data, config, folds(data.y, 4, lambda: 0))).any()
    assert seen == [most] * 4


def test_a_fold_that_is_interrupted_answers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its model so far might be right by luck."""
    start, begun = solvers.solver("smo").start, list[int]()
    solver_with(monkeypatch, start=lambda *args: begun.append(1) or start(*args))
    data = classes([60, 60])
    answers = cross_validate(data, CONFIG, folds(data.y, 4, lambda: 0), interrupted=lambda: bool(begun))
    assert (len(begun), np.isnan(answers).all()) == (1, True)


def test_folds_stop_where_one_fails_or_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    data, calls = classes([600, 600]), []

    def fails(*args: Any) -> Any:
        calls.append(args)
        raise DataError("that one")

    solver_with(monkeypatch, start=fails)
    with pytest.raises(DataError, match="that one"):
        cross_validate(data, CONFIG, folds(data.y, 8, lambda: 0))
    assert len(calls) <= 2
    assert np.isnan(cross_validate(data, CONFIG, folds(data.y, 8, lambda: 0), interrupted=lambda: True)).all()


def test_progress_is_of_the_first_unfinished_machine_in_time_that_only_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    solver_with(monkeypatch)
    heard: list[tuple[int, float, Progress]] = []
    done: list[SolverResult] = []
    fit(
        DATA,
        CONFIG,
        on_progress=lambda seconds, progress: heard.append((len(done), seconds, progress)),
        on_machines=lambda count, each: done.extend(result for _, result in each()),
    )
    for number, result in enumerate(done):
        (*_, last) = (progress for machine, _, progress in heard if machine == number)
        assert (last.steps, last.kernel_evaluations, last.done) == (result.steps, result.kernel_evaluations, True)
        own = [seconds for machine, seconds, _ in heard if machine == number]
        assert own == sorted(own)


def stopping_after(calls: int) -> Callable[[], bool]:
    """False ``calls`` times, then True."""
    lock, left = threading.Lock(), [calls]

    def interrupted() -> bool:
        with lock:
            left[0] -= 1
            return left[0] < 0

    return interrupted


@pytest.mark.parametrize("calls", [0, 1, 30])
def test_an_interruption_reaches_every_machine_and_leaves_a_whole_model(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    solver_with(monkeypatch)
    heard: list[SolverResult] = []
    config = replace(CONFIG, eps=1e-9)
    found = fit(
        DATA,
        config,
        interrupted=stopping_after(calls),
        on_machines=lambda count, each: heard.extend(result for _, result in each()),
    )
    assert found.status is Status.INTERRUPTED
    assert len(heard) == len(found.machines) == N_MACHINES
    for one, other in zip(heard, found.machines, strict=True):
        assert (one.status, one.certificate, one.steps) == (other.status, other.certificate, other.steps)
        assert one.solution.coef.tolist() == other.solution.coef.tolist()
    assert sum(machine.status is Status.INTERRUPTED for machine in found.machines) >= N_MACHINES - calls


def test_small_machines_that_are_left_are_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an interruption before the first: f = 0, and the certificate of that."""
    rng = np.random.default_rng(4)
    y = np.repeat(np.arange(12.0), 5)
    data = Dataset(Rows.from_dense(rng.normal(size=(60, 3))), y)
    left = fit(data, TrainConfig(gamma=0.5), interrupted=lambda: True)
    monkeypatch.delattr("svmkit.solvers.smo.together")
    alone = fit(data, TrainConfig(gamma=0.5), interrupted=lambda: True)
    for together, single in zip(left.machines, alone.machines, strict=True):
        assert (together.status, together.certificate) == (single.status, single.certificate)
        assert (together.steps, together.kernel_evaluations, together.solution.n_support) == (0, 0, 0)
    assert (left.status, left.certificate, left.model.n_support) == (Status.INTERRUPTED, alone.certificate, 0)
    assert len(left.trained) < len(alone.trained) == 66


def limits_seen(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time limits that machines come to have."""
    limits: list[float] = []
    run = training.run

    def run_under(*args: Any, **kwargs: Any) -> SolverResult:
        limits.append(kwargs["limits"].time_limit_s)
        return run(*args, **kwargs)

    monkeypatch.setattr(training, "run", run_under)
    return limits


def test_the_time_limit_is_for_all_machines_together(monkeypatch: pytest.MonkeyPatch) -> None:
    solver_with(monkeypatch)
    found = fit(DATA, replace(CONFIG, eps=1e-9, time_limit_s=1e-9))
    assert [machine.status for machine in found.machines] == [Status.TIME_LIMIT] * N_MACHINES
    limits = limits_seen(monkeypatch)
    found = fit(DATA, replace(CONFIG, time_limit_s=1000.0))
    assert found.status is Status.CONVERGED
    assert all(1000 - 100 < limit <= 1000 for limit in limits)
    assert len(set(limits)) == N_MACHINES  # what is left shrinks


@pytest.mark.parametrize("dataset", [DATA, classes([60, 70, 80])], ids=["side by side", "one after another"])
def test_compiling_is_not_on_the_clock_of_the_time_limit(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    start = solvers.solver("smo").start

    def compiling_start(*args: Any) -> Any:
        with _jit._lock, _jit._counted():
            time.sleep(0.2)
        return start(*args)

    solver_with(monkeypatch, start=compiling_start)
    limits = limits_seen(monkeypatch)
    fit(dataset, replace(CONFIG, time_limit_s=100.0))
    assert min(limits) > 99.8


def test_certificates_of_earlier_machines_are_not_on_it_where_machines_come_one_after_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certify = looks.certify

    def slow(*args: Any) -> Any:
        time.sleep(0.2)
        return certify(*args)

    monkeypatch.setattr(looks, "certify", slow)
    limits = limits_seen(monkeypatch)
    found = fit(classes([60, 70, 80]), replace(CONFIG, time_limit_s=100.0), on_trace=lambda row: None)
    assert limits == pytest.approx([100.0 - sum(m.seconds for m in found.machines[:k]) for k in range(3)])
    assert found.seconds == pytest.approx(sum(m.seconds for m in found.machines))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_in_one_machine_comes_after_those_before_it(n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parallel.use_threads(n_threads)
    start = solvers.solver("smo").start

    def start_unless(problem: Any, *rest: Any) -> Any:
        if problem.n in (250 + 280, 260 + 300):  # classes 0 and 4, 1 and 3
            raise MemoryError(f"no room for {problem.n} rows")
        return start(problem, *rest)

    solver_with(monkeypatch, start=start_unless)
    heard: list[tuple[int, int]] = []
    data = replace(DATA, y=np.sort(DATA.y), rows=DATA.rows.take(np.argsort(DATA.y, kind="stable")))
    with pytest.raises(MemoryError, match="no room for 530 rows"):
        fit(data, CONFIG, on_machines=lambda count, each: heard.extend(pair[:2] for pair, _ in each()))
    assert heard == list(combinations(range(5), 2))[:3]


def test_a_trace_makes_machines_come_one_after_another() -> None:
    rows, threads_seen, done = [], set(), []

    def trace(row: Any) -> None:
        rows.append((len(done), row))
        threads_seen.add(threading.get_ident())

    found = fit(DATA, CONFIG, on_trace=trace, on_machines=lambda count, each: done.extend(result for _, result in each()))
    assert threads_seen == {threading.get_ident()}
    assert rows == [(number, row) for number, machine in enumerate(found.machines) for row in machine.trace]


#: Best first.
BY_MERIT = (
    *(Status.CONVERGED, Status.COMPLETED, Status.EARLY_STOP, Status.STALLED),
    *(Status.MAX_ITER, Status.MAX_EVALUATIONS, Status.TIME_LIMIT, Status.INTERRUPTED),
)


@pytest.mark.parametrize(("better", "worse"), list(pairwise(BY_MERIT)))
@pytest.mark.parametrize("place", [0, 2])
def test_a_model_ends_as_the_worst_of_its_machines(
    better: Status, worse: Status, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever machine that is; the command line's exit code, warning and report follow it."""
    statuses, run = iter([worse if number == place else better for number in range(3)]), training.run
    solver_with(monkeypatch)
    monkeypatch.setattr(training, "run", lambda *args, **rest: replace(run(*args, **rest), status=next(statuses)))
    assert fit(classes([4, 5, 6]), CONFIG).status is worse


def test_time_is_counted_once() -> None:
    """0–2 and 1–4 overlap, 3–3.5 lies within, 5–6 stands alone."""
    nothing = Solution(np.arange(0), np.empty(0), 0.0)
    machines: list[Part] = [
        Trained(np.arange(0), SolverResult(nothing, Status.CONVERGED, UNKNOWN, 0, 0, seconds), since_s)
        for since_s, seconds in ((1.0, 3.0), (0.0, 2.0), (3.0, 0.5), (5.0, 1.0))
    ]
    assert time_spent(machines) == 5.0
    assert time_spent([]) == 0.0
