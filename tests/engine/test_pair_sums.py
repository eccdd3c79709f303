"""Decision values of all pairs of classes against sums written out, and the votes that they are."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from svmkit import parallel
from svmkit.data import Floats, Ints
from svmkit.engine import pair_sums as pairs


def plain(values: Floats, starts: Ints, weights: Floats, rho: Floats) -> Floats:
    own = [slice(a, b) for a, b in pairwise(starts)]
    columns = [
        values[:, own[i]] @ weights[own[i], j - 1] + values[:, own[j]] @ weights[own[j], i]
        for i, j in combinations(range(len(own)), 2)
    ]
    return np.stack(columns, axis=1) - rho


@pytest.mark.parametrize("k", [3, 31, 32, 33, 65])
def test_products_of_pairs(k: int, monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    """Classes of none to four support vectors, in one tile of classes and in several."""
    monkeypatch.setattr(pairs, "_PIECE_SUMS", 100)
    draw = np.random.default_rng(k)
    starts = np.concatenate([[0], np.cumsum(draw.integers(0, 5, k))])
    n = int(starts[-1])
    values, weights, rho = draw.normal(size=(9, n)), draw.normal(size=(n, k - 1)), draw.normal(size=k * (k - 1) // 2)
    expected, found = plain(values, starts, weights, rho), []
    for count in (1, 2):
        parallel.use_threads(count)
        found.append(np.full(expected.shape, np.nan))
        pairs.pair_products(values, starts, pairs.tiles_of(weights, starts), rho, found[-1])
    assert found[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert np.array_equal(found[0], found[1])


def test_no_support_vectors_leave_rho() -> None:
    out, starts = np.empty((2, 3)), np.zeros(4, np.int64)
    pairs.pair_products(np.empty((2, 0)), starts, pairs.tiles_of(np.empty((0, 2)), starts), np.array([1.0, 2.0, 3.0]), out)
    assert out.tolist() == [[-1, -2, -3]] * 2


def test_votes() -> None:
    decisions = np.random.default_rng(1).choice([-1.0, 0.0, 0.5, np.nan], (20, 10))
    votes = np.zeros((20, 5), int)
    for at, (i, j) in enumerate(combinations(range(5), 2)):
        first = decisions[:, at] > 0
        votes[:, i] += first
        votes[:, j] += ~first
    assert np.array_equal(pairs.count_votes(decisions, 5), votes)
