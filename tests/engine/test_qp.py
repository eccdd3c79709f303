"""The compiled loops of the block solver against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svmkit.data import Floats
from svmkit.engine import qp


def box(n: int, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """F, β, lower, upper: a third of β at each bound, a third free."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0], n)
    lower, upper = np.minimum(0.0, 2.0 * side), np.maximum(0.0, 2.0 * side)
    beta = np.where(rng.random(n) < 1 / 3, lower, np.where(rng.random(n) < 0.5, upper, lower + rng.random(n)))
    return rng.normal(size=n) * 5.0, beta, lower, upper


def extremes(F: Floats, beta: Floats, lower: Floats, upper: Floats) -> tuple[float, float]:
    out = np.empty(2)
    qp.extremes(F, beta, lower, upper, out)
    return float(out[0]), float(out[1])


def choose(parts: tuple[Floats, ...], previous: list[int], size: int, edges: tuple[float, float, float]) -> np.ndarray:
    n = len(parts[0])
    chosen, rises, falls = np.full(size + 9, -7), np.empty(n, np.int32), np.empty(n, np.int32)
    count = qp.choose_block(*parts, np.array(previous, dtype=np.int64), size, *edges, rises, falls, chosen)
    assert count <= size
    assert (chosen[count:] == -7).all()
    return chosen[:count]


@pytest.mark.parametrize("n", [1, 2, 50, 1000])
def test_extremes(n: int) -> None:
    F, beta, lower, upper = box(n, seed=n)
    m, M = extremes(F, beta, lower, upper)
    assert m == F[beta < upper].max(initial=-1e300)
    assert F[beta > lower].min(initial=1e300) == M


@pytest.mark.parametrize("size", [2, 10, 64, 700])
def test_a_block_holds_the_worst_violators(size: int) -> None:
    """Whoever is left out on a side violates less than whoever is in, but for a step of 1/1023."""
    F, beta, lower, upper = box(500, seed=1)
    m, M = extremes(F, beta, lower, upper)
    chosen = choose((F, beta, lower, upper), [], size, (M, m, m - M))
    assert len(set(chosen)) == len(chosen) <= size
    violates = ((beta < upper) & (F > M)) | ((beta > lower) & (m > F))
    assert violates[chosen].all()
    if violates.sum() >= size:
        assert len(chosen) == size
    inside = np.zeros(500, bool)
    inside[chosen] = True
    bin_width = (m - M) / 1023
    for sign, side in ((1.0, (beta < upper) & (beta == lower) & (F > M)), (-1.0, (beta > lower) & (beta == upper) & (m > F))):
        left, picked = (sign * F)[side & ~inside], (sign * F)[side & inside]
        if len(left) and len(picked):
            assert left.max() <= picked.min() + 2 * bin_width


def test_half_a_block_may_stay_free_ones_first() -> None:
    F, beta, lower, upper = box(100, seed=2)
    m, M = extremes(F, beta, lower, upper)
    free = np.flatnonzero((lower < beta) & (beta < upper))
    stuck = np.flatnonzero((beta == lower) | (beta == upper))
    previous = [*stuck[:20], -1, *free[:6]]
    chosen = choose((F, beta, lower, upper), previous, 20, (M, m, m - M))
    assert list(chosen[:6]) == list(free[:6][::-1])
    assert list(chosen[6:10]) == list(stuck[:20][::-1][:4])


def chosen_plainly(parts: tuple[Floats, ...], previous: list[int], size: int, edges: tuple[float, float, float]) -> list[int]:
    """What ``choose`` says it does, one after another."""
    F, beta, lower, upper = parts
    up_edge, low_edge, width = edges
    taken: list[int] = []
    stay = [i for i in previous[::-1] if i >= 0]
    for wanted in (True, False):
        taken += [i for i in stay if (lower[i] < beta[i] < upper[i]) is np.bool_(wanted)]
    taken = taken[: (size + 1) // 2]

    def worst(excess: Floats, may_move: np.ndarray, wanted: int) -> list[int]:
        level = np.minimum(excess * (1023.0 / width), 1023.0).astype(int)
        able = [i for i in np.flatnonzero(may_move & (excess > 0)).tolist() if i not in taken]
        wanted = max(wanted, 0)
        if len(able) <= wanted:
            return able
        last = sorted(level[able])[-wanted] if wanted else 1024
        equal = [i for i in able if level[i] == last]
        spare = wanted - sum(level[i] > last for i in able)
        some = {i for t, i in enumerate(equal) if (t + 1) * spare // len(equal) > t * spare // len(equal)}
        return [i for i in able if level[i] > last or i in some]

    taken += worst(F - up_edge, beta < upper, (size - len(taken)) // 2)
    taken += worst(low_edge - F, beta > lower, size - len(taken))
    return taken + worst(F - up_edge, beta < upper, size - len(taken))


@pytest.mark.parametrize(("n", "size"), [(1, 4), (9, 4), (300, 64), (300, 7), (300, 600), (5000, 1024), (5000, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_a_block_is_the_one_that_is_found_one_after_another(n: int, size: int, seed: int) -> None:
    parts = box(n, seed)
    m, M = extremes(*parts)
    previous = np.random.default_rng(seed).permutation(n)[: min(n, size)].tolist()
    previous[::5] = [-1] * len(previous[::5])
    for edges in ((M, m, m - M), (0.0, 0.0, max(m, -M))):
        if edges[2] > 0:
            assert list(choose(parts, previous, size, edges)) == chosen_plainly(parts, previous, size, edges)


def test_equal_violators_are_taken_from_the_whole_file() -> None:
    """At the start all violate alike: the first ones of a file that is in some order would be much alike, too."""
    n, size = 1000, 40
    y = np.where(np.arange(n) % 5 == 0, 1.0, -1.0)
    box_of_y = np.minimum(0.0, y), np.maximum(0.0, y)
    chosen = choose((y, np.zeros(n), *box_of_y), [], size, (-1.0, 1.0, 2.0))
    assert len(chosen) == size
    for label in (1.0, -1.0):
        members, own = np.flatnonzero(y == label), chosen[y[chosen] == label]
        assert len(own) == size // 2
        distances = np.diff(np.searchsorted(members, own))
        assert distances.min() >= len(members) // len(own)
        assert distances.max() <= len(members) // len(own) + 1


@pytest.mark.parametrize("real", ["f4", "f8"])
@pytest.mark.parametrize("bias", [True, False])
def test_steps_keep_the_box_the_sum_and_F_and_climb(real: str, bias: bool) -> None:
    rng = np.random.default_rng(3)
    n, size = 60, 64
    X = rng.normal(size=(n, 4))
    K = np.zeros((size, size), real)
    K[:n, :n] = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    exact = K[:n, :n].astype(np.float64)
    y = rng.choice([-1.0, 1.0], n)
    lower, upper = np.minimum(0.0, 3.0 * y), np.maximum(0.0, 3.0 * y)
    beta, F = np.zeros(n), qp.block_F(y.copy(), 0.0, real)
    eps, rounding = (1e-6, 1e-11) if real == "f8" else (1e-4, 1e-5)
    diagonal = np.ascontiguousarray(np.diagonal(K)[:n])
    loops = qp.pair_steps if bias else qp.coordinate_steps
    value = 0.0
    for _ in range(100_000):
        used = loops[real](K, diagonal, F, beta, lower, upper, np.empty(n, real), np.empty(n, real), eps, 1)
        climbed = float(y @ beta - 0.5 * beta @ exact @ beta)
        assert climbed >= value - 1e-12  # a step is to the minimum of a pair, or coordinate, by F as it is rounded
        value = climbed
        assert ((lower <= beta) & (beta <= upper)).all()
        if not used:
            break
    assert used == 0
    true = y - exact @ beta
    assert np.abs(F - true).max() < rounding
    m, M = extremes(true, beta, lower, upper)
    slack = 2 * rounding + (0.25 * eps if real == "f4" else 0.0)  # which F is the largest is told to a quarter of eps
    if bias:
        assert abs(beta.sum()) < 1e-12
        assert m - M < eps + slack
    else:
        assert max(m, -M) <= eps + slack


@pytest.mark.parametrize("bias", [True, False])
def test_steps_in_float32_come_from_any_middle_and_go_as_far(bias: bool) -> None:
    """F around 10⁶, where float32 knows a sixteenth: less the middle, steps are as good as those in float64."""
    rng = np.random.default_rng(4)
    n, middle = 300, 1e6 if bias else 0.0
    X = rng.normal(size=(n, 4))
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2)).astype(np.float32)
    y = rng.choice([-1.0, 1.0], n)
    lower, upper = np.minimum(0.0, 3.0 * y), np.maximum(0.0, 3.0 * y)
    eps, climbed = 1e-3, []
    for real in ("f4", "f8"):
        held: Any = K.astype(real)
        F, beta = qp.block_F(y + middle, middle, real), np.zeros(n)  # type: ignore[arg-type]
        loops = qp.pair_steps if bias else qp.coordinate_steps
        work = qp.diagonal_of(held, n), F, beta, lower, upper, np.empty(n, real), np.empty(n, real)
        assert loops[real](held, *work, eps, 100_000) < 100_000
        exact = y - K.astype(np.float64) @ beta
        m, M = extremes(exact, beta, lower, upper)
        assert (m - M if bias else max(m, -M)) <= 1.3 * eps
        climbed.append(float(y @ beta - 0.5 * beta @ (y - exact)))
    assert climbed[0] == pytest.approx(climbed[1], abs=eps * float(np.abs(upper - lower).sum()))


@pytest.mark.parametrize("shift", [10.0, 30.0])
def test_steps_in_float32_go_on_where_the_middle_moves_far(shift: float) -> None:
    """Features with a large common part: −rho leaves the window of a key at once."""
    rng = np.random.default_rng(0)
    n, eps = 400, 5e-4
    y = rng.choice([-1.0, 1.0], n)
    X = rng.normal(size=(n, 20)) + 0.3 * y[:, None] + shift
    K = (X @ X.T).astype(np.float32)
    lower, upper = np.minimum(0.0, y), np.maximum(0.0, y)
    F, beta = qp.block_F(y.copy(), 0.0, "f4"), np.zeros(n)
    work = F, beta, lower, upper, np.empty(n, np.float32), np.empty(n, np.float32)
    assert 1000 < qp.pair_steps["f4"](K, qp.diagonal_of(K, n), *work, eps, 100_000) < 100_000
    m, M = extremes(y - K.astype(np.float64) @ beta, beta, lower, upper)
    assert abs(m + M) > 2 * qp._WINDOW_EPS * eps
    assert m - M < 0.05


def test_what_a_block_is_to_come_down_to() -> None:
    for real in ("f4", "f8"):
        assert qp.inner_eps(1e-3, 2.0, False, real) == pytest.approx(0.2)  # type: ignore[arg-type]
        assert qp.inner_eps(1e-3, 2e-3, False, real) == 5e-4  # type: ignore[arg-type]
    assert qp.inner_eps(1e-6, 2.0, True, "f8") == 5e-7
    assert qp.inner_eps(1e-6, 2.0, True, "f4") == 2.0**-15


def test_a_block_of_the_largest_size_keeps_places_apart() -> None:
    """Places take 12 bits of a key: the last of 4096 can be chosen."""
    n = qp.LARGEST_BLOCK
    K = np.eye(n, dtype=np.float32)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    F = np.where(y > 0, np.float32(0.5), np.float32(-0.5))
    F[n - 2], F[n - 1] = 1.0, -1.0
    beta = np.zeros(n)
    steps = qp.pair_steps["f4"](
        *(K, np.ones(n, np.float32), F, beta, np.minimum(0.0, y), np.maximum(0.0, y)),
        *(np.empty(n, np.float32), np.empty(n, np.float32), 1e-3, 1),
    )
    assert steps == 1
    assert np.flatnonzero(beta).tolist() == [n - 2, n - 1]
    assert beta[n - 2] == 1.0


def test_a_coordinate_that_cannot_move_is_no_step() -> None:
    """Where F/K_ii is below what rounding leaves of β; else a call of one step would not know that it was the last."""
    F, beta = np.array([1.0, -0.5]), np.array([1e17, 1e17])
    work = np.empty(2), np.empty(2)
    for allowed in (1, 5):
        steps = qp.coordinate_steps["f8"](np.eye(2), np.ones(2), F, beta, np.zeros(2), np.full(2, 2e17), *work, 1e-3, allowed)
        assert (steps, beta.tolist()) == (0, [1e17, 1e17])


@pytest.mark.parametrize("real", ["f4", "f8"])
def test_without_variables_or_numbers_there_is_no_step(real: str) -> None:
    """What overflowing kernel values leave behind must not keep steps going, nor reach β."""
    n = 20
    F, beta, lower, upper = box(n, seed=3)
    K = np.eye(n, dtype=real)
    F, work = F.astype(real), (np.empty(n, real), np.empty(n, real))
    nothing, none = np.empty(0), np.empty(0, real)
    for steps in (qp.coordinate_steps, qp.pair_steps):
        assert steps[real](K[:0, :0].copy(), none, none, *[nothing] * 3, none, none, 1e-3, 5) == 0
    F[:] = np.nan
    before = beta.copy()
    assert qp.coordinate_steps[real](K, np.ones(n, real), F, beta, lower, upper, *work, 1e-3, 50) == 0
    assert np.array_equal(beta, before)
    F[7], beta[7] = 3.0, 0.5 * (lower[7] + upper[7])
    assert extremes(F.astype(np.float64), beta, lower, upper) == (3.0, 3.0)
