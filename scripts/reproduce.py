#!/usr/bin/env python3
"""Rebuilds the experiments of the papers whose methods svmkit has: their claim, our figure, whether it holds.

    scripts/reproduce.py PAPER --help      what is run, on which data, and the options

Data sets are read from $SVMKIT_DATA (else datasets/cache), tables come as Markdown on standard output. A module a paper.
"""

from __future__ import annotations

# Before NumPy, as in every command: BLAS on one thread.
import svmkit.cli  # noqa: F401

# isort: split
import click
import reproduce_asset
import reproduce_lasvm
import reproduce_pegasos
import reproduce_sbp
import reproduce_scs


@click.group(help=__doc__.partition("\n")[0] if __doc__ else None, context_settings={"help_option_names": ["-h", "--help"]})
def group() -> None:
    pass


group.add_command(reproduce_asset.command)
group.add_command(reproduce_lasvm.command)
group.add_command(reproduce_pegasos.command)
group.add_command(reproduce_sbp.command)
group.add_command(reproduce_scs.command)

if __name__ == "__main__":
    group()
