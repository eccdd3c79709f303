"""Tables of what scripts/bench.py measured, from its records: JSON objects, one a line, the last of a name counts.

A training record has name, machine, C, gamma, eps, linear, n, n_features and ``tools``: each with name, command, seconds,
cpu_s and fit_s (a number a run), peak_mb, iterations, kernel_evaluations, failed (why, or "") and, where it wrote a model, its
verdict. Any other record has name, about, machine, ``table`` (rows of cells, the first is the head) and ``notes``. Standard
library only.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Table = list[list[str]]

OURS, LIBSVM = "svmkit", "svm-train"
#: Intel's extension in single and in double precision.
INTEL = ("scikit-learn-intelex", "scikit-learn-intelex-f64")


def load(path: Path) -> list[Record]:
    """The records of a file, of each name the last. Raises ValueError for a line that is none."""
    found: dict[str, Record] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
            found[record["name"]] = record
        except (ValueError, TypeError, KeyError) as why:
            raise ValueError(f"{path}, line {number}: not a record that --save wrote") from why
    return list(found.values())


def spread(values: list[float]) -> str:
    """Median (least–most)."""
    middle = f"{statistics.median(values):.3g}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.3g}–{max(values):.3g})"


def table_of(record: Record) -> Table:
    """A record's own table, every tool a row; columns that nobody fills are left out."""
    if "table" in record:
        return record["table"]  # type: ignore[no-any-return]
    head = "tool|command s|×|fit s|×|CPU s|peak MB|iterations|kernel values|SVs|primal|dual|violation|test error %|agrees %"
    rows = [_row(tool, record["tools"][0]) for tool in record["tools"]]
    table = [head.split("|"), *rows]
    filled = [column for column in range(len(table[0])) if any(row[column] for row in rows)]
    return [[row[column] for column in filled] for row in table]


def _row(tool: Record, base: Record) -> list[str]:
    verdict = tool["verdict"] or {}
    return [
        tool["name"],
        spread(tool["seconds"]) if tool["seconds"] else tool["failed"].partition(":")[0],
        ratio(tool["seconds"], base["seconds"]),
        spread(tool["fit_s"]) if tool["fit_s"] else "",
        ratio(tool["fit_s"], base["fit_s"]),
        f"{statistics.median(tool['cpu_s']):.3g}" if tool["cpu_s"] else "",
        f"{tool['peak_mb']:.0f}" if tool["seconds"] else "",
        f"{tool['iterations']:,}" if tool.get("iterations") else "",
        f"{tool['kernel_evaluations']:.3g}" if tool.get("kernel_evaluations") else "",
        _number(verdict, "n_support", "{:,}") if not _is_w(verdict) else "",
        _number(verdict, "primal", "{:.10g}"),
        _number(verdict, "dual", "{:.10g}"),
        _number(verdict, "violation", "{:.2g}"),
        _number(verdict, "test_error", "{:.4g}", 100),
        _number(verdict, "agreement", "{:.4g}", 100),
    ]


def _is_w(verdict: Record) -> bool:
    return "primal" in verdict and "dual" not in verdict


def _number(verdict: Record, key: str, how: str, scale: float = 1) -> str:
    return how.format(verdict[key] * scale if scale != 1 else verdict[key]) if key in verdict else ""


def ratio(theirs: list[float], ours: list[float]) -> str:
    """Their median over ours."""
    if not (theirs and ours):
        return ""
    value = statistics.median(theirs) / statistics.median(ours)
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}" if value < 1 else f"{value:.3g}"


def title_of(record: Record) -> str:
    if "tools" not in record:
        return str(record["name"])
    size = f"{record['n']:,} × {record['n_features']:,}"
    kernel = "linear, no threshold" if record["linear"] else f"gamma {record['gamma']:g}"
    return f"{record['name']}: {size}; C {record['C']:g}, {kernel}, eps {record['eps']:g}"


def show(record: Record, markdown: bool) -> str:
    """One record as text: title, table, notes."""
    notes = list(record.get("notes", ()))
    for tool in record.get("tools", ()):
        notes += [f"{tool['name']}: {tool['failed']}"] * bool(tool["failed"] and not tool["failed"].startswith(">"))
        notes.append(f"`{tool['command']}`")
    title = f"\n### {title_of(record)}\n" if markdown else f"\n{title_of(record)}"
    return "\n".join([title, formatted(table_of(record), markdown), *(f"\n{n}" if markdown else f"  {n}" for n in notes)])


def formatted(table: Table, markdown: bool = True) -> str:
    """Aligned columns, the first to the left."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = []
    for number, row in enumerate(table):
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("| " + " | ".join(cells) + " |" if markdown else "  ".join(cells).rstrip())
        if markdown and number == 0:
            lines.append(
                "|" + "|".join("-" * (width + 1) + ("-" if column == 0 else ":") for column, width in enumerate(widths)) + "|"
            )
    return "\n".join(lines)


def summary(records: Iterable[Record]) -> str:
    """What README shows: the machine, kernel machines against the peers that matter, every tool's command, the other tables."""
    records = list(records)
    kernel = [r for r in records if "tools" in r and not r["linear"]]
    linear = [r for r in records if "tools" in r and r["linear"]]
    parts = [f"Measured on {machine}." for machine in dict.fromkeys(r["machine"] for r in records)]
    if kernel:
        parts += [formatted(_against(kernel)), formatted(_commands(kernel))]
    if linear:
        parts.append(formatted(_linear(linear)))
    for record in records:
        if "table" in record:
            notes = f"\n\n{'; '.join(record['notes'])}." if record["notes"] else ""
            parts.append(f"{record['about']}:\n\n{formatted(record['table'])}{notes}")
    return "\n\n".join(parts) + "\n"


def _tool(record: Record, name: str) -> Record:
    """What a record says of a tool, or of nobody."""
    nobody = {"name": name, "seconds": [], "fit_s": [], "cpu_s": [], "peak_mb": 0.0, "failed": "", "verdict": None}
    return next((tool for tool in record["tools"] if tool["name"] == name), nobody)


def _case(record: Record) -> list[str]:
    return [f"{record['name']}, {record['n']:,} × {record['n_features']:,}", f"{record['C']:g}, {record['gamma']:g}"]


def _time(tool: Record, key: str = "seconds") -> str:
    return f"{statistics.median(tool[key]):.3g}" if tool[key] else tool["failed"].partition(":")[0]


def _against(records: list[Record]) -> Table:
    """svmkit beside svm-train and Intel's extension; the ratios say how many times svmkit's time they take."""
    head = "data, rows × features|C, gamma|svmkit fit s|command s|svm-train s|÷ fit|÷ command"
    intel = "|".join(f"intelex {real} fit s|÷ fit|its violation" for real in ("f32", "f64"))
    table = [f"{head}|{intel}|objective − svm-train's, relative|violation|test error %|peak MB, svmkit / svm-train".split("|")]
    for record in records:
        ours, theirs, *intels = (_tool(record, name) for name in (OURS, LIBSVM, *INTEL))
        verdict, other = ours["verdict"] or {}, theirs["verdict"] or {}
        apart = (
            f"{(other['dual'] - verdict['dual']) / abs(other['dual']):.1e}" if verdict.get("dual") and other.get("dual") else ""
        )
        peak = f"{ours['peak_mb']:.0f} / {theirs['peak_mb']:.0f}" if theirs["seconds"] else f"{ours['peak_mb']:.0f} /"
        table.append(
            [
                *_case(record),
                *(_time(ours, "fit_s"), _time(ours), _time(theirs)),
                *(ratio(theirs["seconds"], ours["fit_s"]), ratio(theirs["seconds"], ours["seconds"])),
                *(cell for intel in intels for cell in _fit_against(intel, ours)),
                *(apart, _number(verdict, "violation", "{:.2g}"), _number(verdict, "test_error", "{:.4g}", 100), peak),
            ]
        )
    return table


def _fit_against(tool: Record, ours: Record) -> list[str]:
    return [
        *(_time(tool, "fit_s"), ratio(tool["fit_s"], ours["fit_s"])),
        _number(tool["verdict"] or {}, "violation", "{:.2g}"),
    ]


def _commands(records: list[Record]) -> Table:
    """Median seconds of every tool's whole command, a tool a column."""
    names = list(dict.fromkeys(tool["name"] for record in records for tool in record["tools"]))
    table = [["whole command, s", "C, gamma", *names]]
    return table + [[*_case(record), *(_time(_tool(record, name)) for name in names)] for record in records]


def _linear(records: list[Record]) -> Table:
    """Linear machines: fit against fit, command against command, and how far each primal is above the best one."""
    table = [["data, rows × features", "tool", "command s", "fit s", "primal", "above the best", "test error %"]]
    for record in records:
        best = min((tool["verdict"]["primal"] for tool in record["tools"] if tool["verdict"]), default=0.0)
        for tool in record["tools"]:
            verdict = tool["verdict"] or {}
            above = f"{(verdict['primal'] - best) / best:.1e}" if verdict and best else ""
            cells = [_number(verdict, "primal", "{:.8g}"), above, _number(verdict, "test_error", "{:.4g}", 100)]
            table.append([_case(record)[0], tool["name"], _time(tool), _time(tool, "fit_s"), *cells])
    return table
