"""sbp against a plain run on a dense matrix with the same draws: the same α and count of kernel values; and its promises."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from statistics import median

import numpy as np
import pytest
from oracle import beta_of, kernel_matrix, optimum, primal_objective
from zoo import named, points, problem

from svmkit import solvers
from svmkit.data import Floats, Ints, Rows
from svmkit.engine import level
from svmkit.engine.rng import uniforms
from svmkit.problem import LINEAR, RBF, Bias, Kernel, Problem
from svmkit.solvers import sbp
from svmkit.solvers.base import run
from svmkit.trace import Status

EVERY = 10**9
BIASES = pytest.mark.parametrize("bias", ["free", "none"])


# --- a plain run ----------------------------------------------------------------------------------------------------------


def covered_shares(c: Floats, omega: Floats, y: Floats, basins: int, volume: float) -> tuple[Floats, Ints]:
    """The share of each example that is under water, by sorting; and the examples at the edge itself.

    With two basins a class may be covered in part there, so far that both weigh the same.
    """
    found = level.fill_volume(c, omega, int((y > 0).sum()), basins, volume)
    above = c - found.level + y * found.b
    close = 1e-9 * (1 + np.abs(c).max())
    share, edge = np.where(above < -close, 1.0, 0.0), np.abs(above) <= close
    if basins == 2:
        below = {sign: omega[y == sign] @ share[y == sign] for sign in (1, -1)}
        both = below[-1] if edge[y > 0].any() else below[1]
        for sign in (1, -1):
            at = edge & (y == sign)
            share[at] = (both - below[sign]) / omega[at].sum() if at.any() else 0.0
    return share, np.flatnonzero(edge)


def draw(share: Floats, omega: Floats, y: Floats, basins: int, seed: int, step: int, number: int) -> int:
    """A class by a coin, then an example of it, then whether to keep it, until one is kept."""
    first, positives = number * 2**32, int((y > 0).sum())

    def uniform(place: int) -> float:
        return float(uniforms(seed, step, first + place, 1)[0])

    begin, end = (0, len(y)) if basins == 1 else (0, positives) if uniform(0) < 0.5 else (positives, len(y))
    heaviest = omega[begin:end].max()
    for trial in range(16 + (end - begin) // 64):
        i = begin + int(uniform(3 * trial + 1) * (end - begin))
        if omega[i] < heaviest and uniform(3 * trial + 2) * heaviest >= omega[i]:
            continue
        if share[i] == 1.0 or uniform(3 * trial + 3) < share[i]:
            return i
    shares = np.cumsum((share * omega)[begin:end])
    return begin + int(np.searchsorted(shares, uniform(2**32 - 1) * shares[-1], "right"))


class Plain:
    """The algorithm on a dense matrix: every α is kept, every response summed anew; examples sorted, positives first."""

    def __init__(self, case: Problem, options: sbp.Options, seed: int) -> None:
        self.case, self.options, self.seed, self.basins = case, options, seed, 2 if case.bias == "free" else 1
        self.order = np.argsort(-case.y, kind="stable")
        self.y, self.omega = case.y[self.order], (case.upper / case.upper.mean())[self.order]
        self.Q = (np.outer(case.y, case.y) * kernel_matrix(case))[np.ix_(self.order, self.order)]
        self.nu, self.next_nu, self.next_window, self.starts = options.nu_slack or 1.0, 1, 1, [0, 0]
        self.new_nu = False
        self.alphas = [np.zeros(case.n)]
        self.used: set[int] = set()

    def step(self, shares: Floats, mean: float) -> list[int]:
        """One step; what it drew. ``shares`` under water, and their ``mean`` response, are those of the run under test.

        A new ν often leaves a response on the edge, to the last bit: then rounding alone says on which side it is, theirs.
        """
        t, n, alpha = len(self.alphas), self.case.n, self.alphas[-1].copy()
        c = self.Q @ alpha
        share, edge = covered_shares(c, self.omega, self.y, self.basins, n * self.nu)
        if self.new_nu:
            share[edge] = shares[edge]
        drawn = [draw(share, self.omega, self.y, self.basins, self.seed, t, k) for k in range(self.options.batch)]
        covered = share * self.omega
        if not (self.new_nu and len(edge)):
            mean = covered @ c / covered.sum()
        eta = 1 / sqrt(t * self.Q.diagonal().max())
        eta = min(eta, 0.7 / (mean * t)) if mean > 0 else eta
        for i in drawn:
            alpha[i] += eta / len(drawn) if self.Q[i, i] > 0 else 0.0
        self.used |= {i for i in drawn if self.Q[i, i] > 0}
        self.alphas.append(alpha / max(1.0, sqrt(alpha @ self.Q @ alpha)))
        self.new_nu = t == self.next_nu
        if self.new_nu:
            self.next_nu = t + max(1, t // 16)
            self.find_nu()
        if t == self.next_window:
            self.next_window, self.starts = max(t + 1, int(t * sqrt(2))), [self.starts[1], t]
        return drawn

    def margin(self, alpha: Floats) -> level.Fill:
        """Of its best multiple."""
        c = self.Q @ alpha
        return level.fill_margin(c, self.omega, int((self.y > 0).sum()), self.basins, alpha @ c / self.case.upper.mean())

    def find_nu(self) -> None:
        best, alpha = self.margin(self.alphas[-1]), self.alphas[-1]
        if self.options.nu_slack == 0 and np.isfinite(best.level):
            self.nu = best.volume / self.case.n / sqrt(alpha @ self.Q @ alpha)
            depth = np.maximum(0, best.level - self.Q @ alpha - self.y * best.b)
            ratio = depth @ alpha / best.level / (depth @ self.case.upper[self.order])
            self.nu *= min(4, max(0.25, ratio ** (0.05 if ratio < 1 and self.basins == 2 else 0.2)))

    def returned(self) -> tuple[Floats, float]:
        """β and rho of the mean of α since the window before this one began; where no multiple of it helps, f is constant."""
        mean = np.mean(self.alphas[self.starts[0] + 1 :], axis=0)
        c, best = self.Q @ mean, self.margin(mean)
        if self.options.nu_slack > 0:
            volume = self.case.n * self.nu * sqrt(mean @ c)
            best = level.fill_volume(c, self.omega, int((self.y > 0).sum()), self.basins, volume)
        beta = np.zeros(self.case.n)
        beta[self.order] = self.y * mean / best.level
        constant = -np.sign(self.omega @ self.y)
        return beta, (constant if np.isinf(best.level) else -best.b / best.level) if self.basins == 2 else 0.0


def shares_of(state: sbp._State) -> Floats:
    """The share of each example under water, as the solver has it."""
    first = state.sign > 0
    edge = np.where(first, state.numbers[level.EDGE], state.numbers[level.EDGE_NEGATIVE])
    on_edge = np.where(first, state.numbers[level.ON_EDGE], state.numbers[level.ON_EDGE_NEGATIVE])
    return np.where(state.c < edge, 1.0, np.where(state.c == edge, on_edge, 0.0))


def asked(n: int, bias: Bias, C: float | Floats = 2.0, kernel: Kernel = Kernel(RBF, 0.5), seed: int = 1) -> Problem:
    X, y = points(n, 4, seed)
    return replace(problem(X, y, kernel, C), bias=bias)


WEIGHTS = np.random.default_rng(0).uniform(0.05, 4.0, 90)
CASES = [
    ("plain", asked(90, "free"), sbp.Options(batch=1)),
    ("plain, no bias", asked(90, "none"), sbp.Options(batch=1)),
    ("three at a time", asked(90, "free"), sbp.Options(batch=3)),
    ("three at a time, no bias", asked(90, "none"), sbp.Options(batch=3)),
    ("weights", asked(90, "free", WEIGHTS), sbp.Options(batch=2)),
    ("weights, no bias", asked(90, "none", WEIGHTS), sbp.Options(batch=2)),
    ("nu given", asked(90, "free"), sbp.Options(batch=1, nu_slack=0.3)),
    ("nu given, no bias", asked(90, "none"), sbp.Options(batch=1, nu_slack=0.3)),
    ("high cost", asked(90, "free", 100.0), sbp.Options(batch=2)),
    ("low cost", asked(90, "none", 1e-3), sbp.Options(batch=2)),
    ("more draws than examples", asked(9, "none"), sbp.Options(batch=20)),
    ("linear, some rows empty", replace(named("empty rows, linear"), bias="none"), sbp.Options(batch=2)),
]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("case", "options"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_it_is_the_plain_algorithm(case: Problem, options: sbp.Options, seed: int) -> None:
    """α, ν, the mean, its margin and rho after every step; every row of the kernel is counted once."""
    plain, state = Plain(case, options, seed), sbp.start(case, options, 1e-12, seed)
    for t in range(1, 151):
        drawn = plain.step(shares_of(state), state.numbers[level.SCALE] * state.numbers[level.MEAN])
        progress = sbp.advance(state, 1)
        assert state.drawn.tolist() == drawn
        alpha = state.numbers[level.SCALE] * state.alpha
        assert alpha == pytest.approx(plain.alphas[t], abs=2e-6 * plain.alphas[t].max())
        assert state.numbers[level.NU] == pytest.approx(plain.nu, rel=1e-5, abs=1e-6)
        found, (beta, rho) = sbp.solution(state), plain.returned()
        assert beta_of(case, found) == pytest.approx(beta, abs=5e-5 * np.abs(beta).max())
        assert found.rho == pytest.approx(rho, abs=2e-5 * max(1.0, abs(rho)))
        assert progress.steps == t
        assert progress.kernel_evaluations == case.n * len(plain.used)


@BIASES
def test_few_rows_kept_change_only_the_count(bias: Bias) -> None:
    """Of 300 rows 8 at a time: those that have gone are evaluated again, but never one for two draws within a step."""
    case = asked(300, bias)
    (many, few) = (sbp.start(case, sbp.Options(batch=2, cache_mb=mb), 1e-12, 3) for mb in (100.0, 0.01))
    assert len(few.rows.K) == 8
    all_kept, some_kept = sbp.advance(many, 600), sbp.advance(few, 600)
    assert sbp.solution(few).coef == pytest.approx(sbp.solution(many).coef, rel=1e-9)
    assert all_kept.kernel_evaluations == 300 * np.count_nonzero(many.alpha)
    assert all_kept.kernel_evaluations < some_kept.kernel_evaluations < 300 * 1200
    assert many.rows.engine.evaluations <= 300 * 300
    assert some_kept.kernel_evaluations <= few.rows.engine.evaluations


@pytest.mark.parametrize(("cache_mb", "batch", "rows"), [(12_000 / 2**20, 4, 10), (1e-6, 4, 4), (1e-6, 1, 1), (100.0, 4, 364)])
def test_rows_kept_fit_the_memory_but_for_those_of_a_batch(cache_mb: float, batch: int, rows: int) -> None:
    """300 float32 values each; where there is room, all 300 and 64 more."""
    state = sbp.start(asked(300, "none"), sbp.Options(batch=batch, cache_mb=cache_mb), 1e-12, 0)
    sbp.advance(state, 50)
    assert state.rows.K.shape == (rows, 300)


# --- the optimum ----------------------------------------------------------------------------------------------------------


def exact(case: Problem) -> tuple[Floats, float]:
    """β and rho of the optimum."""
    smo = solvers.solver("smo")
    found = run(smo, case, smo.Options(), eps=1e-8).solution
    return beta_of(case, found), found.rho


def norm_and_slack(case: Problem, beta: Floats, rho: float) -> tuple[float, float]:
    """‖w‖ and the mean of ω_i max(0, 1 − y_i f(x_i))."""
    f = kernel_matrix(case) @ beta
    return sqrt(beta @ f), float(case.upper @ np.maximum(0.0, 1 - case.y * (f - rho)) / case.upper.sum())


EXACTLY = [asked(90, "free"), asked(90, "none"), asked(90, "free", WEIGHTS), asked(90, "none", 30.0), asked(90, "free", 0.05)]
exactly = pytest.mark.parametrize("case", EXACTLY, ids=lambda case: f"{case.bias} {case.upper[0]:.3g}")


def ended(case: Problem, options: sbp.Options, seed: int = 0) -> tuple[sbp._State, Floats, float]:
    """State, β and rho at the end of a run."""
    state = sbp.start(case, options, 1e-12, seed)
    sbp.advance(state, EVERY)
    found = sbp.solution(state)
    return state, beta_of(case, found), found.rho


@exactly
def test_nu_is_found_from_C(case: Problem) -> None:
    """ν = L/‖w‖ at the optimum of the C-form; found from the last, noisy w."""
    norm, slack = norm_and_slack(case, *exact(case))
    state, _, _ = ended(case, sbp.Options(epochs=100))
    assert state.numbers[level.NU] == pytest.approx(slack / norm, rel=0.1)


@exactly
def test_with_the_optimums_own_nu_no_C_is_needed(case: Problem) -> None:
    norm, slack = norm_and_slack(case, *exact(case))
    blind = replace(case, upper=case.upper * 1e3)
    _, beta, rho = ended(blind, sbp.Options(epochs=100, nu_slack=slack / norm))
    reached, left = norm_and_slack(case, beta, rho)
    assert left / reached == pytest.approx(slack / norm, rel=1e-6, abs=2e-8)  # rescaled to its level, of float32 kernel values
    K = kernel_matrix(case)
    assert 0.995 * primal_objective(K, case, beta, rho) <= optimum(case, K)


@exactly
def test_four_times_as_many_steps_halve_the_distance_to_the_optimum(case: Problem) -> None:
    """In the median: what the rate 1/√T promises."""
    K = kernel_matrix(case)
    best, far = optimum(case, K), np.inf
    for epochs in (4, 16, 64):
        runs = [ended(case, sbp.Options(epochs=epochs), seed)[1:] for seed in range(3)]
        over = [primal_objective(K, case, beta, rho) / best - 1 for beta, rho in runs]
        assert min(over) >= -1e-9
        assert median(over) <= far / 2
        far = median(over)


@pytest.mark.parametrize("name", ["rbf", "class weights", "300 rows, linear", "unscaled, linear", "duplicated rows"])
def test_the_gap_bounds_the_distance_to_the_optimum(name: str) -> None:
    case = replace(named(name), bias="none")
    K = kernel_matrix(case)
    state = sbp.start(case, sbp.Options(), 1e-12, 0)
    best = optimum(case, K)
    for _ in range(20):
        step = state.next_window
        assert sbp.advance(state, step - state.counts[level.STEP]).steps == step
        found = sbp.solution(state)
        primal = primal_objective(K, case, beta_of(case, found), found.rho)
        assert np.isnan(state.gap) or primal - best <= state.gap * primal * (1 + 1e-6) + 1e-9 * best
    assert state.gap < 1


def test_it_says_it_has_converged_where_the_gap_is_small() -> None:
    """λ = 1: every α of the optimum sits at its bound."""
    case = asked(200, "none", 1 / 200)
    state = sbp.start(case, sbp.Options(epochs=1000), 0.05, 0)
    progress = sbp.advance(state, EVERY)
    assert progress.done
    assert progress.gap <= 0.05
    found = sbp.solution(state)
    assert progress.kernel_evaluations == 200 * (state.counts[level.ROWS] + found.n_support)  # one look in float64
    K = kernel_matrix(case)
    assert primal_objective(K, case, beta_of(case, found), found.rho) <= optimum(case, K) / (1 - 0.05)


@pytest.mark.parametrize(("C", "eps"), [(1e3, 1e-8), (1e6, 1e-3)])
def test_float32_rows_are_not_taken_at_their_word(C: float, eps: float) -> None:
    """The margin is off by the rounding of one value, and C makes it count."""
    case = problem(np.array([[0.1285], [-0.1285], [0.1285]]), np.array([1.0, -1.0, 1.0]), Kernel(LINEAR), C)
    result = run(sbp, replace(case, bias="none"), sbp.Options(), eps=eps)
    assert result.status is Status.CONVERGED
    assert result.certificate.gap <= eps * result.certificate.primal


@pytest.mark.parametrize("seed", range(30))
def test_what_has_converged_is_what_was_looked_at_and_so_is_its_certificate(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(6, 1 + seed % 3)), np.where(np.arange(6) % 2, 1.0, -1.0)
    case = Problem(Rows.from_dense(X), y, np.full(6, 10.0), Kernel(RBF, 1.0), "none")
    result = run(sbp, case, sbp.Options(epochs=100), eps=0.01)
    if result.status is Status.CONVERGED:
        assert result.certificate.gap <= 0.01 * result.certificate.primal * (1 + 1e-6)


def above(case: Problem, epochs: int) -> float:
    """The primal objective at the end of a run, as a multiple of the optimum."""
    K = kernel_matrix(case)
    _, beta, rho = ended(case, sbp.Options(epochs=epochs))
    return primal_objective(K, case, beta, rho) / optimum(case, K)


@pytest.mark.parametrize(("gamma", "weight"), [(2e-3, 1.0), (5e-4, 0.3)])
def test_a_nearly_constant_kernel_does_not_hold_nu_up(gamma: float, weight: float) -> None:
    """Without a bias, kernel values of .95 or more and a high cost: most responses lie close together for long."""
    X, y = points(200, 4, seed=8)
    y = np.where(np.arange(200) % 4 == 0, 1.0, y)
    case = replace(problem(X, y, Kernel(RBF, gamma), np.where(y > 0, 1e3 * weight, 1e3)), bias="none")
    constant = case.upper @ np.maximum(0.0, 1 - case.y * np.sign(case.y @ case.upper))  # where it would stay
    assert constant > 1.3 * optimum(case, kernel_matrix(case))
    assert above(case, 40) <= 1.12


@BIASES
def test_equal_rows_of_both_classes_do_not_hold_nu_down(bias: Bias) -> None:
    """Points of a grid, many with both labels, and a high cost: α of such a pair comes to 0, and at the optimum is C."""
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(500, 2)))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=500) > 0, 1.0, -1.0)
    assert above(replace(problem(X, y, Kernel(RBF, 1.0), 1e3), bias=bias), 40) <= 1.01


@pytest.mark.parametrize("weight", [1.0, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_many_responses_that_tie_do_not_hold_nu_down(seed: int, weight: float) -> None:
    """One example against 59, all on one side of 0, no bias: w that fits the one alone has the 59 at its margin for any ν."""
    X = np.random.default_rng(seed).normal(3.0, 1.0, size=(60, 8))
    y = np.where(np.arange(60) > 0, 1.0, -1.0)
    cost = np.where(y > 0, 0.1 * weight, 0.1)
    assert above(replace(problem(X, y, Kernel(LINEAR), cost), bias="none"), 20) <= 1.01


# --- odd problems ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", ["free", "none"])
@pytest.mark.parametrize("name", ["two rows", "duplicated rows", "empty rows", "empty rows, linear", "2 against 38"])
def test_odd_problems_are_solved(name: str, bias: Bias) -> None:
    case = replace(named(name), bias=bias)
    K = kernel_matrix(case)
    _, beta, rho = ended(case, sbp.Options(epochs=60))
    assert primal_objective(K, case, beta, rho) == pytest.approx(optimum(case, K), rel=0.01)
    assert (beta[K.diagonal() == 0] == 0).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_class_alone(sign: float) -> None:
    """With a bias f = y everywhere, at no cost and no step; without one there is an optimum like any other."""
    X, _ = points(30, 3, seed=2)
    case = problem(X, np.full(30, sign), Kernel(RBF, 0.5), 2.0)
    state, beta, rho = ended(case, sbp.Options())
    assert (rho, np.count_nonzero(beta), state.counts[level.STEP]) == (-sign, 0, 0)
    case = replace(case, bias="none")
    K = kernel_matrix(case)
    _, beta, rho = ended(case, sbp.Options(epochs=60))
    assert primal_objective(K, case, beta, rho) == pytest.approx(optimum(case, K), rel=0.01)


@pytest.mark.parametrize("bias", ["free", "none"])
def test_the_optimum_without_any_kernel_value_is_certified(bias: Bias) -> None:
    y = np.array([1.0, -1.0, -1.0])
    problem = Problem(Rows.from_dense(np.zeros((3, 1))), y, np.full(3, 2.0), Kernel(LINEAR), bias)
    result = run(sbp, problem, sbp.Options(), eps=1e-3)
    assert result.status is Status.CONVERGED
    assert (result.certificate.gap, result.certificate.violation) == (0.0, 0.0)
    assert result.certificate.primal == (4.0 if bias == "free" else 6.0)


def test_without_any_kernel_value_the_heavier_class_wins() -> None:
    case = named("all rows empty")
    state, beta, rho = ended(case, sbp.Options())
    assert abs(beta.sum()) < 1e-12
    assert rho == -np.sign(case.y @ case.upper)
    assert state.rows.engine.evaluations == 0
