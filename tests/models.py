"""Models by their machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from svmkit.data import Rows
from svmkit.model import Machine, Model, with_machines
from svmkit.problem import Kernel


def model_of(svm_type: str, kernel: Kernel, rows: Rows, machines: Sequence[Machine], **rest: Any) -> Model:
    """The model of these machines over ``rows``."""
    return with_machines(Model(svm_type, kernel, rows, np.empty((0, 0)), np.empty(0), **rest), machines)
