"""``svmkit train``: data in, model out, and a report of how good it is."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import click

from svmkit.cli import files, train_init
from svmkit.cli.options import (
    CONTEXT,
    config_options,
    json_option,
    quiet_option,
    refuse_lambda_with_C,
    refuse_options_of_no_map,
    refuse_patience_alone,
    stack,
    taken_from,
    threads_option,
    zero_or_one,
)
from svmkit.cli.report import ReportOptions
from svmkit.cli.train_batch import train_batch
from svmkit.cli.train_folds import cross_validate
from svmkit.cli.train_pool import PoolOptions, pool_options, train_pool
from svmkit.cli.train_stream import StreamOptions, stream_options, train_stream
from svmkit.config import TrainConfig
from svmkit.errors import UsageError

EPILOG = """\b
Files:
  DATA    LIBSVM text, plain or compressed; - reads standard input, all of it unless it is a --stream
  MODEL   LIBSVM's model text, which svm-predict reads; - writes standard output
          (default: DATA's base name + .model, in the current directory)

\b
Exit codes:
  0 done, 1 bad data or trouble at run time, 2 wrong usage,
  3 stopped before the tolerance and --strict was given,
  130 / 143 / 129 / 152 stopped by Ctrl-C / SIGTERM / SIGHUP / SIGXCPU: the model so far is saved

\b
Examples:
  svmkit train -c 5 -g 0.5 data
  svmkit train -c 10 -w1 1 -w-2 5 --json data data.model > report.json
  zcat data.gz | svmkit train --lambda 1e-4 --holdout 0.2 - data.model
  generate | svmkit train --solver lasvm -g 0.5 --snapshot-seconds 60 - data.model
  svmkit train --solver lasvm -g 0.5 --pool unlabelled --oracle - --max-labels 100 few data.model
"""


def list_solvers(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Prints every solver with its paper and knobs, and ends."""
    if not value or ctx.resilient_parsing:
        return
    from svmkit import solvers

    for name in solvers.NAMES:
        solver = solvers.solver(name)
        click.echo(f"{name}: {solver.SUMMARY}\n    {solver.PAPER}")
        for knob in dataclasses.fields(solver.Options):
            about = knob.metadata.get("help", "")
            click.echo(f"    -O {knob.name}={knob.default}" + (f"  {about}" if about else ""))
    ctx.exit()


@click.command(
    "train", help="Train a support vector machine on DATA and write it to MODEL.", context_settings=CONTEXT, epilog=EPILOG
)
@click.argument("data", metavar="DATA")
@click.argument("model", metavar="[MODEL]", required=False)
@config_options
@stack(
    click.option("-n", "--nu", type=float, metavar="X", help="nu of svm types 1, 2 and 4, which this version does not train."),
    click.option("-p", "--epsilon", type=float, metavar="X", help="Tube of svm type 3, which this version does not train."),
    click.option(
        "-b",
        "--probability",
        type=zero_or_one,
        metavar="0|1",
        default=False,
        show_default="0",
        help="Fit probabilities; 1 is not available in this version.",
    ),
    click.option("--class-weight", "balance", type=click.Choice(["balanced"]), help="Weigh each class by n/(k·its examples)."),
    click.option(
        "-v",
        "--folds",
        type=int,
        metavar="N",
        help="Cross-validate in N folds, svm-train's own with --seed 0; accuracy on stdout, no model. They share --time-limit.",
    ),
    click.option("--holdout", metavar="FILE|FRACTION", help="Report the error on FILE, or on a random FRACTION set aside."),
    click.option(
        "--init",
        metavar="FILE",
        help="Go on from this model, ours or svm-train's, with DATA as new examples; its kernel is taken where none is given.",
    ),
    click.option("--trace", metavar="FILE", help="Write the course of training, a JSON object a line."),
    stream_options,
    pool_options,
    threads_option,
    json_option,
    quiet_option,
    click.option("--strict", is_flag=True, help="Exit with 3 if training stopped before the tolerance was met."),
    click.option(
        "--list-solvers",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=list_solvers,
        help="List the solvers and their options, and end.",
    ),
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    data: str,
    model: str | None,
    nu: float | None,
    epsilon: float | None,
    probability: bool,
    balance: str | None,
    folds: int | None,
    init: str | None,
    **settings: Any,
) -> int:
    asked, pool = taken_from(settings, StreamOptions), taken_from(settings, PoolOptions)
    reported = taken_from(settings, ReportOptions)
    holdout, trace = reported.holdout, reported.trace
    config = TrainConfig(**settings)
    config.check()
    refuse_lambda_with_C(ctx)
    refuse_options_of_no_map(ctx, config.map)
    asks = pool.wanted()
    streams = asked.wanted(data, config.solver, asks)
    if probability:
        raise UsageError("-b 1: fitting probabilities is not available in this version; models that have them can be used")
    if (streams or asks) and any(given is not None for given in (folds, config.patience, balance)):
        why = "" if asks or asked.stream else f"; {config.solver} learns standard input as a stream unless told --no-stream"
        raise UsageError(f"a stream or a pool is not all there: there are no -v, --patience and --class-weight{why}")
    if asks and init is not None:
        raise UsageError("--init: a pool is begun with examples, not with a model: give those it was trained on as DATA")
    if folds is not None:
        if any(given is not None for given in (model, holdout, init, trace, config.patience)):
            raise UsageError("-v only cross-validates: it takes no MODEL, --holdout, --init, --patience or --trace")
        return cross_validate(data, config, folds, reported, balance=balance)
    refuse_patience_alone(config, holdout)
    model = _model_path(data, model)
    files.refuse_shared_input(DATA=data, init=init, holdout=holdout, pool=pool.pool, oracle=pool.oracle)
    files.refuse_shared_output(MODEL=model, trace=trace, as_json=reported.as_json)
    held_out_file = None if holdout is None or files.fraction(holdout) is not None else holdout
    read = data, held_out_file, pool.pool, pool.oracle
    files.check_output(model, *read)  # it may be that of --init
    if init is not None:
        train_init.check(holdout, config.solver, streams)
    if trace is not None:
        files.check_output(trace, model, *read, init)
    if asks:
        return train_pool(data, model, config, pool, asked.labels, reported)
    given = train_init.kernel_options(ctx)
    if streams:
        return train_stream(data, model, config, asked, reported, init=init, given=given)
    return train_batch(data, model, config, reported, balance=balance, init=init, given=given)


def _model_path(data: str, model: str | None) -> str:
    """Where the model goes."""
    if model is not None:
        return model
    if data == "-":
        raise UsageError("DATA is standard input: name the MODEL file (or - for standard output)")
    return os.path.basename(os.path.normpath(data)) + ".model"
