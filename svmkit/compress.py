"""A trained model re-expressed on few basis vectors: the same decision functions, as nearly as so many vectors can give them.

Let machine m have F_m = Σ_i α_im φ(s_i) in feature space. On basis vectors z_1 … z_k the nearest is G_m = Σ_j β_jm φ(z_j) with

    β_m = (K_ZZ + εD)⁻¹ K_ZS α_m,   D the diagonal of K_ZZ

so that vectors of small norm keep their part beside large ones, which a polynomial kernel may have. The z start as support
vectors, chosen by randomly pivoted Cholesky. For the rbf kernel they then move freely (reduced.py), and so need be but a
fraction of as many; those of text stay, for moved ones have every feature. With data at hand β and rho are in the end those of
least squares on the decision values there: that is nearer where data lie. Of several, as rows fewer than vectors leave them,
they are those nearest to β of feature space. A linear machine is one vector, w, at no loss.

Machine (i, j) of a multi-class model has basis vectors of classes i and j alone, as LIBSVM's format wants; so each class has a
share of them. Choosing k of n support vectors takes 8 k n bytes; moving them, what reduced.py says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from svmkit.data import Floats, Ints, Rows, stack
from svmkit.engine import linear
from svmkit.engine.kernels import Columns
from svmkit.errors import ModelError, UsageError
from svmkit.features import feature_names, narrowed
from svmkit.maps import landmarks
from svmkit.model import Machine, Model, alphas, decision_values, decisions_by_part, predict, with_machines
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF
from svmkit.reduced import OnStep, inverses, moved, nearest

#: Least squares on data leaves out what is below this share of the largest singular value, columns scaled to norm 1.
_DATA_RANK = 1e-12
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
        with np.errstate(invalid="ignore"):  # where both are infinite
            apart = np.where(f == g, 0.0, np.abs(f - g))
        largest = float(np.max([largest, apart.max(initial=0.0)]))  # max() would drop a nan
        total, size = total + float(apart.sum()), size + apart.size
        flipped += int(np.count_nonzero(predict(before, f) != predict(after, g)))
    has_labels = before.labels is not None or before.svm_type == "one_class"
    return Change(largest, total / max(1, size), flipped if has_labels else None)


def compress(
    model: Model, count: int, seed: int = 0, data: Rows | None = None, steps: int = STEPS, on_step: OnStep | None = None
) -> Model:
    """``model`` on at most ``count`` basis vectors, ``steps`` of L-BFGS; ``data`` (labels are not needed) as said above.

    ``on_step`` hears of each step. The model comes back as it is where it has no more support vectors. Raises ModelError for a
    kernel without feature space or a model without vectors, UsageError where ``count`` is too small for the classes.
    """
    if model.kernel.kind == PRECOMPUTED or model.kernel.indefinite:
        what = "polynomial kernel with a negative coef0" if model.kernel.kind == POLYNOMIAL else f"{model.kernel.name} kernel"
        raise ModelError(f"a model with the {what} cannot be re-expressed on other basis vectors")
    if model.map is not None:
        raise ModelError(f"the model has weights of {model.map.dim} mapped features and no support vectors to make fewer")
    if model.n_support <= count:
        return model
    if model.kernel.kind == LINEAR:
        return _folded(model, count)
    basis, groups = _chosen(model, count, seed)
    used = [_members(model, groups, pair) for pair in model.pairs]
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


def _of_pairs(model: Model) -> bool:
    """Whether each machine has the rows of its own two classes alone, not all."""
    return model.n_class > 2 and model.multiclass == "ovo"


def _members(model: Model, groups: Ints, pair: tuple[int, int]) -> Ints:
    """Which basis vectors the machine of ``pair`` may use; ``groups`` (k,) are their classes."""
    if not _of_pairs(model):
        return np.arange(len(groups))
    return np.flatnonzero(np.isin(groups, pair))


def _chosen(model: Model, count: int, seed: int) -> tuple[Rows, Ints]:
    """Support vectors for a start, and the class of each, ascending."""
    starts = model.class_starts
    if not _of_pairs(model):
        picked = np.sort(landmarks.pivots(model.rows, model.kernel, count, seed))
        return model.rows.take(picked), np.searchsorted(starts, picked, side="right") - 1
    sizes = np.diff(starts)
    if count < np.count_nonzero(sizes):
        raise UsageError(f"{np.count_nonzero(sizes)} classes need a basis vector each, more than {count}")
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
    return with_machines(replace(model, rows=basis, class_counts=counts), machines)


def _folded(model: Model, count: int) -> Model:
    """Linear machines as w each, a row of the machine's first class."""
    if count < len(model.rho):
        raise UsageError(f"a linear model of {len(model.rho)} machines needs as many basis vectors, not {count}")
    rows, names = narrowed(model.rows)  # of a model, never dense
    parts, machines = [], []
    for number, (rho, alpha) in enumerate(zip(model.rho.tolist(), alphas(model).T, strict=True)):
        w = linear.fold(rows, alpha, len(names))
        landmarks.refuse_overflow(w)
        filled = np.flatnonzero(w)
        parts.append(Rows(w[filled], names[filled], np.array([0, len(filled)]), rows.n_features))
        machines.append(Machine(np.array([number]), np.ones(1), rho))
    firsts = [i for i, _ in model.pairs] if model.labels is not None else [0]
    return _model_on(model, stack(parts), np.array(firsts), machines)


# --- coefficients ---------------------------------------------------------------------------------------------------------


def _in_feature_space(model: Model, basis: Rows, used: list[Ints]) -> tuple[list[Floats], list[float]]:
    """β and rho (the model's own) of each machine."""
    beta, _ = nearest(model, basis, used, alphas(model))
    return beta, model.rho.tolist()


def _on_data(model: Model, basis: Rows, used: list[Ints], data: Rows) -> tuple[list[Floats], list[float]]:
    """β and rho of each machine that bring Σ (f − g)² over the rows of ``data`` to its least; a model without a bias gets none.

    They are those of feature space and what these are short of. Where rounding makes them worse there, those of feature space
    stay. Raises DataError where values overflow.
    """
    triangle, k = _triangle(model, basis, data), basis.n
    last = [k] if model.rho.any() else []
    beta, rho = _in_feature_space(model, basis, used)
    for number, members in enumerate(used):
        features, f = triangle[:, [*members, *last]], triangle[:, k + 1 + number]
        start = np.append(beta[number], rho[number])[: len(members) + len(last)]
        found = start + _least_squares(features, f - features @ start)
        if np.sum((features @ found - f) ** 2) < np.sum((features @ start - f) ** 2):
            beta[number] = found[: len(members)]
            rho[number] = float(found[len(members) :].sum())
    return beta, rho


def _triangle(model: Model, basis: Rows, data: Rows) -> Floats:
    """R of A = QR, where A has for each row of ``data`` its kernel values, −1 (for rho) and decision values.

    ‖Rv‖ = ‖Av‖ for each v, so R stands for all the data, and unlike AᵀA it has all of their precision.
    """
    columns, width = Columns(basis, model.kernel), basis.n + 1 + len(model.rho)
    triangle: Floats = np.zeros((0, width))
    for first in range(0, data.n, _DATA_ROWS):
        some = data.part(first, min(first + _DATA_ROWS, data.n))
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.column_stack([columns.block(some), np.full(some.n, -1.0), decision_values(model, some)])
            triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, values]), mode="r"))
            landmarks.refuse_overflow(np.einsum("ij,ij->j", triangle, triangle))
    return triangle


def _least_squares(features: Floats, f: Floats) -> Floats:
    """The v that brings ‖features v − f‖ to its least, of several the shortest once the columns have norm 1."""
    from scipy.linalg import lstsq

    scale = inverses(np.linalg.norm(features, axis=0))
    found: Floats = scale * lstsq(features * scale, f, cond=_DATA_RANK, lapack_driver="gelsy")[0]
    return found
