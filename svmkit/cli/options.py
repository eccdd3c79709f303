"""The options that commands share: every default of training comes from ``TrainConfig``, each option is declared once.

LIBSVM's letters keep LIBSVM's meaning (``-h 0`` is shrinking, so only ``--help`` asks for help).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

from svmkit.config import BIASES, CERTIFICATES, KERNELS, LANDMARKS, MAPS, MULTICLASS, ROW_LANDMARKS, SVM_TYPES, TrainConfig
from svmkit.errors import UsageError
from svmkit.solvers import NAMES as SOLVERS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

F = TypeVar("F", bound=Callable[..., Any])
Taken = TypeVar("Taken", bound="DataclassInstance")

#: Settings of every command: only ``--help`` is help, and long lines are used.
CONTEXT = {"help_option_names": ["--help"], "max_content_width": 120}


def numbered(names: Sequence[str], **aliases: str) -> Callable[[str], str]:
    """Reads one of ``names``, given as such, by an alias or by LIBSVM's number."""

    def read(text: str) -> str:
        if text.isascii() and text.isdigit() and int(text) < len(names):
            return names[int(text)]
        name = aliases.get(text.lower(), text.lower())
        if name not in names:
            choices = ", ".join(f"{number} {name}" for number, name in enumerate(names))
            raise click.BadParameter(f"{text!r} is none of {choices}")
        return name

    return read


def taken_from(settings: dict[str, Any], kind: type[Taken]) -> Taken:
    """The fields of a dataclass among a command's parameters, which are left with the others."""
    return kind(**{field.name: settings.pop(field.name) for field in fields(kind)})


def zero_or_one(value: str | bool) -> bool:
    """Reads ``0`` or ``1``; a default is a truth value already."""
    if value not in ("0", "1", False, True):
        raise click.BadParameter(f"{value!r} is neither 0 nor 1")
    return value in ("1", True)


def key_value(text: str) -> tuple[str, str]:
    """Reads ``key=value``."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.BadParameter(f"{text!r} is not key=value")
    return key, value


def config_option(field: str, *names: str, **settings: Any) -> Callable[[F], F]:
    """An option whose parameter is the ``TrainConfig`` field of that name, with its default."""
    default = getattr(TrainConfig, field)
    shown = {} if default in (None, ()) else {"show_default": True}
    return click.option(*names, field, **{"default": default, **shown, **settings})


weight_option = config_option(
    "class_weight",
    "-w",
    "--weight",
    type=(int, float),
    multiple=True,
    metavar="LABEL FACTOR",
    help="Multiply C of class LABEL by FACTOR; -w1 5 is -w 1 5. Repeatable.",
)
bias_option = config_option(
    "bias",
    "--bias",
    type=click.Choice(BIASES),
    show_default="free, where the solver can",
    help="f(x) with a threshold rho that is free, or with none: rho = 0.",
)
no_bias_option = click.option("--no-bias", "bias", flag_value="none", default=TrainConfig.bias, help="Short for --bias none.")
threads_option = config_option("threads", "-j", "--threads", type=int, metavar="N", show_default="all", help="Cores to use.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="No progress; warnings and errors still appear.")
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")

seed_option = config_option("seed", "--seed", type=int, metavar="N", help="Where random choices start.")

kernel_options: tuple[Callable[[Any], Any], ...] = (
    config_option(
        "kernel", "-t", "--kernel", type=numbered(KERNELS, poly="polynomial"), metavar="0..4|NAME", help="The kernel K(u, v)."
    ),
    config_option("degree", "-d", "--degree", type=int, metavar="INT", help="Degree of the polynomial kernel."),
    config_option(
        "gamma",
        "-g",
        "--gamma",
        type=float,
        metavar="X",
        show_default="1/number of features",
        help="gamma of (gamma u·v + coef0)^degree, exp(-gamma |u - v|²) and tanh(gamma u·v + coef0); 0 means the default.",
    ),
    config_option("coef0", "-r", "--coef0", type=float, metavar="X", help="coef0 of the polynomial and sigmoid kernels."),
)
_PROBLEM: tuple[Callable[[Any], Any], ...] = (
    config_option("svm_type", "-s", "--svm-type", type=numbered(SVM_TYPES), metavar="0..4|NAME", help="What is trained."),
    *kernel_options,
    config_option("C", "-c", "--C", type=float, metavar="X", help="Cost of an error."),
    config_option(
        "lam",
        "--lambda",
        type=float,
        metavar="X",
        help="The λ form in place of -c: min λ/2 |w|² + mean hinge loss, C = 1/(λ n).",
    ),
    config_option("cache_mb", "-m", "--cache-mb", type=float, metavar="MB", help="Memory for kernel values."),
    config_option(
        "eps",
        "-e",
        "--eps",
        type=float,
        metavar="X",
        help="Tolerance: training stops at this KKT violation; a primal solver at this relative gap.",
    ),
    config_option(
        "shrinking",
        "-h",
        "--shrinking",
        type=zero_or_one,
        metavar="0|1",
        show_default="1",
        help="Set examples at their bounds aside.",
    ),
    weight_option,
    bias_option,
    no_bias_option,
)
_SOLVER = (
    config_option(
        "multiclass",
        "--multiclass",
        type=click.Choice(MULTICLASS),
        help="More than two classes: a machine each two of them, as LIBSVM has it, or a machine each class against the rest, "
        "which svm-predict refuses to read.",
    ),
    config_option("solver", "--solver", type=click.Choice(SOLVERS), metavar="NAME", help="The algorithm; see --list-solvers."),
    config_option(
        "solver_options",
        "-O",
        "--solver-option",
        type=key_value,
        multiple=True,
        metavar="KEY=VALUE",
        help="A knob of the solver's own; see --list-solvers. Repeatable.",
    ),
)


def _map_options(landmarks: Sequence[str], more: str = "") -> tuple[Callable[[Any], Any], ...]:
    """The options of a map, whose landmarks are chosen in one of these ways; ``more`` tells of those that not all maps have."""
    return (
        config_option(
            "map",
            "--map",
            type=click.Choice(MAPS),
            help="Put explicit features in the kernel's place: Nyström's, for any kernel, or random Fourier ones, for rbf.",
        ),
        config_option("dim", "--dim", type=int, metavar="N", help="Features of the map, or landmarks they are made of."),
        config_option(
            "landmarks",
            "--landmarks",
            type=click.Choice(landmarks),
            help="Landmarks of nystroem: rows by randomly pivoted Cholesky (uniform where the kernel may be indefinite), "
            f"centres of k-means, both as many of each class; rows drawn alike{more}.",
        ),
        config_option(
            "cut",
            "--cut",
            type=float,
            metavar="X",
            help="Leave eigenvalues below this share of the largest out of nystroem; rounding errors always are.",
        ),
        config_option(
            "orthogonal", "--orthogonal", is_flag=True, show_default=False, help="Orthogonal frequencies of fourier."
        ),
    )


#: Those of a map alone: there is no SVM to take landmarks from.
map_options = _map_options(ROW_LANDMARKS)
_MAP = _map_options(
    LANDMARKS,
    "; or, reduced, the vectors that approx --model makes of an SVM on 100 rows each, which of pictures err least by far",
)
_ON_A_MAP = (
    config_option(
        "constant",
        "--constant",
        type=float,
        metavar="X",
        help="A feature of this value beside those of --map: a threshold for solvers that have no free bias.",
    ),
    config_option(
        "certificate_of",
        "--certificate-of",
        type=click.Choice(CERTIFICATES),
        help="With --map, the problem that gap and violation are of: the mapped one, or the kernel's own (nystroem).",
    ),
)
_COURSE = (
    config_option("max_iter", "--max-iter", type=int, metavar="N", help="Stop after N iterations a machine."),
    config_option(
        "max_evaluations", "--budget-evals", type=int, metavar="N", help="Stop after N kernel evaluations a machine."
    ),
    config_option(
        "time_limit_s",
        "--time-limit",
        type=float,
        metavar="S",
        help="Stop after S seconds of training; reading, certificates and held-out errors are not counted.",
    ),
    config_option(
        "patience",
        "--patience",
        type=int,
        metavar="K",
        help="Stop a solver that is not exact where the --holdout error is no lower at K points in a row (from n/16 steps "
        "on, each √2 times as many), and keep the best. A machine of two classes of several sees these alone.",
    ),
    seed_option,
)


def config_options(function: F) -> F:
    """Declares every training option on a command; its parameters are the fields of ``TrainConfig`` but ``threads``."""
    return stack(*_PROBLEM, *_MAP, *_ON_A_MAP, *_SOLVER, *_COURSE)(function)


def options_but_the_solver(function: F) -> F:
    """``config_options`` without the solver and its knobs."""
    return stack(*_PROBLEM, *_COURSE)(function)


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether the command line gives the parameter of that name."""
    return ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def refuse_lambda_with_C(ctx: click.Context) -> None:
    """Raises UsageError where the command line gives both."""
    if is_given(ctx, "C") and is_given(ctx, "lam"):
        raise UsageError("--lambda and -c are two ways to say the same; give one of them")


def refuse_patience_alone(config: TrainConfig, holdout: str | None) -> None:
    """Raises UsageError where there is no held-out error for --patience to watch."""
    if config.patience is not None and holdout is None:
        raise UsageError("--patience watches the held-out error: give --holdout too")


def refuse_given(ctx: click.Context, names: set[str], why: str) -> None:
    """Raises UsageError, the option's name and ``why``, where the command line gives one of ``names``."""
    for option in ctx.command.params:
        if option.name in names and is_given(ctx, option.name):
            raise UsageError(f"{option.opts[0]} {why}")


def refuse_options_of_no_map(ctx: click.Context, name: str | None) -> None:
    """Raises UsageError where the command line describes a map that is not there, or one of the other kind."""
    if name is None:
        refuse_given(
            ctx, {"dim", "landmarks", "cut", "orthogonal", "certificate_of"}, "goes with a feature map: give --map too"
        )
    elif name == "fourier":
        refuse_given(ctx, {"landmarks", "cut"}, "goes with --map nystroem; fourier has no landmarks")
    else:
        refuse_given(ctx, {"orthogonal"}, "goes with --map fourier; nystroem has no frequencies")


def stack(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several option decorators as one, shown in ``--help`` in the order given."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
