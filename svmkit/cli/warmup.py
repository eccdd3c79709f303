"""``svmkit warmup``: compiles everything ahead of time, so that the first real command is as quick as the second."""

from __future__ import annotations

import time

import click

from svmkit.cli.options import CONTEXT, quiet_option
from svmkit.cli.progress import Reporter
from svmkit.errors import OutputError

HELP = """\
Compile all inner loops for this machine and keep them in the store, and Python's byte code beside the sources.

The store is $SVMKIT_CACHE, else svmkit in $XDG_CACHE_HOME or ~/.cache; it is safe to delete.
"""


@click.command("warmup", help=HELP, context_settings=CONTEXT)
@quiet_option
def command(quiet: bool) -> None:
    import compileall
    import pkgutil
    from importlib import import_module

    import svmkit
    from svmkit import _ahead, _jit, _store, parallel

    found = (module.name for module in pkgutil.walk_packages(svmkit.__path__, "svmkit."))
    modules = [name for name in found if not name.startswith(("svmkit.cli", "svmkit.__main__", "svmkit._ahead"))]
    for module in modules:
        import_module(module)
    compileall.compile_dir(svmkit.__path__[0], quiet=2)  # a fifth of a short run's time where Python keeps none by itself
    functions = [function for function in _jit.registry() if function.name.startswith("svmkit.")]  # the store keeps no others
    began = time.perf_counter()
    cold = not _jit.plain_numba() and not all(function.is_ready() for function in functions)
    if cold:
        if (trouble := _store.unwritable()) is not None:
            raise OutputError(f"what is compiled could not be kept: {trouble}")
        _ahead.start(modules, parallel.cores() - 1)
    with Reporter(quiet) as reporter:
        for wait in (False, True):  # what other processes are compiling comes last
            for function in functions:
                ready = sum(function.is_ready() for function in functions)
                text = f"{ready} of {len(functions)} ready, now {function.name}"
                reporter.show(lambda elapsed, text=text: f"{elapsed:.1f} s, {text}")  # type: ignore[misc]
                function.load(wait)
        if cold and not all(_store.has(function.name) for function in functions):
            raise OutputError(f"not all of what was compiled could be kept: is there room left in {_store.store()}?")
        store = _store.store()
        kept = f"kept in {store}" if store is not None else "which could not be kept: the store cannot be written"
        reporter.note(f"{len(functions)} functions ready after {time.perf_counter() - began:.1f} s, {kept}")
