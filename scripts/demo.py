#!/usr/bin/env python3
"""`make demo`: train, predict and evaluate on two real data sets, each command shown as one would type it.

The sets come with scikit-learn; nothing is downloaded. All files go to demo/. Where LIBSVM's own svm-train is installed, it
trains on the same files and its time and accuracy stand beside ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from bench_data import ROOT
from bench_tools import BIN, other_path


def shell(command: str, *, path: str = "") -> str:
    """Runs ``command``, showing it first; returns its stdout and stops the demo where it fails."""
    print(f"\n$ {command}", flush=True)
    search = path or os.pathsep.join([str(BIN), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(command, shell=True, cwd=ROOT, text=True, stdout=subprocess.PIPE, env={**os.environ, "PATH": search})
    if done.returncode:
        print(done.stdout, end="")
        sys.exit(f"the demo stops: that command ended with {done.returncode}")
    return done.stdout


def breast_cancer() -> None:
    """Two classes, features of very different size: scaled first."""
    print("== Breast cancer (Wisconsin): is a tumour malignant (+1) or benign (-1)? 30 features", flush=True)
    shell("svmkit warmup")
    shell("python datasets/small.py breast-cancer demo")
    shell("svmkit scale -l 0 -s demo/bc.range demo/breast-cancer demo/bc")
    shell("svmkit scale -r demo/bc.range demo/breast-cancer.t demo/bc.t")
    shell("svmkit train -c 10 -g 0.5 demo/bc demo/bc.model")
    shell("svmkit predict demo/bc.t demo/bc.model demo/bc.out")
    print(shell("svmkit eval demo/bc.t demo/bc.model"), end="")
    print(
        "\nHow near the optimum is the model? primal - dual bounds the error of its objective, whoever trained it:", flush=True
    )
    print(shell("svmkit eval --certificate -c 10 demo/bc demo/bc.model | grep -E 'primal|dual|gap|violation'"), end="")


def digits() -> list[tuple[str, float, str]]:
    """Ten classes, by the native command and by the old one; rows (tool, whole-command seconds, accuracy line)."""
    print("\n== Handwritten digits: ten classes, 8 x 8 pixels", flush=True)
    shell("python datasets/small.py digits demo")
    report = json.loads(shell("svmkit train -c 10 -g 0.001 --json demo/digits demo/digits.model"))
    for key in ("status", "seconds", "iterations", "kernel_evaluations", "n_support", "gap", "violation"):
        value = report[key]
        print(f"  {key:<20} {value:.6g}" if isinstance(value, float) else f"  {key:<20} {value}")
    print("\nThe same by the commands of LIBSVM, as an old Makefile has them:", flush=True)
    rows = [old_tools("svmkit", "")]
    genuine = other_path("svm-train")
    if genuine:
        print("\nAnd by LIBSVM's own programs:", flush=True)
        rows.append(old_tools("LIBSVM", os.pathsep.join([os.path.dirname(genuine), os.environ.get("PATH", os.defpath)])))
    return rows


def old_tools(tool: str, path: str) -> tuple[str, float, str]:
    model = f"demo/digits.{tool.lower()}.model"
    began = time.perf_counter()
    print(shell(f"svm-train -q -c 10 -g 0.001 demo/digits {model}", path=path), end="")
    seconds = time.perf_counter() - began
    accuracy = shell(f"svm-predict demo/digits.t {model} demo/digits.out", path=path).strip()
    print(accuracy, flush=True)
    return tool, seconds, accuracy


def main() -> None:
    breast_cancer()
    rows = digits()
    print("\n== svm-train on digits, whole command")
    for tool, seconds, accuracy in rows:
        print(f"  {tool:<8} {seconds:7.3f} s   {accuracy}")
    print("\nThese sets are small: most of svmkit's time is starting Python. See 'make bench' for large ones.")


if __name__ == "__main__":
    main()
