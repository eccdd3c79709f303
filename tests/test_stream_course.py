"""The course of a stream: what its machines are told of passes and of the end, and how many examples each call has."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zoo import points

from svmkit import stream
from svmkit.config import TrainConfig
from svmkit.data import Chunk, Dataset, Floats, Ints, Rows
from svmkit.io.model_libsvm import model_text
from svmkit.machines import Machines
from svmkit.stream import Listener, learn_stream
from svmkit.trace import Limits, Status, StreamRow

BINARY = np.array([1, -1])
#: With memory for few kernel values: what the finishing computes counts.
LASVM = TrainConfig(solver="lasvm", gamma=0.3, eps=1e-6, cache_mb=1e-3)


def data(n: int = 300) -> Dataset:
    X, y = points(n, 4, seed=5)
    return Dataset(Rows.from_dense(X), y)


def chunks(dataset: Dataset, *sizes: int) -> Iterator[Chunk]:
    first = 0
    for size in sizes or (dataset.n,):
        yield Chunk(dataset.take(np.arange(first, first + size)), lambda row, first=first: f"line {first + row + 1}")
        first += size


def test_machines_hear_that_a_pass_begins() -> None:
    """Those of lasvm then pass over what they have; else an example would be learned twice."""
    dataset, by_hand = data(), Machines(LASVM, BINARY)
    for number in range(3):
        if number:
            by_hand.begin_pass()
        by_hand.learn(dataset.rows, np.where(dataset.y == 1, 0, 1), np.ones(dataset.n))
    by_hand.finish(lambda: None)
    found = learn_stream(Machines(LASVM, BINARY), [chunks(dataset) for _ in range(3)])
    assert model_text(found.model) == model_text(by_hand.model())


def test_what_finishing_does_is_in_the_report() -> None:
    """And a stream that a limit ends is not finished."""
    dataset, told = data(), list[StreamRow]()
    machines = Machines(LASVM, BINARY)
    found = learn_stream(machines, [chunks(dataset)], listener=Listener(on_row=lambda row, due: told.append(row)))
    progress = machines.progress()
    assert (found.last.n_support, found.last.kernel_evaluations) == (progress.n_support, progress.kernel_evaluations)
    assert told[-1] == found.last
    unfinished = Machines(replace(LASVM, solver_options=(("finish", "false"),)), BINARY)
    unfinished.learn(dataset.rows, np.where(dataset.y == 1, 0, 1), np.ones(dataset.n))
    assert unfinished.progress().kernel_evaluations < progress.kernel_evaluations
    cut = learn_stream(Machines(LASVM, BINARY), [chunks(dataset)], limits=Limits(max_iter=dataset.n))
    assert cut.status is Status.MAX_ITER
    assert model_text(cut.model) == model_text(unfinished.model())
    assert model_text(cut.model) != model_text(found.model)


def test_an_interruption_is_heard_where_all_that_comes_has_weight_0() -> None:
    dataset, taken = replace(data(), weight=np.zeros(300)), list[Chunk]()

    def noted() -> Iterator[Chunk]:
        for chunk in chunks(dataset, *[1] * 300):
            taken.append(chunk)
            yield chunk

    found = learn_stream(Machines(LASVM, BINARY), [noted()], interrupted=lambda: bool(taken))
    assert (found.status, found.rows) == (Status.INTERRUPTED, 0)
    assert len(taken) < 10


class Timed(Machines):
    """Perceptrons of which 1024 examples take a second of ``clock``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(TrainConfig(solver="perceptron", gamma=0.3, bias="none"), BINARY)
        self.clock, self.sizes = 0.0, list[int]()
        monkeypatch.setattr(stream.Clock, "seconds", lambda clock: self.clock)
        monkeypatch.setattr(stream, "CALL_S", 0.05)

    def learn(self, rows: Rows, classes: Ints, weight: Floats) -> Any:
        self.sizes.append(rows.n)
        self.clock += rows.n / 1024
        return super().learn(rows, classes, weight)


def test_small_chunks_say_nothing_of_how_many_examples_a_call_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten examples take less than a call may; sixty-four take more than that, though not too much."""
    machines = Timed(monkeypatch)
    learn_stream(machines, [chunks(data(1000), *[10] * 20, 800)])
    assert machines.sizes[:20] == [10] * 20
    assert max(machines.sizes) == 64


def test_reports_and_snapshots_by_the_clock_come_that_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    told, saved = list[float](), list[int]()
    listener = Listener(
        on_row=lambda row, due: told.append(row.seconds) if due else None,
        on_snapshot=lambda model, rows: saved.append(rows),
        every_s=0.125,
        snapshot_s=0.25,
    )
    learn_stream(Timed(monkeypatch), [chunks(data(1000), *[8] * 125)], listener=listener)
    assert told == [0.125 * number for number in range(1, 8)]
    assert saved == [256, 512, 768]


@pytest.mark.skipif(sys.platform != "linux", reason="what Linux says of a process")
def test_memory_is_what_the_system_says() -> None:
    (resident,) = re.findall(r"VmRSS:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert stream.memory_mb() == pytest.approx(int(resident) / 1024, rel=0.1)
