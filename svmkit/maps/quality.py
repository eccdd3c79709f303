"""How well a map's inner products approximate the kernel, on a sample of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmkit.data import Floats, Rows
from svmkit.engine.kernels import Columns
from svmkit.maps import FeatureMap, refuse_infinite
from svmkit.maps.landmarks import refuse_overflow
from svmkit.problem import Kernel


class Norms(NamedTuple):
    """Of a symmetric matrix: largest eigenvalue in size, and root of the sum of squares."""

    spectral: float
    frobenius: float


def kernel_matrix(rows: Rows, kernel: Kernel) -> Floats:
    """K(rows, rows) in float64. Raises DataError where it overflows, or its norm would."""
    K: Floats = Columns(rows, kernel).block(rows)
    with np.errstate(over="ignore"):
        refuse_overflow(np.linalg.norm(K))
    return K


def norms(matrix: Floats) -> Norms:
    """O(m³) for m rows."""
    return Norms(float(np.abs(np.linalg.eigvalsh(matrix)).max(initial=0.0)), float(np.linalg.norm(matrix)))


def errors(feature_map: FeatureMap, sample: Rows, K: Floats, whole: Norms) -> Norms:
    """‖K − ΦΦᵀ‖ / ‖K‖ on the rows of ``sample``, whose kernel matrix is ``K``, with the norms ``whole``.

    Raises DataError where features overflow single precision.
    """
    mapped = feature_map.transform(sample)
    refuse_infinite(mapped, lambda row: "an example of the sample")
    features = mapped.astype(np.float64)
    missed = norms(K - features @ features.T)
    return Norms(*map(_ratio, missed, whole))


def _ratio(missed: float, whole: float) -> float:
    return missed / whole if whole else 0.0
