"""``svmkit``: finds the command, and turns whatever goes wrong below into one line for people and an exit code.

Commands are imported when they are called: their summaries stand here, so that ``svmkit --help`` loads nothing heavy.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from svmkit import __version__
from svmkit.cli import streams
from svmkit.cli.interrupt import Stop, stopping
from svmkit.errors import SvmkitError

COMMANDS = {
    "train": "Train a model on a LIBSVM file.",
    "predict": "Write a model's labels, decision values or probabilities.",
    "eval": "Score a model on labelled data; certify its optimality.",
    "approx": "Map data to features that approximate a kernel; measure how well.",
    "compare": "Run several solvers on one problem: a table, curves, pictures.",
    "scale": "Bring every feature into one range.",
    "warmup": "Compile everything now, so that no later run has to.",
}
OLD_TOOLS = {
    "svm-train": "LIBSVM's svm-train: its options, text, files and exit codes.",
    "svm-predict": "LIBSVM's svm-predict, likewise.",
    "svm-scale": "LIBSVM's svm-scale, likewise.",
}


class LazyGroup(click.Group):
    """A group that imports ``svmkit.cli.NAME`` only when command NAME is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"svmkit.cli.{cmd_name}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS:
            raise click.UsageError(f"no such command: {args[0]}; there are {', '.join([*COMMANDS, *OLD_TOOLS])}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        with formatter.section("The old tools by their names"):
            formatter.write_dl(list(OLD_TOOLS.items()))


EPILOG = """\b
Exit codes:
  0  done
  1  bad data, a bad model, or trouble at run time
  2  wrong usage
  3  training stopped before the tolerance was met, and --strict was given
  130, 143  stopped by Ctrl-C or SIGTERM (train saves the model so far)
  129, 152  stopped by SIGHUP or SIGXCPU, likewise
"""


@click.group(
    cls=LazyGroup,
    help="Support vector machines from the shell: LIBSVM's files and options, more solvers, less waiting.",
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["--help"], "max_content_width": 120},
    epilog=EPILOG,
)
@click.version_option(__version__, message="svmkit %(version)s")
@click.pass_context
def group(ctx: click.Context) -> int:
    if ctx.invoked_subcommand is None:
        streams.tell(*ctx.get_help().split("\n"))
    return 2  # where no command is given; else what the command returns counts


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``svmkit`` with the arguments ``argv`` and returns its exit code; without ``argv`` it ends the process."""
    if argv is None:
        streams.leave(main(sys.argv[1:]))
    args = list(argv)
    if args and args[0] in OLD_TOOLS:
        tool = import_module(f"svmkit.cli.compat.{args[0].replace('-', '_')}")
        return int(tool.main(args[1:]) or 0)
    return guarded(lambda: group.main(args=args, prog_name="svmkit", standalone_mode=False))


def guarded(action: Callable[[], Any]) -> int:
    """Exit code of ``action`` (None is 0); every exception becomes one line on stderr."""
    streams.settle()
    with stopping() as stop:
        return _exit_code(action, stop)


def _exit_code(action: Callable[[], Any], stop: Stop) -> int:
    try:
        try:
            code = int(action() or 0)
            sys.stdout.flush()
        finally:
            stop.over = True
        return code
    except click.ClickException as error:
        vars(error)["message"] = streams.shown(error.message)  # click calls it final, and has no other way
        with suppress(OSError):
            error.show()
        return error.exit_code
    except SvmkitError as error:
        return _say(error.exit_code, *error.args)
    except (KeyboardInterrupt, click.Abort):
        return _say_stopped(stop)
    except BrokenPipeError:  # whoever read our output has seen enough
        streams.forget(sys.stdout)
        return 1
    except Exception as error:
        if stop.signum:
            streams.tell("")  # as click does when it is not in an extension module's way
            return _say_stopped(stop)
        if isinstance(error, OSError):
            streams.forget(sys.stdout)
        return _say(1, streams.complaint(error))


def _say(code: int, message: str, *more: str) -> int:
    streams.tell(f"svmkit: {message}", *more)
    return code


def _say_stopped(stop: Stop) -> int:
    return _say(128 + (stop.signum or signal.SIGINT), "stopped before it was done")
