"""Machines of a model that have been trained: one by itself, or several in a call, which stay in arrays until somebody looks.

A model of a thousand classes has half a million machines: each may take no longer than the making of a few objects would, and
no more memory than its support vectors' numbers and coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit.certificate import UNKNOWN, Certificate, Certificates
from svmkit.data import Floats, Ints, Rows
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
    """A machine, the number among ``rows`` of each of its examples, and when its training began, on the clock of all machines.

    ``kept`` is its result without the basis where that is of training rows, of which hundreds of machines may have the same.
    """

    rows: Rows
    examples: Ints
    kept: SolverResult
    since_s: float

    def sums(self) -> Sums:
        """Its own figures."""
        found = self.kept
        return Sums(1, found.status, found.steps, found.kernel_evaluations, found.certificate, found.seconds)

    def support(self) -> Support:
        """Its basis rows with a coefficient."""
        found = self.kept.solution
        used = np.flatnonzero(found.coef)
        numbers = found.origin[used].copy()
        numbers[numbers >= 0] = self.examples[numbers[numbers >= 0]]
        return Support(numbers, found.coef[used], np.array([len(used)]), np.array([found.rho]))

    def own_rows(self) -> Rows:
        """Those of ``support`` that are no training rows."""
        found = self.kept.solution
        return found.basis.take(np.flatnonzero((found.coef != 0) & (found.origin < 0))) if found.basis.n else found.basis

    def solution(self) -> Solution:
        """What it has found, without responses."""
        found = self.kept.solution
        return found if found.basis.n else replace(found, basis=self.rows.take(self.examples[found.origin]))

    def results(self) -> Iterator[SolverResult]:
        """Its result."""
        yield replace(self.kept, solution=self.solution())


def trained_alone(rows: Rows, examples: Ints, result: SolverResult, since_s: float) -> Trained:
    """The machine of ``examples`` among ``rows`` that has this result."""
    found = result.solution
    basis = rows.part(0, 0) if (found.origin >= 0).all() else found.basis
    return Trained(rows, examples, replace(result, solution=replace(found, basis=basis, responses=None)), since_s)


def uncertified(rows: Rows, examples: Ints, solution: Solution) -> Trained:
    """A machine of whose training nothing is told but what it has found so far."""
    return trained_alone(rows, examples, SolverResult(solution, Status.COMPLETED, UNKNOWN, 0, 0, 0.0), 0.0)


class TrainedTogether(NamedTuple):
    """Machines among ``rows`` that were trained in a call, ``each_s`` seconds long for each, and all ended alike: they
    converged, or were not begun. ``machines()`` makes them anew.
    """

    rows: Rows
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
        support, each = self.found, np.arange(len(self.steps)) * self.rows.n
        examples, found = (
            machines.examples + np.repeat(each, machines.sizes),
            support.numbers + np.repeat(each, support.lengths),
        )
        return np.searchsorted(examples, found)  # both machine by machine, in file order

    def results_of(self, machines: Several) -> Iterator[SolverResult]:
        """``results`` for whoever has the machines."""
        support, places, starts = self.found, self.places(machines), machines.starts.tolist()
        basis = self.rows.take(support.numbers.astype(np.int64))  # copied together, which takes less time
        cuts = np.concatenate([[0], np.cumsum(support.lengths)]).tolist()
        for number, (first, last) in enumerate(pairwise(cuts)):
            origin = places[first:last] - starts[number]
            solution = Solution(basis.part(first, last), origin, support.coef[first:last], float(support.rho[number]))
            counts = int(self.steps[number]), int(self.evaluations[number])
            yield SolverResult(solution, self.status, self.certificates.of(number), *counts, self.each_s)


def trained_together(
    rows: Rows,
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
    return TrainedTogether(rows, machines, found, ended.certificates, ended.steps, ended.evaluations, each_s, since_s, status)


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
