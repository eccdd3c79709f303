"""How a run of block SMO comes down: whether the minimum is near, whether Newton steps on α or on w, or steps through the
interior, would be quicker than more rounds, and whether it has stalled.

Work is counted in kernel values. Rounds crawl near the minimum where K is ill-conditioned: what they have left to do is judged
by what halving the violation has cost of late, Newton steps by the cube of the number of free variables.
"""

from __future__ import annotations

from math import inf, log

import numpy as np

from svmkit.engine.active import Variables
from svmkit.engine.pivots import MOST_FREE
from svmkit.engine.reviews import Reviews

#: From this share of the first violation on a run is near the minimum.
_NEAR_SHARE = 0.1
#: Newton steps on the free variables begin when the violation is this share of the first one, if rounds seem to have so many
#: times that work left to do; a try that follows has to promise so many times more than the one before.
_NEWTON_SHARE, _NEWTON_GAIN, _NEWTON_AGAIN = 0.04, 3.0, 2.0
#: Where violations of so many times eps come to light at the end they are far, and a Newton step is little, by such a share of
#: all that was done.
_FAR, _LITTLE = 10.0, 0.1
#: A kernel value takes as long as so many multiplications and one a nonzero; a Newton step's other costs in multiplications.
_MULTIPLICATIONS, _NEWTON_START = 12.0, 5e9
#: Newton steps on w take as long as so many kernel values: to begin with, a row, a nonzero, a feature, a row and pair of
#: features, and a feature cubed. They begin once ``_W_SHARE`` of that is done, and take about ``_W_STEPS`` steps.
_W_START, _W_ROW, _W_NONZERO, _W_FEATURE, _W_PAIR, _W_CUBE, _W_SHARE, _W_STEPS = 7e7, 9e3, 280.0, 1e6, 0.2, 2.6, 0.25, 32
#: Steps through the interior take as long as so many kernel values: to begin with, a variable squared and cubed. They begin
#: when as much is done as so many of them take; for active variables by themselves, if that is such a share of what is done.
_INTERIOR_START, _INTERIOR_SQUARE, _INTERIOR_CUBE, _INTERIOR_STEPS, _INTERIOR_SHARE = 1e6, 35.0, 0.006, 20, 0.25
#: Where K is of low rank: to begin with, a variable, a variable and column of L, a variable and pair of columns.
_LOW_START, _LOW_ROW, _LOW_VALUE, _LOW_PAIR = 2.5e6, 750.0, 7.5, 0.05
#: So much is done before it is asked whether K is: it takes less.
_BEFORE_RANK = 4e8


class Pace:
    """Of a run over ``n`` variables that stops at ``eps``; ``_mark`` is where the violation had last halved."""

    def __init__(self, n: int, eps: float) -> None:
        self._n, self._eps = n, eps
        self._first = 0.0
        self._least = inf
        self._reviews = Reviews(n)
        self._mark, self._mark_work, self._halving_work = inf, 0.0, 0.0
        self._gain = _NEWTON_GAIN
        self._w_was_tried = self._interior_was_tried = self._rank_was_asked = False

    def note(self, violation: float) -> None:
        """The violation at the begin of a round; one that does not end the run was none of all variables, or rounding."""
        self._first = max(self._first, violation)
        if violation > self._eps:
            self._least = min(self._least, violation)

    def is_near(self, violation: float) -> bool:
        """Whether most of the violation is gone, so that what is left may be ill-conditioned."""
        return violation <= _NEAR_SHARE * self._first

    def review(self, steps: int) -> bool:
        """After ``steps`` pair steps, whether the least violation has hardly fallen for some time."""
        return self._reviews.review(steps, self._least)

    def newton_is_quicker(self, violation: float, work: float, active: Variables) -> bool:
        """Whether rounds, at the pace of late, would take longer than Newton steps from here; ``work`` is all done so far."""
        if violation > _NEWTON_SHARE * self._first:  # on the way there violations may grow, which says nothing of the pace
            self._mark, self._mark_work, self._halving_work = violation, work, 0.0
            return False
        if violation <= 0.5 * self._mark:
            halvings = log(self._mark / violation, 2.0) if violation > 0.0 else 1.0
            self._halving_work = (work - self._mark_work) / halvings
            self._mark, self._mark_work = violation, work
        left = max(self._halving_work, work - self._mark_work) * log(violation / self._eps, 2.0)
        return left >= self._gain * _newton_work(active)

    def newton_costs_little(self, violation: float, work: float, active: Variables) -> bool:
        """Whether after ``work`` that has led so far off the minimum a few Newton steps take little time against it."""
        return violation > _FAR * self._eps and _newton_work(active) <= _LITTLE * work

    def newton_was_tried(self) -> None:
        """The next try has to promise more."""
        self._gain *= _NEWTON_AGAIN

    def claim_w_if_quicker(self, work: float, nonzeros: int, n_features: int) -> bool:
        """Whether enough has been done that w may be found sooner, for linear rows; True once at most."""
        return work >= self.work_before_w(nonzeros, n_features) and self.claim_w()

    def work_before_w(self, nonzeros: int, n_features: int) -> float:
        """How much that is; infinite once w has been looked for."""
        return inf if self._w_was_tried else _W_SHARE * self._w_work(nonzeros, n_features)

    def w_step_work(self, nonzeros: int, n_features: int) -> float:
        """How long one of these Newton steps takes, roughly."""
        return self._w_work(nonzeros, n_features) / _W_STEPS

    def _w_work(self, nonzeros: int, n_features: int) -> float:
        by_n = _W_ROW + _W_PAIR * n_features**2
        by_features = _W_FEATURE * n_features + _W_CUBE * float(n_features) ** 3
        return _W_START + by_n * self._n + _W_NONZERO * nonzeros + by_features

    def claim_w(self) -> bool:
        """Whether w has not been looked for yet; True once at most."""
        left, self._w_was_tried = not self._w_was_tried, True
        return left

    def claim_rank(self, work: float) -> bool:
        """Whether as much has been done as it takes to ask whether K is of low rank; True once at most."""
        if work < _BEFORE_RANK or self._rank_was_asked or self._interior_was_tried:
            return False
        self._rank_was_asked = True
        return True

    def claim_interior_if_quicker(self, work: float) -> bool:
        """Whether as much has been done as steps through the interior by the whole of K would take; True once at most."""
        return work >= self.work_before_interior(0) and self.claim_interior()

    def work_before_interior(self, rank: int) -> float:
        """How much is done before steps through the interior begin, K being of a low ``rank``, or 0."""
        return _INTERIOR_STEPS * self.interior_step_work(rank)

    def interior_step_work(self, rank: int) -> float:
        """How long one of these steps takes, roughly, K being of a low ``rank``, or 0."""
        return _low_rank_work(self._n, rank) if rank else _interior_work(self._n)

    def interior_costs_little(self, n: int, work: float) -> bool:
        """Whether these steps, for ``n`` variables alone, take little time against all ``work`` so far."""
        return _INTERIOR_STEPS * _interior_work(n) <= _INTERIOR_SHARE * work

    def claim_interior(self) -> bool:
        """Whether steps through the interior have not been taken yet; True once at most."""
        left, self._interior_was_tried = not self._interior_was_tried, True
        return left

    def was_wrong(self) -> None:
        """Violations so far were by an F that float64 values have not borne out: the least of them is none to fall below."""
        self._least = inf
        self._reviews.begin_again()

    def hurry(self, steps: int, violation: float) -> None:
        """After ``steps`` pair steps what is left to do is little: has stalled where the next look finds no fall."""
        self._least = violation
        self._reviews.hurry(steps, violation)


def _newton_work(active: Variables) -> float:
    n_free = int(np.count_nonzero((active.lower < active.beta) & (active.beta < active.upper)))
    if not 0 < n_free <= MOST_FREE:
        return inf
    nonzeros = active.packed.nonzeros / len(active.beta)
    return (n_free**3 + _NEWTON_START) / (_MULTIPLICATIONS + nonzeros) + 4.0 * n_free * len(active.beta)


def _interior_work(n: int) -> float:
    return _INTERIOR_START + _INTERIOR_SQUARE * float(n) ** 2 + _INTERIOR_CUBE * float(n) ** 3


def _low_rank_work(n: int, rank: int) -> float:
    return _LOW_START + n * (_LOW_ROW + _LOW_VALUE * rank + _LOW_PAIR * float(rank) ** 2)
