"""``svmkit predict``: what a model says of new data, a line an example."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from svmkit.cli import files
from svmkit.cli.options import CONTEXT, quiet_option, threads_option
from svmkit.cli.progress import Reporter
from svmkit.cli.report import class_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from svmkit.data import Floats, Rows
    from svmkit.io.outputs import Output
    from svmkit.model import Model
    from svmkit.score import Score

EPILOG = """\b
OUTPUT, a line an example, in the order of DATA:
  label     the label, as svm-predict writes it (regression: the value); no header
  decision  the decision values, blank-separated, no header: one for two classes
            (positive: the first label of the model), one a machine else
  all       label, decision values and, where there are such, class probabilities,
            tab-separated under a header: label, A_vs_B (positive: A; B may be the
            rest), p_A

Numbers read back exactly. The accuracy on DATA's labels goes to standard error.
DATA may be - (standard input), and larger than memory: it is read part by part. OUTPUT
is standard output unless named.
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
    files.refuse_shared_input(DATA=data, MODEL=model)
    from svmkit.io.chunks import read_parts
    from svmkit.io.model_libsvm import read_model
    from svmkit.io.outputs import atomic_output
    from svmkit.score import Score

    with Reporter(quiet) as reporter:
        files.begin(threads, reporter)
        found, score = read_model(model), Score()
        parts = read_parts(data, precomputed=found.kernel.name == "precomputed", on_warning=reporter.warn)
        with atomic_output(output) as out:
            for part in parts:
                what = f"answers to examples {score.n + 1:,} to {score.n + part.dataset.n:,}"
                truth = part.dataset.y if found.is_regression else part.dataset.classes
                for labels, lines in _answers(found, part.dataset.rows, kind, partial(reporter.during, what)):
                    _write_lines([_header(found)] if kind == "all" and score.n == 0 else [], out)
                    _write_lines(lines, out)
                    score.add(truth[: len(labels)], labels)
                    truth = truth[len(labels) :]
        reporter.note(_told(found, score))


def _answers(
    model: Model, rows: Rows, kind: str, doing: Callable[[Callable[[], Any]], Any]
) -> Iterator[tuple[Floats, Iterable[str]]]:
    """The labels of some rows at a time, and the lines that are asked for: of many classes decision values take far more room
    than the data. ``doing`` calls what takes long.
    """
    from svmkit.model import answers, decisions_by_part, predict

    if kind == "label":
        labels = doing(lambda: answers(model, rows))
        yield labels, _label_lines(model, labels)
        return
    parts = decisions_by_part(model, rows)
    while (decisions := doing(lambda: next(parts, None))) is not None:
        labels = predict(model, decisions)
        yield labels, _number_lines(decisions, " ") if kind == "decision" else _all_lines(model, labels, decisions)


def _write_lines(lines: Iterable[str], out: Output) -> None:
    out.write("".join(f"{line}\n" for line in lines).encode("ascii"))


def _label_lines(model: Model, labels: Floats) -> Iterable[str]:
    if model.labels is None:
        return (f"{value:.17g}" for value in labels.tolist())
    return map(str, labels.astype("int64").tolist())


def _number_lines(table: Floats, separator: str) -> Iterable[str]:
    """Shortest texts that read back as the same doubles."""
    from svmkit.io.numbers_out import shortest
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


def _told(model: Model, score: Score) -> str:
    """How the labels of the data compare."""
    if model.is_regression:
        return f"mean squared error {score.mean_squared_error:g} over {score.n:,} examples"
    return f"accuracy {100 * score.right / max(1, score.n):g} % ({score.right:,} of {score.n:,})"
