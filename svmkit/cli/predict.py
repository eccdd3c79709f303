"""``svmkit predict``: what a model says of new data, a line an example."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import click

from svmkit.cli import files
from svmkit.cli.options import CONTEXT, quiet_option, threads_option
from svmkit.cli.progress import Reporter
from svmkit.cli.report import class_labels

if TYPE_CHECKING:
    from collections.abc import Iterable

    from svmkit.data import Dataset, Floats
    from svmkit.io.files import Output
    from svmkit.model import Model

EPILOG = """\b
OUTPUT, a line an example, in the order of DATA:
  label     the label, as svm-predict writes it (regression: the value); no header
  decision  the decision values, blank-separated, no header: one for two classes
            (positive: the first label of the model), one a machine else
  all       label, decision values and, where there are such, class probabilities,
            tab-separated under a header: label, A_vs_B (positive: A; B may be the
            rest), p_A

Numbers read back exactly. The accuracy on DATA's labels goes to standard error.
DATA may be - (standard input), OUTPUT is standard output unless named.
"""


@click.command("predict", help="Write what MODEL says of the examples of DATA.", context_settings=CONTEXT, epilog=EPILOG)
@click.argument("data", metavar="DATA")
@click.argument("model", metavar="MODEL")
@click.argument("output", metavar="[OUTPUT]", default="-")
@click.option(
    "--output",
    "kind",
    type=click.Choice(["label", "decision", "all"]),
    default="label",
    show_default=True,
    help="What to write; see below.",
)
@threads_option
@quiet_option
def command(data: str, model: str, output: str, kind: str, threads: int, quiet: bool) -> None:
    files.check_output(output, data, model)
    from svmkit.io.files import atomic_output

    with Reporter(quiet) as reporter:
        files.begin(threads, reporter)
        machine, dataset = files.read_model_and_data(model, data, reporter)
        with atomic_output(output) as out:
            if kind == "label":
                labels = _write_labels(machine, dataset, out, reporter)
            else:
                labels = _write_decisions(machine, dataset, kind, out, reporter)
        if not quiet:
            reporter.note(_score(machine, dataset, labels))


def _write_labels(model: Model, dataset: Dataset, out: Output, reporter: Reporter) -> Floats:
    from svmkit.model import answers

    labels = reporter.during(_doing(dataset), lambda: answers(model, dataset.rows))
    _write_lines(_label_lines(model, labels), out)
    return labels


def _write_decisions(model: Model, dataset: Dataset, kind: str, out: Output, reporter: Reporter) -> Floats:
    """Some rows at a time: of many classes decision values take far more room than the data."""
    import numpy as np

    from svmkit.model import decisions_by_part, predict

    parts, labels = decisions_by_part(model, dataset.rows), []  # refuses what cannot be before anything is written
    if kind == "all":
        _write_lines([_header(model)], out)
    while (decisions := reporter.during(_doing(dataset), lambda: next(parts, None))) is not None:
        labels.append(predict(model, decisions))
        of_rows = _number_lines(decisions, " ") if kind == "decision" else _all_lines(model, labels[-1], decisions)
        _write_lines(of_rows, out)
    return np.concatenate(labels)


def _doing(dataset: Dataset) -> str:
    return f"answers to {dataset.n:,} examples"


def _write_lines(lines: Iterable[str], out: Output) -> None:
    out.write("".join(f"{line}\n" for line in lines).encode("ascii"))


def _label_lines(model: Model, labels: Floats) -> Iterable[str]:
    if model.labels is None:
        return (f"{value:.17g}" for value in labels.tolist())
    return map(str, labels.astype("int64").tolist())


def _number_lines(table: Floats, separator: str) -> Iterable[str]:
    """Shortest texts that read back as the same doubles."""
    from svmkit.io.doubles import shortest
    from svmkit.io.texts import by_rows

    if not table.shape[1]:
        return [""] * len(table)
    characters, ends = by_rows(shortest(table.ravel()), table.shape[1], separator)
    text, last = characters.tobytes().decode("ascii"), ends.tolist()
    return (text[a : b - len(separator)] for a, b in pairwise([0, *last]))


def _header(model: Model) -> str:
    from svmkit.calibrate import supports_probability

    if model.labels is None:
        return "label\tdecision"
    names = [f"{positive}_vs_{negative}" for positive, negative in class_labels(model)]
    if supports_probability(model):
        names += [f"p_{label}" for label in model.labels.tolist()]
    return "\t".join(["label", *names])


def _all_lines(model: Model, labels: Floats, decisions: Floats) -> Iterable[str]:
    from svmkit.calibrate import probabilities, supports_probability

    columns = [_label_lines(model, labels)]
    if decisions.shape[1]:  # a model of one class has no machines
        columns.append(_number_lines(decisions, "\t"))
    if model.labels is not None and supports_probability(model):
        columns.append(_number_lines(probabilities(model, decisions), "\t"))
    return map("\t".join, zip(*columns, strict=True))


def _score(model: Model, dataset: Dataset, labels: Floats) -> str:
    """How the labels of the data compare."""
    from svmkit import metrics

    if model.svm_type in ("epsilon_svr", "nu_svr"):
        return f"mean squared error {metrics.mean_squared_error(dataset.y, labels):g} over {dataset.n:,} examples"
    right = int((labels == dataset.classes).sum())
    return f"accuracy {100 * right / max(1, dataset.n):g} % ({right:,} of {dataset.n:,})"
