"""Draws by counter: against a plain Philox, its published vectors, and what draws must do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from svmkit.engine import rng

MASK = 0xFFFFFFFF


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> list[int]:
    """Philox 4×32-10 in Python's whole numbers."""
    x, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(p1 >> 32) ^ x[1] ^ k[0], p1 & MASK, (p0 >> 32) ^ x[3] ^ k[1], p0 & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return x


def test_the_oracle_gives_the_published_vectors() -> None:
    assert philox((0, 0, 0, 0), (0, 0)) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox((MASK,) * 4, (MASK,) * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize("seed", [0, 1, 2**33 + 7, 2**63 - 1])
@pytest.mark.parametrize("stream", [0, 3, 2**40])
def test_uniforms_are_philox_in_53_bits(seed: int, stream: int) -> None:
    first = 2**32 - 3  # crosses into the counter's second word
    drawn = rng.uniforms(seed, stream, first, 6)
    for i, value in enumerate(drawn):
        t = first + i
        low, high, *_ = philox((t & MASK, t >> 32, stream & MASK, stream >> 32), (seed & MASK, seed >> 32))
        assert value == ((low | high << 32) >> 11) * 2.0**-53


def test_draws_depend_on_their_number_alone() -> None:
    whole = rng.normals(5, 2, 0, 100)
    assert np.array_equal(whole[40:60], rng.normals(5, 2, 40, 20))
    assert np.array_equal(rng.integers(5, 2, 7, 10, 50), rng.integers(5, 2, 0, 17, 50)[7:])


def test_moments() -> None:
    """Means of 10⁵ draws lie within five standard errors."""
    n = 100_000
    u, z, k = rng.uniforms(1, 0, 0, n), rng.normals(1, 1, 0, n), rng.integers(1, 2, 0, n, 10)
    assert abs(u.mean() - 0.5) < 5 * (1 / 12 / n) ** 0.5
    assert abs(z.mean()) < 5 / n**0.5
    assert abs((z**2).mean() - 1) < 5 * (2 / n) ** 0.5
    assert (np.abs(np.bincount(k, minlength=10) - n / 10) < 5 * (n * 0.09) ** 0.5).all()
    assert k.min() == 0
    assert k.max() == 9


def test_normal_deviates_are_those_of_box_and_muller() -> None:
    """By the C library's logarithm and cosine, to rounding; and both by themselves where they are cut into cases."""
    u, z = rng.uniforms(3, 1, 0, 2000).reshape(-1, 2), rng.normals(3, 1, 0, 1000)
    expected = [math.sqrt(-2 * math.log(1 - a)) * math.cos(2 * math.pi * b) for a, b in u.tolist()]
    np.testing.assert_allclose(z, expected, rtol=1e-13, atol=1e-15)
    for x in (1.0, 1 - 2.0**-53, 0.7, 0.69999, 0.5, 0.35, 1e-5, 2.0**-53):
        assert math.isclose(rng._log.function(x), math.log(x), rel_tol=5e-16, abs_tol=0.0)
    for v in (0.0, 2.0**-53, 0.1, 0.125, 0.13, 0.25, 0.3, 0.375, 0.4, 0.5, 0.6, 0.75, 0.9, 1 - 2.0**-53):
        assert abs(rng._cos_of_turn.function(v) - math.cos(2 * math.pi * v)) < 4e-16


def test_permutations() -> None:
    order = rng.permutation(3, 1, 1000)
    assert np.array_equal(np.sort(order), np.arange(1000))
    assert np.array_equal(order, rng.permutation(3, 1, 1000))
    assert not np.array_equal(order, rng.permutation(3, 2, 1000))
    assert not np.array_equal(order, rng.permutation(4, 1, 1000))
    firsts = [rng.permutation(0, stream, 4)[0] for stream in range(4000)]
    assert (np.abs(np.bincount(firsts, minlength=4) - 1000) < 5 * 750**0.5).all()
    assert len(rng.permutation(0, 0, 0)) == 0


def test_permutations_are_even_over_all_orders() -> None:
    """All 24 orders of four values as often, to five standard errors."""
    codes = [int(rng.permutation(1, stream, 4) @ [64, 16, 4, 1]) for stream in range(24_000)]
    counts = np.unique(codes, return_counts=True)[1]
    assert len(counts) == 24
    assert (np.abs(counts - 1000) < 5 * 1000**0.5).all()
