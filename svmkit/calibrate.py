"""From decision values to probabilities, for models that carry what that takes.

Classification: Platt's sigmoid gives each class pair r_ij = P(i | i or j); pairwise coupling makes class probabilities of them
(Wu, Lin & Weng, JMLR 5 (2004) 975–1005, second method):

    min over p   Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)²    s.t.  Σ p_i = 1

Regression: the error of a prediction is Laplace distributed with the stored width. One-class: ten stored marks cut the decision
values of the training data into tenths.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from svmkit.data import Floats, Ints
from svmkit.engine.coupling import couple_pairs
from svmkit.errors import ModelError
from svmkit.model import Model, predict

COUPLING_LIMIT = "Exceeds max_iter in multiclass_prob"

#: Pair probabilities stay this far from 0 and 1.
_MARGIN = 1e-7


def supports_probability(model: Model) -> bool:
    """Whether the model carries what probabilities take."""
    if model.labels is not None:
        return model.prob_a is not None and model.prob_b is not None
    return (model.density_marks if model.svm_type == "one_class" else model.prob_a) is not None


def probabilities(model: Model, decisions: Floats, on_warning: Callable[[str], None] = lambda text: None) -> Floats:
    """Class probabilities (n, k) in the order of ``model.labels``; (n, 2) of inside and outside for a one-class model.

    ``on_warning`` gets one line for every row whose coupling did not settle. Raises ModelError if the model has none to give.
    """
    if not supports_probability(model) or model.is_regression:
        raise ModelError("Model does not support probability estimates: train it with -b 1")
    if model.density_marks is not None and model.labels is None:
        inside = one_class_probability(decisions[:, 0], model.density_marks)
        return np.stack([inside, 1.0 - inside], axis=1)
    assert model.prob_a is not None
    assert model.prob_b is not None
    won = sigmoid(decisions, model.prob_a, model.prob_b)
    won = np.where(won > _MARGIN, np.minimum(won, 1.0 - _MARGIN), _MARGIN)  # of nan too, as LIBSVM's min and max leave it
    if model.n_class == 2:
        return np.concatenate([won, 1.0 - won], axis=1)
    coupled, unsettled = couple(won, model.n_class)
    for _ in unsettled:
        on_warning(COUPLING_LIMIT)
    return coupled


def most_probable(model: Model, decisions: Floats, chances: Floats) -> Floats:
    """The label of the largest probability, (n,); it may differ from the votes' label. One-class: what ``predict`` says."""
    if model.labels is None:
        return predict(model, decisions)
    winner = model.labels[chances.argmax(axis=1)]
    return np.asarray(winner, dtype=np.float64)


def laplace_width(model: Model) -> float:
    """σ of a regression model: target = prediction + z, z with density e^(−|z|/σ)/(2σ). Raises ModelError if it has none."""
    if model.prob_a is None:
        raise ModelError("Model does not support probability estimates: train it with -b 1")
    return float(model.prob_a[0])


def sigmoid(decisions: Floats, a: Floats, b: Floats) -> Floats:
    """1/(1 + exp(a f + b)), without overflow."""
    t = decisions * a + b
    small = np.exp(-np.abs(t))
    out: Floats = np.where(t >= 0, small, 1.0) / (1.0 + small)
    return out


def couple(won: Floats, k: int) -> tuple[Floats, Ints]:
    """Class probabilities (n, k) from r_ij of the pairs i < j, (n, pairs), and the rows that did not settle in time.

    A row is done when the components of Qp agree within 0.005/k.
    """
    rounds = _rounds(k)
    p, taken = couple_pairs(won, k, rounds)
    return p, np.flatnonzero(taken == rounds)


def _rounds(k: int) -> int:
    """How many rounds a row may take; LIBSVM's."""
    return max(100, k)


def one_class_probability(decisions: Floats, marks: Floats) -> Floats:
    """The chance of lying inside (n,): i/10 between marks i and i + 1, 0.001 below the first and 0.999 from the last on."""
    tenths = np.searchsorted(marks, decisions, side="right") / 10.0
    return np.clip(tenths, 0.001, 0.999)
