"""Coordinate descent on the dual of a linear machine without a bias, w kept at hand: a step costs the nonzeros of one row.

Solves    min ½‖w‖² − Σα   s.t.  w = Σ α_i y_i x_i,  0 ≤ α ≤ upper
Step      α_i ← clip(α_i − G_i/‖x_i‖², 0, upper_i),   G_i = y_i⟨w, x_i⟩ − 1
Paper     Hsieh, Chang, Lin, Keerthi & Sundararajan, ICML 2008, algorithm 3

A line of ``variables`` (n, 4) is α_i, upper_i, ‖x_i‖², y_i, so that a visit in random order waits for memory once. The α of an
empty row (G = −1) goes to its upper end.

``order`` (n,) holds all examples, the active ones first. A sweep visits these in random order; who is at a bound with a
gradient beyond the extremes of the sweep before goes behind them. Rows that nearly are each other's copies but for the label go
up together by thousands of small steps while all others are settled. So after a sweep the few with a gradient beyond a small
share of the violation, which it has put first, are visited round and round, until they are within it or it has cost as much as
a sweep.
"""

from __future__ import annotations

from math import inf
from typing import Any

from numpy import float64, int64, uint64

from svmkit._jit import compiled, helper
from svmkit.data import Floats, Ints, Rows
from svmkit.engine.linear import ADD, DOT, ENDS, ROWS, add_ones, arrays, dot_ones, places
from svmkit.engine.prefetch import ASK_FOR_ROW, prefetch
from svmkit.engine.rng import put_in_order

#: Visits ahead at which a row's place and values are asked for.
_FAR, _NEAR = 8, 4
#: The busy ones have a gradient beyond this share of the last sweep's violation; at most this share of the active ones is few.
BUSY_SHARE, _FEW = 0.03, 0.25

#: Whole numbers of a descent: how far the sweep is, how many are active, have moved in it and are busy; sweeps so far; how many
#: visits are left for the busy ones, and how far their round is; why the last call ended where visits were left.
AT, ACTIVE, MOVED, BUSY, SWEEPS, SPARE, ROUND, WHY, N_COUNTS = range(9)
#: WHY: the violation is within eps, or nothing has moved, with all examples active; enough visits.
MET, IDLE, ENOUGH = 1, 2, 3
#: From so many sweeps on, each time that they have doubled all variables take part: where rounding keeps the active ones from
#: meeting eps, they would be the only ones for ever.
_LOOK_AFTER = 1024
#: Numbers: the gradients beyond which one at 0, one at its upper end goes behind the active ones; that which makes one busy;
#: the largest and the smallest projected gradient of the sweep; the violation by the last sweep; the largest of the round.
ABOVE, BELOW, BEYOND, MOST, LEAST, VIOLATION, LARGEST, N_NUMBERS = range(8)


@helper()
def _projected(gradient: Any, alpha: Any, upper: Any) -> Any:
    """The part of the gradient along which α may go down the objective."""
    return min(gradient, 0.0) if alpha <= 0.0 else max(gradient, 0.0) if alpha >= upper else gradient


@helper()
def _best(gradient: Any, alpha: Any, upper: Any, norm2: Any) -> Any:
    """α after the step."""
    wanted = alpha - gradient / norm2 if norm2 > 0.0 else -gradient * upper
    return min(max(wanted, 0.0), upper)


@helper()
def _begin_sweep(order: Any, counts: Any, numbers: Any, seed: Any) -> None:
    counts[AT] = counts[MOVED] = counts[BUSY] = 0
    numbers[BEYOND] = BUSY_SHARE * numbers[VIOLATION] if numbers[VIOLATION] > 0.0 else inf
    numbers[MOST], numbers[LEAST] = -inf, inf
    put_in_order(seed, counts[SWEEPS], order[: counts[ACTIVE]])


@helper()
def _end_sweep(order: Any, counts: Any, numbers: Any, seed: Any, eps: Any, shrinking: Any) -> None:
    """Says in WHY if the caller should look, brings variables back, and goes on with the busy ones or with the next sweep."""
    most, least = numbers[MOST], numbers[LEAST]
    numbers[VIOLATION] = max(0.0, max(most, -least))
    met, whole, moved = numbers[VIOLATION] <= eps, counts[ACTIVE] == len(order), counts[MOVED] > 0
    counts[SWEEPS] += 1
    if whole and (met or not moved):
        counts[WHY] = MET if met else IDLE
    doubled = counts[SWEEPS] >= _LOOK_AFTER and counts[SWEEPS] & (counts[SWEEPS] - 1) == 0
    if met or not moved or not shrinking or doubled:
        counts[ACTIVE] = len(order)
        numbers[ABOVE], numbers[BELOW] = inf, -inf
    else:
        numbers[ABOVE] = most if most > 0.0 else inf
        numbers[BELOW] = least if least < 0.0 else -inf
    if not met and moved and counts[BUSY] > 0 and float64(counts[BUSY]) <= _FEW * counts[ACTIVE]:
        counts[SPARE], counts[ROUND], numbers[LARGEST] = counts[ACTIVE], counts[BUSY], inf
    else:
        _begin_sweep(order, counts, numbers, seed)


def _sweep(ends: Any, dot: Any, add: Any, ask_for_row: Any) -> Any:
    @helper()
    def sweep(
        indptr: Any, indices: Any, data: Any, variables: Any, order: Any, counts: Any, numbers: Any, budget: Any, w: Any
    ) -> Any:
        """Goes on with a sweep for at most ``budget`` visits; how many."""
        at, active, busy = counts[AT], counts[ACTIVE], counts[BUSY]
        used = 0
        while at < active and used < budget:
            if at + _FAR < active:
                prefetch(variables, uint64(order[at + _FAR]) * uint64(4))
                ask_for_row(order[at + _FAR], order[at + _NEAR], indptr, indices, data)
            i = uint64(order[at])
            used += 1
            k0, k1 = ends(indptr, i)
            now, upper, norm2, sign = variables[i, 0], variables[i, 1], variables[i, 2], variables[i, 3]
            gradient = sign * dot(indices, data, k0, k1, w) - 1.0
            if (now <= 0.0 and gradient > numbers[ABOVE]) or (now >= upper and gradient < numbers[BELOW]):
                active -= 1
                order[at] = order[active]
                order[active] = i
                continue
            projected = _projected(gradient, now, upper)
            numbers[MOST] = max(numbers[MOST], projected)
            numbers[LEAST] = min(numbers[LEAST], projected)
            if abs(projected) > numbers[BEYOND]:
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
                counts[MOVED] += 1
        counts[AT], counts[ACTIVE], counts[BUSY] = at, active, busy
        return used

    return sweep


def _settle(ends: Any, dot: Any, add: Any, ask_for_row: Any) -> Any:
    @helper()
    def settle(
        indptr: Any, indices: Any, data: Any, variables: Any, order: Any, counts: Any, numbers: Any, budget: Any, w: Any
    ) -> Any:
        """Visits the busy ones at most ``budget`` times; how often, less where they are settled."""
        used = 0
        while used < budget:
            if counts[ROUND] == counts[BUSY]:
                if numbers[LARGEST] <= numbers[BEYOND]:
                    break
                counts[ROUND], numbers[LARGEST] = 0, 0.0
            at = counts[ROUND]
            if at + _FAR < counts[BUSY]:
                prefetch(variables, uint64(order[at + _FAR]) * uint64(4))
                ask_for_row(order[at + _FAR], order[at + _NEAR], indptr, indices, data)
            i = uint64(order[at])
            counts[ROUND] += 1
            used += 1
            k0, k1 = ends(indptr, i)
            now, upper, norm2, sign = variables[i, 0], variables[i, 1], variables[i, 2], variables[i, 3]
            gradient = sign * dot(indices, data, k0, k1, w) - 1.0
            projected = _projected(gradient, now, upper)
            numbers[LARGEST] = max(numbers[LARGEST], abs(projected))
            if projected == 0.0:
                continue
            new = _best(gradient, now, upper, norm2)
            if new != now:
                variables[i, 0] = new
                add(indices, data, k0, k1, (new - now) * sign, w)
        return used

    return settle


def _descend(sweep: Any, settle: Any) -> Any:
    def descend_loop(
        indptr: Any, indices: Any, data: Any, variables: Any, order: Any, counts: Any, numbers: Any, seed: Any, eps: Any,
        shrinking: Any, budget: Any, enough: Any, w: Any,
    ) -> Any:  # fmt: skip
        used = int64(0)
        counts[WHY] = 0
        while used < budget and counts[WHY] == 0:
            left = budget - used
            if counts[SPARE] > 0:
                asked = min(left, counts[SPARE])
                visits = settle(indptr, indices, data, variables, order, counts, numbers, asked, w)
                counts[SPARE] = counts[SPARE] - visits if visits == asked else 0
                if counts[SPARE] == 0:
                    _begin_sweep(order, counts, numbers, seed)
            else:
                visits = sweep(indptr, indices, data, variables, order, counts, numbers, left, w)
                if counts[AT] == counts[ACTIVE]:
                    _end_sweep(order, counts, numbers, seed, eps, shrinking)
                    if used + visits >= enough and counts[WHY] == 0:
                        counts[WHY] = ENOUGH
            used += visits
        return used

    return descend_loop


def _compiled(name: str, rows: str, ends: Any, dot: Any, add: Any, ask_for_row: Any) -> Any:
    loop = _descend(_sweep(ends, dot, add, ask_for_row), _settle(ends, dot, add, ask_for_row))
    return compiled(f"i8({rows}, f8[:, :], i8[:], i8[:], f8[:], i8, f8, i8, i8, i8, f8[:])", name=f"descend_{name}")(loop)


_loops = {form: _compiled(form, rows, ENDS[form], DOT[form], ADD[form], ASK_FOR_ROW[form]) for form, rows in ROWS.items()}
_loops["ones"] = _compiled("ones", ROWS["sparse"], ENDS["sparse"], dot_ones, add_ones, ASK_FOR_ROW["sparse"])


def loop_for(rows: Rows) -> str:
    """The loop that suits ``rows``: by their form, or one that leaves values alone where all are 1, a tenth quicker."""
    return "ones" if rows.form == "sparse" and bool((rows.data == 1.0).all()) else rows.form


@compiled("void(i8[:], i8[:], f8[:], i8)")
def begin(order: Any, counts: Any, numbers: Any, seed: Any) -> None:
    """The first sweep, over all examples."""
    counts[:] = 0
    counts[ACTIVE] = len(order)
    numbers[:] = 0.0
    numbers[ABOVE], numbers[BELOW] = inf, -inf
    _begin_sweep(order, counts, numbers, seed)


def descend(
    loop: str, rows: Rows, variables: Floats, order: Ints, counts: Ints, numbers: Floats, seed: int, eps: float,
    shrinking: bool, budget: int, enough: int, w: Floats,
) -> int:  # fmt: skip
    """Goes on for at most ``budget`` visits by the ``loop``; returns how many it took, fewer where counts[WHY] says so.

    That is at the end of a sweep over all examples that has met ``eps`` (MET) or moved none (IDLE), or of one in which
    ``enough`` visits are reached (ENOUGH); the next sweep has then been begun. Without ``shrinking`` all stay active.
    """
    args = variables, order, counts, numbers, seed, eps, int(shrinking), budget, enough, places(rows, w)
    used: int = _loops[loop](*arrays(rows), *args)
    return used
