"""Work that somebody waits for, who may leave: it ends then, and what it found is nobody's."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from svmkit import maps, parallel
from svmkit.errors import Abandoned


@pytest.fixture(autouse=True)
def _all_cores_again() -> object:
    yield
    parallel.use_threads(0)


def left_at_once(work: Callable[[], object], ended: list[Any]) -> None:
    """Attends ``work`` and leaves it; comes back once it has said in ``ended`` how it ended."""

    def poll() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel.attended(work, poll)
    for _ in range(100):
        if ended:
            break
        time.sleep(0.05)


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

    left_at_once(work, errors)
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


def test_work_is_given_up_once_that_is_said() -> None:
    ended, asked = threading.Event(), []
    assert parallel.unless(lambda: len(asked) > 2, lambda: asked.append(1) or time.sleep(0.3) or 7) == 7
    assert parallel.unless(lambda: asked.append(1) or len(asked) > 3, lambda: ended.wait(60)) is None
    assert len(asked) == 4
    ended.set()


def test_without_a_thread_of_its_own_attended_work_is_done_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert parallel.attended(lambda: 5, lambda: None) == 5


def test_who_attends_inside_work_that_is_left_leaves_too() -> None:
    ended, inner = threading.Event(), []

    def work() -> None:
        try:
            parallel.attended(lambda: ended.wait(60), lambda: None)
        except BaseException as error:
            inner.append(type(error))
            raise

    left_at_once(work, inner)
    ended.set()
    assert inner == [parallel.Left]


def test_what_is_being_done_is_said_again_while_nothing_is_said() -> None:
    """From the first, and on the thread that waits, which may raise what ends it."""
    heard: list[str] = []

    def work(say: Callable[[str], None]) -> int:
        time.sleep(0.35)
        say("more")
        say("most")
        time.sleep(0.35)
        return 5

    assert maps.heeded("some", work, heard.append) == 5
    assert heard.count("some") >= 2
    assert heard.count("more") == 1
    assert heard[-1] == "most"
    assert heard.count("most") >= 2

    def stop(doing: str) -> None:
        raise Abandoned(doing)

    with pytest.raises(Abandoned, match="some"):
        maps.heeded("some", work, stop)


def test_python_may_end_while_work_that_was_left_is_in_native_code() -> None:
    """As under a profiler, where svmkit ends as other programs do."""
    code = """if True:
        import sys
        import svmkit.cli
        import numpy as np
        from svmkit import parallel
        from svmkit.data import Rows
        from svmkit.engine.kernels import cross_apply
        from svmkit.problem import RBF, Kernel

        rows = Rows.from_dense(np.random.default_rng(0).normal(size=(50000, 10)))

        def work():
            while True:
                cross_apply(rows, rows, Kernel(RBF, 0.1), np.ones((50000, 1)))

        def poll():
            sys.exit(3)

        parallel.attended(work, poll)
    """
    for _ in range(3):
        assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 3
