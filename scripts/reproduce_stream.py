"""Table 3 of the paper on ASSET in the small: MNIST 0–4 v 5–9 as a shuffled stream of some passes, learned by ASSET_on and
ASSET*_on on random Fourier features: the test error over the last ten thousand examples, measured each thousand.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
from reproduce_table import Split, error_on, verdict

from svmkit import maps
from svmkit.config import TrainConfig
from svmkit.data import dense_rows
from svmkit.engine.rng import permutation
from svmkit.problem import LINEAR, RBF, Bias, Kernel, Stream
from svmkit.solvers import asset

METHODS: tuple[tuple[str, Bias], ...] = (("ASSET_on", "free"), ("ASSET*_on", "none"))
COLUMNS = ("d", "method", "passes", "error %, last 10k", "its sd", "train s", "paper's error", "paper's train s", "verdict")
#: The paper's, on MNIST-E (a million deformed digits): errors of ASSET_on and ASSET*_on, seconds.
PAPER = {
    1024: (11.5, 11.8, 1705),
    2048: (7.2, 8.1, 3418),
    4096: (4.8, 5.8, 6824),
    8192: (3.6, 4.3, 13375),
    16384: (3.0, 3.5, 26053),
}
#: Rows that are mapped at a time, and between two test errors.
CHUNK = 1000


def rows(split: Split, C: float, gamma: float, dims: Sequence[int], passes: int, margin: float) -> Iterator[Sequence[str]]:
    """Two rows for each d of ``dims``: both methods on one stream, the same map, the examples in the same order."""
    for d in dims:
        yield from _rows_of(split, C, gamma, d, passes, margin)


def _rows_of(split: Split, C: float, gamma: float, d: int, passes: int, margin: float) -> Iterator[Sequence[str]]:
    n, linear = len(split.y), Kernel(LINEAR)
    made = maps.fit(split.rows, Kernel(RBF, gamma), TrainConfig(map="fourier", dim=d))
    test = dense_rows(made.transform(split.test_rows))
    streams = [Stream(linear, None, 1.0 / (C * n), bias) for _, bias in METHODS]
    states = [asset.start_stream(stream, asset.Options(), 1e-3, 0) for stream in streams]
    errors: list[list[float]] = [[], []]
    seconds = [0.0, 0.0]
    for number in range(passes):
        order = permutation(number, 7, n)
        for first in range(0, n, CHUNK):
            some = order[first : first + CHUNK]
            began = time.perf_counter()
            mapped = dense_rows(made.transform(split.rows.take(some)))
            map_s = time.perf_counter() - began
            for which, state in enumerate(states):
                began = time.perf_counter()
                asset.extend(state, mapped, split.y[some], np.ones(len(some)))
                seconds[which] += map_s + time.perf_counter() - began
                if (passes - 1 - number) * n + n - first - CHUNK < 10 * CHUNK:
                    errors[which].append(100.0 * error_on(test, split.test_y, linear, asset.solution(state)))
    for which, (name, _) in enumerate(METHODS):
        mean, paper = float(np.mean(errors[which])), PAPER.get(d)
        said = ("", "", "") if paper is None else (f"{paper[which]}", f"{paper[2]}", verdict(mean <= paper[which] + margin))
        yield str(d), name, str(passes), f"{mean:.2f}", f"{np.std(errors[which]):.2f}", f"{seconds[which]:.1f}", *said
