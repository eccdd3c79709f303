"""Every setting of a training is checked, and the check names the option that sets it."""

from __future__ import annotations

from dataclasses import fields
from math import inf, nan
from typing import Any

import pytest

from svmkit.config import KERNELS, LANDMARKS, MAPS, TrainConfig
from svmkit.errors import UsageError

#: Settings that cannot be, by the option that is to be named; and the nearest that can.
BOUNDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("-s", {"svm_type": "C_SVC"}, {"svm_type": "nu_svr"}),
    ("-t", {"kernel": "poly"}, {"kernel": "precomputed"}),
    ("-d", {"kernel": "polynomial", "degree": -1}, {"kernel": "polynomial", "degree": 0}),
    ("-d", {"kernel": "polynomial", "degree": 2**31}, {"kernel": "polynomial", "degree": 2**31 - 1}),
    ("-g", {"gamma": -1e-300}, {"gamma": 0.0}),
    ("-g", {"gamma": inf}, {"gamma": 1e300}),
    ("-r", {"coef0": nan}, {"coef0": -1e300}),
    ("-c", {"C": 0.0}, {"C": 1e-100}),
    ("-c", {"C": 9e-101}, {"C": 1e-100}),
    ("-c", {"C": 2e100}, {"C": 1e100}),
    ("-c", {"C": inf}, {"C": 1e100}),
    ("--lambda", {"lam": 0.0}, {"lam": 1e-100}),
    ("--lambda", {"lam": 2e100}, {"lam": 1e100}),
    ("--lambda", {"lam": nan}, {"lam": None}),
    ("-e", {"eps": 0.0}, {"eps": 1e-300}),
    ("-e", {"eps": inf}, {"eps": 1e300}),
    ("-m", {"cache_mb": 0.0}, {"cache_mb": 1e-3}),
    ("-m", {"cache_mb": 1.1e12}, {"cache_mb": 1e12}),
    ("-w5", {"class_weight": ((4, 1.0), (5, 0.0))}, {"class_weight": ((4, 1.0), (5, 1e-3))}),
    ("-w-1", {"class_weight": ((-1, inf),)}, {"class_weight": ((-1, 1e300),)}),
    ("--bias", {"bias": "some"}, {"bias": "none"}),
    ("--multiclass", {"multiclass": "all"}, {"multiclass": "ovr"}),
    ("--map", {"map": "Fourier"}, {"map": "fourier"}),
    ("--dim", {"dim": 0}, {"dim": 1}),
    ("--dim", {"dim": 2**20 + 1}, {"dim": 2**20}),
    ("--landmarks", {"landmarks": "all"}, {"landmarks": "reduced"}),
    ("--cut", {"cut": -0.1}, {"cut": 0.0}),
    ("--cut", {"cut": 1.0}, {"cut": 0.999}),
    ("--constant", {"map": "nystroem", "constant": -1.0}, {"map": "nystroem", "constant": 0.0}),
    ("--constant", {"map": "nystroem", "constant": 1.1e15}, {"map": "nystroem", "constant": 1e15}),
    ("--constant", {"constant": 1.0}, {"constant": 0.0}),
    ("--certificate-of", {"certificate_of": "both"}, {"certificate_of": "kernel"}),
    ("--max-iter", {"max_iter": 0}, {"max_iter": 1}),
    ("--budget-evals", {"max_evaluations": 0}, {"max_evaluations": 1}),
    ("--time-limit", {"time_limit_s": 0.0}, {"time_limit_s": 1e-9}),
    ("--patience", {"patience": 0}, {"patience": 1}),
    ("--seed", {"seed": -1}, {"seed": 0}),
    ("--seed", {"seed": 2**63}, {"seed": 2**63 - 1}),
    ("-j", {"threads": -1}, {"threads": 0}),
]
#: What any value does for, a flag, or is for others to check: the solver knows its name and its knobs.
FREE = {"shrinking", "orthogonal", "solver", "solver_options"}


@pytest.mark.parametrize(("option", "bad", "good"), BOUNDS, ids=lambda value: str(value))
def test_a_setting_that_cannot_be_is_refused_by_its_option(option: str, bad: dict[str, Any], good: dict[str, Any]) -> None:
    TrainConfig(**good).check()
    with pytest.raises(UsageError) as refused:
        TrainConfig(**bad).check()
    assert str(refused.value).startswith(f"{option}: ")


def test_every_setting_has_a_bound_or_needs_none() -> None:
    bounded = {name for _, bad, _ in BOUNDS for name in bad}
    assert bounded | FREE == {field.name for field in fields(TrainConfig)}
    assert not bounded & FREE


@pytest.mark.parametrize("kernel", KERNELS)
def test_numbers_that_a_kernel_does_not_use_are_not_looked_at(kernel: str) -> None:
    """But for those that are no numbers at all."""
    config = TrainConfig(kernel=kernel, gamma=-1.0, degree=-1)
    if kernel in ("linear", "precomputed"):
        config.check()
    else:
        with pytest.raises(UsageError, match=r"^-g: "):
            config.check()


def test_every_name_that_can_be_given_is_taken() -> None:
    for name in MAPS:
        TrainConfig(map=name).check()
    for name in LANDMARKS:
        TrainConfig(landmarks=name).check()
