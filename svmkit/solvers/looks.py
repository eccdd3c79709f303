"""What a run is judged by, on its way and at its end: certificates from fresh kernel values, and held-out errors.

They may take far longer than a call of the solver. Then they are made while somebody listens, and given up where training is.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import TypeVar

from svmkit.certificate import Certificate, certify
from svmkit.engine.layouts import Real
from svmkit.parallel import patiently
from svmkit.problem import Problem, Solution
from svmkit.trace import Progress, TraceRow

T = TypeVar("T")

#: Kernel values from which on a look takes longer than a call of the solver, and what counts as many as a value of the data.
_LONG, _A_VALUE_OF_THE_DATA = 100_000_000, 10


def unless_long(values: int, work: Callable[[], T], given_up: Callable[[], bool]) -> T | None:
    """``work()``, of so many kernel values; None where it takes longer than anybody waits once ``given_up()``."""
    return work() if values <= _LONG else patiently(work, given_up)


class Looks:
    """Those of a run, and its trace: a row where time has grown by √2 or kernel evaluations by 2, so that curves are even on
    either log axis.
    """

    def __init__(
        self,
        problem: Problem,
        on_trace: Callable[[TraceRow], None] | None,
        holdout_error: Callable[[Solution], float] | None,
        given_up: Callable[[], bool],
    ) -> None:
        self.problem = problem
        self.on_trace = on_trace
        self.holdout_error = holdout_error
        self.rows: list[TraceRow] = []
        self._given_up = given_up
        self._next_s = 0.0
        self._next_evaluations = 0

    def certificate(self, found: Solution, real: Real = "f8") -> Certificate | None:
        """Of ``found``; None where that takes longer than anybody waits."""
        values = max(self.problem.n * len(found.coef), _A_VALUE_OF_THE_DATA * len(self.problem.rows.data))
        return unless_long(values, lambda: certify(self.problem, found, real), self._given_up)

    def maybe(self, now: float, progress: Progress, solution: Callable[[], Solution]) -> None:
        """A row of the trace, where it is time for one."""
        if self.on_trace is None or (now < self._next_s and progress.kernel_evaluations < self._next_evaluations):
            return
        found = solution()
        certificate = self.certificate(found)
        if certificate is not None:
            self.record(now, progress, found, certificate)
        self._next_s = now * 2**0.5
        self._next_evaluations = 2 * progress.kernel_evaluations + 1

    def record(self, now: float, progress: Progress, found: Solution, certificate: Certificate) -> None:
        """A row of the trace."""
        if self.on_trace is None:
            return
        row = TraceRow(
            seconds=now,
            steps=progress.steps,
            kernel_evaluations=progress.kernel_evaluations,
            primal=certificate.primal,
            dual=certificate.dual,
            violation=certificate.violation,
            holdout_error=self.holdout_error(found) if self.holdout_error is not None else nan,
            n_support=found.n_support,
        )
        self.rows.append(row)
        self.on_trace(row)
