"""The model of all machines together, over the union of their support vectors, in LIBSVM's order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from svmkit.data import Ints, Rows, stack
from svmkit.model import Machine, Model, class_pairs
from svmkit.problem import Kernel
from svmkit.trained import Part, Support, Trained


def assemble(
    rows: Rows,
    svm_type: str,
    kernel: Kernel,
    labels: Ints,
    members: list[Ints],
    trained: Sequence[Part],
    multiclass: str,
) -> tuple[Model, Ints]:
    """The model of all machines over the union of their support vectors, and the training rows these are.

    A basis row that is no training row (w of a linear method) stands in the group of its machine's first class, after the
    training rows: LIBSVM's layout has a column for it there, and its other coefficients are 0. Its training row is −1. Here it
    is numbered rows.n, rows.n + 1 …
    """
    support = _joined([part.support() for part in trained])
    machine_of = np.repeat(np.arange(len(support.lengths)), support.lengths)
    own = np.flatnonzero(support.numbers < 0)
    support.numbers[own] = rows.n + np.arange(len(own))
    first_class = np.array([i for i, _ in class_pairs(len(labels), multiclass)], np.int64)
    own_class = first_class[machine_of[own]]
    is_support = np.zeros(rows.n + len(own), dtype=bool)
    is_support[support.numbers] = True
    kept = [
        np.concatenate([group[is_support[group]], rows.n + np.flatnonzero(own_class == c)]) for c, group in enumerate(members)
    ]
    order = np.concatenate(kept)
    place = np.full(len(is_support), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    index = place[support.numbers]
    ascending = np.argsort(machine_of * len(order) + index, kind="stable")
    index, coef = index[ascending], support.coef[ascending]
    cuts = np.concatenate([[0], np.cumsum(support.lengths)]).tolist()
    basis = _rows_of(rows, _own_rows(trained), order)
    model = Model(
        svm_type=svm_type,
        kernel=kernel,
        rows=basis._replace(n_features=int(basis.indices.max(initial=0))),
        machines=tuple(
            Machine(index[first:last], coef[first:last], rho)
            for first, last, rho in zip(cuts[:-1], cuts[1:], support.rho.tolist(), strict=True)
        ),
        labels=labels,
        class_counts=np.array([len(group) for group in kept], dtype=np.int64),
        multiclass=multiclass,
    )
    return model, np.where(order < rows.n, order, -1)


def _joined(parts: list[Support]) -> Support:
    """All of them; numbers are a copy."""
    if not parts:
        return Support(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64), np.empty(0))
    return Support(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _own_rows(trained: Sequence[Part]) -> list[Rows]:
    """The basis rows that are no training rows, by machine."""
    alone = [part.result.solution for part in trained if isinstance(part, Trained)]
    return [found.basis.take(np.flatnonzero((found.coef != 0) & (found.origin < 0))) for found in alone]


def _rows_of(rows: Rows, own_rows: list[Rows], order: Ints) -> Rows:
    """The rows numbered ``order``, where numbers from rows.n on stand for ``own_rows``, one below the other."""
    named = np.sort(order[order < rows.n])
    if len(named) == len(order):
        return rows.take(order)
    place = np.where(order < rows.n, np.searchsorted(named, order), order - rows.n + len(named))
    return stack([rows.take(named), *own_rows]).take(place)
