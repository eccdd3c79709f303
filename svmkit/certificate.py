"""Primal, dual, gap and KKT violation of any Solution, whoever trained it, from float64 kernel values as a rule.

For the C-form (problem.py) and any 0 ≤ α ≤ C, with yᵀα = 0 where the bias is free:

    primal = ½‖w‖² + Σ C_i max(0, 1 − y_i f(x_i))   ≥   optimum   ≥   dual = Σ α_i − ½ Σ_ij β_i β_j K_ij,    β_i = y_i α_i

so the gap certifies a model whoever made it; it is that to 0, the dual of α = 0, where α's is less. What rounding may have
added is taken from the dual. Where the solver's last check has float64 kernel values of all that matters, they serve here too.
The violation is that of α: with F = y − Kβ and the box [A_i, B_i] = [min(0, C_i y_i), max(0, C_i y_i)],

    free bias   m − M,  m = max F over β < B,  M = min F over β > A    (Keerthi et al. 2001; LIBSVM's -e)
    no bias     the largest projected gradient: F where β < B, −F where β > A

Coefficients outside the box are clipped on a copy, and the heavier class shrunk to balance. A solution that names no training
rows gets α_i = t C_i where y_i f(x_i) < 1, else 0, with t ≤ 1 for the largest dual, unless it brings its own. An example with
α = 0 well beyond the margin adds nothing to either sum nor to the violation: where most are, float32 kernel values say which.
Kernels that are not positive semidefinite (sigmoid, polynomial of coef0 < 0, or a precomputed one caught with ‖w‖² further
below 0 than rounding puts it) have no gap: nan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan, sqrt
from typing import Any, NamedTuple

import numpy as np

from svmkit.data import Bools, Floats, Ints
from svmkit.engine.kernels import cross_apply, diagonal
from svmkit.engine.layouts import Real
from svmkit.engine.packed import training_precision
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, Bias, Kernel, Problem, Solution

#: Where so many kernel values, and so large a share of all, are of examples with α = 0, a first look at these in float32 is
#: worth it.
_WORTH_A_LOOK, _MOST = 1e7, 0.75
#: A sum of float32 kernel values is clear of what it is compared with by so many of its estimated errors; the share of itself
#: that such a value is typically off by.
_CLEAR, _TYPICAL_ERROR = 20.0, 5e-7
#: Of the gap and the violation from float32 kernel values, as much as this may be what rounding made of them.
_SHARE_OF_ERROR = 0.1


@dataclass(frozen=True)
class Certificate:
    """How good a solution is: primal ≥ optimum ≥ dual, ``gap`` their difference, or primal if dual is below
    0, ``violation`` of the KKT conditions.

    ``noise`` is how far float64 rounding may have moved the violation: 2^−50 Σ|β| max K_ii.
    """

    primal: float
    dual: float
    gap: float
    violation: float
    noise: float = 0.0


def total(certificates: Sequence[Certificate]) -> Certificate:
    """Of the machines of a model together: sums of the objectives and gaps, the largest violation, nan where one is."""
    return Certificate(
        primal=sum(each.primal for each in certificates),
        dual=sum(each.dual for each in certificates),
        gap=sum(each.gap for each in certificates),
        violation=float(np.max([each.violation for each in certificates], initial=0.0)),  # max() would drop a nan
        noise=float(np.max([each.noise for each in certificates], initial=0.0)),
    )


class DualPoints(NamedTuple):
    """Feasible β of several problems, one after another, each with its ``y`` and ``upper``; Kβ, their ``responses``, are from
    float64 kernel values, and so are the K_ii, the ``diagonal``. ``starts`` (k,) is where each problem begins.
    """

    starts: Ints
    y: Floats
    upper: Floats
    kernel: Kernel
    bias: Bias
    diagonal: Floats
    beta: Floats
    responses: Floats


class Certificates(NamedTuple):
    """Those of several problems, each field (k,)."""

    primal: Floats
    dual: Floats
    gap: Floats
    violation: Floats
    noise: Floats

    def of(self, number: int) -> Certificate:
        """That of one of them."""
        return Certificate(*(float(figures[number]) for figures in self))


#: Of a solution whose examples are gone, or whose labels are not known, nothing is certified.
UNKNOWN = Certificate(nan, nan, nan, nan)


@np.errstate(over="ignore", invalid="ignore")  # where kernel values overflow, figures come out infinite or nan
def certify(problem: Problem, solution: Solution, real: Real = "f8") -> Certificate:
    """The certificate of ``solution`` as an answer to ``problem``; b·n kernel values unless it brings its responses.

    From float32 kernel values (``real`` "f4") it takes half the time, and some six digits of what is added up are good. Where
    their errors may be more than a tenth of the gap or the violation, as near the optimum or where C is large, or put ‖w‖²
    below 0, all is done again in float64.
    """
    alpha, responses, dual_responses = _points(problem, solution, real)
    norm2 = _norm2(problem, solution, responses)
    hinge = np.maximum(0.0, 1.0 - problem.y * (responses - solution.rho))
    primal = 0.5 * norm2 + float(problem.upper @ hinge)
    diagonals = np.abs(diagonal(problem.rows, problem.kernel))
    beta = problem.y * alpha
    violation = kkt_violation(problem.y - dual_responses, beta, problem.y, problem.upper, problem.bias)
    curvature, size = float(beta @ dual_responses), float(np.abs(beta).sum())
    spread, largest = float(np.abs(beta) @ np.sqrt(diagonals)), float(diagonals.max(initial=0.0))
    gap = _gap(primal, norm2, curvature, size, spread, largest, problem.kernel)
    found = Certificate(primal, float(gap.dual), float(gap.gap), violation, float(gap.noise))
    if real == "f4" and not problem.kernel.indefinite:
        weights2 = max(float(beta @ beta), float(solution.coef @ solution.coef))
        at_stake = float(problem.upper[hinge > 0.0].sum())
        if _is_blurred(found, largest, weights2, curvature, at_stake):
            return certify(problem, solution)
    return found


def _is_blurred(found: Certificate, largest: float, weights2: float, curvature: float, at_stake: float) -> bool:
    """Whether float32 kernel values may have made more than a share of the gap or the violation.

    From max |K_ii|, Σ coefficient², βᵀKβ and Σ C_i over the examples that miss their margin. Errors of responses do not cancel
    in the primal: the solution was made from the same values.
    """
    of_dual = float32_margin(largest, weights2 * weights2) + _TYPICAL_ERROR * abs(curvature)  # Σ_ij (β_i β_j)² is (Σ β²)²
    of_response = _TYPICAL_ERROR * largest * sqrt(weights2)
    clear = of_dual + of_response * at_stake <= _SHARE_OF_ERROR * found.gap and of_response <= _SHARE_OF_ERROR * found.violation
    return not clear  # also where a figure is nan


@np.errstate(over="ignore", invalid="ignore")
def certify_points(points: DualPoints, rho: Floats) -> Certificates:
    """The certificate of f(x_i) = (Kβ)_i − rho for each of several problems, rho (k,)."""
    starts, y, beta = points.starts, points.y, points.beta
    norm2 = np.add.reduceat(beta * points.responses, starts)
    lengths = np.diff(np.append(starts, len(y)))
    hinge = np.maximum(0.0, 1.0 - y * (points.responses - np.repeat(rho, lengths)))
    primal = 0.5 * norm2 + np.add.reduceat(points.upper * hinge, starts)
    size, diagonals = np.add.reduceat(np.abs(beta), starts), np.abs(points.diagonal)
    spread, largest = np.add.reduceat(np.abs(beta) * np.sqrt(diagonals), starts), np.maximum.reduceat(diagonals, starts)
    gap = _gap(primal, norm2, norm2, size, spread, largest, points.kernel)
    can_rise, can_fall, F = *_movable(beta, y, points.upper), y - points.responses
    most = np.maximum.reduceat(np.where(can_rise, F, -np.inf), starts)
    least = np.minimum.reduceat(np.where(can_fall, F, np.inf), starts)
    return Certificates(primal, gap.dual, gap.gap, _worst(most, least, points.bias), gap.noise)


def certify_nothing(starts: Ints, y: Floats, upper: Floats, kernel: Kernel, bias: Bias) -> Certificates:
    """Those of f = 0 and α = 0, for which no kernel value is needed, as answers to problems that begin at ``starts`` (k,)."""
    none = np.zeros(len(y))
    return certify_points(DualPoints(starts, y, upper, kernel, bias, none, none, none), np.zeros(len(starts)))


class _Gap(NamedTuple):
    dual: Any
    gap: Any
    noise: Any


def _gap(primal: Any, norm2: Any, curvature: Any, size: Any, spread: Any, largest: Any, kernel: Kernel) -> _Gap:
    """Of solutions with these primal objectives and ‖w‖², and dual points of βᵀKβ, Σα = Σ|β|, Σ|β_i| √K_ii and max |K_ii|; nan
    where K is not positive semidefinite.
    """
    noise = float64_noise(size, largest)
    dual = size - 0.5 * (curvature + _hidden(kernel, curvature, spread))
    indefinite = kernel.indefinite | (np.minimum(norm2, curvature) < -noise * size)
    return _Gap(dual, np.where(indefinite, nan, primal - np.maximum(0.0, dual)), noise)


def float64_noise(size: Any, largest_kernel: Any) -> Any:
    """How far rounding may move Σ_j β_j K_ij in float64, from Σ|β| and the largest |K_ii|."""
    return 2.0**-50 * size * largest_kernel


def float32_margin(largest_kernel: float, weights2: float) -> float:
    """How far Σ_j weight_j K_ij from float32 kernel values has to lie from a bound of a few units to be taken to be beyond it.

    From the largest |K_ii| and Σ weight²: errors of kernel values are taken for independent of one another. What they
    have in common moves the sum by that share of itself, which is nothing near such a bound.
    """
    return _CLEAR * _TYPICAL_ERROR * largest_kernel * sqrt(weights2)


def kkt_violation(F: Floats, beta: Floats, y: Floats, upper: Floats, bias: Bias) -> float:
    """The violation defined at the top of this file; 0 where no pair (or coordinate) can move, nan where F has a nan."""
    can_rise, can_fall = _movable(beta, y, upper)
    return float(_worst(F[can_rise].max(initial=-np.inf), F[can_fall].min(initial=np.inf), bias))


def _movable(beta: Floats, y: Floats, upper: Floats) -> tuple[Bools, Bools]:
    """Whether each β can rise, and whether it can fall."""
    ends = upper * y
    return beta < np.maximum(0.0, ends), beta > np.minimum(0.0, ends)


def _worst(most: Any, least: Any, bias: Bias) -> Any:
    """The violation where F is ``most`` at most among those that can rise, at ``least`` among those that can fall."""
    worst = most - least if bias == "free" else np.maximum(most, -least)
    return np.abs(np.maximum(0.0, worst))  # max() would drop a nan; abs() makes 0 of −0


def _hidden(kernel: Kernel, curvature: Any, spread: Any) -> Any:
    """What float64 rounding may have taken from βᵀKβ, where ``spread`` is Σ|β_i| √K_ii; else a bound made of it might be none.

    Every K_ij may be off by a share of √K_ii √K_jj; with the linear kernel w alone is, by that share of Σ|β_i| ‖x_i‖.
    """
    off = 2.0**-50 * spread
    if kernel.kind != LINEAR:
        return off * spread
    return off * (2.0 * np.sqrt(np.maximum(curvature, 0.0)) + off)


def _points(problem: Problem, solution: Solution, real: Real) -> tuple[Floats, Floats, Floats]:
    """A feasible α, the solution's responses, and those of that α."""
    if solution.alpha is None and not solution.own.n:
        return _of_named_rows(problem, solution, real)
    responses, y = _responses(problem, solution, real), problem.y
    if solution.alpha is not None:
        alpha = feasible(problem, solution.alpha)
        return alpha, responses, _own_responses(problem, y * alpha, real)
    alpha = feasible(problem, np.where(y * (responses - solution.rho) < 1.0, problem.upper, 0.0))
    own = _own_responses(problem, y * alpha, real)
    size, curvature = float(alpha.sum()), float((y * alpha) @ own)
    t = size / curvature if curvature > size else 1.0
    return t * alpha, responses, t * own


def _of_named_rows(problem: Problem, solution: Solution, real: Real) -> tuple[Floats, Floats, Floats]:
    """For coefficients of training rows: the feasible α they make, the solution's responses, and those of that α.

    Kernel values serve both.
    """
    alpha = problem.y * solution.expansion(problem.rows)[1]
    inside = feasible(problem, alpha)
    if np.array_equal(inside, alpha):
        beyond = _beyond(problem, solution, alpha) if real == "f8" and solution.responses is None else None
        own = _responses(problem, solution if beyond is None else replace(solution, responses=beyond), real)
        if beyond is not None and _takes_part(problem, problem.y * alpha, own, ~np.isnan(beyond)):
            own = _responses(problem, solution, real)
        return inside, own, own
    weights = problem.y[:, None] * np.stack([alpha, inside], axis=1)
    both = cross_apply(problem.rows, problem.rows, problem.kernel, weights, real)
    return inside, np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


def _beyond(problem: Problem, solution: Solution, alpha: Floats) -> Floats | None:
    """Responses, from float32 kernel values, of examples with α = 0 well beyond the margin; nan for the others.

    None where these are few, or kernel values too coarse in float32.
    """
    unused, kernel = np.flatnonzero(alpha == 0.0), problem.kernel
    few = len(unused) < _MOST * problem.n or len(unused) * len(solution.coef) < _WORTH_A_LOOK
    if few or kernel.kind not in (RBF, POLYNOMIAL) or training_precision(problem.rows, kernel) != "f4":
        return None
    weights = solution.expansion(problem.rows)[1][:, None]
    rough = cross_apply(problem.rows, problem.rows, kernel, weights, "f4", numbers=unused)[:, 0]
    largest = float(diagonal(problem.rows, kernel).max(initial=0.0))
    margin = float32_margin(largest, float(solution.coef @ solution.coef))
    far = problem.y[unused] * (rough - solution.rho) > 1.0 + margin
    responses = np.full(problem.n, np.nan)
    responses[unused[far]] = rough[far]
    return responses


def _takes_part(problem: Problem, beta: Floats, responses: Floats, some: Bools) -> bool:
    """Whether the violation depends on ``some`` examples: they do not where rho lies between the extremes of the others."""
    F, rest = problem.y - responses, ~some
    whole = kkt_violation(F, beta, problem.y, problem.upper, problem.bias)
    return whole != kkt_violation(F[rest], beta[rest], problem.y[rest], problem.upper[rest], problem.bias)


def feasible(problem: Problem, alpha: Floats) -> Floats:
    """α clipped to the box and, where the bias is free, balanced."""
    clipped = np.clip(alpha, 0.0, problem.upper)
    return balanced(clipped, problem.y) if problem.bias == "free" else clipped


def _responses(problem: Problem, solution: Solution, real: Real) -> Floats:
    """The solution's own responses, evaluated where the solver did not have them.

    With the linear kernel always: by way of w they cost little, and sums of kernel values lose more to rounding.
    """
    given = None if problem.kernel.kind == LINEAR else solution.responses
    missing = None if given is None else np.flatnonzero(np.isnan(given))
    if given is not None and missing is not None and not len(missing):
        return given
    basis, weights = solution.expansion(problem.rows)
    found: Floats = cross_apply(problem.rows, basis, problem.kernel, weights[:, None], real, numbers=missing)[:, 0]
    if given is None:
        return found
    responses = given.copy()
    responses[missing] = found
    return responses


def _own_responses(problem: Problem, beta: Floats, real: Real) -> Floats:
    """Kβ."""
    return cross_apply(problem.rows, problem.rows, problem.kernel, beta[:, None], real)[:, 0]


def _norm2(problem: Problem, solution: Solution, responses: Floats) -> float:
    """‖w‖² = Σ_ij coef_i coef_j K_ij."""
    if not solution.own.n:
        return float(solution.coef @ responses[solution.origin])
    return float(solution.coef @ cross_apply(solution.own, solution.own, problem.kernel, solution.coef[:, None])[:, 0])


def balanced(alpha: Floats, y: Floats) -> Floats:
    """α with yᵀα = 0 to rounding, the heavier class scaled down; unchanged where it holds already."""
    positive, negative = float(alpha[y > 0].sum()), float(alpha[y < 0].sum())
    if is_balanced(positive, negative):
        return alpha
    side = 1.0 if positive > negative else -1.0
    factor = min(positive, negative) / max(positive, negative)
    return np.where(y == side, alpha * factor, alpha)


def is_balanced(positive: Any, negative: Any) -> Any:
    """Whether sums of α of the two classes are the same to rounding."""
    return np.abs(positive - negative) <= 1e-10 * (positive + negative)
