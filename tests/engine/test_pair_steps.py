"""Steps of the pair solver, where tests/solvers/test_pair.py does not come to the limit of a condition."""

from __future__ import annotations

import numpy as np
from zoo import problem

from svmkit.problem import LINEAR, Kernel
from svmkit.solvers import pair


def test_the_warning_comes_where_fewer_than_half_of_the_active_variables_are_free() -> None:
    """The text is svm-train's (3.24). At the second star half are free, 3 of 6: too many for another warning."""
    rng = np.random.default_rng(25)
    X, y = rng.integers(-8, 9, (12, 2)) / 8, np.where(rng.random(12) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    state = pair.start(problem(X, y, Kernel(LINEAR), 64.0), pair.Options(), 2.0**-10, 0)
    progress = pair.advance(state, 10**6)
    assert (progress.done, progress.steps) == (True, 299)
    assert progress.said == ".....\nWARNING: using -h 0 may be faster\n*........*............*"
