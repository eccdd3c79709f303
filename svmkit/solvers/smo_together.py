"""Small machines of one data set, trained together: what smo.py does with each of them, in one call.

For those that smo begins on rows of K made by need, and would then make whole: at most 1024 variables. A machine whose steps
soon end by themselves, and whose solution float64 values then bear out, has the solution that smo would have found, bit for
bit; any other is left to smo, from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

import numpy as np

from svmkit.certificate import DualPoint, balanced, certify_point
from svmkit.data import Floats, Ints, Rows
from svmkit.engine import by_need
from svmkit.engine.kernels import Engine
from svmkit.engine.together import Machines, train_machines
from svmkit.problem import Bias, Kernel, Solution
from svmkit.solvers.base import Machine, SolverResult, verdict
from svmkit.solvers.smo_state import rho_of
from svmkit.trace import Status

#: Steps of a machine at most: so many a variable, but always as many as the second number. Most take one a variable or fewer.
_STEPS, _LEAST_STEPS = 16, 5000
#: Where no bias is free, and from twice that where it is, smo is done before its first step.
_DONE_AT_ONCE = 1.0


class SmallMachines:
    """Trains them (base.py's ``Together``) among rows that are packed once."""

    def __init__(self, engine: Engine) -> None:
        """For an engine as ``RowsByNeed`` takes it."""
        self._engine, self._diagonal = engine, engine.diagonal()

    def work(self, n: int) -> float:
        """The variables that the steps of a machine of ``n`` examples go over, at most; inf where smo has to train it."""
        return float(n * _most_steps(n)) if _suits(self._engine.rows, self._engine.kernel, n) else inf

    def train(self, machines: Sequence[Machine], bias: Bias, eps: float, max_iter: int | None) -> list[SolverResult | None]:
        """One result a machine, without its seconds; None where it is left to smo."""
        if eps >= _DONE_AT_ONCE:
            return [None] * len(machines)
        y = np.concatenate([machine.y for machine in machines])
        bounds = y * np.concatenate([machine.upper for machine in machines])
        sizes = [len(machine.examples) for machine in machines]
        listed = Machines(
            rows=np.concatenate([machine.examples for machine in machines]),
            lower=np.minimum(0.0, bounds),
            upper=np.maximum(0.0, bounds),
            starts=np.cumsum([0, *sizes]),
            budgets=np.array([_most_steps(n) if max_iter is None else min(max_iter, _most_steps(n)) for n in sizes]),
        )
        ended = train_machines(self._engine, listed, self._diagonal[listed.rows], y.copy(), bias == "free", 0.5 * eps)
        found: list[tuple[Solution, DualPoint] | None] = []
        for number, (machine, (origin, basis)) in enumerate(zip(machines, self._support(listed, ended.beta), strict=True)):
            here = slice(listed.starts[number], listed.starts[number + 1])
            beta, product = ended.beta[here], ended.product[here]
            if not (ended.finished[number] and np.isfinite(product).all()):
                found.append(None)
                continue
            rho = rho_of(machine.y - product, beta, listed.lower[here], listed.upper[here]) if bias == "free" else 0.0
            largest = float(np.abs(self._diagonal[machine.examples]).max(initial=0.0))
            point = DualPoint(machine.y, machine.upper, self._engine.kernel, bias, largest, beta, product)
            found.append((Solution(basis, origin, beta[origin], rho), point))
        return [
            each and _result(*each, eps, int(steps), int(evaluations))
            for each, steps, evaluations in zip(found, ended.steps, ended.evaluations, strict=True)
        ]

    def _support(self, listed: Machines, beta: Floats) -> Iterator[tuple[Ints, Rows]]:
        """Of each machine the places where β is not 0, and the rows there; copied together, which takes less time."""
        support = np.flatnonzero(beta)
        rows = self._engine.rows.take(listed.rows[support])
        cuts = np.searchsorted(support, listed.starts)
        for first, last, start in zip(cuts[:-1], cuts[1:], listed.starts[:-1], strict=True):
            yield support[first:last] - start, rows.part(first, last)


def small_machines(rows: Rows, kernel: Kernel, sizes: list[int]) -> SmallMachines | None:
    """For machines of so many examples each; None where small ones are too few to be worth packing all rows for."""
    small = [n for n in sizes if _suits(rows, kernel, n)]
    if len(small) < 2 or sum(small) < rows.n:
        return None
    engine = Engine(rows, kernel, "f8", by_need.LAYOUT)
    return None if engine.packed.far else SmallMachines(engine)


def _most_steps(n: int) -> int:
    return max(_LEAST_STEPS, _STEPS * n)


def _suits(rows: Rows, kernel: Kernel, n: int) -> bool:
    return n <= by_need.MOST_WHOLE and by_need.suits(rows, kernel, n)


def _result(solution: Solution, point: DualPoint, eps: float, steps: int, evaluations: int) -> SolverResult | None:
    """None where α is not balanced or the certificate does not show convergence."""
    alpha = point.y * point.beta
    if point.bias == "free" and balanced(alpha, point.y) is not alpha:
        return None
    certificate = certify_point(point, solution.rho)
    close = certificate.violation <= eps and verdict(Status.CONVERGED, certificate, eps, point.upper) is Status.CONVERGED
    return SolverResult(solution, Status.CONVERGED, certificate, steps, evaluations, 0.0) if close else None
