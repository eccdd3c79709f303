"""Models: by their machines, over their rows, trained on a few points; and how far the functions of two are apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from oracle import dense_kernel
from zoo import points

from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Rows
from svmkit.fit import fit
from svmkit.model import Machine, Model, with_machines
from svmkit.problem import Kernel


def model_of(svm_type: str, kernel: Kernel, rows: Rows, machines: Sequence[Machine], **rest: Any) -> Model:
    """The model of these machines over ``rows``."""
    return with_machines(Model(svm_type, kernel, rows, np.empty((0, 0)), np.empty(0), **rest), machines)


def of_rows(kernel: Kernel, rows: Rows) -> Model:
    """A model of these rows, half of them of either class."""
    half, coef = rows.n // 2, np.where(np.arange(rows.n) < rows.n // 2, 1.0, -1.0)
    machine = Machine(np.arange(rows.n), coef, 0.1)
    counts = np.array([half, rows.n - half])
    return model_of("c_svc", kernel, rows, [machine], labels=np.array([1, -1]), class_counts=counts)


def trained(n_class: int = 2, kernel: str = "rbf", n: int = 240, multiclass: str = "ovo", gamma: float = 0.3) -> Model:
    """A model of points in four dimensions."""
    X, _ = points(n, 4, seed=n_class)
    y = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]), np.linspace(-1, 1, n_class + 1)[1:-1]).astype(np.float64)
    settings: dict[str, Any] = dict(C=3.0, gamma=gamma, kernel=kernel, coef0=1.0, multiclass=multiclass)
    return fit(Dataset(Rows.from_dense(X), y), TrainConfig(**settings)).model


def distances(before: Model, after: Model) -> Floats:
    """‖F − G‖²/‖F‖² of each machine, from dense kernel matrices."""
    found = []
    for one, other in zip(before.machines, after.machines, strict=True):
        S, Z = before.rows.take(one.index), after.rows.take(other.index)
        across = one.coef @ dense_kernel(S, Z, before.kernel) @ other.coef
        norm2 = one.coef @ dense_kernel(S, S, before.kernel) @ one.coef
        found.append(1 + (other.coef @ dense_kernel(Z, Z, before.kernel) @ other.coef - 2 * across) / norm2)
    return np.array(found)
