"""What the tables of scripts/reproduce.py have in common: data in two parts, Markdown, verdicts, errors, svm-train's runs."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import ParamSpec

import click
import numpy as np
from bench_data import Missing
from bench_tools import other_path

from svmkit.data import NO_ROWS, Floats, Rows
from svmkit.engine.kernels import cross_apply
from svmkit.problem import Kernel, Solution

P = ParamSpec("P")


def needs_data(command: Callable[P, None]) -> Callable[P, None]:
    """``command``, which ends with exit code 1 and what to do where a data set is missing."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except Missing as reason:
            click.echo(str(reason), err=True)
            sys.exit(1)

    return run


@dataclass(frozen=True)
class Split:
    """Rows and labels ±1, to train on and to test on."""

    rows: Rows
    y: Floats
    test_rows: Rows
    test_y: Floats


def show(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table in Markdown, each row as it comes."""
    click.echo(f"{_line(columns)}\n{'|---' * len(columns)}|")
    for cells in rows:
        click.echo(_line(cells))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def error_on(rows: Rows, y: Floats, kernel: Kernel, found: Solution, training: Rows = NO_ROWS) -> float:
    """The share of ``rows`` (labels ``y`` ±1) that a solution gets wrong; f = 0 counts as −1.

    ``training`` are its training rows, where these are its basis.
    """
    basis, weights = found.expansion(training)
    decision = cross_apply(rows, basis, kernel, weights[:, None])[:, 0] - found.rho
    return float(np.mean((decision > 0) != (y > 0)))


@dataclass(frozen=True)
class Peer:
    """What svm-train took and reached: seconds of its process, its support vectors, the share of test rows it gets wrong."""

    seconds: float
    n_support: int
    error: float


def by_libsvm(split: Split, C: float, gamma: float, cache_mb: float) -> Peer | None:
    """svm-train and svm-predict with the rbf kernel, where they are installed."""
    train, predict = other_path("svm-train"), other_path("svm-predict")
    if train is None or predict is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        data, test, model, out = (Path(folder) / name for name in ("data", "test", "model", "out"))
        write(data, split.rows, split.y)
        write(test, split.test_rows, split.test_y)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([train, "-q", "-c", f"{C:g}", "-g", f"{gamma:g}", "-m", f"{cache_mb:g}", data, model], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([predict, test, model, out], check=True, capture_output=True)
        (said,) = (text for text in model.read_text("ascii").splitlines() if text.startswith("total_sv "))
        wrong = float(np.mean(np.loadtxt(out, ndmin=1) != split.test_y))
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Peer(seconds, int(said.split()[1]), wrong)


def write(path: Path, rows: Rows, y: Floats) -> None:
    """LIBSVM text that reads back exactly."""
    with open(path, "w", encoding="ascii") as out:
        for i, label in enumerate(y.tolist()):
            here = slice(rows.indptr[i], rows.indptr[i + 1])
            pairs = zip(rows.indices[here].tolist(), rows.data[here].tolist(), strict=True)
            out.write(f"{label:g} {' '.join(f'{k}:{v!r}' for k, v in pairs)}\n")
