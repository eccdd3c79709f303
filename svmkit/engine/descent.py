"""Coordinate descent on the dual of a linear machine without a bias, w kept at hand: a step costs the nonzeros of one row.

Solves    min ½‖w‖² − Σα   s.t.  w = Σ α_i y_i x_i,  0 ≤ α ≤ upper
Step      α_i ← clip(α_i − G_i/‖x_i‖², 0, upper_i),   G_i = y_i⟨w, x_i⟩ − 1
Paper     Hsieh, Chang, Lin, Keerthi & Sundararajan, ICML 2008, algorithm 3

A line of ``variables`` (n, 4) is α_i, upper_i, ‖x_i‖², y_i, so that a visit in random order waits for memory once. The α of an
empty row (G = −1) goes to its upper end.
"""

from __future__ import annotations

from typing import Any

from numpy import uint64

from svmkit._jit import compiled, helper
from svmkit.data import Floats, Ints, Rows
from svmkit.engine.linear import ADD, DOT, ROWS, arrays, places
from svmkit.engine.prefetch import ASK_FOR_ROW, prefetch

#: Visits ahead at which a row's place and values are asked for.
_FAR, _NEAR = 8, 4
_ONE = uint64(1)


@helper()
def _projected(gradient: Any, alpha: Any, upper: Any) -> Any:
    """The part of the gradient along which α may go down the objective."""
    return min(gradient, 0.0) if alpha <= 0.0 else max(gradient, 0.0) if alpha >= upper else gradient


@helper()
def _best(gradient: Any, alpha: Any, upper: Any, norm2: Any) -> Any:
    """α after the step."""
    wanted = alpha - gradient / norm2 if norm2 > 0.0 else -gradient * upper
    return min(max(wanted, 0.0), upper)


def _sweep_loop(dot: Any, add: Any, ask_for_row: Any) -> Any:
    def sweep_loop(
        indptr: Any, indices: Any, data: Any, variables: Any, order: Any, place: Any, bounds: Any, budget: Any, w: Any
    ) -> Any:
        at, active, busy = place[0], place[1], place[3]
        used = 0
        while at < active and used < budget:
            if at + _FAR < active:
                prefetch(variables, uint64(order[at + _FAR]) * uint64(4))
                ask_for_row(order[at + _FAR], order[at + _NEAR], indptr, indices, data)
            i = uint64(order[at])
            used += 1
            k0, k1 = indptr[i], indptr[i + _ONE]
            now, upper, norm2, sign = variables[i, 0], variables[i, 1], variables[i, 2], variables[i, 3]
            gradient = sign * dot(indices, data, k0, k1, w) - 1.0
            if (now <= 0.0 and gradient > bounds[0]) or (now >= upper and gradient < bounds[1]):
                active -= 1
                order[at] = order[active]
                order[active] = i
                continue
            projected = _projected(gradient, now, upper)
            bounds[3] = max(bounds[3], projected)
            bounds[4] = min(bounds[4], projected)
            if abs(projected) > bounds[2]:
                order[at] = order[busy]
                order[busy] = i
                busy += 1
            at += 1
            if projected == 0.0:
                continue
            new = _best(gradient, now, upper, norm2)
            if new != now:
                variables[i, 0] = new
                add(indices, data, k0, k1, (new - now) * sign, w)
                place[2] += 1
        place[0], place[1], place[3] = at, active, busy
        return used

    return sweep_loop


def _settle_loop(dot: Any, add: Any) -> Any:
    def settle_loop(
        indptr: Any, indices: Any, data: Any, variables: Any, few: Any, place: Any, largest: Any, goal: Any, budget: Any, w: Any
    ) -> Any:
        used = 0
        while used < budget:
            if place[0] == len(few):
                if largest[0] <= goal:
                    break
                place[0], largest[0] = 0, 0.0
            i = uint64(few[place[0]])
            place[0] += 1
            used += 1
            k0, k1 = indptr[i], indptr[i + _ONE]
            now, upper, norm2, sign = variables[i, 0], variables[i, 1], variables[i, 2], variables[i, 3]
            gradient = sign * dot(indices, data, k0, k1, w) - 1.0
            projected = _projected(gradient, now, upper)
            largest[0] = max(largest[0], abs(projected))
            if projected == 0.0:
                continue
            new = _best(gradient, now, upper, norm2)
            if new != now:
                variables[i, 0] = new
                add(indices, data, k0, k1, (new - now) * sign, w)
        return used

    return settle_loop


_sweep = {
    form: compiled(f"i8({rows}f8[:, :], i8[:], i8[:], f8[:], i8, f8[:])", name=f"sweep_{form}")(
        _sweep_loop(DOT[form], ADD[form], ASK_FOR_ROW[form])
    )
    for form, rows in ROWS.items()
}
_settle = {
    form: compiled(f"i8({rows}f8[:, :], i8[:], i8[:], f8[:], f8, i8, f8[:])", name=f"settle_{form}")(
        _settle_loop(DOT[form], ADD[form])
    )
    for form, rows in ROWS.items()
}


def sweep(rows: Rows, variables: Floats, order: Ints, place: Ints, bounds: Floats, budget: int, w: Floats) -> int:
    """Visits the rows ``order[at … active − 1]``, at most ``budget`` of them, and returns how many.

    ``place`` is at, active, moved, busy and stays up to date: ``moved`` counts steps. Of ``bounds`` (5,) the first two say who
    goes behind the active ones: a variable at 0 with a gradient above bounds[0], one at its upper end with one below bounds[1].
    Those whose projected gradient is beyond ±bounds[2] go to the front: order[:busy]. bounds[3:5] gather the largest and the
    smallest projected gradient met.
    """
    used: int = _sweep[rows.form](*arrays(rows), variables, order, place, bounds, budget, places(rows, w))
    return used


def settle(
    rows: Rows, variables: Floats, few: Ints, place: Ints, largest: Floats, goal: float, budget: int, w: Floats
) -> int:  # fmt: skip
    """Visits the rows ``few`` round and round, at most ``budget`` times in all, and returns how often.

    Ends with a round that met no projected gradient beyond ±``goal``. ``place[0]`` is how far the round has come,
    ``largest[0]`` the largest it has met so far; a round is begun at len(few) and inf.
    """
    used: int = _settle[rows.form](*arrays(rows), variables, few, place, largest, goal, budget, places(rows, w))
    return used
