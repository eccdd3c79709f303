"""Pieces run once each, on however many threads; errors come back."""

from __future__ import annotations

import threading
import time
import weakref

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
