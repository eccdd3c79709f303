"""Dual coordinate ascent: step by step against a plain one with the same draws, its counts, its ends, and w as a model."""

from __future__ import annotations

import math
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import oracle
import pytest
import zoo
from golden_data import GOLDEN, TOOLS, dataset_of, needs_tools, numbers

from svmkit.certificate import certify
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Ints, Rows
from svmkit.engine import active, kernels, layouts, rng
from svmkit.errors import DataError
from svmkit.fit import fit
from svmkit.io.model_libsvm import model_text, parse_model
from svmkit.model import decision_values, predict
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, Kernel, Problem
from svmkit.recertify import certificates
from svmkit.solvers import sdca
from svmkit.solvers.base import run
from svmkit.trace import Progress, Status

EVERY = 10**9


def large(n: int = 300, C: float = 4.0, kernel: Kernel = Kernel(RBF, 0.25)) -> Problem:
    X, y = zoo.points(n, 6, seed=21)
    upper = np.random.default_rng(22).uniform(0.5, 1.5, n) * C
    return replace(zoo.problem(X, y, kernel, upper), bias="none")


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 16 variables, none that hold more than 24 at once, and 16 that the box may hold back."""
    monkeypatch.setattr(sdca, "_BLOCK", 16)
    monkeypatch.setattr(sdca, "_MOST_OUTSIDE", 16)
    monkeypatch.setattr(sdca, "_HELD", 24)


@dataclass
class Plain:
    """Single steps on a dense K; every response is computed when it is needed."""

    problem: Problem
    seed: int
    shrinking: bool
    momentum: bool = False
    beta: Floats = field(init=False)
    before: Floats | None = None
    went_on: list[int] = field(default_factory=list)
    visits: int = 0
    values: int = 0
    sizes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.beta = np.zeros(self.problem.n)
        self.K = oracle.kernel_matrix(self.problem)
        self.active: Ints = np.arange(self.problem.n)
        self.rows_used: set[int] = set()

    def sweep(self, number: int) -> None:
        y, bound = self.problem.y, self.problem.y * self.problem.upper
        lower, upper = np.minimum(0, bound), np.maximum(0, bound)
        if len(self.active) > sdca._HELD:
            self.rows_used = set()
        begun = self.beta.copy()
        for i in self.active[rng.permutation(self.seed, number, len(self.active))].tolist():
            F = y[i] - self.K[i] @ self.beta
            new = min(max(self.beta[i] + F / self.K[i, i], lower[i]), upper[i])
            self.visits += 1
            if new != self.beta[i] and i not in self.rows_used:
                self.values += len(self.active)
                if len(self.active) <= sdca._HELD:
                    self.rows_used.add(i)
            self.beta[i] = new
        self.sizes.append(len(self.active))
        if self.momentum and (number + 1) * self.problem.n >= sdca._LEAST_VISITS:
            self.go_on(self.beta - begun, lower, upper)
            self.before = self.beta - begun
        if self.shrinking:
            F = (y - self.K @ self.beta)[self.active]
            beta, low, high = self.beta[self.active], lower[self.active], upper[self.active]
            violation = max(F[beta < high].max(initial=0.0), -F[beta > low].min(initial=0.0))
            stuck = np.where(beta == low, -F, np.where(beta == high, F, 0.0))
            keep = stuck <= violation
            if np.count_nonzero(~keep) > active._WORTH * len(keep):
                self.active, self.before = self.active[keep], None

    def go_on(self, move: Floats, lower: Floats, upper: Floats) -> None:
        """To the best point of the plane of both moves, in the box, if that is better."""
        moves = np.array([move] if self.before is None else [move, self.before])
        lengths = np.linalg.solve(moves @ self.K @ moves.T, moves @ (self.problem.y - self.K @ self.beta))
        wanted = self.beta + lengths @ moves
        beta = np.clip(wanted, lower, upper)
        outside = np.count_nonzero(beta != wanted)
        if outside > sdca._MOST_OUTSIDE:
            return
        self.values += 0 if len(self.active) <= sdca._HELD else outside * len(self.active)
        dual = [oracle.dual_objective(self.K, self.problem.y, point) for point in (self.beta, beta)]
        if dual[1] > dual[0]:
            self.beta = beta
            self.went_on.append(outside)


def beta_of(problem: Problem, state: sdca.State) -> Floats:
    return oracle.beta_of(problem, sdca.solution(state))


@pytest.mark.parametrize(("held", "seed"), [(24, 0), (24, 3), (200, 0)])
@pytest.mark.parametrize("shrinking", [False, True])
def test_the_steps_are_the_plain_ones(
    monkeypatch: pytest.MonkeyPatch, blocks: None, shrinking: bool, held: int, seed: int
) -> None:
    """The same α and count of kernel values at the ends of ten sweeps, while variables go aside; the last are held, or not."""
    monkeypatch.setattr(sdca, "_HELD", held)
    problem = large()
    state = sdca.start(problem, sdca.Options(shrinking=shrinking, momentum=False), 1e-9, seed)
    plain = Plain(problem, seed, shrinking)
    for sweep in range(10):
        plain.sweep(sweep)
        progress = sdca.advance(state, plain.visits - state.steps)
        np.testing.assert_allclose(beta_of(problem, state), plain.beta, atol=1e-4)  # float32 kernel values
        assert progress.steps == plain.visits
        assert progress.kernel_evaluations == plain.values
    assert (plain.sizes[-1] < 0.6 * problem.n) == shrinking


@pytest.mark.parametrize("held", [24, 1000])
def test_the_steps_are_the_plain_ones_in_float64(monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    """Down to rounding, in blocks and with the kernel matrix held; cut at any visit."""
    monkeypatch.setattr(sdca, "_HELD", held)
    monkeypatch.setattr(sdca, "_BLOCK", 16)
    if held < 90:  # else float64 costs nothing, and is what a run begins with
        monkeypatch.setattr(kernels, "suited", lambda *rows_and_kernel: ("f8", layouts.layout_of(*rows_and_kernel, "f8")))
    problem = large(90)
    state = sdca.start(problem, sdca.Options(shrinking=False, momentum=False), 1e-9, 5)
    plain = Plain(problem, 5, False)
    for sweep in range(5):
        for cut in (1, 40, 49):
            progress = sdca.advance(state, cut)
            assert progress.steps == 90 * sweep + {1: 1, 40: 41, 49: 90}[cut]
        plain.sweep(sweep)
        np.testing.assert_allclose(beta_of(problem, state), plain.beta, rtol=1e-9, atol=1e-11)
        assert progress.kernel_evaluations == plain.values


@pytest.mark.parametrize("kernel", [Kernel(RBF, 0.25), Kernel(POLYNOMIAL, 0.2, 1.0, 2)], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("shrinking", [False, True])
@pytest.mark.parametrize("held", [24, 70, 1000])
def test_sweeps_go_on_as_the_plain_ones_do(
    held: int, shrinking: bool, kernel: Kernel, monkeypatch: pytest.MonkeyPatch, blocks: None
) -> None:
    """With momentum, with few variables brought back into the box and with many, over fewer variables from some sweep on."""
    monkeypatch.setattr(sdca, "_HELD", held)
    monkeypatch.setattr(sdca, "_LEAST_VISITS", 270)
    monkeypatch.setattr(kernels, "suited", lambda *rows_and_kernel: ("f8", layouts.layout_of(*rows_and_kernel, "f8")))
    problem = large(90, C=20.0, kernel=kernel)
    state = sdca.start(problem, sdca.Options(shrinking=shrinking), 1e-9, 5)
    plain = Plain(problem, 5, shrinking and held < 90, momentum=True)
    for sweep in range(25):
        plain.sweep(sweep)
        progress = sdca.advance(state, plain.visits - state.steps)
        assert state.form.visit(0, EVERY) == 0  # the end of the sweep
        np.testing.assert_allclose(beta_of(problem, state), plain.beta, rtol=1e-6, atol=1e-8)
        assert progress.steps == plain.visits
        assert state.form.kernel_evaluations() == plain.values
    assert len(plain.went_on) > 10
    assert max(plain.went_on) > 0
    assert (len(set(plain.sizes)) > 1) == (shrinking and held < 90)


def test_momentum_saves_most_visits_of_an_ill_conditioned_problem() -> None:
    visits, duals = [], []
    for on in (False, True):
        result = run(sdca, large(C=1e4), sdca.Options(momentum=on), eps=1e-6)
        assert result.status is Status.CONVERGED
        visits.append(result.steps)
        duals.append(result.certificate.dual)
    assert visits[1] < 0.3 * visits[0]
    assert duals[0] == pytest.approx(duals[1], rel=1e-9)


@pytest.mark.parametrize("kernel", [Kernel(POLYNOMIAL, 1.0, 1.0, 2), Kernel(RBF, 1e-3)], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("seed", range(4))
def test_moves_that_the_kernel_does_not_bend_lead_nowhere_worse(seed: int, kernel: Kernel) -> None:
    """150 rows, each one of two, with noisy labels: along most moves only rounding bends W, and the best point is far away."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((150, 1)) < 0.5, 1.0, 0.0)
    y = np.where(rng.random(150) < np.where(X[:, 0] > 0, 0.2, 0.7), -1.0, 1.0)
    case = replace(zoo.problem(X, y, kernel, 100.0), bias="none")
    K, duals = oracle.kernel_matrix(case), []
    for on in (False, True):
        state = sdca.start(case, sdca.Options(momentum=on), 1e-5, 0)
        while not (progress := sdca.advance(state, 150)).ended and progress.steps < 100_000:
            assert isinstance(state.form, sdca._KernelForm)
            whole = state.form.variables.whole
            np.testing.assert_allclose(whole.F, y - K @ whole.beta, atol=1e-8)
        duals.append(oracle.dual_objective(K, y, beta_of(case, state)))
    assert progress.done
    assert duals[1] == pytest.approx(duals[0], rel=1e-6)


@pytest.mark.parametrize("C", [0.5, 100.0])
@pytest.mark.parametrize("shrinking", [False, True])
def test_many_blocks_reach_the_optimum(blocks: None, C: float, shrinking: bool) -> None:
    problem = large(150, C=C)
    state = sdca.start(problem, sdca.Options(shrinking=shrinking), 1e-4, 0)
    progress = sdca.advance(state, EVERY)
    assert progress.done
    K = oracle.kernel_matrix(problem)
    best = oracle.optimum(problem, K)
    assert oracle.dual_objective(K, problem.y, beta_of(problem, state)) >= best * (1 - 1e-6)
    assert oracle.violation(K, problem, beta_of(problem, state)) <= 1e-4 + 1e-10
    found = sdca.solution(state)
    assert found.responses is not None
    np.testing.assert_allclose(found.responses, K @ beta_of(problem, state), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kernel", [Kernel(RBF, 0.25), Kernel(LINEAR)], ids=lambda kernel: kernel.name)
def test_thirty_sweeps_come_within_a_ten_thousandth(kernel: Kernel) -> None:
    problem = large(150, C=1.0, kernel=kernel)
    state = sdca.start(problem, sdca.Options(epochs=30), 1e-12, 0)
    progress = sdca.advance(state, EVERY)
    assert progress.completed
    assert 30 * problem.n <= progress.steps < 31 * problem.n
    K = oracle.kernel_matrix(problem)
    best = oracle.optimum(problem, K)
    assert oracle.dual_objective(K, problem.y, beta_of(problem, state)) >= best * (1 - 1e-4)


def test_used_up_epochs_are_a_limit_and_no_more_is_done() -> None:
    result = run(sdca, large(), sdca.Options(epochs=2), eps=1e-9)
    assert result.status is Status.MAX_ITER
    assert result.steps == 600
    state = sdca.start(large(), sdca.Options(epochs=2), 1e-9, 0)
    assert sdca.advance(state, EVERY) == sdca.advance(state, EVERY)


def test_with_the_tolerance_met_as_the_epochs_end_it_is_converged() -> None:
    problem = large(C=1e-3)  # every multiplier goes to its bound in the first sweep
    assert run(sdca, problem, sdca.Options(epochs=1), eps=1e-3).status is Status.CONVERGED


def test_training_turns_to_float64_when_corrections_do_not_help(monkeypatch: pytest.MonkeyPatch, blocks: None) -> None:
    """gamma‖x‖² = 1e5 leaves float32 kernels two digits; the answer is right all the same."""
    X, y = zoo.points(200, 4, seed=13)
    X += 300.0
    X[0] = 0.0  # else rows would be moved to the origin
    problem = replace(zoo.problem(X, y, Kernel(RBF, 0.5), 10.0), bias="none")
    monkeypatch.setattr(kernels, "suited", lambda *rows_and_kernel: ("f4", layouts.layout_of(*rows_and_kernel, "f4")))
    state = sdca.start(problem, sdca.Options(), 1e-5, 0)
    progress = sdca.advance(state, EVERY)
    assert progress.done
    assert isinstance(state.form, sdca._KernelForm)
    assert state.form.variables.engine.packed.real == "f8"
    K = oracle.kernel_matrix(problem)
    assert oracle.violation(K, problem, beta_of(problem, state)) <= 1e-5 + 1e-7


def test_where_nothing_moves_float64_begins_with_all_variables_and_their_own_values(blocks: None) -> None:
    state = sdca.start(large(), sdca.Options(), 1e-3, 0)
    form = state.form
    assert isinstance(form, sdca._KernelForm)
    while form.variables.is_whole:
        assert not sdca.advance(state, 100).ended
    if form.block is not None:
        form._close_block(form.block)
    form.moved = 0
    form._end_sweep()
    assert (form.variables.engine.packed.real, form.variables.is_whole) == ("f8", True)
    whole = form.variables.whole
    np.testing.assert_allclose(whole.F, large().y - oracle.kernel_matrix(large()) @ whole.beta, atol=1e-10)


def test_in_float64_a_run_has_all_its_chances_again_and_then_none(blocks: None) -> None:
    form = sdca.start(large(), sdca.Options(), 1e-3, 0).form
    assert isinstance(form, sdca._KernelForm)
    assert form.variables.engine.packed.real == "f4"
    while not form.checks.fail(1.0):
        pass
    form._use_float64()
    assert (form.variables.engine.packed.real, form.stalled) == ("f8", False)
    assert not form.checks.fail(1.0)
    form._use_float64()
    assert form.stalled


@pytest.mark.parametrize("kernel", [Kernel(LINEAR), Kernel(1, 1.0, 0.0, 3)], ids=lambda kernel: kernel.name)
def test_kernel_values_that_overflow_are_a_stall_not_a_loop(kernel: Kernel) -> None:
    X, y = zoo.points(30, 3, seed=14)
    problem = replace(zoo.problem(X * 1e160, y, kernel), bias="none")
    with np.errstate(all="ignore"):
        state = sdca.start(problem, sdca.Options(), 1e-3, 0)
        progress = sdca.advance(state, 100_000)
    assert progress.stalled
    assert np.isfinite(sdca.solution(state).coef).all()


# --- the linear form ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shrinking", [False, True])
def test_w_is_that_of_its_alpha(shrinking: bool) -> None:
    problem = large(kernel=Kernel(LINEAR))
    state = sdca.start(problem, sdca.Options(shrinking=shrinking), 1e-6, 0)
    progress = Progress(0, 0)
    while not progress.ended:
        progress = sdca.advance(state, 1000)
        found = sdca.solution(state)
        assert found.alpha is not None
        assert (found.origin.tolist(), found.coef.tolist()) == ([-1], [1.0])
        assert (found.alpha >= 0).all()
        assert (found.alpha <= problem.upper).all()
        w = (problem.y * found.alpha) @ problem.rows.to_dense()
        np.testing.assert_allclose(found.own.to_dense()[0], w, rtol=1e-9, atol=1e-12)
    assert progress.done
    certificate = certify(problem, found)
    assert 0 <= certificate.gap <= 1e-4 * certificate.primal
    assert certificate.violation <= 1e-6


def test_setting_aside_saves_visits_and_changes_nothing_else() -> None:
    problem = large(kernel=Kernel(LINEAR), C=10.0)
    visits, duals = [], []
    for shrinking in (False, True):
        result = run(sdca, problem, sdca.Options(shrinking=shrinking), eps=1e-6)
        visits.append(result.steps)
        duals.append(result.certificate.dual)
    assert visits[1] < 0.75 * visits[0]
    assert duals[0] == pytest.approx(duals[1], rel=1e-9)


def test_an_eps_below_rounding_leaves_nothing_aside() -> None:
    """Where the active examples can meet it no more, those set aside come back all the same."""
    rng = np.random.default_rng(3)
    for eps in (1e-12, 1e-14, 1e-15):
        X = rng.normal(size=(200, 20))
        y = np.where(X[:, 0] + 0.5 * rng.normal(size=200) > 0, 1.0, -1.0)
        result = run(sdca, replace(zoo.problem(X, y, Kernel(LINEAR)), bias="none"), sdca.Options(epochs=5000), eps=eps, seed=1)
        assert result.certificate.violation < 1e-12


def test_near_copies_of_opposite_label_cost_no_sweeps_over_the_others() -> None:
    """The others can be told apart; each of the two goes to C by steps of what their difference is worth."""
    X, _ = zoo.points(300, 40, seed=21)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:, 0] += 5.0 * y
    X[1], y[0], y[1] = X[0], 1.0, -1.0
    X[1, 3] += 0.2
    problem = replace(zoo.problem(X, y, Kernel(LINEAR), 5.0), bias="none")
    result = run(sdca, problem, sdca.Options(shrinking=False), eps=1e-6)
    assert result.status is Status.CONVERGED
    alpha, w = np.zeros(300), np.zeros(40)
    sweeps, violation = 0, math.inf
    while violation > 1e-6:
        violation = 0.0
        for i in rng.permutation(0, sweeps, 300):
            gradient = y[i] * (w @ X[i]) - 1
            new = min(max(alpha[i] - gradient / (X[i] @ X[i]), 0.0), 5.0)
            violation = max(violation, abs(gradient) if 0 < alpha[i] < 5 else abs(new - alpha[i]))
            w += (new - alpha[i]) * y[i] * X[i]
            alpha[i] = new
        sweeps += 1
    assert result.certificate.dual == pytest.approx(alpha.sum() - 0.5 * w @ w, rel=1e-9)
    assert result.steps < 0.2 * 300 * sweeps


def test_hashed_features_come_back_under_their_own_numbers() -> None:
    problem = large(60, kernel=Kernel(LINEAR))
    places = np.array([0, 5, 900, 10**6, 10**8, 2**31 - 2, 2**31 - 1], dtype=np.int32)
    hashed = replace(problem, rows=problem.rows._replace(indices=places[problem.rows.indices], n_features=2**31 - 1))
    one, other = (run(sdca, case, sdca.Options(), eps=1e-4).solution.own for case in (problem, hashed))
    assert np.array_equal(places[one.indices], other.indices)
    assert np.array_equal(one.data, other.data)
    assert other.n_features == 2**31 - 1


def test_no_weights_at_all_are_no_support_vectors() -> None:
    problem = replace(zoo.named("all rows empty"), bias="none")
    result = run(sdca, problem, sdca.Options(), eps=1e-3)
    assert result.status is Status.CONVERGED
    assert result.solution.n_support == 0
    assert result.certificate.dual == result.certificate.primal == problem.n


# --- through fit and the model file ---------------------------------------------------------------------------------------


def config(kernel: str, **more: object) -> TrainConfig:
    return TrainConfig(kernel=kernel, gamma=0.25, solver="sdca", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "rbf", "sigmoid"])
def test_several_classes_and_weights_as_the_exact_solver_does(kernel: str) -> None:
    weighted = config(kernel, eps=1e-7, class_weight=((7, 2.0), (4, 0.5)))
    dataset = dataset_of("three")
    dataset = replace(dataset, weight=np.random.default_rng(1).uniform(0.5, 2.0, dataset.n))
    ours = fit(dataset, weighted)
    theirs = fit(dataset, replace(weighted, solver="smo", bias="none"))
    assert ours.status is Status.CONVERGED
    if kernel != "sigmoid":  # of which there may be several local optima
        test = dataset_of("three.t").rows
        decisions = [decision_values(found.model, test) for found in (ours, theirs)]
        np.testing.assert_allclose(decisions[0], decisions[1], atol=1e-6)
        assert ours.certificate.dual == pytest.approx(theirs.certificate.dual, rel=1e-8)


@pytest.mark.parametrize("name", ["two", "three"])
def test_a_model_of_w_has_one_row_a_machine(name: str) -> None:
    dataset, linear = dataset_of(name), config("linear")
    result = fit(dataset, linear)
    model = result.model
    k = model.n_class
    assert model.n_support == len(model.machines) == k * (k - 1) // 2
    assert model.class_counts is not None
    assert model.class_counts.tolist() == list(range(k - 1, -1, -1))
    assert (result.sv_index == -1).all()
    text = model_text(model)
    again = parse_model(text, "m")
    assert model_text(again) == text
    test = dataset_of(f"{name}.t").rows
    assert np.array_equal(decision_values(again, test), decision_values(model, test))
    for certificate, machine in zip(certificates(again, dataset, replace(linear, bias="none")), result.machines, strict=True):
        assert certificate.primal == pytest.approx(machine.certificate.primal, rel=1e-12)
        assert certificate.dual <= machine.certificate.primal


@needs_tools
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", ["two", "three"])
def test_genuine_svm_predict_says_the_same(name: str, kernel: str, tmp_path: Path) -> None:
    model = fit(dataset_of(name), config(kernel)).model
    (tmp_path / "m").write_bytes(model_text(model))
    argv = [TOOLS / "svm-predict", "-q", GOLDEN / f"{name}.t", tmp_path / "m", tmp_path / "o"]
    subprocess.run(argv, check=True, capture_output=True)
    ours = predict(model, decision_values(model, dataset_of(f"{name}.t").rows))
    assert np.array_equal(numbers(tmp_path / "o")[:, 0], ours)


def test_other_rows_than_the_training_rows_are_still_refused_a_certificate() -> None:
    dataset = dataset_of("two")
    plain = fit(dataset, config("linear", bias="none")).model
    exact = fit(dataset, replace(config("linear", bias="none"), solver="smo")).model
    moved = replace(dataset, rows=Rows.from_dense(dataset.rows.to_dense()[:, 1:] * 1.5))
    assert certificates(plain, moved, config("linear", bias="none"))[0].gap > 0
    with pytest.raises(DataError, match="is no example of the data"):
        certificates(exact, moved, config("linear", bias="none"))


def test_coefficients_whose_fourth_power_is_no_number_have_a_certificate() -> None:
    """Of a run that is cut short, whose float32 certificate is looked at for blur."""
    data = Dataset(Rows.from_dense(np.zeros((2, 1))), np.array([-67.0, -58.0]))
    found = fit(data, TrainConfig(solver="sdca", kernel="linear", lam=1e-100, eps=1e-12, time_limit_s=1e-9))
    assert found.status is Status.TIME_LIMIT
    assert found.certificate.gap == found.certificate.primal - found.certificate.dual


def test_kernel_values_of_the_last_look_count_too() -> None:
    """Each example against each support vector, in float64."""
    case = large(120)
    state = sdca.start(case, sdca.Options(), 1e-6, 0)
    progress = sdca.advance(state, 1)
    while not progress.ended:
        before, progress = progress, sdca.advance(state, 1)
    assert progress.done
    assert progress.steps <= before.steps + 1
    looked = progress.kernel_evaluations - before.kernel_evaluations
    assert looked in (120 * progress.n_support, 120 * progress.n_support + 120)
