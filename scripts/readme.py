#!/usr/bin/env python3
"""Writes into README.md what the program says of itself: each command's --help, the solvers, the exit codes.

scripts/readme.py            rewrites what stands between <!-- begin NAME --> and <!-- end NAME -->
scripts/readme.py --check    changes nothing; fails where README.md is behind the program
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- begin (?P<name>[^>]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)


def help_of(command: str) -> str:
    """``svmkit train --help`` as a fenced block."""
    argv = [sys.executable, "-m", *command.split()]
    env = {**os.environ, "COLUMNS": "120", "LC_ALL": "C.UTF-8"}
    text = subprocess.run(argv, capture_output=True, text=True, check=True, env=env, cwd=ROOT).stdout
    return "```text\n" + "".join(f"{line.rstrip()}\n" for line in text.strip().splitlines()) + "```\n"


def solvers() -> str:
    """The registry as a table."""
    from svmkit.solvers import NAMES, solver

    rows = [f"| `{name}` | {solver(name).SUMMARY} | {solver(name).PAPER} |\n" for name in NAMES]
    return "| solver | what it does | paper |\n|---|---|---|\n" + "".join(rows)


def exit_codes() -> str:
    """The exit codes that ``svmkit --help`` lists, as a table."""
    from svmkit.cli.main import EPILOG

    rows = re.findall(r"^  ([\d, ]+?)  +(\S.*)$", EPILOG, re.MULTILINE)
    return "| code | meaning |\n|---|---|\n" + "".join(f"| {code} | {meaning} |\n" for code, meaning in rows)


def content(name: str) -> str:
    if name == "solvers":
        return solvers()
    if name == "exit codes":
        return exit_codes()
    return help_of(name)


def rendered(text: str) -> str:
    """``text`` with every block made anew."""
    return BLOCK.sub(lambda match: match[1] + content(match["name"]) + match[3], text)


def main() -> int:
    parser = argparse.ArgumentParser(description="Brings the generated parts of README.md up to date.")
    parser.add_argument("--check", action="store_true", help="only say whether README.md is up to date")
    args = parser.parse_args()
    before = README.read_text("utf-8")
    after = rendered(before)
    if before == after:
        return 0
    if args.check:
        print("README.md is behind the program; run scripts/readme.py (or make docs)", file=sys.stderr)
        return 1
    README.write_text(after, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
