"""Runs ``svmkit`` as a shell would, and writes the small files that its tests need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from svmkit.cli.comparison import HEADER
from svmkit.cli.main import main

TRAIN_KEYS = {
    *("status", "seconds", "iterations", "kernel_evaluations", "n_support"),
    *("primal", "dual", "gap", "violation", "model", "machines"),
}


def svmkit(*args: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """``svmkit args`` inside this process, with what it writes to the real streams: quick, where no pipe or limit matters."""
    texts = [str(arg) for arg in args]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, _streams(out.fileno(), err.fileno()), _folder(cwd):
        code = main(texts)
        sys.stdout.flush()
        sys.stderr.flush()
        contents = []
        for file in (out, err):
            file.seek(0)
            contents.append(file.read().decode())
    assert "Traceback" not in contents[1]
    return subprocess.CompletedProcess(texts, code, *contents)


@contextmanager
def _streams(out: int, err: int) -> Iterator[None]:
    """Standard output and error go to ``out`` and ``err``, for Python and for the system; standard input is empty."""
    with open(os.devnull, "rb") as null:
        kept = [os.dup(number) for number in range(3)]
        python = sys.stdout, sys.stderr
        for number, descriptor in enumerate((null.fileno(), out, err)):
            os.dup2(descriptor, number)
    with open(1, "w", closefd=False) as stdout, open(2, "w", closefd=False) as stderr:
        sys.stdout, sys.stderr = stdout, stderr
        try:
            yield
        finally:
            sys.stdout, sys.stderr = python
    for number, descriptor in enumerate(kept):
        os.dup2(descriptor, number)
        os.close(descriptor)


@contextmanager
def _folder(path: Path | None) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(path or before)
    try:
        yield
    finally:
        os.chdir(before)


def process(
    *args: object, stdin: bytes = b"", stdout: int = subprocess.PIPE, before: Callable[[], None] | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    """``svmkit args`` as a process of its own, standard input a pipe; ``before`` runs in it first."""
    done = subprocess.run(
        [sys.executable, "-m", "svmkit", *map(str, args)],
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **env},
        preexec_fn=before,
        timeout=120,
        check=False,
    )
    text = subprocess.CompletedProcess(done.args, done.returncode, (done.stdout or b"").decode(), done.stderr.decode())
    assert "Traceback" not in text.stderr
    return text


def strict_json(text: str) -> dict[str, Any]:
    """The one JSON object that ``text`` is; NaN and Infinity are refused."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    report = json.loads(text, parse_constant=refuse)
    assert isinstance(report, dict)
    return report


def write_blobs(path: Path, n: int = 60, classes: tuple[int, ...] = (1, -1), d: int = 4, seed: int = 0) -> Path:
    """Overlapping Gaussian clouds, one a class, as a LIBSVM file."""
    draw = np.random.default_rng(seed)
    label = draw.integers(len(classes), size=n)
    label[: len(classes)] = np.arange(len(classes))
    centres = np.random.default_rng(7).normal(size=(len(classes), d))
    X = centres[label] + draw.normal(size=(n, d))
    lines = (
        f"{classes[c]} " + " ".join(f"{j + 1}:{x:.4g}" for j, x in enumerate(row)) for c, row in zip(label, X, strict=True)
    )
    path.write_text("\n".join(lines) + "\n")
    return path


def wait_for(there: Callable[[], bool], running: subprocess.Popen[Any] | None = None) -> None:
    """Waits until something is there, for 100 seconds at most, and while ``running`` runs."""
    deadline = time.monotonic() + 100
    while not there():
        assert running is None or running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def rows_of(text: str) -> list[dict[str, str]]:
    """The lines of the one Markdown table in ``text``."""
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("|")]
    assert tuple(cells[0]) == HEADER
    assert set("".join(cells[1])) <= set("-: ")
    return [dict(zip(HEADER, line, strict=True)) for line in cells[2:]]
