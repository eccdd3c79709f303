"""How good predictions are: arrays in, floats out. A figure that the data do not define is nan."""

from __future__ import annotations

from math import nan

import numpy as np

from svmkit.data import Bools, Floats, Ints, label_places


def accuracy(truth: Floats, predicted: Floats) -> float:
    """Share of examples (n,) predicted right."""
    return float(np.mean(truth == predicted)) if len(truth) else nan


def error(truth: Floats, predicted: Floats) -> float:
    """Share of examples (n,) predicted wrong."""
    return float(np.mean(truth != predicted)) if len(truth) else nan


def confusion(truth: Floats, predicted: Floats, labels: Ints | Floats) -> Ints:
    """Counts (k + 1, k): row the true class, column the predicted one, as ``labels`` lists them; the last row is of true labels
    that are not among them, but for unknown ones (nan), which are left out.
    """
    k = len(labels)
    table = np.zeros((k + 1, k), dtype=np.int64)
    known = ~np.isnan(truth)
    np.add.at(table, (label_places(truth[known], labels), label_places(predicted[known], labels)), 1)  # −1: the last row
    return table


def auc(positive: Bools, decisions: Floats) -> float:
    """Chance that a positive example's decision value is above a negative one's, ties counting half; nan without both."""
    return float(_aucs(np.zeros(len(positive), dtype=np.int64), positive, decisions, 1)[0])


def own_decisions(truth: Floats, labels: Ints, decisions: Floats) -> Floats:
    """What the machines of each example's class say of it, (n, k): column j is of the machine that tells it from class j.

    ``decisions`` (n, pairs) stand in the model's order (0,1), (0,2) … (1,2) … Where there is no such machine the value is any.
    """
    k = len(labels)
    if k == 1:
        return np.zeros((len(truth), 1))
    column = np.zeros((k, k), dtype=np.int64)
    column[np.triu_indices(k, 1)] = np.arange(k * (k - 1) // 2)
    own: Floats = np.take_along_axis(decisions, (column + column.T)[label_places(truth, labels)], axis=1)
    return own


def pairwise_auc(truth: Floats, labels: Ints, own: Floats) -> float:
    """Mean over the class pairs of the AUC of each pair's machine on the examples of its two classes, from ``own_decisions``.

    With two classes this is the AUC. nan if some pair lacks a class.
    """
    k, place, total = len(labels), label_places(truth, labels), 0.0
    for i in range(k - 1):  # the pairs of i and each later class
        first, later = np.flatnonzero(place == i), np.flatnonzero(place > i)
        values = np.concatenate([own[first, i + 1 :].ravel(), own[later, i]])
        pairs = np.concatenate([np.tile(np.arange(i + 1, k), len(first)), place[later]]) - (i + 1)
        positive = np.arange(len(values)) < len(values) - len(later)
        total += float(_aucs(pairs, positive, values, k - 1 - i).sum())
    return total / (k * (k - 1) // 2) if k > 1 else nan


def _aucs(group: Ints, positive: Bools, values: Floats, n_groups: int) -> Floats:
    """``auc`` of each group of examples, (n_groups,), from the ranks of the positive ones; nan of one with a nan."""
    order = np.lexsort((values, group))
    group, positive, values = group[order], positive[order], values[order]
    sizes, n_positive = (np.bincount(each, minlength=n_groups) for each in (group, group[positive]))
    tied = (group[1:] == group[:-1]) & (values[1:] == values[:-1])
    place = np.cumsum(np.concatenate([[True], ~tied])[: len(order)]) - 1
    counts = np.bincount(place)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2.0
    ranks = mean_ranks[place] - (np.cumsum(sizes) - sizes)[group]
    sums = np.bincount(group[positive], ranks[positive], n_groups)
    with np.errstate(invalid="ignore"):  # 0/0 where a group has but one class
        above: Floats = (sums - n_positive * (n_positive + 1) / 2.0) / (n_positive * (sizes - n_positive))
    above[group[np.isnan(values)]] = nan
    return above


def rest_auc(truth: Floats, labels: Ints, decisions: Floats) -> float:
    """Mean over the classes of the AUC of its machine against all others; ``decisions`` (n, k). nan if one is missing."""
    return float(np.mean([auc(truth == label, decisions[:, column]) for column, label in enumerate(labels)]))


def mean_squared_error(truth: Floats, predicted: Floats) -> float:
    """Mean of (truth − predicted)²."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.mean((truth - predicted) ** 2)) if len(truth) else nan


def squared_correlation(truth: Floats, predicted: Floats) -> float:
    """Squared correlation coefficient; nan if either side is constant, or too large for differences."""
    if len(truth) == 0 or (truth == truth[0]).all() or (predicted == predicted[0]).all():
        return nan
    with np.errstate(over="ignore", invalid="ignore"):
        p, t = _without_mean(predicted), _without_mean(truth)
        return float(np.minimum(1.0, (p @ t) ** 2 / ((p @ p) * (t @ t))))


def _without_mean(values: Floats) -> Floats:
    """``values`` less their mean, divided by the largest of these, so that squares stay in range."""
    rest = values - values.mean()
    return np.asarray(rest / np.abs(rest).max())
