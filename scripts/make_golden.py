"""Writes tests/golden/: models and predictions of the genuine svm-train and svm-predict on small artificial data.

    python scripts/make_golden.py [FOLDER OF THE TOOLS]        default /usr/bin (Debian's libsvm-tools 3.24)

Every file stands for itself: ``three.t`` is the test file of ``three``; ``three.s0t2.model`` the model of ``-s 0 -t 2``, with
``.b1`` in its name where made with ``-b 1``; ``.out`` what svm-predict answers, ``.prob`` what it answers with ``-b 1``;
``.v5`` svm-train's last line with ``-v 5``.
"""

from __future__ import annotations

import math
import random
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
N_TRAIN, N_TEST, N_FEATURES = 24, 16, 4


def main() -> None:
    tools = Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/bin")
    GOLDEN.mkdir(exist_ok=True)
    draw = random.Random(20070101)
    for name, labels in (("two", (1, -1)), ("three", (7, -2, 4)), ("value", ())):
        _write_data(name, labels, draw)
    for kind in range(5):
        data = ("two", "three") if kind < 2 else ("value",) if kind > 2 else ("two",)
        for name in data:
            for kernel in range(5):
                _make(tools, f"gram-{name}" if kernel == 4 else name, kind, kernel, [])
            if kind != 2:
                _make(tools, name, kind, 2, ["-b", "1"])
    _make(tools, "one", 0, 2, [])
    _make_exact(tools)


def _make(tools: Path, name: str, kind: int, kernel: int, more: list[str]) -> None:
    """One model and svm-predict's answers."""
    model = GOLDEN / f"{name}.s{kind}t{kernel}{'.b1' if more else ''}.model"
    given = ["-s", str(kind), "-t", str(kernel), "-n", "0.3", "-g", "0.3", "-r", "0.5", "-d", "2", "-q", *more]
    subprocess.run([tools / "svm-train", *given, GOLDEN / name, model], check=True)
    for flag, suffix in (("0", ".out"), ("1", ".prob")):
        if flag == "0" or more:
            argv = [tools / "svm-predict", "-q", "-b", flag, GOLDEN / f"{name}.t", model, model.with_suffix(suffix)]
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def _make_exact(tools: Path) -> None:
    """``three.exact.model``, weighted and solved to 1e-9, and the last line of cross-validations, ``three.v5`` and so on."""
    given = ["-g", "0.25", "-e", "1e-9", "-w7", "2", "-w4", "0.5", "-q"]
    subprocess.run([tools / "svm-train", *given, GOLDEN / "three", GOLDEN / "three.exact.model"], check=True)
    for k in (2, 5, N_TRAIN):
        argv = [tools / "svm-train", *given, "-v", str(k), GOLDEN / "three"]
        text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
        (GOLDEN / f"three.v{k}").write_text(text.splitlines()[-1] + "\n")


def _write_data(name: str, labels: tuple[int, ...], draw: random.Random) -> None:
    """Overlapping clusters, one a label, or a smooth function with noise; training and test, and both as kernel matrices."""
    rows, answers = [], []
    for r in range(N_TRAIN + N_TEST):
        centre = r % len(labels) if labels else 0
        row = [round(draw.gauss(0.8 * (centre == j), 0.7), 3) * (draw.random() > 0.2) for j in range(N_FEATURES)]
        if r == N_TRAIN:
            row.append(1.5)  # a feature that training never saw
        rows.append(row)
        answers.append(str(labels[centre]) if labels else f"{math.sin(row[0]) + row[1] ** 2 + draw.gauss(0, 0.1):.3f}")
    train = rows[:N_TRAIN]
    sparse = [" ".join([answer, *_pairs(row)]) for answer, row in zip(answers, rows, strict=True)]
    gram = [
        " ".join([answer, f"0:{r + 1}", *(f"{j}:{_kernel_value(row, other):.6f}" for j, other in enumerate(train, 1))])
        for r, (answer, row) in enumerate(zip(answers, rows, strict=True))
    ]
    for file, lines in ((name, sparse), (f"gram-{name}", gram)):
        (GOLDEN / file).write_text("\n".join(lines[:N_TRAIN]) + "\n")
        (GOLDEN / f"{file}.t").write_text("\n".join(lines[N_TRAIN:]) + "\n")
    if name == "two":
        only = [line for line in sparse if line.startswith("-1")]
        (GOLDEN / "one").write_text("\n".join(only[:5]) + "\n")
        (GOLDEN / "one.t").write_text("\n".join(only[5:8]) + "\n")


def _pairs(row: list[float]) -> list[str]:
    return [f"{j}:{value:g}" for j, value in enumerate(row, 1) if value]


def _kernel_value(a: list[float], b: list[float]) -> float:
    """The inner product over the features that both have, plus 0.1."""
    return sum(x * y for x, y in zip(a, b, strict=False)) + 0.1


if __name__ == "__main__":
    main()
