"""``svmkit approx --model``: a trained model on fewer basis vectors, and what that changed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from svmkit.cli import files
from svmkit.cli.progress import Reporter
from svmkit.cli.report import counted, to_json
from svmkit.config import TrainConfig

if TYPE_CHECKING:
    from svmkit.data import Dataset, Rows
    from svmkit.model import Model

#: Each predict time is the best of so many, of those that begin within so many seconds.
_TIMES, _TIMES_S = 3, 0.5


def run(model: str, basis: int, output: str, data: str | None, config: TrainConfig, as_json: bool, quiet: bool) -> None:
    """Reads MODEL, writes it on ``basis`` vectors to ``output`` and says what changed; see compress.py."""
    files.refuse_shared_output(OUTPUT=output, as_json=as_json)
    files.refuse_shared_input(model=model, data=data)
    files.check_output(output, model, data)
    from svmkit.compress import STEPS, change, compress
    from svmkit.io.model_libsvm import model_text, read_model
    from svmkit.metrics import mean_squared_error
    from svmkit.model import answers

    with Reporter(quiet) as reporter:
        files.begin(config.threads, reporter)
        big = read_model(model)
        dataset = None if data is None else files.read_data(data, reporter)
        rows = big.rows if dataset is None else dataset.rows

        def step(number: int, left: float) -> None:
            reporter.show(lambda elapsed: f"{elapsed:.1f} s, step {number} of {STEPS}, {max(0.0, left):.3%} of ‖f‖² left")

        small = compress(big, basis, config.seed, None if dataset is None else dataset.rows, on_step=step)
        texts = [model_text(one) for one in (big, small)]
        files.write(output, texts[1])
        changed = change(big, small, rows)
        report: dict[str, Any] = {
            "basis_vectors": [big.n_support, small.n_support],
            "bytes": [len(text) for text in texts],
            "predict_seconds": [_predict_seconds(one, rows) for one in (big, small)],
            "rows": rows.n,
            "largest_change": changed.largest,
            "mean_change": changed.mean,
            "flipped_labels": changed.flipped,
        }
        if dataset is not None and big.labels is not None:
            report["errors"] = [_errors(one, dataset) for one in (big, small)]
        elif dataset is not None and changed.flipped is None:
            report["mse"] = [mean_squared_error(dataset.y, answers(one, dataset.rows)) for one in (big, small)]
        if as_json:
            click.echo(to_json(report))
        else:
            for line in _lines(report, "the support vectors" if dataset is None else "DATA"):
                reporter.note(line)


def _predict_seconds(model: Model, rows: Rows) -> float:
    from svmkit.model import answers

    best, first = float("inf"), time.perf_counter()
    for _ in range(_TIMES):
        began = time.perf_counter()
        answers(model, rows)
        best = min(best, time.perf_counter() - began)
        if time.perf_counter() - first > _TIMES_S:
            break
    return best


def _errors(model: Model, dataset: Dataset) -> int:
    from svmkit.model import answers

    return int((answers(model, dataset.rows) != dataset.classes).sum())


def _lines(report: dict[str, Any], where: str) -> list[str]:
    (k0, k1), (b0, b1), (s0, s1), n = report["basis_vectors"], report["bytes"], report["predict_seconds"], report["rows"]
    lines = [
        f"{k0:,} → {counted(k1, 'basis vector')}, {b0:,} → {b1:,} bytes, predict {s0:.3g} s → {s1:.3g} s",
        f"on the {counted(n, 'row')} of {where}: decision values change by {report['largest_change']:.3g} at most and "
        f"{report['mean_change']:.3g} in the mean",
    ]
    if report["flipped_labels"] is not None:
        flipped = report["flipped_labels"]
        lines[-1] += f"; {flipped:,} {'label flips' if flipped == 1 else 'labels flip'}"
    if "errors" in report:
        before, after = report["errors"]
        lines.append(f"labels wrong there: {before:,} → {after:,} of {n:,}")
    if "mse" in report:
        before, after = report["mse"]
        lines.append(f"mean squared error there: {before:.6g} → {after:.6g}")
    return lines
