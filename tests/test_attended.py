"""Work that somebody waits for, who may leave: it ends then, and what it found is nobody's."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from svmkit import parallel


@pytest.fixture(autouse=True)
def _all_cores_again() -> object:
    yield
    parallel.use_threads(0)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_attended_work_is_done_on_all_threads_and_its_errors_come_back(threads: int) -> None:
    parallel.use_threads(threads)
    here, seen = threading.get_ident(), set()

    def work() -> int:
        parallel.run_pieces(lambda piece: seen.add(threading.get_ident()) or time.sleep(0.01), 20)
        return 3

    assert parallel.attended(work, lambda: None) == 3
    assert here not in seen
    assert len(seen) <= threads
    with pytest.raises(ZeroDivisionError):
        parallel.attended(lambda: 1 // 0, lambda: None)


@pytest.mark.parametrize("threads", [1, 2])
def test_attended_work_that_is_left_ends_before_its_next_piece(threads: int) -> None:
    parallel.use_threads(threads)
    begun, errors = [], []

    def work() -> None:
        try:
            parallel.run_pieces(lambda piece: begun.append(piece) or time.sleep(0.05), 1000)
        except BaseException as error:
            errors.append(error)

    def poll() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel.attended(work, poll)
    for _ in range(100):
        if errors:
            break
        time.sleep(0.05)
    assert [type(error) for error in errors] == [parallel.Left]
    assert len(begun) < 100
    parallel.run_pieces(begun.append, 5)  # the pool lives on


def test_pieces_of_attended_work_inside_a_piece_stay_on_its_thread() -> None:
    parallel.use_threads(2)

    def outer(piece: int) -> None:
        parallel.attended(lambda: parallel.run_pieces(lambda inner: time.sleep(0.01), 5), lambda: None)

    parallel.run_pieces(outer, 8)


def test_attended_work_keeps_what_is_said_of_floating_point_errors() -> None:
    with np.errstate(over="ignore"):
        assert parallel.attended(lambda: np.array([1e308]) * 10, lambda: None) == np.inf


def test_work_is_given_up_after_a_second_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_PATIENCE_S", 0.3)
    ended = threading.Event()
    assert parallel.patiently(lambda: time.sleep(0.15) or 7, lambda: True) == 7
    assert parallel.patiently(lambda: ended.wait(60), lambda: True) is None
    ended.set()
    assert parallel.patiently(lambda: time.sleep(0.5) or 7, lambda: False) == 7


def test_without_a_thread_of_its_own_attended_work_is_done_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert parallel.attended(lambda: 5, lambda: None) == 5
