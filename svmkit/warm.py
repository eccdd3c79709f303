"""Going on from a trained model: its support vectors among the new data, or added to them, and its coefficients as first α.

A model remembers no example that is not a support vector. With all the old data among the new ones nothing is lost: an exact
solver ends at their joint optimum, only sooner. Without them it ends at the optimum of the new data and the old support
vectors; that is the joint one exactly if the old data's other examples stay outside the margin. A support vector equal to a new
example, label included, is taken to be that example; but on a stream, whose examples are not there yet, it stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from svmkit import solvers
from svmkit.certificate import feasible
from svmkit.data import Dataset, Floats, Ints, label_places, stack
from svmkit.errors import ModelError, UsageError
from svmkit.matching import find_rows, foreign_rows, weight_rows
from svmkit.model import REST, Machine, Model
from svmkit.pairs import group_classes, usable_examples
from svmkit.problem import PRECOMPUTED, Bias, Kernel, Problem

_NO_EXAMPLES = "--init: the model is a weight vector alone: the examples that made it are not in it"
_NO_START = "(models of --map or of few basis vectors are no start)"


@dataclass(frozen=True)
class Warm:
    """``dataset`` is the new data and, below them, ``n_added`` support vectors of ``model``; ``place`` (n_support,) says which
    of its rows each support vector is.
    """

    model: Model
    dataset: Dataset
    place: Ints
    n_added: int

    @cached_property
    def machines(self) -> dict[tuple[int | None, ...], Machine]:
        """The model's, as ``_by_labels``."""
        return _by_labels(self.model)


def check_solver(name: str, on_a_stream: bool) -> None:
    """Raises UsageError where the solver called ``name`` cannot go on from a model."""
    wanted, begins = ("resume", "begins a stream anew") if on_a_stream else ("WARM", "begins anew")
    solvers.solver_with(wanted, name, f"{begins} each time, whatever --init says; those that go on from a model")


def join(dataset: Dataset, model: Model) -> Warm:
    """The data with those of the model's support vectors added that are not among them, each with its class's label, weight 1.

    Raises ModelError for a model that is no classifier or holds no examples to go on from, and for rows of a kernel matrix.
    """
    check_model(model)
    if dataset.rows.precomputed:
        raise ModelError("--init: the data are rows of a kernel matrix (-t 4): no support vector can be added to them")
    assert model.labels is not None
    labels, members = group_classes(dataset.y, usable_examples(dataset), dataset.name)
    by_label = dict(zip(labels.tolist(), members, strict=True))
    nobody = np.empty(0, dtype=np.int64)
    place = find_rows(model, dataset, [by_label.get(x, nobody) for x in model.labels.tolist()]).place
    added = np.flatnonzero(place < 0)
    _check_added(model, added)
    place[added] = dataset.n + np.arange(len(added))
    if len(added) == 0:
        return Warm(model, dataset, place, 0)
    y = np.repeat(model.labels, np.diff(model.class_starts))[added].astype(np.float64)
    joined = Dataset(
        rows=stack([dataset.rows, model.rows.take(added)]),
        y=np.concatenate([dataset.y, y]),
        weight=None if dataset.weight is None else np.concatenate([dataset.weight, np.ones(len(added))]),
        source=dataset.source,
    )
    return Warm(model, joined, place, len(added))


def check_model(model: Model) -> None:
    """Raises ModelError for one that is no classifier, or holds no examples for a reason that its kind alone tells."""
    if model.svm_type not in ("c_svc", "nu_svc"):
        raise ModelError(f"--init: training goes on from a classifier, this model is {model.svm_type}")
    if model.map is not None:
        raise ModelError("--init: the model is a weight vector over a feature map: the examples that made it are not in it")
    if model.kernel.kind == PRECOMPUTED:
        raise ModelError("--init: the model has a precomputed kernel: it holds numbers of examples, not the examples")


def _check_added(model: Model, added: Ints) -> None:
    """Raises ModelError where a row that would be added is no example, or may be none: the w of a linear machine, or one that
    speaks for another class than its own, so that its label is not known.
    """
    if not weight_rows(model).isdisjoint(added.tolist()):
        raise ModelError(_NO_EXAMPLES)
    if foreign_rows(model)[added].any():
        raise ModelError(
            "--init: not all rows of the model are examples: some are not among the data and have the sign of another class "
            + _NO_START
        )


def first_alpha(warm: Warm, labels: Ints, i: int, j: int, examples: Ints, problem: Problem) -> Floats:
    """The α (n,) of the machine of classes ``labels[i]`` and ``labels[j]`` (or REST) that the model stands for.

    Feasible: cut to the box and, where the bias is free, the heavier class scaled down until yᵀα = 0. All 0 where the model
    has no such machine. ``examples`` are the rows of the joined data in ``problem``. Raises UsageError where the model tells
    more than two classes apart in the other way.
    """
    index, coef = _expansion(warm.model, warm.machines, labels, i, j)
    beta = np.zeros(warm.dataset.n)
    beta[warm.place[index]] = coef
    return feasible(problem, problem.y * beta[examples])


def starts_of_stream(
    model: Model, labels: Ints, pairs: list[tuple[int, int]], C: Floats, kernel: Kernel, bias: Bias
) -> Iterator[Problem]:
    """What each machine of a stream, of classes ``labels[i]`` and ``labels[j]`` (or REST), goes on from: the support vectors of
    the model's own with a feasible α as ``start``, none where it has no such machine; ``C`` (k,) is that of each class, and
    where a row's class is not known, the smallest that holds its α, so that an optimum stays one.

    Raises ModelError for a model that ``check_model`` lets pass and that holds no examples all the same, UsageError for labels
    that lack some of its own or as ``first_alpha``.
    """
    assert model.labels is not None
    if len(left := np.setdiff1d(model.labels, labels)):
        raise UsageError(f"--labels: the model of --init knows {', '.join(map(str, left))} too; name all of its labels")
    if weight_rows(model):
        raise ModelError(_NO_EXAMPLES)
    against_rest = model.multiclass == "ovr"
    if ((model.coef > 0).sum(axis=1) > 1 if against_rest else foreign_rows(model)).any():
        raise ModelError("--init: not all rows of the model are examples: some have the signs of several classes " + _NO_START)
    machines, costs = _by_labels(model), C[label_places(model.labels, labels)]
    own_C, ascending = np.repeat(costs, np.diff(model.class_starts)), np.sort(costs)
    lost = np.zeros(model.n_support, dtype=bool)
    if against_rest:  # the first class has those too whose class a stream did not know; a row may be of several that are equal
        lost[: model.class_starts[1]] = ~(model.coef[: model.class_starts[1]] > 0).any(axis=1)
    for i, j in pairs:
        index, coef = _expansion(model, machines, labels, i, j)
        held_by = ascending[np.minimum(np.searchsorted(ascending, np.abs(coef)), len(ascending) - 1)]
        upper = np.where(lost[index], held_by, own_C[index])
        problem = Problem(model.rows.take(index), np.sign(coef), upper, kernel, bias)
        yield replace(problem, start=feasible(problem, np.abs(coef)))


def _by_labels(model: Model) -> dict[tuple[int | None, ...], Machine]:
    """The model's machines, each by the labels that it tells apart, positive first; None stands for the rest."""
    labels = model.labels
    assert labels is not None
    own = ((int(labels[a]), None if b == REST else int(labels[b])) for a, b in model.pairs)
    return dict(zip(own, model.machines, strict=True))


def _expansion(
    model: Model, machines: dict[tuple[int | None, ...], Machine], labels: Ints, i: int, j: int
) -> tuple[Ints, Floats]:
    """Rows of the model and their coefficients in its machine of these classes, either way round; none where it has none."""
    if (j == REST) != (model.multiclass == "ovr") and len(labels) > 2 and model.n_class > 2:
        raise UsageError(f"--init: the model has machines of the kind --multiclass {model.multiclass}; train with that")
    wanted = int(labels[i]), None if j == REST else int(labels[j])
    for classes, sign in ((wanted, 1.0), (wanted[::-1], -1.0)):
        if (machine := machines.get(classes)) is not None:
            return machine.index, sign * machine.coef
    return np.empty(0, np.int64), np.empty(0)
