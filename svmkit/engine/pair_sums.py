"""Decision values of all pairs of classes, put together from what the support vectors of each class add to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from svmkit import parallel
from svmkit._jit import compiled
from svmkit.data import Floats

#: Neighbours in a line of the cache, and sums that a piece of the work holds at least.
_LINE, _PIECE_SUMS = 8, 1 << 18


def pair_sums(parts: Floats, rho: Floats) -> Floats:
    """f of each pair i < j at each row, (n, pairs): parts[i, :, j − 1] + parts[j, :, i] − rho; ``parts`` (k, n, k − 1)."""
    out = np.empty((parts.shape[1], len(rho)))
    n_pieces = min(parallel.threads(), 1 + out.size // _PIECE_SUMS)
    flat = parts.reshape(len(parts), -1)
    parallel.run_ranges(lambda first, last: _sums(flat, rho, first, last, out), len(out), n_pieces)
    return out


@compiled("void(f8[:, :], f8[:], i8, i8, f8[:, :])")
def _sums(parts: Any, rho: Any, first: Any, last: Any, out: Any) -> None:
    k = len(parts)
    for r in range(first, last):
        here = r * (k - 1)
        for i0 in range(0, k - 1, _LINE):  # a class's part is read as it lies, for some partners at a time
            i1 = min(i0 + _LINE, k - 1)
            for j in range(i0 + 1, k):
                for i in range(i0, min(i1, j)):
                    at = i * (2 * k - i - 1) // 2 + j - i - 1
                    out[r, at] = parts[i, here + j - 1] + parts[j, here + i] - rho[at]
