"""From a Dataset and a TrainConfig to binary problems, by LIBSVM's rules: label order, one-vs-one pairs, weights, kernel.

A class pair (i, j), i < j, is one binary problem: class i is +1, j is −1, and the examples of both stand in file order, so
that with two classes nothing is copied. Against the rest, j stands for every class but i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from svmkit._jit import compiled
from svmkit.config import KERNEL_NUMBERS, KERNELS, MOST_C, SVM_TYPES, TrainConfig
from svmkit.data import Dataset, Floats, Ints, Rows
from svmkit.errors import DataError, UsageError
from svmkit.model import REST
from svmkit.problem import Bias, Kernel, Problem, lam_to_C
from svmkit.solvers import solver as solver_named
from svmkit.solvers.base import Several

#: A sum of as many squares as memory holds is still a double.
LARGEST_VALUE = 1e150
#: A C_i is at least this, so that its square and ratios of two are doubles.
_LEAST_COST = 1e-150

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


def with_multiclass(config: TrainConfig, n_class: int) -> TrainConfig:
    """``config`` for so many classes: up to two are one pair, whatever it says of more."""
    return config if n_class > 2 or config.multiclass == "ovo" else replace(config, multiclass="ovo")


def bias_of(config: TrainConfig) -> Bias:
    """The config's bias; free where it leaves that open."""
    return "none" if config.bias == "none" else "free"


def kernel_of(config: TrainConfig, n_features: int) -> Kernel:
    """The config's kernel with the numbers that its kind uses; gamma 0 stands for 1/n_features."""
    numbers: dict[str, Any] = {name: getattr(config, name) for name in KERNEL_NUMBERS[config.kernel]}
    if "gamma" in numbers:
        numbers["gamma"] = config.gamma or (1.0 / n_features if n_features else 0.0)
    return Kernel(KERNELS.index(config.kernel), **numbers)


def group_classes(y: Floats, used: Ints, name: str = "the data") -> tuple[Ints, list[Ints]]:
    """Labels in LIBSVM's order and each one's examples, in file order, among the examples ``used``.

    Labels are cut to integers and stand in order of first appearance, but {−1, +1} is always (+1, −1).
    Raises DataError, with the ``name`` of the data, for a label that is not a number or too large.
    """
    known = y[used]
    bad = np.flatnonzero(~((known > -(2**31) - 1) & (known < 2**31)))
    if len(bad):
        row = int(used[bad[0]])
        what = f"example {row + 1} has label {y[row]:.17g}: a class label must be a number below 2^31 in size"
        raise DataError(f"{name}: {what}")
    values, first, code = np.unique(np.trunc(known).astype(np.int64), return_index=True, return_inverse=True)
    order = np.argsort(first)
    if values[order].tolist() == [-1, 1]:
        order = order[::-1]
    return values[order], [used[code == c] for c in order]


def usable_examples(dataset: Dataset) -> Ints:
    """Examples with a weight above zero; those of weight 0 take no part.

    Raises DataError for a weight that is negative or not finite, and where there is no such example.
    """
    if dataset.n == 0:
        raise DataError(f"{dataset.name}: no examples to train on")
    bad = np.flatnonzero(~(np.isfinite(dataset.weights) & (dataset.weights >= 0)))
    if len(bad):
        what = f"example {bad[0] + 1} has weight {dataset.weights[bad[0]]:g}: it must be 0 or more, and finite"
        raise DataError(f"{dataset.name}: {what}")
    used = np.flatnonzero(dataset.weights > 0)
    if len(used) == 0:
        raise DataError(f"{dataset.name}: every example has weight 0, none is left to train on")
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
        raise DataError(f"{dataset.name}: example {found[0] + 1} has {found[1]}")


def label_factors(config: TrainConfig, labels: Ints | Floats, on_warning: Callable[[str], None]) -> Floats:
    """What C is multiplied by for each class."""
    factors = np.ones(len(labels))
    with np.errstate(over="ignore"):  # costs() says what is too large
        for label, factor in config.class_weight:
            if label not in labels:
                on_warning(f"WARNING: class label {label} specified in weight is not found")
            factors[labels == label] *= factor
    return factors


def costs(C: float | Floats, weights: Floats) -> Floats:
    """C_i, C times the weight of each example that takes part and of its class.

    Raises DataError where a square or a ratio of two is no double.
    """
    with np.errstate(over="ignore"):
        upper: Floats = C * weights
    if (upper <= MOST_C).all() and (upper >= _LEAST_COST).all():
        return upper
    above = ~(upper <= MOST_C)
    bad = above if above.any() else ~(upper >= _LEAST_COST)
    what = f"C {np.broadcast_to(C, upper.shape)[bad][0]:g}, or 1/(λ n), times an example's weights (-w, cost:) is"
    if above.any():
        raise DataError(f"{what} above {MOST_C:g}: its square has to be a double")
    raise DataError(f"{what} below {_LEAST_COST:g}: its square has to be a double; a weight of 0 leaves an example out")


def pair_of(dataset: Dataset, config: TrainConfig, members: list[Ints], factors: Floats, i: int, j: int) -> Pair:
    """The machine of classes i and j (or REST); ``members`` and ``factors`` are each class's examples and weight."""
    return pair_among(pairs_of(dataset.weights, config, members, factors, np.array([[i], [j]])), 0)


def pair_among(several: Several, number: int) -> Pair:
    """One machine of several, sharing their arrays."""
    here = slice(several.starts[number], several.starts[number + 1])
    classes = int(several.positive[number]), int(several.negative[number])
    return Pair(*classes, several.examples[here], several.y[here], several.upper[here])


def pairs_of(weights: Floats, config: TrainConfig, members: list[Ints], factors: Floats, pairs: Ints) -> Several:
    """The machines of classes ``pairs`` (2, m), as ``pair_of`` has them; ``weights`` are those of all examples."""
    positive, negative = pairs
    named = np.concatenate([positive, negative[negative != REST]])
    classes, _ = np.unique(named, return_counts=True)  # plain np.unique would import numpy.ma, 6 ms
    groups = [members[c] for c in classes.tolist()] + _rests(members, positive[negative == REST])
    lengths = np.array([len(group) for group in groups])
    first, second = np.searchsorted(classes, positive), np.searchsorted(classes, negative)
    second[negative == REST] = len(classes) + np.arange(np.count_nonzero(negative == REST))
    sizes = lengths[first] + lengths[second]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    examples, y = np.empty(starts[-1], np.int64), np.empty(starts[-1])
    ends = np.cumsum(lengths)
    _merge(np.concatenate(groups), ends - lengths, ends, first, second, starts, examples, y)
    C: float | Floats = config.C
    if config.lam is not None:
        C = np.repeat([lam_to_C(config.lam, size) for size in sizes.tolist()], sizes)
    return Several(positive, negative, starts, examples, y, costs(C, _weights(weights, members, factors, examples)))


@np.errstate(over="ignore")  # costs() says what is too large
def _weights(weights: Floats, members: list[Ints], factors: Floats, examples: Ints) -> Floats:
    """Each example's own weight times its class's."""
    own: Floats = weights[examples]
    if (factors == factors[0]).all():  # then nothing need be looked up
        own = factors[0] * own
        return own
    of_example = np.ones(len(weights))
    of_example[np.concatenate(members)] = np.repeat(factors, [len(group) for group in members])
    own = of_example[examples] * own
    return own


def _rests(members: list[Ints], against: Ints) -> list[Ints]:
    """The examples of all classes but one, in file order, for each of the classes ``against`` the rest."""
    return [np.sort(np.concatenate([group for c, group in enumerate(members) if c != own])) for own in against.tolist()]


@compiled("void(i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], f8[:])")
def _merge(
    groups: Any, begins: Any, ends: Any, first: Any, second: Any, starts: Any, examples: Any, y: Any
) -> None:  # fmt: skip
    """Of each machine the examples of two groups, each in file order, in file order."""
    for machine in range(len(first)):
        k, k_end = begins[first[machine]], ends[first[machine]]
        m, m_end = begins[second[machine]], ends[second[machine]]
        for place in range(starts[machine], starts[machine + 1]):
            if m == m_end or (k < k_end and groups[k] < groups[m]):
                examples[place], y[place] = groups[k], 1.0
                k += 1
            else:
                examples[place], y[place] = groups[m], -1.0
                m += 1
