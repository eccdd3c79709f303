"""A trained model, whichever tool made it: ``Machine`` (one decision function), ``Model`` (all of them and the labels).

What a model says of new rows takes two steps: ``decision_values``, or ``decisions_by_part``, then ``predict``. ``answers`` is
both, in less time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from svmkit.data import Floats, Ints, Rows, dense_rows
from svmkit.engine.kernels import Columns, cross_apply, products_by_group
from svmkit.engine.layouts import layout_of
from svmkit.engine.packed import prepared
from svmkit.engine.pair_sums import count_votes, pair_products, pair_sums, tiles_of
from svmkit.errors import DataError
from svmkit.maps import FeatureMap
from svmkit.problem import PRECOMPUTED, RBF, Kernel

#: Kernel values from which on ``answers`` turns to float32, if of some rows tried first it leaves no more than a share open.
FLOAT32_FROM_VALUES, _TRIED_ROWS, _MOST_OPEN = 10_000_000, 500, 0.25
#: Decision values of all machines that are made at a time, 16 MB; there may be three of each on the way.
_DECISIONS_HELD = 1 << 21
#: Kernel values that are held at a time where they are stored.
_VALUES_HELD = 1 << 20
#: Features of mapped rows that are made at a time, 64 MB.
_MAPPED_VALUES = 1 << 24


#: Stands for all other classes in the place of a machine's second class.
REST = -1


@dataclass(frozen=True)
class Machine:
    """f(z) = Σ_j coef_j K(rows[index_j], z) − rho, over rows of the model; ``index`` ascending."""

    index: Ints
    coef: Floats
    rho: float


@dataclass(frozen=True)
class Model:
    """A LIBSVM model, or one against the rest: ``coef`` (n_support, columns) as LIBSVM lays it out, ``rho`` (machines,).

    Classification with k classes has ``labels`` (k,) in LIBSVM's order, k(k−1)/2 machines for the pairs (0,1), (0,2) … (1,2)
    …, the first class of a pair positive, and ``class_counts`` (k,): the rows are grouped by class in label order. A row of
    class i has its coefficient against class j in column j − 1 if j > i, else in column j. Where it has none the number is 0,
    or −0 if i is the negative class, as y·0 comes out. With ``multiclass`` "ovr" there are k > 2 machines, each for a class
    against the rest, with a column each, which LIBSVM has no form for, nor for a ``map``, with which the kernel is linear and
    the rows are weights of mapped features. Regression and one-class have one machine and no labels. ``prob_a``, ``prob_b``
    (pairs,) are Platt's sigmoids; regression has ``prob_a`` (1,) = the Laplace width; ``density_marks`` (10,) belong to
    one-class models.
    """

    svm_type: str
    kernel: Kernel
    rows: Rows
    coef: Floats
    rho: Floats
    labels: Ints | None = None
    class_counts: Ints | None = None
    prob_a: Floats | None = None
    prob_b: Floats | None = None
    density_marks: Floats | None = None
    multiclass: str = "ovo"
    map: FeatureMap | None = None

    @property
    def n_class(self) -> int:
        """Number of classes; 2 for regression and one-class, as LIBSVM writes."""
        return 2 if self.labels is None else len(self.labels)

    @property
    def is_regression(self) -> bool:
        """Whether its answers are values, not labels."""
        return self.svm_type in ("epsilon_svr", "nu_svr")

    @property
    def n_support(self) -> int:
        """Number of support vectors, each counted once."""
        return self.rows.n

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The two class positions of each machine of a classification model; the second may be REST."""
        return list(zip(*class_pairs(self.n_class, self.multiclass).tolist(), strict=True))

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Each decision function by itself, made for whoever asks."""
        starts = self.class_starts
        return tuple(self._machine(starts, i, j, rho) for (i, j), rho in zip(self.pairs, self.rho.tolist(), strict=True))

    def _machine(self, starts: Ints, i: int, j: int, rho: float) -> Machine:
        if self.labels is None or j == REST:
            index = np.flatnonzero(self.coef[:, i])
            return Machine(index, self.coef[index, i], rho)
        first, second = self.coef[starts[i] : starts[i + 1], j - 1], self.coef[starts[j] : starts[j + 1], i]
        own, other = np.flatnonzero(first), np.flatnonzero(second)
        return Machine(np.concatenate([starts[i] + own, starts[j] + other]), np.concatenate([first[own], second[other]]), rho)

    @property
    def class_starts(self) -> Ints:
        """(k + 1,) where each class's rows begin; regression and one-class models have one group."""
        counts = np.array([self.rows.n]) if self.class_counts is None else self.class_counts
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def class_pairs(n_class: int, multiclass: str) -> Ints:
    """(2, machines), the columns (0, 1), (0, 2) … (1, 2) …: LIBSVM's order of the one-vs-one machines; or (0, REST) …"""
    if multiclass == "ovr":
        return np.stack([np.arange(n_class), np.full(n_class, REST)])
    return np.stack(np.triu_indices(n_class, 1))


def count_machines(n_class: int, multiclass: str) -> int:
    """How many ``class_pairs`` there are."""
    return n_class if multiclass == "ovr" else n_class * (n_class - 1) // 2


def no_coefficients(starts: Ints, multiclass: str) -> Floats:
    """``Model.coef`` of a model whose rows of class i begin at ``starts[i]`` (k + 1,), before any is put there."""
    k = len(starts) - 1
    table = np.zeros((starts[-1], k if multiclass == "ovr" else max(k - 1, 1)))
    if multiclass != "ovr":
        for i in range(1, k):
            table[starts[i] : starts[i + 1], :i] = -0.0
    return table


def put_coefficients(table: Floats, starts: Ints, first: Ints, second: Ints, index: Ints, coef: Floats) -> None:
    """Puts ``coef`` (m,) of rows ``index`` into ``table``, a model's; each is of the machine of ``first`` and ``second``."""
    columns = np.where(index < starts[second], second - 1, first)  # rows of the first class stand above the second's
    table[index, np.where(second == REST, first, columns)] = coef


def with_machines(model: Model, machines: Sequence[Machine]) -> Model:
    """``model`` with these for its own, over the same rows."""
    starts, lengths = model.class_starts, [len(machine.index) for machine in machines]
    table = no_coefficients(starts, model.multiclass)
    if machines:
        first, second = (np.repeat(each, lengths) for each in class_pairs(model.n_class, model.multiclass))
        index, coef = (np.concatenate(each) for each in zip(*((m.index, m.coef) for m in machines), strict=True))
        put_coefficients(table, starts, first, second, index, coef)
    return replace(model, coef=table, rho=np.array([machine.rho for machine in machines]))


def alphas(model: Model) -> Floats:
    """The machines' coefficients, a column a machine, (n_support, machines)."""
    table = np.zeros((model.n_support, len(model.rho)))
    for number, machine in enumerate(model.machines):
        table[machine.index, number] = machine.coef
    return table


def decision_values(model: Model, rows: Rows) -> Floats:
    """f(z) of every machine at every row, (n, number of machines).

    Rows may have more or fewer features than the model. Raises DataError where a precomputed row lacks a kernel value.
    """
    return _decider_on(model, rows)(rows)


def decisions_by_part(model: Model, rows: Rows) -> Iterator[Floats]:
    """``decision_values`` of one part of the rows after another; those of many classes are not all held at once."""
    decide, step = _decider_on(model, rows), max(1, _DECISIONS_HELD // max(1, len(model.rho)))
    return (decide(rows.part(first, min(first + step, rows.n))) for first in range(0, max(rows.n, 1), step))


def _decider_on(model: Model, rows: Rows) -> Callable[[Rows], Floats]:
    """What decides on such rows. Raises DataError as ``decision_values`` does."""
    if model.map is not None:
        return partial(_mapped_decisions, model, model.map)
    if model.kernel.kind == PRECOMPUTED:
        _check_gram(model, rows)
    return _decider(model)


def _decider(model: Model) -> Callable[[Rows], Floats]:
    """``decision_values`` of a model without a map, with all that is the same for any rows made before."""
    kernel, basis, starts = model.kernel, model.rows, model.class_starts
    table, rho = model.coef, model.rho

    def of_few_machines(rows: Rows) -> Floats:
        response: Floats = cross_apply(rows, basis, kernel, table)
        out: Floats = response[:, : len(rho)] - rho
        return out

    def of_pairs(rows: Rows) -> Floats:  # a product a class: kernel values serve all its machines, each weight is used once
        return pair_sums(products_by_group(rows, basis, kernel, starts, table), rho)

    if model.n_class <= 2 or model.multiclass == "ovr":
        return of_few_machines
    if basis.n >= _few_a_class(model.n_class) * model.n_class:
        return of_pairs
    columns, tiles = Columns(basis, kernel), tiles_of(table, starts)
    return lambda rows: of_pairs(rows) if rows.form == "dense" else _of_stored_values(columns, rows, starts, tiles, rho)


def _few_a_class(k: int) -> int:
    """With fewer support vectors a class, in the mean, stored values beat fused ones: measured for 4 to 200 classes."""
    return min(k, max(10, k // 3))


def _of_stored_values(columns: Columns, rows: Rows, starts: Ints, tiles: Floats, rho: Floats) -> Floats:
    """Decision values of pairs of classes of few support vectors each, for which fused products would not pay."""
    out, step = np.empty((rows.n, len(rho))), max(1, _VALUES_HELD // max(1, columns.rows.n))
    for first in range(0, rows.n, step):
        last = min(first + step, rows.n)
        pair_products(columns.block(rows.part(first, last)), starts, tiles, rho, out[first:last])
    return out


def _mapped_decisions(model: Model, feature_map: FeatureMap, rows: Rows) -> Floats:
    """``decision_values`` of a model over mapped features, which are not kept."""
    on_features, step = replace(model, map=None), max(1, _MAPPED_VALUES // feature_map.dim)
    parts = [rows.part(first, min(first + step, rows.n)) for first in range(0, max(rows.n, 1), step)]
    return np.concatenate([decision_values(on_features, dense_rows(feature_map.transform(part))) for part in parts])


def _check_gram(model: Model, rows: Rows) -> None:
    if rows.n and model.rows.n and rows.gram.size == 0:
        raise DataError(
            "Wrong input format: first column must be 0:sample_serial_number",
            "the model has a precomputed kernel: each line must be `label 0:serial 1:K(x,x1) 2:K(x,x2) …`",
        )
    needed, there = int(model.rows.serial.max(initial=0)), rows.gram.shape[1]
    if rows.n and needed > there:
        raise DataError(
            "Wrong input format: sample_serial_number out of range",
            f"the model needs kernel values against training rows up to {needed}, the data has them up to {there}",
        )


def predict(model: Model, decisions: Floats) -> Floats:
    """What the model answers at rows with these decision values, (n,).

    Classification: the label with most votes, or, against the rest, the largest value, ties to the first; regression: the
    value; one-class: 1 inside, −1 outside.
    """
    if model.labels is None:
        value = decisions[:, 0]
        return np.where(value > 0, 1.0, -1.0) if model.svm_type == "one_class" else value.copy()
    return chosen_labels(model.labels, model.multiclass, decisions)


def chosen_labels(labels: Ints, multiclass: str, decisions: Floats) -> Floats:
    """What ``predict`` says for a classification model of these ``labels`` (k,)."""
    if multiclass == "ovr":
        largest: Ints = labels[decisions.argmax(axis=1)]
        return largest.astype(np.float64)
    if len(labels) == 2:  # no need to count
        one, other = labels.astype(np.float64).tolist()
        chosen: Floats = np.where(decisions[:, 0] > 0, one, other)
        return chosen
    winner: Ints = labels[count_votes(decisions, len(labels)).argmax(axis=1)]
    return winner.astype(np.float64)


def answers(model: Model, rows: Rows) -> Floats:
    """``predict(model, decision_values(model, rows))``, (n,), in less time where the sign of one machine is all that is asked.

    Of an rbf machine float32 kernel values settle the sign wherever f is larger than they can be off; float64 settles the rest.
    Decision values of many classes are not all held at once.
    """
    if len(model.rho) > 1:
        return np.concatenate([predict(model, part) for part in decisions_by_part(model, rows)])
    if not _float32_pays(model, rows):
        return predict(model, decision_values(model, rows))
    decisions, error = _float32_decisions(model, rows)
    left_open = np.flatnonzero(~(np.abs(decisions[:, 0]) > error))
    decisions[left_open] = decision_values(model, rows.take(left_open))
    return predict(model, decisions)


def _float32_pays(model: Model, rows: Rows) -> bool:
    """Whether float32 settles most of many signs."""
    if model.kernel.kind != RBF or model.svm_type not in ("c_svc", "nu_svc", "one_class") or len(model.rho) != 1:
        return False
    if rows.n * model.n_support < FLOAT32_FROM_VALUES:
        return False
    narrow, basis = prepared(model.kernel, rows, model.rows)
    if layout_of(narrow, basis, model.kernel, "f8").form == "binary":  # counted in float64 too, and as fast
        return False
    decisions, error = _float32_decisions(model, rows.take(np.arange(0, rows.n, -(-rows.n // _TRIED_ROWS))))
    return bool(np.mean(np.abs(decisions[:, 0]) > error) >= 1 - _MOST_OPEN)


def _float32_decisions(model: Model, rows: Rows) -> tuple[Floats, Floats]:
    """An rbf machine's f from float32 kernel values, (n, 1), and how far it may be off, (n,); nan or infinite if by any amount.

    Let u = 2^−24. Sums of m products of rounded numbers, in any order, are off by (m + 2) u times those of their sizes: of the
    inner product that is of the shorter row's nonzeros, of squared norms of each row's own, m_x and m_z. With the additions
    the exponent −gamma‖x − z‖² is off by at most u gamma ((min(m_x, m_z) + 12)(‖x‖² + ‖z‖²) + m_x‖x‖² + m_z‖z‖²); the
    exponential adds 16 u to the relative error this makes in K, and values below 2^−120 may be 0 or 2^−120. So f is off by
    that share of Σ|coef_j| K_j, sums being in float64.
    """
    coef, rho, kernel = model.coef[:, 0], model.rho[0], model.kernel
    weights = np.stack([coef, np.abs(coef)], axis=1)
    rows, basis = prepared(kernel, rows, model.rows)  # as the products are of them
    own, longest = np.diff(rows.indptr), np.diff(basis.indptr).max(initial=0)
    with np.errstate(all="ignore"):  # what leaves float32's range may be off by any amount
        sums = cross_apply(rows, basis, kernel, weights, "f4", may_differ=False)
        norms, largest = kernel.gamma * rows.sqnorms(), kernel.gamma * basis.sqnorms().max(initial=0.0)
        ulps = (np.minimum(own, longest) + 12) * (norms + largest) + own * norms + longest * largest
        share = np.expm1(2.0**-24 * ulps) + 2.0**-20
        error = 1.01 * share / np.maximum(0.0, 1.0 - share) * sums[:, 1] + 2.0**-120 * np.abs(coef).sum()
    return sums[:, :1] - rho, error
