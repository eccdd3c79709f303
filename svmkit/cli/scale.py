"""``svmkit scale``: every feature into one range, and the same again for other data."""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import TYPE_CHECKING

import click

from svmkit.cli import files
from svmkit.cli.options import CONTEXT, quiet_option, refuse_given, threads_option
from svmkit.cli.progress import Reporter
from svmkit.cli.report import counted
from svmkit.errors import OutputError, UsageError

if TYPE_CHECKING:
    from svmkit.data import Dataset, Floats
    from svmkit.io.texts import Texts
    from svmkit.scaling import Scaling

EPILOG = """\b
DATA may be - (standard input), OUTPUT is standard output unless named. Values are
written so that they read back exactly, and left out where they become 0; features
that never vary are left out. Range files are svm-scale's.

\b
Example:
  svmkit scale --lower 0 --save ranges train train.scaled
  svmkit scale --restore ranges test test.scaled
"""


@click.command(
    "scale", help="Bring every feature of DATA into the range from --lower to --upper.", context_settings=CONTEXT, epilog=EPILOG
)
@click.argument("data", metavar="DATA")
@click.argument("output", metavar="[OUTPUT]", default="-")
@click.option("-l", "--lower", type=float, metavar="X", default=-1.0, show_default=True, help="Where minima go.")
@click.option("-u", "--upper", type=float, metavar="X", default=1.0, show_default=True, help="Where maxima go.")
@click.option("-y", "--labels", type=(float, float), metavar="LOWER UPPER", help="Scale the labels too, for regression.")
@click.option("-s", "--save", metavar="FILE", help="Write the ranges to FILE.")
@click.option("-r", "--restore", metavar="FILE", help="Use the ranges and limits in FILE instead of DATA's.")
@threads_option
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    data: str,
    output: str,
    lower: float,
    upper: float,
    labels: tuple[float, float] | None,
    save: str | None,
    restore: str | None,
    threads: int,
    quiet: bool,
) -> None:
    if save is not None and restore is not None:
        raise UsageError("--save and --restore exclude each other: a restored scaling is saved already")
    if restore is not None:
        refuse_given(ctx, {"lower", "upper", "labels"}, "beside --restore: its file has the limits")
    for low, high in [(lower, upper), *([labels] if labels else [])]:
        if not (low < high and math.isfinite(high - low)):
            raise UsageError("the lower limit must be below the upper one, and both finite")
    files.refuse_shared_input(DATA=data, restore=restore)
    files.refuse_shared_output(OUTPUT=output, save=save)
    files.check_output(output, data, *([restore] if restore else []))
    if save is not None:
        files.check_output(save, data, output)
    from svmkit.io.scale_file import read_ranges, write_ranges
    from svmkit.scaling import count_nonzeros, occurring, scale_labels

    with Reporter(quiet) as reporter:
        files.begin(threads, reporter)
        scaling = None if restore is None else read_ranges(restore)
        dataset = files.read_data(data, reporter)
        if scaling is None:
            scaling = _measured(dataset, lower, upper, labels)
        else:
            _warn_of_strangers(dataset, scaling, restore or "", reporter)
        scaling = scaling.covering(occurring(dataset.rows))
        dataset = dataclasses.replace(dataset, rows=scaling.placed(dataset.rows), y=scale_labels(scaling, dataset.y))
        _refuse_lost(output, dataset, scaling)
        if save is not None:
            write_ranges(save, scaling)
        _write(output, dataset, scaling, reporter)
        before, after = len(dataset.rows.data), count_nonzeros(dataset.rows, scaling)
        if after > before:
            reporter.warn(f"{before:,} values became {after:,}, since 0 is no longer 0; --lower 0 keeps sparse data sparse")


def _refuse_lost(output: str, dataset: Dataset, scaling: Scaling) -> None:
    """Raises OutputError where a number, scaled, is not finite."""
    import numpy as np

    from svmkit.scaling import unscalable

    lost = unscalable(dataset.rows, scaling)
    if len(lost) or not np.isfinite(dataset.y).all():
        what = f"values of feature {lost[0]}" if len(lost) else "labels"
        where = "to standard output" if output == "-" else output
        raise OutputError(f"can't write {where}: scaled {what} leave the range of doubles; nothing was overwritten")


def _write(output: str, dataset: Dataset, scaling: Scaling, reporter: Reporter) -> None:
    """Writes ``dataset``, its labels scaled, its rows placed."""
    from svmkit.cli.scaled_text import Words, scaled_lines
    from svmkit.io.files import atomic_output
    from svmkit.io.libsvm_data import line_heads

    words = Words(lambda first, last: line_heads(dataset, first, last).tolist(), " {}:".format, _texts)
    with atomic_output(output) as out:
        for lines in scaled_lines(dataset.rows, scaling, words):
            out.write(lines)
            reporter.doing(f"{dataset.n:,} examples are scaled and written")


def _texts(values: Floats) -> Texts:
    """The shortest that read back as ``values``, none of 0; 0 for one too small for a normal double, which no reader takes."""
    import numpy as np

    from svmkit.io.doubles import shortest

    normal = np.where(np.abs(values) >= sys.float_info.min, values, np.copysign(0.0, values))
    return shortest(normal).without_zeros(values)


def _measured(dataset: Dataset, lower: float, upper: float, labels: tuple[float, float] | None) -> Scaling:
    from svmkit.scaling import measure, measure_labels

    scaling = measure(dataset.rows, lower, upper)
    if labels is None:
        return scaling
    return dataclasses.replace(scaling, labels=measure_labels(dataset.y, *labels))


def _warn_of_strangers(dataset: Dataset, scaling: Scaling, restore: str, reporter: Reporter) -> None:
    """Says which features and labels of the data the range file has no proper range for."""
    import numpy as np

    from svmkit.features import feature_names
    from svmkit.scaling import beside_the_point

    unknown = np.setdiff1d(feature_names(dataset.rows), scaling.index[scaling.known])
    if len(unknown):
        listed = ", ".join(map(str, unknown[:10].tolist())) + (" …" if len(unknown) > 10 else "")
        reporter.warn(f"{restore} has no range for {counted(len(unknown), 'feature')}, left out: {listed}")
    if (what := beside_the_point(scaling, dataset.y)) is not None:
        reporter.warn(f"{restore}: {what}")
