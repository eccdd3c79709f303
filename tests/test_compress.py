"""Compressed models: coefficients from their definition, exactness at the ends, less error with more vectors.

How vectors move is in test_reduced.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from models import distances, model_of, of_rows, trained
from oracle import dense_kernel
from zoo import points

from svmkit import compress as compressing
from svmkit import model as model_module
from svmkit import reduced
from svmkit.compress import change, compress
from svmkit.data import Rows
from svmkit.errors import DataError, ModelError, UsageError
from svmkit.io.model_libsvm import model_text, parse_model
from svmkit.maps import landmarks
from svmkit.model import Machine, Model, answers, decision_values, decisions_by_part, with_machines
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, SIGMOID, Kernel


def regression() -> Model:
    X, _ = points(50, 3, seed=1)
    coef = np.random.default_rng(1).normal(size=50)
    return model_of("epsilon_svr", Kernel(RBF, 0.4), Rows.from_dense(X), (Machine(np.arange(50), coef, 0.7),))


def fresh(n: int = 300) -> Rows:
    return Rows.from_dense(points(n, 4, seed=99)[0])


SEVERAL = [(2, "ovo"), (4, "ovo"), (4, "ovr")]


@pytest.mark.parametrize(("n_class", "multiclass"), SEVERAL)
def test_more_vectors_come_nearer_and_moved_ones_nearer_still(n_class: int, multiclass: str) -> None:
    model = trained(n_class, multiclass=multiclass)
    chosen, moved = [], []
    for count in (8, 20, 50):
        for steps, found in ((0, chosen), (100, moved)):
            small = compress(model, count, steps=steps)
            assert small.n_support == count
            assert small.labels is not None
            assert small.class_counts is not None
            assert small.class_counts.sum() == count
            found.append(distances(model, small).sum())
    assert chosen == sorted(chosen, reverse=True)
    assert moved == sorted(moved, reverse=True)
    assert all(after < before for before, after in zip(chosen, moved, strict=True))


@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
@pytest.mark.parametrize(("n_class", "multiclass"), SEVERAL)
def test_coefficients_are_the_nearest_there_are(
    kernel: str, n_class: int, multiclass: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The residual F − G is orthogonal to every basis vector that the machine may use."""
    monkeypatch.setattr(reduced, "_LAST_RIDGE", 0.0)
    model = trained(n_class, kernel, multiclass=multiclass)
    small = compress(model, 12)
    starts = small.class_starts
    for number, (one, other) in enumerate(zip(model.machines, small.machines, strict=True)):
        i, j = small.pairs[number]
        own = range(12) if n_class == 2 or multiclass == "ovr" else [*range(*starts[i : i + 2]), *range(*starts[j : j + 2])]
        assert list(other.index) == list(own)
        Z = small.rows.take(other.index)
        full = dense_kernel(Z, model.rows.take(one.index), model.kernel) @ one.coef
        assert dense_kernel(Z, Z, model.kernel) @ other.coef == pytest.approx(full, rel=1e-9, abs=1e-9 * np.abs(full).max())
        assert other.rho == one.rho


@pytest.mark.parametrize(("n_class", "multiclass"), SEVERAL)
def test_on_data_coefficients_are_those_of_least_squares(
    n_class: int, multiclass: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressing, "_DATA_ROWS", 70)
    model, data = trained(n_class, multiclass=multiclass), fresh()
    small = compress(model, 12, data=data)
    f, g = decision_values(model, data), decision_values(small, data)
    for number, machine in enumerate(small.machines):
        Z = small.rows.take(machine.index)
        features = np.append(dense_kernel(data, Z, model.kernel), np.ones((data.n, 1)), axis=1)
        best = f[:, number] - features @ np.linalg.lstsq(features, f[:, number], rcond=None)[0]
        assert np.sum((f - g)[:, number] ** 2) == pytest.approx(np.sum(best**2), rel=1e-6)
    in_feature_space = change(model, compress(model, 12), data)
    assert change(model, small, data).mean < in_feature_space.mean


@pytest.mark.parametrize(("n_class", "multiclass"), SEVERAL)
def test_of_coefficients_that_few_rows_leave_open_those_of_feature_space_stay(n_class: int, multiclass: str) -> None:
    model, data = trained(n_class, multiclass=multiclass), fresh()
    small = compress(model, 16, data=data.part(0, 1))
    assert change(model, small, data.part(0, 1)).largest < 1e-9
    assert change(model, small, data).mean < 1.2 * change(model, compress(model, 16), data).mean


@pytest.mark.parametrize("by_data", [False, True])
def test_vectors_of_small_norm_keep_their_part_beside_one_of_large_norm(by_data: bool) -> None:
    """Six vectors span what a polynomial of degree 2 in two features has; rho's column is small beside kernel values too."""
    X = points(12, 2, seed=3)[0]
    X[0] *= 300.0
    model, near = of_rows(Kernel(POLYNOMIAL, 1.0, 1.0, 2), Rows.from_dense(X)), Rows.from_dense(points(30, 2, seed=4)[0])
    coef = np.where(np.arange(12) == 0, 1e-6, model.machines[0].coef)  # the large one matters no more than others
    model = with_machines(model, [replace(model.machines[0], coef=coef)])
    small = compress(model, 8, data=near if by_data else None)
    assert small.n_support <= 8
    assert decision_values(small, near) == pytest.approx(decision_values(model, near), abs=1e-3)
    assert np.abs(small.machines[0].coef).max() < 1e3


def test_rho_is_found_beside_large_kernel_values() -> None:
    """Its column is of ones, others have values of 1e12."""
    X = 1e3 * points(40, 2, seed=3)[0]
    model = of_rows(Kernel(POLYNOMIAL, 1.0, 0.0, 2), Rows.from_dense(X))
    model = replace(model, rho=np.array([1e6]))
    assert compress(model, 8, data=model.rows).machines[0].rho == pytest.approx(1e6, rel=1e-3)


@pytest.mark.parametrize("n_class", [2, 4])
def test_on_data_a_model_without_a_bias_gets_none(n_class: int) -> None:
    model, data = trained(n_class), fresh()
    model = replace(model, rho=np.zeros_like(model.rho))
    small = compress(model, 12, data=data)
    f, g = decision_values(model, data), decision_values(small, data)
    for number, machine in enumerate(small.machines):
        features = dense_kernel(data, small.rows.take(machine.index), model.kernel)
        best = f[:, number] - features @ np.linalg.lstsq(features, f[:, number], rcond=None)[0]
        assert machine.rho == 0
        assert np.sum((f - g)[:, number] ** 2) == pytest.approx(np.sum(best**2), rel=1e-6)


def test_a_fit_on_data_that_is_worse_there_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressing, "_least_squares", lambda features, f: np.full(features.shape[1], 1e3))
    model = trained()
    assert model_text(compress(model, 12, data=fresh())) == model_text(compress(model, 12))


def test_vectors_of_text_stay_sparse() -> None:
    rng = np.random.default_rng(3)
    X = np.zeros((60, 900))
    X[np.repeat(np.arange(60), 5), rng.integers(0, 900, 300)] = 1.0
    model = of_rows(Kernel(RBF, 0.3), Rows.from_dense(X))
    most = 8 * np.count_nonzero(X) // np.count_nonzero(X.any(axis=0))  # eight times as many values as all support vectors have
    for count, stay in ((most + 1, True), (most, False), (3, False)):
        moved, chosen = (compress(model, count, steps=steps) for steps in (3, 0))
        assert np.array_equal(moved.rows.to_dense(), chosen.rows.to_dense()) == stay


def test_a_model_that_is_a_constant_needs_no_vectors() -> None:
    model = of_rows(Kernel(POLYNOMIAL, 1.0, 0.0, 3), Rows.from_dense(np.zeros((6, 2))))
    for small in (compress(model, 4), compress(model, 4, data=fresh())):
        assert small.n_support == 0
        assert parse_model(model_text(small), "m").n_support == 0
        assert decision_values(small, fresh()) == pytest.approx(np.full((300, 1), -0.1))


def test_data_whose_kernel_values_overflow_are_refused() -> None:
    model = of_rows(Kernel(POLYNOMIAL, 1.0, 1.0, 3), Rows.from_dense(points(12, 2, seed=3)[0]))
    for size in (1e77, 1e140):
        with pytest.raises(DataError, match="kernel values overflow"):
            compress(model, 4, data=Rows.from_dense(size * points(30, 2, seed=4)[0]))


@pytest.mark.parametrize("n_class", [2, 4])
def test_all_vectors_are_the_model_itself(n_class: int) -> None:
    model = trained(n_class)
    assert compress(model, model.n_support) is model
    assert change(model, compress(model, 10**6), fresh()) == compressing.Change(0.0, 0.0, 0)


@pytest.mark.parametrize(("n_class", "multiclass"), SEVERAL)
def test_a_linear_machine_is_one_vector(n_class: int, multiclass: str) -> None:
    model = trained(n_class, "linear", multiclass=multiclass)
    small = compress(model, len(model.machines))
    assert small.n_support == len(model.machines) < model.n_support
    assert decision_values(small, fresh()) == pytest.approx(decision_values(model, fresh()), rel=1e-9, abs=1e-9)
    if len(model.machines) > 1:
        with pytest.raises(UsageError, match="machines"):
            compress(model, len(model.machines) - 1)


def test_a_linear_machine_of_huge_feature_numbers_takes_no_room_for_those_between() -> None:
    model = trained(2, "linear")
    wide = model.rows._replace(indices=model.rows.indices + np.int32(2**31 - 1 - model.rows.n_features), n_features=2**31 - 1)
    small = compress(replace(model, rows=wide), 1)
    assert small.rows.indices.max() == 2**31 - 1
    assert small.rows.data.tolist() == compress(model, 1).rows.data.tolist()


@pytest.mark.parametrize("n_class", [2, 4])
def test_it_is_written_and_read_as_a_libsvm_model(n_class: int) -> None:
    model = trained(n_class)
    small = compress(model, 15)
    again = parse_model(model_text(small), "small")
    assert decision_values(again, fresh()) == pytest.approx(decision_values(small, fresh()), rel=1e-9, abs=1e-9)


def test_regression_too() -> None:
    model = regression()
    small = compress(model, 20, data=model.rows)
    assert small.labels is None
    assert change(model, small, model.rows).flipped is None
    assert change(model, small, model.rows).largest < change(model, compress(model, 4), model.rows).largest


@pytest.mark.parametrize("held", [1 << 20, 30], ids=["at once", "by parts"])
def test_change_counts_what_it_says(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows = trained(3), fresh()
    other = replace(model, rho=model.rho + 0.25)
    flipped = np.count_nonzero(answers(model, rows) != answers(other, rows))
    monkeypatch.setattr(model_module, "_DECISIONS_HELD", held)
    assert len(list(decisions_by_part(model, rows))) == (1 if held > 30 else -(-rows.n // 10))
    found = change(model, other, rows)
    assert (found.largest, found.mean) == pytest.approx((0.25, 0.25))
    assert found.flipped == flipped > 0


def test_a_change_that_is_no_number_is_not_none() -> None:
    """Decision values that are infinite: the same are no change, others one that nobody can tell."""
    rows = Rows.from_dense(np.array([[1e200], [1.0]]))
    model = model_of("one_class", Kernel(POLYNOMIAL, 1.0, 0.0, 3), rows, (Machine(np.arange(2), np.array([1.0, -1.0]), 0.0),))
    other = replace(model, coef=-model.coef)
    one, two = model_of("one_class", model.kernel, rows.part(0, 1), (Machine(np.arange(1), np.ones(1), 0.0),)), rows.part(0, 1)
    assert change(one, one, two) == compressing.Change(0.0, 0.0, 0)
    found = change(model, other, rows)
    assert np.isnan(found.largest)
    assert np.isnan(found.mean)


def test_a_w_that_overflows_is_refused() -> None:
    rows = Rows.from_dense(np.array([[1e200], [2e200]]))
    model = model_of("one_class", Kernel(LINEAR), rows, (Machine(np.arange(2), np.array([1e200, 1.0]), 0.0),))
    with pytest.raises(DataError, match="overflow"):
        compress(model, 1)


def test_labels_of_one_class_models_may_flip_too() -> None:
    X, _ = points(50, 3, seed=1)
    rows = Rows.from_dense(X)
    model = model_of("one_class", Kernel(RBF, 0.4), rows, (Machine(np.arange(50), np.full(50, 0.1), 0.7),))
    decisions = decision_values(model, rows)[:, 0]
    other = replace(model, rho=model.rho + np.median(decisions))
    assert change(model, other, rows).flipped == np.count_nonzero((decisions > 0) != (decisions > np.median(decisions)))
    assert change(model, other, rows).flipped > 0


@pytest.mark.parametrize("kernel", [Kernel(SIGMOID, 0.1), Kernel(PRECOMPUTED), Kernel(POLYNOMIAL, 0.1, -1.0, 2)])
def test_kernels_without_a_feature_space_are_refused(kernel: Kernel) -> None:
    with pytest.raises(ModelError, match="cannot be re-expressed"):
        compress(replace(regression(), kernel=kernel), 5)


@pytest.mark.parametrize(("n_class", "multiclass"), [(2, "ovo"), (4, "ovr")])
def test_machines_that_have_all_vectors_have_them_chosen_from_all(n_class: int, multiclass: str) -> None:
    model = trained(n_class, multiclass=multiclass)
    chosen = np.sort(landmarks.pivots(model.rows, model.kernel, 9, 5))
    assert np.array_equal(compress(model, 9, seed=5, steps=0).rows.to_dense(), model.rows.take(chosen).to_dense())


def test_each_class_needs_a_vector() -> None:
    with pytest.raises(UsageError, match="4 classes"):
        compress(trained(4), 3)


@pytest.mark.parametrize("count", [3, 7, 100, 1005])
def test_shares_add_up_and_keep_to_the_sizes(count: int) -> None:
    sizes = np.array([1000, 3, 2])
    shares = compressing._shares(sizes, count)
    assert shares.sum() == count
    assert (shares >= 1).all()
    assert (shares <= sizes).all()
