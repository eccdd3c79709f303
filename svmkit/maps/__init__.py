"""Explicit feature maps by name, φ: rows → R^d with ⟨φ(x), φ(z)⟩ ≈ K(x, z).

A map module offers ``fit(rows, kernel, dim, seed, …)``, which makes a map from training rows, and ``from_dict``, which makes it
anew from ``to_dict`` of another. A map has ``dim`` and ``transform(rows)``; its inner products are what it is for. A new one is
such a file in this folder, its name in ``config.MAPS``, and a case wherever the kinds of maps are told apart: ARCHITECTURE.md,
"Adding to it", lists these places.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from svmkit.config import MAPS
from svmkit.errors import DataError, ModelError, UsageError
from svmkit.parallel import attended

T = TypeVar("T")

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from svmkit.config import TrainConfig
    from svmkit.data import Floats, Rows
    from svmkit.problem import Kernel


#: Rows that are looked at together.
_CHECKED_ROWS = 1024


class FeatureMap(Protocol):
    """What every map offers."""

    @property
    def dim(self) -> int:
        """Number of features."""

    def transform(self, rows: Rows, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """φ of each row, (n, dim), computed in float64 and rounded once; written into ``out``, contiguous, where given."""

    def to_dict(self) -> dict[str, Any]:
        """All there is to the map as text, numbers and lists; the same map comes back from it to the bit."""


def check(name: str, kernel: str) -> None:
    """Raises UsageError where the map called ``name`` cannot stand for the kernel of that name."""
    if kernel == "precomputed":
        raise UsageError(f"--map {name}: a precomputed kernel (-t 4) has no vectors to map; train without --map")
    if name == "fourier" and kernel != "rbf":
        raise UsageError(f"--map fourier: only the rbf kernel (-t 2) has these features, not {kernel}; try --map nystroem")


def fit(
    rows: Rows,
    kernel: Kernel,
    config: TrainConfig,
    labels: Floats | None = None,
    heed: Callable[[str], None] = lambda doing: None,
    points: Rows | None = None,
) -> FeatureMap:
    """The map that ``config`` describes (``map, dim, landmarks, cut, orthogonal, seed``), made from ``rows``, with their
    ``labels`` (n,) where these are known.

    ``points``: landmarks that are known already, in place of chosen ones; "reduced" ones must be.
    ``heed(what is being done, in words)`` is called now and again while landmarks are chosen, and may raise what ends it.
    Raises UsageError for a kernel that it cannot map.
    """
    assert config.map is not None
    check(config.map, kernel.name)
    module = import_module(f"svmkit.maps.{config.map}")
    options: dict[str, Any] = {"orthogonal": config.orthogonal}
    if config.map == "nystroem":
        options = {"landmarks": config.landmarks, "cut": config.cut, "labels": labels, "points": points}
    doing = f"a {config.map} map of {config.dim:,} features is made"
    made: FeatureMap = heeded(doing, lambda say: module.fit(rows, kernel, config.dim, config.seed, heed=say, **options), heed)
    return made


def heeded(doing: str, work: Callable[[Callable[[str], None]], T], heed: Callable[[str], None]) -> T:
    """``work(say)``, with ``heed`` called on this thread with each text that is said, and the last one again while nothing is,
    at first ``doing``: the work may be one long call of a library.
    """
    said: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        nonlocal doing
        while not said.empty():
            doing = said.get()
            heed(doing)

    def poll() -> None:
        listen()
        heed(doing)

    made = attended(lambda: work(said.put), poll)
    listen()
    return made


def refuse_infinite(features: NDArray[np.float32], where: Callable[[int], str]) -> None:
    """Raises DataError where a mapped feature is nan or infinite; ``where(row)`` says which example that row belongs to."""
    for start in range(0, len(features), _CHECKED_ROWS):
        wrong = np.flatnonzero(~np.isfinite(features[start : start + _CHECKED_ROWS]).all(axis=1))
        if len(wrong):
            raise DataError(f"{where(start + int(wrong[0]))}: a mapped feature is not finite: scale the data")


def from_dict(stored: dict[str, Any]) -> FeatureMap:
    """The map whose ``to_dict`` is ``stored``. Raises ModelError where that is none this version knows."""
    name, version = stored.get("map"), stored.get("version")
    if name not in MAPS or version != 1:
        raise ModelError(f"map {name!r}, version {version!r}: not a feature map that this version of svmkit knows")
    made: FeatureMap = import_module(f"svmkit.maps.{name}").from_dict(stored)
    return made
