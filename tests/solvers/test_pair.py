"""The pair solver says what svm-train prints: against texts that the genuine tool wrote, the tool itself where it is installed,
and a naive run of the same method."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from data_files import write_points
from golden_data import TOOLS, needs_tools
from oracle import beta_of, kernel_matrix, naive_pairs
from zoo import named, points, problem

from svmkit.certificate import certify
from svmkit.data import Floats
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, SIGMOID, DualQP, Kernel, Problem
from svmkit.solvers import pair
from svmkit.trace import Progress

EVERY = 10**9


@dataclass(frozen=True)
class Setting:
    """Training options by LIBSVM's letters. All are exact in float32, to which Debian's svm-train rounds what it reads."""

    t: int = 2
    c: float = 1.0
    g: float = 0.5
    r: float = 0.0
    d: int = 3
    w: tuple[float, float] = (1.0, 1.0)
    h: int = 1
    m: float = 100.0
    e: float = 0.0009765625
    ties: bool = False

    def __str__(self) -> str:
        weights = "" if self.w == (1.0, 1.0) else f" -w1 {self.w[0]:g} -w-1 {self.w[1]:g}"
        kernel = f"-t {self.t} -g {self.g:g} -r {self.r:g} -d {self.d}"
        return f"{kernel} -c {self.c:g} -e {self.e:.10g} -h {self.h} -m {self.m:g}{weights}"

    @property
    def name(self) -> str:
        return f"{'ties' if self.ties else 'plain'} {self}"

    @property
    def kernel(self) -> Kernel:
        return Kernel(self.t, self.g, self.r, self.d)


SETTINGS = [
    Setting(),
    Setting(c=64.0),
    Setting(c=1024.0, g=0.125),
    Setting(c=64.0, h=0),
    Setting(c=64.0, m=0.0078125),
    Setting(c=0.015625),
    Setting(c=8.0, w=(4.0, 0.5)),
    Setting(c=8.0, e=0.5),
    Setting(c=8.0, e=2.0**-20),
    Setting(t=0),
    Setting(t=0, c=0.03125, w=(1.0, 2.0)),
    Setting(t=0, c=64.0, e=0.0625),
    Setting(t=1, r=1.0, g=0.25),
    Setting(t=1, r=0.5, g=0.25, d=2, c=4.0, h=0),
    Setting(t=3, g=0.03125, r=-0.5),
    Setting(t=3, g=0.5, c=4.0),
    Setting(ties=True),
    Setting(ties=True, c=16.0, g=0.25),
    Setting(ties=True, t=0),
]


def training_data(setting: Setting) -> tuple[Floats, Floats]:
    """The setting's data, positives first."""
    return zeros_and_ones() if setting.ties else sixty_fourths()


def zeros_and_ones() -> tuple[Floats, Floats]:
    """300 rows of which many are equal, so that the choice of a pair often meets ties."""
    X, y = points(300, 6, seed=21)
    order = np.argsort(-y, kind="stable")
    return (X[order] > 0).astype(np.float64), y[order]


def sixty_fourths() -> tuple[Floats, Floats]:
    """600 sparse rows whose values are multiples of 1/64, so that every decimal text of them is exact; positives first."""
    X, y = points(600, 8, seed=20, density=0.7)
    order = np.argsort(-y, kind="stable")
    return np.round(X[order] * 64) / 64, y[order]


def solve(setting: Setting) -> str:
    """What svm-train would print, from ``report``."""
    X, y = training_data(setting)
    C = setting.c * np.where(y > 0, *setting.w)
    options = pair.Options(cache_mb=setting.m, shrinking=bool(setting.h))
    state = pair.start(problem(X, y, setting.kernel, C), options, setting.e, 0)
    assert pair.advance(state, EVERY).done
    return text_of(pair.report(state))


def text_of(report: pair.PairReport) -> str:
    nu = "" if report.nu is None else f"nu = {report.nu:f}\n"
    return (
        f"{report.progress}\noptimization finished, #iter = {report.iterations}\n{nu}"
        f"obj = {report.objective:f}, rho = {report.rho:f}\nnSV = {report.n_support}, nBSV = {report.n_bounded}\n"
        f"Total nSV = {report.n_support}\n"
    )


#: Made by LIBSVM 3.24's svm-train on files of ``training_data``.
GOLDEN = {
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 1 -e 0.0009765625 -h 1 -m 100": (
        "*.*\n"
        "optimization finished, #iter = 740\n"
        "nu = 0.593258\n"
        "obj = -242.706894, rho = 0.102143\n"
        "nSV = 463, nBSV = 219\n"
        "Total nSV = 463\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 64 -e 0.0009765625 -h 1 -m 100": (
        "..*..*\n"
        "optimization finished, #iter = 2483\n"
        "nu = 0.040398\n"
        "obj = -817.589271, rho = 0.049469\n"
        "nSV = 417, nBSV = 1\n"
        "Total nSV = 417\n"
    ),
    "plain -t 2 -g 0.125 -r 0 -d 3 -c 1024 -e 0.0009765625 -h 1 -m 100": (
        "................................*................*\n"
        "optimization finished, #iter = 29129\n"
        "nu = 0.083623\n"
        "obj = -30385.874761, rho = -0.295151\n"
        "nSV = 259, nBSV = 16\n"
        "Total nSV = 259\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 64 -e 0.0009765625 -h 0 -m 100": (
        "....*\n"
        "optimization finished, #iter = 2483\n"
        "nu = 0.040398\n"
        "obj = -817.589271, rho = 0.049469\n"
        "nSV = 417, nBSV = 1\n"
        "Total nSV = 417\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 64 -e 0.0009765625 -h 1 -m 0.0078125": (
        "..*..*\n"
        "optimization finished, #iter = 2483\n"
        "nu = 0.040398\n"
        "obj = -817.589271, rho = 0.049469\n"
        "nSV = 417, nBSV = 1\n"
        "Total nSV = 417\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 0.015625 -e 0.0009765625 -h 1 -m 100": (
        "*\n"
        "optimization finished, #iter = 305\n"
        "nu = 0.950000\n"
        "obj = -8.684723, rho = 0.914086\n"
        "nSV = 574, nBSV = 565\n"
        "Total nSV = 574\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 8 -e 0.0009765625 -h 1 -m 100 -w1 4 -w-1 0.5": (
        ".*.*\noptimization finished, #iter = 1566\nobj = -478.273573, rho = 0.088384\nnSV = 441, nBSV = 45\nTotal nSV = 441\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 8 -e 0.5 -h 1 -m 100": (
        "*\n"
        "optimization finished, #iter = 395\n"
        "nu = 0.195443\n"
        "obj = -567.471775, rho = 0.057937\n"
        "nSV = 406, nBSV = 29\n"
        "Total nSV = 406\n"
    ),
    "plain -t 2 -g 0.5 -r 0 -d 3 -c 8 -e 9.536743164e-07 -h 1 -m 100": (
        "....*.*\n"
        "optimization finished, #iter = 3503\n"
        "nu = 0.204491\n"
        "obj = -575.201846, rho = 0.066074\n"
        "nSV = 434, nBSV = 34\n"
        "Total nSV = 434\n"
    ),
    "plain -t 0 -g 0.5 -r 0 -d 3 -c 1 -e 0.0009765625 -h 1 -m 100": (
        "...*.*\n"
        "optimization finished, #iter = 2825\n"
        "nu = 0.476525\n"
        "obj = -282.615431, rho = -0.091044\n"
        "nSV = 289, nBSV = 280\n"
        "Total nSV = 289\n"
    ),
    "plain -t 0 -g 0.5 -r 0 -d 3 -c 0.03125 -e 0.0009765625 -h 1 -m 100 -w1 1 -w-1 2": (
        "*\noptimization finished, #iter = 378\nobj = -13.497694, rho = 0.551926\nnSV = 356, nBSV = 347\nTotal nSV = 356\n"
    ),
    "plain -t 0 -g 0.5 -r 0 -d 3 -c 64 -e 0.0625 -h 1 -m 100": (
        ".............................................\n"
        "WARNING: using -h 0 may be faster\n"
        "*...................................................*.......*\n"
        "optimization finished, #iter = 61601\n"
        "nu = 0.465409\n"
        "obj = -17868.330770, rho = -0.088158\n"
        "nSV = 291, nBSV = 272\n"
        "Total nSV = 291\n"
    ),
    "plain -t 1 -g 0.25 -r 1 -d 3 -c 1 -e 0.0009765625 -h 1 -m 100": (
        ".......*....*\n"
        "optimization finished, #iter = 7040\n"
        "nu = 0.354617\n"
        "obj = -181.994120, rho = -0.695779\n"
        "nSV = 275, nBSV = 161\n"
        "Total nSV = 275\n"
    ),
    "plain -t 1 -g 0.25 -r 0.5 -d 2 -c 4 -e 0.0009765625 -h 0 -m 100": (
        "....................*\n"
        "optimization finished, #iter = 12034\n"
        "nu = 0.417371\n"
        "obj = -980.410351, rho = -0.442807\n"
        "nSV = 272, nBSV = 230\n"
        "Total nSV = 272\n"
    ),
    "plain -t 3 -g 0.03125 -r -0.5 -d 3 -c 1 -e 0.0009765625 -h 1 -m 100": (
        "*\n"
        "optimization finished, #iter = 278\n"
        "nu = 0.644078\n"
        "obj = -343.666063, rho = -0.036844\n"
        "nSV = 393, nBSV = 383\n"
        "Total nSV = 393\n"
    ),
    "plain -t 3 -g 0.5 -r 0 -d 3 -c 4 -e 0.0009765625 -h 1 -m 100": (
        "*\n"
        "optimization finished, #iter = 205\n"
        "nu = 0.355864\n"
        "obj = -8662.805308, rho = -0.010933\n"
        "nSV = 216, nBSV = 211\n"
        "Total nSV = 216\n"
    ),
    "ties -t 2 -g 0.5 -r 0 -d 3 -c 1 -e 0.0009765625 -h 1 -m 100": (
        "*\n"
        "optimization finished, #iter = 171\n"
        "nu = 0.599514\n"
        "obj = -162.630687, rho = -0.123587\n"
        "nSV = 192, nBSV = 164\n"
        "Total nSV = 192\n"
    ),
    "ties -t 2 -g 0.25 -r 0 -d 3 -c 16 -e 0.0009765625 -h 1 -m 100": (
        "..\n"
        "WARNING: using -h 0 may be faster\n"
        "*.\n"
        "WARNING: using -h 0 may be faster\n"
        "*\n"
        "optimization finished, #iter = 1071\n"
        "nu = 0.499881\n"
        "obj = -2241.464830, rho = -0.181641\n"
        "nSV = 181, nBSV = 123\n"
        "Total nSV = 181\n"
    ),
    "ties -t 0 -g 0.5 -r 0 -d 3 -c 1 -e 0.0009765625 -h 1 -m 100": (
        "*\n"
        "optimization finished, #iter = 103\n"
        "nu = 0.586667\n"
        "obj = -174.000000, rho = 0.999941\n"
        "nSV = 182, nBSV = 172\n"
        "Total nSV = 182\n"
    ),
}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_text_is_what_svm_train_wrote(setting: Setting) -> None:
    assert solve(setting) == GOLDEN[setting.name]


@needs_tools
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_text_is_what_svm_train_writes(setting: Setting, tmp_path: Path) -> None:
    write_points(tmp_path / "data", *training_data(setting))
    command = [str(TOOLS / "svm-train"), *str(setting).split(), "data", "model"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert solve(setting) == finished.stdout


@pytest.mark.parametrize(
    "name", ["linear", "polynomial", "precomputed", "class weights", "sparse, rbf", "300 rows, linear", "400 sparse rows, rbf"]
)
def test_steps_and_kernel_values_of_a_naive_run(name: str) -> None:
    """Each row of Q that a run without shrinking looks at is computed once; the diagonal does not count."""
    case = named(name)
    naive = naive_pairs(case, kernel_matrix(case), 1e-3)
    state = pair.start(case, pair.Options(shrinking=False), 1e-3, 0)
    progress = pair.advance(state, EVERY)
    report = pair.report(state)
    assert (progress.steps, report.iterations) == (naive.iterations, naive.iterations)
    assert progress.kernel_evaluations == case.n * len(naive.rows_used)
    assert report.objective == pytest.approx(naive.objective, rel=1e-12)
    assert report.rho == pytest.approx(naive.rho, rel=1e-9)
    np.testing.assert_allclose(beta_of(case, pair.solution(state)), naive.beta, rtol=1e-6, atol=1e-9)


def test_no_kernel_value_is_computed_twice_while_rows_grow() -> None:
    """Shrinking asks for the first part of rows, later for the rest; until the gradient is rebuilt nothing is forgotten."""
    X, y = sixty_fourths()
    state = pair.start(problem(X, y, Kernel(LINEAR), 8.0), pair.Options(), 1e-3, 0)
    grown, before = 0, state.cache.filled.copy()
    while True:
        progress = pair.advance(state, 1)
        if "*" in state.said:
            break
        filled = state.cache.filled
        assert progress.kernel_evaluations == filled.sum()
        grown += int(np.count_nonzero((before > 0) & (filled > before)))
        before = filled.copy()
    assert grown > 10


def run(case: Problem, cache_mb: float = 100.0, budget: int = EVERY) -> tuple[Progress, pair.State]:
    state = pair.start(case, pair.Options(cache_mb=cache_mb), 1e-3, 0)
    progress = pair.advance(state, budget)
    while not (progress.done or progress.stalled):
        progress = pair.advance(state, budget)
    return progress, state


def test_report_does_not_depend_on_cutting_or_cache() -> None:
    X, y = sixty_fourths()
    case = problem(X, y, Kernel(RBF, 0.5), 64.0)
    progress, whole = run(case)
    for cut, state in (run(case, budget=1), run(case, budget=997)):
        assert cut == progress
        assert pair.report(state) == pair.report(whole)
    two_rows, cached = run(case, cache_mb=1e-9)
    assert pair.report(cached) == pair.report(whole)
    assert two_rows.kernel_evaluations > 2 * progress.kernel_evaluations
    assert len(cached.cache.owner) == 2


class Started(Problem):
    """A problem whose dual does not start at zero."""

    alpha: Floats

    def dual(self) -> DualQP:
        return replace(super().dual(), start=self.alpha)


def test_a_start_at_the_answer_is_the_answer() -> None:
    case = named("300 rows, rbf")
    _, state = run(case)
    started = Started(case.rows, case.y, case.upper, case.kernel)
    object.__setattr__(started, "alpha", beta_of(case, pair.solution(state)) * case.y)
    progress, again = run(started)
    assert progress.done
    assert progress.steps == 0
    assert pair.report(again).objective == pytest.approx(pair.report(state).objective, rel=1e-12)
    assert pair.report(again).rho == pytest.approx(pair.report(state).rho, rel=1e-9)


def test_the_limit_of_iterations_is_a_stall() -> None:
    """An eps that rounding keeps out of reach: svm-train's limit of 10⁷ iterations, with a dot for every n of them."""
    case = named("linear, C 100")
    state = pair.start(case, pair.Options(shrinking=False), 1e-300, 0)
    progress = pair.advance(state, EVERY)
    assert (progress.done, progress.stalled) == (False, True)
    assert progress.steps == 10_000_000
    assert pair.report(state).progress == "." * ((10_000_000 - 1) // case.n)
    assert pair.advance(state, EVERY) == progress


def test_the_limit_of_iterations_makes_every_gradient_good_again() -> None:
    """Also for a caller that asks for just the steps up to it: the objective is that of all variables, shrunk ones too."""
    X, y = sixty_fourths()
    case = problem(X, y, Kernel(LINEAR), 64.0)
    state = pair.start(case, pair.Options(), 1e-3, 0)
    state.counts[pair.loops.STEPS] = 10_000_000 - 30_000
    assert not pair.advance(state, 29_999).stalled
    assert state.counts[pair.loops.ACTIVE] < case.n
    assert pair.advance(state, 1).stalled
    report, dual = pair.report(state), certify(case, pair.solution(state)).dual
    assert report.progress.endswith("*")
    assert report.objective == pytest.approx(-dual, rel=1e-6)


@pytest.mark.parametrize("kernel", [Kernel(LINEAR), Kernel(POLYNOMIAL, 1.0, 0.0, 9)], ids=lambda kernel: kernel.name)
def test_overflow_is_never_called_converged(kernel: Kernel) -> None:
    X, y = points(20, 3, seed=1)
    progress = pair.advance(pair.start(problem(X * 1e160, y, kernel), pair.Options(), 1e-3, 0), EVERY)
    assert (progress.done, progress.stalled) == (False, True)


def test_variables_without_room_are_no_bounded_support_vectors_and_say_nothing_of_rho() -> None:
    X, y = points(20, 3, seed=1)
    _, state = run(problem(X, y, Kernel(RBF, 0.5), np.where(np.arange(20) < 6, 0.0, 0.1)))
    report = pair.report(state)
    assert report.n_bounded == np.count_nonzero(state.variables.alpha == 0.1) > 0
    state = pair.start(problem(X, y, Kernel(RBF, 0.5), 0.0), pair.Options(), 1e-3, 0)
    assert pair.solution(state).rho == 0.0


def test_a_rho_of_0_has_no_sign() -> None:
    """All slopes of free variables are −0 here; svm-train adds them to 0, and prints 0."""
    X, y = np.array([[-1.0, 0.0673], [2.0, 0.0], [3.0, 1.42], [0.0, 0.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    case = replace(problem(X, y, Kernel(SIGMOID, 1024.0)), upper=np.array([1.0, 10.0, 10.0, 1.0]))
    _, state = run(case)
    assert str(pair.report(state).rho) == "0.0"
