"""Random Fourier features of the rbf kernel: φ_j(x) = √(2/d) cos(ν_jᵀx + β_j),  ν_j ~ N(0, 2 gamma I),  β_j ~ U[0, 2π).

⟨φ(x), φ(z)⟩ has mean exp(−gamma‖x − z‖²) and a variance of at most 1/d. With ``orthogonal`` the ν_j are made orthogonal within
groups of as many as there are features, their lengths kept: the same mean, less variance.

A map is its seed: ν and β come from the counter-based generator (rng.py), one stream a feature number, so they need not be
stored and are the same to the bit on every platform; orthogonal ones, which go through LAPACK, to rounding. Features are
computed in float64 in the same order wherever a row stands, and rounded to float32; between CPUs they agree to 1e-6·√(2/d).
A row may have features that no training row had: their frequencies are drawn as all others (independent ones, with
``orthogonal``).

Memory: 20 bytes for each pair of a frequency and a feature number that has occurred; with ``orthogonal``, every
number up to the largest.

Papers: Rahimi & Recht, "Random features for large-scale kernel machines" (NIPS 2007); Yu, Suresh, Choromanski, Holtmann-Rice &
Kumar, "Orthogonal random features" (NIPS 2016).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy import float32, floor
from numpy.typing import NDArray

from svmkit import parallel
from svmkit._jit import ORDERED, compiled
from svmkit.data import Floats, Ints, Rows
from svmkit.engine import rng
from svmkit.engine.kernels import Columns
from svmkit.engine.layouts import Layout
from svmkit.errors import DataError, ModelError, TooLargeError
from svmkit.features import feature_names, renamed
from svmkit.maps.landmarks import PIECE_ROWS, Heed
from svmkit.maps.stored import real, truth, whole
from svmkit.problem import LINEAR, Kernel

#: Streams of random numbers: the frequencies of feature number j have stream _FREQUENCIES + j.
_FREQUENCIES, _PHASES = 1 << 42, 1 << 43
#: Beyond so many turns a double has no digit left for parts of one.
_LARGEST_TURNS = 2.0**50
#: Orthogonal frequencies are refused beyond so many values; what each takes while they are made.
_ORTHOGONAL_VALUES, _VALUE_BYTES = 1 << 28, 20
#: Features drawn from one call of ``heed`` to the next.
_HEEDED = 1024
#: Taylor's coefficients of cos 2π√z, whose error for z ≤ ¼ is below 2e-12.
_COSINE = tuple(float(c) for c in np.cumprod([1.0, *(-((2 * pi) ** 2) / ((2 * k - 1) * (2 * k)) for k in range(1, 13))]))


class _Frequencies(NamedTuple):
    """The ``columns`` ν_j / 2π, over these feature numbers: places from 1 on, in a table of them, so that a row has the same
    sums whichever other features are known.
    """

    features: Ints
    columns: Columns


@dataclass(frozen=True, eq=False)
class FourierMap:
    """``dim`` random Fourier features of exp(−gamma‖x − z‖²), by ``seed``; orthogonal ones over features 1 … ``n_features``."""

    gamma: float
    dim: int
    seed: int
    orthogonal: bool
    n_features: int
    _known: list[_Frequencies] = field(default_factory=list, repr=False)  # one at most, put in when asked for first

    def transform(self, rows: Rows, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """φ of each row, (n, dim). Raises DataError for values so large that no digit of an angle is left."""
        names, columns = self._frequencies(feature_names(rows).astype(np.int64))
        rows = renamed(rows, names)
        phases = rng.uniforms(self.seed, _PHASES, 0, self.dim)
        features = np.empty((rows.n, self.dim), dtype=np.float32) if out is None else out
        with np.errstate(over="ignore"):
            most = np.abs(rows.data).max(initial=0.0) * np.abs(columns.rows.data).max(initial=0.0) * rows.n_features
        near = most <= _LARGEST_TURNS

        def piece(first: int, last: int) -> None:
            turns = columns.block(rows.part(first, last))
            if not near and not -_LARGEST_TURNS <= turns.min() <= turns.max() <= _LARGEST_TURNS:
                raise DataError(
                    f"values up to {np.abs(rows.data).max():g} in size are too large for random Fourier features "
                    f"of gamma {self.gamma:g}; scale the data, or lower gamma"
                )
            turns += phases
            _cosines(turns, sqrt(2.0 / self.dim), features[first:last])

        parallel.run_stretches(piece, rows.n, PIECE_ROWS)
        return features

    def draw(self, rows: Rows, heed: Heed) -> None:
        """Makes the frequencies over the features of ``rows`` now, which may take long; ``transform`` makes those it lacks."""
        self._frequencies(feature_names(rows).astype(np.int64), heed)

    def to_dict(self) -> dict[str, Any]:
        """What the numbers are drawn by."""
        return {
            "map": "fourier",
            "version": 1,
            "gamma": self.gamma,
            "dim": self.dim,
            "seed": self.seed,
            "orthogonal": self.orthogonal,
            "n_features": self.n_features,
        }

    def _frequencies(self, features: Ints, heed: Heed = lambda doing: None) -> _Frequencies:
        """Those over these feature numbers and the ones that were asked for before."""
        if not self._known:
            self._known.append(self._extended(np.empty(0, np.int64), np.empty((self.dim, 0)), features, heed))
        known = self._known[0]
        missing = np.setdiff1d(features, known.features, assume_unique=True)
        if len(missing):
            values = known.columns.rows.data.reshape(self.dim, -1)
            self._known[0] = self._extended(known.features, values, missing)
        return self._known[0]

    def _extended(self, features: Ints, values: Floats, more: Ints, heed: Heed = lambda doing: None) -> _Frequencies:
        """The frequencies ``values`` (dim, features) and those over ``more`` features."""
        if self.orthogonal and len(features) == 0:
            features, values = np.arange(1, self.n_features + 1), self._orthogonal(heed)
            more = np.setdiff1d(more, features, assume_unique=True)
        every = np.concatenate([features, more])
        order = np.argsort(every)
        values = np.concatenate([values, self._drawn(more, heed)], axis=1)[:, order]
        rows = Rows(
            data=np.ascontiguousarray(values).reshape(-1),
            indices=np.tile(np.arange(1, len(every) + 1, dtype=np.int32), self.dim),
            indptr=len(every) * np.arange(self.dim + 1, dtype=np.int64),
            n_features=len(every),
        )
        return _Frequencies(every[order], Columns(rows, Kernel(LINEAR), Layout("table")))

    def _drawn(self, features: Ints, heed: Heed = lambda doing: None) -> Floats:
        """Independent frequencies over these features, (dim, features)."""
        values = np.empty((len(features), self.dim))
        for k, (line, feature) in enumerate(zip(values, features.tolist(), strict=True)):
            if k % _HEEDED == 0:
                heed(f"frequencies: over {k:,} of {len(features):,} features drawn")
            line[:] = rng.normals(self.seed, _FREQUENCIES + feature, 0, self.dim)
        values *= sqrt(2.0 * self.gamma) / (2.0 * pi)
        return values.T

    @np.errstate(over="ignore", invalid="ignore")  # of gamma around 1e308; transform refuses angles without a digit
    def _orthogonal(self, heed: Heed) -> Floats:
        """Frequencies over features 1 … n_features: independent ones, turned to be orthogonal in groups, (dim, n_features)."""
        values = np.ascontiguousarray(self._drawn(np.arange(1, self.n_features + 1), heed))
        for first in range(0, self.dim, max(1, self.n_features)):
            heed(f"frequencies: {first:,} of {self.dim:,} made orthogonal")
            group = values[first : first + self.n_features]
            lengths = np.linalg.norm(group, axis=1)
            Q, R = np.linalg.qr(group.T)
            group[:] = (Q * (np.where(np.diagonal(R) < 0, -1.0, 1.0) * lengths)).T
        return values


def fit(
    rows: Rows, kernel: Kernel, dim: int, seed: int, *, orthogonal: bool = False, heed: Heed = lambda doing: None
) -> FourierMap:
    """The map for ``kernel``, which must be rbf; of ``rows`` only the features count.

    ``heed(what is being done, in words)`` is called now and again while frequencies are made, and may raise.
    Raises TooLargeError where so many orthogonal frequencies would not fit in memory.
    """
    made = FourierMap(kernel.gamma, dim, seed, orthogonal, rows.n_features)
    if (size := _too_large(made)) is not None:
        raise TooLargeError(f"--orthogonal: {size}; without it, only features that occur have frequencies")
    made.draw(rows, heed)
    return made


def _too_large(made: FourierMap) -> str | None:
    """What takes more memory than orthogonal frequencies may, if it does."""
    values = made.dim * made.n_features
    if not made.orthogonal or values <= _ORTHOGONAL_VALUES:
        return None
    return f"{made.dim} frequencies over features 1 to {made.n_features} take {1e-9 * _VALUE_BYTES * values:.3g} GB"


def from_dict(stored: dict[str, Any]) -> FourierMap:
    """The map that ``to_dict`` stored. Raises ModelError where something is missing or cannot be."""
    made = FourierMap(
        gamma=real(stored, "gamma", 0.0),
        dim=whole(stored, "dim", 1, 2**20),
        seed=whole(stored, "seed", 0, 2**63 - 1),
        orthogonal=truth(stored, "orthogonal"),
        n_features=whole(stored, "n_features", 0, 2**31 - 1),
    )
    if (size := _too_large(made)) is not None:
        raise ModelError(f"map: {size}")
    return made


@compiled("void(f8[:, :], f8, f4[:, :])", ORDERED)
def _cosines(turns: Any, scale: Any, out: Any) -> None:
    """out = scale · cos(2π turns), to 1e-11 of scale before rounding."""
    for i in range(turns.shape[0]):
        for j in range(turns.shape[1]):
            r = turns[i, j] - floor(turns[i, j] + 0.5)
            z = r * r
            total = _COSINE[-1]
            for c in _COSINE[-2::-1]:
                total = total * z + c
            out[i, j] = float32(scale * total)
