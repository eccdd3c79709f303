"""A machine that was trained by itself: what is kept of it."""

from __future__ import annotations

import pytest
from golden_data import dataset_of

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
def test_no_copies_of_training_rows_are_kept(case: str) -> None:
    name, config, of_training_rows = CASES[case]
    seen: list[tuple[Pair, SolverResult]] = []
    fitted = fit(dataset_of(name), config, on_machines=lambda count, each: seen.extend(each()))
    assert len(fitted.trained) == len(seen) == 3
    for part, (_, heard), found in zip(fitted.trained, seen, fitted.machines, strict=True):
        assert isinstance(part, Trained)
        assert part.result is heard is found
        assert found.solution.n_support > 0
        assert found.solution.responses is None
        assert found.solution.own.n == (0 if of_training_rows else found.solution.n_support)
