"""The numbers that C's ``rand()`` gives on Linux when nobody seeds it, on every platform: svm-train draws its folds from them.

glibc's generator adds: r_i = r_{i−3} + r_{i−31} mod 2³², from 31 values of a multiplicative generator, and gives r_i / 2 after
dropping the first 310.
"""

from __future__ import annotations

from collections.abc import Callable

RAND_MAX = 2**31 - 1


def glibc_rand(seed: int = 1) -> Callable[[], int]:
    """A function that returns the next number, 0 … RAND_MAX, at each call; ``seed``, 1 … RAND_MAX − 1, is C's ``srand``."""
    state = [seed]
    while len(state) < 31:
        state.append(16807 * state[-1] % RAND_MAX)
    at = 3  # the first sum is r_34 = r_31 + r_3, where r_31 … r_33 repeat r_0 … r_2

    def rand() -> int:
        nonlocal at
        drawn = state[at] = (state[at] + state[at - 3]) & 0xFFFFFFFF
        at = (at + 1) % 31
        return drawn >> 1

    for _ in range(310):
        rand()
    return rand
