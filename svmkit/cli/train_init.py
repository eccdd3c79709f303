"""``--init``: the model that training goes on from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from svmkit.cli import files
from svmkit.cli.options import is_given
from svmkit.cli.progress import Reporter
from svmkit.config import TrainConfig
from svmkit.errors import UsageError

if TYPE_CHECKING:
    from svmkit.data import Dataset
    from svmkit.model import Model
    from svmkit.warm import Warm

_KERNEL_FIELDS = ("kernel", "degree", "gamma", "coef0")


def check(holdout: str | None, solver: str, on_a_stream: bool) -> None:
    """Raises UsageError where a start cannot go with the examples held out or the solver: before anything is read, or said."""
    from svmkit.warm import check_solver

    check_solver(solver, on_a_stream)
    if holdout is not None and files.fraction(holdout) is not None:
        raise UsageError("--init: the model may know examples of a --holdout fraction; hold out a file of its own")


def kernel_options(ctx: click.Context) -> set[str]:
    """The fields of the kernel that the command line gives."""
    return {name for name in _KERNEL_FIELDS if is_given(ctx, name)}


def go_on(init: str, dataset: Dataset, config: TrainConfig, *, given: set[str], reporter: Reporter) -> tuple[TrainConfig, Warm]:
    """The config with the model's kernel where none is ``given``, and the data joined with the model's support vectors."""
    from svmkit.warm import join

    model, config = read(init, config, given)
    warm = join(dataset, model)
    if told := _told_of_labels(dataset, model):
        reporter.warn(told)
    reporter.note(_told(warm))
    return config, warm


def read(init: str, config: TrainConfig, given: set[str]) -> tuple[Model, TrainConfig]:
    """The model, and the config with its kernel where none is ``given``."""
    from svmkit.io.model_libsvm import read_model

    model = read_model(init)
    kernel = {"kernel": model.kernel.name, **{name: getattr(model.kernel, name) for name in _KERNEL_FIELDS[1:]}}
    if "kernel" not in given:
        config = replace(config, **{name: value for name, value in kernel.items() if name not in given})
    return model, config


def _told_of_labels(dataset: Dataset, model: Model) -> str:
    """Where both have labels that the other lacks, which may be other names for the same classes; else ""."""
    assert model.labels is not None
    ours, theirs = set(dataset.learned_classes.astype(int).tolist()), set(model.labels.tolist())
    if ours <= theirs or theirs <= ours:
        return ""
    new, old = (", ".join(map(str, sorted(labels))) for labels in (ours - theirs, theirs - ours))
    return (
        f"the data have labels that the model does not know ({new}), the model some that they lack ({old}): all are classes now"
    )


def _told(warm: Warm) -> str:
    """Which of the model's support vectors are among the data, and what that means for the result."""
    n, added = warm.model.n_support, warm.n_added
    if added == 0:
        return f"all support vectors of the model ({n:,}) are among the data"
    return (
        f"{added:,} of the model's {n:,} support vectors are not among the data and are added to them; the result is exact for "
        "old and new data together only if the old data's other examples need not come back: to be sure, train on both"
    )
