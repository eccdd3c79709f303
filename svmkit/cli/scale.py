"""``svmkit scale``: every feature into one range, and the same again for other data."""

from __future__ import annotations

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
    from collections.abc import Iterable

    from svmkit.data import Dataset, Floats
    from svmkit.io.texts import Texts
    from svmkit.scaling import Scaling, Survey

EPILOG = """\b
DATA may be - (standard input), OUTPUT is standard output unless named. A file is read
twice, part by part, and may be larger than memory; what a pipe gives is kept. Values are
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
    files.check_output(output, data, restore)
    if save is not None:
        files.check_output(save, data, output)
    from svmkit.io.chunks import once, passes_over
    from svmkit.io.libsvm_data import parse_dataset
    from svmkit.io.scale_file import read_ranges, write_ranges
    from svmkit.scaling import survey

    with Reporter(quiet) as reporter:
        files.begin(threads, reporter)
        scaling, tell = None if restore is None else read_ranges(restore), once(reporter.warn)
        passes = passes_over(data, lambda text, line: parse_dataset(text, data, first_line=line, on_warning=tell))
        found = survey(passes(), lower, upper, labels)
        if scaling is None:
            scaling = found.scaling
        else:
            _warn_of_strangers(found, scaling, restore or "", reporter)
            scaling = scaling.covering(found.scaling.index)
        before, after = found.n_values, _write(output, passes(), scaling, reporter)
        if save is not None:  # of data that could not be scaled there are no ranges to go by
            write_ranges(save, scaling)
        if after > before:
            reporter.warn(f"{before:,} values became {after:,}, since 0 is no longer 0; --lower 0 keeps sparse data sparse")


def _refuse_lost(output: str, dataset: Dataset, scaling: Scaling) -> None:
    """Raises OutputError where a number of the scaled data set is not finite."""
    import numpy as np

    from svmkit.scaling import unscalable

    lost = unscalable(dataset.rows, scaling)
    if len(lost) or not np.isfinite(dataset.y).all():
        what = f"values of feature {lost[0]}" if len(lost) else "labels"
        where = "to standard output" if output == "-" else output
        raise OutputError(f"can't write {where}: scaled {what} leave the range of doubles; nothing was overwritten")


def _write(output: str, parts: Iterable[Dataset], scaling: Scaling, reporter: Reporter) -> int:
    """Writes all parts, scaled; returns how many values they have then."""
    from svmkit.cli.scaled_text import ScaledText, Words
    from svmkit.io.libsvm_data import line_heads
    from svmkit.io.outputs import atomic_output
    from svmkit.scaling import count_nonzeros, scaled

    text = ScaledText(scaling, Words(lambda *some: line_heads(*some).tolist(), " {}:".format, _texts))
    n = n_values = 0
    with atomic_output(output) as out:
        for part in parts:
            dataset = scaled(scaling, part)
            _refuse_lost(output, dataset, scaling)
            for lines in text.lines(dataset):
                out.write(lines)
                reporter.doing(f"examples {n + 1:,} to {n + dataset.n:,} are scaled and written")
            n += dataset.n
            n_values += count_nonzeros(dataset.rows, scaling)
    return n_values


def _texts(values: Floats) -> Texts:
    """The shortest that read back as ``values``, none of 0; 0 for one too small for a normal double, which no reader takes."""
    import numpy as np

    from svmkit.io.numbers_out import shortest

    normal = np.where(np.abs(values) >= sys.float_info.min, values, np.copysign(0.0, values))
    return shortest(normal).without_zeros(values)


def _warn_of_strangers(found: Survey, scaling: Scaling, restore: str, reporter: Reporter) -> None:
    """Says which features and labels of the data the range file has no proper range for."""
    import numpy as np

    from svmkit.scaling import label_warning

    own = found.scaling
    unknown = np.setdiff1d(own.index[own.known], scaling.index[scaling.known])
    if len(unknown):
        listed = ", ".join(map(str, unknown[:10].tolist())) + (" …" if len(unknown) > 10 else "")
        reporter.warn(f"{restore} has no range for {counted(len(unknown), 'feature')}, left out: {listed}")
    if (what := label_warning(scaling, found.y)) is not None:
        reporter.warn(f"{restore}: {what}")
