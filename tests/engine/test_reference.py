"""The reference kernel against the definition, and against LIBSVM's order of operations spelled out in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracle import dense_kernel
from zoo import points, precomputed

from svmkit._jit import compiled
from svmkit.data import Floats, Ints, Rows
from svmkit.engine import reference
from svmkit.engine.reference import Reference, fill_row
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, SIGMOID, Kernel

KERNELS = [
    Kernel(LINEAR),
    Kernel(RBF, 0.3),
    Kernel(SIGMOID, 0.1, -0.4),
    *(Kernel(POLYNOMIAL, 0.3, 0.7, degree) for degree in (0, 1, 2, 3, 5, 8)),
]


@compiled(f"void({reference.REFERENCE_TYPES}, i8, i8[:], f8[:])")
def _kernel_row(kind, gamma, coef0, degree, data, indices, indptr, sqnorm, gram, serial, scatter, i, others, out):  # type: ignore[no-untyped-def]
    ref = Reference(kind, gamma, coef0, degree, data, indices, indptr, sqnorm, gram, serial, scatter)
    fill_row(ref, i, others, 0, len(others), out)


def kernel_row(prepared: Reference, i: int, others: Ints) -> Floats:
    """K(x_i, x_j) for j in ``others``, as ``fill_row`` gives them to compiled code."""
    out = np.empty(len(others))
    _kernel_row(*prepared, i, others, out)
    return out


def rows_with_everything() -> Rows:
    """Sparse rows, an empty one, a spelled-out zero, feature 0, a last column that only one row has."""
    X, _ = points(20, 12, seed=1, density=0.4)
    X[3] = 0.0
    X[5, 11], X[:5, 11], X[6:, 11] = 2.5, 0.0, 0.0
    rows = Rows.from_dense(X)
    data, indices = rows.data.copy(), rows.indices - 1
    data[4] = 0.0
    return rows._replace(data=data, indices=indices.astype(np.int32))


def plain_value(rows: Rows, i: int, j: int, kernel: Kernel) -> float:
    """One kernel value, operation by operation."""

    def dot(a: int, b: int) -> float:
        left = {int(rows.indices[t]): float(rows.data[t]) for t in range(rows.indptr[a], rows.indptr[a + 1])}
        right = {int(rows.indices[t]): float(rows.data[t]) for t in range(rows.indptr[b], rows.indptr[b + 1])}
        total = 0.0
        for index in sorted(left.keys() & right.keys()):
            total += left[index] * right[index]
        return total

    if kernel.kind == LINEAR:
        return dot(i, j)
    if kernel.kind == RBF:
        return math.exp(-kernel.gamma * (dot(i, i) + dot(j, j) - 2 * dot(i, j)))
    base, value = kernel.gamma * dot(i, j) + kernel.coef0, 1.0
    if kernel.kind == SIGMOID:
        return math.tanh(base)
    for bit in reversed(f"{kernel.degree:b}"):
        value = value * base if bit == "1" else value
        base *= base
    return value


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.name} {kernel.degree}")
def test_values_bit_for_bit(kernel: Kernel) -> None:
    rows = rows_with_everything()
    prepared = reference.prepare(rows, kernel)
    everyone = np.arange(rows.n)
    for i in everyone:
        expected = [plain_value(rows, i, j, kernel) for j in everyone]
        assert kernel_row(prepared, i, everyone).tolist() == expected
    assert reference.diagonal(prepared).tolist() == [plain_value(rows, i, i, kernel) for i in everyone]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.name} {kernel.degree}")
def test_values_by_definition(kernel: Kernel) -> None:
    rows = rows_with_everything()
    K = dense_kernel(rows, rows, kernel)
    prepared = reference.prepare(rows, kernel)
    found = np.array([kernel_row(prepared, i, np.arange(rows.n)) for i in range(rows.n)])
    np.testing.assert_allclose(found, K, rtol=1e-12, atol=1e-14)


def test_others_in_any_order_and_number() -> None:
    rows = rows_with_everything()
    prepared = reference.prepare(rows, Kernel(RBF, 0.3))
    row = kernel_row(prepared, 2, np.arange(rows.n))
    chosen = np.array([7, 2, 2, 19, 0])
    assert kernel_row(prepared, 2, chosen).tolist() == row[chosen].tolist()
    assert kernel_row(prepared, 2, chosen[:0]).tolist() == []
    assert not prepared.scatter.any()


def test_precomputed_values_go_by_serial() -> None:
    K = np.arange(36.0).reshape(6, 6)
    whole = precomputed(K, np.ones(6), 1.0)
    part = whole.rows.take(np.array([4, 1, 3]))
    prepared = reference.prepare(part, whole.kernel)
    assert kernel_row(prepared, 0, np.array([2, 0, 1])).tolist() == [K[4, 3], K[4, 4], K[4, 1]]
    assert reference.diagonal(prepared).tolist() == [K[4, 4], K[1, 1], K[3, 3]]


def test_room_is_for_features_that_occur() -> None:
    rows = Rows(np.array([1.0, 2.0, 3.0]), np.array([1, 2**31 - 1, 2**31 - 1], np.int32), np.array([0, 2, 3]), 2**31 - 1)
    prepared = reference.prepare(rows, Kernel(LINEAR))
    assert len(prepared.scatter) == 3
    assert kernel_row(prepared, 0, np.arange(2)).tolist() == [5.0, 6.0]
