"""Reduced sets: basis vectors of the rbf kernel that move to where they stand for a model's support vectors best.

Let machine m have F_m = Σ_i α_im φ(x_i) in feature space, and the nearest there is on z_1 … z_k be G_m = Σ_j β_jm φ(z_j), so
β_m = (K_ZZ + εI)⁻¹ K_ZX α_m on the z_j that machine m may use. Minimises, over the z by L-BFGS,

    Σ_m ‖F_m − G_m‖²/‖F_m‖²   with β at its best:   value less their number  −Σ_m β_mᵀ K_ZX α_m,
    gradient for z_j          4 Σ_m β_jm (Σ_l β_lm K_jl (z_l − z_j) − Σ_i α_im K_ji (x_i − z_j)),   K_ji = exp(−‖z_j − x_i‖²)

Work     two products of matrices and an exponential for each of the k·n values a step, in tiles that stay in a core's cache
Memory   at the beginning and the end five times the support vectors as a dense float64 matrix; for the steps they are one of
         float32, or of float64 where their spread is large against γ^(−½), with k·n kernel values as precise
Papers   Burges, "Simplified support vector decision rules" (ICML 1996); Schölkopf et al., "Input space versus feature space in
         kernel-based methods", IEEE Trans. Neural Networks 10 (1999), for reduced sets, which are found there one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit import parallel
from svmkit.data import Floats, Ints, Reals, Rows
from svmkit.engine.kernels import Columns, cross_apply
from svmkit.features import feature_names, places_of
from svmkit.model import Model, alphas

#: Told after each step: how many there were, and the mean over machines of ‖F − G‖²/‖F‖² (at least 0, but for rounding).
OnStep = Callable[[int, float], None]

#: ε while vectors move: what float32 kernel values add up to is not more precise than this.
_RIDGE = 1e-6
#: ε relative to the diagonal of K_ZZ where vectors are: less than this is rounding.
_LAST_RIDGE = 1e-13
#: Up to which ‖x‖² each of these is precise enough: ‖z − x‖² then has an error of 1e-4, of 1e-3 where there is nothing finer.
_SQUARES: dict[type[np.float32] | type[np.float64], float] = {np.float32: 1e-4 * 2**23, np.float64: 1e-3 * 2**52}
#: Pieces of the support vectors, each with sums of its own; values of a tile, and its columns at least.
_PIECES, _TILE, _LEAST_COLUMNS = 8, 1 << 18, 64
#: Decimals of the moved vectors, in units of γ^(−½): longer numbers would only make the file larger.
_DECIMALS = 4
#: −‖z − x‖² is cut here: below −87 float32 has subnormal numbers for its exponential, and these take a hundred times as long.
_FARTHEST = -60.0
#: A machine whose ‖F‖² is this share of (Σ|α|)² is next to 0: float32 kernel values do not tell what is left.
_NOTHING = 1e-9


def nearest(model: Model, basis: Rows, used: list[Ints], table: Floats) -> tuple[list[Floats], Floats]:
    """β_m of each machine m, of which ``table`` (n, machines) has α_m; and K_ZX α_m, (k, machines)."""
    gram: Floats = Columns(basis, model.kernel).block(basis)
    target = cross_apply(basis, model.rows, model.kernel, table)
    return [_solved(gram[np.ix_(u, u)], target[u, m]) for m, u in enumerate(used)], target


def _solved(gram: Floats, target: Floats) -> Floats:
    """(``gram`` + ε its diagonal)⁻¹ ``target``, solved with a diagonal of ones; vectors of norm 0 get 0."""
    scale = inverses(np.sqrt(np.diagonal(gram)))
    scaled = gram * scale * scale[:, None] + _LAST_RIDGE * np.eye(len(gram))
    scaled[np.diag_indices(len(gram))] += scale == 0
    found: Floats = scale * np.linalg.solve(scaled, scale * target)
    return found


def inverses(norms: Floats) -> Floats:
    """1/norm, and 0 for 0."""
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)


def moved(model: Model, basis: Rows, used: list[Ints], steps: int, on_step: OnStep | None = None) -> Rows:
    """``basis`` where at most ``steps`` steps of L-BFGS take it, or as it is where that is no nearer or rounding leaves no way.

    ``used`` says for each machine of the rbf ``model`` which basis vectors it may use.
    """
    from scipy.optimize import OptimizeResult, minimize

    names = feature_names(model.rows)
    if len(names) == 0 or model.kernel.gamma == 0:  # all vectors are the same
        return basis
    placed, begin = (_narrow(rows, names) for rows in (model.rows, basis))
    unit = model.kernel.gamma**-0.5
    with np.errstate(over="ignore", invalid="ignore"):
        middle = placed.mean(axis=0)
        for points in (placed, begin):  # in place: the first are large
            points -= middle
            points /= unit
        real = _precision(placed)
    if real is None:
        return basis
    support: Any = placed.astype(real)
    del placed  # as large as all that the steps need
    distance = Distance(model, support, used, basis.n)
    del support
    done = 0

    def tell(intermediate_result: OptimizeResult) -> None:
        nonlocal done
        done += 1
        if on_step is not None:
            on_step(done, 1.0 + float(intermediate_result.fun) / len(used))

    try:
        found = minimize(distance, begin.ravel(), jac=True, method="L-BFGS-B", callback=tell, options={"maxiter": steps})
    except np.linalg.LinAlgError:  # so far apart that distances between near ones are lost, and K_ZZ has no Cholesky factor
        return basis
    at = middle + unit * found.x.reshape(begin.shape)
    rows = Rows.from_dense(np.round(at, _DECIMALS - floor(log10(unit))))  # before β is found, so it costs next to nothing
    rows = rows._replace(indices=names[rows.indices - 1], n_features=model.rows.n_features)
    return max(basis, rows, key=lambda some: _nearness(model, some, used, distance.alphas.astype(np.float64)))


def _precision(placed: Floats) -> type[np.float32] | type[np.float64] | None:
    """The coarsest in which ‖z − x‖² = ‖z‖² − 2zᵀx + ‖x‖² still tells near rows from others, if there is one."""
    largest = np.einsum("ij,ij->i", placed, placed).max()
    return next((real for real, square in _SQUARES.items() if largest <= square), None)


def _nearness(model: Model, basis: Rows, used: list[Ints], table: Floats) -> float:
    """Σ_m ‖G_m‖² = Σ_m ‖F_m‖² − ‖F_m − G_m‖², by float64 kernel values."""
    beta, target = nearest(model, basis, used, table)
    return float(sum(b @ target[u, m] for m, (b, u) in enumerate(zip(beta, used, strict=True))))


def _narrow(rows: Rows, names: NDArray[np.int32]) -> Floats:
    """The columns ``names`` as a matrix."""
    return rows._replace(indices=places_of(names, rows.indices), n_features=len(names) - 1).to_dense()


class Distance:
    """Σ_m ‖F_m − G_m‖²/‖F_m‖² at the best β, less the number of machines, of ``count`` basis vectors; rbf of gamma 1.

    ``alphas`` are of machines scaled to ‖F_m‖ = 1, and 0 of those that are next to 0. Sums inside a tile are as
    precise as ``support``, across tiles float64.
    """

    def __init__(self, model: Model, support: Reals, used: list[Ints], count: int) -> None:
        table = alphas(model)
        self.real: np.dtype[Any] = support.dtype
        responses = cross_apply(model.rows, model.rows, model.kernel, table, "f4")
        norms2, most = np.einsum("im,im->m", table, responses), np.abs(table).sum(axis=0)
        scales = inverses(np.sqrt(np.where(norms2 > _NOTHING * most * most, norms2, 0.0)))
        scaled: Any = table * scales  # of whichever precision ``support`` is
        self.alphas = scaled.astype(self.real)
        self.used, self.count, (self.n, self.width) = used, count, support.shape
        self.ends = _ends(support)
        self.values: Reals = np.empty(self.n * count, self.real)
        self.cuts = np.linspace(0, self.n, _PIECES + 1).astype(np.int64).tolist()

    @np.errstate(over="ignore", invalid="ignore")  # of vectors far away; L-BFGS goes no way that has no value
    def __call__(self, flat: Floats) -> tuple[float, Floats]:
        """Value and gradient."""
        z = flat.reshape(self.count, self.width)
        gram = np.exp(_minus_squares(_begins(z), _ends(z)))
        begins = _begins(z).astype(self.real)
        target = self._pieces(lambda a, b: self._evaluate(begins, a, b))
        beta = self._solve(gram, target)
        gradient = _towards((gram * (beta @ beta.T)) @ _ends(z)[:, :-1], z)
        narrow = beta.astype(self.real)
        gradient -= _towards(self._pieces(lambda a, b: self._pull(narrow, a, b)), z)
        return -float(np.sum(target * beta)), 4.0 * gradient.ravel()

    def _evaluate(self, begins: Reals, a: int, b: int) -> Reals:
        """Kernel values of columns a … b − 1, which are kept, times these α."""
        values = self._tile(a, b)
        _minus_squares(begins, self.ends[a:b], out=values)
        np.exp(values, out=values)
        return np.asarray(values @ self.alphas[a:b])

    def _pull(self, beta: Reals, a: int, b: int) -> Reals:
        """Σ_i Σ_m β_jm α_im K_ji (x_i, 1) for each j, from the values kept, which are used up."""
        weights, some, ends = self._tile(a, b), self.alphas[a:b].T, self.ends[a:b, :-1]
        if len(some) == 1:  # β comes last: a product of matrices with one term in each sum is slow
            weights *= some
            return np.asarray(beta * (weights @ ends))
        weights *= beta @ some
        return np.asarray(weights @ ends)

    def _tile(self, a: int, b: int) -> Reals:
        return self.values[a * self.count : b * self.count].reshape(self.count, b - a)

    def _solve(self, gram: Floats, target: Floats) -> Floats:
        from scipy.linalg import cho_factor, cho_solve

        whole = (gram + _RIDGE * np.eye(len(gram))).T  # symmetric, and in the order that LAPACK wants
        beta = np.zeros(target.shape)
        for number, members in enumerate(self.used):
            if number == 0 or not np.array_equal(members, self.used[number - 1]):
                own = whole if len(members) == len(whole) else whole[np.ix_(members, members)]
                factor = cho_factor(own, check_finite=False)
            beta[members, number] = cho_solve(factor, target[members, number], check_finite=False)
        return beta

    def _pieces(self, work: Callable[[int, int], NDArray[Any]]) -> Floats:
        """The sum of ``work`` over tiles: columns from a up to b."""
        columns = max(_LEAST_COLUMNS, _TILE // self.count)
        sums: list[Any] = [0.0] * _PIECES

        @np.errstate(over="ignore", invalid="ignore")  # it may be another thread's
        def piece(number: int) -> None:
            first, last = self.cuts[number], self.cuts[number + 1]
            for a in range(first, last, columns):
                sums[number] = sums[number] + work(a, min(a + columns, last)).astype(np.float64)

        parallel.run_pieces(piece, _PIECES)
        return np.asarray(sum(sums[1:], sums[0]))


def _begins(z: Floats) -> Floats:
    """Rows 2z, −‖z‖², −1: times one of ``_ends`` they are −‖z − x‖²."""
    return np.column_stack([2.0 * z, -np.einsum("ij,ij->i", z, z), -np.ones(len(z))])


def _ends(x: NDArray[Any]) -> NDArray[Any]:
    """Rows x, 1, ‖x‖², as precise as ``x``."""
    return np.column_stack([x, np.ones(len(x), x.dtype), np.einsum("ij,ij->i", x, x)])


def _minus_squares(begins: NDArray[Any], ends: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """−‖z − x‖² for each pair, at least ``_FARTHEST``."""
    found = np.matmul(begins, ends.T, out=out)
    return np.clip(found, _FARTHEST, 0.0, out=found)


def _towards(sums: Floats, z: Floats) -> Floats:
    """Σ_i w_ji (x_i − z_j) for each j, of ``sums`` Σ_i w_ji (x_i, 1)."""
    return sums[:, :-1] - sums[:, -1:] * z
