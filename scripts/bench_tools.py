"""The competitors of scripts/bench.py: how each is found, called, timed, and what it says of itself. Standard library only.

A tool is a command: ``argv(train, case, model)`` trains on a file and writes a model file in LIBSVM's (or LIBLINEAR's) format.
Those that live in Python run in scripts/bench_worker.py under whichever interpreter has them, and tell the seconds of the fit
alone; so does svmkit. The others are known by their whole commands only.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bench_data import ROOT, Case

BIN = Path(sys.executable).parent
SVMKIT = str(BIN / "svmkit")
WORKER = str(ROOT / "scripts" / "bench_worker.py")
OPENMP = "svm-train-omp"
#: Programs looked for on PATH.
PROGRAMS = ("svm-train", OPENMP, "thundersvm-train", "liblinear-train", "svm-predict", "svm-predict-omp")
#: Module to look for, and the name of what it carries.
MODULES = {"sklearn": "scikit-learn", "sklearnex": "scikit-learn-intelex", "liblinear": "liblinear-official"}
#: What the names of fits in double precision end with.
DOUBLE = "-f64"
#: Kernel machines of these modules: what bench_worker.py does, and the name it bears in the tables.
FITS = (
    ("sklearn", "sklearn", MODULES["sklearn"]),
    ("sklearnex", "sklearnex", MODULES["sklearnex"]),
    ("sklearnex", "sklearnex_double", MODULES["sklearnex"] + DOUBLE),
)

Argv = Callable[[Path, Case, Path], list[str]]


class Failed(Exception):
    """A command that did not end well."""


class Run(NamedTuple):
    """One process from start to exit: wall and processor seconds (its own and its threads'), peak memory, standard output."""

    seconds: float
    cpu_s: float
    peak_mb: float
    output: str


@dataclass
class Tool:
    """A competitor, its runs so far, and why it is out, if it is."""

    name: str
    argv: Argv
    facts: Callable[[str], dict[str, Any]] = lambda output: {}
    runs: list[Run] = field(default_factory=list)
    failed: str = ""


def measure(argv: list[str], limit_s: float, env: Mapping[str, str] | None = None) -> Run:
    """Runs ``argv``; this process stays small, since a child's peak memory counts its parent's at the start.

    Raises Failed for a nonzero exit, after ``limit_s`` seconds, and where there is no such program.
    """
    began = time.perf_counter()
    try:
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    except OSError as why:
        raise Failed(f"{argv[0]}: {why.strerror}") from why
    assert child.stdout is not None
    assert child.stderr is not None
    stopper = threading.Timer(limit_s, child.kill)
    stopper.start()
    complaints: list[str] = []
    drain = threading.Thread(target=lambda pipe: complaints.append(pipe.read()), args=(child.stderr,))
    drain.start()
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    stopper.cancel()
    drain.join()
    child.stdout.close()
    child.stderr.close()
    if child.returncode:
        late = seconds >= limit_s
        last = (complaints[0].strip().splitlines() or [""])[-1]
        raise Failed(f"> {limit_s:g} s" if late else f"exit {child.returncode}: {last[-200:]}")
    return Run(
        seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / (1024.0 if sys.platform == "linux" else 1024.0**2), output
    )


class Peers(NamedTuple):
    """Where the peers are: programs by name, and for each Python module an interpreter that has it."""

    programs: dict[str, str]
    pythons: dict[str, str]


def find_peers(tools: list[str], pythons: list[str]) -> Peers:
    """Peers named as NAME=PATH, and the others that are on PATH or in this Python. Raises ValueError with the reason."""
    programs = {name: path for name in PROGRAMS if (path := other_path(name))}
    programs.update(_named(tools, "--tool"))
    known = {module: sys.executable for module in MODULES if importlib.util.find_spec(module)}
    given = _named(pythons, "--python-of")
    unknown = [name for name in given if name not in MODULES]
    if unknown:
        raise ValueError(f"--python-of {unknown[0]}: not one of {', '.join(MODULES)}")
    return Peers(programs, {**known, **given})


def _named(pairs: list[str], option: str) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not (name and equals and path):
            raise ValueError(f"{option} {pair}: give NAME=PATH")
        if shutil.which(path) is None:
            raise ValueError(f"{option} {pair}: {path} is no program")
        found[name] = path
    return found


def other_path(program: str) -> str | None:
    """The program of that name that is not ours."""
    folders = [f for f in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(f).resolve() != BIN.resolve()]
    return shutil.which(program, path=os.pathsep.join(folders))


def trainers(case: Case, peers: Peers, only: list[str]) -> list[Tool]:
    """svmkit and every peer that can train ``case``, or those named in ``only``, by their own names or their modules'."""
    tools = _linear(peers) if case.linear else _kernel(peers)
    return [tool for tool in tools if not only or any(_is_called(tool, name) for name in only)]


def absent(tools: list[Tool], only: list[str]) -> list[str]:
    """Names in ``only`` that none of ``tools`` bears."""
    return [name for name in only if not any(_is_called(tool, name) for tool in tools)]


def _is_called(tool: Tool, name: str) -> bool:
    """Of a module all fits are meant, in whichever precision."""
    return name == tool.name or (name in MODULES and tool.name in (MODULES[name], MODULES[name] + DOUBLE))


def _kernel(peers: Peers) -> list[Tool]:
    tools = [Tool("svmkit", _libsvm(SVMKIT, "train", "-q", "--json"), json.loads)]
    for name, path in peers.programs.items():
        if name == "thundersvm-train":
            tools.append(Tool(name, _libsvm(path, "-m", "1000")))
        elif name != "liblinear-train" and not name.startswith("svm-predict"):
            tools.append(Tool(name, _libsvm(path, "-m", "1000"), libsvm_facts))
    for module, job, name in FITS:
        if module in peers.pythons:
            tools.append(Tool(name, _worker(peers.pythons[module], job), last_line))
    return tools


def _linear(peers: Peers) -> list[Tool]:
    """Those for L1-loss linear machines without a threshold."""
    sdca = ("train", "-q", "--json", "-t", "0", "--solver", "sdca", "--no-bias")
    tools = [Tool("svmkit sdca", lambda train, case, model: [SVMKIT, *sdca, *_C(case), str(train), str(model)], json.loads)]
    liblinear = peers.programs.get("liblinear-train")
    if liblinear:
        tools.append(
            Tool("liblinear-train", lambda train, case, model: [liblinear, "-s", "3", *_C(case), str(train), str(model)])
        )
    if "liblinear" in peers.pythons:
        tools.append(Tool(MODULES["liblinear"], _worker(peers.pythons["liblinear"], "liblinear"), last_line))
    return tools


def _C(case: Case) -> list[str]:
    return ["-c", f"{case.C:g}", "-e", f"{case.eps:g}"]


def _libsvm(program: str, *more: str) -> Argv:
    return lambda train, case, model: [program, *more, *_C(case), "-g", f"{case.gamma:g}", str(train), str(model)]


def _worker(python: str, job: str) -> Argv:
    """A fit inside a Python process: data, model file, C, gamma, eps."""
    return lambda train, case, model: [
        *[python, WORKER, job, str(train), str(model)],
        *[f"{number:g}" for number in (case.C, case.gamma, case.eps)],
    ]


def last_line(output: str) -> dict[str, Any]:
    """What a worker says of itself, after whatever its libraries print."""
    facts: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return facts


def libsvm_facts(output: str) -> dict[str, Any]:
    """The iteration count that svm-train prints."""
    counts = [line.rpartition("=")[2] for line in output.splitlines() if "#iter" in line]
    return {"iterations": sum(map(int, counts))} if counts else {}
