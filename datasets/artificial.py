#!/usr/bin/env python3
"""Makers of artificial data sets, written as LIBSVM text, a chunk at a time: any length, constant memory.

    datasets/artificial.py waveform --rows 100000 --seed 1 > waveform
    datasets/artificial.py waveform --rows 10000000 | svmkit train --solver lasvm -g 0.05 - waveform.model

The first N rows of a longer set are the set of N rows. Labels are +1 and −1, in waveform3 1, 2, 3.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Chunk = tuple[Floats, Floats]  # labels (n,), features (n, d)
Maker = Callable[[np.random.Generator, int], Chunk]

CHUNK = 2048


def _sign(condition: NDArray[np.bool_]) -> Floats:
    return np.where(condition, 1.0, -1.0)


def waveform3(rng: np.random.Generator, n: int) -> Chunk:
    """Breiman's waveforms: 21 points of a random mix of two of three triangles, plus unit noise; three classes."""
    point = np.arange(1, 22)
    triangles = np.maximum(0.0, 6.0 - np.abs(point - np.array([[11], [15], [7]])))
    first, second = np.array([[0, 1], [0, 2], [1, 2]]).T
    kind = rng.integers(0, 3, n)
    u = rng.random((n, 1))
    x = u * triangles[first[kind]] + (1 - u) * triangles[second[kind]] + rng.standard_normal((n, 21))
    return kind + 1.0, x


def waveform(rng: np.random.Generator, n: int) -> Chunk:
    """waveform3 as two classes: the first against the other two."""
    kind, x = waveform3(rng, n)
    return _sign(kind == 1), x


def gaussians(rng: np.random.Generator, n: int) -> Chunk:
    """Two round Gaussians in 10 dimensions whose centres are 2 apart: the best possible error is 15.87 %."""
    y = _sign(rng.random(n) < 0.5)
    x = rng.standard_normal((n, 10))
    x[:, 0] += y
    return y, x


def checkerboard(rng: np.random.Generator, n: int) -> Chunk:
    """A 4 × 4 board on the unit square, without noise."""
    x = rng.random((n, 2))
    return _sign(np.floor(4 * x).sum(1) % 2 == 0), x


def banana(rng: np.random.Generator, n: int) -> Chunk:
    """Two interlocking arcs with noise."""
    y = _sign(rng.random(n) < 0.5)
    angle = np.pi * rng.random(n)
    x = np.column_stack([np.cos(angle), np.sin(angle)]) * y[:, None]
    x += np.where(y[:, None] > 0, [-0.5, -0.25], [0.5, 0.25]) + 0.2 * rng.standard_normal((n, 2))
    return y, x


def xor(rng: np.random.Generator, n: int) -> Chunk:
    """Four Gaussians on the corners of a square, opposite corners alike."""
    corner = rng.choice([-1.0, 1.0], (n, 2))
    return corner[:, 0] * corner[:, 1], corner + 0.4 * rng.standard_normal((n, 2))


def separable(rng: np.random.Generator, n: int) -> Chunk:
    """20 dimensions, separated by the plane Σ x = 0 with a margin of 0.1 on each side."""
    x = rng.standard_normal((n, 20))
    normal = np.full(20, 20**-0.5)
    distance = x @ normal
    y = _sign(distance >= 0)
    return y, x + 0.1 * y[:, None] * normal


def noisy(rng: np.random.Generator, n: int) -> Chunk:
    """The same with one label in ten flipped."""
    y, x = separable(rng, n)
    return np.where(rng.random(n) < 0.1, -y, y), x


def text(rng: np.random.Generator, n: int) -> Chunk:
    """Like documents: unit vectors of about 50 of 5000 words, frequent words first, each class with words of its own."""
    words = 5000
    frequency = 1.0 / np.arange(3, words + 3)
    theme = np.where(np.arange(words) % 50 == 7, 4.0, 1.0), np.where(np.arange(words) % 50 == 8, 4.0, 1.0)
    y = _sign(rng.random(n) < 0.4)
    x = np.zeros((n, words))
    for row in range(n):
        chance = frequency * theme[int(y[row] > 0)]
        drawn = rng.choice(words, rng.integers(20, 120), p=chance / chance.sum())
        np.add.at(x[row], drawn, 1.0)
    x = np.log1p(x)
    return y, x / np.sqrt((x * x).sum(1))[:, None]


MAKERS: dict[str, Maker] = {
    maker.__name__: maker for maker in (waveform, waveform3, gaussians, checkerboard, banana, xor, separable, noisy, text)
}


def chunks(name: str, rows: int, seed: int) -> Iterator[Chunk]:
    """``rows`` rows of the set ``name`` as (labels, features)."""
    for number, start in enumerate(range(0, rows, CHUNK)):
        y, x = MAKERS[name](np.random.default_rng([seed, number]), CHUNK)
        yield y[: rows - start], x[: rows - start]


def lines(y: Floats, x: Floats) -> Iterator[str]:
    """LIBSVM text: zeros left out, six digits."""
    for label, row in zip(y.tolist(), x, strict=True):
        filled = np.flatnonzero(row)
        pairs = " ".join(f"{j}:{v:.6g}" for j, v in zip((filled + 1).tolist(), row[filled].tolist(), strict=True))
        yield f"{label:g} {pairs}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes an artificial data set to stdout as LIBSVM text.")
    parser.add_argument(
        "name",
        choices=MAKERS,
        help="; ".join(f"{k}: {(v.__doc__ or '').rstrip('.')}" for k, v in MAKERS.items()).replace("%", "%%"),
    )
    parser.add_argument("--rows", type=int, default=1000, help="how many examples (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, another sample (default 0)")
    args = parser.parse_args()
    if args.seed < 0:
        parser.error(f"--seed {args.seed}: must be 0 or more")
    try:
        for y, x in chunks(args.name, args.rows, args.seed):
            sys.stdout.writelines(lines(y, x))
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        sys.stderr.close()
        raise SystemExit(141) from None


if __name__ == "__main__":
    main()
