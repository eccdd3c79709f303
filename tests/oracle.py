"""What solvers are judged by: naive kernels on dense matrices; objective, violation and optimum recomputed from a dense Q."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from svmkit.data import Floats, Rows
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, Kernel, Problem, Solution


def dense_kernel(left: Rows, right: Rows, kernel: Kernel) -> Floats:
    """K(left, right) by its definition, (left.n, right.n)."""
    if kernel.kind == PRECOMPUTED:
        return left.gram[:, right.serial - 1]
    width = max(left.n_features, right.n_features) + 1
    a, b = (np.pad(rows.to_dense(), ((0, 0), (0, width - rows.n_features - 1))) for rows in (left, right))
    if kernel.kind == RBF:
        return np.exp(-kernel.gamma * np.array([((b - row) ** 2).sum(axis=1) for row in a]))
    dot = a @ b.T
    if kernel.kind == LINEAR:
        return dot
    scaled = kernel.gamma * dot + kernel.coef0
    return scaled**kernel.degree if kernel.kind == POLYNOMIAL else np.tanh(scaled)


def sums_at(rows: Rows, problem: Problem, found: Solution) -> Floats:
    """f + rho at ``rows`` of a solution of ``problem``."""
    basis, weights = found.expansion(problem.rows)
    return dense_kernel(rows, basis, problem.kernel) @ weights


def kernel_matrix(problem: Problem) -> Floats:
    """K over the training rows."""
    return dense_kernel(problem.rows, problem.rows, problem.kernel)


def beta_of(problem: Problem, solution: Solution) -> Floats:
    """β_i = y_i α_i of every training row: the solution's own α where it has one."""
    if solution.alpha is not None:
        return problem.y * solution.alpha
    assert (solution.origin >= 0).all()
    beta = np.zeros(problem.n)
    np.add.at(beta, solution.origin, solution.coef)
    return beta


def same_bytes(a: Solution, b: Solution) -> bool:
    """Equal bit for bit."""
    arrays = [(s.coef, s.origin, s.own.data, s.own.indices, s.own.indptr) for s in (a, b)]
    return all(one.tobytes() == other.tobytes() for one, other in zip(*arrays, strict=True)) and a.rho == b.rho


def dual_objective(K: Floats, y: Floats, beta: Floats) -> float:
    """Σα − ½βᵀKβ, at most the optimum."""
    return float(y @ beta - 0.5 * beta @ K @ beta)


def primal_objective(K: Floats, problem: Problem, beta: Floats, rho: float) -> float:
    """½‖w‖² + Σ C_i hinge, at least the optimum where K is positive semidefinite."""
    responses = K @ beta
    hinge = np.maximum(0.0, 1.0 - problem.y * (responses - rho))
    return float(0.5 * beta @ responses + problem.upper @ hinge)


def best_gap(K: Floats, problem: Problem, beta: Floats) -> float:
    """Primal − dual with the best rho for this β; bounds how far the dual is from the optimum."""
    rhos = K @ beta - problem.y if problem.bias == "free" else [0.0]
    return min(primal_objective(K, problem, beta, rho) for rho in rhos) - dual_objective(K, problem.y, beta)


def violation(K: Floats, problem: Problem, beta: Floats) -> float:
    """The KKT violation, row by row from the definition: m − M, or without a bias the largest projected gradient; never < 0."""
    alpha = problem.y * beta
    grad = problem.y * (K @ beta) - 1.0
    rises = [(alpha[i] < problem.upper[i]) if problem.y[i] > 0 else (alpha[i] > 0) for i in range(problem.n)]
    falls = [(alpha[i] > 0) if problem.y[i] > 0 else (alpha[i] < problem.upper[i]) for i in range(problem.n)]
    steep = [-problem.y[i] * grad[i] for i in range(problem.n)]
    most = max((v for v, up in zip(steep, rises, strict=True) if up), default=-math.inf)
    least = min((v for v, down in zip(steep, falls, strict=True) if down), default=math.inf)
    return max(0.0, most - least if problem.bias == "free" else max(most, -least))


def optimum(problem: Problem, K: Floats) -> float:
    """The optimal objective to 1e-9 of its size, for positive semidefinite K and two classes; certified by a gap of that size.

    A primal-dual interior-point method on min ½xᵀQx − Σx, 0 ≤ x ≤ C, yᵀx = 0, variables scaled by C.
    """
    n, scale, free = problem.n, float(problem.upper.max()), problem.bias == "free"
    Q, u = scale * np.outer(problem.y, problem.y) * K, problem.upper / scale
    a = problem.y if free else np.zeros(n)
    positive, negative = u[problem.y > 0].sum(), u[problem.y < 0].sum()
    x = u / 2 * (np.where(problem.y > 0, min(1.0, negative / positive), min(1.0, positive / negative)) if free else 1.0)
    low, high, b, nearest = np.ones(n), np.ones(n), 0.0, math.inf
    for _ in range(200):
        beta = problem.y * x * scale
        value = dual_objective(K, problem.y, beta)
        relative_gap = best_gap(K, problem, beta) / abs(value)
        nearest = min(nearest, relative_gap)
        if relative_gap <= 1e-9:
            return value
        # Newton on: Qx − 1 + ba − low + high = 0, aᵀx = 0, low·x = mu, high·(u − x) = mu
        slack = u - x
        mu = 0.1 * (low @ x + high @ slack) / (2 * n)
        factor = scipy.linalg.cho_factor(Q + np.diag(low / x + high / slack + 1e-14 * np.abs(Q).max()))
        towards = scipy.linalg.cho_solve(factor, 1.0 - Q @ x - b * a + mu / x - mu / slack)
        across = scipy.linalg.cho_solve(factor, a)
        db = float(a @ towards + a @ x) / float(a @ across) if free else 0.0
        dx = towards - db * across
        dlow, dhigh = mu / x - low - low / x * dx, mu / slack - high + high / slack * dx
        now, change = np.concatenate([x, slack, low, high]), np.concatenate([dx, -dx, dlow, dhigh])
        step = min(1.0, 0.995 * float((-now[change < 0] / change[change < 0]).min(initial=math.inf)))
        x, low, high, b = x + step * dx, low + step * dlow, high + step * dhigh, b + step * db
    raise AssertionError(f"the oracle itself only reached a relative gap of {nearest:g}")


@dataclass
class NaiveRun:
    """What ``naive_pairs`` ends with; ``rows_used`` are the rows of Q it ever looked at."""

    beta: Floats
    rho: float
    objective: float
    iterations: int
    rows_used: set[int]


def naive_pairs(problem: Problem, K: Floats, eps: float) -> NaiveRun:
    """SMO with second-order choice of pairs and no shrinking, from the paper, as plainly as can be; Q in float32."""
    n, y, upper = problem.n, problem.y, problem.upper
    Q = (np.outer(y, y) * K).astype(np.float32).astype(np.float64)
    diag = K.diagonal()
    alpha, grad, used = np.zeros(n), np.full(n, -1.0), set()
    iterations = 0
    while True:
        up = np.where(y > 0, alpha < upper, alpha > 0)
        low = np.where(y > 0, alpha > 0, alpha < upper)
        steep = -y * grad
        i = max(np.flatnonzero(up), key=lambda k: (steep[k], k))
        used.add(int(i))
        most, least = steep[i], steep[low].min()
        if most - least < eps:
            break
        best, j = math.inf, -1
        for k in np.flatnonzero(low & (steep < most)):
            curvature = diag[i] + diag[k] - 2 * y[i] * y[k] * Q[i, k]
            gain = -((most - steep[k]) ** 2) / (curvature if curvature > 0 else 1e-12)
            if gain <= best:
                best, j = gain, k
        used.add(int(j))
        iterations += 1
        curvature = diag[i] + diag[j] - 2 * y[i] * y[j] * Q[i, j]
        room_i = upper[i] - alpha[i] if y[i] > 0 else alpha[i]
        room_j = alpha[j] if y[j] > 0 else upper[j] - alpha[j]
        step = min((most - steep[j]) / (curvature if curvature > 0 else 1e-12), room_i, room_j)
        for k, sign in ((i, 1.0), (j, -1.0)):
            new = alpha[k] + sign * y[k] * step
            new = upper[k] if abs(new - upper[k]) < 1e-13 * upper[k] else 0.0 if abs(new) < 1e-13 * upper[k] else new
            grad += Q[k] * (new - alpha[k])
            alpha[k] = new
    free = (alpha > 0) & (alpha < upper)
    slope = y * grad
    rho = slope[free].mean() if free.any() else (slope[up & ~low].min() + slope[low & ~up].max()) / 2
    return NaiveRun(y * alpha, float(rho), float(alpha @ (grad - 1) / 2), iterations, used)
