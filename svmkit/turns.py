"""Long jobs side by side that are heard in sequence: what a job says waits until all jobs before it have ended.

So messages, results and errors of jobs on many threads come in the order of one job after another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from svmkit.parallel import run_pieces

Call = Callable[[], object]


def run_in_turn(job: Callable[[int, Turn], object], n_jobs: int, side_by_side: bool) -> None:
    """Calls ``job(number, turn)`` for each number below ``n_jobs``: on all threads, or one after another on this one.

    Either way jobs are heard in order, and the first error, by order, is raised after all that jobs before it have to say.
    """
    turns = _Turns(n_jobs)

    def piece(number: int) -> None:
        turn = Turn(turns, number)
        if turn.stopped():
            return
        try:
            job(number, turn)
            turns.end(number)
        except Exception as error:
            turns.fail(number, error)
        except BaseException:
            turns.stop()
            raise

    try:
        if side_by_side:
            run_pieces(piece, n_jobs)
        else:
            for number in range(n_jobs):
                piece(number)
    finally:
        turns.stop()  # Ctrl-C may end the wait for jobs that still run
    if turns.error is not None:
        raise turns.error


class Turn:
    """What a job of ``run_in_turn`` speaks through."""

    def __init__(self, turns: _Turns, number: int) -> None:
        self._turns = turns
        self._number = number

    def say(self, call: Call, passing: bool = False) -> None:
        """``call()``, at once or when this job's turn comes; of ``passing`` ones that wait in a row only the last is made.

        Calls never overlap; they may come from any of the threads.
        """
        self._turns.say(self._number, call, passing)

    def stopped(self) -> bool:
        """Whether an earlier job has failed: nobody will hear of this one, which had better end."""
        return self._turns.failed < self._number


class _Turns:
    """``current`` is the first job that has not ended; jobs from ``failed`` on are heard no more."""

    def __init__(self, n_jobs: int) -> None:
        self.failed = n_jobs
        self.error: Exception | None = None
        self._current = 0
        self._ended: set[int] = set()
        self._waiting: dict[int, list[tuple[Call, bool]]] = {}
        self._lock = threading.RLock()

    def say(self, number: int, call: Call, passing: bool) -> None:
        with self._lock:
            if number >= self.failed:
                return
            if number == self._current:
                call()
                return
            waiting = self._waiting.setdefault(number, [])
            if passing and waiting and waiting[-1][1]:
                waiting.pop()
            waiting.append((call, passing))

    def end(self, number: int) -> None:
        """Job ``number`` has ended: the next is heard, all it said so far first."""
        with self._lock:
            self._ended.add(number)
            while self._current in self._ended and self._current < self.failed:
                self._current += 1
                for call, _ in self._waiting.pop(self._current, ()):
                    call()

    def fail(self, number: int, error: Exception) -> None:
        """Job ``number`` has failed, or what a later one had said before its turn came."""
        with self._lock:
            if number < self.failed:
                self.failed, self.error = number, error

    def stop(self) -> None:
        """Nobody is heard any more."""
        self.failed = -1
