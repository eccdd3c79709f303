"""Which machines of a model are trained in one call, whether on a thread each, and the time that this has taken so far.

Folds of a cross-validation go side by side by the rule for machines that are trained alone.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf

import numpy as np

from svmkit.clock import Clock
from svmkit.data import Floats, Ints, Rows
from svmkit.model import REST
from svmkit.solvers.base import Solver

#: Work of a call for several machines at most, some twentieth of a second by a high guess: interruptions and time limits are
#: heard between calls, and threads should end together.
_IN_ONE_CALL = 20_000_000
#: Kernel values, times the nonzeros of a row, of a machine that is worth a thread of its own.
_WORTH_A_THREAD = 16_000_000


def sizes_of(members: list[Ints], pairs: Ints) -> Ints:
    """Examples of each machine; ``pairs`` (2, m) are their classes."""
    of_class, (first, second) = np.array([len(group) for group in members]), pairs
    sizes: Ints = np.where(second == REST, of_class.sum(), of_class[first] + of_class[second])
    return sizes


def fewer_of(members: list[Ints], pairs: Ints) -> Ints:
    """Examples of the smaller class of each machine; of one against the rest all of them."""
    of_class, (first, second) = np.array([len(group) for group in members]), pairs
    fewer: Ints = np.where(second == REST, of_class.sum(), np.minimum(of_class[first], of_class[second]))
    return fewer


def works_of(sizes: Ints, fewer: Ints, work_of: Callable[[int, int], float]) -> Floats:
    """``work_of`` each size and that of the smaller class: a machine's work, by a high guess, when it is trained with others;
    inf where it cannot be.
    """
    known, kind = np.unique(sizes * (1 << 32) + fewer, return_inverse=True)
    works: Floats = np.array([work_of(n >> 32, n & 0xFFFFFFFF) for n in known.tolist()])[kind]
    return works


def jobs_of(works: Floats) -> list[range]:
    """Numbers of machines, or folds, of so much work, in order: small ones that follow one another together, others alone."""
    begins, so_far = [], inf
    for number, work in enumerate(works.tolist()):
        so_far += work
        if so_far > _IN_ONE_CALL:
            begins.append(number)
            so_far = work
    return [range(first, last) for first, last in pairwise([*begins, len(works)])]


def side_by_side(solver: Solver, rows: Rows, sizes: Ints, jobs: list[range]) -> bool:
    """Whether jobs are done sooner on a thread each than one by one on all threads.

    For machines that are trained alone, on two cores that was so by a tenth to a half from a million kernel values of rows of
    16 nonzeros in the mean to 10,000 examples in the largest: smaller machines spend their time in Python, where threads wait
    for one another, larger ones keep several threads busy. And no machine may be so much of the work that the others wait.
    Calls for several machines hardly wait, so where these are most jobs, it is so too. A solver may know better (``ALONE``).
    """
    if getattr(solver, "ALONE", False):
        return False
    alone = sizes[[job[0] for job in jobs if len(job) == 1]].tolist()
    largest = max(alone, default=0)
    nonzeros = 16 if rows.precomputed else len(rows.data) / max(rows.n, 1)
    enough = 2 * len(alone) < len(jobs) or sum(n**2 for n in alone) * nonzeros >= len(alone) * _WORTH_A_THREAD
    return enough and len(jobs) > 1 and largest <= 10_000 and 4 * largest**2 <= int(np.square(sizes).sum())


class TrainingTime:
    """The time that machines have been trained for so far, all together; compiling is never counted.

    One after another, that of each adds up, without its certificate, trace and held-out errors. Side by side it is the time
    since the first began: while one is certified, others are trained.
    """

    def __init__(self, spent_s: float, beside: bool) -> None:
        """``spent_s``: what was spent before the first; ``beside``: whether they are trained side by side."""
        self._spent_s, self._beside = spent_s, beside
        self._clock = Clock()

    def seconds(self) -> float:
        """So far; one after another, when none is being trained."""
        return self._spent_s + self._clock.seconds() if self._beside else self._spent_s

    def add(self, seconds: float) -> None:
        """A machine has been trained for so long."""
        if not self._beside:
            self._spent_s += seconds
