#!/usr/bin/env python3
"""svmkit beside every other tool installed, on the same files, in turns.

    scripts/bench.py --list                                    what can be measured
    scripts/bench.py a9a ijcnn1 --runs 3                       two training problems
    scripts/bench.py table --save bench/results.jsonl          seven of them, kept
    scripts/bench.py start read predict                        start-up, parsing, prediction
    scripts/bench.py a9a --tool svm-train-omp=~/libsvm/svm-train --python-of sklearnex=~/peers/bin/python
    scripts/bench.py --report bench/results.jsonl              README's tables of what was kept

Peers are taken from PATH (svm-train, svm-train-omp, thundersvm-train, liblinear-train, svm-predict, svm-predict-omp) and from
this Python (sklearn, sklearnex, liblinear), or from where --tool and --python-of say. Any other name given to --tool is one
more program with svm-train's options, or svm-predict's if it begins so.

Times are of whole commands, from start to exit: medians over the runs (least–most); `fit` is the training alone where a tool
says so, × is its ratio to svmkit's. Tools take turns: A B A B. A tool that fails or takes longer than --limit keeps its row.
Objectives and violation are computed anew in float64 from every model file, since the tools' own figures drift. Compiled code
and the page cache are warm. Peak memory is the operating system's count, never below this script's own 20 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import bench_report
from bench_data import CASES, DATA, GROUPS, ROOT, WORK, Case, Missing, artificial, digits17, warm_page_cache
from bench_tools import MODULES, SVMKIT, WORKER, Failed, Peers, Run, Tool, absent, find_peers, measure, other_path, trainers

#: What is not measured may take this long.
PREPARING_S = 24 * 3600.0

BY_NAME = {case.name: case for case in CASES}
Record = dict[str, Any]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def short(argv: list[str]) -> str:
    """A command as it was run, with paths as a reader would type them."""
    text = " ".join(argv).replace(f"{SVMKIT} ", "svmkit ")
    return text.replace(f"{ROOT}/", "").replace(f"{DATA}/", "").replace(f"{Path.home()}/", "~/")


def training(case: Case, peers: Peers, args: argparse.Namespace) -> Record:
    """One training problem with every tool."""
    train, test = case.files()
    warm_page_cache(train, test)
    WORK.mkdir(exist_ok=True)
    tools = trainers(case, peers, args.only)
    for name in absent(tools, args.only):
        say(f"{case.name}: {name} is not here or cannot train this; --list shows what is here")
    if not tools:
        raise Missing(f"none of {', '.join(args.only)} is here and can train this; --list shows what is here")
    models = {tool.name: WORK / f"{case.name}.{tool.name.replace(' ', '-')}.model" for tool in tools}
    for number in range(args.runs):
        for tool in tools:
            if tool.failed:
                continue
            say(f"{case.name}, run {number + 1} of {args.runs}: {tool.name}")
            try:
                tool.runs.append(measure(tool.argv(train, case, models[tool.name]), args.limit))
            except Failed as why:
                tool.failed = str(why)
    done = [tool for tool in tools if tool.runs]
    say(f"{case.name}: judging {len(done)} models in float64")
    request = {"train": str(train), "test": str(test), "C": case.C, "linear": case.linear}
    request["models"] = [str(models[tool.name]) for tool in done]
    verdict = json.loads(measure([sys.executable, WORKER, "judge", json.dumps(request)], PREPARING_S).output)
    verdicts = dict(zip([tool.name for tool in done], verdict["verdicts"], strict=True))
    return {
        **{"name": case.name, "C": case.C, "gamma": case.gamma, "eps": case.eps, "linear": case.linear},
        **{"n": verdict["n"], "n_features": verdict["n_features"]},
        "tools": [told(tool, short(tool.argv(train, case, models[tool.name])), verdicts.get(tool.name)) for tool in tools],
    }


def told(tool: Tool, command: str, verdict: Record | None) -> Record:
    """A tool's part of a record."""
    facts = [tool.facts(run.output) for run in tool.runs]
    last = facts[-1] if facts else {}
    return {
        **{"name": tool.name, "command": command, "failed": tool.failed, "verdict": verdict},
        "seconds": [run.seconds for run in tool.runs],
        "cpu_s": [run.cpu_s for run in tool.runs],
        "fit_s": [fact["seconds"] for fact in facts if "seconds" in fact],
        "peak_mb": max((run.peak_mb for run in tool.runs), default=0.0),
        **{key: last[key] for key in ("iterations", "kernel_evaluations", "status", "version") if key in last},
    }


Command = tuple[str, list[str], Mapping[str, str] | None]


def commands(name: str, about: str, rows: list[Command], runs: int, limit: float) -> tuple[Record, dict[str, list[Run]]]:
    """Whole-command seconds of commands that take turns; ``rows`` are title, command and environment."""
    found: dict[str, list[Run]] = {title: [] for title, _, _ in rows}
    failed: dict[str, str] = {}
    for number in range(runs):
        say(f"{name}, run {number + 1} of {runs}")
        for title, argv, env in rows:
            try:
                if title not in failed:
                    found[title].append(measure(argv, limit, env))
            except Failed as why:
                failed[title] = str(why)
    table = [["command", "seconds", "peak MB"]]
    for title, each in found.items():
        if each:
            table.append([title, bench_report.spread([run.seconds for run in each]), f"{max(run.peak_mb for run in each):.0f}"])
        else:
            table.append([title, failed[title].partition(":")[0], ""])
    notes = [f"{name}, {title}: {why}" for title, why in failed.items() if not why.startswith(">")]
    return {"name": name, "about": about, "table": table, "notes": notes}, found


def start(peers: Peers, args: argparse.Namespace) -> Record:
    """What a command costs before any real work, on heart_scale (270 rows)."""
    small = DATA / "heart_scale"
    small = small if small.exists() else artificial("xor", 270, 1)
    WORK.mkdir(exist_ok=True)
    model, out, data = str(WORK / "start.model"), str(WORK / "start.out"), str(small)
    rows: list[Command] = [
        ("python -c pass", [sys.executable, "-c", "pass"], None),
        ("svmkit --help", [SVMKIT, "--help"], None),
        ("svmkit train", [SVMKIT, "train", "-q", data, model], None),
        ("svmkit predict", [SVMKIT, "predict", "-q", data, model, out], None),
        ("svmkit svm-train", [SVMKIT, "svm-train", "-q", data, model], None),
        ("svmkit svm-predict", [SVMKIT, "svm-predict", data, model, out], None),
    ]
    if "svm-train" in peers.programs:
        rows.append(("svm-train", [peers.programs["svm-train"], "-q", data, model], None))
    if "svm-predict" in peers.programs:
        rows.append(("svm-predict", [peers.programs["svm-predict"], data, model, out], None))
    runs = args.runs_given or 20
    record, _ = commands("start", f"Start-up on 270 rows, {runs} runs", rows, runs, args.limit)
    record["table"].append(["svmkit train, nothing compiled yet", *cold_start(data, model, runs, args.limit)])
    return record


def cold_start(data: str, model: str, runs: int, limit: float) -> list[str]:
    """Seconds and memory of a first training ever: each run has a store of its own."""
    found = []
    for number in range(runs):
        say(f"start, cold, run {number + 1} of {runs}")
        with tempfile.TemporaryDirectory(dir=WORK, ignore_cleanup_errors=True) as folder:  # one compiles ahead
            found.append(measure([SVMKIT, "train", "-q", data, model], limit, {**os.environ, "SVMKIT_CACHE": folder}))
    return [bench_report.spread([run.seconds for run in found]), f"{max(run.peak_mb for run in found):.0f}"]


def predict(peers: Peers, args: argparse.Namespace) -> Record:
    """Whole commands on test files with svmkit's models; every predictor reads the same model file."""
    table, notes = [["data, support vectors", "predictor", "seconds", "×", "peak MB", "same labels %"]], []
    programs = {name: path for name, path in peers.programs.items() if name.startswith("svm-predict")}
    for name in ("a9a-100-wide", "mnist8", "mnist10k"):
        try:
            train, test = BY_NAME[name].files()
        except Missing as why:
            notes.append(str(why))
            continue
        warm_page_cache(train, test)
        model = WORK / f"predict.{name}.model"
        say(f"predict: training {name}")
        trained = trainers(BY_NAME[name], peers, ["svmkit"])[0].argv(train, BY_NAME[name], model)
        facts = json.loads(measure(trained, PREPARING_S).output)
        outputs = {tool: WORK / f"predict.{name}.{tool}" for tool in ("svmkit", *programs)}
        rows: list[Command] = [
            ("svmkit", [SVMKIT, "predict", "-q", str(test), str(model), str(outputs["svmkit"])], None),
            *((tool, [path, str(test), str(model), str(outputs[tool])], None) for tool, path in programs.items()),
        ]
        record, runs = commands(f"predict {name}", "", rows, args.runs, args.limit)
        notes += record["notes"]
        ours = [run.seconds for run in runs["svmkit"]]
        own = outputs["svmkit"].read_text().split()
        for title, seconds, peak in record["table"][1:]:
            theirs = outputs[title].read_text().split() if runs[title] else []
            same = f"{100 * sum(a == b for a, b in zip(own, theirs, strict=True)) / len(own):.6g}" if theirs else ""
            what = f"{test.name}, {facts['n_support']:,}"
            table.append([what, title, seconds, bench_report.ratio([run.seconds for run in runs[title]], ours), peak, same])
    return {"name": "predict", "about": "Prediction, whole commands", "table": table, "notes": notes}


def read(peers: Peers, args: argparse.Namespace) -> Record:
    """Parsing speed on one core, imports and compiling not counted, best of five."""
    paths = [path for path in (DATA / "a9a", DATA / "ijcnn1", DATA / "mnist", DATA / "20news") if path.exists()]
    paths = [*paths, digits17()]
    readers = {"svmkit": sys.executable, **({"scikit-learn": peers.pythons["sklearn"]} if "sklearn" in peers.pythons else {})}
    table = [["file", "MB", *readers]]
    for path in paths:
        say(f"read: {path.name}")
        found = [
            json.loads(measure([python, WORKER, "read", str(path), name], args.limit).output)
            for name, python in readers.items()
        ]
        table.append([path.name, f"{found[0]['megabytes']:.1f}", *(f"{f['megabytes'] / f['seconds']:.0f}" for f in found)])
    return {"name": "read", "about": "Reading LIBSVM text on one core, MB/s", "table": table, "notes": []}


def online(peers: Peers, args: argparse.Namespace) -> Record:
    """Seconds an example of LASVM as the rows, and with them the support vectors, become more; one thread, no finishing."""
    table = [["rows", "support vectors, mean", "at the end", "fit s", "µs an example", "ns an example and support vector"]]
    options = ["--solver", "lasvm", "-O", "finish=no", "-c", "1", "-g", "0.05", "-m", "2000", "-j", "1", "-q", "--json"]
    for rows in (6_250, 12_500, 25_000, 50_000, 100_000):
        data, model = artificial("waveform", rows, 1), WORK / "online.model"
        say(f"online: {rows} rows")
        found = [
            json.loads(measure([SVMKIT, "train", *options, str(data), str(model)], args.limit).output) for _ in range(args.runs)
        ]
        # an example's values are one for each member of S, or nearly, so their number is the sum of |S| over the examples
        mean = found[0]["kernel_evaluations"] / rows
        fit_s = [facts["seconds"] for facts in found]
        each_us = 1e6 * statistics.median(fit_s) / rows
        cells = [f"{rows:,}", f"{mean:,.0f}", f"{found[0]['n_support']:,}", bench_report.spread(fit_s)]
        table.append([*cells, f"{each_us:.3g}", f"{1e3 * each_us / mean:.3g}"])
    return {"name": "online", "about": "LASVM's time an example (waveform)", "table": table, "notes": []}


SECTIONS = {"start": start, "read": read, "predict": predict, "online": online}
ABOUT = {
    "start": "start-up: --help, a small training warm and cold, a small prediction (medians of 20)",
    "read": "parsing LIBSVM text on one core",
    "online": "lasvm's time an example on 6,250 to 100,000 rows",
    "predict": "a9a.t with 19,000 support vectors, MNIST's test file with two classes and with ten",
}


def machine() -> str:
    """The machine and our versions, in a line or two."""
    cpu = next((line.partition(":")[2].strip() for line in lines_of("/proc/cpuinfo") if line.startswith("model name")), "")
    memory = next((int(line.split()[1]) >> 20 for line in lines_of("/proc/meminfo") if line.startswith("MemTotal")), 0)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    packages = [(name, package_version(name)) for name in ("svmkit", "numpy", "numba")]
    known = [f"Python {platform.python_version()}", *(f"{name} {number}" for name, number in packages if number), *debian()]
    return f"{cpu or platform.machine()}, {cores} cores, {memory} GiB, {platform.system()}; {', '.join(known)}"


def debian() -> list[str]:
    """Versions of the tools that came as Debian packages."""
    if not other_path("dpkg-query"):
        return []
    argv = ["dpkg-query", "-W", "-f", "${Package} ${Version}\n", "libsvm-tools", "liblinear-tools"]
    return [line for line in subprocess.run(argv, capture_output=True, text=True).stdout.splitlines() if line.count(" ") == 1]


def package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def lines_of(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def listing() -> str:
    lines = [
        f"{case.name:18} C {case.C:g}, {'linear' if case.linear else f'gamma {case.gamma:g}'}, eps {case.eps:g}"
        for case in CASES
    ]
    lines += [f"{name:18} {', '.join(members)}" for name, members in GROUPS.items()]
    return "\n".join([*lines, *(f"{name:18} {about}" for name, about in ABOUT.items())])


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        epilog=(__doc__ or "").partition("\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="cases, groups of cases, sections (default: table and sections)"
    )
    parser.add_argument("--list", action="store_true", help="list the names and the peers found, and stop")
    parser.add_argument("--runs", type=int, dest="runs_given", metavar="N", help="runs of each tool (default 3; start: 20)")
    parser.add_argument("--limit", type=float, default=900, metavar="S", help="seconds a run may take (default 900)")
    parser.add_argument("--only", action="append", default=[], metavar="TOOL", help="only this tool (repeatable)")
    parser.add_argument("--tool", action="append", default=[], metavar="NAME=PATH", help="where a program is (repeatable)")
    parser.add_argument(
        "--python-of",
        action="append",
        default=[],
        metavar="MODULE=PATH",
        help=f"a Python that has {', '.join(MODULES)} (repeatable)",
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="append what was measured to FILE, a JSON object a line")
    parser.add_argument("--report", type=Path, metavar="FILE", help="measure nothing; README's tables of what FILE holds")
    parser.add_argument("--markdown", action="store_true", help="tables in Markdown; with --report each record's own too")
    return parser


def wanted(names: list[str]) -> list[str]:
    """Groups as their members. Raises ValueError for a name that is none."""
    for name in names:
        if name not in {*BY_NAME, *GROUPS, *SECTIONS}:
            raise ValueError(f"no {name!r} to measure; --list shows what there is")
    return [each for name in names or ["table", *SECTIONS] for each in GROUPS.get(name, (name,))]


def report(path: Path, markdown: bool) -> None:
    """What README shows of the records in a file; with ``markdown`` each record's own table too."""
    records = bench_report.load(path)
    print(bench_report.summary(records), end="")
    for record in records if markdown else ():
        print(bench_report.show(record, markdown))


def run(names: list[str], peers: Peers, args: argparse.Namespace) -> int:
    """Measures ``names``, showing and keeping each as it is done."""
    here, code = machine(), 0
    print(f"On {here}." if args.markdown else here)
    say("compiling what is not yet compiled")
    measure([SVMKIT, "warmup", "-q"], PREPARING_S)
    for name in names:
        try:
            record = SECTIONS[name](peers, args) if name in SECTIONS else training(BY_NAME[name], peers, args)
        except (Missing, Failed) as why:
            say(f"{name}: {why}")
            code = 1
            continue
        record["machine"] = here
        print(bench_report.show(record, args.markdown), flush=True)
        if args.save:
            with open(args.save, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
    return code


def main() -> int:
    args = arguments().parse_args()
    args.runs = args.runs_given or 3
    try:
        if args.report:
            report(args.report, args.markdown)
            return 0
        names, peers = wanted(args.names), find_peers(args.tool, args.python_of)
        if args.list:
            print(listing())
            print("\n".join(f"{name:18} {path}" for name, path in [*peers.programs.items(), *peers.pythons.items()]))
            return 0
        return run(names, peers, args)
    except (ValueError, OSError, Failed) as why:
        say(f"bench: {why}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
