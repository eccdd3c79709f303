"""Worker threads over nogil kernels; the only file that knows how many cores there are.

Pieces that sums go across are cut without regard to the number of threads, and others only where no value depends on the cuts:
so results do not depend on that number.
"""

from __future__ import annotations

import contextvars
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from math import ceil
from typing import Any, TypeVar

from svmkit.cpu_quota import cpu_quota

T = TypeVar("T")

#: How long a waiting thread goes without looking whether it is still wanted.
_LOOK_S = 0.1
#: Threads at most, whatever is asked for: each has a stack, and takes time to start.
_MOST = 1024

_threads = 0
_own = threading.local()
_pool: list[queue.SimpleQueue[Callable[[], None]]] = []


@cache
def cores() -> int:
    """Cores this process may use: those it is bound to, but no more than it is given the time of."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, ceil(min(bound, cpu_quota())))


def threads() -> int:
    """Threads in use: what ``use_threads`` said, else all cores."""
    return _threads or cores()


def use_threads(n: int) -> None:
    """Sets the number of threads of this process; 0 means all cores. More than ``_MOST`` are not started."""
    global _threads
    _threads = min(n, _MOST)


def run_pieces(work: Callable[[int], Any], n_pieces: int) -> None:
    """Calls ``work(0) … work(n_pieces − 1)`` on all threads, whichever is free taking the next; re-raises the first error.

    Inside a piece that runs beside others, pieces of its own run one after another on the same thread: all threads are busy
    already, and waiting for the pool from inside it would never end.
    """
    n_workers = 0 if getattr(_own, "in_piece", False) else min(threads(), n_pieces) - 1
    if n_workers <= 0:
        for piece in range(n_pieces):
            stay()
            work(piece)
        return
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    for piece in range(n_pieces):
        todo.put(piece)
    errors: list[BaseException] = []
    left = getattr(_own, "left", None)

    def take_pieces() -> None:
        while not errors:
            try:
                piece = todo.get_nowait()
            except queue.Empty:
                return
            try:
                stay()
                work(piece)
            except BaseException as error:
                errors.append(error)

    finished = threading.Semaphore(0)

    def task() -> None:
        _own.left = left  # of what is attended, or leavable, inside a piece, too
        take_pieces()
        finished.release()

    workers = _workers(n_workers)
    for worker in workers:
        worker.put(task)
    _own.in_piece = True
    try:
        take_pieces()
    finally:
        _own.in_piece = False
    for _ in workers:
        finished.acquire()
    if errors:
        raise errors[0]


class Left(BaseException):
    """Ends work that nobody waits for any more."""


def stay() -> None:
    """Raises Left where nobody waits any more for what this thread does.

    ``run_pieces`` asks before each piece; a long one should ask now and then.
    """
    left: Callable[[], bool] | None = getattr(_own, "left", None)
    if left is not None and left():
        raise Left


@contextmanager
def heeding(over: Callable[[], bool]) -> Iterator[None]:
    """Inside, ``over()``, which any thread may ask, decides whether work in ``leavable()`` is to end."""
    before, _own.over = getattr(_own, "over", None), over
    try:
        yield
    finally:
        _own.over = before


def is_over() -> bool:
    """Whether the ``over`` of the ``heeding`` around says that work is to end; False outside of any."""
    over: Callable[[], bool] | None = getattr(_own, "over", None)
    return over is not None and over()


@contextmanager
def leavable() -> Iterator[None]:
    """Work inside ends by Left, before its next piece, once ``is_over()``."""
    before, over = getattr(_own, "left", None), getattr(_own, "over", None)
    if over is not None:
        _own.left = over if before is None else lambda: before() or over()
    try:
        yield
    finally:
        _own.left = before


def attended(work: Callable[[], T], poll: Callable[[], object]) -> T:
    """``work()`` on a thread of its own. This one calls ``poll()`` ten times a second, which may raise what ends the wait.

    The work, which nobody will hear of, then ends before its next piece; a long call of a library it has to end first.
    """
    left, ended = threading.Event(), threading.Event()
    inside, context = getattr(_own, "in_piece", False), contextvars.copy_context()
    found: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        _own.in_piece, _own.left = inside, left.is_set
        try:
            found.append(context.run(work))
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    started = True
    try:
        try:
            # no daemon: an interpreter that ends waits for it, as the work may be in the midst of native code
            threading.Thread(target=run, name="svmkit-attended").start()
        except RuntimeError:  # the system has no more threads for this process
            started = False
        while started and not ended.wait(_LOOK_S):
            stay()
            poll()
    except BaseException:
        left.set()
        raise
    if not started:
        return work()
    if errors:
        raise errors.pop()
    return found[0]


class _GivenUp(Exception):
    pass


def unless(given_up: Callable[[], bool], work: Callable[[], T], patience_s: float = 0.0) -> T | None:
    """``work()``, attended; None once ``given_up()``, which is asked ten times a second, but not within ``patience_s``."""
    until = time.monotonic() + patience_s

    def poll() -> None:
        if given_up() and time.monotonic() >= until:
            raise _GivenUp

    try:
        return attended(work, poll)
    except _GivenUp:
        return None


def pieces_of(size: int, least: int) -> int:
    """How many pieces to cut work of ``size`` into, where no value depends on that: one a thread, of ``least`` each or more."""
    return max(1, min(threads(), size // least))


def run_ranges(work: Callable[[int, int], Any], n: int, n_pieces: int) -> None:
    """``run_pieces`` of ``work(first, last + 1)`` over ranges of 0 … n − 1 that are as long as each other."""
    cuts = [n * i // n_pieces for i in range(n_pieces + 1)]
    run_pieces(lambda i: work(cuts[i], cuts[i + 1]), n_pieces)


def run_stretches(work: Callable[[int, int], Any], n: int, length: int) -> None:
    """The same over ranges of ``length``, of which the last may be shorter."""
    run_pieces(lambda i: work(i * length, min(n, (i + 1) * length)), -(-n // length))


def ahead(items: Iterable[T], depth: int, give_up: Callable[[], bool] = lambda: False) -> Iterator[T]:
    """``items``, made on a thread of their own, at most ``depth`` of them waiting; an error comes where the item would have.

    Pieces of work inside the making stay on that thread, for the others are busy with what was made before. While there is
    nothing, ``give_up()`` is asked ten times a second, and its True ends the iteration: the thread may be waiting for input.
    It is asked at an error, too: who gave up may have stopped whoever wrote, in the midst of a line.
    """
    made: queue.Queue[tuple[str, Any]] = queue.Queue(depth)
    unwanted = threading.Event()

    def put(kind: str, content: Any) -> bool:
        while not unwanted.is_set():
            try:
                made.put((kind, content), timeout=_LOOK_S)
                return True
            except queue.Full:
                continue
        return False

    def make() -> None:
        _own.in_piece = True
        try:
            for item in items:
                if not put("item", item):
                    return
            put("end", None)
        except BaseException as error:
            put("error", error)

    try:
        threading.Thread(target=make, daemon=True, name="svmkit-ahead").start()
    except RuntimeError:  # the system has no more threads for this process
        yield from items
        return
    try:
        while True:
            try:
                kind, content = made.get(timeout=_LOOK_S)
            except queue.Empty:
                if give_up():
                    return
                continue
            if kind == "error" and not give_up():
                raise content
            if kind != "item":
                return
            yield content
            del content
    finally:
        unwanted.set()


def _workers(n: int) -> list[queue.SimpleQueue[Callable[[], None]]]:
    """At most n: fewer where the system has no more threads for this process."""
    while len(_pool) < n:
        inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        try:
            threading.Thread(target=_serve, args=(inbox,), daemon=True, name=f"svmkit-{len(_pool)}").start()
        except RuntimeError:
            break
        _pool.append(inbox)
    return _pool[:n]


def _serve(inbox: queue.SimpleQueue[Callable[[], None]]) -> None:
    _own.in_piece = True
    while True:
        task = inbox.get()
        task()
        del task  # what it worked on must not live until the next one comes


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.clear)  # its threads are the parent's alone
