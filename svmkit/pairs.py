"""From a Dataset and a TrainConfig to binary problems, by LIBSVM's rules: label order, one-vs-one pairs, weights, kernel.

A class pair (i, j), i < j, is one binary problem: class i is +1, j is −1, and the examples of both stand in file order, so
that with two classes nothing is copied. Against the rest, j stands for every class but i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from svmkit.config import KERNELS, MOST_C, SVM_TYPES, TrainConfig
from svmkit.data import Dataset, Floats, Ints, Rows
from svmkit.errors import DataError, UsageError
from svmkit.model import REST
from svmkit.problem import POLYNOMIAL, RBF, SIGMOID, Bias, Kernel, Problem, lam_to_C
from svmkit.solvers import solver as solver_named

#: A sum of as many squares as memory holds is still a double.
LARGEST_VALUE = 1e150

WITHOUT_BIAS = "WARNING: solver {} trains without a bias (rho = 0), and all that is reported is of that problem; see --bias"


class Pair(NamedTuple):
    """One binary machine: the positions of its classes (or REST), and the training row, y = ±1 and C_i of each example."""

    positive: int
    negative: int
    examples: Ints
    y: Floats
    upper: Floats

    def problem(self, dataset: Dataset, config: TrainConfig, kernel: Kernel) -> Problem:
        """What is to be solved, among the examples of ``dataset``."""
        rows = dataset.rows if len(self.examples) == dataset.n else dataset.rows.take(self.examples)
        return Problem(rows, self.y, self.upper, kernel, bias_of(config))


def check_type(config: TrainConfig) -> None:
    """Raises UsageError for an SVM type that is not trained."""
    if config.svm_type != "c_svc":
        raise UsageError(
            f"-s {SVM_TYPES.index(config.svm_type)} ({config.svm_type}): training this type is not available in this version; "
            "models of it can be read and used"
        )


def with_bias(config: TrainConfig, on_warning: Callable[[str], None]) -> TrainConfig:
    """``config`` with the bias stated: where it is left open, the solver's own default. A default other than free is told."""
    if config.bias is not None:
        return config
    bias = solver_named(config.solver).BIASES[0]
    if bias != "free" and not config.constant:
        on_warning(WITHOUT_BIAS.format(config.solver))
    return replace(config, bias=bias)


def bias_of(config: TrainConfig) -> Bias:
    """The config's bias; free where it leaves that open."""
    return "none" if config.bias == "none" else "free"


def kernel_of(config: TrainConfig, n_features: int) -> Kernel:
    """The config's kernel with the numbers that its kind uses; gamma 0 stands for 1/n_features."""
    kernel = Kernel(KERNELS.index(config.kernel))
    if kernel.kind in (POLYNOMIAL, RBF, SIGMOID):
        kernel = kernel._replace(gamma=config.gamma or (1.0 / n_features if n_features else 0.0))
    if kernel.kind in (POLYNOMIAL, SIGMOID):
        kernel = kernel._replace(coef0=config.coef0)
    return kernel._replace(degree=config.degree) if kernel.kind == POLYNOMIAL else kernel


def group_classes(y: Floats, used: Ints) -> tuple[Ints, list[Ints]]:
    """Labels in LIBSVM's order and each one's examples, in file order, among the examples ``used``.

    Labels are cut to integers and stand in order of first appearance, but {−1, +1} is always (+1, −1).
    Raises DataError for a label that is not a number or too large.
    """
    known = y[used]
    bad = np.flatnonzero(~(np.abs(known) < 2**31))
    if len(bad):
        row = int(used[bad[0]])
        raise DataError(f"example {row + 1} has label {y[row]:g}: a class label must be a number below 2^31 in size")
    values, first, code = np.unique(np.trunc(known).astype(np.int64), return_index=True, return_inverse=True)
    order = np.argsort(first)
    if values[order].tolist() == [-1, 1]:
        order = order[::-1]
    return values[order], [used[code == c] for c in order]


def usable_examples(dataset: Dataset) -> Ints:
    """Examples with a weight above zero; those of weight 0 take no part."""
    if dataset.n == 0:
        raise DataError(f"{dataset.source or 'the data'}: no examples to train on")
    bad = np.flatnonzero(~(np.isfinite(dataset.weights) & (dataset.weights >= 0)))
    if len(bad):
        raise DataError(f"example {bad[0] + 1} has weight {dataset.weights[bad[0]]:g}: it must be 0 or more, and finite")
    used = np.flatnonzero(dataset.weights > 0)
    if len(used) == 0:
        raise DataError(f"{dataset.source or 'the data'}: every example has weight 0, none is left to train on")
    return used


def huge_value(rows: Rows) -> tuple[int, str] | None:
    """The first row with a value, or kernel value, whose products leave the range of doubles, and what is wrong with it."""
    values = rows.gram.reshape(-1) if rows.precomputed else rows.data
    if max(values.max(initial=0.0), -values.min(initial=0.0)) <= LARGEST_VALUE:
        return None
    place = int(np.flatnonzero(np.abs(values) > LARGEST_VALUE)[0])
    if rows.precomputed:
        row, column = divmod(place, rows.gram.shape[1])
        index = column + 1
    else:
        row, index = int(np.searchsorted(rows.indptr, place, side="right")) - 1, int(rows.indices[place])
    size = f"values above {LARGEST_VALUE:g} in size cannot be multiplied; scale the data"
    return row, f"{values[place]:g} for feature {index}: {size}"


def refuse_huge_values(dataset: Dataset) -> None:
    """Raises DataError where there is a ``huge_value``."""
    found = huge_value(dataset.rows)
    if found is not None:
        raise DataError(f"{dataset.source or 'the data'}: example {found[0] + 1} has {found[1]}")


def label_factors(config: TrainConfig, labels: Ints, on_warning: Callable[[str], None]) -> Floats:
    """What C is multiplied by for each class."""
    factors = np.ones(len(labels))
    with np.errstate(over="ignore"):  # costs() says what is too large
        for label, factor in config.class_weight:
            if label not in labels:
                on_warning(f"WARNING: class label {label} specified in weight is not found")
            factors[labels == label] *= factor
    return factors


#: A C_i is at least this, so that its square and ratios of two are doubles.
_LEAST_COST = 1e-150


def costs(C: float, weights: Floats) -> Floats:
    """C_i, C times the weight of each example and its class. Raises DataError where a square or a ratio of two is no double."""
    with np.errstate(over="ignore"):
        upper: Floats = C * weights
    if not (upper <= MOST_C).all():
        raise DataError(
            f"C {C:g}, or 1/(λ n), times an example's weights (-w, cost:) is above {MOST_C:g}: its square has to be a double"
        )
    if not ((upper >= _LEAST_COST) | (weights == 0)).all():
        raise DataError(
            f"C {C:g}, or 1/(λ n), times an example's weights (-w, cost:) is below {_LEAST_COST:g}: its square has to be "
            "a double; a weight of 0 leaves an example out"
        )
    return upper


def pair_of(dataset: Dataset, config: TrainConfig, members: list[Ints], factors: Floats, i: int, j: int) -> Pair:
    """The machine of classes i and j (or REST); ``members`` and ``factors`` are each class's examples and weight."""
    negative = [c for c in range(len(members)) if c != i] if j == REST else [j]
    classes = [members[c] for c in (i, *negative)]
    together = np.concatenate(classes)
    order = np.argsort(together, kind="stable")
    index = together[order]
    y = np.where(order < len(members[i]), 1.0, -1.0)
    factor = np.repeat([factors[c] for c in (i, *negative)], [len(group) for group in classes])[order]
    C = config.C if config.lam is None else lam_to_C(config.lam, len(index))
    with np.errstate(over="ignore"):
        weights = factor * dataset.weights[index]
    return Pair(i, j, index, y, costs(C, weights))
