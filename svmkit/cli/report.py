"""What a command says when it is done: a dictionary that becomes one JSON object for machines, a line for people."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from svmkit.certificate import Certificate
    from svmkit.cli.interrupt import Interrupts
    from svmkit.cli.progress import Reporter
    from svmkit.data import Dataset, Ints
    from svmkit.fit import FitResult
    from svmkit.model import Model
    from svmkit.solvers.base import SolverResult
    from svmkit.trace import Status

#: How long the held-out error is still waited for once a signal has come.
_PATIENCE_S = 1.0
#: Statuses of a training that ran to its own end, in words.
_ENDS = {"CONVERGED": "converged", "COMPLETED": "completed"}


@dataclass(frozen=True)
class ReportOptions:
    """What the command line says of how a training is reported: by whose error, to which file, and how."""

    holdout: str | None
    trace: str | None
    as_json: bool
    quiet: bool
    strict: bool


def tell(values: dict[str, Any], line: str, *, complete: bool, as_json: bool, reporter: Reporter) -> None:
    """The end of a training: ``values`` on standard output if asked for; the line, a warning where it is not complete."""
    if as_json:
        click.echo(to_json(values))
    if complete:
        reporter.note(line)
    else:
        reporter.warn(line)


def exit_code(status: Status, lost: list[str], stop: Interrupts, *, strict: bool, reporter: Reporter) -> int:
    """Warns of what was ``lost`` of a training's trace, and returns the exit code.

    That is the signal's where one came, 1 for a lost trace, 3 where training with ``strict`` did not run to its own end.
    """
    for text in lost:
        reporter.warn(text)
    if stop.interrupted():
        return stop.exit_code
    if lost:
        return 1
    return 3 if strict and not complete(status) else 0


def warn_of_missing(labels: Ints, reporter: Reporter) -> None:
    """Warns of the ``labels`` that were named, and that no example had of those learned."""
    for label in labels.tolist():
        reporter.warn(f"no example that was learned had the label {label}: nothing tells its class from the others")


def complete(status: Status) -> bool:
    """Whether training ran to its own end."""
    return status.value in _ENDS


def ended(status: Status) -> str:
    """How training ended, in a word or two."""
    return _ENDS.get(status.value, f"stopped ({status.value})")


def held_out(values: dict[str, Any], error: float, n: int) -> str:
    """Adds the error on ``n`` held-out examples to ``values``; the same in words, to go on with the line."""
    values |= {"holdout_error": error, "holdout_n": n}
    if math.isnan(error):
        return "; no held-out error (it would have taken long)"
    return f"; held-out error {100 * error:.4g} % of {n:,}"


def error_on(model: Model, data: Dataset, stop: Interrupts, reporter: Reporter) -> float:
    """The share of ``data`` that the model, a classifier, answers wrongly; labels are cut to integers, as training does.

    nan where a signal has come and that takes long.
    """
    from svmkit.metrics import error
    from svmkit.model import answers
    from svmkit.parallel import unless

    def given_up() -> bool:
        reporter.doing(f"the error on {data.n:,} held-out examples")
        return stop.interrupted()

    found = unless(given_up, lambda: error(data.classes, answers(model, data.rows)), _PATIENCE_S)
    return math.nan if found is None else found


def to_json(report: dict[str, Any]) -> str:
    """``report`` as strict JSON on one line: NumPy numbers and arrays as plain ones, what is not finite as null."""
    return json.dumps(_plain(report), allow_nan=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def training(result: FitResult, model_path: str) -> dict[str, Any]:
    """All of a training: sums over its machines (violation: the largest), then the machines one by one."""
    return {
        "status": result.status.value,
        "seconds": result.seconds,
        "iterations": result.steps,
        "kernel_evaluations": result.kernel_evaluations,
        "n_support": result.model.n_support,
        **certificate(result.certificate),
        "model": model_path,
        "machines": [
            {"classes": classes, **_machine(found)}
            for classes, found in zip(class_labels(result.model), result.each(), strict=True)
        ],
    }


def _machine(found: SolverResult) -> dict[str, Any]:
    return {
        "status": found.status.value,
        "seconds": found.seconds,
        "iterations": found.steps,
        "kernel_evaluations": found.kernel_evaluations,
        "n_support": found.solution.n_support,
        **certificate(found.certificate),
    }


def certificate(found: Certificate) -> dict[str, float]:
    """The certificate's four numbers by name."""
    return {"primal": found.primal, "dual": found.dual, "gap": found.gap, "violation": found.violation}


def class_labels(model: Model) -> list[list[int | str]]:
    """The labels (positive, negative) that each machine of a classification model tells apart; the negative may be "rest"."""
    if model.labels is None:
        return []
    labels = model.labels.tolist()
    return [[labels[i], labels[j] if j >= 0 else "rest"] for i, j in model.pairs]


def training_line(result: FitResult, written: str) -> str:
    """The training in one line for people."""
    found = result.certificate
    kernel = result.model.kernel
    may_be_indefinite = math.isfinite(found.primal) and (kernel.indefinite or kernel.name == "precomputed")
    why = "the kernel is not positive semidefinite" if may_be_indefinite else "kernel values overflow"
    if math.isnan(found.primal) and result.status.value == "INTERRUPTED":
        why = "it would have taken long"
    gap = f"gap {found.gap:.3g}" if math.isfinite(found.gap) else f"no gap ({why})"
    return (
        f"{ended(result.status)} in {result.seconds:.3g} s: {counted(result.steps, 'iteration')}, "
        f"{counted(result.model.n_support, 'support vector')}, "
        f"{gap}, violation {found.violation:.3g}; {written}"
    )


def counted(number: int, what: str) -> str:
    """That many of them, in words: 1 iteration, 1,000 iterations."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
