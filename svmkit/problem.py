"""What is solved, stated once: ``Problem`` (the SVM), ``DualQP`` (its dual as data), ``Solution`` (what a solver found);
``Stream`` is what is known of a problem whose examples come one after another.

C-form, n examples, y_i = ±1, f(x) = ⟨w, φ(x)⟩ − rho:

    min  ½‖w‖² + Σ C_i max(0, 1 − y_i f(x_i))

and its dual, written so that it also holds those of the SVM types still to come (LIBSVM's reduction):

    min  ½ αᵀQα + pᵀα    s.t.  0 ≤ α ≤ upper,   sᵀα = sᵀ(start),   Q_ij = s_i s_j K(row_i, row_j)

with m variables over n rows: ``row_of`` says which row a variable belongs to. Of C-SVC m = n, p = −1 and s = y; in regression
m = 2n. Without a bias the equality is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmkit.config import KERNELS
from svmkit.data import NO_ROWS, Floats, Ints, Rows

#: free: f has a threshold rho that is not penalised (LIBSVM's); none: rho = 0.
Bias = Literal["free", "none"]

LINEAR, POLYNOMIAL, RBF, SIGMOID, PRECOMPUTED = range(5)


class Kernel(NamedTuple):
    """K(x, z): linear x·z, polynomial (gamma x·z + coef0)^degree, rbf exp(−gamma‖x − z‖²), sigmoid tanh(gamma x·z + coef0)."""

    kind: int
    gamma: float = 0.0
    coef0: float = 0.0
    degree: int = 3

    @property
    def name(self) -> str:
        """The name LIBSVM's model files use."""
        return KERNELS[self.kind]

    @property
    def indefinite(self) -> bool:
        """That it is positive semidefinite on some rows only, if on any; of a precomputed one nothing is known."""
        return self.kind == SIGMOID or (self.kind == POLYNOMIAL and self.coef0 < 0 and self.degree > 0)


@dataclass(frozen=True)
class DualQP:
    """The dual as data; all arrays (m,)."""

    sign: Floats
    linear: Floats
    upper: Floats
    start: Floats
    row_of: Ints
    equality: Literal["one", "none"]


@dataclass(frozen=True)
class Problem:
    """One binary C-SVC: ``y`` ±1 (n,), ``upper`` C_i (n,).

    ``start`` (n,) is a feasible α to begin at, 0 where there is none.
    """

    rows: Rows
    y: Floats
    upper: Floats
    kernel: Kernel
    bias: Bias = "free"
    start: Floats | None = None

    @property
    def n(self) -> int:
        """Number of examples."""
        return self.rows.n

    @property
    def lam(self) -> float:
        """λ of the λ-form, 1/(n·mean C)."""
        return 1.0 / (self.n * float(self.upper.mean()))

    @property
    def omega(self) -> Floats:
        """Weights of losses in the λ-form, C_i/mean C (n,)."""
        return self.upper / float(self.upper.mean())

    def dual(self) -> DualQP:
        """C-SVC: p = −1, s = y."""
        return DualQP(
            sign=self.y,
            linear=np.full(self.n, -1.0),
            upper=self.upper,
            start=np.zeros(self.n) if self.start is None else self.start,
            row_of=np.arange(self.n),
            equality="one" if self.bias == "free" else "none",
        )


class Stream(NamedTuple):
    """One binary C-SVC whose examples, each with its label and its weight (of C), are not there yet; their number is not known.

    ``C`` is the C-form's cost, ``lam`` the λ-form's λ; None where the user has not said enough to know it.
    """

    kernel: Kernel
    C: float | None
    lam: float | None
    bias: Bias


@dataclass(frozen=True)
class Solution:
    """f(z) = Σ_j coef_j K(basis_j, z) − rho.

    The basis are the training rows numbered ``origin`` (b,) or, where that is −1 throughout, ``own`` rows: a linear method
    returns w as one of coef 1, or as several; ``alpha`` (n,) is then its own dual point, if it has one. ``responses`` (n,),
    where the solver has them at hand, are Σ_j coef_j K(basis_j, x_i) at the training rows from fresh float64 kernel values, nan
    where it lacks one; rough ones do at rows without a coefficient that are clear of the margin.
    """

    origin: Ints
    coef: Floats
    rho: float
    responses: Floats | None = None
    alpha: Floats | None = None
    own: Rows = NO_ROWS

    @property
    def n_support(self) -> int:
        """Number of basis rows."""
        return len(self.coef)

    def expansion(self, rows: Rows) -> tuple[Rows, Floats]:
        """The rows that f is a sum over, and their coefficients: its own, or all of the training ``rows``, the rest of 0."""
        if self.own.n:
            return self.own, self.coef
        weights: Floats = np.bincount(self.origin, self.coef, rows.n).astype(np.float64, copy=False)
        return rows, weights


def as_expansion(beta: Floats, rho: float, responses: Floats | None = None, alpha: Floats | None = None) -> Solution:
    """The solution Σ_i β_i K(x_i, z) − rho; its basis are the training rows of β other than 0."""
    origin = np.flatnonzero(beta)
    return Solution(origin, beta[origin], rho, responses, alpha)


def of_other_rows(own: Rows, coef: Floats, rho: float, alpha: Floats | None = None) -> Solution:
    """The solution over basis rows that are no training rows, or of which that is not known."""
    return Solution(np.full(own.n, -1), coef, rho, alpha=alpha, own=own)


def as_one_row(w: Floats, names: NDArray[np.int32], n_features: int, rho: float, alpha: Floats | None) -> Solution:
    """The solution ⟨w, z⟩ − rho, w being over the features ``names``: one basis row, or none where w is 0."""
    used = np.flatnonzero(w)
    count = min(1, len(used))
    own = Rows(w[used], names[used], np.array([0, len(used)][: count + 1]), n_features)
    return of_other_rows(own, np.ones(count), rho, alpha)


def lam_to_C(lam: float, n: float) -> float:
    """C = 1/(λ n)."""
    return 1.0 / (lam * n)
