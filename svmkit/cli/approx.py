"""``svmkit approx``: features that approximate a kernel, made of data; how well they do; a trained model made smaller.

One mode a file: ``approx_map`` writes mapped data, ``approx_report`` measures, ``approx_model`` makes a model smaller.
"""

from __future__ import annotations

from typing import Any

import click

from svmkit.cli.options import (
    CONTEXT,
    json_option,
    kernel_options,
    map_options,
    quiet_option,
    refuse_given,
    refuse_options_of_no_map,
    seed_option,
    stack,
    threads_option,
)
from svmkit.config import TrainConfig
from svmkit.errors import UsageError

EPILOG = """\b
Modes:
  --map or --load   write DATA to OUTPUT with mapped features in place of its own, for
                    LIBLINEAR or any tool that reads LIBSVM text; - is a standard
                    stream. --save keeps the map, --load maps other data by it.
  --report          error of the kernel matrix on a sample of DATA's rows, for every map
                    and number of features: |K - FF'| / |K|, spectral and Frobenius norm
  --model           write the model on --basis vectors to the one file named: chosen support
                    vectors or, with the rbf kernel, dense ones moved to where they serve
                    best (not of text, where they would make the model far larger).
                    Coefficients are those nearest in the kernel's feature space; with --data
                    those of least squares on the decision values there, which is nearer
                    where data lie (labels only serve the report)

Mapped values are rounded to single precision, and written so that they read back as that.

\b
Examples:
  svmkit approx --map fourier --dim 1024 -g 0.5 --save map.json train train.rff
  svmkit approx --load map.json test test.rff
  svmkit approx --report -g 0.5 --picture errors.png train
  svmkit approx --model big.model --basis 100 --data train small.model
"""


_KERNEL = {"kernel", "degree", "gamma", "coef0"}
_MAP = {"map", "dim", "landmarks", "cut", "orthogonal"}


def _dims(text: str) -> tuple[int, ...]:
    try:
        dims = tuple(int(word) for word in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of whole numbers") from None
    for dim in dims:
        if not 1 <= dim <= 2**20:
            raise click.BadParameter(f"{dim} must lie in 1 … 2^20")
    return dims


@click.command(
    "approx",
    help="Approximate a kernel by explicit features of DATA, or a trained model by a smaller one.",
    context_settings=CONTEXT,
    epilog=EPILOG,
)
@click.argument("data", metavar="DATA", required=False)
@click.argument("output", metavar="[OUTPUT]", required=False)
@stack(
    *map_options,
    *kernel_options,
    seed_option,
    click.option("--save", metavar="FILE", help="Write the map to FILE."),
    click.option("--load", metavar="FILE", help="Use the map in FILE; it brings its kernel and numbers along."),
    click.option("--report", is_flag=True, help="Measure how well maps approximate the kernel; a table on stdout."),
    click.option(
        "--dims",
        type=_dims,
        metavar="N,N…",
        default="16,32,64,128,256,512,1024",
        show_default=True,
        help="Numbers of features of the --report.",
    ),
    click.option("--sample", type=click.IntRange(min=1), metavar="N", default=1000, show_default=True, help="Its rows."),
    click.option("--picture", metavar="FILE", help="Draw the --report as PNG (needs the plot extra)."),
    click.option("--model", metavar="FILE", help="Make the model in FILE smaller; svm-train's, too."),
    click.option("--basis", type=click.IntRange(min=1), metavar="N", help="At most so many basis vectors for --model."),
    click.option("--data", "judge", metavar="FILE", help="Rows that --model is fitted to and measured on."),
    threads_option,
    json_option,
    quiet_option,
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    data: str | None,
    output: str | None,
    save: str | None,
    load: str | None,
    report: bool,
    dims: tuple[int, ...],
    sample: int,
    picture: str | None,
    model: str | None,
    basis: int | None,
    judge: str | None,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    config = TrainConfig(**settings)
    config.check()
    modes = {
        "--map": config.map is not None and not report,
        "--load": load is not None,
        "--report": report,
        "--model": model is not None,
    }
    chosen = [name for name, given in modes.items() if given]
    if len(chosen) != 1:
        raise UsageError(f"give --map, --load, --report or --model{', and one of them' if chosen else ''}")
    for name, given, fits in (
        ("--save", save, ["--map"]),
        ("--picture", picture, ["--report"]),
        ("--json", as_json or None, ["--report", "--model"]),
        ("--basis", basis, ["--model"]),
        ("--data", judge, ["--model"]),
    ):
        if given is not None and chosen[0] not in fits:
            raise UsageError(f"{name} goes with {' or '.join(fits)}")
    if data is None:
        raise UsageError("--model: name the file to write" if model else "name the DATA to map, - for standard input")
    if not report:
        refuse_given(ctx, {"dims", "sample"}, "goes with --report")
    if model is not None:
        if basis is None:
            raise UsageError("--model: say how many vectors the model may keep, --basis N")
        if output is not None:
            raise UsageError(f"--model writes one file, and two are named: {data} and {output}; rows to fit go to --data FILE")
        refuse_given(ctx, _KERNEL | _MAP, "beside --model: the model has its own kernel and no map")
        from svmkit.cli import approx_model

        approx_model.run(model, basis, data, judge, config, as_json, quiet)
        return
    if config.kernel == "precomputed":
        raise UsageError("-t 4: a precomputed kernel has no vectors to map")
    if config.map is not None:
        from svmkit import maps

        maps.check(config.map, config.kernel)
    if report:
        if output is not None:
            raise UsageError("--report writes no OUTPUT; its picture goes to --picture FILE")
        refuse_given(ctx, {"dim", "landmarks", "orthogonal"}, "beside --report: it measures every kind, with numbers --dims")
        if config.map is not None:
            refuse_options_of_no_map(ctx, config.map)
        from svmkit.cli import approx_report

        approx_report.run(data, config, dims, sample, picture, as_json, quiet)
        return
    from svmkit.cli import approx_map

    if load is not None:
        refuse_given(ctx, _KERNEL | _MAP | {"seed"}, "beside --load: the map in the file has its own")
    else:
        refuse_options_of_no_map(ctx, config.map)
    approx_map.run(data, output or "-", config, save, load, quiet)
