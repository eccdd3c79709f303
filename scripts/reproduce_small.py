"""Exact SVMs on as few vectors as a feature map has features: smo on the kernel, and ``svmkit approx --model`` makes it small.

Where there are more than ``ROWS_A_VECTOR`` rows for each vector, smo learns so many, drawn anew for each seed: few vectors gain
nothing from more. Seeds also choose the support vectors that the few begin as.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
from reproduce_table import Split, verdict

from svmkit.compress import compress
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Ints
from svmkit.engine.rng import permutation
from svmkit.fit import fit
from svmkit.model import Model, answers

ROWS_A_VECTOR = 200
COLUMNS = (
    *("set", "rows learned", "s", "exact: vectors", "error %", "fit s", "on s vectors: error % ± sd", "approx s"),
    *("paper's ASSET", "CPSP", "lost to the exact SVM: ours", "ASSET's", "verdict"),
)


def learned(n: int, s: int, seed: int) -> Ints:
    """The rows of n that smo learns."""
    most = ROWS_A_VECTOR * s
    return np.arange(n) if n <= most else np.sort(permutation(seed, 3, n)[:most])


def wrong(model: Model, split: Split) -> float:
    """Test error in %."""
    return 100.0 * float(np.mean(answers(model, split.test_rows) != split.test_y))


def rows(
    name: str, split: Split, C: float, gamma: float, sizes: Sequence[int], seeds: int,
    paper: dict[int, tuple[float, float]], light: float, margin: float,
) -> Iterator[Sequence[str]]:  # fmt: skip
    """A row for each s; ``paper`` has the errors of ASSET and CPSP, of a map with s features and of s vectors.

    What is lost is counted from the exact SVM on all rows, in the paper ``light``, and from that where ours learned fewer.
    """
    for s in sizes:
        found: list[tuple[float, ...]] = []
        n, big = len(split.y), None
        for seed in range(seeds):
            some = learned(n, s, seed)
            if big is None or len(some) < n:
                began = time.perf_counter()
                big = fit(Dataset(split.rows.take(some), split.y[some]), TrainConfig(C=C, gamma=gamma)).model
                fit_s, exact = time.perf_counter() - began, wrong(big, split)
            began = time.perf_counter()
            small = compress(big, s, seed)
            approx_s = time.perf_counter() - began
            found.append((big.n_support, exact, fit_s, wrong(small, split), approx_s))
        vectors, exact, fit_s, error, approx_s = np.mean(found, axis=0)
        deviation = float(np.std([each[3] for each in found]))
        asset, cpsp = paper[s]
        lost, theirs = error - (exact if len(some) == n else light), asset - light
        yield (
            *(name, f"{len(some)}", f"{s}", f"{vectors:.0f}", f"{exact:.2f}", f"{fit_s:.1f}"),
            *(f"{error:.2f} ± {deviation:.2f}", f"{approx_s:.1f}", f"{asset:.2f}", f"{cpsp:.2f}"),
            *(f"{lost:.2f}", f"{theirs:.2f}", verdict(lost <= theirs + margin)),
        )
