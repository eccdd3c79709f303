"""Which training row each support vector of a model file is: the one of its class that has the same content. In a model of a
machine for each class rows need not stand with their own class; there any row with that content will do.

svm-train cuts values to 8 significant digits, so where a class has no row with exactly the same values, values are compared as
cut to 8 digits. Zeros that are spelt out do not count. Of rows with the same values each is taken once, those of more weight by
the larger coefficients: so each coefficient is within the bound of its row where that is possible at all.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from svmkit.data import Bools, Dataset, Floats, Ints, Rows
from svmkit.model import Model
from svmkit.problem import LINEAR

_DIGITS = 8


class Found(NamedTuple):
    """For each row of a model the example it is, or −1, and whether it has that example's values to the last bit."""

    place: Ints
    exact: Bools


def find_rows(model: Model, dataset: Dataset, members: list[Ints]) -> Found:
    """Where the rows of ``model`` stand in ``dataset``; ``members`` are the examples of each of its classes."""
    place, exact = np.full(model.rows.n, -1, dtype=np.int64), np.zeros(model.rows.n, dtype=bool)
    sizes, weights = _sizes(model), dataset.weights
    for examples, (first, last) in zip(members, pairwise(model.class_starts.tolist()), strict=True):
        support = first + np.argsort(-sizes[first:last], kind="stable")
        heaviest_first = examples[np.argsort(-weights[examples], kind="stable")]
        place[support], exact[support] = _find(model.rows.take(support), dataset.rows, heaviest_first)
    if model.multiclass == "ovr":  # of a row with negative coefficients alone a stream does not know the class
        lost, everyone = np.flatnonzero(place < 0), np.concatenate(members)
        place[lost], exact[lost] = _find(model.rows.take(lost), dataset.rows, everyone[~np.isin(everyone, place)])
    return Found(place, exact)


def _sizes(model: Model) -> Floats:
    """The largest |coefficient| of each row of the model."""
    sizes: Floats = np.abs(model.coef).max(axis=1, initial=0.0)
    return sizes


def foreign_rows(model: Model) -> Bools:
    """Which rows of the model have another class's sign in some machine: an example has not, a basis vector may."""
    own, column = np.repeat(np.arange(model.n_class), np.diff(model.class_starts))[:, None], np.arange(model.coef.shape[1])
    is_first = own == column if model.multiclass == "ovr" else own <= column
    foreign: Bools = ((model.coef != 0) & ((model.coef > 0) != is_first)).any(axis=1)
    return foreign


def weight_rows(model: Model) -> set[int]:
    """Rows that may be the w of a linear machine: its only one, with coefficient 1."""
    if model.kernel.kind != LINEAR:
        return set()
    return {int(machine.index[0]) for machine in model.machines if len(machine.index) == 1 and machine.coef[0] == 1}


def _find(support: Rows, rows: Rows, examples: Ints) -> Found:
    """Which of ``examples`` each row of ``support`` is; of equal ones the first is taken first."""
    place, exact = np.full(support.n, -1, dtype=np.int64), np.zeros(support.n, dtype=bool)
    for exactly in (True, False):
        missing = np.flatnonzero(place < 0)
        if len(missing) == 0 or len(examples) == 0:
            break
        unused: dict[bytes, list[int]] = {}
        left = examples[~np.isin(examples, place)][::-1]
        for example, key in zip(left.tolist(), _keys(rows.take(left), exactly), strict=True):
            unused.setdefault(key, []).append(example)
        for number, key in zip(missing.tolist(), _keys(support.take(missing), exactly), strict=True):
            candidates = unused.get(key)
            if candidates:
                place[number], exact[number] = candidates.pop(), exactly
    return Found(place, exact)


def _keys(rows: Rows, exact: bool) -> list[bytes]:
    """Each row's content, equal for equal rows."""
    if rows.precomputed:
        return [serial.tobytes() for serial in rows.serial]
    filled = rows.data != 0
    ends = np.concatenate([[0], np.cumsum(filled)])[rows.indptr].tolist()
    indices, data = rows.indices[filled].astype(np.int32), rows.data[filled]
    values = data if exact else _cut(data)
    return [indices[first:last].tobytes() + values[first:last].tobytes() for first, last in pairwise(ends)]


def _cut(values: Floats) -> Ints:
    """A number for each value, the same for those that %.8g prints alike: the digits, the exponent above them."""
    size = np.abs(values)
    exponent = np.floor(np.log10(size)).astype(np.int64)
    with np.errstate(over="ignore", invalid="ignore"):  # values too small to be scaled are told apart by their exponents alone
        power = 10.0 ** (_DIGITS - 1 - exponent)
        scaled = size * power
        ties = np.abs(scaled - np.floor(scaled) - 0.5) < 1e-6  # print goes by digits that the product may have lost
        scaled[ties] = power[ties] * [float(f"{value:.{_DIGITS}g}") for value in size[ties].tolist()]
        digits = np.nan_to_num(np.rint(scaled), posinf=0.0)
    carried = digits >= 10**_DIGITS  # rounded up to a power of ten
    digits[carried] /= 10
    packed = ((exponent + carried) << 32) + digits.astype(np.int64)
    signed: Ints = np.where(values < 0, -packed, packed)
    return signed
