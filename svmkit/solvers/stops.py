"""Why a run ends before its solver has: limits, interruption, and a held-out error that no longer falls; and what its end is
called once the certificate is known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import inf, isfinite, isnan
from typing import Any

import numpy as np

from svmkit.certificate import Certificate
from svmkit.data import Floats
from svmkit.problem import Solution
from svmkit.trace import Limits, Progress, Status

#: The certificate's gap may be larger than the solver's by this share: sums are added in another order.
_ROUNDING = 1e-6


def given_up(limits: Limits, interrupted: Callable[[], bool], seconds: float) -> Status | None:
    """Why nobody waits any longer after ``seconds``, or None."""
    if interrupted():
        return Status.INTERRUPTED
    return Status.TIME_LIMIT if limits.time_limit_s is not None and seconds >= limits.time_limit_s else None


class Marks:
    """Counts of steps at which something is asked: ``first``, then each ``ratio`` times the last, at least one more."""

    def __init__(self, first: int, ratio: float) -> None:
        self.next = first
        self._ratio = ratio

    def reached(self, steps: int) -> bool:
        """Whether a mark is reached; the next one then lies ahead."""
        if steps < self.next:
            return False
        self.next = max(self.next + 1, int(self.next * self._ratio))
        return True


class Stops:
    """All reasons to stop but the held-out error, and how many steps may be taken before one must be looked at again."""

    def __init__(self, limits: Limits, interrupted: Callable[[], bool]) -> None:
        self._limits = limits
        self._interrupted = interrupted
        self._marks = Marks(1, 1.01)

    def steps_left(self, steps: int) -> int:
        """Steps that may be taken after ``steps``, at most."""
        limits = self._limits
        most = sys.maxsize if limits.max_iter is None else limits.max_iter - steps
        return most if limits.max_evaluations is None else min(most, self._marks.next - steps)

    def given_up(self, now: float) -> Status | None:
        """Why nobody waits any longer ``now`` (seconds), or None."""
        return given_up(self._limits, self._interrupted, now)

    def status(self, progress: Progress, now: float) -> Status | None:
        """Why to stop ``now`` (seconds), or None."""
        limits = self._limits
        over = (
            (Status.CONVERGED, progress.done),
            (Status.COMPLETED, progress.completed),
            (Status.STALLED, progress.stalled),
            (Status.INTERRUPTED, self._interrupted()),
            (Status.MAX_ITER, limits.max_iter is not None and progress.steps >= limits.max_iter),
            (Status.MAX_EVALUATIONS, self._evaluated_enough(progress)),
            (Status.TIME_LIMIT, limits.time_limit_s is not None and now >= limits.time_limit_s),
        )
        return next((status for status, true in over if true), None)

    def _evaluated_enough(self, progress: Progress) -> bool:
        most = self._limits.max_evaluations
        return most is not None and self._marks.reached(progress.steps) and progress.kernel_evaluations >= most


class Patience:
    """Asks for the held-out error at its marks, where there is one, keeps the solution with the lowest, counts marks since."""

    def __init__(self, patience: int | None, holdout_error: Callable[[Solution], float] | None, n: int) -> None:
        self._patience, self._error = patience, holdout_error
        self._marks = Marks(max(1, n // 16), 2**0.5)
        self._lowest = inf
        self._since = 0
        self.best: Solution | None = None

    def steps_left(self, steps: int) -> int:
        """Steps to the next mark."""
        return sys.maxsize if self._patience is None or self._error is None else self._marks.next - steps

    def is_over(self, steps: int, solution: Callable[[], Solution]) -> bool:
        """Whether the run should end now; ``best`` is then its solution, unless no error was a number."""
        if self._patience is None or self._error is None or not self._marks.reached(steps):
            return False
        found = solution()
        error = self._error(found)
        self._since += not isnan(error)
        if error < self._lowest:
            self._lowest, self._since, self.best = error, 0, found
        return self._since >= self._patience


def verdict(status: Status, certificate: Certificate, eps: float, upper: Floats) -> Status:
    """How an exact solver's run ended, once its violation has been computed from fresh kernel values.

    A violation of v leaves a gap of at most v Σ C_i: where it is twice that, rounding has hidden most of the violation.
    """
    with np.errstate(over="ignore"):
        close = is_close(certificate.gap, eps, upper.sum())
    if status is Status.CONVERGED and not (close and certificate.violation <= eps + min(certificate.noise, eps)):
        return Status.STALLED  # by the solver's own arithmetic it was done; the fresh kernel values do not bear it out
    if status is Status.STALLED and close and certificate.violation <= eps:
        return Status.CONVERGED  # rounding hid from the solver that it was there
    if status is Status.COMPLETED and not certificate.violation <= eps:
        return Status.MAX_ITER  # its epochs are a limit like any other
    return status


def of_a_gap(status: Status, certificate: Certificate, eps: float) -> Status:
    """How the run of a solver that goes by its relative gap ended; where no gap is known (nan), it has nothing to claim."""
    met = isfinite(certificate.gap) and certificate.gap <= eps * certificate.primal * (1.0 + _ROUNDING)
    if status is Status.CONVERGED and not met:
        return Status.COMPLETED if isnan(certificate.gap) else Status.STALLED
    if status is Status.STALLED and met:
        return Status.CONVERGED  # by the solver's own measure, which may be a stricter one, it was not there
    return status


def is_close(gap: Any, eps: float, upper: Any) -> Any:
    """Whether a violation of eps may leave this gap, where ``upper`` is Σ C_i; a gap that is not known may be any."""
    return np.logical_not(gap > 2.0 * eps * upper)
