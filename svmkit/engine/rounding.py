"""What rounding does to a kernel value in float32: by this layouts.py chooses between float32 and float64.

A training value stays within ``FLOAT32_ERROR`` √(K_ii K_jj) of the float64 one. What is worked out here, in ulps of 2^−23, is
an estimate: the largest error of all pairs is at most twice it on every set of data that was measured, and on rows made to
round one way (tests/engine/test_rounding.py). Text with six digits that is taken for whole numbers (words.py) has a limit of
its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from svmkit._jit import REASSOCIATED, compiled, helper
from svmkit.data import Rows
from svmkit.engine.larger import larger, smaller
from svmkit.problem import POLYNOMIAL, RBF, SIGMOID, Kernel

#: How far a float32 kernel value may be from the float64 one, in units of √(K_ii K_jj).
FLOAT32_ERROR = 1e-6
#: The same in ulps, for a bound, and for an estimate.
_BOUND = FLOAT32_ERROR * 2.0**23
_ESTIMATE = _BOUND / 2.0
#: Inner products and kernel values beyond are near the ends of float32's range; squares below the last, of float64's.
_LARGEST_PRODUCT, _LARGEST_BASE, _LARGEST_DEGREE = 1e30, 1e7, 4
_SMALLEST_VALUE, _SMALLEST_SQUARE = 1e-30, 1e-290


class _Sums(NamedTuple):
    """Of rows, or of some of their features: the least and the largest Σ x_f², the largest Σ x_f² times ``_roughness``, the
    most nonzeros, the smallest and the largest value.
    """

    least: float
    most: float
    roughness: float
    longest: int
    smallest: float
    largest: float


def products_serve(both: Sequence[Rows], kernel: Kernel, longest_sum: int, exact: bool) -> bool:
    """Whether values from float32 inner products of such rows, ``both`` if they are of two kinds, are near enough; or from
    ``exact`` ones: rbf values are then rounded three times, whatever gamma. At most ``longest_sum`` products are added to one
    another.

    A sigmoid's K_ii may be near 0 where its K_ij are not.
    """
    if kernel.kind == RBF:
        return exact or _rbf_products([_sums(rows, longest_sum) for rows in both], kernel.gamma) <= _ESTIMATE
    if kernel.kind == SIGMOID or (kernel.kind == POLYNOMIAL and kernel.coef0 < 0):
        return False
    gamma, coef0, degree, largest = 1.0, 0.0, 1, _LARGEST_PRODUCT
    if kernel.kind == POLYNOMIAL:
        gamma, coef0, degree, largest = kernel.gamma, kernel.coef0, kernel.degree, _LARGEST_BASE
    with np.errstate(over="ignore", invalid="ignore"):
        bases = gamma * np.concatenate([rows.sqnorms() for rows in both]) + coef0
    base = float(bases.max(initial=0.0))
    if degree > _LARGEST_DEGREE or not base < largest:
        return False
    least = float(bases[bases > 0.0].min(initial=1.0))
    share = (base - coef0) / base if base else 0.0
    longest = 0 if exact else min(longest_sum, max(int(np.diff(rows.indptr).max(initial=0)) for rows in both))
    return min(least, least**degree) >= _SMALLEST_VALUE and _power(degree, share, longest) <= _ESTIMATE


def differences_serve(
    both: Sequence[Rows], kernel: Kernel, dense: tuple[int, ...], longest_sum: int, others_first: bool
) -> bool:
    """Whether rbf values do for which squares of the ``dense`` features' differences take the place of their products;
    ``others_first``: after those of the other features have all been added, and norms taken off.

    Features are rounded before they are taken from each other: at a distance of d that puts gamma·d² off by at most
    2^−24 · 2 gamma·d · 2 max‖x‖, and e^(−gamma d²) by .86 · 2^−23 √gamma·max‖x‖: a bound, not an estimate. The sum of equal
    squares is off by a fifth of an ulp of itself for each, and gamma d² e^(−gamma d²) is .37 at most.
    """
    each = [_sums(rows, longest_sum, without=dense) for rows in both]
    whole = [_sums(rows, longest_sum) for rows in both]
    square = max(0.0, *(sums.most - others.least for sums, others in zip(whole, each, strict=True)))  # no dense part has more
    bound = 0.86 * sqrt(kernel.gamma * square) + 0.37 * 0.2 * min(len(dense), longest_sum)
    others = _rbf_products(each, kernel.gamma, may_be_equal=others_first)
    return bound / _BOUND + others / _ESTIMATE <= 1.0


def _rbf_products(each: Sequence[_Sums], gamma: float, may_be_equal: bool = True) -> float:
    """Ulps that an rbf value from inner products may be off by.

    The exponent is the difference of two halves that grow with gamma·‖x‖², each summed over the nonzeros: rounding leaves
    2^−24 · 2 gamma·max‖x‖² · ``_roughness``. Of equal values in all rows the sums depend on their number alone, and are the
    same for rows that agree: half an ulp for each is the most, whatever gamma (found for 6,000 of them, 1e-4 to 50, and up to
    300 values).
    """
    most = max(sums.most for sums in each)
    values = {value for sums in each if sums.longest for value in (sums.smallest, sums.largest)}
    if gamma * most >= _LARGEST_PRODUCT or (values and most < _SMALLEST_SQUARE):
        return inf
    estimate = gamma * max(sums.roughness for sums in each)
    if may_be_equal and len(values) == 1:
        return min(estimate, 0.5 * max(sums.longest for sums in each) * _ESTIMATE / _BOUND)
    return estimate


@helper()
def _roughness(count: Any) -> Any:
    """How a sum of so many products is rounded: 1 for the products and what is done with the sum; errors that differ grow with
    the root of their number, those of equal products, added again and again, with the number itself.
    """
    return max(1.0 + sqrt(count), 0.25 * count)


def _power(degree: int, share: float, longest: int) -> float:
    """Ulps of a power whose base is, to a ``share``, a sum of ``longest`` products: each of their roundings counts as often as
    the degree says.
    """
    return 0.5 * degree * (1.0 + share * max(sqrt(longest), 0.25 * longest))


def _sums(rows: Rows, longest_sum: int, without: tuple[int, ...] = ()) -> _Sums:
    out, data, left_out = np.empty(6), rows.data.astype(np.float64, copy=False), np.zeros(0, dtype=np.uint8)
    if without:
        left_out = np.zeros(max(rows.n_features, *without) + 1, dtype=np.uint8)
        left_out[list(without)] = 1
    _sum_up(rows.indptr, rows.indices, data, left_out, longest_sum, out)
    return _Sums(float(out[0]), float(out[1]), float(out[2]), int(out[3]), float(out[4]), float(out[5]))


@compiled("void(i8[:], i4[:], f8[:], u1[:], i8, f8[:])", REASSOCIATED)
def _sum_up(indptr: Any, indices: Any, data: Any, left_out: Any, longest_sum: Any, out: Any) -> None:
    """The numbers of ``_Sums``, without features that are ``left_out``, as most are then; where that is empty, of all."""
    least, most, roughness, longest, smallest, largest = 1e300, 0.0, 0.0, 0, 1e300, -1e300
    for r in range(len(indptr) - 1):
        values = data[indptr[r] : indptr[r + 1]]
        square, count = 0.0, len(values)
        if len(left_out) == 0:  # a loop that LLVM makes vector instructions of
            for k in range(len(values)):
                square += values[k] * values[k]
                smallest, largest = smaller(smallest, values[k]), larger(largest, values[k])
        else:  # one that it had better not: without ``larger`` it does not, and is four times as quick
            count = 0
            for k in range(len(values)):
                if not left_out[indices[indptr[r] + k]]:
                    square += values[k] * values[k]
                    count += 1
                    smallest, largest = min(smallest, values[k]), max(largest, values[k])
        least, most = min(least, square), max(most, square)
        roughness = max(roughness, square * _roughness(min(count, longest_sum)))
        longest = max(longest, count)
    out[0], out[1], out[2], out[3], out[4], out[5] = least, most, roughness, longest, smallest, largest
