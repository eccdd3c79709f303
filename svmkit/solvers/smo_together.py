"""Small machines of one data set, trained together: what smo.py does with each of them, in one call.

For those of at most 2048 variables, whose kernel matrices in float64 take 32 MB, and for larger ones of a large class and a
tiny one, in which few examples matter (smo_few.py). Kernel values that machines have in common are made once: all of them
first, 8 MB, where rows are few and machines many, as in folds.

A machine whose steps end by themselves, and whose solution float64 values then bear out, has a solution as smo would have
found, of small ones bit for bit where smo takes no other steps than these (by_need.py), and these are no more than smo takes in
a round; any other is left to smo, from the start.
"""

from __future__ import annotations

from itertools import pairwise
from threading import Lock

import numpy as np

from svmkit.certificate import DualPoints, certify_points, is_balanced
from svmkit.data import Floats, Ints, Rows
from svmkit.engine import by_need
from svmkit.engine.kernels import Engine
from svmkit.engine.space import room
from svmkit.engine.together import Blocks, Boxes, Ended, products_by_w, train_machines
from svmkit.problem import LINEAR, PRECOMPUTED, Bias, Kernel
from svmkit.solvers.base import Several, SeveralEnded
from svmkit.solvers.smo_few import MOST_OF_TINY, signs_of_large, train_on_few, work_on_few
from svmkit.solvers.smo_state import rhos_of
from svmkit.solvers.stops import is_close

#: Variables of a machine at most, but where one class is tiny.
MOST_VARIABLES = 2048
#: Steps of a machine, by a high guess: so many a variable, but of small ones so many in all, and of tiny ones again so many a
#: variable. Most take one a variable or fewer.
_STEPS, _STEPS_OF_SMALL, _STEPS_OF_TINY = 4, 5000, 250
#: Variables that the steps of a machine go over at most, and those of a call before its last: a twentieth of a second's work.
_MOST_WORK = 1 << 24
#: So many of the large machines that can be trained so are worth packing all rows for.
_FEW_LARGE = 4
#: More steps than machines take.
_NO_END = 1 << 62
#: Where no bias is free, and from twice that where it is, smo is done before its first step.
_DONE_AT_ONCE = 1.0
#: Kernel values among single classes that are kept for other machines, 64 MB.
_KEPT_VALUES = 1 << 23
#: Rows whose kernel values are all made first, where machines have so many times as many among them.
_ROWS_IN_COMMON, _IN_COMMON = 1024, 3
#: Kernel values that are compared at a time: they stay in the second-level cache.
_COMPARED_VALUES = 1 << 16


class SmallMachines:
    """Trains them (base.py's ``Together``) among rows that are packed once."""

    def __init__(self, engine: Engine, whole: bool) -> None:
        """For an engine in float64; ``whole`` says whether all kernel values are made first."""
        self._engine, self._diagonal = engine, engine.diagonal()
        everyone = np.arange(engine.rows.n)
        self.K = engine.block(everyone, everyone) if whole else None
        self._kept, self._begins, self._used, self._keeping = np.empty(_KEPT_VALUES), dict[int, int](), 0, Lock()

    def work(self, n: int, fewer: int) -> float:
        """The variables that steps of a machine of ``n`` examples, ``fewer`` in one class, go over, by a high guess; inf where
        smo has to train it.
        """
        if n <= MOST_VARIABLES:
            return float(n * max(min(_STEPS_OF_SMALL, _STEPS_OF_TINY * n), _STEPS * n))
        return _work_of_large(self._engine.rows, n) if fewer <= MOST_OF_TINY else np.inf

    @np.errstate(over="ignore", invalid="ignore")  # where kernel values overflow, figures come out infinite or nan
    def train(self, machines: Several, bias: Bias, eps: float, max_iter: int | None) -> SeveralEnded | None:
        """How the first of them end, as many as a call trains, at least one; None where smo is done before its first step."""
        if eps >= _DONE_AT_ONCE:
            return None
        rows, bounds = self._engine.rows, machines.y * machines.upper
        boxes = Boxes(
            starts=machines.starts,
            y=machines.y,
            lower=np.minimum(0.0, bounds),
            upper=np.maximum(0.0, bounds),
            diagonal=self._diagonal[machines.examples],
        )
        ended = self._ended(machines, boxes, bias == "free", 0.5 * eps, _NO_END if max_iter is None else max_iter)
        machines, boxes = machines.part(0, len(ended.steps)), boxes.part(0, len(ended.steps))
        sizes, starts = machines.sizes, machines.starts[:-1]
        beta, product, evaluations = ended.beta, ended.product, ended.evaluations
        if self._engine.kernel.kind == LINEAR:
            product = products_by_w(rows, machines.examples, machines.starts, beta)
            evaluations = evaluations + sizes * np.add.reduceat((beta != 0.0).astype(np.int64), starts)
        rho = np.zeros(len(sizes))
        if bias == "free":
            rho = rhos_of(machines.y - product, beta, boxes.lower, boxes.upper, starts)
        points = DualPoints(starts, machines.y, machines.upper, self._engine.kernel, bias, boxes.diagonal, beta, product)
        certificates = certify_points(points, rho)
        converged = (ended.finished == 1) & np.isfinite(np.add.reduceat(product, starts))
        converged &= certificates.violation <= eps
        if self._engine.kernel.kind == LINEAR:
            converged &= certificates.noise <= eps  # else w will be the solution
        converged &= is_close(certificates.gap, eps, np.add.reduceat(machines.upper, starts))
        if bias == "free":  # else the certificate would be of another point
            alpha, positive = machines.y * beta, machines.y > 0
            sums = (np.add.reduceat(np.where(side, alpha, 0.0), starts) for side in (positive, ~positive))
            converged &= is_balanced(*sums)
        return SeveralEnded(converged, beta, rho, certificates, ended.steps, evaluations)

    def _ended(self, machines: Several, boxes: Boxes, bias: bool, eps: float, most_steps: int) -> Ended:
        """The first of them, those that have a class in common one after another, until the work of a call is done."""
        ended, work, reached = Ended.room_for(boxes), _MOST_WORK, 0
        for first, last in pairwise([*self._begins_of(machines), len(machines.positive)]):
            if work <= 0:
                break
            own, some, part = ended.part(boxes.starts, first, last), machines.part(first, last), boxes.part(first, last)
            if some.sizes[0] > MOST_VARIABLES:
                train_on_few(self._engine, some, part, bias, eps, most_steps, own)
                reached, work = last, work - int(sum(_work_of_large(self._engine.rows, n) for n in some.sizes.tolist()))
                continue
            reached += train_machines(self._blocks(some), part, bias, eps, most_steps, _MOST_WORK, work, own)
            work -= int(own.steps @ machines.sizes[first:last])
        return ended.part(boxes.starts, 0, reached)

    def _begins_of(self, machines: Several) -> list[int]:
        """Where machines begin that have a first class in common, of large ones the large class, on the same side."""
        if self.K is not None:
            return [0]
        if machines.sizes.max() <= MOST_VARIABLES:
            return np.flatnonzero(np.diff(machines.positive, prepend=-1)).tolist()
        is_large, sign = machines.sizes > MOST_VARIABLES, signs_of_large(machines)
        side = np.where(is_large, sign, 0.0)
        common = np.where(is_large & (sign < 0), machines.negative, machines.positive)
        return np.flatnonzero((np.diff(common, prepend=-1) != 0) | (np.diff(side, prepend=side[0]) != 0)).tolist()

    def _blocks(self, machines: Several) -> Blocks:
        """Of machines with one first class, or any where K is there."""
        if self.K is not None:
            nothing = np.zeros(len(machines.positive), np.int64)
            return Blocks(self.K, self.K, self.K.ravel(), machines.examples, nothing, nothing, nothing + len(self.K))
        is_second = machines.y < 0
        head = slice(0, machines.starts[1])
        first, second = machines.examples[head][~is_second[head]], machines.examples[is_second]
        cuts = np.concatenate([[0], np.cumsum(np.add.reduceat(is_second.astype(np.int64), machines.starts[:-1]))])
        begins, columns = (np.repeat(each[:-1], machines.sizes) for each in (machines.starts, cuts))
        in_second = np.cumsum(is_second) - is_second - columns
        own, shape = self._keep(int(machines.positive[0]), first), (len(first), len(second))
        others, corners = self._others(machines.negative.tolist(), second, cuts)
        return Blocks(
            self._engine.block(first, first) if own < 0 else self._kept[own : own + len(first) ** 2].reshape(2 * shape[:1]),
            self._engine.block(first, second, out=room("across", shape[0] * shape[1]).reshape(shape)),
            others,
            np.where(is_second, in_second, np.arange(len(is_second)) - begins - in_second),
            cuts[:-1],
            corners,
            np.diff(cuts),
        )

    def _others(self, numbers: list[int], rows: Ints, cuts: Ints) -> tuple[Floats, Ints]:
        """K among each of the classes ``numbers``, whose rows stand one after another, and where each begins."""
        begins = np.array([self._begins.get(number, -1) for number in numbers])
        for k in np.flatnonzero(begins < 0).tolist():
            begins[k] = self._keep(numbers[k], rows[cuts[k] : cuts[k + 1]])
        if (begins >= 0).all():
            return self._kept, begins
        sizes = np.diff(cuts)
        ends = np.cumsum(sizes**2)
        others, corners = room("others", int(ends[-1])), ends - sizes**2
        for k, (n, begin, corner) in enumerate(zip(sizes.tolist(), begins.tolist(), corners.tolist(), strict=True)):
            if begin >= 0:
                others[corner : corner + n * n] = self._kept[begin : begin + n * n]
            else:
                own = rows[cuts[k] : cuts[k + 1]]
                self._engine.block(own, own, out=others[corner : corner + n * n].reshape(n, n))
        return others, corners

    def _keep(self, number: int, rows: Ints) -> int:
        """Where K among the rows of a class begins in what is kept; −1 for want of room, or of all but one (number −1)."""
        with self._keeping:
            begin, n = self._begins.get(number, -1), len(rows)
            if begin < 0 <= number and self._used + n * n <= len(self._kept):
                begin = self._used
                self._engine.block(rows, rows, out=self._kept[begin : begin + n * n].reshape(n, n))
                self._used += n * n
                self._begins[number] = begin
            return begin


def _work_of_large(rows: Rows, n: int) -> float:
    """Of a machine of ``n`` examples, a tiny class among them; inf where less than two would go into a call."""
    work = work_on_few(n, 1.0 if rows.precomputed else len(rows.data) / max(rows.n, 1))
    return work if 2 * work <= _MOST_WORK else np.inf


def small_machines(rows: Rows, kernel: Kernel, sizes: Ints, fewer: Ints) -> SmallMachines | None:
    """For machines of so many examples each, and in their smaller class; None where those that are taken are too few to be
    worth packing all rows for.

    And for a precomputed kernel that is not symmetric: here K(x, z) serves as K(z, x).
    """
    small = sizes[sizes <= MOST_VARIABLES]
    large = sizes[(sizes > MOST_VARIABLES) & (fewer <= MOST_OF_TINY)]
    large = large[[_work_of_large(rows, n) < np.inf for n in large.tolist()]]
    enough = (len(small) >= 2 and small.sum() >= rows.n) or (len(large) >= _FEW_LARGE and large.sum() >= rows.n)
    whole = rows.n <= _ROWS_IN_COMMON and np.square(small).sum() >= _IN_COMMON * rows.n**2
    if rows.form == "dense" or not enough:
        return None
    if kernel.kind == PRECOMPUTED and not _is_symmetric(rows):
        return None
    layout = by_need.LAYOUT if len(small) and by_need.suits(rows, kernel, int(small.max())) else None
    return SmallMachines(Engine(rows, kernel, "f8", layout), bool(whole))


def _is_symmetric(rows: Rows) -> bool:
    """Whether of a precomputed kernel K(x, z) is K(z, x), to the bit, among all rows; few values are copied at a time."""
    columns, step = rows.serial - 1, max(1, _COMPARED_VALUES // max(1, rows.n))
    parts = (slice(first, first + step) for first in range(0, rows.n, step))
    return all(np.array_equal(rows.gram[part][:, columns], rows.gram[:, columns[part]].T) for part in parts)
