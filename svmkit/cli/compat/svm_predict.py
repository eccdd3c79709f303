"""svm-predict by its own name: a model's answers for a test file, a line each, and how many are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from svmkit.cli.compat.argv import Arguments, Usage, atoi
from svmkit.cli.compat.tool import announce_compiling, check_input, check_one_reader, check_output, inform, run_tool, warn
from svmkit.errors import ModelError

if TYPE_CHECKING:
    from svmkit.data import Dataset, Floats
    from svmkit.model import Model

USAGE = """\
Usage: svm-predict [options] test_file model_file output_file
Writes to output_file what the model says of every line of test_file; the share that is right goes to standard output.
options:
-b 0|1 : write probabilities as well, if the model was trained for them (default 0)
-q : quiet, nothing on standard output
"""


@dataclass
class Call:
    """What the arguments ask for."""

    probability: bool = False
    quiet: bool = False
    test: str = ""
    model: str = ""
    output: str = ""


def main(argv: list[str] | None = None) -> int:
    """svm-predict with the arguments ``argv``; returns its exit code, 0 or 1. Without ``argv`` it ends the process."""
    return run_tool("svm-predict", USAGE, lambda args: _predict(parse(args)), argv)


def parse(argv: list[str]) -> Call:
    """The call. Raises Usage."""
    call, arguments = Call(), Arguments(argv)
    while (option := arguments.next_option()) is not None:
        match option[:1]:
            case "b":
                call.probability = atoi(arguments.value()) != 0
            case "q":
                call.quiet = True
            case letter:
                raise Usage(f"Unknown option: -{letter}")
    if len(arguments.rest) < 3:
        raise Usage
    call.test, call.model, call.output = arguments.rest[:3]
    call.quiet |= call.output == "-"  # there the answers are written, and nothing else
    return call


def _predict(call: Call) -> None:
    check_one_reader(call.test, call.model)
    check_input(call.test, f"can't open input file {call.test}")
    check_output(call.output, f"can't open output file {call.output}", call.test, call.model)
    check_input(call.model, f"can't open model file {call.model}")
    announce_compiling("svm-predict")
    from svmkit.io.files import atomic_output

    model = _read_model(call.model)
    tell: Callable[[str], None] = (lambda line: None) if call.quiet else (lambda line: inform(line + "\n"))
    _note_probabilities(model, call.probability, tell)
    dataset = _read_data(call.test, model)
    lines, answers = _answers(model, dataset, call.probability, tell)
    with atomic_output(call.output) as out:
        out.write("".join(lines).encode("ascii"))
    for line in score_lines(model.svm_type, dataset.y, answers):
        tell(line)


def _read_model(path: str) -> Model:
    from svmkit.io.model_libsvm import read_model

    try:
        return read_model(path)
    except ModelError as error:
        raise ModelError(*error.args, f"can't open model file {path}") from None


def _read_data(path: str, model: Model) -> Dataset:
    """The test file's examples; there may be none."""
    import numpy as np

    from svmkit.data import NO_ROWS, Dataset
    from svmkit.io.files import map_bytes
    from svmkit.io.libsvm_data import parse_dataset

    text = map_bytes(path)
    if not len(text):
        return Dataset(NO_ROWS, np.empty(0))
    return parse_dataset(
        text,
        path,
        precomputed=model.kernel.name == "precomputed",
        on_warning=lambda message: warn(f"WARNING: {message}"),
    )


def _note_probabilities(model: Model, wanted: bool, tell: Callable[[str], None]) -> None:
    """Says what there is to say of probabilities beforehand. Raises ModelError if they are wanted and not there."""
    from svmkit.calibrate import laplace_width, supports_probability

    there = supports_probability(model)
    if wanted and not there:
        raise ModelError("Model does not support probabiliy estimates")  # the word as svm-predict has always spelt it
    if there and not wanted:
        tell("Model supports probability estimates, but disabled in prediction.")
    if wanted and model.svm_type in ("epsilon_svr", "nu_svr"):
        tell("Prob. model for test data: target value = predicted value + z,")
        tell(f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={laplace_width(model):g}")


def _answers(model: Model, dataset: Dataset, probability: bool, tell: Callable[[str], None]) -> tuple[list[str], Floats]:
    """The output file's lines, and the label or value that the model gives each example."""
    import numpy as np

    from svmkit.calibrate import most_probable, probabilities
    from svmkit.io.libsvm_data import texts_of
    from svmkit.model import answers, decisions_by_part

    if not probability or model.svm_type in ("epsilon_svr", "nu_svr"):
        found = answers(model, dataset.rows)
        return texts_of(found, "{:.17g}\n".format).tolist(), found
    names = "normal outlier" if model.labels is None else " ".join(map(str, model.labels.tolist()))
    lines, labels = [f"labels {names}\n"], []
    for decisions in decisions_by_part(model, dataset.rows):
        chances = probabilities(model, decisions, on_warning=tell)
        labels.append(most_probable(model, decisions, chances))
        form = "%g" + " %g" * chances.shape[1] + "\n"
        lines += [form % row for row in zip(labels[-1].tolist(), *chances.T.tolist(), strict=True)]
    return lines, np.concatenate(labels)


def score_lines(svm_type: str, truth: Floats, answers: Floats) -> list[str]:
    """What svm-predict says of answers beside the labels in the file. 0/0 shows as C prints it."""
    n = len(truth)
    if svm_type not in ("epsilon_svr", "nu_svr"):
        right = int((answers == truth).sum())
        share = f"{right / n * 100:g}" if n else "-nan"
        return [f"Accuracy = {share}% ({right}/{n}) (classification)"]
    from svmkit.metrics import mean_squared_error

    return [
        f"Mean squared error = {_printed(mean_squared_error(truth, answers))} (regression)",
        f"Squared correlation coefficient = {_printed(_squared_correlation(truth, answers))} (regression)",
    ]


def _squared_correlation(truth: Floats, answers: Floats) -> float:
    """From raw sums, each in the file's order: where one side is constant, what LIBSVM prints is the rounding of these."""
    import numpy as np

    def total(values: Floats) -> np.float64:
        return np.add.accumulate(values)[-1] if len(values) else np.float64(0.0)

    n, p, t = len(truth), answers, truth
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        cross = n * total(p * t) - total(p) * total(t)
        spread = (n * total(p * p) - total(p) * total(p)) * (n * total(t * t) - total(t) * total(t))
        return float(cross * cross / spread)


def _printed(value: float) -> str:
    return "-nan" if value != value else f"{value:g}"
