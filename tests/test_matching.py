"""Support vectors are found again in the data: exactly, or as svm-train's eight digits leave them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from svmkit.data import Floats, Rows
from svmkit.matching import _cut, find_rows


def test_each_of_equal_rows_is_taken_once_and_classes_are_kept_apart() -> None:
    X = np.array([[1.0, 0.0], [2.0, 3.0], [1.0, 0.0], [1.0, 0.0], [4.0, 0.0]])
    members = [np.array([0, 1, 2]), np.array([3, 4])]
    support = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [2.0, 3.0]])
    found = find_rows(Rows.from_dense(support), np.array([0, 3, 5]), Rows.from_dense(X), members)
    assert_array_equal(found, [0, 2, -1, 3, -1])


def test_zeros_that_are_spelt_out_do_not_count() -> None:
    spelt = Rows(np.array([0.0, 5.0]), np.array([1, 2], dtype=np.int32), np.array([0, 2]), 2)
    plain = Rows(np.array([5.0]), np.array([2], dtype=np.int32), np.array([0, 1]), 2)
    assert_array_equal(find_rows(spelt, np.array([0, 1]), plain, [np.array([0])]), [0])


@pytest.mark.parametrize("digits", ["%.8g", "%.17g"])
def test_values_cut_by_svm_train_are_found(digits: str) -> None:
    X = np.random.default_rng(5).normal(size=(200, 4)) * 10.0 ** np.random.default_rng(6).integers(-30, 30, (200, 4))
    printed = np.array([[float(digits % value) for value in row] for row in X])
    order = np.random.default_rng(7).permutation(200)
    found = find_rows(Rows.from_dense(printed[order]), np.array([0, 200]), Rows.from_dense(X), [np.arange(200)])
    assert_array_equal(found, order)


def test_an_exact_row_comes_before_one_that_agrees_in_eight_digits() -> None:
    X = np.array([[1.000000001], [1.0]])
    assert_array_equal(find_rows(Rows.from_dense(X[1:]), np.array([0, 1]), Rows.from_dense(X), [np.arange(2)]), [1])


@given(st.lists(st.floats(1e-290, 1e290).flatmap(lambda v: st.sampled_from([v, -v])), min_size=1))
def test_the_number_of_a_value_is_that_of_its_print(values: list[float]) -> None:
    array: Floats = np.array(values)
    printed: Floats = np.array([float(f"{value:.8g}") for value in values])
    half = np.array([_is_nearly_half(value) for value in values])  # there print decides by digits that products have lost
    assert_array_equal(_cut(array)[~half], _cut(printed)[~half])
    first, texts = _cut(array)[0], [f"{value:.8g}" for value in values]
    for number, text, unsure in zip(_cut(array), texts, half, strict=True):
        assert unsure or half[0] or (text == texts[0]) == (number == first)


def _is_nearly_half(value: float) -> bool:
    digits = f"{abs(value):.15e}".split("e")[0].replace(".", "")
    return abs(int(digits[8:]) - 5 * 10**7) < 100
