"""Training on a feature map: the data mapped once, the machines linear ones, their model one of the data's own features.

A Nyström map's machines are pulled back: expansions over its landmarks, an ordinary LIBSVM model. In LIBSVM's layout a machine
of classes i and j has coefficients at rows of class i and of class j alone; with more than two classes the landmarks therefore
stand once for every class but the last, each time for the machines whose first class that is. A Fourier model keeps its map.
A constant feature beside the mapped ones becomes a threshold: rho = −constant · its weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from svmkit import maps
from svmkit.assembly import assemble
from svmkit.certificate import certify
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Ints, Rows, dense_rows, stack
from svmkit.engine.linear import fold
from svmkit.errors import UsageError
from svmkit.maps.nystroem import NystroemMap
from svmkit.model import Machine, Model, class_pairs, with_machines
from svmkit.problem import LINEAR, Kernel, Problem, Solution, as_one_row, of_other_rows
from svmkit.solvers import LINEAR_FORM
from svmkit.solvers.base import SolverResult
from svmkit.trained import Part, Trained

#: Rows that are mapped at a time: at most, and by the number of features that they are to have.
_PART_ROWS, _PART_VALUES = 1 << 15, 1 << 24
#: Kernels with landmarks that an SVM is reduced to.
_REDUCIBLE = ("rbf", "polynomial")


class Mapped(NamedTuple):
    """The map, and the training data and the held-out data by their mapped features."""

    map: maps.FeatureMap
    dataset: Dataset
    holdout: Dataset | None


def check(config: TrainConfig) -> None:
    """Raises UsageError where the map cannot serve the config's solver, or its certificate."""
    if config.map is None:
        return
    if config.solver not in LINEAR_FORM:
        raise UsageError(
            f"--map: solver {config.solver} works on kernel values, which a map does without; "
            f"those that train on mapped data are {', '.join(LINEAR_FORM)} (--solver)"
        )
    maps.check(config.map, config.kernel)
    reduced = config.map == "nystroem" and config.landmarks == "reduced"
    if reduced and config.kernel not in _REDUCIBLE:
        raise UsageError(
            f"--landmarks reduced: for the {config.kernel} kernel no SVM is re-expressed on fewer vectors that are its own; "
            f"it goes with {' and '.join(_REDUCIBLE)} (-t). Try pivoted or uniform"
        )
    if reduced and config.kernel == "polynomial" and config.coef0 < 0:
        raise UsageError(
            "--landmarks reduced: with a negative -r the polynomial kernel may be indefinite, and then no SVM is re-expressed "
            "on fewer vectors; take an -r of 0 or more, or --landmarks uniform"
        )
    if config.constant and config.certificate_of == "kernel":
        raise UsageError("--certificate-of kernel: the kernel's own problem has no constant feature; leave --constant out")
    if config.map == "fourier" and config.certificate_of == "kernel":
        raise UsageError("--certificate-of kernel: a function of random Fourier features is none of the kernel's space")


def map_data(
    dataset: Dataset,
    used: Ints,
    kernel: Kernel,
    config: TrainConfig,
    holdout: Dataset | None,
    heed: Callable[[str], None],
    points: Rows | None,
) -> Mapped:
    """The map that ``config`` describes, made from the examples ``used``, and the data mapped by it.

    ``points`` are landmarks that are known already. ``heed(what is being done, in words)`` is called now and again, and may
    raise what ends it.
    """
    rows = dataset.rows if len(used) == dataset.n else dataset.rows.take(used)
    made = maps.fit(rows, kernel, config, dataset.classes[used], heed, points=points)
    training = _mapped(dataset, made, config.constant, heed)
    held_out = None if holdout is None else _mapped(holdout, made, config.constant, heed)
    return Mapped(made, training, held_out)


def _mapped(dataset: Dataset, made: maps.FeatureMap, constant: float, heed: Callable[[str], None]) -> Dataset:
    """The data by their mapped features and, where it is not 0, ``constant`` as a last one.

    Raises DataError where a feature is not finite.
    """
    rows = dataset.rows
    features = np.empty((rows.n, made.dim + bool(constant)), dtype=np.float32)
    step = max(1, min(_PART_ROWS, _PART_VALUES // max(1, made.dim)))
    for first in range(0, rows.n, step):
        heed(f"{first:,} of {rows.n:,} examples mapped")
        last = min(first + step, rows.n)
        if constant:
            features[first:last, :-1] = made.transform(rows.part(first, last))
        else:
            made.transform(rows.part(first, last), features[first:last])
    heed(f"{rows.n:,} examples mapped")
    features[:, made.dim :] = constant
    maps.refuse_infinite(features, lambda row: f"{dataset.name}, example {row + 1}")
    return replace(dataset, rows=dense_rows(features))


def assemble_mapped(
    mapped: Mapped, kernel: Kernel, labels: Ints, members: list[Ints], parts: list[Part], config: TrainConfig
) -> tuple[Model, Ints]:
    """The model of machines trained on mapped data, and the training row that each of its support vectors is, or −1."""
    trained = [part for part in parts if isinstance(part, Trained)]
    assert len(trained) == len(parts), "mapped data are trained a machine at a time"
    if config.constant:
        trained = [_with_threshold(machine, mapped.map.dim, config.constant) for machine in trained]
    if not isinstance(mapped.map, NystroemMap):
        linear = Kernel(LINEAR)
        model, sv_index = assemble(mapped.dataset.rows, config.svm_type, linear, labels, members, trained, config.multiclass)
        return replace(model, map=mapped.map), sv_index
    landmarks, s = mapped.map.landmarks, mapped.map.landmarks.n
    firsts = [0 if config.multiclass == "ovr" else int(i) for i in class_pairs(len(labels), config.multiclass)[0]]
    copies = max(firsts, default=-1) + 1
    found = [machine.result.solution for machine in trained]
    machines = [
        Machine(first * s + np.arange(s), pulled_back(mapped.map, each), each.rho)
        for first, each in zip(firsts, found, strict=True)
    ]
    empty = Model(
        svm_type=config.svm_type,
        kernel=kernel,
        rows=_copies(landmarks, copies),
        coef=np.empty((0, 0)),
        rho=np.empty(0),
        labels=labels,
        class_counts=np.where(np.arange(len(labels)) < copies, s, 0),
        multiclass=config.multiclass,
    )
    return with_machines(empty, machines), np.full(copies * s, -1)


def _with_threshold(machine: Trained, dim: int, constant: float) -> Trained:
    """The machine with the last feature's part of f in its rho."""
    found = machine.result.solution
    w = fold(found.own, found.coef, dim + 2)
    rho = found.rho - constant * float(w[dim + 1])
    solution = as_one_row(w[: dim + 1], np.arange(dim + 1, dtype=np.int32), dim, rho, found.alpha)
    return machine._replace(result=replace(machine.result, solution=solution))


def _copies(rows: Rows, n: int) -> Rows:
    some = stack([rows] * n) if n else rows.part(0, 0)
    return some._replace(n_features=int(some.indices.max(initial=0)))


def pulled_back(made: NystroemMap, solution: Solution) -> Floats:
    """The coefficients over the landmarks of a solution over mapped features, (s,)."""
    return made.pull_back(fold(solution.own, solution.coef, made.dim + 1)[1:])


def of_the_kernel(made: maps.FeatureMap, result: SolverResult, problem: Problem) -> SolverResult:
    """``result`` with the certificate of its function, pulled back, as an answer to the kernel's own ``problem``.

    Its dual point is the mapped problem's, n kernel values for each α above 0.
    """
    assert isinstance(made, NystroemMap)
    found = result.solution
    pulled = of_other_rows(made.landmarks, pulled_back(made, found), found.rho, found.alpha)
    return replace(result, certificate=certify(problem, pulled))
