"""Which landmarks serve best: the test error at the optimum on Nyström maps of s landmarks, by how these were chosen.

A choice is lower than ``uniform`` where the difference of the means is more than twice its standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from reproduce_table import verdict

from svmkit.config import LANDMARKS, ROW_LANDMARKS

OTHERS = [name for name in LANDMARKS if name != "uniform"]
COLUMNS = (
    "set",
    "s",
    "uniform: error % ± sd",
    *(f"{name}: error % ± sd" for name in OTHERS),
    "pivoted or kmeans is lower than uniform",
)


def rows(name: str, error: Callable[[str, int, int], float], sizes: Sequence[int], seeds: int) -> Iterator[Sequence[str]]:
    """A row for each s, from ``error`` (in %) of a choice of landmarks, s and a seed."""
    for s in sizes:
        found = {kind: np.array([error(kind, s, seed) for seed in range(seeds)]) for kind in ("uniform", *OTHERS)}
        uniform = found["uniform"]
        lower = any(
            uniform.mean() - found[kind].mean() > 2.0 * np.sqrt((uniform.var() + found[kind].var()) / seeds)
            for kind in ROW_LANDMARKS
        )
        yield name, f"{s}", *(f"{each.mean():.2f} ± {each.std():.2f}" for each in found.values()), verdict(lower)
