"""Support vectors are found again in the data: exactly, or as svm-train's eight digits leave them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import model_of
from numpy.testing import assert_array_equal

from svmkit.data import Dataset, Floats, Ints, Rows
from svmkit.matching import Found, _cut, find_rows, foreign_rows, weight_rows
from svmkit.model import Machine, Model
from svmkit.problem import LINEAR, RBF, Kernel


def find(
    support: Rows, rows: Rows, members: list[Ints], *, counts: list[int] | None = None, weight: Floats | None = None
) -> Found:
    """Of a model on ``support``, whose coefficients fall from row to row."""
    counts = counts or [support.n]
    model = Model(
        svm_type="c_svc",
        kernel=Kernel(0),
        rows=support,
        coef=np.linspace(-2.0, -1.0, support.n)[:, None],
        rho=np.zeros(1),
        labels=np.arange(len(counts)),
        class_counts=np.array(counts),
    )
    return find_rows(model, Dataset(rows, np.zeros(rows.n), weight=weight), members)


def test_each_of_equal_rows_is_taken_once_and_classes_are_kept_apart() -> None:
    X = np.array([[1.0, 0.0], [2.0, 3.0], [1.0, 0.0], [1.0, 0.0], [4.0, 0.0]])
    members = [np.array([0, 1, 2]), np.array([3, 4])]
    support = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [2.0, 3.0]])
    found = find(Rows.from_dense(support), Rows.from_dense(X), members, counts=[3, 2])
    assert_array_equal(found.place, [0, 2, -1, 3, -1])
    assert_array_equal(found.exact, [True, True, False, True, False])


def test_of_equal_rows_the_heaviest_is_that_of_the_largest_coefficient() -> None:
    equal = Rows.from_dense(np.ones((3, 1)))
    assert_array_equal(find(equal, equal, [np.arange(3)], weight=np.array([2.0, 1.0, 3.0])).place, [2, 0, 1])
    assert_array_equal(find(equal.take(np.arange(2)), equal, [np.arange(3)], weight=np.array([1.0, 2.0, 3.0])).place, [2, 1])


def of_equal_rows(n: int, counts: list[int], machines: list[tuple[list[int], list[float]]], multiclass: str = "ovo") -> Model:
    """Of n rows that are all the same."""
    return model_of(
        "c_svc",
        Kernel(RBF, 1.0),
        Rows.from_dense(np.ones((n, 1))),
        [Machine(np.array(index), np.array(coef), 0.0) for index, coef in machines],
        labels=np.arange(len(counts)),
        class_counts=np.array(counts),
        multiclass=multiclass,
    )


def test_the_largest_coefficient_of_a_row_is_that_of_any_machine_whatever_its_sign() -> None:
    """3 and 4 in the first class, 3, 1 and 2 in the second."""
    every = ([0, 1, 2, 3, 4], [3.0, 0.5, -0.5, -1.0, -2.0])
    model = of_equal_rows(5, [2, 3, 0], [every, ([0, 1], [1.0, 4.0]), ([2, 3, 4], [3.0, 0.5, 0.25])])
    data = Dataset(model.rows, np.zeros(5), weight=np.array([1.0, 2.0, 1.0, 2.0, 3.0]))
    assert_array_equal(find_rows(model, data, [np.arange(2), np.arange(2, 5), np.arange(0)]).place, [0, 1, 4, 2, 3])


@pytest.mark.parametrize(("n", "second"), [(3, 2), (2, -1)])
def test_against_the_rest_an_example_that_a_row_of_its_class_is_serves_no_other(n: int, second: int) -> None:
    model = of_equal_rows(2, [1, 1, 0], [([0, 1], [1.0, -1.0])] * 3, "ovr")
    data = Dataset(Rows.from_dense(np.array([[1.0], [2.0], [1.0]])[:n]), np.zeros(n))
    assert_array_equal(find_rows(model, data, [np.arange(1), np.arange(1, 2), np.arange(2, n)]).place, [0, second])


def test_a_row_with_another_classs_sign_in_one_machine_is_no_example_whatever_others_say() -> None:
    machines = [([0, 1], [-1.0, -1.0]), ([0, 2], [1.0, -1.0]), ([1, 2], [1.0, -1.0])]
    assert_array_equal(foreign_rows(of_equal_rows(3, [1, 1, 1], machines)), [True, False, False])


def test_against_the_rest_each_row_has_its_own_sign_in_one_machine_alone() -> None:
    machines = [([0, 1, 2], [1.0 if own == row else -1.0 for row in range(3)]) for own in range(3)]
    assert not foreign_rows(of_equal_rows(3, [1, 1, 1], machines, "ovr")).any()
    machines[2] = ([0, 2], [0.5, 1.0])
    assert_array_equal(foreign_rows(of_equal_rows(3, [1, 1, 1], machines, "ovr")), [True, False, False])


def test_a_w_is_a_linear_machines_only_row_and_has_the_coefficient_1() -> None:
    model = of_equal_rows(4, [2, 1, 1], [([0], [1.0]), ([1], [0.5]), ([2, 3], [1.0, -1.0])])
    assert weight_rows(model) == set()
    assert weight_rows(replace(model, kernel=Kernel(LINEAR))) == {0}


def test_zeros_that_are_spelt_out_do_not_count() -> None:
    spelt = Rows(np.array([0.0, 5.0]), np.array([1, 2], dtype=np.int32), np.array([0, 2]), 2)
    plain = Rows(np.array([5.0]), np.array([2], dtype=np.int32), np.array([0, 1]), 2)
    assert_array_equal(find(spelt, plain, [np.array([0])]).place, [0])


@pytest.mark.parametrize("digits", ["%.8g", "%.17g"])
def test_values_cut_by_svm_train_are_found(digits: str) -> None:
    X = np.random.default_rng(5).normal(size=(200, 4)) * 10.0 ** np.random.default_rng(6).integers(-30, 30, (200, 4))
    printed = np.array([[float(digits % value) for value in row] for row in X])
    order = np.random.default_rng(7).permutation(200)
    found = find(Rows.from_dense(printed[order]), Rows.from_dense(X), [np.arange(200)])
    assert_array_equal(found.place, order)
    assert_array_equal(found.exact, (printed == X)[order].all(axis=1))


def test_an_exact_row_comes_before_one_that_agrees_in_eight_digits() -> None:
    X = np.array([[1.000000001], [1.0]])
    assert_array_equal(find(Rows.from_dense(X[1:]), Rows.from_dense(X), [np.arange(2)]).place, [1])


def test_values_half_way_between_two_prints_are_found() -> None:
    """Nine digits with a 5 at the end: which way they are cut depends on the side of the tie that the double lies on."""
    draw = np.random.default_rng(8)
    exponents = np.append(np.full(2000, -9), draw.integers(-290, 280, 2000))
    X = np.array([float(f"{digits}5e{e}") for digits, e in zip(draw.integers(10**7, 10**8, 4000), exponents, strict=True)])
    printed = np.array([float(f"{value:.8g}") for value in X])
    found = find(Rows.from_dense(printed[:, None]), Rows.from_dense(X[:, None]), [np.arange(4000)])
    assert_array_equal(found.place, np.arange(4000))


def test_values_rounded_up_to_a_power_of_ten_are_found() -> None:
    X = np.array([99999999.6, 0.9999999997, -9.9999999999e-5])
    printed = np.array([1e8, 1.0, -1e-4])
    assert [f"{value:.8g}" for value in X] == [f"{value:.8g}" for value in printed]
    found = find(Rows.from_dense(printed[:, None]), Rows.from_dense(X[:, None]), [np.arange(3)])
    assert_array_equal(found.place, np.arange(3))


NINE_DIGITS = st.tuples(st.integers(10**7, 10**8 - 1), st.integers(-290, 280)).map(lambda p: float(f"{p[0]}5e{p[1]}"))


@given(st.lists((st.floats(1e-290, 1e290) | NINE_DIGITS).flatmap(lambda v: st.sampled_from([v, -v])), min_size=1))
def test_the_number_of_a_value_is_that_of_its_print(values: list[float]) -> None:
    array: Floats = np.array(values)
    printed: Floats = np.array([float(f"{value:.8g}") for value in values])
    numbers = _cut(array)
    assert_array_equal(numbers, _cut(printed))
    for number, value in zip(numbers, printed, strict=True):
        assert (value == printed[0]) == (number == numbers[0])
