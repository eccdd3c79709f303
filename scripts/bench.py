#!/usr/bin/env python3
"""svmkit beside every other tool installed, on the same files, in turns.

    scripts/bench.py --list                        the cases
    scripts/bench.py a9a ijcnn1 --runs 3           two of them
    scripts/bench.py start read predict            start-up, parsing, prediction
    scripts/bench.py a9a --svm-train-omp ~/libsvm/svm-train --markdown > table.md

Times are of whole commands, from start to exit: medians over the runs (least–most); `fit` is the training alone where a tool
says so. Tools take turns: A B A B. Objective and violation are computed anew in float64 from every model file, since the
tools' own figures drift. Compiled code and the page cache are warm. Peak memory is the
operating system's count, never below this script's own 20 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench_data import CASES, DATA, ROOT, WORK, Case, Missing, artificial, public, warm_page_cache

BIN = Path(sys.executable).parent
WORKER = [sys.executable, str(ROOT / "scripts" / "bench_worker.py")]
SPECIAL = {
    "start": "start-up: --help, a small training, a small prediction",
    "read": "parsing LIBSVM text on one core",
    "predict": "a9a.t with the model of a9a",
}


@dataclass
class Run:
    """One process from start to exit."""

    seconds: float
    peak_mb: float
    output: str


@dataclass
class Tool:
    """A competitor: ``argv(train, case, model)`` is its command, ``facts(output)`` what it says of itself."""

    name: str
    argv: Callable[[Path, Case, Path], list[str]]
    suffix: str = ".model"
    facts: Callable[[str], dict[str, Any]] = lambda output: {}
    runs: list[Run] = field(default_factory=list)


class Failed(Exception):
    """A command that did not end well."""


def measure(argv: list[str], limit_s: float) -> Run:
    """Runs ``argv``; this process stays small, since a child's peak memory counts its parent's at the start."""
    began = time.perf_counter()
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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
        raise Failed(f"more than {limit_s:g} s" if late else f"exit {child.returncode}: {complaints[0].strip()[-200:]}")
    return Run(seconds, usage.ru_maxrss / (1024.0 if sys.platform == "linux" else 1024.0**2), output)


def other_path(program: str) -> str | None:
    """The program of that name that is not ours."""
    folders = [f for f in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(f).resolve() != BIN.resolve()]
    return shutil.which(program, path=os.pathsep.join(folders))


def libsvm(program: str, *more: str) -> Callable[[Path, Case, Path], list[str]]:
    return lambda train, case, model: [program, *more, "-c", f"{case.C:g}", "-g", f"{case.gamma:g}", str(train), str(model)]


def with_sklearn(kind: str) -> Callable[[Path, Case, Path], list[str]]:
    return lambda train, case, model: [*WORKER, "sklearn", str(train), str(case.C), str(case.gamma), str(model), kind]


def installed(args: argparse.Namespace) -> list[Tool]:
    """svmkit and every peer that is here."""
    ours = lambda output: json.loads(output)  # noqa: E731
    tools = [Tool("svmkit", libsvm(str(BIN / "svmkit"), "train", "-q", "--json"), facts=ours)]
    genuine = args.svm_train or other_path("svm-train")
    if genuine:
        tools.append(Tool("svm-train", libsvm(genuine, "-m", "1000"), facts=libsvm_facts))
    if args.svm_train_omp:
        tools.append(Tool("svm-train, OpenMP", libsvm(args.svm_train_omp, "-m", "1000"), facts=libsvm_facts))
    if find_spec("sklearn"):
        tools.append(Tool("scikit-learn", with_sklearn("plain"), ".npz", json.loads))
    if find_spec("sklearnex"):
        tools.append(Tool("scikit-learn-intelex", with_sklearn("intelex"), ".npz", json.loads))
    thunder = other_path("thundersvm-train")
    if thunder:
        tools.append(Tool("thundersvm-train", libsvm(thunder)))
    return [tool for tool in tools if not args.tools or tool.name in args.tools]


def libsvm_facts(output: str) -> dict[str, Any]:
    """The iteration count that svm-train prints."""
    counts = [line.rpartition("=")[2] for line in output.splitlines() if "#iter" in line]
    return {"iterations": sum(map(int, counts))} if counts else {}


def spread(values: list[float]) -> str:
    """Median (least–most)."""
    middle = f"{statistics.median(values):.3g}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.3g}–{max(values):.3g})"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def training(case: Case, args: argparse.Namespace) -> tuple[str, list[list[str]], list[str]]:
    """Title, table and notes of one training case."""
    train, test = case.files()
    warm_page_cache(train, test)
    WORK.mkdir(exist_ok=True)
    tools, notes, failed = installed(args), [], set()
    models = {tool.name: WORK / f"{case.name}.{tool.name.replace(', ', '-')}{tool.suffix}" for tool in tools}
    for number in range(args.runs):
        for tool in tools:
            if tool.name in failed:
                continue
            argv = tool.argv(train, case, models[tool.name])
            say(f"{case.name}, run {number + 1} of {args.runs}: {tool.name}")
            try:
                tool.runs.append(measure(argv, args.limit))
            except Failed as why:
                failed.add(tool.name)
                notes.append(f"{tool.name}: {why}")
            if number == 0:
                notes.append("`" + " ".join(argv).replace(f"{ROOT}/", "").replace(f"{DATA}/", "") + "`")
    done = [tool for tool in tools if tool.runs and tool.name not in failed]
    if not done:
        return case.name, [], notes
    say(f"{case.name}: judging {len(done)} models in float64")
    request = {"train": str(train), "test": str(test), "C": case.C, "gamma": case.gamma}
    request["models"] = [str(models[tool.name]) for tool in done]
    verdict = json.loads(subprocess.run([*WORKER, "judge", json.dumps(request)], check=True, stdout=subprocess.PIPE).stdout)
    title = f"{case.name}: C {case.C:g}, gamma {case.gamma:g}; {verdict['n']:,} × {verdict['n_features']:,}"
    return title, training_table(done, verdict), notes


def training_table(tools: list[Tool], verdict: dict[str, Any]) -> list[list[str]]:
    head = "tool|command s|ratio|fit s|peak MB|iterations|kernel values|SVs|objective|violation|test error %|agrees %"
    table = [head.split("|")]
    ours = next((tool for tool in tools if tool.name == "svmkit"), tools[0])
    base = statistics.median(run.seconds for run in ours.runs)
    for tool, judged in zip(tools, verdict["verdicts"], strict=True):
        facts = [tool.facts(run.output) for run in tool.runs]
        fits = [fact["seconds"] for fact in facts if "seconds" in fact]
        table.append(
            [
                tool.name,
                spread([run.seconds for run in tool.runs]),
                f"{statistics.median(run.seconds for run in tool.runs) / base:.3g}",
                spread(fits) if fits else "",
                f"{max(run.peak_mb for run in tool.runs):.0f}",
                f"{facts[-1]['iterations']:,}" if "iterations" in facts[-1] else "",
                f"{facts[-1]['kernel_evaluations']:.3g}" if "kernel_evaluations" in facts[-1] else "",
                f"{judged['n_support']:,}",
                f"{-judged['dual']:.10g}",
                f"{judged['violation']:.2g}",
                f"{100 * judged['test_error']:.4g}",
                f"{100 * judged['agreement']:.4g}",
            ]
        )
    return table


def commands(title: str, rows: list[tuple[str, list[str]]], args: argparse.Namespace) -> tuple[str, list[list[str]], list[str]]:
    """Whole-command seconds of commands that take turns."""
    runs: dict[str, list[Run]] = {name: [] for name, _ in rows}
    failed: dict[str, str] = {}
    for number in range(args.runs):
        say(f"{title}, run {number + 1} of {args.runs}")
        for name, argv in rows:
            try:
                if name not in failed:
                    runs[name].append(measure(argv, args.limit))
            except Failed as why:
                failed[name] = str(why)
    table = [["command", "seconds", "peak MB"]]
    for name, each in runs.items():
        if name not in failed:
            table.append([name, spread([run.seconds for run in each]), f"{max(run.peak_mb for run in each):.0f}"])
    return title, table, [f"{name}: {why}" for name, why in failed.items()]


def start(args: argparse.Namespace) -> tuple[str, list[list[str]], list[str]]:
    """What a command costs before any real work."""
    small, out = artificial("xor", 270, 1), WORK / "start.out"
    model, ours, genuine = WORK / "start.model", str(BIN / "svmkit"), other_path("svm-train")
    rows = [
        ("python -c pass", [sys.executable, "-c", "pass"]),
        ("svmkit --help", [ours, "--help"]),
        ("svmkit train, 270 rows", [ours, "train", "-q", str(small), str(model)]),
        ("svmkit predict, 270 rows", [ours, "predict", "-q", str(small), str(model), str(out)]),
        ("svmkit svm-train, 270 rows", [ours, "svm-train", "-q", str(small), str(model)]),
        ("svmkit svm-predict, 270 rows", [ours, "svm-predict", str(small), str(model), str(out)]),
    ]
    if genuine:
        rows.append(("svm-train, 270 rows", [genuine, "-q", str(small), str(model)]))
    return commands("start", rows, args)


def predict(args: argparse.Namespace) -> tuple[str, list[list[str]], list[str]]:
    """a9a.t with svmkit's model of a9a."""
    train, test, model = public("a9a"), public("a9a.t"), WORK / "predict.model"
    WORK.mkdir(exist_ok=True)
    warm_page_cache(train, test)
    measure([str(BIN / "svmkit"), "train", "-q", "-c", "1", "-g", "0.05", str(train), str(model)], args.limit)
    ours, theirs = WORK / "predict.svmkit", WORK / "predict.libsvm"
    rows = [("svmkit predict", [str(BIN / "svmkit"), "predict", "-q", str(test), str(model), str(ours)])]
    genuine = other_path("svm-predict")
    if genuine:
        rows.append(("svm-predict", [genuine, str(test), str(model), str(theirs)]))
    title, table, notes = commands("predict", rows, args)
    if genuine:
        pairs = list(zip(ours.read_text().split(), theirs.read_text().split(), strict=True))
        notes.append(f"{sum(a == b for a, b in pairs):,} of {len(pairs):,} labels agree")
    return title, table, notes


def read(args: argparse.Namespace) -> tuple[str, list[list[str]], list[str]]:
    """Parsing speed on one core, imports and compiling not counted, best of five."""
    paths = [path for path in (DATA / "a9a", DATA / "ijcnn1", DATA / "mnist") if path.exists()]
    paths = paths or [artificial("waveform", 50_000, 1)]
    readers = ["svmkit"] + ["scikit-learn"] * bool(find_spec("sklearn"))
    table = [["file", "MB", *(f"{reader}, MB/s" for reader in readers)]]
    for path in paths:
        say(f"read: {path.name}")
        found = [json.loads(measure([*WORKER, "read", str(path), reader], args.limit).output) for reader in readers]
        table.append([path.name, f"{found[0]['megabytes']:.1f}", *(f"{f['megabytes'] / f['seconds']:.0f}" for f in found)])
    return "read", table, []


def machine() -> str:
    """The machine and the versions, in a line or two."""
    cpu = next((line.partition(":")[2].strip() for line in lines_of("/proc/cpuinfo") if line.startswith("model name")), "")
    memory = next((int(line.split()[1]) >> 20 for line in lines_of("/proc/meminfo") if line.startswith("MemTotal")), 0)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    packages = [(name, package_version(name)) for name in ("numpy", "numba", "scikit-learn", "scikit-learn-intelex")]
    libsvm_tools = (
        subprocess.run(["dpkg-query", "-W", "libsvm-tools"], capture_output=True, text=True).stdout
        if other_path("dpkg-query")
        else ""
    )
    known = [f"svmkit {package_version('svmkit')} ({commit})", f"Python {platform.python_version()}"]
    known += [f"{name} {number}" for name, number in packages if number]
    known += [" ".join(libsvm_tools.split())] if libsvm_tools else []
    return f"{cpu or platform.machine()}, {cores} cores, {memory} GiB, {platform.system()}; {', '.join(known)}"


def package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def lines_of(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def show(title: str, table: list[list[str]], notes: list[str], markdown: bool) -> None:
    """One case on stdout."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))] if table else []
    print(f"\n### {title}\n" if markdown else f"\n{title}")
    for number, row in enumerate(table):
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("| " + " | ".join(cells) + " |" if markdown else "  ".join(cells))
        if markdown and number == 0:
            print(
                "|" + "|".join("-" * (width + 1) + ("-" if column == 0 else ":") for column, width in enumerate(widths)) + "|"
            )
    for note in notes:
        print(f"\n{note}" if markdown else f"  {note}")


def main() -> int:
    by_name = {case.name: case for case in CASES}
    parser = argparse.ArgumentParser(description="svmkit beside every other tool installed.")
    parser.add_argument("names", nargs="*", metavar="CASE", help="default: every case whose data is there")
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    parser.add_argument("--runs", type=int, default=3, help="runs of each tool (default 3)")
    parser.add_argument("--limit", type=float, default=900, help="seconds a run may take (default 900)")
    parser.add_argument("--tools", action="append", metavar="NAME", help="only this tool (repeatable)")
    parser.add_argument("--svm-train", metavar="PATH", help="LIBSVM's svm-train (default: the one on PATH)")
    parser.add_argument("--svm-train-omp", metavar="PATH", help="an svm-train built with OpenMP, as one more tool")
    parser.add_argument("--markdown", action="store_true", help="Markdown, with the machine and this command line")
    args = parser.parse_args()
    if args.list:
        for case in CASES:
            print(f"{case.name:14} C {case.C:g}, gamma {case.gamma:g}")
        for name, about in SPECIAL.items():
            print(f"{name:14} {about}")
        return 0
    unknown = [name for name in args.names if name not in {*by_name, *SPECIAL}]
    if unknown:
        say(f"no case {unknown[0]!r}; --list shows those there are")
        return 2
    if args.markdown:
        print(f"`{' '.join(['scripts/bench.py', *sys.argv[1:]])}` on {machine()}.")
    else:
        print(machine())
    say("compiling what is not yet compiled")
    measure([str(BIN / "svmkit"), "warmup", "-q"], args.limit)
    special = {"start": start, "read": read, "predict": predict}
    code = 0
    for name in args.names or [*by_name, *SPECIAL]:
        try:
            show(*(special[name](args) if name in special else training(by_name[name], args)), args.markdown)
        except Missing as why:
            say(f"{name}: {why}")
            code = 1 if args.names else code
        sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
