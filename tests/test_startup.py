"""What a command costs before it does anything: help, versions and usage errors load nothing heavy."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from shell import write_blobs

from svmkit.cli.main import COMMANDS

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
        "svmkit.signals",
    }


@pytest.mark.parametrize("name", COMMANDS)
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


def test_a_warm_run_needs_numpy_and_little_else(tmp_path: Path) -> None:
    data, model, out = write_blobs(tmp_path / "data"), tmp_path / "model", tmp_path / "out"
    for args in (["train", data, model], ["svm-predict", data, model, out]):
        imported(*map(str, args))  # the first may have to compile
        modules, code = imported(*map(str, args))
        assert code == 0
        assert "numpy" in modules
        avoidable = {
            "numba",
            *(["llvmlite"] if platform.machine() == "x86_64" else []),
            "scipy",
            "numpy.ma",
            "numpy.random",
            "hashlib",
            "shutil",
        }
        assert modules & avoidable == set()


def test_the_process_ends_at_once_but_loses_nothing() -> None:
    program = "import atexit; atexit.register(print, 'exit function'); from svmkit.cli.main import main; main(); print('no')"
    done = subprocess.run([sys.executable, "-c", program, "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert re.fullmatch(r"svmkit \S+\nexit function\n", done.stdout)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("observer", "says"), [(["cProfile", "-m"], "function calls"), (["trace", "--listfuncs", "--module"], "functions called:")]
)
def test_a_profiler_or_tracer_sees_the_end(observer: list[str], says: str) -> None:
    done = subprocess.run([sys.executable, "-m", *observer, "svmkit", "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert says in done.stdout


def test_the_measure_sees_imports() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import numpy"], capture_output=True, text=True, check=True
    )
    assert re.search(r"\| +numpy$", done.stderr, re.MULTILINE)
