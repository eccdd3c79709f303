"""``svmkit eval``: how good a model is on labelled data and, on its training data, how far from optimal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from svmkit.cli import files
from svmkit.cli.options import CONTEXT, config_option, json_option, quiet_option, threads_option, weight_option, without_bias
from svmkit.cli.progress import Reporter
from svmkit.cli.report import certificate, class_labels, to_json
from svmkit.config import TrainConfig
from svmkit.errors import UsageError

if TYPE_CHECKING:
    from svmkit.certificate import Certificate
    from svmkit.data import Dataset, Floats
    from svmkit.model import Model

EPILOG = """\b
Keys of --json:
  n, accuracy, error     error is 1 - accuracy
  labels, confusion      confusion[i][j]: examples of labels[i] called labels[j]
  auc                    two classes only, else null
  mse, squared_correlation             regression, in place of all but n
  primal, dual, gap, violation, machines   with --certificate: sums (violation:
                         the largest), then each pair of classes

\b
A model file holds neither C nor class weights: --certificate needs the -c and -w
(and --no-bias) that the model was trained with, and DATA must be its training data.
"""


@click.command("eval", context_settings=CONTEXT, epilog=EPILOG)
@click.argument("data", metavar="DATA")
@click.argument("model", metavar="MODEL")
@click.option("--certificate", "certified", is_flag=True, help="Primal, dual, gap and violation; DATA is the training set.")
@config_option("C", "-c", "--C", type=float, metavar="X", help="The C it was trained with.")
@config_option("lam", "--lambda", type=float, metavar="X", help="The λ it was trained with, in place of -c.")
@weight_option
@without_bias
@threads_option
@json_option
@quiet_option
def command(*, data: str, model: str, certified: bool, threads: int, as_json: bool, quiet: bool, **settings: Any) -> None:
    """Score MODEL on the labelled examples of DATA."""
    config = TrainConfig(threads=threads, **settings)
    config.check()
    with Reporter(quiet) as reporter:
        files.begin(threads, reporter)
        found, dataset = files.read_model_and_data(model, data, reporter)
        if dataset.n == 0:
            raise UsageError(f"{data}: no examples to score")
        report = _scores(found, dataset)
        if certified:
            report |= _certified(found, dataset, config)
    click.echo(to_json(report) if as_json else _table(report))


def _scores(model: Model, dataset: Dataset) -> dict[str, Any]:
    """How the model's answers compare with the labels."""
    from svmkit import metrics
    from svmkit.model import decision_values, predict

    decisions = decision_values(model, dataset.rows)
    answers = predict(model, decisions)
    if model.svm_type in ("epsilon_svr", "nu_svr"):
        return {
            "n": dataset.n,
            "mse": metrics.mean_squared_error(dataset.y, answers),
            "squared_correlation": metrics.squared_correlation(dataset.y, answers),
        }
    accuracy = float((answers == dataset.y).mean())
    labels, confusion = _confusion(model, dataset.y, answers)
    return {
        "n": dataset.n,
        "accuracy": accuracy,
        "error": 1 - accuracy,
        "labels": labels,
        "confusion": confusion,
        "auc": _auc(model, dataset.y, decisions),
    }


def _confusion(model: Model, truth: Floats, answers: Floats) -> tuple[list[float], list[list[int]]]:
    """The model's labels, then those that only the data has; and counts, true labels down, answers across."""
    import numpy as np

    own = [1, -1] if model.labels is None else model.labels.tolist()
    labels = own + sorted(set(truth.tolist()) - set(own))
    place = {label: position for position, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(counts, ([place[t] for t in truth.tolist()], [place[a] for a in answers.tolist()]), 1)
    return labels, counts.tolist()


def _auc(model: Model, truth: Floats, decisions: Floats) -> float | None:
    """Area under the curve of the one decision function; None where there are more, or only one class to tell apart."""
    from svmkit import metrics

    if decisions.shape[1] != 1:
        return None
    positive = truth == (1 if model.labels is None else model.labels[0])
    if positive.all() or not positive.any():
        return None
    return float(metrics.auc(positive, decisions[:, 0]))


def _certified(model: Model, dataset: Dataset, config: TrainConfig) -> dict[str, Any]:
    """The certificate of the model as an answer to the training problem that ``config`` and the data state."""
    from svmkit.recertify import certificates

    found = certificates(model, dataset, config)
    return {
        **_sums(found),
        "machines": [
            {"classes": classes, **certificate(each)} for classes, each in zip(class_labels(model), found, strict=True)
        ],
    }


def _sums(found: list[Certificate]) -> dict[str, float]:
    return {
        "primal": sum(each.primal for each in found),
        "dual": sum(each.dual for each in found),
        "gap": sum(each.gap for each in found),
        "violation": max((each.violation for each in found), default=0.0),
    }


def _table(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = [f"{'examples':<20} {report['n']:,}"]
    for key in ("accuracy", "error"):
        if key in report:
            lines.append(f"{key:<20} {100 * report[key]:.4g} %")
    for key in ("auc", "mse", "squared_correlation", "primal", "dual", "gap", "violation"):
        if report.get(key) is not None:
            lines.append(f"{key.replace('_', ' '):<20} {report[key]:.8g}")
    if "confusion" in report:
        names = [f"{label:g}" for label in report["labels"]]
        width = max(len(text) for text in [*names, *(str(count) for row in report["confusion"] for count in row)])
        lines += ["", "true label, and how many were called", " ".join(f"{name:>{width}}" for name in ["", *names])]
        for name, row in zip(names, report["confusion"], strict=True):
            lines.append(" ".join(f"{cell:>{width}}" for cell in [name, *row]))
    return "\n".join(lines)
