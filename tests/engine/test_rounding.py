"""float32 kernel values stay within FLOAT32_ERROR √(K_ii K_jj) of the float64 ones wherever training takes them."""

from __future__ import annotations

import numpy as np
import pytest
from bench_data import DATA

from svmkit.data import Rows
from svmkit.engine import layouts, packed, rounding
from svmkit.engine.kernels import Engine, cross_apply
from svmkit.engine.packed import training_precision
from svmkit.engine.rounding import FLOAT32_ERROR
from svmkit.io.libsvm_data import read_dataset
from svmkit.problem import LINEAR, POLYNOMIAL, RBF, SIGMOID, Kernel


def largest_error(rows: Rows, kernel: Kernel, layout: layouts.Layout | None = None) -> float:
    """Of float32 values, in units of √(K_ii K_jj)."""
    coarse, exact = Engine(rows, kernel, "f4", layout), Engine(rows, kernel, "f8")
    scale, every, worst = np.sqrt(exact.diagonal()), np.arange(rows.n), 0.0
    for some in np.array_split(every, -(-rows.n // 500)):
        off = np.abs(coarse.block(some, every) - exact.block(some, every)) / np.maximum(scale[some, None] * scale, 1e-300)
        worst = max(worst, float(off.max()))
    return worst


def largest_gamma(rows: Rows, most: float = 1e6) -> float:
    """Where the last float32 is, to a thousandth."""
    least = 1e-12
    while most > 1.001 * least:
        gamma = float(np.sqrt(least * most))
        least, most = (gamma, most) if training_precision(rows, Kernel(RBF, gamma)) == "f4" else (least, gamma)
    return least


def limit_of_products(rows: Rows) -> float:
    """The largest gamma for which float32 inner products serve."""
    return 0.999 * rounding._ESTIMATE / rounding._sums(rows, layouts._longest_sum((rows,))).roughness


@pytest.mark.parametrize("dimension", [1, 5, 50, 800, 3000])
@pytest.mark.parametrize("density", [1.0, 0.4])
def test_products_are_taken_only_where_they_are_good_enough(dimension: int, density: float) -> None:
    rng = np.random.default_rng(11)
    X = np.abs(rng.normal(size=(300, dimension))) * (rng.random((300, dimension)) < density)
    rows = Rows.from_dense(X)
    kernel = Kernel(RBF, limit_of_products(rows))
    layout = layouts.layout_of(rows, rows, kernel, "f4")
    assert training_precision(rows, kernel) == "f4"
    assert not layout.differences
    assert largest_error(rows, kernel) <= FLOAT32_ERROR
    if layout.form == "table" and dimension > 1:  # the estimate is no far cry from what happens
        assert largest_error(rows, kernel) > 0.1 * FLOAT32_ERROR


@pytest.mark.parametrize(
    ("count", "width"),
    [(3, 3), (20, 20), (95, 95), (128, 128), (256, 256), (800, 800), (300, 4000), (1000, 5000), (20_000, 20_000)],
)
@pytest.mark.parametrize("same", [False, True])
def test_rows_that_round_one_way(count: int, width: int, same: bool) -> None:
    """Equal products, added again and again, round the same way each time: the worst that sums can do. Each row its own value,
    or one value but for a few; dense, or among rows of one feature.
    """
    rng = np.random.default_rng(13)
    X = np.zeros((80, width))
    X[:40, :count] = 0.37 if same else rng.uniform(0.9, 1.1, size=(40, 1))
    if same:
        X[20:40, :count] *= rng.choice([1, 1, 0.999, 0.5], size=(20, count))
    if width > count:
        X[np.arange(40, 80), rng.integers(0, width, 40)] = 0.01
    rows = Rows.from_dense(X)
    for factor in (1.0, 0.5, 0.2, 0.05):
        kernel = Kernel(RBF, factor * limit_of_products(rows))
        assert training_precision(rows, kernel) == "f4"
        assert largest_error(rows, kernel, layouts._layout_for_products((rows,))) <= FLOAT32_ERROR
    if count < 4096:
        kernel = Kernel(RBF, largest_gamma(rows))
        assert largest_error(rows, kernel) <= FLOAT32_ERROR


def test_documents_of_unit_length() -> None:
    """Every word of a document counts the same, in each document another amount; most words are rare, some documents long."""
    rng = np.random.default_rng(4)
    lengths = np.minimum(np.exp(rng.normal(5.0, 1.2, size=400)).astype(int) + 1, 8000)
    words = [np.unique((20_000 ** rng.random(3 * n)).astype(np.int32)) for n in lengths]
    indptr = np.append(0, np.cumsum([len(some) for some in words]))
    data = np.concatenate([np.full(len(some), len(some) ** -0.5) for some in words])
    rows = Rows(data, np.concatenate(words), indptr, 20_000)
    for factor in (1.0, 0.5, 0.2):
        assert largest_error(rows, Kernel(RBF, factor * limit_of_products(rows))) <= FLOAT32_ERROR


@pytest.mark.parametrize("longest", [1, 2, 5, 16])
def test_a_few_equal_values_may_have_any_gamma(longest: int) -> None:
    """Not as 1s that are counted, but in the loops for all rows; other features may come from differences."""
    rng = np.random.default_rng(17)
    X = np.zeros((300, 24))
    for row in X:
        row[rng.permutation(20)[: rng.integers(0, longest + 1)]] = 0.73
    rows = Rows.from_dense(X)
    for gamma in 10.0 ** np.linspace(-3, 3, 25):
        kernel = Kernel(RBF, gamma)
        assert training_precision(rows, kernel) == "f4"
        assert largest_error(rows, kernel, layouts.Layout("table")) <= FLOAT32_ERROR
    X[:, 20:] = 1.0 + rng.normal(scale=0.05, size=(300, 4))
    mixed, kernel = Rows.from_dense(X), Kernel(RBF, 6.0)
    assert (training_precision(mixed, kernel) == "f4") == (longest < 16)
    assert Engine(mixed, kernel).packed.differences == (longest < 16)
    assert longest == 16 or largest_error(mixed, kernel) <= FLOAT32_ERROR
    X[0, 3] = 0.74
    assert training_precision(Rows.from_dense(X), Kernel(RBF, 40.0)) == "f8"
    others = rows._replace(data=np.full(len(rows.data), 0.7))
    for basis, real in ((others, "f8"), (rows.part(10, 60), "f4")):
        assert layouts.suited(*packed.renumbered(rows, basis), Kernel(RBF, 40.0))[0] == real


@pytest.mark.parametrize(("dimension", "others"), [(1, 0), (3, 0), (20, 0), (200, 0), (12, 10)])
def test_differences_serve_where_products_are_too_coarse(dimension: int, others: int) -> None:
    """Rows far from the origin for their kernel's width; ``others`` are features that few rows have, of one value."""
    rng = np.random.default_rng(14)
    X = np.hstack([10.0 + rng.normal(scale=1.5, size=(301, dimension)), np.zeros((301, others))])
    if others:
        X[np.arange(301), rng.integers(dimension, dimension + others, 301)] = 3.0
    rows, every = Rows.from_dense(X), np.arange(301)
    kernel = Kernel(RBF, largest_gamma(rows))
    left = rounding._BOUND - (0.5 if others else 0.0) - 0.074 * min(dimension, 69)  # what other features and equal squares take
    assert 0.8 * left**2 < 0.86**2 * kernel.gamma * rows.sqnorms().max() < 1.01 * left**2
    engine = Engine(rows, kernel)
    assert engine.packed.differences
    assert largest_error(rows, kernel) <= FLOAT32_ERROR
    assert largest_error(rows, kernel, layouts.Layout("table")) > 3 * FLOAT32_ERROR
    weights, exact = rng.normal(size=(301, 2)), Engine(rows, kernel, "f8").block(every, every)
    assert np.abs(cross_apply(rows, rows, kernel, weights, "f4") - exact @ weights).max() <= FLOAT32_ERROR * 301


def test_other_features_must_not_cost_the_differences_their_digits() -> None:
    """Equal values leave nothing where rows agree, but only if they are added up before squares of differences are."""
    rng = np.random.default_rng(20)
    X = np.hstack([rng.normal(scale=0.004, size=(200, 100)), np.tile([[1.0, 0.0], [0.0, 1.0]], (100, 1))])
    for columns, served in ((slice(90, None), True), (slice(None), False)):  # by table, by tiles
        rows, kernel = Rows.from_dense(X[:, columns]), Kernel(RBF, 300.0)
        dense = tuple(range(1, rows.n_features - 1))
        assert rounding.differences_serve((rows,), kernel, dense, layouts._longest_sum((rows,)), others_first=served) == served
        form = "table" if served else "tiled"
        assert (largest_error(rows, kernel, layouts.Layout(form, dense=dense, differences=True)) <= FLOAT32_ERROR) == served


def test_float32_gives_way_where_neither_serves() -> None:
    rng = np.random.default_rng(18)
    X = np.hstack([np.full((90, 1), 0.5), rng.normal(scale=3.0, size=(90, 40)) * (rng.random((90, 40)) < 0.2)])
    rows, kernel = Rows.from_dense(X), Kernel(RBF, 2.0)
    assert training_precision(rows, kernel) == "f8"
    weights = rng.normal(size=(90, 1))
    exact = cross_apply(rows, rows, kernel, weights)
    assert np.array_equal(cross_apply(rows, rows, kernel, weights, "f4"), exact)
    coarse = cross_apply(rows, rows, kernel, weights, "f4", may_differ=False)
    assert 0.0 < np.abs(coarse - exact).max() < 1e-2


def test_float64_where_float32_is_too_coarse() -> None:
    rows = Rows.from_dense(np.array([[1e3, 1e3], [1e3, 999.0], [-1e3, -1e3]]))
    assert training_precision(rows, Kernel(RBF, 1.0)) == "f8"
    assert training_precision(rows, Kernel(POLYNOMIAL, 1.0, -1.0, 3)) == "f8"
    assert training_precision(rows, Kernel(SIGMOID, 1e-3)) == "f8"


@pytest.mark.parametrize(
    "kernel", [Kernel(LINEAR), *(Kernel(POLYNOMIAL, 0.3, c, d) for c in (0.0, 1.0, 30.0) for d in (1, 2, 3, 4))]
)
def test_products_and_their_powers(kernel: Kernel) -> None:
    """The longest rows of which float32 is taken; a few more nonzeros and it is float64."""
    rng = np.random.default_rng(19)
    taken = []
    for dimension in (1, 2, 4, 7, 12, 20, 40, 70, 120, 250, 500):
        for X in (rng.normal(size=(200, dimension)), np.full((3, dimension), 0.37), 0.3 + rng.random((200, dimension))):
            rows = Rows.from_dense(X)
            taken.append(training_precision(rows, kernel) == "f4")
            if taken[-1]:
                assert largest_error(rows, kernel) <= FLOAT32_ERROR
    assert any(taken)


REAL = """
20news a9a abalone_scale avila banana covtype.libsvm.binary.scale cpusmall diabetes dna.scale german.numer_scale heart_scale
housing_scale ijcnn1 magic04 mnist money-fx occupancy rcv1_small reuters-acq satimage segment skin_nonskin svmguide1 usps
waveform winequality-red
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL.split())
def test_real_data_at_the_largest_gamma(name: str) -> None:
    """Of float32 as it is taken, and of products alone."""
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} is not there")
    rows = read_dataset(str(DATA / name)).rows
    rows = rows.take(np.random.default_rng(0).permutation(rows.n)[:4000].astype(np.int64))
    plain = layouts._layout_for_products((rows,))
    by_products = limit_of_products(rows)
    errors = [largest_error(rows, Kernel(RBF, largest_gamma(rows, 1e3)))]
    errors += [largest_error(rows, Kernel(RBF, share * by_products), plain) for share in (1.0, 0.3)]
    print(name, errors)
    assert max(errors) <= FLOAT32_ERROR


@pytest.mark.parametrize(
    ("value", "kernel"),
    [
        (2.0, Kernel(RBF, 1e38)),
        (2.0, Kernel(RBF, 1e300)),
        (1e40, Kernel(RBF, 1.0)),
        (1e-160, Kernel(RBF, 1e300)),
        (1e-22, Kernel(LINEAR)),
        (2.0, Kernel(POLYNOMIAL, 1e-20, 1e-20, 3)),
        (2.0, Kernel(POLYNOMIAL, 1e-30, 0.0, 4)),
        (2.0, Kernel(POLYNOMIAL, 0.1, 1.0, 5)),
        (10.0, Kernel(POLYNOMIAL, 1.0, 0.0, 1000)),
        (1e10, Kernel(POLYNOMIAL, 1e300, 0.0, 3)),
        (1e200, Kernel(POLYNOMIAL, 0.0, 1.0, 3)),
    ],
    ids=str,
)
def test_float64_near_the_ends_of_what_float32_can_say(value: float, kernel: Kernel) -> None:
    rows = Rows.from_dense(np.diag([*[value] * 6, 0.3, 0.0]))  # 0.3: not of whole numbers alone, whose products are exact
    assert training_precision(rows, kernel) == "f8"
    assert (
        training_precision(Rows.from_dense(np.eye(6)), kernel._replace(gamma=1.0, coef0=0.0, degree=min(kernel.degree, 4)))
        == "f4"
    )
    if kernel.kind == RBF:
        assert (np.diagonal(Engine(rows, kernel).block(np.arange(7), np.arange(7))) == 1.0).all()
