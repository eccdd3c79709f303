"""How good predictions are: arrays in, floats out. A figure that the data do not define is nan."""

from __future__ import annotations

from math import nan

import numpy as np

from svmkit.data import Bools, Floats, Ints


def accuracy(truth: Floats, predicted: Floats) -> float:
    """Share of examples (n,) predicted right."""
    return float(np.mean(truth == predicted)) if len(truth) else nan


def error(truth: Floats, predicted: Floats) -> float:
    """Share of examples (n,) predicted wrong."""
    return float(np.mean(truth != predicted)) if len(truth) else nan


def class_order(truth: Floats, labels: Ints | None) -> Floats:
    """The model's labels in their order, then those that only the data have, ascending; unknown ones (nan) left out."""
    known = np.empty(0) if labels is None else labels.astype(np.float64)
    found = np.unique(truth[~np.isnan(truth)])
    return np.concatenate([known, found[~np.isin(found, known)]])


def confusion(truth: Floats, predicted: Floats, order: Floats) -> Ints:
    """Counts (k, k): row the true class, column the predicted one, as ``order`` lists them; other labels are not counted."""
    table = np.zeros((len(order), len(order)), dtype=np.int64)
    sorter = np.argsort(order)
    known = np.isin(truth, order) & np.isin(predicted, order)
    row, column = (sorter[np.searchsorted(order, labels[known], sorter=sorter)] for labels in (truth, predicted))
    np.add.at(table, (row, column), 1)
    return table


def auc(positive: Bools, decisions: Floats) -> float:
    """Chance that a positive example's decision value is above a negative one's, ties counting half; nan without both."""
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    if n_positive == 0 or n_negative == 0:
        return nan
    _, place, counts = np.unique(decisions, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = ends - (counts - 1) / 2.0  # a tie's mean rank
    return float((ranks[place][positive].sum() - n_positive * (n_positive + 1) / 2.0) / (n_positive * n_negative))


def pairwise_auc(truth: Floats, labels: Ints, decisions: Floats) -> float:
    """Mean over the class pairs of the AUC of each pair's machine on the examples of its two classes.

    ``decisions`` (n, pairs) stand in the model's order (0,1), (0,2) … (1,2) …; with two classes this is the AUC. nan if some
    pair lacks a class.
    """
    pairs = [(i, j) for i in range(len(labels)) for j in range(i + 1, len(labels))]
    values = []
    for column, (i, j) in enumerate(pairs):
        of_pair = (truth == labels[i]) | (truth == labels[j])
        values.append(auc(truth[of_pair] == labels[i], decisions[of_pair, column]))
    return float(np.mean(values)) if values else nan


def rest_auc(truth: Floats, labels: Ints, decisions: Floats) -> float:
    """Mean over the classes of the AUC of its machine against all others; ``decisions`` (n, k). nan if one is missing."""
    return float(np.mean([auc(truth == label, decisions[:, column]) for column, label in enumerate(labels)]))


def mean_squared_error(truth: Floats, predicted: Floats) -> float:
    """Mean of (truth − predicted)²."""
    return float(np.mean((truth - predicted) ** 2)) if len(truth) else nan


def squared_correlation(truth: Floats, predicted: Floats) -> float:
    """Squared correlation coefficient, from raw sums as LIBSVM forms it; nan if either side is constant."""
    n, p, t = float(len(truth)), predicted, truth
    cross = n * float(p @ t) - float(p.sum()) * float(t.sum())
    spread = (n * float(p @ p) - float(p.sum()) ** 2) * (n * float(t @ t) - float(t.sum()) ** 2)
    return cross * cross / spread if spread else nan
