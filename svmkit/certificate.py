"""Primal, dual, gap and KKT violation of any Solution, whoever trained it.

placeholder
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """How good a solution is, from float64 kernel values: primal ≥ optimum ≥ dual; ``violation`` is m(α) − M(α)."""

    primal: float
    dual: float
    gap: float
    violation: float
