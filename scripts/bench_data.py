"""The cases of scripts/bench.py and the files they need, prepared once in bench/ from $SVMKIT_DATA. Standard library only."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SVMKIT_DATA") or ROOT / "datasets" / "cache")
WORK = ROOT / "bench"


class Missing(Exception):
    """A data set that is not there, with what to do."""


def public(name: str) -> Path:
    """A set as published."""
    path = DATA / name
    if not path.exists():
        raise Missing(f"{path} is not there: run scripts/fetch.py {name}, or set SVMKIT_DATA")
    return path


def prepared(name: str, lines: Callable[[], Iterator[str]]) -> Path:
    """bench/NAME, written from ``lines`` unless it is there."""
    path = WORK / name
    if not path.exists():
        WORK.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        with open(part, "w", encoding="ascii") as out:
            out.writelines(lines())
        part.replace(path)
    return path


def mnist8(name: str) -> Path:
    """MNIST as 8 against the rest, pixels divided by 255 (six digits)."""
    text = {str(v): f"{v / 255:.6g}" for v in range(256)}

    def lines() -> Iterator[str]:
        with open(public(name), encoding="ascii") as file:
            for line in file:
                label, *pairs = line.split()
                split = (pair.partition(":") for pair in pairs)
                yield f"{1 if label == '8' else -1} " + " ".join(f"{i}:{text[v]}" for i, _, v in split) + "\n"

    return prepared(name.replace("mnist", "mnist8"), lines)


def covtype(part: str) -> Path:
    """50,000 rows of covtype to train on and 20,000 others to test on, drawn with a fixed seed; class 1 is +1."""
    drawn = random.Random(0).sample(range(581_012), 70_000)
    wanted = set(drawn[:50_000] if part == "train" else drawn[50_000:])

    def lines() -> Iterator[str]:
        with open(public("covtype.libsvm.binary.scale"), encoding="ascii") as file:
            for number, line in enumerate(file):
                if number in wanted:
                    label, _, rest = line.partition(" ")
                    yield f"{1 if label in ('1', '+1') else -1} {rest}"

    return prepared("covtype50k" if part == "train" else "covtype50k.t", lines)


def artificial(name: str, rows: int, seed: int) -> Path:
    """A set of datasets/artificial.py."""

    def lines() -> Iterator[str]:
        argv = [sys.executable, str(ROOT / "datasets/artificial.py"), name, "--rows", str(rows), "--seed", str(seed)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as maker:
            assert maker.stdout is not None
            yield from maker.stdout

    return prepared(f"{name}-{rows}-{seed}", lines)


@dataclass(frozen=True)
class Case:
    """A training problem, RBF kernel, labels ±1; ``files`` makes (training file, test file)."""

    name: str
    C: float
    gamma: float
    files: Callable[[], tuple[Path, Path]]


CASES = (
    Case("banana", 10, 1, lambda: (artificial("banana", 4000, 1), artificial("banana", 4000, 2))),
    Case("heart", 1, 0.0769231, lambda: (public("heart_scale"), public("heart_scale"))),
    Case("a9a", 1, 0.05, lambda: (public("a9a"), public("a9a.t"))),
    Case("a9a-32", 32, 0.0078125, lambda: (public("a9a"), public("a9a.t"))),
    Case("a9a-100", 100, 0.05, lambda: (public("a9a"), public("a9a.t"))),
    Case("a9a-100-wide", 100, 0.5, lambda: (public("a9a"), public("a9a.t"))),
    Case("ijcnn1", 32, 2, lambda: (public("ijcnn1"), public("ijcnn1.t"))),
    Case("covtype", 3, 1, lambda: (covtype("train"), covtype("test"))),
    Case("mnist8", 1000, 0.005, lambda: (mnist8("mnist"), mnist8("mnist.t"))),
)


def warm_page_cache(*paths: Path) -> None:
    """Reads the files once, so that no tool pays for the disk."""
    for path in paths:
        with open(path, "rb") as file, open(os.devnull, "wb") as nowhere:
            shutil.copyfileobj(file, nowhere, 1 << 20)
