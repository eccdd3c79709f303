"""Parts of conjugate subgradient methods: the objective along a line, Wolfe's search, the least-norm point of a hull, the gap.

Along α + t·d, with the responses of α and of d known at every example, the λ-form is a piecewise quadratic in t,

    φ(t) − φ(0) = λ (t·αᵀKd + ½t²·‖d‖²) + Σ w_i [max(0, 1 − m_i − t s_i) − max(0, 1 − m_i)],

m = y∘Kα, s = y∘Kd, ‖d‖² = dᵀKd. So a trial step costs O(examples) and no kernel value.

Wolfe, "A method of conjugate subgradients for minimizing nondifferentiable functions", Mathematical Programming Study 3 (1975).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from svmkit._jit import ORDERED, REASSOCIATED, compiled, helper
from svmkit.data import Floats
from svmkit.errors import UsageError

#: A relative gap below −this is no rounding: the kernel is not positive semidefinite, and nothing is claimed.
_NOISE = 1e-6
#: So often, at most, is a gap looked at again that rounding has made too small.
_MOST_CHECKS = 3
#: The share of the gap that ‖d‖²/2λ must make up, or directions of before are dropped.
FRESH = 0.6
#: A step is first tried at this many times the last one, at most.
_LENGTHEN = 4.0
_MOST_TRIALS = 500
#: An interval this narrow, relative to its upper end, holds a kink that jumps over the wanted slopes.
_NARROW = 1e-9
#: The least-norm point p is found when ⟨g, p⟩ ≥ (1 − this)·‖p‖² for every g.
_NORM_TOLERANCE = 1e-9
_MOST_PAIRS = 10_000
_ROUNDING = 1e-12


@helper(REASSOCIATED)
def _phi(margin: Any, slope: Any, weight: Any, lam: Any, cross: Any, square: Any, t: Any) -> Any:
    """(Σ w·hinge + λ(t·cross + ½t²·square), φ'(t) from the side where a hinge at its corner counts as 0)."""
    loss = 0.0
    steep = 0.0
    for i in range(len(margin)):
        short = 1.0 - margin[i] - t * slope[i]
        counted = weight[i] if short > 0.0 else 0.0
        loss += counted * short
        steep -= counted * slope[i]
    return loss + lam * t * (cross + 0.5 * t * square), steep + lam * (cross + t * square)


@compiled("void(f8[:], f8[:], f8[:], f8, f8, f8, f8, f8, f8, f8, f8, f8[:])", REASSOCIATED)
def _search(
    margin: Any, slope: Any, weight: Any, lam: Any, cross: Any, square: Any,
    first: Any, shortest: Any, longest: Any, flat: Any, decrease: Any, out: Any,
) -> None:  # fmt: skip
    """``search``, not from beyond ``first``; out = (t, the trial that the next subgradient is to be taken at)."""
    before, steep = _phi(margin, slope, weight, lam, cross, square, 0.0)
    low, high, bounded, high_is_good = 0.0, 0.0, False, False
    t = min(first, -steep / (lam * square)) if steep < 0.0 else first
    for _ in range(_MOST_TRIALS):
        value, steep = _phi(margin, slope, weight, lam, cross, square, t)
        good = value - before <= -decrease * square * t
        if good and (abs(steep) <= flat * square or (steep < 0.0 and t >= longest)):
            out[0] = out[1] = t
            return
        if good and steep < 0.0:
            low = t
        else:
            high, bounded, high_is_good = t, True, good
        if bounded and low >= (1.0 - _NARROW) * high:
            break
        t = 0.5 * (low + high) if bounded else min(2.0 * t, longest)
        if t < shortest:
            break
    t = high if high_is_good else low
    out[0] = t
    out[1] = t if t > 0.0 else high


class Line(NamedTuple):
    """φ of this file's top: ``margin`` m, ``slope`` s, ``weight`` w (all (n,)), ``cross`` αᵀKd, ``square`` ‖d‖²."""

    margin: Floats
    slope: Floats
    weight: Floats
    lam: float
    cross: float
    square: float


def search(line: Line, last: float, shortest: float, longest: float, flat: float, decrease: float) -> tuple[float, float]:
    """Wolfe's search: t with φ(t) − φ(0) ≤ −decrease·‖d‖²·t (L) and |φ'(t)| ≤ flat·‖d‖² (R).

    From the minimiser that there were if no hinge had a corner, or four times the ``last`` step if that is less, t doubles
    while φ falls steeply and halves while L fails; then the interval between is bisected. R is asked on both sides, which
    brings t near the minimum; where a kink jumps over it, t is just beyond the kink if that is in L. Returns (t, t) with
    t ≤ ``longest``; or (0, u) where no t ≥ ``shortest`` is in L: the subgradient at the trial u then has
    ⟨g, d⟩ ≥ −flat·‖d‖².
    """
    out = np.empty(2)
    _search(*line, min(longest, _LENGTHEN * last), shortest, longest, flat, decrease, out)
    return float(out[0]), float(out[1])


def check_search(m1: float, m2: float) -> None:
    """Raises UsageError for options m1 and m2, ``flat`` and ``decrease``, with which ``search`` may not end."""
    if not 0 < m2 < m1 < 0.5:
        raise UsageError(f"-O m1={m1:g}, m2={m2:g}: must be 0 < m2 < m1 < 0.5")


def relative_gap(f: float, bound: float) -> float:
    """(f − D)/min(f, 1 − D) of a λ-form, which is 1 at α = 0: the gap as a share of what is left, or of all there is to gain.

    At small C the optimum lies just below 1, and a gap small against f would let α = 0 pass for it.
    """
    return (f - bound) / max(min(f, 1.0 - bound), _ROUNDING)


@dataclass
class GapChecks:
    """Checks of a gap by fresh kernel values, and what they have said: the run is ``done``; or has ``stalled``, since rounding
    hides the rest; or the kernel is ``indefinite``, and there is nothing to claim.

    ``bound`` is the best dual value that they have seen, at ``bound_at``.
    """

    bound: float = 0.0
    bound_at: Floats | None = None
    least: float = np.inf
    count: int = 0
    done: bool = False
    stalled: bool = False
    indefinite: bool = False

    def take(self, f: float, bound: float, bound_at: Floats, eps: float) -> float:
        """One more, at a point of objective f; returns the relative gap."""
        gained = bound > self.bound or f < self.least
        if bound > self.bound:
            self.bound, self.bound_at = bound, bound_at
        self.least, self.count = min(self.least, f), self.count + 1
        gap = relative_gap(f, self.bound)
        self.indefinite, self.done = gap < -_NOISE, -_NOISE <= gap <= eps
        self.stalled = gap > eps and (self.count == _MOST_CHECKS or not gained)
        return gap


@compiled("void(f8[:, :], f8[:], f8[:])", ORDERED)
def _least_norm(gram: Any, theta: Any, inner: Any) -> None:
    """Steps on pairs, ``inner`` = gram·θ brought up to date by each."""
    b = len(theta)
    for _ in range(_MOST_PAIRS):
        square = 0.0
        least = 1e300
        most = -1e300
        towards = 0
        away = 0
        for i in range(b):
            square += theta[i] * inner[i]
            if inner[i] < least:
                least = inner[i]
                towards = i
            if theta[i] > 0.0 and inner[i] > most:
                most = inner[i]
                away = i
        if least >= (1.0 - _NORM_TOLERANCE) * square or most <= least:
            break
        curvature = gram[towards, towards] + gram[away, away] - 2.0 * gram[towards, away]
        step = theta[away]
        if curvature > 0.0:
            step = min(step, (most - least) / curvature)
        theta[towards] += step
        theta[away] -= step
        for i in range(b):
            inner[i] += step * (gram[i, towards] - gram[i, away])


def least_norm(gram: Floats, start: Floats) -> Floats:
    """θ ≥ 0 (b,), Σθ = 1, that makes ‖Σ θ_j g_j‖ least, from ``gram`` ⟨g_i, g_j⟩ (b, b), by steps on pairs from ``start``.

    For b = 2 one step is the closed form. Ends at a point p with ⟨g_j, p⟩ ≥ (1 − 1e-9)‖p‖² for all j, or after 10,000 steps.
    """
    theta = start.copy()
    _least_norm(np.ascontiguousarray(gram), theta, gram @ theta)
    return theta
