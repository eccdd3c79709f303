"""``svmkit eval``: how good a model is on labelled data and, on its training data, how far from optimal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from svmkit.cli import files
from svmkit.cli.options import (
    CONTEXT,
    bias_option,
    config_option,
    json_option,
    no_bias_option,
    quiet_option,
    refuse_given,
    refuse_lambda_with_C,
    threads_option,
    weight_option,
)
from svmkit.cli.progress import Reporter
from svmkit.cli.report import certificate, class_labels, to_json
from svmkit.config import TrainConfig

if TYPE_CHECKING:
    from collections.abc import Iterable

    from svmkit.data import Dataset, Floats, Rows
    from svmkit.model import Model

EPILOG = """\b
Keys of --json:
  n, accuracy, error     error is 1 - accuracy
  labels, confusion      confusion[i][j]: examples of labels[i] called labels[j]
  other                  other[j]: examples of labels that the model lacks, likewise
  auc                    mean over the machines; null if a class is missing
  mse, squared_correlation             regression, in place of all but n
  primal, dual, gap, violation, machines   with --certificate: sums (violation:
                         the largest), then each machine

\b
DATA may be larger than memory, which it is read into part by part, but for --certificate.
A model file holds neither C nor class weights: --certificate needs the -c and -w
(and --bias) that the model was trained with, and DATA must be its training data.
"""


@click.command("eval", help="Score MODEL on the labelled examples of DATA.", context_settings=CONTEXT, epilog=EPILOG)
@click.argument("data", metavar="DATA")
@click.argument("model", metavar="MODEL")
@click.option("--certificate", "certified", is_flag=True, help="Primal, dual, gap and violation; DATA is the training set.")
@config_option("C", "-c", "--C", type=float, metavar="X", help="The C it was trained with.")
@config_option("lam", "--lambda", type=float, metavar="X", help="The λ it was trained with, in place of -c.")
@weight_option
@bias_option
@no_bias_option
@threads_option
@json_option
@quiet_option
@click.pass_context
def command(
    ctx: click.Context, /, *, data: str, model: str, certified: bool, threads: int, as_json: bool, quiet: bool, **settings: Any
) -> None:
    config = TrainConfig(threads=threads, **settings)
    config.check()
    refuse_lambda_with_C(ctx)
    if not certified:
        refuse_given(ctx, {"C", "lam", "class_weight", "bias"}, "goes with --certificate")
    files.refuse_shared_input(DATA=data, MODEL=model)
    from svmkit.io.chunks import read_parts
    from svmkit.io.model_libsvm import read_model

    with Reporter(quiet) as reporter:
        files.begin(threads, reporter)
        found = read_model(model)
        is_precomputed = found.kernel.name == "precomputed"
        if certified:  # of all examples together
            dataset = files.read_data(data, reporter, precomputed=is_precomputed, training=True)
            report = _scores(found, [dataset], reporter)
            report |= reporter.during("the certificate", lambda: _certified(found, dataset, config, reporter))
        else:
            parts = read_parts(data, precomputed=is_precomputed, on_warning=reporter.warn)
            report = _scores(found, (part.dataset for part in parts), reporter)
    click.echo(to_json(report) if as_json else _table(report))


def _scores(model: Model, parts: Iterable[Dataset], reporter: Reporter) -> dict[str, Any]:
    """How the model's answers compare with the labels, of classes cut to integers, as training does."""
    import numpy as np

    from svmkit import metrics

    truths: list[Floats] = []
    found: list[tuple[Floats, Floats]] = []
    for part in parts:
        truth, what = part.y if model.is_regression else part.classes, f"answers to {part.n:,} examples more"
        truths.append(truth)
        found.append(reporter.during(what, partial(_answers, model, part.rows, truth)))
    truth = np.concatenate(truths)
    answers, decisions = (np.concatenate(each) for each in zip(*found, strict=True))
    if model.is_regression:
        return {
            "n": len(truth),
            "mse": metrics.mean_squared_error(truth, answers),
            "squared_correlation": metrics.squared_correlation(truth, answers),
        }
    own = np.array([1, -1]) if model.labels is None else model.labels
    counts = metrics.confusion(truth, answers, own)
    return {
        "n": len(truth),
        "accuracy": metrics.accuracy(truth, answers),
        "error": metrics.error(truth, answers),
        "labels": own,
        "confusion": counts[:-1],
        "other": counts[-1],
        "auc": _auc(model, truth, decisions),
    }


def _answers(model: Model, rows: Rows, truth: Floats) -> tuple[Floats, Floats]:
    """What the model answers to each example, and the decision values that ``_auc`` is of: of pairs of classes k an example."""
    import numpy as np

    from svmkit.metrics import own_decisions
    from svmkit.model import decisions_by_part, predict

    answers, kept, first = [], [], 0
    for part in decisions_by_part(model, rows):
        answers.append(predict(model, part))
        if model.labels is not None and model.multiclass == "ovo":
            part = own_decisions(truth[first : first + len(part)], model.labels, part)
        kept.append(part)
        first += len(part)
    return np.concatenate(answers), np.concatenate(kept)


def _auc(model: Model, truth: Floats, decisions: Floats) -> float:
    """Area under the ROC curve; with more than two classes the mean over the machines; one-class: 1 against the rest."""
    from svmkit import metrics

    if model.labels is None:
        return metrics.auc(truth == 1, decisions[:, 0])
    of_all = metrics.rest_auc if model.multiclass == "ovr" else metrics.pairwise_auc
    return of_all(truth, model.labels, decisions)


def _certified(model: Model, dataset: Dataset, config: TrainConfig, reporter: Reporter) -> dict[str, Any]:
    """The certificate of the model as an answer to the training problem that ``config`` and the data state."""
    from svmkit.certificate import total
    from svmkit.recertify import certificates

    found = certificates(model, dataset, config, reporter.warn)
    return {
        **certificate(total(found)),
        "machines": [
            {"classes": classes, **certificate(each)} for classes, each in zip(class_labels(model), found, strict=True)
        ],
    }


def _table(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = [f"{'examples':<20} {report['n']:,}"]
    for key in ("accuracy", "error"):
        if key in report:
            lines.append(f"{key:<20} {100 * report[key]:.4g} %")
    for key in ("auc", "mse", "squared_correlation", "primal", "dual", "gap", "violation"):
        if key in report:
            lines.append(f"{key.replace('_', ' '):<20} {report[key]:.8g}")
    if "confusion" in report:
        names, counts = list(map(str, report["labels"])), report["confusion"].tolist()
        rows = list(zip(names, counts, strict=True))
        if report["other"].any():
            rows.append(("other", report["other"].tolist()))
        width = max(len(str(cell)) for name, row in rows for cell in [name, *row])
        lines += ["", "true label, and how many were called", " ".join(f"{name:>{width}}" for name in ["", *names])]
        for name, row in rows:
            lines.append(" ".join(f"{cell:>{width}}" for cell in [name, *row]))
    return "\n".join(lines)
