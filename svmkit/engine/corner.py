"""A corner of the face of optima that a box-constrained quadratic has where its matrix is of low rank, K ≈ LLᵀ, n × r.

Moves     Δ with LᵀΔ = 0 and, where there is a bias, ΣΔ = 0: from optimum to optimum, they change neither objective nor F
Corner    no such move is left to the free variables, which are r or, with a bias, r + 1 at most. Steps through the interior
          end amidst the face instead, where all that can be free are, and each would be a support vector
Method    free variables go one after another to the end of their box that is nearer to 0, and a basis of others makes up for
          it; one of these that reaches an end before gives up its place. Some 15 r² multiplications a variable
Memory    8 r²: variables come r at a time to those that the ones before have left free
Paper     Megiddo, ORSA J. Computing 3 (1991) 63–65, for linear programs: from an optimum to a basic one
"""

from __future__ import annotations

import numpy as np

from svmkit import parallel
from svmkit.data import Floats
from svmkit.engine.lapack import pivoted_qr

#: A basis leaves of rows, each as long as its variable can move, less than such a share of the longest.
_LEFT = 1e-14


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what is not finite violates, and is no optimum
def corner(L: Floats, beta: Floats, lower: Floats, upper: Floats, bias: bool) -> Floats:
    """β (n,) at a corner of the face that ``beta`` is in the midst of; 0 is in every box. Rounding may lead off the face."""
    most = L.shape[1] + bias
    free = np.flatnonzero((lower < beta) & (beta < upper))
    if len(free) <= most:
        return beta
    found, left = beta.copy(), free[:0]
    for first in range(0, len(free), most):
        parallel.stay()
        some = np.concatenate([left, free[first : first + most]])
        rows = np.hstack([L[some], np.ones((len(some), 1))]) if bias else L[some]
        found[some] = _corner_of(rows, found[some], lower[some], upper[some])
        left = some[(lower[some] < found[some]) & (found[some] < upper[some])]
    return found


def _corner_of(rows: Floats, beta: Floats, lower: Floats, upper: Floats) -> Floats:
    """Of variables that are all free, moves being those with rowsᵀΔ = 0."""
    room = np.minimum(beta - lower, upper - beta)  # a basis of those with much is less often at an end
    R, order = pivoted_qr((rows * room[:, None]).T)
    lengths = np.abs(R.diagonal())
    rank = int(np.count_nonzero(lengths > _LEFT * lengths[0]))
    columns, lower, upper, found = R[:rank] / room[order], lower[order], upper[order], beta[order]
    ends = np.where(-lower < upper, lower, upper)
    basis, inverse = np.arange(rank), np.linalg.inv(columns[:, :rank])
    for j in range(rank, len(found)):
        coordinates = inverse @ columns[:, j]
        way = ends[j] - found[j]
        moves = -way * coordinates
        to_end = np.where(moves < 0.0, lower[basis], upper[basis]) - found[basis]
        share = np.divide(to_end, moves, out=np.full(rank, np.inf), where=moves != 0.0)
        if not (share < 1.0).any():
            found[basis] += moves
            found[j] = ends[j]
            continue
        first = int(np.argmin(share))
        found[basis] += share[first] * moves
        found[j] += share[first] * way
        found[basis[first]] = (lower if moves[first] < 0.0 else upper)[basis[first]]
        basis[first] = j
        in_place = inverse[first] / coordinates[first]
        coordinates[first] -= 1.0
        inverse -= np.outer(coordinates, in_place)
    result = np.empty(len(found))
    result[order] = np.clip(found, lower, upper)
    return result
