"""Going on from a model: the first α is the model's, feasible, and the optimum that of the joined data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from svmkit.config import TrainConfig
from svmkit.data import Dataset, Rows, stack
from svmkit.errors import ModelError, UsageError
from svmkit.fit import fit
from svmkit.io.model_libsvm import model_text, parse_model
from svmkit.machines import Machines
from svmkit.matching import foreign_rows
from svmkit.model import Model, answers, decision_values
from svmkit.pairs import group_classes, kernel_of, pair_of
from svmkit.problem import PRECOMPUTED, Kernel
from svmkit.recertify import certificates
from svmkit.solvers import NAMES, solver
from svmkit.warm import Warm, first_alpha, join

EXACT = [name for name in NAMES if getattr(solver(name), "WARM", False) and solver(name).EXACT]
CONFIG = TrainConfig(C=2.0, gamma=0.5, eps=1e-6)


def blobs(n: int, seed: int, labels: tuple[int, ...] = (1, -1)) -> Dataset:
    rng = np.random.default_rng(seed)
    y = np.array(labels, dtype=np.float64)[rng.integers(0, len(labels), n)]
    y[: len(labels)] = labels
    X = rng.normal(size=(n, 3)) + 0.7 * np.stack([y, np.cos(y), np.sin(2 * y)], axis=1)
    return Dataset(Rows.from_dense(X), y)


def both(a: Dataset, b: Dataset) -> Dataset:
    return Dataset(stack([a.rows, b.rows]), np.concatenate([a.y, b.y]))


def alpha(warm: Warm, config: TrainConfig, i: int = 0, j: int = 1) -> np.ndarray:
    dataset = warm.dataset
    labels, members = group_classes(dataset.y, np.arange(dataset.n))
    pair = pair_of(dataset, config, members, np.ones(len(labels)), i, j)
    found = first_alpha(warm, labels, i, j, pair.examples, pair.problem(dataset, config, kernel_of(config, 3)))
    assert (found >= 0).all()
    assert (found <= pair.upper).all()
    if config.bias != "none":
        assert abs(pair.y @ found) <= 1e-9 * found.sum()
    return found


@pytest.mark.parametrize("style", ["native", "libsvm"])
def test_a_models_own_data_give_its_alpha_back(style: str) -> None:
    dataset = blobs(120, 0)
    found = fit(dataset, CONFIG)
    model = parse_model(model_text(found.model, style=style), "m")  # type: ignore[arg-type]
    warm = join(dataset, model)
    assert (warm.n_added, warm.dataset) == (0, dataset)
    expected = np.zeros(dataset.n)
    expected[found.machines[0].solution.origin] = np.abs(found.machines[0].solution.coef)
    assert_allclose(alpha(warm, CONFIG), expected, rtol=1e-12)


@pytest.mark.parametrize("name", EXACT)
def test_from_the_optimum_hardly_a_step_is_left(name: str) -> None:
    dataset = blobs(150, 1, labels=(3, 1, 2))
    config = replace(CONFIG, solver=name, bias="none" if name == "sdca" else "free", eps=1e-4)
    cold = fit(dataset, config)
    warm = fit(dataset, config, warm=join(dataset, cold.model))
    assert warm.steps < 0.1 * cold.steps + 150 * 3
    assert warm.certificate.violation <= 1e-4
    assert_allclose(warm.certificate.dual, cold.certificate.dual, rtol=1e-6)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("changed", [{"C": 0.1}, {"C": 50.0}, {"gamma": 0.1}, {"class_weight": ((1, 0.2),)}])
def test_from_any_model_the_optimum_is_that_from_nothing(name: str, changed: dict[str, object]) -> None:
    """The box may have shrunk or grown, and the kernel be another."""
    dataset = blobs(90, 2)
    config = replace(CONFIG, solver=name, bias="none" if name == "sdca" else "free")
    model = fit(dataset, config).model
    config = replace(config, **changed)  # type: ignore[arg-type]
    assert_allclose(
        fit(dataset, config, warm=join(dataset, model)).certificate.dual, fit(dataset, config).certificate.dual, rtol=1e-7
    )


@pytest.mark.parametrize("bias", ["free", "none"])
def test_linear_coordinate_ascent_goes_on_from_an_expansion(bias: str) -> None:
    dataset = blobs(90, 3)
    expansion = fit(dataset, replace(CONFIG, kernel="linear", bias=bias)).model
    config = replace(CONFIG, kernel="linear", solver="sdca", bias="none", eps=1e-5)
    warm = join(dataset, expansion)
    assert_allclose(fit(dataset, config, warm=warm).certificate.dual, fit(dataset, config).certificate.dual, rtol=1e-7)


def test_support_vectors_that_are_missing_are_added() -> None:
    old, new = blobs(100, 4), blobs(60, 5)
    model = fit(old, CONFIG).model
    warm = join(new, model)
    assert warm.n_added == model.n_support
    labels = np.repeat(model.labels, model.class_counts)
    by_hand = both(new, Dataset(model.rows, labels.astype(np.float64)))
    assert_array_equal(warm.dataset.y, by_hand.y)
    assert_allclose(fit(warm.dataset, CONFIG, warm=warm).certificate.dual, fit(by_hand, CONFIG).certificate.dual, rtol=1e-7)


def test_new_and_missing_classes() -> None:
    """A pair that the model knows, the other way round, starts from it; a new class from nothing; a missing one is added."""
    old = blobs(90, 6, labels=(1, 2))
    model = fit(old, CONFIG).model
    new = blobs(60, 7, labels=(5, 2))
    warm = join(new, model)
    assert set(warm.dataset.y) == {1.0, 2.0, 5.0}
    labels, _ = group_classes(warm.dataset.y, np.arange(warm.dataset.n))
    assert labels.tolist() == [5, 2, 1]
    assert not alpha(warm, CONFIG, 0, 1).any()
    assert_allclose(alpha(warm, CONFIG, 1, 2).sum(), np.abs(model.machines[0].coef).sum(), rtol=1e-9)
    result = fit(warm.dataset, CONFIG, warm=warm)
    assert_allclose(result.certificate.dual, fit(warm.dataset, CONFIG).certificate.dual, rtol=1e-7)


def test_against_the_rest() -> None:
    dataset = blobs(120, 8, labels=(1, 2, 3))
    config = replace(CONFIG, multiclass="ovr", eps=1e-4)
    cold = fit(dataset, config)
    warm = fit(dataset, config, warm=join(dataset, cold.model))
    assert warm.steps < 0.1 * cold.steps + 120
    with pytest.raises(UsageError, match="--multiclass ovr"):
        fit(dataset, replace(config, multiclass="ovo"), warm=join(dataset, cold.model))


def test_two_classes_have_no_kind_of_machines_to_differ_in() -> None:
    """A model of three of which one has no support vectors, as one of weight 0."""
    dataset = blobs(60, 8, labels=(1, 2))
    model = fit(dataset, CONFIG).model
    assert model.class_counts is not None
    of_three = replace(
        model,
        labels=np.array([1, 2, 3]),
        class_counts=np.append(model.class_counts, 0),
        coef=np.column_stack([model.coef, model.coef, np.zeros(model.n_support)]),
        rho=np.array([*model.rho, *model.rho, 0.0]),
        multiclass="ovr",
    )
    assert not alpha(join(dataset, of_three), CONFIG).any()


def test_a_nu_svc_model_is_gone_on_from_too() -> None:
    """Its coefficients are as those of some C."""
    dataset = blobs(60, 8)
    model = fit(dataset, CONFIG).model
    found = alpha(join(dataset, replace(model, svm_type="nu_svc")), CONFIG)
    assert found.any()
    assert_array_equal(found, alpha(join(dataset, model), CONFIG))


def test_what_cannot_be_gone_on_from() -> None:
    dataset = blobs(40, 9)
    model = fit(dataset, CONFIG).model
    for bad, why in (
        (replace(model, svm_type="epsilon_svr"), "epsilon_svr"),
        (fit(dataset, TrainConfig(kernel="linear", solver="sdca", bias="none")).model, "weight vector"),
        (replace(model, kernel=model.kernel._replace(kind=4)), "precomputed"),
        (
            fit(dataset, replace(CONFIG, solver="sdca", bias="none", map="nystroem", dim=8, landmarks="kmeans")).model,
            "not all rows",
        ),
    ):
        assert isinstance(bad, Model)
        with pytest.raises(ModelError, match=why):
            join(dataset, bad)
    serial = np.arange(1.0, 5.0)[:, None]
    gram = Rows(np.empty(0), np.empty(0, np.int32), np.zeros(5, np.int64), 4, np.eye(4), serial[:, 0].astype(np.int64))
    with pytest.raises(ModelError, match="the data are rows of a kernel matrix"):
        join(Dataset(gram, np.array([1.0, -1.0, 1.0, -1.0])), model)
    with pytest.raises(UsageError, match=r"--solver pegasos: begins anew .*; those that go on from a model: smo, pair"):
        fit(dataset, replace(CONFIG, solver="pegasos"), warm=join(dataset, model))


def test_a_linear_machine_of_one_support_vector_is_gone_on_from() -> None:
    """A w has the coefficient 1."""
    dataset = Dataset(Rows.from_dense(np.array([[1.0, 1.0], [-0.5, 0.0]])), np.array([1.0, -1.0]))
    config = TrainConfig(kernel="linear", bias="none", C=10.0)
    first = fit(dataset, config)
    assert first.model.n_support == 1
    again = fit(dataset, config, warm=join(dataset, first.model))
    assert again.steps == 0
    assert again.certificate == first.certificate


def test_a_row_of_coefficient_1_that_is_an_example_is_no_w() -> None:
    dataset = Dataset(Rows.from_dense(np.array([[0.1], [-20.0]])), np.array([1.0, -1.0]))
    config = TrainConfig(kernel="linear", bias="none", C=1.0)
    model = fit(dataset, config).model
    assert [machine.coef.tolist() for machine in model.machines] == [[1.0]]
    assert join(dataset, model).n_added == 0
    with pytest.raises(ModelError, match="weight vector"):
        join(replace(dataset, rows=Rows.from_dense(np.array([[0.2], [-20.0]]))), model)


def test_a_negative_zero_speaks_for_no_class() -> None:
    """svm-train now and then writes one."""
    dataset = blobs(40, 9)
    model = fit(dataset, CONFIG).model
    odd = replace(model, coef=np.where(np.arange(model.n_support)[:, None] == 0, -0.0, model.coef))
    assert_array_equal(foreign_rows(odd), foreign_rows(model))


def test_rows_of_a_stream_against_the_rest_are_found_whatever_class_they_stand_with() -> None:
    place = np.tile([0, 1, 2], 30)
    X = np.random.default_rng(2).normal(size=(90, 2)) + 1.5 * place[:, None]
    dataset = Dataset(Rows.from_dense(X), np.array([3.0, 1.0, 2.0])[place])
    config = TrainConfig(solver="lasvm", gamma=0.5, multiclass="ovr")
    machines = Machines(config, np.array([3, 1, 2]))
    machines.learn(dataset.rows, place, np.ones(90))
    machines.finish(lambda: None)
    model = machines.model()
    assert join(dataset, model).n_added == 0
    gaps = [each.gap / each.primal for each in certificates(model, dataset, config)]
    assert max(gaps) < 0.1


def stream(config: TrainConfig, labels: list[int], begun: Model) -> Machines:
    return Machines(replace(config, solver="lasvm"), np.array(labels), begun=begun)


@pytest.mark.parametrize(("multiclass", "labels"), [("ovo", (1, -1)), ("ovo", (3, 1, 2)), ("ovr", (3, 1, 2))])
def test_a_stream_goes_on_from_the_model(multiclass: str, labels: tuple[int, ...]) -> None:
    """Before an example has come it is the model, whatever order its labels are named in."""
    dataset = blobs(150, 10, labels=labels)
    config = replace(CONFIG, multiclass=multiclass)
    model = fit(dataset, config).model
    assert model.labels is not None
    same = stream(config, model.labels.tolist(), model).model()
    assert_allclose(decision_values(same, dataset.rows), decision_values(model, dataset.rows), atol=2 * CONFIG.eps)
    turned = stream(config, model.labels.tolist()[::-1], model).model()
    assert_array_equal(answers(turned, dataset.rows), answers(model, dataset.rows))


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_a_stream_that_goes_on_ends_nearer_the_optimum_of_old_and_new_than_one_of_the_new(multiclass: str) -> None:
    old, new = blobs(120, 11, labels=(3, 1, 2)), blobs(90, 12, labels=(3, 1, 2))
    config = replace(CONFIG, multiclass=multiclass, eps=1e-3)
    model = fit(old, config).model
    joined = both(new, Dataset(model.rows, np.repeat(model.labels, model.class_counts).astype(np.float64)))
    duals = []
    for begun in (None, model):
        machines = Machines(replace(config, solver="lasvm"), np.array([3, 1, 2]), begun=begun)
        machines.learn(new.rows, np.array([[3, 1, 2].index(int(label)) for label in new.y]), np.ones(new.n))
        machines.finish(lambda: None)
        duals.append(sum(each.dual for each in certificates(machines.model(), joined, config)))
    optimum = fit(joined, config).certificate.dual
    assert duals[0] < duals[1] < optimum
    assert optimum - duals[1] < 0.1 * (optimum - duals[0])


def test_machines_that_a_model_lacks_begin_with_nothing() -> None:
    model = fit(blobs(90, 6, labels=(1, 2)), CONFIG).model
    machines = stream(CONFIG, [5, 2, 1], model)
    assert machines.known.tolist() == [False, True, True]
    made = machines.model().machines
    assert [len(each.index) for each in made] == [0, 0, model.n_support]
    assert_allclose(np.sort(made[2].coef), np.sort(-model.machines[0].coef), rtol=1e-9)


def test_the_box_of_what_a_stream_goes_on_from_is_its_classs() -> None:
    model = fit(blobs(90, 6, labels=(1, 2)), CONFIG).model
    machines = stream(replace(CONFIG, class_weight=((2, 0.25),)), [2, 1], model)
    coef = machines.model().machines[0].coef
    assert coef.max() == 0.5
    assert_allclose(coef.sum(), 0.0, atol=1e-12)
    assert coef.min() >= -2.0


def learned(rows: Rows, place: np.ndarray, config: TrainConfig) -> Model:
    """By a stream of lasvm, one machine for each of the classes 1, 2 and 3."""
    machines = Machines(config, np.array([1, 2, 3]))
    machines.learn(rows, place, np.ones(rows.n))
    return machines.model()


AGAINST_THE_REST = replace(CONFIG, solver="lasvm", multiclass="ovr")


@pytest.mark.parametrize("factors", [((3, 4.0),), ((1, 0.5), (3, 4.0))])
def test_where_a_streams_row_may_be_of_several_classes_its_C_leaves_an_optimum_one(
    factors: tuple[tuple[int, float], ...],
) -> None:
    """On a line, the middle class's machine has rows at their C that those of their own classes do not need."""
    place = np.random.default_rng(0).integers(0, 3, 200)
    rows = Rows.from_dense(np.random.default_rng(1).normal(size=(200, 2)) + 1.2 * place[:, None])
    config = replace(AGAINST_THE_REST, kernel="linear", class_weight=factors)
    machines = Machines(config, np.array([1, 2, 3]))
    machines.learn(rows, place, np.ones(200))
    machines.finish(lambda: None)
    model = machines.model()
    machines = stream(config, [1, 2, 3], model)
    assert_allclose(decision_values(machines.model(), rows), decision_values(model, rows), atol=1e-9)
    machines.finish(lambda: None)
    assert_allclose(decision_values(machines.model(), rows), decision_values(model, rows), atol=1e-4)


def test_equal_examples_of_several_classes_are_gone_on_from() -> None:
    """However many are alike: those of one class are not taken for those of another."""
    rng = np.random.default_rng(1)
    place = rng.integers(0, 3, 150)
    rows = Rows.from_dense(np.round(rng.normal(size=(150, 2)) + 0.5 * place[:, None]))
    model = learned(rows, place, AGAINST_THE_REST)
    assert ((model.coef > 0).sum(axis=1) <= 1).all()
    assert model.n_support <= 150
    same = stream(AGAINST_THE_REST, [1, 2, 3], model).model()
    assert_allclose(decision_values(same, rows), decision_values(model, rows), atol=1e-9)


def test_what_a_stream_cannot_go_on_from() -> None:
    dataset = blobs(60, 8, labels=(1, 2, 3))
    model, linear = fit(dataset, CONFIG).model, replace(CONFIG, kernel="linear")
    with pytest.raises(UsageError, match="--labels: the model of --init knows 1, 3 too"):
        stream(CONFIG, [2, 4], model)
    with pytest.raises(UsageError, match="--multiclass ovo; train with that"):
        stream(replace(CONFIG, multiclass="ovr"), [1, 2, 3], model)
    two = blobs(60, 8)
    with pytest.raises(ModelError, match="a weight vector alone"):
        stream(linear, [1, -1], fit(two, replace(linear, solver="sdca", bias="none")).model)
    for kind, data, labels in (("ovo", two, [1, -1]), ("ovr", dataset, [1, 2, 3])):
        mapped = replace(CONFIG, solver="newton", map="nystroem", dim=20, multiclass=kind)
        with pytest.raises(ModelError, match="some have the signs of several classes"):
            stream(replace(CONFIG, multiclass=kind), labels, fit(data, mapped).model)
    with pytest.raises(ModelError, match="this model is epsilon_svr"):
        stream(CONFIG, [1, -1], replace(model, svm_type="epsilon_svr"))
    with pytest.raises(ModelError, match="the model has a precomputed kernel"):
        stream(replace(CONFIG, kernel="precomputed"), [1, 2, 3], replace(model, kernel=Kernel(PRECOMPUTED)))
    with pytest.raises(UsageError, match=r"--solver perceptron: begins a stream anew each time.*: lasvm$"):
        Machines(replace(CONFIG, solver="perceptron", bias="none"), np.array([1, 2, 3]), begun=model)


def test_added_support_vectors_weigh_1_among_weighted_data() -> None:
    new = replace(blobs(50, 2), weight=np.full(50, 0.5))
    warm = join(new, fit(blobs(60, 1), CONFIG).model)
    assert warm.n_added > 0
    assert warm.dataset.weights.tolist() == [0.5] * 50 + [1.0] * warm.n_added
