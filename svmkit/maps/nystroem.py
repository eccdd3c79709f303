"""The Nyström map: features of a kernel from its values against s landmarks.

    K_SS = Q D Qᵀ,    φ(x) = D^{−1/2} Qᵀ k_S(x)    over the eigenvalues kept,    ⟨φ(x), φ(z)⟩ = k_S(x)ᵀ K_SS⁺ k_S(z)

which is K itself among the landmarks. An eigenvalue is kept above ``cut`` times the largest, and never below s·2⁻⁵², where it
is rounding. f(x) = ⟨w, φ(x)⟩ is an ordinary kernel expansion over the landmarks with coefficients Q D^{−1/2} w: ``pull_back``.

All is computed in float64, kernel values, eigenvectors and products, because D^{−1/2} makes a small error of K a large one of
φ; only the features themselves are then rounded to float32, each by at most 2⁻²⁴ of its size. Time O(n s d) in matrix
products. Memory: to choose landmarks what landmarks.py says, to make the map a few s × s matrices, then the features and a few
MB a thread.

Papers: Williams & Seeger, "Using the Nyström method to speed up kernel machines" (NIPS 2001); Lee & Wright, "ASSET: approximate
stochastic subgradient estimation training for support vector machines" (ICPRAM 2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit import parallel
from svmkit.config import KERNELS
from svmkit.data import Floats, Rows
from svmkit.engine.kernels import Columns
from svmkit.errors import ModelError
from svmkit.maps.landmarks import PIECE_ROWS, Heed, choose, refuse_overflow
from svmkit.maps.stored import counts, entry, real, reals, whole
from svmkit.problem import PRECOMPUTED, Kernel


@dataclass(frozen=True)
class NystroemMap:
    """φ(x) = projectionᵀ k_S(x): ``landmarks`` (s rows), ``projection`` f8 (s, dim) = Q D^{−1/2}."""

    kernel: Kernel
    landmarks: Rows
    projection: Floats

    @property
    def dim(self) -> int:
        """Number of features: the eigenvalues kept, at most s."""
        return int(self.projection.shape[1])

    def transform(self, rows: Rows, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """φ of each row, (n, dim)."""
        features = np.empty((rows.n, self.dim), dtype=np.float32) if out is None else out
        columns = Columns(self.landmarks, self.kernel)

        def piece(first: int, last: int) -> None:
            with np.errstate(over="ignore", invalid="ignore"):  # maps.refuse_infinite says what leaves float32's range
                features[first:last] = columns.block(rows.part(first, last)) @ self.projection

        parallel.run_stretches(piece, rows.n, PIECE_ROWS)
        return features

    def pull_back(self, w: Floats) -> Floats:
        """The coefficients over the landmarks, (s,) or (s, k), of ⟨w, φ(x)⟩ for w (dim,) or (dim, k)."""
        coef: Floats = self.projection @ w
        return coef

    def to_dict(self) -> dict[str, Any]:
        """Every number of the map: eigenvectors computed anew elsewhere would be others."""
        rows = self.landmarks
        return {
            "map": "nystroem",
            "version": 1,
            "kernel": {**self.kernel._asdict(), "kind": self.kernel.name},
            "indptr": rows.indptr.tolist(),
            "indices": rows.indices.tolist(),
            "data": rows.data.tolist(),
            "n_features": rows.n_features,
            "projection": self.projection.tolist(),
        }


def fit(
    rows: Rows,
    kernel: Kernel,
    dim: int,
    seed: int,
    *,
    landmarks: str = "pivoted",
    cut: float = 0.0,
    labels: Floats | None = None,
    heed: Heed = lambda doing: None,
    points: Rows | None = None,
) -> NystroemMap:
    """The map of at most ``dim`` landmarks chosen from ``rows`` (landmarks.py), whose ``labels`` (n,) may be known; or of the
    landmarks ``points``.

    Raises DataError where kernel values overflow.
    """
    if points is None:
        points = choose(landmarks, rows, kernel, min(dim, rows.n), seed, labels, heed)
    K = Columns(points, kernel).block(points)
    refuse_overflow(K)
    heed(f"landmarks: eigenvectors of {points.n:,} by {points.n:,} kernel values")
    values, vectors = np.linalg.eigh(K)
    refuse_overflow(values)
    kept = values > max(cut, len(values) * 2.0**-52) * max(values.max(initial=0.0), 0.0)
    projection = np.ascontiguousarray((vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1])  # largest eigenvalue first
    return NystroemMap(kernel, points, projection)


def from_dict(stored: dict[str, Any]) -> NystroemMap:
    """The map that ``to_dict`` stored. Raises ModelError where something is missing or does not fit."""
    landmarks = Rows(
        data=reals(stored, "data"),
        indices=counts(stored, "indices").astype(np.int32),
        indptr=counts(stored, "indptr"),
        n_features=whole(stored, "n_features", 0, 2**31 - 1),
    )
    projection = reals(stored, "projection", ndim=2)
    if not (_are_rows(landmarks) and len(projection) == landmarks.n):
        raise ModelError("map: the parts of the Nyström map do not fit together; the file is damaged")
    return NystroemMap(_kernel(entry(stored, "kernel")), landmarks, projection)


def _kernel(told: Any) -> Kernel:
    kind = entry(told, "kind")
    if kind not in KERNELS or kind == KERNELS[PRECOMPUTED]:
        raise ModelError(f"map: {kind!r} is no kernel that has a Nyström map")
    return Kernel(KERNELS.index(kind), real(told, "gamma", 0.0), real(told, "coef0"), whole(told, "degree", 0, 2**31 - 1))


def _are_rows(rows: Rows) -> bool:
    """Whether the arrays fit together, and indices ascend within each row."""
    lengths = np.diff(rows.indptr)
    if rows.indptr[:1].tolist() != [0] or (lengths < 0).any() or not lengths.sum() == len(rows.data) == len(rows.indices):
        return False
    next_row = np.diff(np.repeat(np.arange(rows.n), lengths)) > 0
    return bool(rows.indices.max(initial=0) <= rows.n_features and (next_row | (np.diff(rows.indices) > 0)).all())
