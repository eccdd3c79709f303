"""The whole of a box-constrained quadratic at once: Newton steps on its free variables, and pivots where they leave the box.

Minimises   ½ βᵀKβ − yᵀβ   over lower ≤ β ≤ upper (and Σβ as it is, where there is a bias), F = y − Kβ
From        a β that block steps have brought near; pair steps crawl where K is ill-conditioned, this does not
Method      primal-dual active sets: solve K_II d = F_I − μ on the free set I; variables that leave the box are fixed at its
            edge, variables at an edge whose F pulls inwards of μ are freed; again until neither happens
Memory      the factor of K_II, n²/2 doubles, and a column of n for every pivot since it was made
Papers      Hintermüller, Ito & Kunisch, SIAM J. Optim. 13 (2002) 865–888; the pivots by a bordered system (Gill et al.,
            "A Schur-complement method for sparse quadratic programming", 1990)

A pivot of few variables borders the factor: with I₀ the free set it was made for, O ⊂ I₀ fixed since and N freed since,

    [ K_I₀I₀   B ] [x]   [ F_I₀ − μ ]        B = [unit vectors of O, K_I₀N]
    [ Bᵀ       C ] [w] = [ h        ]        C = diag(0, K_NN),   h = (0, F_N − μ)

and x, the step, is 0 on O. Many pivots make a new factor.
"""

from __future__ import annotations

import numpy as np

from svmkit.data import Floats, Ints
from svmkit.engine.active import Variables
from svmkit.engine.cholesky import Factor, NotDefinite
from svmkit.engine.kernels import Engine
from svmkit.engine.packed import Packed

#: Free variables at most: their factor takes half the square of that in float64.
MOST_FREE = 8192
#: Rounds of pivots, and factors, before giving up; so many pivots must be left after a round of those before it.
_MOST_ROUNDS, _MOST_FACTORS, _FEWER = 25, 4, 0.75
#: Pivots from which a new factor costs less than the border: a share of the factor's size, but always so many.
_BORDER_SHARE, _LEAST_BORDER = 0.25, 64
#: Float32 kernel values are off by 2⁻²⁴, so K's smallest eigenvalues by about that times 2√n; float64 ones likewise.
_RIDGE = {"f4": 2.0**-21, "f8": 2.0**-44}


def minimise(engine: Engine, start: Variables, rows: Ints, bias: bool, eps: float) -> tuple[Floats, Floats] | None:
    """β and F (m,) of the minimum over the variables, which belong to ``rows`` (m,) of the engine and begin at ``start``; its
    violation about eps or below, or as low as rounding lets it be. None where pivots do not settle, K is indefinite or too many
    variables are free.
    """
    beta, F = start.beta.copy(), start.F.copy()
    side = np.where(beta >= start.upper, 1, np.where(beta <= start.lower, -1, 0))
    sum_before = float(beta.sum())
    system: _System | None = None
    factors, most, worst = 0, np.inf, np.inf
    for _ in range(_MOST_ROUNDS):
        edge = np.where(side > 0, start.upper, start.lower)
        _move(engine, start.packed, rows, beta, F, np.flatnonzero((side != 0) & (beta != edge)), edge)
        free = np.flatnonzero(side == 0)
        if not 0 < len(free) <= MOST_FREE:
            return None
        if system is None or not system.can_hold(free):
            factors += 1
            if factors > _MOST_FACTORS:
                return None
            system = None
        try:
            system = system or _System(engine, rows, free)
            step, mu = system.solve(free, F, sum_before - float(beta.sum()) if bias else None)
        except NotDefinite:
            return None
        target = beta.copy()
        target[free] += step
        _move(engine, start.packed, rows, beta, F, free, target)
        if not np.isfinite(mu):
            return None
        leave = (side == 0) & ((beta > start.upper) | (beta < start.lower))
        enter = ((side > 0) & (mu - 0.5 * eps > F)) | ((side < 0) & (mu + 0.5 * eps < F))
        changed = int(leave.sum() + enter.sum())
        residual = float(np.abs(F[free] - mu).max())
        if changed == 0 and (residual <= 0.4 * eps or residual > 0.5 * worst):
            return (beta, F) if _gain(start, beta, F) > 0 else None
        if changed > max(most, 3):
            return None
        most, worst = _FEWER * changed, residual if changed == 0 else np.inf
        side[leave] = np.where(beta[leave] > start.upper[leave], 1, -1)
        side[enter] = 0
    return None


def _gain(start: Variables, beta: Floats, F: Floats) -> float:
    """By how much the objective has fallen."""
    return 0.5 * float((start.F + F) @ (beta - start.beta))


def _move(engine: Engine, packed: Packed, rows: Ints, beta: Floats, F: Floats, some: Ints, target: Floats) -> None:
    """β of ``some`` variables to ``target``, F with it."""
    change = target[some] - beta[some]
    engine.apply(packed, rows[some], -change, F)
    beta[some] = target[some]


class _System:
    """The Newton equations on a free set, by the factor made for one set and a border for what changed since."""

    def __init__(self, engine: Engine, rows: Ints, free: Ints) -> None:
        self.engine = engine
        self.rows = rows
        self.base = free
        self.place = np.full(len(rows), -1)
        self.place[free] = np.arange(len(free))
        self.ridge = _RIDGE[engine.real] * float(np.sqrt(len(free))) * float(np.abs(engine.diagonal()).max())
        own = rows[free]
        self.factor = Factor(lambda r0, r1, c0, c1: engine.block(own[r0:r1], own[c0:c1]), len(free), self.ridge)
        self.columns: dict[int, int] = {}  # variable → its column of ``border``
        self.border = np.empty((len(free), 0))  # L⁻¹B

    def can_hold(self, free: Ints) -> bool:
        """Whether a border is the cheaper way to the equations on ``free``."""
        common = np.count_nonzero(self.place[free] >= 0)
        pivots = len(self.base) + len(free) - 2 * common
        return bool(pivots <= max(_LEAST_BORDER, _BORDER_SHARE * len(self.base)))

    def solve(self, free: Ints, F: Floats, total: float | None) -> tuple[Floats, float]:
        """(step (len(free),), μ) with K_II step = F_I − μ and Σ step = ``total``; μ = 0 where that is None.

        Raises NotDefinite where the equations have no solution.
        """
        is_free = np.zeros(len(self.rows), dtype=bool)
        is_free[free] = True
        fixed, freed = self.base[~is_free[self.base]], free[self.place[free] < 0]
        Z = self._bordered(fixed, freed)
        corner = np.zeros((Z.shape[1], Z.shape[1]))
        k = len(fixed)
        corner[k:, k:] = self.engine.block(self.rows[freed], self.rows[freed])
        corner[np.arange(k, len(corner)), np.arange(k, len(corner))] += self.ridge
        tall = np.stack([F[self.base], np.ones(len(self.base))], axis=1)
        low = np.zeros((len(corner), 2))
        low[k:, 0], low[k:, 1] = F[freed], 1.0
        y = self.factor.forward(tall)
        try:
            w = np.linalg.solve(corner - Z.T @ Z, low - Z.T @ y) if len(corner) else low
        except np.linalg.LinAlgError:
            raise NotDefinite from None
        x = self.factor.backward(y - Z @ w)
        x[self.place[fixed]] = 0.0
        mu = 0.0 if total is None else float((x[:, 0].sum() + w[k:, 0].sum() - total) / (x[:, 1].sum() + w[k:, 1].sum()))
        whole = np.zeros(len(self.rows))
        whole[self.base] = x[:, 0] - mu * x[:, 1]
        whole[freed] = w[k:, 0] - mu * w[k:, 1]
        return whole[free], mu

    def _bordered(self, fixed: Ints, freed: Ints) -> Floats:
        """L⁻¹B for B = [unit vectors of ``fixed``, K[base, freed]]; columns once made are kept."""
        new_fixed = np.array([v for v in fixed.tolist() if v not in self.columns], dtype=np.int64)
        new_freed = np.array([v for v in freed.tolist() if v not in self.columns], dtype=np.int64)
        fresh = np.zeros((len(self.base), len(new_fixed) + len(new_freed)))
        if fresh.shape[1]:
            fresh[self.place[new_fixed], np.arange(len(new_fixed))] = 1.0
            fresh[:, len(new_fixed) :] = self.engine.block(self.rows[self.base], self.rows[new_freed])
            for v in [*new_fixed.tolist(), *new_freed.tolist()]:
                self.columns[v] = len(self.columns)
            self.border = np.concatenate([self.border, self.factor.forward(fresh)], axis=1)
        wanted = [self.columns[v] for v in [*fixed.tolist(), *freed.tolist()]]
        return self.border[:, wanted]
