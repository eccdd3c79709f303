#!/usr/bin/env python3
"""Small real data sets that scikit-learn carries, written as LIBSVM text: no download.

    datasets/small.py digits demo        writes demo/digits (two thirds) and demo/digits.t (the rest)

Rows are shuffled with a fixed seed before the cut. Numbers keep all their digits; zeros are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SEED = 20
NAMES = ("breast-cancer", "digits", "iris", "wine")


def load(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features (n, d) and labels (n,): breast-cancer +1 malignant, −1 benign; the others their class number."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name.replace('-', '_')}")()
    y = np.where(bunch.target == 0, 1.0, -1.0) if name == "breast-cancer" else bunch.target.astype(float)
    return np.asarray(bunch.data, dtype=float), y


def write(path: Path, y: NDArray[np.float64], x: NDArray[np.float64]) -> None:
    with open(path, "w", encoding="ascii") as out:
        for label, row in zip(y.tolist(), x.tolist(), strict=True):
            out.write(f"{label:g} " + " ".join(f"{j}:{v:.17g}" for j, v in enumerate(row, 1) if v) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes FOLDER/NAME and FOLDER/NAME.t, LIBSVM text, from scikit-learn.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    x, y = load(args.name)
    order = np.random.default_rng(SEED).permutation(len(y))
    cut = 2 * len(y) // 3
    args.folder.mkdir(parents=True, exist_ok=True)
    write(args.folder / args.name, y[order[:cut]], x[order[:cut]])
    write(args.folder / f"{args.name}.t", y[order[cut:]], x[order[cut:]])


if __name__ == "__main__":
    main()
