"""Compressed models: coefficients and gradient from their definitions, exactness at the ends, less error with more vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from models import model_of
from oracle import dense_kernel
from zoo import points

from svmkit import compress as compressing
from svmkit import model as model_module
from svmkit import parallel, reduced
from svmkit.compress import change, compress
from svmkit.config import TrainConfig
from svmkit.data import Dataset, Floats, Rows
from svmkit.errors import DataError, UsageError
from svmkit.fit import fit
from svmkit.io.model_libsvm import model_text, parse_model
from svmkit.maps import landmarks
from svmkit.model import Machine, Model, answers, decision_values, decisions_by_part, with_machines
from svmkit.problem import LINEAR, POLYNOMIAL, PRECOMPUTED, RBF, SIGMOID, Kernel
from svmkit.reduced import Distance


def trained(n_class: int = 2, kernel: str = "rbf", n: int = 240, multiclass: str = "ovo", gamma: float = 0.3) -> Model:
    X, _ = points(n, 4, seed=n_class)
    y = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]), np.linspace(-1, 1, n_class + 1)[1:-1]).astype(np.float64)
    settings: dict[str, Any] = dict(C=3.0, gamma=gamma, kernel=kernel, coef0=1.0, multiclass=multiclass)
    return fit(Dataset(Rows.from_dense(X), y), TrainConfig(**settings)).model


def regression() -> Model:
    X, _ = points(50, 3, seed=1)
    coef = np.random.default_rng(1).normal(size=50)
    return model_of("epsilon_svr", Kernel(RBF, 0.4), Rows.from_dense(X), (Machine(np.arange(50), coef, 0.7),))


def fresh(n: int = 300) -> Rows:
    return Rows.from_dense(points(n, 4, seed=99)[0])


def distances(before: Model, after: Model) -> Floats:
    """‖F − G‖²/‖F‖² of each machine, from dense kernel matrices."""
    found = []
    for one, other in zip(before.machines, after.machines, strict=True):
        S, Z = before.rows.take(one.index), after.rows.take(other.index)
        across = one.coef @ dense_kernel(S, Z, before.kernel) @ other.coef
        norm2 = one.coef @ dense_kernel(S, S, before.kernel) @ one.coef
        found.append(1 + (other.coef @ dense_kernel(Z, Z, before.kernel) @ other.coef - 2 * across) / norm2)
    return np.array(found)


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
    monkeypatch.setattr(compressing, "_least_squares", lambda features, f: np.zeros(features.shape[1]))
    model = trained()
    assert model_text(compress(model, 12, data=fresh())) == model_text(compress(model, 12))


@pytest.mark.parametrize(("n_class", "multiclass"), SEVERAL)
def test_the_gradient_is_that_of_the_distance(n_class: int, multiclass: str) -> None:
    model = trained(n_class, multiclass=multiclass, gamma=1.0)
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(model.n_class), 3)
    z = rng.normal(size=(len(groups), 4))
    used = [compressing._members(model, groups, pair) for pair in model.pairs]
    distance = Distance(model, model.rows.to_dense()[:, 1:].astype(np.float32), used, len(groups))
    value, gradient = distance(z.ravel())

    small = replace(model, rows=Rows.from_dense(z), class_counts=np.bincount(groups))
    beta, _ = compressing._in_feature_space(model, small.rows, used)
    machines = tuple(Machine(u, b, m.rho) for u, b, m in zip(used, beta, model.machines, strict=True))
    expected = distances(model, with_machines(small, machines)).sum() - len(used)
    assert value == pytest.approx(expected, rel=1e-5)
    for direction in rng.normal(size=(5, z.size)):
        step = 3e-3
        slope = (distance(z.ravel() + step * direction)[0] - distance(z.ravel() - step * direction)[0]) / (2 * step)
        assert gradient @ direction == pytest.approx(slope, rel=1e-2, abs=1e-3 * np.linalg.norm(gradient))


def test_a_machine_of_all_vectors_leaves_the_others_theirs() -> None:
    """As where a class of several has no vector: one machine uses all of them, the next one some."""
    model, z = trained(3, multiclass="ovr"), points(9, 4, seed=7)[0].ravel()
    support, some = model.rows.to_dense()[:, 1:].astype(np.float32), np.arange(4)
    first, second = ([np.arange(9), some, some], [some, some, np.arange(9)])
    values = [Distance(with_machines(model, [model.machines[i] for i in order]), support, used, 9)(z)[0]
              for order, used in (((0, 1, 2), first), ((1, 2, 0), second))]  # fmt: skip
    assert values[0] == pytest.approx(values[1], rel=1e-5)


@pytest.mark.parametrize("n_class", [2, 4])
def test_tiles_do_not_matter(n_class: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained(n_class, n=900)
    z = points(12, 4, seed=7)[0].ravel()
    used = [compressing._members(model, np.repeat(np.arange(n_class), 12 // n_class), pair) for pair in model.pairs]
    support = model.rows.to_dense()[:, 1:].astype(np.float32)
    value, gradient = Distance(model, support, used, 12)(z)
    monkeypatch.setattr(reduced, "_TILE", 60)
    monkeypatch.setattr(reduced, "_LEAST_COLUMNS", 5)
    cut, cut_gradient = Distance(model, support, used, 12)(z)
    assert cut == pytest.approx(value, rel=1e-5)
    assert np.abs(cut_gradient - gradient).max() <= 1e-4 * np.abs(gradient).max()


def test_the_same_vectors_whatever_the_number_of_threads() -> None:
    model, found = trained(4, n=900), []
    for threads in (1, 2):
        parallel.use_threads(threads)
        found.append(model_text(compress(model, 20)))
    parallel.use_threads(0)
    assert found[0] == found[1]


@pytest.mark.parametrize("n_class", [2, 4])
def test_steps_are_told_with_what_is_left(n_class: int) -> None:
    model, told = trained(n_class), list[tuple[int, float]]()
    small = compress(model, 20, steps=15, on_step=lambda number, left: told.append((number, left)))
    assert [number for number, _ in told] == list(range(1, 16))
    assert np.all(np.diff([left for _, left in told]) < 0)
    assert told[-1][1] == pytest.approx(distances(model, small).mean(), rel=1e-2)


def test_vectors_far_from_the_middle_are_told_apart() -> None:
    """In float32 ‖z − x‖² from squares of 1e8 has an error of 10: what is told would be noise, and the result as well."""
    model, told = trained(), list[float]()
    X = model.rows.to_dense()[:, 1:]
    X[::2] += 1e4
    model = replace(model, rows=Rows.from_dense(X))
    small = compress(model, 20, steps=60, on_step=lambda number, left: told.append(left))
    assert min(told) == told[-1] == pytest.approx(distances(model, small)[0], rel=2e-2)
    assert distances(model, small)[0] < 0.5 * distances(model, compress(model, 20, steps=0))[0]


def test_vectors_that_came_no_nearer_stay_where_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    model = trained()
    monkeypatch.setattr(reduced, "_DECIMALS", -3)  # all would be 0
    assert model_text(compress(model, 20, steps=5)) == model_text(compress(model, 20, steps=0))


@pytest.mark.parametrize(("gamma", "decimals"), [(1e-4, 2), (0.3, 4), (3.0, 5)])
def test_moved_vectors_have_no_more_digits_than_they_need(gamma: float, decimals: int) -> None:
    """Four decimals of the kernel's own unit, γ^(−½): 100, 1.8 and 0.58."""
    at = compress(trained(gamma=gamma), 4, steps=5).rows.data
    assert np.array_equal(at, np.round(at, decimals))
    assert not np.array_equal(at, np.round(at, decimals - 1))


def test_vectors_far_apart_leave_no_subnormal_numbers() -> None:
    """Products with them take a hundred times as long."""
    rows = Rows.from_dense(np.arange(-6.0, 6.0)[:, None] * 2.35)
    model = of_rows(Kernel(RBF, 4.0), rows)  # γ‖x − z‖² = 22, 88, 199 …: exp(−88) is subnormal in float32
    support = 2.0 * rows.to_dense()[:, 1:].astype(np.float32)
    distance = Distance(model, support, [np.arange(4)], 4)
    value, gradient = distance(support[::3].astype(np.float64).ravel())
    assert value == pytest.approx(-4 / 12, rel=1e-4)
    assert np.abs(gradient).max() < 1e-4
    assert np.abs(distance.values).min() > np.finfo(np.float32).tiny


def of_rows(kernel: Kernel, rows: Rows) -> Model:
    """A model of these rows, half of them of either class."""
    half, coef = rows.n // 2, np.where(np.arange(rows.n) < rows.n // 2, 1.0, -1.0)
    machine = Machine(np.arange(rows.n), coef, 0.1)
    counts = np.array([half, rows.n - half])
    return model_of("c_svc", kernel, rows, [machine], labels=np.array([1, -1]), class_counts=counts)


@pytest.mark.parametrize(
    ("gamma", "scale"), [(0.0, 1.0), (1e-300, 1.0), (1e-30, 1.0), (1e300, 1.0), (1.0, 1e25), (1.0, 1e140), (1.0, 1e300)]
)
def test_extreme_models_keep_their_chosen_vectors(gamma: float, scale: float) -> None:
    """Those that single precision does not tell apart, or holds no numbers for; what comes of it is a model."""
    model = of_rows(Kernel(RBF, gamma), Rows.from_dense(scale * points(12, 2, seed=3)[0]))
    small = compress(model, 4)
    assert np.array_equal(small.rows.to_dense(), compress(model, 4, steps=0).rows.to_dense())
    assert np.isfinite(decision_values(small, fresh())).all()
    assert np.isfinite(decision_values(compress(model, 4, data=fresh()), fresh())).all()


def test_a_machine_that_is_0_does_not_hold_the_others_back() -> None:
    """Of two classes with the same rows."""
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(80, 2)), rng.normal(size=(80, 2)) + np.array([1.5, 0.0])
    data = Dataset(Rows.from_dense(np.vstack([one, two, two])), np.repeat([0.0, 1.0, 2.0], 80))
    model = fit(data, TrainConfig(gamma=1.0)).model
    start, small = compress(model, 15, steps=0), compress(model, 15)
    assert change(model, small, data.rows).mean < 0.7 * change(model, start, data.rows).mean


@pytest.mark.parametrize("scale", [1e3, 1e5, 1e7, 1e9, 1e12])
@pytest.mark.parametrize("near", [False, True])
def test_squares_that_swallow_distances_leave_a_model(scale: float, near: bool) -> None:
    """Far from the middle rounding alone can make the basis vectors' kernel matrix indefinite."""
    X = scale * points(40, 2, seed=3)[0]
    if near:
        X = np.repeat(X[:4], 10, axis=0) + points(40, 2, seed=4)[0]
    model = of_rows(Kernel(RBF, 1.0), Rows.from_dense(X))
    small = compress(model, 12)
    assert small.n_support == 12
    assert np.isfinite(decision_values(small, model.rows)).all()


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
    with pytest.raises(UsageError, match="cannot be re-expressed"):
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
