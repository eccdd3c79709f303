"""How rows are packed: which loops suit them, and how their features are numbered."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from zoo import sparse_matrix

from svmkit import features
from svmkit.data import Rows
from svmkit.engine import layouts, packed
from svmkit.engine.kernels import Engine
from svmkit.problem import LINEAR, RBF, Kernel


@pytest.mark.parametrize(
    ("n_features", "density", "form"),
    [
        *((123, 0.11, "table"), (780, 0.4, "tiled"), (300, 0.04, "table")),
        *((5000, 0.01, "sorted"), (5000, 0.15, "table"), (5000, 0.5, "tiled")),
    ],
)
def test_which_form_suits(n_features: int, density: float, form: str) -> None:
    rows = Rows.from_dense(sparse_matrix(60, n_features, density, seed=0))
    assert Engine(rows, Kernel(RBF, 0.1)).packed.form == form


def test_a_table_is_no_larger_than_crowded_rows() -> None:
    """Or than 64 MB."""
    few, many = (Rows.from_dense(np.ones((n, 140_000), np.float32)) for n in (3, 70))
    assert layouts.layout_of(few, few, Kernel(LINEAR), "f4").form == "sorted"
    assert layouts.layout_of(many, many, Kernel(LINEAR), "f4").form == "tiled"


def test_features_that_most_of_a_basis_has_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row has a place for them, and the loops take two rows at a time, where the CPU has registers for their sums."""
    X = sparse_matrix(90, 20, 0.3, seed=6)
    X[:, [4, 11]] = 1.5
    X[:, 7] = 0.5 * (np.arange(90) < 60)  # two thirds: not most
    X[:29, 11] = 0.0
    rows = Rows.from_dense(X)
    kernel = Kernel(RBF, 0.01)
    for has, dense in ((True, (5, 12)), (False, ())):
        monkeypatch.setattr(layouts, "cpu_has", lambda feature, has=has: has and feature == "avx512f")
        assert layouts.layout_of(Rows.from_dense(X * (X == 1.5)), rows, kernel, "f4") == layouts.Layout("table", dense=dense)
    monkeypatch.setattr(layouts, "cpu_has", lambda feature: feature == "avx512f")
    few = Rows.from_dense(X * (np.arange(20) == 4))  # with a place for either feature these were twice as large
    assert layouts.layout_of(few, rows, kernel, "f4").dense == ()
    layout = layouts.Layout("table", dense=(5, 12))
    found = packed.pack(rows, Kernel(LINEAR), "f8", layout)
    assert found.dense == 2
    old = [5, 12, *(f for f in range(21) if f not in layout.dense)]  # the old numbers, by the new ones; no row has feature 0
    for r in range(90):
        part = slice(found.indptr[r], found.indptr[r + 1])
        numbers, values = found.indices[part], found.data[part]
        assert numbers[:2].tolist() == [0, 1]
        assert (np.diff(numbers) > 0).all()
        again = np.zeros(21)
        again[[old[i] for i in numbers]] = values
        assert np.array_equal(again[1:], X[r])
    fewer = packed.pack(Rows.from_dense(X[:, :3]), Kernel(LINEAR), "f8", layout)  # rows without such features have zeros there
    assert fewer.n_features == 12
    assert (fewer.data[fewer.indptr[:-1]] == 0.0).all()


@pytest.mark.parametrize("most_places", [0, 10**9])
def test_features_are_numbered_anew_in_their_order_either_way(most_places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By sorting the nonzeros, or by a place for each number; and not at all where numbers are as many as nonzeros."""
    monkeypatch.setattr(features, "_MOST_PLACES", most_places)
    few = Rows(np.arange(4.0), np.array([7, 90_000, 0, 500], np.int32), np.array([0, 2, 4]), 90_000)
    more = Rows(np.arange(3.0), np.array([500, 7, 100_000], np.int32), np.array([0, 1, 3]), 100_000)
    one, other = packed.renumbered(few, more)
    order = np.unique([0, 7, 500, 90_000, 100_000])
    for before, after in ((few, one), (more, other)):
        assert order[after.indices - 1].tolist() == before.indices.tolist()
        assert after.n_features == 5
        assert after.indices.dtype == np.int32
    assert packed.renumbered(few._replace(n_features=4096))[0].indices is few.indices


def test_numbers_beyond_float32_are_infinite_on_every_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a warning, which NumPy gives on threads that it has not been told to spare."""

    def elsewhere(work: Callable[[int, int], None], n: int, n_pieces: int) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(work, 0, n).result()

    monkeypatch.setattr(packed.parallel, "run_ranges", elsewhere)
    found = packed.pack(Rows.from_dense(np.full((8, 2), 1e60)), Kernel(LINEAR), "f4", layouts.Layout("table"))
    assert (found.data == np.inf).all()


def test_text_that_may_be_taken_for_whole_numbers_is_not_where_values_may_not_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """255ths to six digits; a bound on float32's rounding knows nothing of such."""
    monkeypatch.setattr(layouts, "cpu_has", lambda feature: feature != "avx512f")
    rows = Rows.from_dense(np.round(np.random.default_rng(8).integers(0, 256, (80, 64)) / 255.0, 6))
    forms = [layouts.layout_of(rows, rows, Kernel(RBF, 0.1), "f4", may_differ).form for may_differ in (True, False)]
    assert forms == ["pixels", "table"]


def test_features_are_counted_in_little_memory() -> None:
    """A table's layout asks for all of them, of 16 MB of numbers."""
    rng = np.random.default_rng(0)
    rows = Rows.from_dense(rng.random((200_000, 20)))
    tracemalloc.start()
    found = layouts.layout_of(rows, rows, Kernel(LINEAR), "f8", may_differ=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.dense in ((), tuple(range(1, 21)))  # with AVX-512 all
    assert peak < 10e6
