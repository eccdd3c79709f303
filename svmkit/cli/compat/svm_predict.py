"""svm-predict by its own name: a model's answers for a test file, a line each, and how many are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from svmkit.cli.compat.argv import Arguments, Usage, atoi
from svmkit.cli.compat.tool import announce_compiling, check_input, check_one_reader, check_output, inform, run_tool, warn
from svmkit.errors import ModelError

if TYPE_CHECKING:
    from svmkit.data import Chunk, Floats, Rows
    from svmkit.model import Model
    from svmkit.score import Score

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
    from svmkit.io.outputs import atomic_output
    from svmkit.score import Score

    model, score = _read_model(call.model), Score()
    tell: Callable[[str], None] = (lambda line: None) if call.quiet else (lambda line: inform(line + "\n"))
    _note_probabilities(model, call.probability, tell)
    parts, with_chances = _parts(call.test, model), call.probability and not model.is_regression
    with atomic_output(call.output) as out:
        if with_chances:
            out.write(f"labels {_class_names(model)}\n".encode("ascii"))
        for part in parts:
            rows = part.dataset.rows
            lines, found = _with_chances(model, rows, tell) if with_chances else _answers(model, rows)
            out.write("".join(lines).encode("ascii"))
            score.add(part.dataset.y, found)
    for line in _score_lines(score, regression=model.is_regression):
        tell(line)


def _read_model(path: str) -> Model:
    from svmkit.io.model_libsvm import read_model

    try:
        return read_model(path)
    except ModelError as error:
        raise ModelError(*error.args, f"can't open model file {path}") from None


def _parts(path: str, model: Model) -> Iterator[Chunk]:
    """The test file's examples, part by part; there may be none."""
    from svmkit.io.chunks import read_parts

    is_precomputed = model.kernel.name == "precomputed"
    return read_parts(path, precomputed=is_precomputed, may_be_empty=True, on_warning=lambda what: warn(f"WARNING: {what}"))


def _note_probabilities(model: Model, wanted: bool, tell: Callable[[str], None]) -> None:
    """Says what there is to say of probabilities beforehand. Raises ModelError if they are wanted and not there."""
    from svmkit.calibrate import laplace_width, supports_probability

    there = supports_probability(model)
    if wanted and not there:
        raise ModelError("Model does not support probabiliy estimates")  # the word as svm-predict has always spelt it
    if there and not wanted:
        tell("Model supports probability estimates, but disabled in prediction.")
    if wanted and model.is_regression:
        tell("Prob. model for test data: target value = predicted value + z,")
        tell(f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={laplace_width(model):g}")


def _class_names(model: Model) -> str:
    return "normal outlier" if model.labels is None else " ".join(map(str, model.labels.tolist()))


def _answers(model: Model, rows: Rows) -> tuple[list[str], Floats]:
    """Lines of output, and what they say: the label or value that the model gives each example."""
    from svmkit.io.libsvm_data import texts_of
    from svmkit.model import answers

    found = answers(model, rows)
    return texts_of(found, "{:.17g}\n".format).tolist(), found


def _with_chances(model: Model, rows: Rows, tell: Callable[[str], None]) -> tuple[list[str], Floats]:
    """Lines of the most probable label and all probabilities, and these labels."""
    import numpy as np

    from svmkit.calibrate import most_probable, probabilities
    from svmkit.model import decisions_by_part

    lines, labels = [], []
    for decisions in decisions_by_part(model, rows):
        chances = probabilities(model, decisions, on_warning=tell)
        labels.append(most_probable(model, decisions, chances))
        form = "%g" + " %g" * chances.shape[1] + "\n"
        lines += [form % row for row in zip(labels[-1].tolist(), *chances.T.tolist(), strict=True)]
    return lines, np.concatenate(labels)


def _score_lines(score: Score, *, regression: bool) -> list[str]:
    """What svm-predict says of answers beside the labels in the file. 0/0 shows as C prints it."""
    if not regression:
        share = f"{score.right / score.n * 100:g}" if score.n else "-nan"
        return [f"Accuracy = {share}% ({score.right}/{score.n}) (classification)"]
    return [
        f"Mean squared error = {_printed(score.mean_squared_error)} (regression)",
        f"Squared correlation coefficient = {_printed(score.squared_correlation)} (regression)",
    ]


def _printed(value: float) -> str:
    return "-nan" if value != value else f"{value:g}"
