"""What LAPACK has and NumPy has not: QR with the columns pivoted, and the solution of triangular equations."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

import numpy as np

from svmkit.data import Floats, Ints


def pivoted_qr(A: Floats) -> tuple[Floats, Ints]:
    """R, upper triangular, and the order of columns in which ``A``, which is lost, is QR; R's diagonal falls in size."""
    dgeqp3 = _lapack().dgeqp3
    work = dgeqp3(A, lwork=-1)[3]
    R, order = dgeqp3(A, lwork=int(work[0]), overwrite_a=True)[:2]
    return np.triu(R), order.astype(np.int64) - 1


def solve_upper(R: Floats, right: Floats) -> Floats:
    """x with Rx = ``right``."""
    found: Floats = _lapack().dtrtrs(R, right)[0]
    return found


@cache
def _lapack() -> Any:
    """SciPy's module of LAPACK's routines, alone: the rest of scipy.linalg takes longer to load than small data to train on."""
    import scipy

    found = PathFinder.find_spec("_flapack", [f"{folder}/linalg" for folder in scipy.__path__])
    if found is None or found.loader is None or "scipy.linalg" in sys.modules:  # a SciPy that keeps it elsewhere, or has it
        return import_module("scipy.linalg.lapack")
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module
