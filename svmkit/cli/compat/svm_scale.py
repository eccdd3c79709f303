"""svm-scale by its own name: features and labels brought into a range, the ranges kept in a file or taken from one."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from svmkit.cli.compat.argv import Arguments, Usage, atof
from svmkit.cli.compat.tool import announce_compiling, check_input, check_one_reader, check_output, run_tool, warn
from svmkit.errors import DataError, SvmkitError

if TYPE_CHECKING:
    from svmkit.data import Dataset, Floats
    from svmkit.io.chunks import Parse
    from svmkit.io.sparse_text import Text
    from svmkit.io.texts import Texts
    from svmkit.scaling import Scaling, Survey

USAGE = """\
Usage: svm-scale [options] data_filename > scaled_filename
Brings every feature of a LIBSVM file into one range; the result goes to standard output.
options:
-l lower : where the smallest value of a feature goes (default -1)
-u upper : where the largest value of a feature goes (default +1)
-y lower upper : scale the labels too, to this range (default: labels stay)
-s filename : save the ranges that were found, to scale other data alike
-r filename : scale by the ranges saved there instead of the data's own
"""


@dataclass
class Call:
    """What the arguments ask for."""

    lower: float = -1.0
    upper: float = 1.0
    label_limits: tuple[float, float] | None = None
    save: str | None = None
    restore: str | None = None
    data: str = ""


def main(argv: list[str] | None = None) -> int:
    """svm-scale with the arguments ``argv``; returns its exit code, 0 or 1. Without ``argv`` it ends the process."""
    return run_tool("svm-scale", USAGE, lambda args: _scale(parse(args)), argv)


def parse(argv: list[str]) -> Call:
    """The call. Raises Usage, or SvmkitError for limits that cannot be."""
    call, arguments = Call(), Arguments(argv)
    while (option := arguments.next_option()) is not None:
        value = arguments.value()
        match option[:1]:
            case "l":
                call.lower = atof(value)
            case "u":
                call.upper = atof(value)
            case "y":
                call.label_limits = atof(value), atof(arguments.value())
            case "s":
                call.save = value
            case "r":
                call.restore = value
            case _:
                raise Usage("unknown option")
    if not call.upper > call.lower or (call.label_limits and not call.label_limits[1] > call.label_limits[0]):
        raise SvmkitError("inconsistent lower/upper specification")
    for limit in (call.lower, call.upper, *(call.label_limits or ())):
        if not math.isfinite(limit):
            raise SvmkitError(f"ERROR: the limit {limit} is not a finite number")
    if call.save == "-":
        raise SvmkitError("cannot save ranges to standard output (-s -): the scaled data go there")
    if call.restore is not None and call.save is not None:
        raise SvmkitError("cannot use -r and -s simultaneously")
    if len(arguments.rest) != 1:
        raise Usage
    call.data = arguments.rest[0]
    return call


def _scale(call: Call) -> None:
    check_one_reader(call.data, call.restore)
    check_input(call.data, f"can't open file {call.data}")
    if call.restore is not None:
        check_input(call.restore, f"can't open file {call.restore}")
    if call.save is not None:
        check_output(call.save, f"can't open file {call.save}", call.data)
    announce_compiling("svm-scale")
    from svmkit.cli.scaled_text import ScaledText, Words
    from svmkit.io.chunks import passes_over
    from svmkit.io.libsvm_data import line_heads, texts_of
    from svmkit.io.numbers_out import significant
    from svmkit.scaling import count_nonzeros, scaled, survey

    passes = passes_over(call.data, _parser(call.data), may_be_empty=True)
    found = survey(passes(), call.lower, call.upper, call.label_limits)
    if found.scaling.known[0]:
        warn("WARNING: minimal feature index is 0, but indices should start from 1")
    scaling = _scaling(call, found)

    def heads(dataset: Dataset, first: int, last: int) -> list[str]:
        words: list[str] = (line_heads(dataset, first, last, lambda y: texts_of(y, "{:.17g}".format)) + " ").tolist()
        return words

    def six_digits(values: Floats) -> Texts:
        return significant(values, 6).without_zeros(values)

    text, after = ScaledText(scaling, Words(heads, "{}:".format, six_digits, " ")), 0
    for part in passes():
        dataset = scaled(scaling, part)
        for lines in text.lines(dataset):
            sys.stdout.buffer.write(lines)
        after += count_nonzeros(dataset.rows, scaling)
    sys.stdout.flush()
    if after > found.n_values:
        warn(
            f"WARNING: original #nonzeros {found.n_values}",
            f"       > new      #nonzeros {after}",
            "If feature values are non-negative and sparse, use -l 0 rather than the default -l -1",
        )


def _parser(path: str) -> Parse:
    """What makes examples of a part of the file: by svm-train's rules or, where these refuse it, of what makes numbers."""
    from svmkit.cli.compat.lenient_data import parse_lenient
    from svmkit.io.chunks import once
    from svmkit.io.libsvm_data import parse_dataset

    tell_left_out, tell_refused = once(warn), once(warn)

    def parse(text: Text, first_line: int) -> Dataset:
        try:
            return parse_dataset(text, path, first_line=first_line, on_warning=lambda what: tell_left_out(f"WARNING: {what}"))
        except DataError as error:
            dataset = parse_lenient(text.tobytes().decode("latin-1"), path, first_line)
            tell_refused(
                f"WARNING: svm-train would refuse this file, of which only what makes numbers is scaled: {error.detail}"
            )
            return dataset

    return parse


def _scaling(call: Call, found: Survey) -> Scaling:
    """The scaling that the call asks for; written where it is to be saved."""
    from svmkit.io.scale_file import write_ranges
    from svmkit.scaling import label_warning

    if call.restore is not None:
        restored = _restored(call.restore, call.data, found.scaling)
        if (what := label_warning(restored, found.y)) is not None:
            warn(f"WARNING: {call.restore}: {what}")
        return restored
    if call.save is not None:
        if found.scaling.known[0]:
            warn(f"WARNING: scaling factors with indices smaller than 1 are not stored to the file {call.save}.")
        write_ranges(call.save, found.scaling)
    return found.scaling


def _restored(path: str, data: str, own: Scaling) -> Scaling:
    """The scaling saved in ``path``; the data's ``own`` serves for labels and index 0 where the file has nothing of them."""
    from svmkit.io.scale_file import read_ranges

    saved = read_ranges(path).covering(own.index)
    own = own.covering(saved.index)
    if not saved.known[0]:
        saved.minimum[0], saved.maximum[0] = own.minimum[0], own.maximum[0]
    unseen = ~saved.known & (own.minimum != own.maximum)
    for index in own.index[1:][unseen[1:]].tolist():
        warn(
            f"WARNING: feature index {index} appeared in file {data} was not seen in the scaling factor file {path}. "
            "The feature is scaled to 0."
        )
    return saved if saved.labels is not None else replace(saved, labels=own.labels)
