"""The cases of scripts/bench.py and the files they need, prepared once in bench/ from $SVMKIT_DATA. Standard library only."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
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
        fetched = f"run scripts/fetch.py {name} if --list has it, or"
        raise Missing(f"{path} is not there: {fetched} set SVMKIT_DATA to a folder that has it")
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


def mnist(name: str, rows: int | None = None, one: str = "") -> Path:
    """MNIST, or its first ``rows`` rows, pixels divided by 255 (six digits); ``one`` digit against the rest, or all ten."""
    text = {str(v): f"{v / 255:.6g}" for v in range(256)}

    def lines() -> Iterator[str]:
        with open(public(name), encoding="ascii") as file:
            for line in islice(file, rows):
                label, *pairs = line.split()
                split = (pair.partition(":") for pair in pairs)
                label = label if not one else "1" if label == one else "-1"
                yield f"{label} " + " ".join(f"{i}:{text[v]}" for i, _, v in split) + "\n"

    return prepared(name.replace("mnist", f"mnist{one}-{rows}" if rows else f"mnist{one}"), lines)


def covtype(name: str, wanted: Collection[int]) -> Path:
    """The rows of covtype whose numbers are ``wanted``; class 1 is +1."""

    def lines() -> Iterator[str]:
        with open(public("covtype.libsvm.binary.scale"), encoding="ascii") as file:
            for number, line in enumerate(file):
                if number in wanted:
                    label, _, rest = line.partition(" ")
                    yield f"{1 if label in ('1', '+1') else -1} {rest}"

    return prepared(name, lines)


def covtype50k() -> tuple[Path, Path]:
    """50,000 rows of covtype to train on and 20,000 others to test on, drawn with a fixed seed."""
    drawn = random.Random(0).sample(range(581_012), 70_000)
    return covtype("covtype50k", set(drawn[:50_000])), covtype("covtype50k.t", set(drawn[50_000:]))


def covtype_full() -> tuple[Path, Path]:
    """522,911 rows of covtype to train on, the 58,101 others to test on, drawn with a fixed seed."""
    tested = set(random.Random(0).sample(range(581_012), 58_101))
    return covtype("covtype-full", set(range(581_012)) - tested), covtype("covtype-full.t", tested)


def one_against_rest(name: str) -> Path:
    """A multi-class set with class 1 as +1 and the others as −1."""

    def lines() -> Iterator[str]:
        with open(public(name), encoding="ascii") as file:
            for line in file:
                own, _, rest = line.partition(" ")
                yield f"{1 if own == '1' else -1} {rest}"

    return prepared(name.replace("20news", "20news-1"), lines)


def digits17() -> Path:
    """Numbers of 17 digits, as programs write them that want every double back exactly."""

    def lines() -> Iterator[str]:
        draw = random.Random(1).gauss
        for _ in range(20_000):
            yield "1 " + " ".join(f"{i}:{draw(0, 1):.17g}" for i in range(1, 23)) + "\n"

    return prepared("digits17", lines)


def artificial(name: str, rows: int, seed: int) -> Path:
    """A set of datasets/artificial.py."""

    def lines() -> Iterator[str]:
        argv = [sys.executable, str(ROOT / "datasets/artificial.py"), name, "--rows", str(rows), "--seed", str(seed)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as maker:
            assert maker.stdout is not None
            yield from maker.stdout
        if maker.returncode:
            raise Missing(f"bench/{name}-{rows}-{seed} could not be made: datasets/artificial.py ended with {maker.returncode}")

    return prepared(f"{name}-{rows}-{seed}", lines)


@dataclass(frozen=True)
class Case:
    """A training problem; ``files`` makes (training file, test file). RBF kernel, or linear without a threshold."""

    name: str
    C: float
    gamma: float
    files: Callable[[], tuple[Path, Path]]
    eps: float = 1e-3
    linear: bool = False


def pair(name: str) -> Callable[[], tuple[Path, Path]]:
    """A published set and its test set."""
    return lambda: (public(name), public(f"{name}.t"))


def heart() -> tuple[Path, Path]:
    return public("heart_scale"), public("heart_scale")


def mnist8() -> tuple[Path, Path]:
    return mnist("mnist", one="8"), mnist("mnist.t", one="8")


CASES = (
    Case("banana", 10, 1, lambda: (artificial("banana", 4000, 1), artificial("banana", 4000, 2))),
    Case("heart", 1, 0.0769231, heart),
    Case("a1a", 1, 0.05, pair("a1a")),
    Case("a9a", 1, 0.05, pair("a9a")),
    Case("a9a-32", 32, 0.0078125, pair("a9a")),
    Case("a9a-100", 100, 0.05, pair("a9a")),
    Case("a9a-100-wide", 100, 0.5, pair("a9a")),
    Case("ijcnn1", 32, 2, pair("ijcnn1")),
    Case("covtype", 3, 1, covtype50k),
    Case("mnist8", 1000, 0.005, mnist8),
    Case("mnist10k", 10, 0.02, lambda: (mnist("mnist", rows=10_000), mnist("mnist.t"))),
    Case("covtype-full-.01", 3, 1, covtype_full, eps=0.01),
    Case("covtype-full-.001", 3, 1, covtype_full),
    Case("linear-a9a", 1, 0, pair("a9a"), eps=1e-6, linear=True),
    Case("linear-a9a-.003", 0.003, 0, pair("a9a"), eps=1e-6, linear=True),
    Case("linear-reuters", 1, 0, pair("reuters-acq"), eps=1e-6, linear=True),
    Case("linear-20news", 1, 0, lambda: (one_against_rest("20news"), one_against_rest("20news.t")), 1e-6, True),
)

GROUPS = {
    "table": ("a9a", "a9a-32", "a9a-100", "a9a-100-wide", "ijcnn1", "covtype", "mnist8"),
    "covtype-full": ("covtype-full-.01", "covtype-full-.001"),
    "solvers": ("linear-a9a", "linear-a9a-.003", "linear-reuters", "linear-20news"),
}


def warm_page_cache(*paths: Path) -> None:
    """Reads the files once, so that no tool pays for the disk."""
    for path in paths:
        with open(path, "rb") as file, open(os.devnull, "wb") as nowhere:
            shutil.copyfileobj(file, nowhere, 1 << 20)
