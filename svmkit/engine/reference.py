"""Kernel values in float64, in LIBSVM's own order of operations: what the fast engine is tested against, and what the pair
solver works with.

A dot product is the plain sum over common indices in ascending order; rbf is exp(−gamma (‖x‖² + ‖z‖² − 2 x·z)); powers are by
repeated squaring. Nothing is reordered or fused, so the values are the same on every machine with the same libm. Row i is
scattered into a dense buffer with a place for each feature that occurs, so that its products with other rows cost only their
own non-zeros.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit._jit import compiled, helper
from svmkit.data import Floats, Ints, Rows
from svmkit.features import narrowed
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, Kernel

#: The types of ``Reference``'s fields, for signatures of compiled functions that take them one by one.
REFERENCE_TYPES = "i8, f8, f8, i8, f8[:], i4[:], i8[:], f8[:], f8[:, :], i8[:], f8[:]"


class Reference(NamedTuple):
    """A kernel over rows, as compiled code takes it. ``scatter``, as long as the features that occur and one more, is scratch,
    all zero between calls.
    """

    kind: int
    gamma: float
    coef0: float
    degree: int
    data: Floats
    indices: NDArray[np.int32]
    indptr: Ints
    sqnorm: Floats
    gram: Floats
    serial: Ints
    scatter: Floats


def prepare(rows: Rows, kernel: Kernel) -> Reference:
    """The kernel over ``rows``; one thread at a time may use it."""
    rows, names = narrowed(rows)
    sqnorm = np.zeros(rows.n)
    _sqnorms(rows.data, rows.indptr, sqnorm)
    return Reference(
        kind=kernel.kind,
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        degree=kernel.degree,
        data=rows.data,
        indices=rows.indices,
        indptr=rows.indptr,
        sqnorm=sqnorm,
        gram=rows.gram,
        serial=rows.serial,
        scatter=np.zeros(len(names) + 1),
    )


def diagonal(reference: Reference) -> Floats:
    """K(x_i, x_i) for every row."""
    out = np.empty(len(reference.sqnorm))
    _diagonal(*reference, out)
    return out


@helper()
def power(base, exponent):  # type: ignore[no-untyped-def]
    """base^exponent by repeated squaring; 1 for exponent 0."""
    result, square = 1.0, base
    while exponent > 0:
        if exponent % 2 == 1:
            result *= square
        square *= square
        exponent //= 2
    return result


@helper()
def from_dot(ref, dot, sqnorm_i, sqnorm_j):  # type: ignore[no-untyped-def]
    """The kernel value of two rows with this dot product and these squared norms."""
    if ref.kind == LINEAR:
        return dot
    if ref.kind == RBF:
        return math.exp(-ref.gamma * (sqnorm_i + sqnorm_j - 2.0 * dot))
    if ref.kind == POLYNOMIAL:
        return power(ref.gamma * dot + ref.coef0, ref.degree)
    return math.tanh(ref.gamma * dot + ref.coef0)


@helper()
def fill_row(ref, i, others, begin, end, out):  # type: ignore[no-untyped-def]
    """out[k] = K(x_i, x_others[k]) for begin ≤ k < end."""
    if ref.kind == PRECOMPUTED:
        for k in range(begin, end):
            out[k] = ref.gram[i, ref.serial[others[k]] - 1]
        return
    for t in range(ref.indptr[i], ref.indptr[i + 1]):
        ref.scatter[ref.indices[t]] = ref.data[t]
    for k in range(begin, end):
        j = others[k]
        dot = 0.0
        for t in range(ref.indptr[j], ref.indptr[j + 1]):
            dot += ref.data[t] * ref.scatter[ref.indices[t]]
        out[k] = from_dot(ref, dot, ref.sqnorm[i], ref.sqnorm[j])
    for t in range(ref.indptr[i], ref.indptr[i + 1]):
        ref.scatter[ref.indices[t]] = 0.0


@compiled("void(f8[:], i8[:], f8[:])")
def _sqnorms(data, indptr, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        total = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            total += data[t] * data[t]
        out[i] = total


@compiled(f"void({REFERENCE_TYPES}, f8[:])")
def _diagonal(kind, gamma, coef0, degree, data, indices, indptr, sqnorm, gram, serial, scatter, out):  # type: ignore[no-untyped-def]
    ref = Reference(kind, gamma, coef0, degree, data, indices, indptr, sqnorm, gram, serial, scatter)
    for i in range(len(out)):
        if kind == PRECOMPUTED:
            out[i] = gram[i, serial[i] - 1]
        else:
            out[i] = from_dot(ref, sqnorm[i], sqnorm[i], sqnorm[i])
