"""Decision values and predictions: against sums written out, and against the genuine svm-predict."""

from __future__ import annotations

import subprocess
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from data_files import write_points
from golden_data import GOLDEN, MODELS, TOOLS, data_of, needs_tools, numbers, read_rows
from models import model_of
from numpy.testing import assert_allclose, assert_array_equal

from svmkit import model as model_module
from svmkit.data import Floats, Rows
from svmkit.engine.kernels import cross_apply
from svmkit.engine.packed import prepared
from svmkit.errors import DataError
from svmkit.io.model_libsvm import parse_model, read_model, write_model
from svmkit.model import Machine, Model, _float32_decisions, answers, decision_values, predict
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, Kernel


def naive_kernel(model: Model, rows: Rows, r: int, s: int) -> float:
    """K(rows[r], model.rows[s]) from dictionaries."""
    kernel = model.kernel
    if kernel.kind == PRECOMPUTED:
        return float(rows.gram[r, model.rows.serial[s] - 1])
    x, z = (
        dict(zip(a.indices[a.indptr[i] : a.indptr[i + 1]], a.data[a.indptr[i] : a.indptr[i + 1]], strict=True))
        for a, i in ((rows, r), (model.rows, s))
    )
    dot = sum(x[i] * z[i] for i in x if i in z)
    if kernel.kind == LINEAR:
        return float(dot)
    if kernel.kind == RBF:
        return float(np.exp(-kernel.gamma * sum((x.get(i, 0.0) - z.get(i, 0.0)) ** 2 for i in {*x, *z})))
    argument = kernel.gamma * dot + kernel.coef0
    return float(argument**kernel.degree if kernel.kind == POLYNOMIAL else np.tanh(argument))


def naive_decisions(model: Model, rows: Rows) -> Floats:
    K = np.array([[naive_kernel(model, rows, r, s) for s in range(model.rows.n)] for r in range(rows.n)])
    columns = [K[:, machine.index] @ machine.coef - machine.rho for machine in model.machines]
    return np.stack(columns, axis=1) if columns else np.zeros((rows.n, 0))


@pytest.mark.parametrize("name", MODELS)
def test_decision_values_are_the_sums_they_stand_for(name: str) -> None:
    model = read_model(str(GOLDEN / f"{name}.model"))
    _, rows = read_rows(data_of(name))
    expected = naive_decisions(model, rows)
    assert decision_values(model, rows).shape == expected.shape
    assert_allclose(decision_values(model, rows), expected, rtol=1e-9, atol=1e-9)


def test_far_from_all_support_vectors_rho_decides() -> None:
    """f = 0 is not above 0, so without a rho it is the second label, as in LIBSVM: no sum of what is next to 0 decides."""
    support = Rows.from_dense(np.array([[0.0], [1.0]]))
    rows = Rows.from_dense(np.array([[0.0], [1e3], [-1e6]]))
    for rho, label in ((0.0, 7.0), (0.5, 7.0), (-0.5, 5.0)):
        machine = Machine(np.arange(2), np.array([2.0, 1.0]), rho)
        classes = {"labels": np.array([5, 7]), "class_counts": np.array([2, 0])}
        model = model_of("c_svc", Kernel(RBF, 10.0), support, [machine], **classes)
        assert predict(model, decision_values(model, rows)).tolist() == [5.0, label, label]


@pytest.mark.parametrize("name", [name for name in MODELS if (GOLDEN / f"{name}.out").exists()])
def test_predictions_equal_svm_predicts(name: str) -> None:
    model = read_model(str(GOLDEN / f"{name}.model"))
    _, rows = read_rows(data_of(name))
    ours, theirs = predict(model, decision_values(model, rows)), numbers(GOLDEN / f"{name}.out")[:, 0]
    if name.startswith(("value", "gram-value")):
        assert_allclose(ours, theirs, rtol=1e-9)
    else:
        assert_array_equal(ours, theirs)


@needs_tools
@pytest.mark.parametrize("style", ["native", "libsvm"])
@pytest.mark.parametrize("name", ["two.s0t2", "three.s0t1", "three.s1t3", "two.s2t2", "value.s3t0", "value.s4t2", "one.s0t2"])
def test_genuine_svm_predict_reads_what_we_write(name: str, style: str, tmp_path: Path) -> None:
    """On new rows, wider, narrower and emptier than the model's."""
    model = read_model(str(GOLDEN / f"{name}.model"))
    write_model(str(tmp_path / "m"), model, style="native" if style == "native" else "libsvm")
    draw = np.random.default_rng(5)
    X = np.round(draw.normal(size=(60, 6)), 3) * (draw.random((60, 6)) < 0.6)
    X[3] = 0
    rows = Rows.from_dense(X)
    write_points(tmp_path / "t", X, np.zeros(60))
    argv = [TOOLS / "svm-predict", "-q", tmp_path / "t", tmp_path / "m", tmp_path / "o"]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    assert_allclose(predict(model, decision_values(model, rows)), numbers(tmp_path / "o")[:, 0], rtol=1e-9)


def machines_of(rhos: list[float]) -> tuple[Machine, ...]:
    """Machines without support vectors: their value is −rho everywhere."""
    return tuple(Machine(np.empty(0, dtype=np.int64), np.empty(0), rho) for rho in rhos)


def constant_model(labels: list[int], rhos: list[float], svm_type: str = "c_svc") -> Model:
    counts = np.zeros(len(labels), dtype=np.int64)
    classes = {"labels": np.array(labels), "class_counts": counts} if labels else {}
    return model_of(svm_type, Kernel(LINEAR), Rows.from_dense(np.empty((0, 0))), machines_of(rhos), **classes)


@pytest.mark.parametrize(
    ("labels", "rhos", "svm_type", "expected"),
    [
        ([5, 2], [-0.1], "c_svc", 5),
        ([5, 2], [0.0], "c_svc", 2),  # a value of 0 is the second class's
        ([5, 2], [0.1], "c_svc", 2),
        ([9], [], "c_svc", 9),
        ([4, 3, 8], [-1.0, 1.0, -1.0], "nu_svc", 4),  # one vote each: the first class
        ([4, 3, 8], [1.0, 1.0, 1.0], "c_svc", 8),
        ([], [0.0], "one_class", -1),
        ([], [-0.5], "one_class", 1),
        ([], [-0.5], "epsilon_svr", 0.5),
    ],
)
def test_votes_and_signs(labels: list[int], rhos: list[float], svm_type: str, expected: float) -> None:
    model = constant_model(labels, rhos, svm_type)
    decisions = decision_values(model, Rows.from_dense(np.ones((3, 2))))
    assert_array_equal(decisions, np.tile(-np.array(rhos), (3, 1)))
    assert_array_equal(predict(model, decisions), np.full(3, expected))


def test_no_rows_no_answers() -> None:
    for name in ("two.s0t2", "three.s0t2", "value.s3t2", "one.s0t2"):
        model = read_model(str(GOLDEN / f"{name}.model"))
        decisions = decision_values(model, Rows.from_dense(np.empty((0, 3))))
        assert decisions.shape == (0, len(model.machines))
        assert predict(model, decisions).shape == (0,)


def test_precomputed_rows_must_hold_the_kernel_values_asked_for() -> None:
    model = read_model(str(GOLDEN / "gram-two.s0t4.model"))
    _, rows = read_rows(GOLDEN / "gram-two.t")
    with pytest.raises(DataError, match="up to 21, the data has them up to 7"):
        decision_values(model, rows._replace(gram=np.ascontiguousarray(rows.gram[:, :7])))
    _, sparse = read_rows(GOLDEN / "two.t")
    with pytest.raises(DataError, match="first column must be 0:sample_serial_number"):
        decision_values(model, sparse)


# --- answers by float32 -----------------------------------------------------------------------------------------------------


def rbf_machine(basis: Rows, gamma: float, seed: int = 3, C: float = 1000.0) -> Model:
    coef = np.random.default_rng(seed).choice([-C, C, 0.3 * C], basis.n)
    return model_of("one_class", Kernel(RBF, gamma), basis, (Machine(np.arange(basis.n), coef, 0.0),))


def sparse(n: int, width: int, density: float, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    return Rows.from_dense(rng.random((n, width)) * (rng.random((n, width)) < density))


def rounding_one_way(n: int, width: int) -> Rows:
    """Equal products, added again and again: the worst that float32 sums can do."""
    rng = np.random.default_rng(4)
    return Rows.from_dense(0.37 * rng.choice([1.0, 1.0, 1.0, 0.999], size=(n, width)))


SHAPES = {
    "binary": (Rows.from_dense(np.sign(sparse(300, 120, 0.1, 1).to_dense()[:, 1:])), 0.5),
    "dense": (sparse(300, 20, 1.0, 2), 2.0),
    "images": (sparse(300, 700, 0.3, 3), 0.02),
    "wide": (sparse(300, 5000, 0.01, 4), 0.05),
    "one way": (rounding_one_way(200, 800), 0.01),
    "far": (sparse(300, 20, 1.0, 5), 500.0),
    "empty": (sparse(300, 20, 0.02, 6), 1.0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_float32_decisions_are_off_by_no_more_than_they_say(name: str) -> None:
    rows, gamma = SHAPES[name]
    machine = rbf_machine(rows.part(0, 150), gamma)
    decisions, error = _float32_decisions(machine, rows)
    off = np.abs(decisions - decision_values(machine, rows))[:, 0]
    assert (off <= error).all()
    assert off.max() > 0
    assert np.median(error) < 1e-3 * np.abs(machine.machines[0].coef).sum()


@pytest.mark.parametrize("longer", ["rows", "basis"])
def test_rows_and_support_vectors_of_other_lengths(longer: str) -> None:
    """A squared norm is rounded as often as its own row has nonzeros, and equal squares are rounded one way."""
    many, few = np.zeros((50, 3000)), np.zeros((50, 3000))
    many[:, ::4] = np.linspace(0.3, 0.4, 50)[:, None]
    few[:, :2] = np.random.default_rng(7).random((50, 2))
    rows, basis = (Rows.from_dense(X) for X in ((many, few) if longer == "rows" else (few, many)))
    machine = rbf_machine(basis, 0.01)
    machine = replace(machine, coef=np.ones((50, 1)))
    decisions, error = _float32_decisions(machine, rows)
    assert (np.abs(decisions - decision_values(machine, rows))[:, 0] <= error).all()


def test_where_no_digit_of_an_exponent_is_left_float32_says_nothing() -> None:
    rows = Rows.from_dense(np.array([[3000.0, 0.0], [0.0, 3000.0]]))
    assert not np.isfinite(_float32_decisions(rbf_machine(rows, 1.0), rows)[1]).any()


def test_rows_on_the_other_side_of_the_origin_are_moved_further_away() -> None:
    """The basis is moved to the origin, and rows with it: the bound is that of their products, not of the rows as given."""
    rng = np.random.default_rng(8)
    basis, rows = (Rows.from_dense(side + rng.random((50, 4))) for side in (100.0, -100.0))
    machine = rbf_machine(basis, 1e-4)
    moved, moved_basis = prepared(machine.kernel, rows, basis)
    assert moved is not rows
    assert_array_equal(_float32_decisions(machine, rows)[1], _float32_decisions(replace(machine, rows=moved_basis), moved)[1])


@pytest.mark.parametrize("name", SHAPES)
def test_answers_are_those_of_the_decision_values(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At thresholds that put some row within float32's error of the boundary, on either side or on it."""
    monkeypatch.setattr(model_module, "FLOAT32_FROM_VALUES", 0)
    monkeypatch.setattr(model_module, "_MOST_OPEN", 1.0)
    rows, gamma = SHAPES[name]
    machine = rbf_machine(rows.part(0, 150), gamma)
    values = decision_values(machine, rows)[:, 0]
    for r in range(0, rows.n, 20):
        for shift in (-1e-9, 0.0, 1e-9):
            rho = float(values[r] * (1 + shift))
            moved = replace(machine, rho=np.array([rho]))
            assert_array_equal(answers(moved, rows), np.where(values > rho, 1.0, -1.0))


def test_counted_values_need_no_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "FLOAT32_FROM_VALUES", 0)
    monkeypatch.setattr(model_module, "_float32_decisions", None)
    monkeypatch.setattr("svmkit.engine.layouts.cpu_has", lambda name: True)  # elsewhere nothing is counted
    rows = Rows.from_dense((np.random.default_rng(1).random((40, 12)) < 0.4).astype(np.float64))
    assert not model_module._float32_pays(rbf_machine(rows, 0.7), rows)


def test_features_with_huge_numbers_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "FLOAT32_FROM_VALUES", 0)
    rng = np.random.default_rng(3)
    rows = Rows.from_dense(rng.random((60, 12)))
    spread = rows._replace(indices=rows.indices * np.int32(1 << 21), n_features=12 << 21)
    machine = rbf_machine(rows, 0.7)
    tracemalloc.start()
    assert_array_equal(answers(replace(machine, rows=spread), spread), answers(machine, rows))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6


def test_what_float32_cannot_hold_is_left_to_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows.from_dense(np.array([[1e30], [1e30], [1e-60], [1.0], [2.0], [1e25]]))
    machine = rbf_machine(rows, 0.7)
    expected = predict(machine, decision_values(machine, rows))
    _, error = _float32_decisions(machine, rows)
    assert not (error < np.inf).any()
    for most in (0.25, 1.0):
        monkeypatch.setattr(model_module, "FLOAT32_FROM_VALUES", 0)
        monkeypatch.setattr(model_module, "_MOST_OPEN", most)
        assert_array_equal(answers(machine, rows), expected)


@pytest.mark.parametrize("name", MODELS)
def test_answers_of_every_kind_of_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "FLOAT32_FROM_VALUES", 0)
    model = read_model(str(GOLDEN / f"{name}.model"))
    _, rows = read_rows(data_of(name))
    assert_array_equal(answers(model, rows), predict(model, decision_values(model, rows)))


@pytest.mark.parametrize("name", MODELS)
def test_answers_with_few_decision_values_held(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = read_model(str(GOLDEN / f"{name}.model"))
    _, rows = read_rows(data_of(name))
    expected = answers(model, rows)
    monkeypatch.setattr(model_module, "_DECISIONS_HELD", 7 * len(model.machines))
    assert_allclose(answers(model, rows), expected, rtol=1e-12)  # a product with given kernel values depends on the cuts


@pytest.mark.parametrize("few", [0, 10], ids=["fused", "stored"])
def test_decision_values_of_many_classes(few: int, two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """More classes than a line of the cache holds; some without a support vector, all with coefficients of any kind."""
    monkeypatch.setattr(model_module, "_few_a_class", lambda k: few)
    monkeypatch.setattr(model_module, "_VALUES_HELD", 7 * 38)  # seven rows at a time
    rng = np.random.default_rng(3)
    counts = np.array([2, 3, 0, 1, 4, 1, 2, 2, 0, 3, 5, 1, 1, 2, 3, 1, 1, 2, 4])
    k, n_support = len(counts), int(counts.sum())
    rows, basis = (Rows.from_dense(rng.normal(size=(n, 5))) for n in (41, n_support))
    starts = np.concatenate([[0], np.cumsum(counts)])
    machines = []
    for i in range(k):
        for j in range(i + 1, k):
            own = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in (i, j)])
            index = own[rng.random(len(own)) < 0.8]
            machines.append(Machine(index, rng.normal(size=len(index)), float(rng.normal())))
    for kernel in (Kernel(RBF, gamma=0.3), Kernel(LINEAR)):
        model = model_of("c_svc", kernel, basis, machines, labels=np.arange(k), class_counts=counts)
        expected = np.stack(
            [cross_apply(rows, basis.take(m.index), kernel, m.coef[:, None])[:, 0] - m.rho for m in machines], axis=1
        )
        found = decision_values(model, rows)
        assert_allclose(found, expected, atol=1e-12)
        votes = np.zeros((rows.n, k), int)
        for column, (i, j) in enumerate(model.pairs):
            votes[np.arange(rows.n), np.where(found[:, column] > 0, i, j)] += 1
        assert_array_equal(answers(model, rows), votes.argmax(axis=1))


@pytest.mark.parametrize("columns", [1, 2])
def test_rows_that_lack_the_last_column_a_model_needs_are_refused(columns: int) -> None:
    text = b"svm_type c_svc\nkernel_type precomputed\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 -1\nnr_sv 1 1\nSV\n1 0:1\n-1 0:3\n"
    model = parse_model(text, "m")
    none = np.empty(0)
    gram = np.ones((2, columns))
    rows = Rows(none, none.astype(np.int32), np.zeros(3, np.int64), columns, gram, np.array([1, 2]))
    with pytest.raises(DataError, match="out of range"):
        decision_values(model, rows)
