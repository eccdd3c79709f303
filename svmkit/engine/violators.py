"""Compiled loops of Pegasos where each step draws from the violators, all responses being kept (solvers/pegasos_violators.py).

    min  (λ/2)‖w‖² + (1/n) Σ ω_i max(0, 1 − y_i ⟨w, φ(x_i)⟩)

One step, with V the examples whose margin is below 1 and W = Σ_V ω_i; k of V are drawn, each as likely as its ω:

    w ← (1 − 1/t) w + (W/(λ n t k)) Σ_drawn y_i φ(x_i),     then as in subgradient.py

w = scale·v; ``f`` (n,) are the responses of v, ``beta`` (n,) its coefficients; the average is that of subgradient.py's linear
form, S·beta − late. A draw tries random examples, by the step's number, until one is of V: as long as that one stays in V, and
those tried before it outside, the draw is the same, so that most of those to come can be foretold.
"""

from __future__ import annotations

from typing import Any

from numpy import float64, int64

from svmkit._jit import REASSOCIATED, both_precisions, compiled, helper
from svmkit.engine.kept_rows import want, wanted
from svmkit.engine.linear import SMALLEST_SCALE
from svmkit.engine.rng import below, uniform
from svmkit.engine.subgradient import SCALE, SCALE_SUM, V_NORM2, T, renew, settle

#: Places in ``counts`` beside those of subgradient.py: rows first used; steps.
ROWS, STEP, N_COUNTS = range(3, 6)
#: Draws of one step are numbered from multiples of this.
_DRAWS = int64(1) << int64(32)
_LAST = _DRAWS - 1


@helper(REASSOCIATED)
def _mass_of(f: Any, y: Any, omega: Any, scale: Any) -> Any:
    """The weight of the violators."""
    mass = 0.0
    for i in range(len(f)):
        mass += omega[i] if y[i] * f[i] * scale < 1.0 else 0.0
    return mass


@helper()
def _draw(f: Any, y: Any, omega: Any, scale: Any, total: Any, heaviest: Any, seed: Any, step: Any, number: Any) -> Any:
    """The violator that draw ``number`` of ``step`` falls on; ``total``: the weight of all, ``heaviest``: the most of one."""
    n, first = len(f), number * _DRAWS
    for trial in range(16 + n // 64):
        place = first + 2 * trial
        i = below(seed, step, place, n)
        if y[i] * f[i] * scale < 1.0 and uniform(seed, step, place + 1) * heaviest < omega[i]:
            return i
    left, last = total * uniform(seed, step, first + _LAST), -1
    for i in range(n):
        if omega[i] > 0.0 and y[i] * f[i] * scale < 1.0:
            left -= omega[i]
            last = i
            if left < 0.0:
                break
    return last


@compiled("i8(f8[:], f8[:], f8[:], f8, f8[:], i8[:], i8[:], i8, i8, i8, i8[:])")
def foresee(
    f: Any, y: Any, omega: Any, heaviest: Any, sums: Any, counts: Any, slot_of: Any, seed: Any, k: Any, steps: Any, found: Any
) -> Any:  # fmt: skip
    """The first examples that the next ``steps`` steps would draw, were nothing to change, and that have no row; how many."""
    scale, count = sums[SCALE], 0
    total = _mass_of(f, y, omega, scale)
    if total > 0.0:
        for step in range(counts[STEP], counts[STEP] + steps):
            for number in range(k):
                i = _draw(f, y, omega, scale, total, heaviest, seed, step, number)
                count = want(i, slot_of, found, count)
    return wanted(slot_of, found, count)


@helper(REASSOCIATED)
def _add_row(f: Any, row: Any, factor: Any, constant: Any) -> None:
    for i in range(len(f)):
        f[i] += factor * (float64(row[i]) + constant)


def _take_steps(
    K: Any, slot_of: Any, unused: Any, y: Any, omega: Any, heaviest: Any, f: Any, beta: Any, late: Any, sums: Any, counts: Any,
    drawn: Any, constant: Any, seed: Any, lam: Any, average: Any, project: Any, hold: Any, budget: Any,
) -> Any:  # fmt: skip
    """At most ``budget`` steps, ending early before one that draws an example whose row is not in ``K``; how many.

    ``constant`` is added to every kernel value; ``late`` (n,), or of length 0 where no average is kept.
    """
    n, k = len(f), len(drawn)
    for done in range(budget):
        total = _mass_of(f, y, omega, sums[SCALE])
        hits = k if total > 0.0 else 0
        for number in range(hits):
            drawn[number] = _draw(f, y, omega, sums[SCALE], total, heaviest, seed, counts[STEP], number)
            if slot_of[drawn[number]] < 0:
                return done
        t = counts[T]
        if t > 1:
            sums[SCALE] *= 1.0 - 1.0 / t
        for number in range(hits):
            i = drawn[number]
            slot, size = slot_of[i], y[i] * total / (lam * n * t * k * sums[SCALE])
            sums[V_NORM2] += size * (2.0 * f[i] + size * (float64(K[slot, i]) + constant))
            _add_row(f, K[slot], size, constant)
            beta[i] += size
            if len(late) > 0:
                late[i] += size * sums[SCALE_SUM]
            counts[ROWS] += unused[slot]
            unused[slot] = 0
        settle(sums, counts, hits, lam, average, project, hold)
        counts[STEP] += 1
        if sums[SCALE] < SMALLEST_SCALE:
            f *= sums[SCALE]
            renew(beta, late, sums)
    return budget


take_steps = both_precisions(
    _take_steps,
    "i8(R[:, :], i8[:], i8[:], f8[:], f8[:], f8, f8[:], f8[:], f8[:], f8[:], i8[:], i8[:], f8, i8, f8, i8, i8, i8, i8)",
    False,
)
