"""Decision values of all pairs of classes, put together from what the support vectors of each class add; their votes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy import int64

from svmkit import parallel
from svmkit._jit import compiled
from svmkit.data import Floats, Ints
from svmkit.engine.inner import row_products

#: Neighbours in a line of the cache, and sums that a piece of the work holds at least.
_LINE, _PIECE_SUMS = 8, 1 << 18
#: Classes that are taken together: as many as ``_row_products`` has columns.
TILE = 32
_row_products = row_products[4]


def pair_sums(parts: Floats, rho: Floats) -> Floats:
    """f of each pair i < j at each row, (n, pairs): parts[i, :, j − 1] + parts[j, :, i] − rho; ``parts`` (k, n, k − 1)."""
    out = np.empty((parts.shape[1], len(rho)))
    n_pieces = parallel.pieces_of(out.size, _PIECE_SUMS)
    flat = parts.reshape(len(parts), -1)
    parallel.run_ranges(lambda first, last: _sums(flat, rho, first, last, out), len(out), n_pieces)
    return out


def tiles_of(weights: Floats, starts: Ints) -> Floats:
    """``weights`` (support vectors, k − 1) as ``pair_products`` wants them: tile by tile of classes, a line a support vector.

    Its weight against class j stands at place j, counted through the tiles; at its own class's and behind the last are zeros.
    """
    n, k = len(weights), len(starts) - 1
    n_tiles = -(-k // TILE)
    by_class = np.zeros((n, n_tiles * TILE))
    for i, (a, b) in enumerate(pairwise(starts.tolist())):
        by_class[a:b, :i], by_class[a:b, i + 1 : k] = weights[a:b, :i], weights[a:b, i:]
    return np.ascontiguousarray(by_class.reshape(n, n_tiles, TILE).transpose(1, 0, 2)).reshape(-1, TILE)


def pair_products(values: Floats, starts: Ints, tiles: Floats, rho: Floats, out: Floats) -> None:
    """out[r] (pairs,) = f of each pair i < j at row r: ``values[r]`` (n, support vectors) times the weights against j, added up
    over class i, and times those against i over class j, less rho. ``starts`` (k + 1,) is where each class begins.
    """
    n_pieces, lines = parallel.pieces_of(out.size, _PIECE_SUMS), np.arange(values.shape[1], dtype=np.int32)

    def piece(first: int, last: int) -> None:
        _products(values, lines, starts, tiles, rho, first, last, np.empty(2 * TILE * TILE), out)

    parallel.run_ranges(piece, len(out), n_pieces)


@compiled("void(f8[:, :], i4[:], i8[:], f8[:, :], f8[:], i8, i8, f8[:], f8[:, :])")
def _products(values: Any, lines: Any, starts: Any, tiles: Any, rho: Any, r0: Any, r1: Any, sums: Any, out: Any) -> None:
    k, n = len(starts) - 1, len(lines)
    for i0 in range(0, k - 1, TILE):  # pairs of a few classes with a few others: their weights stay in the cache
        against_i = tiles[i0 // TILE * n : (i0 // TILE + 1) * n]
        for j0 in range(i0, k, TILE):
            against_j = tiles[j0 // TILE * n : (j0 // TILE + 1) * n]
            i1, j1 = min(i0 + TILE, k), min(j0 + TILE, k)
            for r in range(r0, r1):
                sums[:] = 0.0
                for i in range(i0, i1):
                    _row_products(against_j, lines, values[r], starts[i], starts[i + 1], n, sums, (i - i0) * TILE)
                for j in range(j0, j1):
                    _row_products(against_i, lines, values[r], starts[j], starts[j + 1], n, sums, (TILE + j - j0) * TILE)
                for i in range(i0, i1):
                    at = i * (2 * k - i - 1) // 2 - i - 1
                    for j in range(max(j0, i + 1), j1):
                        both = sums[(i - i0) * TILE + j - j0] + sums[(TILE + j - j0) * TILE + i - i0]
                        out[r, at + j] = both - rho[at + j]


def count_votes(decisions: Floats, k: int) -> Ints:
    """(n, k): how many pairs each class wins at each row, the second class where f is not above 0; ``decisions`` (n, pairs)."""
    votes = np.zeros((len(decisions), k), np.int64)
    n_pieces = parallel.pieces_of(decisions.size, _PIECE_SUMS)
    parallel.run_ranges(lambda first, last: _votes(decisions, first, last, votes), len(votes), n_pieces)
    return votes


@compiled("void(f8[:, :], i8, i8, i8[:, :])")
def _votes(decisions: Any, r0: Any, r1: Any, votes: Any) -> None:
    k = votes.shape[1]
    for r in range(r0, r1):
        at = 0
        for i in range(k - 1):
            for j in range(i + 1, k):
                first = int64(decisions[r, at + j - i - 1] > 0.0)
                votes[r, i] += first
                votes[r, j] += 1 - first
            at += k - 1 - i


@compiled("void(f8[:, :], f8[:], i8, i8, f8[:, :])")
def _sums(parts: Any, rho: Any, first: Any, last: Any, out: Any) -> None:
    k = len(parts)
    for r in range(first, last):
        here = r * (k - 1)
        for i0 in range(0, k - 1, _LINE):  # a class's part is read as it lies, for some partners at a time
            for j in range(i0 + 1, k):
                for i in range(i0, min(i0 + _LINE, j)):
                    at = i * (2 * k - i - 1) // 2 + j - i - 1
                    out[r, at] = parts[i, here + j - 1] + parts[j, here + i] - rho[at]
