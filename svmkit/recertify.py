"""The certificate of a model file: its support vectors are found again in the training data, and the problem is stated anew.

A LIBSVM model says neither which examples its support vectors are nor what C was, so the data are matched row by row, and C
and the class weights come from the config. Some builds of svm-train round C_i to single precision: for the violation an α of
that is at its bound. Where it has cut values to 8 digits, f and ‖w‖² are those of the rows as they stand in the model, the
dual point is over the examples they were. A linear machine may be w alone, and a model may stand on vectors of its own
(landmarks, a smaller basis): then α is lost, and the certificate's own guess takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from svmkit.certificate import Certificate, certify
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Ints
from svmkit.errors import DataError, ModelError
from svmkit.matching import Found, find_rows, foreign_rows, weight_rows
from svmkit.model import Model
from svmkit.pairs import group_classes, label_factors, pair_of, usable_examples
from svmkit.problem import Solution, of_other_rows

#: By such a share of it at most C_i is moved where C and a weight are each rounded to single precision.
_SINGLE = 2.0**-23
#: Coefficients of examples add up to 0 where the bias is free, but for such a share of their sizes, which rounding may leave.
_BALANCED = 1e-6


def certificates(
    model: Model, dataset: Dataset, config: TrainConfig, on_warning: Callable[[str], None] = lambda text: None
) -> list[Certificate]:
    """One certificate a machine: ``model`` as an answer to the problem of ``dataset`` and ``config`` (C, weights, bias).

    Raises ModelError for a model that is no C-SVC, or has a threshold where the config has none, and DataError where
    ``dataset`` is not what the model was trained on.
    """
    if model.svm_type != "c_svc" or model.labels is None:
        raise ModelError(f"--certificate: only c_svc models have one in this version, this one is {model.svm_type}")
    if model.map is not None:
        raise ModelError("--certificate: a model over a feature map has its certificate from its training (train --json)")
    if config.bias == "none" and model.rho.any():
        raise ModelError("--bias none: the model has a threshold (rho is not 0)")
    members = _members(model, dataset)
    factors = label_factors(config, model.labels, on_warning)
    where = _find(model, dataset, members, on_warning)
    out = []
    for (i, j), machine in zip(model.pairs, model.machines, strict=True):
        pair = pair_of(dataset, config, members, factors, i, j)
        problem = pair.problem(dataset, config, model.kernel)
        position = np.full(dataset.n + 1, -1, dtype=np.int64)
        position[pair.examples] = np.arange(problem.n)
        origin, exact = position[where.place[machine.index]], bool(where.exact[machine.index].all())
        solution, known = Solution(origin, machine.coef, machine.rho), bool((origin >= 0).all())
        alpha = problem.y * solution.expansion(problem.rows)[1] if known else None
        if not exact:  # not each row is to the last bit the example it names, or one names none
            solution = of_other_rows(model.rows.take(machine.index), machine.coef, machine.rho, alpha)
        found = certify(problem, solution)
        met = problem.upper if alpha is None else _bounds_met(problem.upper, alpha)
        if (met != problem.upper).any():
            found = replace(found, violation=certify(replace(problem, upper=met), solution).violation)
        out.append(found)
    return out


def _bounds_met(upper: Floats, alpha: Floats) -> Floats:
    """``upper``, but α itself where that is C_i as it was rounded: by a hair below it, it would count as free."""
    return np.where(np.abs(alpha - upper) <= _SINGLE * upper, alpha, upper)


def _members(model: Model, dataset: Dataset) -> list[Ints]:
    """The examples of each of the model's classes."""
    assert model.labels is not None
    labels, members = group_classes(dataset.y, usable_examples(dataset), dataset.name)
    by_label = dict(zip(labels.tolist(), members, strict=True))
    if set(by_label) != set(model.labels.tolist()):
        raise DataError(
            f"--certificate: the classes of {dataset.name} are not those of this model",
            f"its labels are {_listed(sorted(by_label))}, the model's {_listed(sorted(model.labels.tolist()))}",
        )
    return [by_label[label] for label in model.labels.tolist()]


def _listed(labels: list[int]) -> str:
    return ", ".join(map(str, labels[:10])) + (" …" if len(labels) > 10 else "")


def _find(model: Model, dataset: Dataset, members: list[Ints], on_warning: Callable[[str], None]) -> Found:
    """The example that each row of the model is; −1 for one that is w of a linear machine, or of a basis."""
    where, alone = find_rows(model, dataset, members), weight_rows(model)
    lost = [r for r in np.flatnonzero(where.place < 0).tolist() if r not in alone]
    if not lost or foreign_rows(model).any():
        return where
    if (where.place < 0).all() and _is_unbalanced(model):
        on_warning(
            "none of the model's support vectors is an example of the data: unless it is one of approx --model or --map "
            "nystroem, these are not its training data, and the certificate says nothing of its training"
        )
        return where
    raise DataError(
        f"--certificate: support vector {lost[0] + 1} of the model is no example of the data",
        "give the very training set; or is it a model on vectors of its own (approx --model, --map nystroem)? Nothing tells "
        "its coefficients from those of examples: take more vectors (--basis, --dim)",
    )


def _is_unbalanced(model: Model) -> bool:
    """Whether a machine with a threshold has coefficients that do not add up to 0, as sbp and pegasos alone give examples."""
    return any(
        machine.rho != 0 and abs(machine.coef.sum()) > _BALANCED * np.abs(machine.coef).sum() for machine in model.machines
    )
