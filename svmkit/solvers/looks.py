"""What a run is judged by, on its way and at its end: certificates from fresh kernel values, and held-out errors.

They may take far longer than a call of the solver. Then they are made while somebody listens, and given up where training is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf, nan

from svmkit.certificate import Certificate, certify
from svmkit.engine.layouts import Real
from svmkit.parallel import unless
from svmkit.problem import Problem, Solution
from svmkit.trace import Progress, TraceRow

#: Kernel values from which on a look takes longer than a call of the solver, and what counts as many as a value of the data.
_LONG, _A_VALUE_OF_THE_DATA = 100_000_000, 10
#: How long who has given up the training still waits for what tells of its end, all of it together.
_PATIENCE_S = 1.0


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
        self.rows: list[TraceRow] = []
        self._holdout_error = holdout_error
        self._given_up = given_up
        self._wanted_until_s = -inf
        self._next_s = 0.0
        self._next_evaluations = 0

    def begin_last(self) -> None:
        """The training has ended: from now on looks are wanted for a while even where it was given up."""
        self._wanted_until_s = time.monotonic() + _PATIENCE_S

    def _unwanted(self) -> bool:
        return self._given_up() and time.monotonic() > self._wanted_until_s

    def certificate(self, found: Solution, real: Real = "f8") -> Certificate | None:
        """Of ``found``; None where that takes longer than anybody waits."""
        values = max(self.problem.n * len(found.coef), _A_VALUE_OF_THE_DATA * len(self.problem.rows.data))
        if values <= _LONG:
            return certify(self.problem, found, real)
        return unless(self._unwanted, lambda: certify(self.problem, found, real))

    def error(self, found: Solution) -> float:
        """The held-out error of ``found``; nan where there is none, or it takes longer than anybody waits."""
        holdout_error = self._holdout_error
        error = None if holdout_error is None else unless(self._unwanted, lambda: holdout_error(found))
        return nan if error is None else error

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
            holdout_error=self.error(found),
            n_support=found.n_support,
        )
        self.rows.append(row)
        self.on_trace(row)
