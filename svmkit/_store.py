"""Machine code on disk and in memory: where compiled functions are kept between processes, and how they are linked.

The store is ``$SVMKIT_CACHE`` (default ``$XDG_CACHE_HOME/svmkit`` or ``~/.cache/svmkit``), one folder per hash of our sources,
numba, llvmlite and CPU; the three newest stay. Files appear by rename, so processes starting cold together do no harm.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import threading
from pathlib import Path
from typing import Any

_KEPT_STORES = 3
_state: dict[str, Any] = {}


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
    engine = _engine()
    engine.add_object_file(llvm().ObjectFileRef.from_data(code))
    engine.finalize_object()
    address: int = engine.get_function_address(symbol)
    return address


def llvm() -> Any:
    """llvmlite's binding, with the host's target ready."""
    if "binding" not in _state:
        import llvmlite.binding as binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        _state["binding"] = binding
    return _state["binding"]


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


def _engine() -> Any:
    if "engine" not in _state:
        binding = llvm()
        _state["engine"] = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())
    return _state["engine"]


def _host_features() -> str:
    try:
        features: str = llvm().get_host_cpu_features().flatten()
    except RuntimeError:
        return ""
    return features


def cpu_has(feature: str) -> bool:
    """Whether this machine's CPU has ``feature``, by LLVM's name for it (``avx512f``, ``neon``)."""
    if "features" not in _state:
        _state["features"] = set(_host_features().split(","))
    return f"+{feature}" in _state["features"]


def store() -> Path | None:
    """The folder of this build's machine code, made if need be; None where none can be written or read."""
    if "store" not in _state:
        _state["store"] = _find_store()
    store: Path | None = _state["store"]
    return store


def _find_store() -> Path | None:
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
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith("cli/"):
            digest.update(name.encode() + path.read_bytes())
    from importlib.util import find_spec

    for package in ("numba", "llvmlite"):
        spec = find_spec(package)
        version = Path(spec.origin).with_name("_version.py") if spec is not None and spec.origin else None
        digest.update(version.read_bytes() if version is not None and version.exists() else package.encode())
    binding = llvm()
    digest.update(f"{sys.platform} {binding.get_host_cpu_name()} {_host_features()}".encode())
    return digest.hexdigest()[:20]


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
