"""Pieces run once each, on however many threads; errors come back."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from svmkit import parallel


@pytest.fixture(autouse=True)
def _all_cores_again() -> object:
    yield
    parallel.use_threads(0)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n_pieces", [0, 1, 2, 100])
def test_every_piece_runs_once(threads: int, n_pieces: int) -> None:
    parallel.use_threads(threads)
    done: list[int] = []
    parallel.run_pieces(done.append, n_pieces)
    assert sorted(done) == list(range(n_pieces))


def test_threads_really_work_side_by_side() -> None:
    parallel.use_threads(2)
    both = threading.Barrier(2, timeout=10)
    parallel.run_pieces(lambda _: both.wait(), 2)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_a_piece_is_raised_and_the_pool_lives_on(threads: int) -> None:
    parallel.use_threads(threads)

    def work(piece: int) -> None:
        if piece == 7:
            raise ValueError("piece 7")

    with pytest.raises(ValueError, match="piece 7"):
        parallel.run_pieces(work, 20)
    done: list[int] = []
    parallel.run_pieces(done.append, 10)
    assert len(done) == 10


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_pieces_inside_a_piece_run_on_its_own_thread(threads: int) -> None:
    parallel.use_threads(threads)
    together = threading.Barrier(threads, timeout=10)
    done: list[tuple[int, int, bool]] = []

    def work(outer: int) -> None:
        here = threading.get_ident()
        together.wait()  # every thread is inside a piece
        parallel.run_pieces(lambda inner: done.append((outer, inner, threading.get_ident() == here)), 20)

    parallel.run_pieces(work, threads)
    assert sorted(done) == [(outer, inner, True) for outer in range(threads) for inner in range(20)]


def test_after_pieces_inside_pieces_all_threads_work_again() -> None:
    parallel.use_threads(2)

    def work(outer: int) -> None:
        parallel.run_pieces(lambda inner: None, 3)
        raise ValueError(outer)

    with pytest.raises(ValueError, match=r"0|1"):
        parallel.run_pieces(work, 2)
    test_threads_really_work_side_by_side()
    parallel.run_pieces(lambda _: test_threads_really_work_side_by_side(), 1)  # a piece alone leaves the other threads free


def test_thread_count_defaults_to_the_cores() -> None:
    parallel.use_threads(0)
    assert parallel.threads() == parallel.cores() >= 1


def test_pieces_are_done_by_as_many_threads_as_the_system_lets_start(monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = threading.Thread.start, []

    def first_two(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(parallel, "_pool", [])
    monkeypatch.setattr(threading.Thread, "start", first_two)
    parallel.use_threads(10)
    done: list[int] = []
    parallel.run_pieces(done.append, 1000)
    assert sorted(done) == list(range(1000))
    assert len(started) == 2


def test_threads_have_an_upper_end() -> None:
    parallel.use_threads(10**6)
    assert parallel.threads() <= 2000


def test_what_was_worked_on_is_let_go() -> None:
    parallel.use_threads(3)
    content = np.zeros(5)
    gone = weakref.ref(content)

    def use(content: NDArray[np.float64]) -> None:
        parallel.run_pieces(lambda piece: content[piece], 5)

    use(content)
    del content
    for _ in range(200):
        if gone() is None:
            break
        time.sleep(0.01)  # a worker may still be on its way out of the task
    assert gone() is None


# --- ahead ----------------------------------------------------------------------------------------------------------------


def test_items_come_in_order_from_another_thread() -> None:
    makers: set[int] = set()

    def items() -> Iterator[int]:
        for i in range(100):
            makers.add(threading.get_ident())
            yield i

    assert list(parallel.ahead(items(), 2)) == list(range(100))
    assert makers.isdisjoint({threading.get_ident()})


def test_without_a_thread_of_their_own_items_come_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert list(parallel.ahead(iter(range(100)), 2)) == list(range(100))


def test_only_so_many_are_made_ahead() -> None:
    made: list[int] = []
    items = parallel.ahead((made.append(i) for i in range(100)), 2)
    next(items)
    time.sleep(0.3)
    assert len(made) == 4  # one taken, two waiting, one that waits to be put there
    items.close()


def test_an_error_comes_where_the_item_would_have() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("two")

    found = parallel.ahead(items(), 2)
    assert next(found) == 1
    with pytest.raises(KeyError, match="two"):
        next(found)


def test_waiting_can_be_given_up() -> None:
    never = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        never.wait()

    asked: list[int] = []
    assert list(parallel.ahead(items(), 2, lambda: len(asked) == 3 or bool(asked.append(1)))) == [1]
    assert len(asked) == 3
    never.set()


def test_an_error_that_comes_after_giving_up_is_none() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("two")

    assert list(parallel.ahead(items(), 2, lambda: True)) == [1]


def test_the_maker_stops_when_no_more_is_wanted() -> None:
    def maker_is_there() -> bool:
        return any(thread.name == "svmkit-ahead" for thread in threading.enumerate())

    items = parallel.ahead(iter(range(10**9)), 1)
    next(items)
    assert maker_is_there()
    items.close()
    deadline = time.monotonic() + 10
    while maker_is_there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_pieces_of_the_maker_stay_on_its_thread() -> None:
    parallel.use_threads(2)

    def items() -> Iterator[set[int]]:
        used: set[int] = set()
        parallel.run_pieces(lambda _: used.add(threading.get_ident()), 50)
        yield used

    (used,) = parallel.ahead(items(), 1)
    assert len(used) == 1


@pytest.mark.parametrize(("n", "n_pieces"), [(0, 1), (1, 1), (3, 5), (10, 3), (7, 7)])
def test_ranges_are_all_there_once(n: int, n_pieces: int) -> None:
    found: list[tuple[int, int]] = []
    parallel.run_ranges(lambda first, last: found.append((first, last)), n, n_pieces)
    assert sorted(i for first, last in found for i in range(first, last)) == list(range(n))
    assert len(found) == n_pieces
    assert max(last - first for first, last in found) - min(last - first for first, last in found) <= 1


@pytest.mark.parametrize(("n", "expected"), [(0, []), (1, [(0, 1)]), (8, [(0, 4), (4, 8)]), (9, [(0, 4), (4, 8), (8, 9)])])
def test_stretches_are_as_long_as_asked(n: int, expected: list[tuple[int, int]]) -> None:
    found: list[tuple[int, int]] = []
    parallel.run_stretches(lambda first, last: found.append((first, last)), n, 4)
    assert sorted(found) == expected


FORKED = """
import os, signal
from svmkit import parallel
parallel.use_threads(2)
parallel.run_pieces(lambda piece: None, 2)
if (child := os.fork()) == 0:
    signal.alarm(5)
    parallel.run_pieces(lambda piece: None, 2)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


def test_a_forked_process_waits_for_no_thread_that_it_has_not() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
