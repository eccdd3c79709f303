"""Work that says it may be left in the midst, and is, where somebody is heeded who says that time is up."""

from __future__ import annotations

import threading
import time

import pytest

from svmkit import parallel


@pytest.fixture(autouse=True)
def _all_cores_again() -> object:
    yield
    parallel.use_threads(0)


class Counted:
    """Pieces of work; time is up once the piece numbered ``last`` has begun, if it ever does."""

    def __init__(self, last: int) -> None:
        self.last, self.begun = last, list[int]()

    def over(self) -> bool:
        return self.last in self.begun

    def piece(self, number: int) -> None:
        self.begun.append(number)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_leavable_work_ends_before_its_next_piece(threads: int) -> None:
    """Also on the other threads, of which each may be in the midst of one."""
    parallel.use_threads(threads)
    work = Counted(last=10)
    with pytest.raises(parallel.Left), parallel.heeding(work.over), parallel.leavable():
        parallel.run_pieces(work.piece, 1000)
    assert len(work.begun) <= 11 + threads - 1
    after = Counted(last=0)
    parallel.run_pieces(after.piece, 20)  # on the same threads
    assert sorted(after.begun) == list(range(20))


@pytest.mark.parametrize("threads", [1, 2])
def test_other_work_does_not_end(threads: int) -> None:
    parallel.use_threads(threads)
    before, inside, after = Counted(0), Counted(-1), Counted(0)
    with parallel.heeding(lambda: inside.begun != []):
        parallel.run_pieces(before.piece, 20)
        with parallel.leavable():
            parallel.run_pieces(inside.piece, 0)
        inside.begun.append(1)
        parallel.run_pieces(after.piece, 20)
        assert parallel.is_over()
    assert len(before.begun) == len(after.begun) == 20
    assert not parallel.is_over()


def test_where_nobody_is_heeded_leavable_work_goes_on() -> None:
    work = Counted(last=0)
    with parallel.leavable():
        parallel.run_pieces(work.piece, 20)
    with parallel.heeding(lambda: True):
        pass
    with parallel.leavable():
        parallel.stay()
    assert sorted(work.begun) == list(range(20))


def test_a_long_piece_can_be_left_in_the_midst() -> None:
    parallel.use_threads(2)
    rounds = [0, 0]

    def piece(number: int) -> None:
        for _ in range(1000):
            parallel.stay()
            rounds[number] += 1
            time.sleep(0.001)

    with pytest.raises(parallel.Left), parallel.heeding(lambda: max(rounds) >= 5), parallel.leavable():
        parallel.run_pieces(piece, 2)
    assert max(rounds) == 5


def test_attended_work_that_is_left_ends_in_what_is_leavable_too() -> None:
    """Where the time of who is heeded is not up."""
    ended: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            with parallel.heeding(lambda: False), parallel.leavable():
                parallel.run_pieces(lambda piece: time.sleep(0.05), 1000)
        except BaseException as error:
            ended.append(error)
        done.set()

    assert parallel.unless(lambda: True, work) is None
    assert done.wait(60)
    assert [type(error) for error in ended] == [parallel.Left]
