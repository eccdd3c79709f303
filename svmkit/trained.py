"""Machines of a model that have been trained: one by itself, or several in a call, which stay in arrays until somebody looks.

A model of a thousand classes has half a million machines: each may take no longer than the making of a few objects would, and
no more memory than its support vectors' numbers and coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit.certificate import UNKNOWN, Certificate, Certificates
from svmkit.data import Floats, Ints
from svmkit.problem import Solution
from svmkit.solvers.base import Several, SeveralEnded, SolverResult
from svmkit.trace import Status


class Support(NamedTuple):
    """Of some machines, one after another: the training row of each support vector, −1 for one that is none, and its
    coefficient; how many each machine has, and its rho.
    """

    numbers: Ints | NDArray[np.int32]
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
    """A machine, the number of each of its examples, and when its training began, on the clock of all machines."""

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
        numbers = found.origin[used] if found.own.n else self.examples[found.origin[used]]
        return Support(numbers, found.coef[used], np.array([len(used)]), np.array([found.rho]))

    def results(self) -> Iterator[SolverResult]:
        """Its result."""
        yield self.result


def uncertified(examples: Ints, solution: Solution) -> Trained:
    """A machine of whose training nothing is told but what it has found so far."""
    return Trained(examples, SolverResult(solution, Status.COMPLETED, UNKNOWN, 0, 0, 0.0), 0.0)


class TrainedTogether(NamedTuple):
    """Machines that were trained in a call, ``each_s`` seconds long for each, and all ended alike: they converged, or were not
    begun. ``machines()`` makes them anew.
    """

    machines: Callable[[], Several]
    found: Support
    certificates: Certificates
    steps: Ints
    evaluations: Ints
    each_s: float
    since_s: float
    status: Status

    def sums(self) -> Sums:
        """Of all; the violation is the largest."""
        found, count = self.certificates, len(self.steps)
        certificate = Certificate(
            primal=float(found.primal.sum()),
            dual=float(found.dual.sum()),
            gap=float(found.gap.sum()),
            violation=float(found.violation.max()),
            noise=float(found.noise.max()),
        )
        counts = int(self.steps.sum()), int(self.evaluations.sum())
        return Sums(count, self.status, *counts, certificate, count * self.each_s)

    def support(self) -> Support:
        """Of all, their examples with β other than 0."""
        return self.found

    def results(self) -> Iterator[SolverResult]:
        """One a machine, made for whoever asks."""
        return self.results_of(self.machines())

    def places(self, machines: Several) -> Ints:
        """Where each support vector stands among the examples of all machines."""
        support, each = self.found, np.arange(len(self.steps)) * (1 + int(machines.examples.max()))
        examples, found = (
            machines.examples + np.repeat(each, machines.sizes),
            support.numbers + np.repeat(each, support.lengths),
        )
        return np.searchsorted(examples, found)  # both machine by machine, in file order

    def results_of(self, machines: Several) -> Iterator[SolverResult]:
        """``results`` for whoever has the machines."""
        support, places, starts = self.found, self.places(machines), machines.starts.tolist()
        cuts = np.concatenate([[0], np.cumsum(support.lengths)]).tolist()
        for number, (first, last) in enumerate(pairwise(cuts)):
            origin = places[first:last] - starts[number]
            solution = Solution(origin, support.coef[first:last], float(support.rho[number]))
            counts = int(self.steps[number]), int(self.evaluations[number])
            yield SolverResult(solution, self.status, self.certificates.of(number), *counts, self.each_s)


def trained_together(
    machines: Callable[[], Several],
    several: Several,
    ended: SeveralEnded,
    each_s: float,
    since_s: float,
    status: Status,
) -> TrainedTogether:
    """Of ``several``, as ``machines()`` makes them, what is kept of how they ``ended``."""
    is_used = ended.beta != 0.0
    lengths = np.add.reduceat(is_used.astype(np.int64), several.starts[:-1])
    found = Support(several.examples[is_used].astype(np.int32), ended.beta[is_used], lengths, ended.rho)
    return TrainedTogether(machines, found, ended.certificates, ended.steps, ended.evaluations, each_s, since_s, status)


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
