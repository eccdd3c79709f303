"""``svmkit warmup``: compiles everything ahead of time, so that the first real command is as quick as the second."""

from __future__ import annotations

import time

import click

from svmkit.cli.options import CONTEXT, quiet_option
from svmkit.cli.progress import Reporter


@click.command("warmup", context_settings=CONTEXT)
@quiet_option
def command(quiet: bool) -> None:
    """Compile all inner loops for this machine and keep them in the store.

    The store is $SVMKIT_CACHE, else svmkit in $XDG_CACHE_HOME or ~/.cache; it is safe to delete.
    """
    import pkgutil
    from importlib import import_module

    import svmkit
    from svmkit import _jit, _store

    for module in pkgutil.walk_packages(svmkit.__path__, "svmkit."):
        if not module.name.startswith(("svmkit.cli", "svmkit.__main__")):
            import_module(module.name)
    functions = list(_jit.registry())
    began = time.perf_counter()
    with Reporter(quiet) as reporter:
        for number, function in enumerate(functions, start=1):
            text = f"{number} of {len(functions)}: {function.name}"
            reporter.show(lambda elapsed, text=text: f"{elapsed:.1f} s, {text}")  # type: ignore[misc]
            function.load()
        if not quiet:
            store = _store.store()
            kept = f"kept in {store}" if store is not None else "which could not be kept: the store cannot be written"
            reporter.note(f"{len(functions)} functions ready after {time.perf_counter() - began:.1f} s, {kept}")
