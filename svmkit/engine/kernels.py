"""The kernel engine (plain NumPy until the fused loops are in)."""

from __future__ import annotations

import numpy as np

from svmkit.data import Floats, Rows
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, Kernel


def cross_apply(left: Rows, basis: Rows, kernel: Kernel, weights: Floats) -> Floats:
    """K(left, basis) @ weights in float64, (left.n, weights.shape[1]); the block is never stored."""
    if kernel.kind == PRECOMPUTED:
        return left.gram[:, basis.serial - 1] @ weights
    width = max(left.n_features, basis.n_features) + 1
    A, B = (np.zeros((r.n, width)) for r in (left, basis))
    A[:, : left.n_features + 1], B[:, : basis.n_features + 1] = left.to_dense(), basis.to_dense()
    dot = A @ B.T
    if kernel.kind == LINEAR:
        return dot @ weights
    if kernel.kind == RBF:
        return np.exp(-kernel.gamma * np.maximum((A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * dot, 0)) @ weights
    arg = kernel.gamma * dot + kernel.coef0
    values = arg**kernel.degree if kernel.kind == POLYNOMIAL else np.tanh(arg)
    product: Floats = values @ weights
    return product
