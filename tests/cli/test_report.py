"""JSON that any parser takes."""

from __future__ import annotations

import numpy as np
from shell import strict_json

from svmkit.cli.report import to_json


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
