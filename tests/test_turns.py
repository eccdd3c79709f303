"""Jobs on several threads are heard as if one had come after another."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from svmkit import parallel
from svmkit.turns import Turn, run_in_turn


def heard_from(n_jobs: int, side_by_side: bool, fails: tuple[int, ...] = ()) -> tuple[list[tuple[int, int]], str]:
    """What jobs say that take the longer the earlier they are, and the error."""
    heard: list[tuple[int, int]] = []

    def job(number: int, turn: Turn) -> None:
        for k in range(3):
            turn.say(lambda k=k: heard.append((number, k)))  # type: ignore[misc]
            time.sleep(0.001 * (n_jobs - number))
        if number in fails:
            raise ValueError(f"job {number}")

    try:
        run_in_turn(job, n_jobs, side_by_side)
    except ValueError as error:
        return heard, str(error)
    return heard, ""


@pytest.mark.parametrize("fails", [(), (0,), (4,), (6, 3, 5), (9,)])
@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.usefixtures("threads")
def test_jobs_are_heard_in_order_and_the_first_error_by_order_comes_last(n_threads: int, fails: tuple[int, ...]) -> None:
    parallel.use_threads(n_threads)
    last = min(fails, default=9)
    expected = [(number, k) for number in range(last + 1) for k in range(3)], f"job {last}" if fails else ""
    assert heard_from(10, False, fails) == expected
    assert heard_from(10, True, fails) == expected


def test_no_jobs() -> None:
    assert heard_from(0, True) == ([], "")


@pytest.mark.usefixtures("two_threads")
def test_a_job_is_heard_as_soon_as_all_before_it_have_ended() -> None:
    """Job 0 waits for job 1 to say its first word, which is kept; job 1 for its second to be heard, which needs job 0's end."""
    spoken, reached = threading.Event(), threading.Event()
    heard: list[str] = []

    def job(number: int, turn: Turn) -> None:
        if number == 0:
            assert spoken.wait(10)
            turn.say(lambda: heard.append("0"))
            return
        turn.say(lambda: heard.append("1, waiting"))
        spoken.set()
        while "1, waiting" not in heard:
            time.sleep(0.001)
        turn.say(lambda: (heard.append("1, at once"), reached.set()))
        assert reached.is_set()

    run_in_turn(job, 2, side_by_side=True)
    assert heard == ["0", "1, waiting", "1, at once"]


@pytest.mark.usefixtures("two_threads")
def test_of_passing_words_that_wait_the_last_in_a_row_is_heard() -> None:
    spoken = threading.Event()
    heard: list[str] = []

    def job(number: int, turn: Turn) -> None:
        if number == 0:
            assert spoken.wait(10)
            return
        for word in ("a", "b", "C", "d", "e", "F"):
            turn.say(lambda word=word: heard.append(word), passing=word.islower())  # type: ignore[misc]
        spoken.set()

    run_in_turn(job, 2, side_by_side=True)
    assert heard == ["b", "C", "e", "F"]


@pytest.mark.usefixtures("two_threads")
def test_jobs_after_a_failed_one_learn_that_they_may_stop() -> None:
    running = threading.Event()
    heard: list[int] = []

    def job(number: int, turn: Turn) -> None:
        if number == 0:
            assert running.wait(10)
            raise ValueError("job 0")
        running.set()
        while not turn.stopped():
            time.sleep(0.001)
        turn.say(lambda: heard.append(number))

    with pytest.raises(ValueError, match="job 0"):
        run_in_turn(job, 5, side_by_side=True)
    assert heard == []


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_stops_every_job(stop: type[BaseException]) -> None:
    running = threading.Event()

    def job(number: int, turn: Turn) -> None:
        if number == 1:
            assert running.wait(10)
            raise stop
        running.set()
        while not turn.stopped():
            time.sleep(0.001)

    with pytest.raises(stop):
        run_in_turn(job, 2, side_by_side=True)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.usefixtures("threads")
def test_an_error_of_a_listener_is_an_error_of_the_job_it_listens_to(n_threads: int) -> None:
    parallel.use_threads(n_threads)
    heard: list[int] = []

    def listen(number: int) -> None:
        heard.append(number)
        if number == 3:
            raise OSError("nobody reads")

    def job(number: int, turn: Turn) -> None:
        time.sleep(0.001 * (6 - number))
        turn.say(lambda: listen(number))

    with pytest.raises(OSError, match="nobody reads"):
        run_in_turn(job, 6, side_by_side=True)
    assert heard == [0, 1, 2, 3]


@pytest.mark.usefixtures("threads")
def test_a_job_whose_kept_words_fail_is_heard_no_more_nor_are_those_after_it() -> None:
    """Job 0 ends when the others have said something; job 1 ends by itself, but only when it learns that it may stop."""
    parallel.use_threads(3)
    spoken = threading.Barrier(3)
    heard: list[str] = []

    def fail() -> None:
        raise OSError("nobody reads")

    def job(number: int, turn: Turn) -> None:
        if number > 0:
            turn.say(fail if number == 1 else lambda: heard.append("job 2"))
        spoken.wait(10)
        while number == 1 and not turn.stopped():
            time.sleep(0.001)
        turn.say(lambda: heard.append(f"job {number}, later"))

    with pytest.raises(OSError, match="nobody reads"):
        run_in_turn(job, 3, side_by_side=True)
    assert heard == ["job 0, later"]


def test_jobs_after_a_failed_one_are_not_begun_one_after_another() -> None:
    begun: list[int] = []

    def job(number: int, turn: Turn) -> None:
        begun.append(number)
        if number == 2:
            raise ValueError("job 2")

    with pytest.raises(ValueError, match="job 2"):
        run_in_turn(job, 6, side_by_side=False)
    assert begun == [0, 1, 2]


@pytest.mark.usefixtures("two_threads")
def test_ctrl_c_while_all_that_is_left_runs_on_other_threads_stops_that() -> None:
    both, main, learned = threading.Barrier(2), threading.main_thread(), threading.Event()

    def job(number: int, turn: Turn) -> None:
        both.wait(10)
        if threading.current_thread() is main:
            return
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
        while not turn.stopped():
            time.sleep(0.001)
        learned.set()

    with pytest.raises(KeyboardInterrupt):
        run_in_turn(job, 2, side_by_side=True)
    assert learned.wait(10)
