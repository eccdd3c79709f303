"""What a command costs before it does anything: help, versions and usage errors load nothing heavy."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

HEAVY = {"numpy", "numba", "scipy", "llvmlite", "joblib", "multiprocessing", "concurrent"}


def imported(*args: str) -> tuple[set[str], int]:
    """Every module that ``svmkit args`` imports, and its exit code."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "svmkit", *args], capture_output=True, text=True, check=False
    )
    return {
        line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")
    }, done.returncode


def heavy(modules: set[str]) -> set[str]:
    return modules & HEAVY | {name for name in modules if name.split(".")[0] in HEAVY}


@pytest.mark.parametrize("args", [["--help"], ["--version"], []])
def test_the_group_imports_no_command(args: list[str]) -> None:
    modules, _ = imported(*args)
    assert not heavy(modules)
    assert {name for name in modules if name.startswith("svmkit")} == {
        "svmkit",
        "svmkit.cli",
        "svmkit.cli.interrupt",
        "svmkit.cli.main",
        "svmkit.cli.streams",
        "svmkit.errors",
    }


@pytest.mark.parametrize("name", ["train", "predict", "eval", "scale", "warmup"])
def test_the_help_of_a_command_is_light(name: str) -> None:
    modules, code = imported(name, "--help")
    assert code == 0
    assert not heavy(modules)


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["train"],
        ["train", "-c", "-1", "data"],
        ["train", "--lambda", "1", "-c", "1", "data"],
        ["train", "-b", "1", "data"],
        ["predict", "data"],
        ["eval", "-c", "0", "data", "model"],
    ],
)
def test_usage_errors_are_light(args: list[str]) -> None:
    modules, code = imported(*args)
    assert code == 2
    assert not heavy(modules)


def test_the_measure_sees_imports() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import numpy"], capture_output=True, text=True, check=True
    )
    assert re.search(r"\| +numpy$", done.stderr, re.MULTILINE)
