"""The genuine tools and ours, run alike in one folder, and small data for both."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from golden_data import TOOLS


@dataclass(frozen=True)
class Outcome:
    """What one run left behind; ``files`` are those it made or changed."""

    code: int
    out: str
    err: str
    files: dict[str, bytes]

    @property
    def first_error(self) -> str:
        return next((line for line in self.err.splitlines() if line), "")


def genuine(tool: str, argv: list[str], folder: Path) -> Outcome:
    """Runs LIBSVM's tool in a copy of ``folder``."""
    with _copy(folder) as there:
        done = subprocess.run([TOOLS / tool, *argv], cwd=there, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode(), _changed(folder, there))


def ours(tool: str, argv: list[str], folder: Path) -> Outcome:
    """Runs our tool in a copy of ``folder``, inside this process."""
    main = import_module(f"svmkit.cli.compat.{tool.replace('-', '_')}").main
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with _copy(folder) as there, _inside(there), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(argv)
        said = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
        return Outcome(code, said[0], without_compiling(said[1]), _changed(folder, there))


def without_compiling(err: str) -> str:
    """``err`` less what a first run says."""
    return "".join(line for line in err.splitlines(keepends=True) if "compiling the inner loops" not in line)


def start(tool: str, argv: list[str], folder: Path, **more: object) -> subprocess.Popen[bytes]:
    """Our tool as a process of its own."""
    code = f"import sys; from svmkit.cli.compat.{tool.replace('-', '_')} import main; sys.exit(main())"
    return subprocess.Popen([sys.executable, "-c", code, *argv], cwd=folder, **more)  # type: ignore[call-overload, no-any-return]


@contextlib.contextmanager
def _copy(folder: Path) -> Iterator[Path]:
    there = folder.with_name(f"{folder.name}.run")
    shutil.copytree(folder, there)
    try:
        yield there
    finally:
        shutil.rmtree(there)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _changed(before: Path, after: Path) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in after.iterdir() if path.is_file()}
    return {
        name: content
        for name, content in found.items()
        if not (before / name).exists() or (before / name).read_bytes() != content
    }


def write_data(folder: Path) -> None:
    """two, three and one: classes; value: real targets; gram: a precomputed kernel; eleven, own (a class each) and single:
    fewer examples than folds; and faulty files.
    """
    draw = random.Random(3)
    (folder / "two").write_text(_lines(draw, 60, ["+1", "-1"]))
    (folder / "two.t").write_text(_lines(draw, 25, ["+1", "-1", "3"]))
    (folder / "three").write_text(_lines(draw, 70, ["3", "1", "2"]))
    (folder / "three.t").write_text(_lines(draw, 25, ["1", "2", "3", "1.5"]))
    (folder / "one").write_text(_lines(draw, 8, ["4"]))
    (folder / "value").write_text(_lines(draw, 40, [f"{draw.gauss(0, 2):.4f}" for _ in range(40)]))
    (folder / "gram").write_text(_gram(draw, 20))
    (folder / "eleven").write_text(_lines(draw, 11, ["+1", "-1"]))
    (folder / "own").write_text("1 1:1\n2 1:2\n3 1:3\n")
    (folder / "single").write_text("1.5 1:1\n")
    (folder / "bad").write_text("1 1:2\n-1 1:3\n1 2:1 1:4\n")
    (folder / "blank").write_text("1 1:2\n\n")
    (folder / "empty").write_text("")
    (folder / "folder").mkdir()


def _lines(draw: random.Random, n: int, labels: list[str]) -> str:
    lines = []
    for r in range(n):
        label = labels[r % len(labels)]
        centre = labels.index(label) if len(labels) < 5 else 0
        values = [(i, draw.gauss(0.7 * centre * (-1) ** i, 1.0)) for i in range(1, 6)]
        lines.append(" ".join([label, *(f"{i}:{v:.6g}" for i, v in values if draw.random() < 0.8)]))
    return "".join(f"{line}\n" for line in lines)


def _gram(draw: random.Random, n: int) -> str:
    points = [[draw.gauss(r % 2, 1.0) for _ in range(3)] for r in range(n)]
    lines = []
    for r, x in enumerate(points):
        kernel = (sum(a * b for a, b in zip(x, z, strict=True)) for z in points)
        pairs = (f"{c}:{value:.8g}" for c, value in enumerate(kernel, 1))
        lines.append(" ".join([str(2 * (r % 2) - 1), f"0:{r + 1}", *pairs]))
    return "\n".join(lines) + "\n"
