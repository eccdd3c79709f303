"""Machines of a model that have been trained: one by itself, or several in a call, which stay in arrays until somebody looks.

A model of a thousand classes has half a million machines, and each may take no longer than the making of a few objects would.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from svmkit.certificate import UNKNOWN, Certificate
from svmkit.data import Floats, Ints, Rows
from svmkit.problem import Solution
from svmkit.solvers.base import Several, SeveralEnded, SolverResult
from svmkit.trace import Status


class Support(NamedTuple):
    """Of some machines, one after another: the training row of each support vector, −1 for one that is none, and its
    coefficient; how many each machine has, and its rho.
    """

    numbers: Ints
    coef: Floats
    lengths: Ints
    rho: Floats


class Sums(NamedTuple):
    """Of some machines: how many, their worst status, steps, kernel evaluations, certificates and seconds of training."""

    n_machines: int
    status: Status
    steps: int
    kernel_evaluations: int
    certificate: Certificate
    seconds: float


class Trained(NamedTuple):
    """A machine, the training row of each of its examples, and when its training began, on the clock of all machines."""

    examples: Ints
    result: SolverResult
    since_s: float

    def sums(self) -> Sums:
        """Its own figures."""
        found = self.result
        return Sums(1, found.status, found.steps, found.kernel_evaluations, found.certificate, found.seconds)

    def support(self) -> Support:
        """Its basis rows with a coefficient."""
        found = self.result.solution
        used = np.flatnonzero(found.coef)
        numbers = found.origin[used].copy()
        numbers[numbers >= 0] = self.examples[numbers[numbers >= 0]]
        return Support(numbers, found.coef[used], np.array([len(used)]), np.array([found.rho]))

    def results(self) -> Iterator[SolverResult]:
        """Its result."""
        yield self.result


def uncertified(examples: Ints, solution: Solution) -> Trained:
    """A machine of whose training nothing is told but what it has found so far."""
    return Trained(examples, SolverResult(solution, Status.COMPLETED, UNKNOWN, 0, 0, 0.0), 0.0)


class TrainedTogether(NamedTuple):
    """Machines among ``rows`` that were trained in a call, ``each_s`` seconds long for each, and all ended alike: they
    converged, or were not begun.
    """

    rows: Rows
    machines: Several
    ended: SeveralEnded
    each_s: float
    since_s: float
    status: Status = Status.CONVERGED

    def sums(self) -> Sums:
        """Of all; the violation is the largest."""
        ended, found, count = self.ended, self.ended.certificates, len(self.ended.rho)
        certificate = Certificate(
            primal=float(found.primal.sum()),
            dual=float(found.dual.sum()),
            gap=float(found.gap.sum()),
            violation=float(found.violation.max()),
            noise=float(found.noise.max()),
        )
        counts = int(ended.steps.sum()), int(ended.evaluations.sum())
        return Sums(count, self.status, *counts, certificate, count * self.each_s)

    def support(self) -> Support:
        """Of all, their examples with β other than 0."""
        is_used = self.ended.beta != 0.0
        lengths = np.add.reduceat(is_used.astype(np.int64), self.machines.starts[:-1])
        return Support(self.machines.examples[is_used], self.ended.beta[is_used], lengths, self.ended.rho)

    def results(self) -> Iterator[SolverResult]:
        """One a machine, made for whoever asks."""
        support, ended, starts = self.support(), self.ended, self.machines.starts
        basis = self.rows.take(support.numbers)  # copied together, which takes less time
        cuts = np.concatenate([[0], np.cumsum(support.lengths)]).tolist()
        for number in range(len(ended.rho)):
            first, last = cuts[number], cuts[number + 1]
            origin = np.flatnonzero(ended.beta[starts[number] : starts[number + 1]])
            solution = Solution(basis.part(first, last), origin, support.coef[first:last], float(ended.rho[number]))
            counts = int(ended.steps[number]), int(ended.evaluations[number])
            yield SolverResult(solution, self.status, ended.certificates.of(number), *counts, self.each_s)


#: One or several of a model's machines.
Part = Trained | TrainedTogether


def time_spent(parts: list[Part]) -> float:
    """Seconds in which at least one machine was trained."""
    spent = until_s = 0.0
    for part in sorted(parts, key=lambda part: part.since_s):
        end_s = part.since_s + part.sums().seconds
        spent += max(0.0, end_s - max(part.since_s, until_s))
        until_s = max(until_s, end_s)
    return spent
