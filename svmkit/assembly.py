"""The model of all machines together, over the union of their support vectors, in LIBSVM's order.

A row has a number here and a place there. The numbers are those of the n training rows, 0 … n − 1, and from n on of the basis
rows that are none (w of a linear method), one machine's after another's. The places are those in the model: class by class, of
each first its training rows and then the others, which stand with their machine's first class. LIBSVM's layout has a column
for them there; their other coefficients are 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from svmkit.data import Bools, Floats, Ints, Rows, stack
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
    """The model of all machines, and the training row that each of its rows is, −1 for none. ``members`` are the training rows
    of each class.
    """
    supports = [part.support() for part in trained]
    pairs = class_pairs(len(labels), multiclass)
    is_support, own_class = _number_own(supports, rows.n, pairs[0])
    kept = [
        np.concatenate([group[is_support[group]], rows.n + np.flatnonzero(own_class == c)]) for c, group in enumerate(members)
    ]
    number_at = np.concatenate(kept)
    place_of = np.full(rows.n + len(own_class), -1, dtype=np.int64)
    place_of[number_at] = np.arange(len(number_at))
    counts = np.array([len(group) for group in kept], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    basis = _rows_of(rows, _own_rows(trained), number_at)
    model = Model(
        svm_type=svm_type,
        kernel=kernel,
        rows=basis._replace(n_features=int(basis.indices.max(initial=0))),
        coef=_coefficients(supports, pairs, place_of, starts, multiclass),
        rho=np.concatenate([np.empty(0), *(support.rho for support in supports)]),
        labels=labels,
        class_counts=counts,
        multiclass=multiclass,
    )
    return model, np.where(number_at < rows.n, number_at, -1)


def _number_own(supports: list[Support], n: int, first: Ints) -> tuple[Bools, Ints]:
    """Which of the ``n`` training rows are support vectors, and the class of each basis row that is none.

    These get their numbers, n, n + 1 …, in ``supports``, where −1 stood. ``first`` is the first class of each machine.
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


def _coefficients(supports: list[Support], pairs: Ints, place_of: Ints, starts: Ints, multiclass: str) -> Floats:
    """``Model.coef``, where the machines are of ``pairs`` (2, machines) and the rows of each class begin at ``starts``."""
    coef, (first, second), done = no_coefficients(starts, multiclass), pairs, 0
    for some in _together(supports):
        machine_of = np.repeat(done + np.arange(len(some.lengths)), some.lengths)
        put_coefficients(coef, starts, first[machine_of], second[machine_of], place_of[some.numbers], some.coef)
        done += len(some.lengths)
    return coef


def _together(supports: list[Support]) -> Iterator[Support]:
    """One after another, small ones as one: there may be very many."""
    ends = np.cumsum([len(support.numbers) for support in supports])
    for _, some in groupby(zip(ends // _AT_A_TIME, supports, strict=True), key=itemgetter(0)):
        yield Support(*(np.concatenate(each) for each in zip(*(support for _, support in some), strict=True)))


def _own_rows(trained: Sequence[Part]) -> list[Rows]:
    """The basis rows with a coefficient that are no training rows, by machine."""
    solutions = [part.result.solution for part in trained if isinstance(part, Trained)]
    return [found.own.take(np.flatnonzero(found.coef)) for found in solutions if found.own.n]


def _rows_of(rows: Rows, own_rows: list[Rows], numbers: Ints) -> Rows:
    """The rows of these ``numbers``; those from rows.n on are ``own_rows``, one below the other."""
    training = np.sort(numbers[numbers < rows.n])
    if len(training) == len(numbers):
        return rows.take(numbers)
    place = np.where(numbers < rows.n, np.searchsorted(training, numbers), numbers - rows.n + len(training))
    return stack([rows.take(training), *own_rows]).take(place)
