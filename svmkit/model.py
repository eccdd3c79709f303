"""A trained model, whichever command or tool made it: ``Machine`` (one decision function), ``Model`` (all of them and the labels)."""

from __future__ import annotations

from dataclasses import dataclass

from svmkit.data import Floats, Ints, Rows
from svmkit.problem import Kernel


@dataclass(frozen=True)
class Machine:
    """f(z) = Σ_j coef_j K(rows[index_j], z) − rho, over rows of the model; ``index`` ascending."""

    index: Ints
    coef: Floats
    rho: float


@dataclass(frozen=True)
class Model:
    """A LIBSVM model.

    Classification with k classes has ``labels`` (k,) in LIBSVM's order, k(k−1)/2 machines for the pairs (0,1), (0,2) … (1,2) …,
    the first class of a pair positive, and ``class_counts`` (k,): the rows are grouped by class in label order. Regression and
    one-class have one machine and no labels. ``prob_a``, ``prob_b`` (pairs,) are Platt's sigmoids; regression has ``prob_a`` (1,)
    = the Laplace width; ``density_marks`` (10,) belong to one-class models.
    """

    svm_type: str
    kernel: Kernel
    rows: Rows
    machines: tuple[Machine, ...]
    labels: Ints | None = None
    class_counts: Ints | None = None
    prob_a: Floats | None = None
    prob_b: Floats | None = None
    density_marks: Floats | None = None

    @property
    def n_class(self) -> int:
        """Number of classes; 2 for regression and one-class, as LIBSVM writes."""
        return 2 if self.labels is None else len(self.labels)

    @property
    def n_support(self) -> int:
        """Number of support vectors, each counted once."""
        return self.rows.n
