"""JSON that any parser takes; what is counted, in words."""

from __future__ import annotations

import numpy as np
from shell import strict_json

from svmkit.cli.report import counted, to_json


def test_numpy_and_nan_become_plain_json() -> None:
    report = {
        "a": np.float64(1.5),
        "b": np.nan,
        "c": np.array([[1, 2]]),
        "d": (np.int64(3), -np.inf),
        "e": {"f": None},
        "g": "é",
    }
    text = to_json(report)
    assert "\n" not in text
    assert strict_json(text) == {"a": 1.5, "b": None, "c": [[1, 2]], "d": [3, None], "e": {"f": None}, "g": "é"}


def test_one_of_a_thing_is_not_told_as_several() -> None:
    assert [counted(n, "label") for n in (0, 1, 1000)] == ["0 labels", "1 label", "1,000 labels"]
