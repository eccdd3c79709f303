"""Real problems for the slow tests, read from $SVMKIT_DATA: 8,000 rows of a9a and, 8 against the rest, 10,000 of MNIST."""

from __future__ import annotations

import numpy as np
import pytest
from bench_data import DATA

from svmkit.io.libsvm_data import read_dataset
from svmkit.problem import RBF, Bias, Kernel, Problem


def real(name: str, C: float | None, bias: Bias = "none") -> Problem:
    """The problem; without C, λ = 1. Skips the test where the data are not there."""
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} is not there")
    n, gamma = {"a9a": (8000, 0.05), "mnist": (10_000, 0.01)}[name]
    whole = read_dataset(str(DATA / name)).take(np.arange(n))
    rows, y = whole.rows, whole.y
    if name == "mnist":
        rows, y = rows._replace(data=rows.data / 255.0), np.where(y == 8, 1.0, -1.0)
    return Problem(rows, y, np.full(n, C or 1.0 / n), Kernel(RBF, gamma), bias)
