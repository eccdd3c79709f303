"""What the tables of scripts/reproduce.py have in common: data in two parts, Markdown, verdicts, test errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from svmkit.data import Floats, Rows
from svmkit.engine.kernels import cross_apply
from svmkit.problem import Kernel, Solution


@dataclass(frozen=True)
class Split:
    """Rows and labels ±1, to train on and to test on."""

    rows: Rows
    y: Floats
    test_rows: Rows
    test_y: Floats


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def heading(columns: Sequence[str]) -> str:
    return f"{line(columns)}\n{'|---' * len(columns)}|"


def verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def error_on(rows: Rows, y: Floats, kernel: Kernel, found: Solution) -> float:
    """The share of ``rows`` (labels ``y`` ±1) that a solution gets wrong; f = 0 counts as −1."""
    decision = cross_apply(rows, found.basis, kernel, found.coef[:, None])[:, 0] - found.rho
    return float(np.mean((decision > 0) != (y > 0)))
