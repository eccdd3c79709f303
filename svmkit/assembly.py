"""The model of all machines together, over the union of their support vectors, in LIBSVM's order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmkit.data import Ints, Rows, stack
from svmkit.model import Machine, Model, class_pairs
from svmkit.problem import Kernel
from svmkit.solvers.base import SolverResult


class Trained(NamedTuple):
    """A machine, the training row of each of its examples, and when its training began, on the clock of all machines."""

    examples: Ints
    result: SolverResult
    since_s: float


def assemble(
    rows: Rows,
    svm_type: str,
    kernel: Kernel,
    labels: Ints,
    members: list[Ints],
    trained: list[Trained],
    multiclass: str,
) -> tuple[Model, Ints]:
    """The model of all machines over the union of their support vectors, and the training rows these are.

    A basis row that is no training row (w of a linear method) stands in the group of its machine's first class, after the
    training rows: LIBSVM's layout has a column for it there, and its other coefficients are 0. Its training row is −1. Here it
    is numbered rows.n, rows.n + 1 …
    """
    own_class: list[int] = []
    numbers, own_rows = [], []
    for (i, _), (examples, result, _) in zip(class_pairs(len(labels), multiclass), trained, strict=True):
        found = result.solution
        used = np.flatnonzero(found.coef)
        number = found.origin[used].copy()
        own = number < 0
        number[~own] = examples[number[~own]]
        number[own] = rows.n + len(own_class) + np.arange(np.count_nonzero(own))
        numbers.append(number)
        own_class += [i] * int(np.count_nonzero(own))
        own_rows.append(found.basis.take(used[own]))
    is_support = np.zeros(rows.n + len(own_class), dtype=bool)
    is_support[np.concatenate([np.empty(0, np.int64), *numbers])] = True
    kept = [
        np.concatenate([group[is_support[group]], rows.n + np.flatnonzero(np.array(own_class) == c)]).astype(np.int64)
        for c, group in enumerate(members)
    ]
    order = np.concatenate(kept)
    place = np.full(len(is_support), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    machines = []
    for number, (_, result, _) in zip(numbers, trained, strict=True):
        index, coef = place[number], result.solution.coef[result.solution.coef != 0]
        ascending = np.argsort(index, kind="stable")
        machines.append(Machine(index[ascending], coef[ascending], float(result.solution.rho)))
    support = _rows_of(rows, own_rows, order)
    model = Model(
        svm_type=svm_type,
        kernel=kernel,
        rows=support._replace(n_features=int(support.indices.max(initial=0))),
        machines=tuple(machines),
        labels=labels,
        class_counts=np.array([len(group) for group in kept], dtype=np.int64),
        multiclass=multiclass,
    )
    return model, np.where(order < rows.n, order, -1)


def _rows_of(rows: Rows, own_rows: list[Rows], order: Ints) -> Rows:
    """The rows numbered ``order``, where numbers from rows.n on stand for ``own_rows``, one below the other."""
    named = np.sort(order[order < rows.n])
    if len(named) == len(order):
        return rows.take(order)
    place = np.where(order < rows.n, np.searchsorted(named, order), order - rows.n + len(named))
    return stack([rows.take(named), *own_rows]).take(place)
