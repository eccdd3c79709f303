"""Machine code on disk and in memory: where compiled functions are kept between processes, and how they are loaded.

The store is ``$SVMKIT_CACHE`` (default ``$XDG_CACHE_HOME/svmkit`` or ``~/.cache/svmkit``), one folder per hash of our sources,
numba, llvmlite and CPU; the three newest stay. Files appear by rename, so processes starting cold together do no harm.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from functools import cache
from importlib.util import find_spec, source_hash
from pathlib import Path
from typing import Any

from svmkit import _link

_KEPT_STORES = 3
#: Lines of /proc/cpuinfo that tell what a CPU can do, on x86 and on ARM.
_CPU_LINES = {"vendor_id", "cpu family", "model", "stepping", "flags"} | {
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features",
}  # fmt: skip


def get(name: str) -> bytes:
    """The stored object code of function ``name``; empty where there is none."""
    folder = store()
    if folder is None:
        return b""
    try:
        return (folder / f"{name}.o").read_bytes()
    except OSError:
        return b""


def link(code: bytes, symbol: str) -> int:
    """Loads object code into the process; the address of ``symbol`` in it."""
    address = _link.load(code, symbol)
    if address is None:
        engine = _engine()
        engine.add_object_file(llvm().ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = int(engine.get_function_address(symbol))
    return address


@cache
def llvm() -> Any:
    """llvmlite's binding, with the host's target ready."""
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@cache
def target_machine() -> Any:
    """LLVM's code generator for this CPU."""
    binding = llvm()
    x86 = platform.machine() in ("x86_64", "i686")  # where MCJIT mislinks position-independent objects
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=_host_features(),
        opt=3,
        reloc="static" if x86 else "default",
        codemodel="jitdefault",
    )


@cache
def _engine() -> Any:
    binding = llvm()
    return binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())


def _host_features() -> str:
    try:
        features: str = llvm().get_host_cpu_features().flatten()
    except RuntimeError:
        return ""
    return features


def cpu_has(feature: str) -> bool:
    """Whether this machine's CPU has ``feature``, by Linux's name for it (``avx512f``, ``asimd``)."""
    return feature in _cpu().split()


@cache
def _cpu() -> str:
    """What decides the code for this CPU: Linux's words, which are had without loading LLVM, else LLVM's."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = file.read(1 << 14).split("\n\n")[0].splitlines()
    except OSError:
        lines = []
    words = "\n".join(line for line in lines if line.partition(":")[0].strip() in _CPU_LINES)
    return words or f"{llvm().get_host_cpu_name()} {_host_features()}"


@cache
def store() -> Path | None:
    """The folder of this build's machine code, made if need be; None where none can be written or read."""
    base = os.environ.get("SVMKIT_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "svmkit"
    )
    folder = Path(base) / _fingerprint()
    if folder.is_dir():
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    _drop_old_stores(folder)
    return folder


def _fingerprint() -> str:
    """Hash of all that decides the machine code: our sources (cli/ compiles nothing), numba, llvmlite, the CPU."""
    parts = [f"{sys.platform} {_cpu()}".encode()]
    root = os.path.dirname(__file__)
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted({*subfolders} - {"cli", "__pycache__"})
        for path in sorted(os.path.join(folder, name) for name in names if name.endswith(".py")):
            parts += [os.path.relpath(path, root).encode(), Path(path).read_bytes()]
    for package in ("numba", "llvmlite"):
        spec = find_spec(package)
        version = Path(spec.origin).with_name("_version.py") if spec is not None and spec.origin else None
        parts.append(version.read_bytes() if version is not None and version.exists() else package.encode())
    return source_hash(b"\0".join(parts)).hex()


def put(name: str, code: bytes) -> None:
    """Stores ``code`` for later processes; where that fails they will compile again."""
    folder = store()
    if folder is None:
        return
    path = folder / f"{name}.o"
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        temporary.write_bytes(code)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)


def _drop_old_stores(newest: Path) -> None:
    import shutil

    others = [folder for folder in newest.parent.iterdir() if folder.is_dir() and folder != newest]
    others.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in others[_KEPT_STORES - 1 :]:
        shutil.rmtree(folder, ignore_errors=True)
