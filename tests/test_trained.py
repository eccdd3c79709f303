"""A machine that was trained by itself: what is kept of it, and its result made anew."""

from __future__ import annotations

import pytest
from golden_data import dataset_of
from numpy.testing import assert_array_equal

from svmkit.config import TrainConfig
from svmkit.fit import fit
from svmkit.pairs import Pair
from svmkit.solvers.base import SolverResult
from svmkit.trained import Trained

#: Data, config, and whether all support vectors are training rows.
CASES = {
    "rows": ("three", TrainConfig(gamma=0.5, solver="pair"), True),
    "against the rest": ("three", TrainConfig(gamma=0.5, solver="sdca", multiclass="ovr"), True),
    "a matrix": ("gram-three", TrainConfig(kernel="precomputed", solver="lasvm"), True),
    "w and its dual point": ("three", TrainConfig(kernel="linear", solver="sdca"), False),
}


@pytest.mark.parametrize("case", CASES)
def test_results_are_made_anew_from_the_training_rows(case: str) -> None:
    name, config, of_training_rows = CASES[case]
    seen: list[tuple[Pair, SolverResult]] = []
    fitted = fit(dataset_of(name), config, on_machines=lambda count, each: seen.extend(each()))
    assert len(fitted.trained) == len(seen) == 3
    for part, (_, heard), found in zip(fitted.trained, seen, fitted.machines, strict=True):
        assert isinstance(part, Trained)
        assert (part.kept.solution.basis.n == 0) == of_training_rows
        expected, made = heard.solution, found.solution
        assert expected.n_support > 0
        assert made.responses is None
        for one, other in zip(expected.basis, made.basis, strict=True):
            assert_array_equal(one, other)
        for field in ("origin", "coef", "rho", "alpha"):
            assert_array_equal(getattr(expected, field), getattr(made, field))
        assert (heard.status, heard.certificate, heard.steps) == (found.status, found.certificate, found.steps)
