"""The model of all machines together, over the union of their support vectors, in LIBSVM's order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from svmkit.data import Bools, Ints, Rows, stack
from svmkit.model import Model, class_pairs, no_coefficients, put_coefficients
from svmkit.problem import Kernel
from svmkit.trained import Part, Support, Trained

#: Coefficients that are put in their places at a time, of parts as they come.
_AT_A_TIME = 1 << 16


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
    supports = [part.support() for part in trained]
    first, second = class_pairs(len(labels), multiclass)
    is_support, own_class = _numbered(supports, rows.n, first)
    kept = [
        np.concatenate([group[is_support[group]], rows.n + np.flatnonzero(own_class == c)]) for c, group in enumerate(members)
    ]
    order = np.concatenate(kept)
    place = np.full(rows.n + len(own_class), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    counts = np.array([len(group) for group in kept], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    coef, done = no_coefficients(starts, multiclass), 0
    for some in _together(supports):
        machine_of = np.repeat(done + np.arange(len(some.lengths)), some.lengths)
        put_coefficients(coef, starts, first[machine_of], second[machine_of], place[some.numbers], some.coef)
        done += len(some.lengths)
    basis = _rows_of(rows, _own_rows(trained), order)
    model = Model(
        svm_type=svm_type,
        kernel=kernel,
        rows=basis._replace(n_features=int(basis.indices.max(initial=0))),
        coef=coef,
        rho=np.concatenate([np.empty(0), *(support.rho for support in supports)]),
        labels=labels,
        class_counts=counts,
        multiclass=multiclass,
    )
    return model, np.where(order < rows.n, order, -1)


def _numbered(supports: list[Support], n: int, first: Ints) -> tuple[Bools, Ints]:
    """Which of the ``n`` training rows are support vectors, and the class of each other basis row.

    These others get the numbers n, n + 1 … in place of their −1 in ``supports``. ``first`` is the first class of each machine.
    """
    is_support, own_class = np.zeros(n + 1, dtype=bool), [np.empty(0, np.int64)]
    done = n_own = 0
    for support in supports:
        is_support[support.numbers] = True  # the last one of all those that are no training rows, −1
        own = np.flatnonzero(support.numbers < 0)
        if len(own):
            own_class.append(np.repeat(first[done : done + len(support.lengths)], support.lengths)[own])
            support.numbers[own] = n + n_own + np.arange(len(own))
            n_own += len(own)
        done += len(support.lengths)
    return is_support[:n], np.concatenate(own_class)


def _together(supports: list[Support]) -> Iterator[Support]:
    """One after another, small ones as one: there may be very many."""
    ends = np.cumsum([len(support.numbers) for support in supports])
    for _, some in groupby(zip(ends // _AT_A_TIME, supports, strict=True), key=itemgetter(0)):
        yield Support(*(np.concatenate(each) for each in zip(*(support for _, support in some), strict=True)))


def _own_rows(trained: Sequence[Part]) -> list[Rows]:
    """The basis rows with a coefficient that are no training rows, by machine."""
    solutions = [part.result.solution for part in trained if isinstance(part, Trained)]
    return [found.own.take(np.flatnonzero(found.coef)) for found in solutions if found.own.n]


def _rows_of(rows: Rows, own_rows: list[Rows], order: Ints) -> Rows:
    """The rows numbered ``order``, where numbers from rows.n on stand for ``own_rows``, one below the other."""
    named = np.sort(order[order < rows.n])
    if len(named) == len(order):
        return rows.take(order)
    place = np.where(order < rows.n, np.searchsorted(named, order), order - rows.n + len(named))
    return stack([rows.take(named), *own_rows]).take(place)
