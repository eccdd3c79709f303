"""A trained model re-expressed on few basis vectors: the same decision functions, as nearly as so many vectors can give them.

Let machine m have F_m = Σ_i α_im φ(s_i) in feature space. On basis vectors z_1 … z_k the nearest is G_m = Σ_j β_jm φ(z_j) with

    β_m = (K_ZZ + εI)⁻¹ K_ZS α_m

The z start as support vectors, chosen by randomly pivoted Cholesky. For the rbf kernel they then move freely (reduced.py), and
so need be but a fraction of as many; those of text stay, for moved ones have every feature. With data at hand β and rho are in
the end those of least squares on the decision values there, in place of feature space: that is nearer where data lie. A linear
machine is one vector, w, at no loss.

Machine (i, j) of a multi-class model has basis vectors of classes i and j alone, as LIBSVM's format wants; so each class has a
share of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from svmkit.data import Floats, Ints, Rows, stack
from svmkit.engine import linear
from svmkit.engine.kernels import Columns, cross_apply
from svmkit.errors import UsageError
from svmkit.features import feature_names, narrowed
from svmkit.maps import landmarks
from svmkit.model import Machine, Model, alphas, decision_values, decisions_by_part, predict
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, Kernel
from svmkit.reduced import RIDGE, OnStep, moved, ridged

#: ε relative to the sum of squares over the rows of data, whose values are exact.
_DATA_RIDGE = 1e-9
#: Vectors stay where they are if support vectors have more values than this as a dense matrix, or if moved ones, which are
#: dense, had so many times those of all support vectors: of text they would make the model larger, not smaller.
_DENSE_VALUES, _DENSER = 1 << 28, 8
#: Rows of data taken at a time.
_DATA_ROWS = 4096
#: Steps of L-BFGS at most: by then most of what vectors gain by moving is gained.
STEPS = 100


@dataclass(frozen=True)
class Change:
    """How two models differ on rows: |Δf| over all machines, largest and mean; labels that differ (regression: None)."""

    largest: float
    mean: float
    flipped: int | None


def change(before: Model, after: Model, rows: Rows) -> Change:
    """What the second model does differently on ``rows``, which it goes through part by part."""
    largest, total, size, flipped = 0.0, 0.0, 0, 0
    for f, g in zip(decisions_by_part(before, rows), decisions_by_part(after, rows), strict=True):
        apart = np.abs(f - g)
        largest, total, size = max(largest, float(apart.max(initial=0.0))), total + float(apart.sum()), size + apart.size
        flipped += int(np.count_nonzero(predict(before, f) != predict(after, g)))
    has_labels = before.labels is not None or before.svm_type == "one_class"
    return Change(largest, total / max(1, size), flipped if has_labels else None)


def compress(
    model: Model, count: int, seed: int = 0, data: Rows | None = None, steps: int = STEPS, on_step: OnStep | None = None
) -> Model:
    """``model`` on at most ``count`` basis vectors, ``steps`` of L-BFGS; ``data`` (labels are not needed) as said above.

    ``on_step`` hears of each step. The model comes back as it is where it has no more support vectors. Raises UsageError for a
    kernel without feature space, or where there are too few vectors for the classes.
    """
    if model.kernel.kind == PRECOMPUTED or model.kernel.indefinite:
        what = "polynomial kernel with a negative coef0" if model.kernel.kind == POLYNOMIAL else f"{model.kernel.name} kernel"
        raise UsageError(f"a model with the {what} cannot be re-expressed on other basis vectors")
    if model.map is not None:
        raise UsageError(f"the model has weights of {model.map.dim} mapped features and no support vectors to make fewer")
    if model.n_support <= count:
        return model
    if model.kernel.kind == LINEAR:
        return _folded(model, count)
    basis, groups = _chosen(model, count, seed)
    used = [_members(model, groups, pair) for pair in range(len(model.machines))]
    if model.kernel.kind == RBF and steps > 0 and _may_be_dense(model, basis):
        basis = moved(model, basis, used, steps, on_step)
    if data is None:
        beta, rho = _in_feature_space(model, basis, used)
    else:
        beta, rho = _on_data(model, basis, used, data)
    return _model_on(model, basis, groups, [Machine(u, b, r) for u, b, r in zip(used, beta, rho, strict=True)])


def _may_be_dense(model: Model, basis: Rows) -> bool:
    """Whether neither memory nor the model's size speaks against vectors that move."""
    width, values = len(feature_names(model.rows)), len(model.rows.indices)
    return model.n_support * width <= _DENSE_VALUES and basis.n * width <= _DENSER * values


# --- what the machines are made of ----------------------------------------------------------------------------------------


def _several(model: Model) -> bool:
    """Whether machines have parts of the rows each."""
    return model.n_class > 2 and model.multiclass == "ovo"


def _members(model: Model, groups: Ints, number: int) -> Ints:
    """Which basis vectors machine ``number`` may use; ``groups`` (k,) are their classes."""
    if not _several(model):
        return np.arange(len(groups))
    return np.flatnonzero(np.isin(groups, model.pairs[number]))


def _chosen(model: Model, count: int, seed: int) -> tuple[Rows, Ints]:
    """Support vectors for a start, and the class of each, ascending."""
    starts = model.class_starts
    if not _several(model):
        picked = np.sort(landmarks.pivots(model.rows, model.kernel, count, seed))
        return model.rows.take(picked), np.searchsorted(starts, picked, side="right") - 1
    sizes = np.diff(starts)
    if count < np.count_nonzero(sizes):
        raise UsageError(f"{count} basis vectors are too few for {np.count_nonzero(sizes)} classes: each needs one")
    shares = _shares(sizes, count)
    parts, groups = [], []
    for number, share in enumerate(shares.tolist()):
        own = model.rows.part(int(starts[number]), int(starts[number + 1]))
        picked = np.sort(landmarks.pivots(own, model.kernel, share, seed))
        parts.append(own.take(picked))
        groups.append(np.full(len(picked), number))
    return stack(parts), np.concatenate(groups)


def _shares(sizes: Ints, count: int) -> Ints:
    """``count`` in proportion to ``sizes``, at least 1 where that is not 0, none above its size, by largest remainders."""
    shares: Ints = np.minimum(np.maximum(sizes * count // sizes.sum(), sizes > 0), sizes)
    while shares.sum() != count:
        wanted = sizes * count / sizes.sum() - shares
        if shares.sum() < count:
            shares[np.argmax(np.where(shares < sizes, wanted, -np.inf))] += 1
        else:
            shares[np.argmin(np.where(shares > 1, wanted, np.inf))] -= 1
    return shares


def _model_on(model: Model, basis: Rows, groups: Ints, machines: list[Machine]) -> Model:
    counts = None if model.class_counts is None else np.bincount(groups, minlength=model.n_class)
    return replace(model, rows=basis, machines=tuple(machines), class_counts=counts)


def _folded(model: Model, count: int) -> Model:
    """Linear machines as w each, a row of the machine's first class."""
    if count < len(model.machines):
        raise UsageError(f"a linear model of {len(model.machines)} machines needs as many basis vectors, not {count}")
    rows, names = narrowed(model.rows)  # of a model, never dense
    parts, machines = [], []
    for number, (machine, alpha) in enumerate(zip(model.machines, alphas(model).T, strict=True)):
        w = linear.fold(rows, np.ascontiguousarray(alpha), len(names))
        filled = np.flatnonzero(w)
        parts.append(Rows(w[filled], names[filled], np.array([0, len(filled)]), rows.n_features))
        machines.append(Machine(np.array([number]), np.ones(1), machine.rho))
    firsts = [i for i, _ in model.pairs] if model.labels is not None else [0]
    return _model_on(model, stack(parts), np.array(firsts), machines)


# --- coefficients ---------------------------------------------------------------------------------------------------------


def _gram(kernel: Kernel, basis: Rows) -> Floats:
    values: Floats = Columns(basis, kernel).block(basis)
    return values


def _in_feature_space(model: Model, basis: Rows, used: list[Ints]) -> tuple[list[Floats], list[float]]:
    """β and rho (the model's own) of each machine."""
    gram = ridged(_gram(model.kernel, basis), RIDGE)
    target = cross_apply(basis, model.rows, model.kernel, alphas(model))
    beta = [np.linalg.solve(gram[np.ix_(u, u)], target[u, m]) for m, u in enumerate(used)]
    return beta, [machine.rho for machine in model.machines]


def _on_data(model: Model, basis: Rows, used: list[Ints], data: Rows) -> tuple[list[Floats], list[float]]:
    """β and rho of each machine that bring Σ (f − g)² over the rows of ``data`` to its least.

    Raises DataError where kernel values there overflow.
    """
    columns, k = Columns(basis, model.kernel), basis.n
    normal, target = np.zeros((k + 1, k + 1)), np.zeros((k + 1, len(used)))
    for first in range(0, data.n, _DATA_ROWS):
        some = data.part(first, min(first + _DATA_ROWS, data.n))
        values = np.append(columns.block(some), np.full((some.n, 1), -1.0), axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            normal += values.T @ values
            target += values.T @ decision_values(model, some)
    landmarks.refuse_overflow(normal)
    landmarks.refuse_overflow(target)
    beta, rho = [], []
    for number, members in enumerate(used):
        kept = np.append(members, k)
        found = np.linalg.solve(ridged(normal[np.ix_(kept, kept)], _DATA_RIDGE), target[kept, number])
        beta.append(found[:-1])
        rho.append(float(found[-1]))
    return beta, rho
