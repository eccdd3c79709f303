"""How well a map's inner products approximate the kernel, on a sample of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmkit.data import Floats, Rows
from svmkit.engine.kernels import Columns
from svmkit.maps import FeatureMap, refuse_infinite
from svmkit.maps.landmarks import refuse_overflow
from svmkit.problem import Kernel


class Errors(NamedTuple):
    """‖K − ΦΦᵀ‖ / ‖K‖ over the sample: largest eigenvalue in size, and root of the sum of squares."""

    spectral: float
    frobenius: float


def kernel_matrix(rows: Rows, kernel: Kernel) -> Floats:
    """K(rows, rows) in float64. Raises DataError where it overflows, or its norm would."""
    K: Floats = Columns(rows, kernel).block(rows)
    with np.errstate(over="ignore"):
        refuse_overflow(np.linalg.norm(K))
    return K


def errors(feature_map: FeatureMap, sample: Rows, K: Floats) -> Errors:
    """The errors on the rows of ``sample``, whose kernel matrix is ``K``; O(m³) for m rows.

    Raises DataError where features overflow single precision.
    """
    mapped = feature_map.transform(sample)
    refuse_infinite(mapped, lambda row: "an example of the sample")
    features = mapped.astype(np.float64)
    missed = K - features @ features.T
    largest = [float(np.abs(np.linalg.eigvalsh(matrix)).max(initial=0.0)) for matrix in (missed, K)]
    sizes = [float(np.linalg.norm(matrix)) for matrix in (missed, K)]
    return Errors(_ratio(*largest), _ratio(*sizes))


def _ratio(missed: float, whole: float) -> float:
    return missed / whole if whole else 0.0
