"""Choosing the landmarks of a Nyström map: at random, as the centres of k-means, or by randomly pivoted Cholesky.

Where labels tell classes apart, the last two choose from each class by itself, an equal share each: what lies on either side of
the border between classes is what f has to be good at, and of a class that is a tenth of all rows few landmarks would be.

uniform   drawn without replacement
kmeans    centres of clusters of the input vectors (Lloyd's algorithm, started from rows drawn at random): no training rows
pivoted   drawn one after another with probability proportional to what the landmarks so far leave of K_ii, so that rows unlike
          all of them are preferred. The partial Cholesky factor of K says what is left; n·s kernel values, O(n s²) in products
          of matrices. Several rows are proposed together, and each is accepted with the probability that makes the draw
          the same as drawing singly. Kernels that may be indefinite have no such factor: for them it is uniform.

Samples keep memory and time apart from n: ``kmeans`` and ``pivoted`` look at no more than 32 rows for each landmark, drawn
without replacement. The factor of s pivots takes 256 s² bytes; of more than 2,896 it is made of fewer rows, and takes no more
than 2 GB or 8 s². (On a9a, ijcnn1 and covtype, 16 to 512 pivots from 32 rows each leave of K at most 4 % more than pivots from
65,536 rows do.)

Papers: Zhang & Kwok, "Improved Nyström low-rank approximation" (ICML 2008), for centres; Chen, Epperly, Tropp & Webber,
"Randomly pivoted Cholesky" (2022); Epperly, Tropp & Webber, "Embrace rejection" (2024), for the proposals.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from svmkit import parallel
from svmkit.data import Floats, Ints, Rows, stack
from svmkit.engine import rng
from svmkit.engine.centred import centred
from svmkit.engine.cholesky import inverse_of_triangle
from svmkit.engine.kernels import Columns, diagonal
from svmkit.errors import DataError, TooLargeError
from svmkit.features import feature_names, renamed
from svmkit.problem import LINEAR, RBF, Kernel

#: Rows a piece of work takes.
PIECE_ROWS = 1024
#: Streams of random numbers, apart from those that solvers number from 0 on.
_ORDER, _PROPOSALS = 1 << 40, 1 << 41

#: Rows to a landmark in the samples.
_SAMPLED = 32
#: Numbers of a pivoted factor at most, 2 GB: for more than 2,896 landmarks the sample is smaller, down to themselves.
_FACTOR_VALUES = 1 << 28
#: Rounds of k-means at most, and values of its centres, 2 GB.
_KMEANS_SWEEPS, _KMEANS_VALUES = 10, 1 << 28
#: Rows that are proposed together as pivots.
_PROPOSED = 96
#: Told between rounds, in words, what is being done; may raise what ends it.
Heed = Callable[[str], None]
#: What is left of K_ii counts as nothing below this share of it: rounding of a Cholesky factor.
_NOTHING = 1e-13


def choose(
    name: str, rows: Rows, kernel: Kernel, count: int, seed: int, labels: Floats | None = None, heed: Heed = lambda doing: None
) -> Rows:
    """At most ``count`` landmarks by the choice of that name: from each class by itself where ``labels`` (n,) tell several
    apart, at most ``count`` of them, and the choice is not uniform; else from all rows.
    """
    chosen = CHOICES[name]
    if labels is None or name == "uniform":
        return chosen(rows, kernel, count, seed, heed)
    _, class_of, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if not 1 < len(sizes) <= count:
        return chosen(rows, kernel, count, seed, heed)
    parts = []
    for c, share in enumerate(_equal_shares(sizes, count)):
        members = np.flatnonzero(class_of == c)
        some = members[_drawn(len(members), _SAMPLED * share, seed)]
        parts.append(chosen(rows.take(some), kernel, share, seed, heed))
    return stack(parts)


def _equal_shares(sizes: Ints, count: int) -> list[int]:
    """Equal shares of ``count``; what a class is too small for goes to the larger ones."""
    shares, left = [0] * len(sizes), count
    for before, c in enumerate(np.argsort(sizes, kind="stable").tolist()):
        shares[c] = min(int(sizes[c]), left // (len(sizes) - before))
        left -= shares[c]
    return shares


def uniform(rows: Rows, kernel: Kernel, count: int, seed: int, heed: Heed = lambda doing: None) -> Rows:
    """``count`` rows drawn at random, in file order."""
    return rows.take(_drawn(rows.n, count, seed))


def kmeans(rows: Rows, kernel: Kernel, count: int, seed: int, heed: Heed = lambda doing: None) -> Rows:
    """The centres of ``count`` clusters; a row that is one by itself stays as it is.

    Raises TooLargeError where ``count`` dense centres of so many features would not fit in memory.
    """
    some = rows.take(_drawn(rows.n, _SAMPLED * count, seed))
    used = feature_names(some)
    if count * len(used) > _KMEANS_VALUES:
        gigabytes = 8e-9 * count * len(used)
        raise TooLargeError(f"--landmarks kmeans: {count} centres of {len(used)} features take {gigabytes:.3g} GB; try pivoted")
    narrow, first = renamed(some, used), _drawn(some.n, count, seed)
    (moved,) = centred(Kernel(RBF, inf), narrow)  # squares of features far from 0 would swallow distances
    centres = moved.take(first).to_dense()[:, 1:]
    nearest = np.full(some.n, -1)
    for sweep in range(_KMEANS_SWEEPS):
        heed(f"landmarks: round {sweep + 1} of {_KMEANS_SWEEPS} of k-means at most")
        before, nearest = nearest, _nearest(moved, centres)
        if np.array_equal(nearest, before):
            break
        _take_means(moved, nearest, centres)
    if moved is not narrow:
        centres = narrow.take(first).to_dense()[:, 1:]
        _take_means(narrow, nearest, centres)
    found = Rows.from_dense(centres)
    return found._replace(indices=used[found.indices - 1], n_features=rows.n_features)


def _take_means(rows: Rows, nearest: Ints, centres: Floats) -> None:
    """Each centre that is nearest to rows becomes their mean."""
    row_of = np.repeat(np.arange(rows.n), np.diff(rows.indptr))
    keys = nearest[row_of] * centres.shape[1] + (rows.indices - 1)
    sums = np.bincount(keys, weights=rows.data, minlength=centres.size).reshape(centres.shape)
    sizes = np.bincount(nearest, minlength=len(centres))
    held = sizes > 0
    centres[held] = sums[held] / sizes[held, None]


def _nearest(rows: Rows, centres: Floats) -> Ints:
    """The number of the centre nearest to each row, the first of those equally near."""
    columns = Columns(Rows.from_dense(centres), Kernel(LINEAR))
    with np.errstate(over="ignore"):
        half = 0.5 * (centres * centres).sum(axis=1)
    out = np.empty(rows.n, dtype=np.int64)

    def piece(first: int, last: int) -> None:
        with np.errstate(invalid="ignore"):  # where products overflow
            out[first:last] = np.argmin(half - columns.block(rows.part(first, last)), axis=1)

    parallel.run_stretches(piece, rows.n, PIECE_ROWS)
    return out


def pivoted(rows: Rows, kernel: Kernel, count: int, seed: int, heed: Heed = lambda doing: None) -> Rows:
    """At most ``count`` rows, fewer where those leave nothing of K, in file order.

    As many ``uniform`` ones where the kernel may be indefinite: K_ii then do not bound what is left of K.
    """
    if kernel.indefinite:
        return uniform(rows, kernel, count, seed)
    candidates = _drawn(rows.n, max(count, min(_SAMPLED * count, _FACTOR_VALUES // count)), seed)
    chosen = pivots(rows.take(candidates), kernel, count, seed, heed)
    return rows.take(np.sort(candidates[chosen]))


def pivots(rows: Rows, kernel: Kernel, count: int, seed: int, heed: Heed = lambda doing: None) -> Ints:
    """The pivots of a randomly pivoted Cholesky factor of K(rows, rows), in the order in which they are drawn.

    Raises DataError where kernel values overflow.
    """
    left = np.maximum(0.0, diagonal(rows, kernel))  # what is left of each K_ii
    with np.errstate(over="ignore"):
        refuse_overflow(left.sum())
    least = _NOTHING * left
    factor = np.empty((rows.n, min(count, rows.n)))
    chosen = np.empty(0, dtype=np.int64)
    round_number = 0
    while len(chosen) < factor.shape[1] and (left > least).any():
        heed(f"landmarks: {len(chosen):,} of {factor.shape[1]:,} chosen")
        draws = rng.uniforms(seed, _PROPOSALS, round_number * 2 * _PROPOSED, 2 * _PROPOSED)
        round_number += 1
        there = left > least
        mass = np.cumsum(np.where(there, left, 0.0))
        proposed = np.searchsorted(mass, draws[:_PROPOSED] * mass[-1], side="right")
        proposed = np.minimum(proposed, np.flatnonzero(there)[-1])  # of a mass below normal doubles a share may round to all
        known = factor[proposed, : len(chosen)]
        some = rows.take(proposed)
        K = Columns(some, kernel).block(some)
        refuse_overflow(K)
        gram = K - known @ known.T
        room = factor.shape[1] - len(chosen)
        accepted, triangle = _accept(gram, left[proposed], draws[_PROPOSED:], least[proposed], room)
        left[proposed[np.diagonal(gram) <= least[proposed]]] = 0.0
        if len(accepted):
            new = proposed[accepted]
            _extend(rows, kernel, factor, len(chosen), new, triangle)
            added = factor[:, len(chosen) : len(chosen) + len(new)]
            left = np.maximum(0.0, left - np.einsum("ij,ij->i", added, added))
            refuse_overflow(left)
            left[new] = 0.0
            chosen = np.concatenate([chosen, new])
    return chosen


def _accept(gram: Floats, bound: Floats, draws: Floats, least: Floats, room: int) -> tuple[Ints, Floats]:
    """Which proposals become pivots, and the Cholesky factor of their part of ``gram``, which is left as it was.

    A proposal, drawn with probability ∝ ``bound``, is accepted with what is by now left of its diagonal over that.
    """
    residual = gram.copy()
    accepted: list[int] = []
    columns: list[Floats] = []
    for i in range(len(bound)):
        if len(accepted) == room:
            break
        if residual[i, i] > least[i] and draws[i] * bound[i] < residual[i, i]:
            column = residual[:, i] / np.sqrt(residual[i, i])
            residual -= np.outer(column, column)
            accepted.append(i)
            columns.append(column)
    index = np.array(accepted, dtype=np.int64)
    return index, np.tril(np.stack(columns, axis=1)[index]) if columns else np.empty((0, 0))


def _extend(rows: Rows, kernel: Kernel, factor: Floats, k: int, new: Ints, triangle: Floats) -> None:
    """Columns k … of the factor: (K(:, new) − F F(new)ᵀ) L⁻ᵀ, L = ``triangle``."""
    columns, known, inverse = Columns(rows.take(new), kernel), factor[new, :k].T, inverse_of_triangle(triangle).T

    def piece(first: int, last: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            values = columns.block(rows.part(first, last)) - factor[first:last, :k] @ known
            factor[first:last, k : k + len(new)] = values @ inverse

    parallel.run_stretches(piece, rows.n, PIECE_ROWS)


def refuse_overflow(values: Floats | np.floating[Any]) -> None:
    """Raises DataError where one of these kernel values, or of what is made of them, is nan or infinite."""
    if not np.isfinite(values).all():
        raise DataError("kernel values overflow; scale the data, or change the kernel's numbers (-g, -r, -d)")


def _drawn(n: int, count: int, seed: int) -> Ints:
    """``count`` of n rows drawn without replacement, ascending; all where there are no more."""
    return np.arange(n) if count >= n else np.sort(rng.permutation(seed, _ORDER, n)[:count])


#: By the names that the command line knows.
CHOICES: dict[str, Callable[[Rows, Kernel, int, int, Heed], Rows]] = {"uniform": uniform, "kmeans": kmeans, "pivoted": pivoted}
