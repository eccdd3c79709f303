"""The order of the rooms: imports go one way, nothing below the command line prints, numba stays behind its door."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "svmkit"

#: Rooms that neither import io nor are imported by it: they meet in cli alone.
FITTING = [
    *("pairs", "warm", "trained", "assembly", "schedule", "mapped", "training", "fit", "small_folds", "folds"),
    *("machines", "stream", "active", "recertify"),
]

#: Top to bottom: a module imports only from rooms above its own. A folder is one room.
ROOMS = [
    *(
        "__init__",
        "signals",
        "errors",
        "_link",
        "_llvm",
        "_store",
        "_native",
        "_jit",
        "_ahead",
        "config",
        "cpu_quota",
        "parallel",
        "gather",
        "data",
        "features",
        "turns",
    ),
    *("clock", "problem", "trace", "engine", "certificate", "maps", "solvers"),
    *("model", "calibrate", "metrics", "score", "scaling", "reduced", "compress"),
    "matching",
    *FITTING,
    *("io", "cli", "__main__"),
]

#: The files of a folder that its other files may import.
SHARED = {
    "engine": {
        "llvm",
        "vector",
        "inner",
        "columns",
        "table",
        "tiled",
        "binary",
        "pixels",
        "words",
        "sorted",
        "apart",
        "linear",
        "layouts",
        "packed",
        "rounding",
        "kernels",
        "reference",
        "row_cache",
    }
    | {
        "rng",
        "cholesky",
        "lapack",
        "level",
        "online",
        "slots",
        "qp",
        "active",
        "prefetch",
        "larger",
        "by_need",
        "space",
        "centred",
        "subgradient",
        "kept_rows",
    },
    "maps": {"landmarks", "stored"},
    "solvers": {
        "base",
        "newton",
        "lasvm_selection",
        "newton_ascent",
        "newton_point",
        "newton_samples",
        "newton_state",
        "pegasos_linear",
        "pegasos_stream",
        "pegasos_violators",
        "perceptron_stream",
        "sdca_linear",
        "smo",
        "smo_alike",
        "smo_blocks",
        "smo_few",
        "smo_interior",
        "smo_newton",
        "smo_pace",
        "smo_state",
        "smo_together",
        "smo_w",
        "looks",
        "stops",
    },
    "io": {
        "descriptors",
        "inputs",
        "outputs",
        "libsvm_data",
        "sparse_text",
        "sparse_lines",
        "numbers_in",
        "characters",
        "digits",
        "numbers_out",
        "texts",
    },
    "cli": {"options", "files", "interrupt", "progress", "report", "streams", "cold_start", "scaled_text", "compat"}
    | {"train_batch", "train_folds", "train_init", "train_pool", "train_stream", "approx_map", "approx_model", "approx_report"}
    | {"comparison", "comparison_picture", "pictures"},
}

MODULES = sorted(PACKAGE.rglob("*.py"))


def room_and_file(dotted: str) -> tuple[str, str]:
    """``solvers.smo`` → (solvers, smo); ``data`` → (data, "")."""
    room, _, rest = dotted.partition(".")
    return room, rest.partition(".")[0]


def dotted_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every module imported anywhere in the file, at the top, in a function, for type checking, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide where they go"
            for alias in node.names:
                inside = (PACKAGE.parent / (node.module or "").replace(".", "/") / alias.name).with_suffix("")
                is_module = inside.is_dir() or inside.with_suffix(".py").exists()
                yield (f"{node.module}.{alias.name}" if is_module else node.module or ""), node.lineno


def objection(importer: str, imported: str) -> str | None:
    """Why ``importer`` may not import ``imported`` (both dotted, below svmkit), or None."""
    room, file = room_and_file(importer)
    other, other_file = room_and_file(imported)
    if room == other:
        if room == file == "" or other_file in SHARED.get(room, set()) | {"", file}:
            return None
        return f"files of {room}/ share only {', '.join(sorted(SHARED.get(room, set())))}"
    if "io" in (room, other) and {room, other} & set(FITTING):
        return f"{room} and {other} meet only in cli"
    return None if ROOMS.index(other) < ROOMS.index(room) else f"{other} stands below {room}"


@pytest.mark.parametrize("path", MODULES, ids=dotted_name)
def test_module_keeps_to_its_room(path: Path) -> None:
    name, tree = dotted_name(path), ast.parse(path.read_text("utf-8"))
    assert room_and_file(name)[0] in ROOMS, f"{name} has no place in the order of rooms"
    faults = []
    for imported, line in imports(tree):
        inside = imported.removeprefix("svmkit").lstrip(".")
        if imported.partition(".")[0] == "svmkit" and (why := objection(name, inside or "__init__")):
            faults.append(f"line {line} imports {imported}: {why}")
    assert not faults, f"{path.relative_to(PACKAGE.parent)}: " + "; ".join(faults)


def test_nothing_is_shared_that_nobody_imports() -> None:
    needed: set[tuple[str, str]] = set()
    for path in MODULES:
        room, file = room_and_file(dotted_name(path))
        inside = (name.removeprefix("svmkit.") for name, _ in imports(ast.parse(path.read_text("utf-8"))))
        needed |= {(room, other) for there, other in map(room_and_file, inside) if there == room and other != file}
    assert {(room, file) for room, files in SHARED.items() for file in files} <= needed


@pytest.mark.parametrize("path", [p for p in MODULES if p.relative_to(PACKAGE).parts[0] != "cli"], ids=dotted_name)
def test_nothing_below_the_command_line_prints(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        assert name not in ("print", "stdout", "stderr"), f"{path.relative_to(PACKAGE.parent)}, line {node.lineno}: {name}"


@pytest.mark.parametrize("path", [p for p in MODULES if p.name != "_jit.py"], ids=dotted_name)
def test_numba_is_imported_only_to_make_an_intrinsic(path: Path) -> None:
    assert not numba_lines(path.read_text("utf-8"))


@pytest.mark.parametrize("path", [p for p in MODULES if p.name != "parallel.py"], ids=dotted_name)
def test_one_file_knows_how_many_cores_there_are(path: Path) -> None:
    assert not {"sched_getaffinity", "cpu_count", "process_cpu_count"} & set(re.findall(r"\w+", path.read_text("utf-8")))


def numba_lines(source: str) -> list[int]:
    """Lines that import numba at the top of a module, or anywhere in one that makes no intrinsics."""
    tree = ast.parse(source)
    makers = {"intrinsic", "for_widths"}
    makes = any(isinstance(n, ast.ImportFrom) and makers & {alias.name for alias in n.names} for n in tree.body)
    inside = {line for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and makes for _, line in imports(n)}
    return [line for name, line in imports(tree) if name.partition(".")[0] == "numba" and line not in inside]


def test_the_rules_can_fail() -> None:
    assert objection("data", "problem") is not None
    assert objection("solvers.smo", "solvers.pair") is not None
    assert objection("fit", "io.libsvm_data") is not None
    assert objection("io.libsvm_data", "fit") is not None
    assert objection("solvers.smo", "solvers.base") is None
    assert objection("cli.train", "fit") is None
    inside = "def f():\n    import numba\n"
    assert numba_lines(inside) == [2]
    assert numba_lines(f"from svmkit._jit import intrinsic\n{inside}") == []
    assert numba_lines("from svmkit._jit import intrinsic\nimport numba") == [2]
