"""The store of machine code: where compiled functions are kept between processes.

It is ``$SVMKIT_CACHE`` (default ``$XDG_CACHE_HOME/svmkit`` or ``~/.cache/svmkit``), one folder per hash of our sources,
numba, llvmlite and CPU; those used last stay. Files appear by rename, so processes starting cold together do no harm, and each
function is claimed before it is compiled, so they share the work.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec, source_hash
from pathlib import Path
from typing import TextIO

from svmkit._llvm import cpu

#: Stores that stay, each of some MB: a home may serve several kinds of CPU and versions of svmkit, each used now and then.
_KEPT_STORES = 16
#: How old a store's time of last use may be.
_RECENTLY_S = 60
#: Behind the code in its file: to run what a full disk or a crash has left of it ends the process.
_SUM_BYTES = 4


def get(name: str) -> bytes:
    """The stored object code of function ``name``; empty where there is none, or what there is has been damaged."""
    folder = store()
    if folder is None:
        return b""
    try:
        content = (folder / f"{name}.o").read_bytes()
    except OSError:
        return b""
    code, sum_of_it = content[:-_SUM_BYTES], content[-_SUM_BYTES:]
    return code if sum_of_it == _checksum(code) else b""


def _checksum(code: bytes) -> bytes:
    return zlib.crc32(code).to_bytes(_SUM_BYTES, "little")


def has(name: str) -> bool:
    """Whether the object code of function ``name`` is stored."""
    folder = store()
    return folder is not None and (folder / f"{name}.o").exists()


def is_empty() -> bool:
    """Whether there is a store that can be written, and nothing in it yet."""
    folder = store()
    try:
        return folder is not None and os.access(folder, os.W_OK) and not any(folder.iterdir())
    except OSError:  # it may not be listed, or is gone
        return False


@cache
def store() -> Path | None:
    """The folder of this build's machine code, made if need be; None where none can be written or read."""
    folder = _folder()
    if folder is None:
        return None
    if os.path.isdir(folder):  # Path.is_dir raises where a parent may not be searched
        with suppress(OSError):  # its time is that of the last use, for _drop_old_stores
            if time.time() - folder.stat().st_mtime > _RECENTLY_S:
                os.utime(folder)
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    _drop_old_stores(folder)
    return folder


@cache
def _folder() -> Path | None:
    """Where this build's machine code should lie; None for a user who has no home, and where our sources are out of reach."""
    fingerprint = _fingerprint()
    if fingerprint is None:
        return None
    base = os.environ.get("SVMKIT_CACHE")
    if not base:
        home = os.path.expanduser("~")
        caches = os.environ.get("XDG_CACHE_HOME") or (os.path.join(home, ".cache") if os.path.isdir(home) else None)
        if caches is None:
            return None
        base = os.path.join(caches, "svmkit")
    return Path(base) / fingerprint


def unwritable() -> str | None:
    """Why nothing can be added to the store, in words that name its folder and the way out; None where it can be."""
    way_out = "let SVMKIT_CACHE name a folder that can be written"
    folder = _folder()
    if folder is None:
        if _fingerprint() is None:
            return "svmkit's own files cannot be read, and code for one version must not serve another; unpack it"
        return f"there is no home to keep compiled code in; {way_out}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        reason = None if os.access(folder, os.W_OK) else "Permission denied"
    except OSError as error:
        reason = error.strerror
    return None if reason is None else f"can't write {folder}: {reason}; {way_out}"


def _fingerprint() -> str | None:
    """Hash of all that decides the machine code: our sources (cli/ compiles nothing), numba, llvmlite, the CPU.

    Where byte code stands in the place of sources it is hashed. None where there are neither, as in a zip.
    """
    parts = []
    root = os.path.dirname(__file__)
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted({*subfolders} - {"cli", "__pycache__"})
        for path in sorted(os.path.join(folder, name) for name in names if name.endswith((".py", ".pyc"))):
            parts += [os.path.relpath(path, root).encode(), Path(path).read_bytes()]
    if not parts:
        return None
    parts.append(f"{sys.platform} {cpu()}".encode())
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
        temporary.write_bytes(code + _checksum(code))
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def claimed(name: str, wait_s: float) -> Iterator[bool]:
    """Inside the block other processes leave function ``name`` to this one; False if one of them had it for all of ``wait_s``.

    The claim is a lock on a file, so it ends with the process that holds it. Where no file can be locked every claim succeeds,
    and processes do the same work side by side.
    """
    folder = store()
    try:
        file = None if folder is None else open(folder / f"{name}.lock", "w")  # noqa: SIM115  (closed below)
    except OSError:
        file = None
    if file is None:
        yield True
        return
    with file:
        mine = _locked(file, wait_s)
        try:
            yield mine
        finally:
            if mine:
                with suppress(OSError):
                    Path(file.name).unlink(missing_ok=True)


def _locked(file: TextIO, wait_s: float) -> bool:
    import fcntl

    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.01)
        except OSError:  # a file system without locks
            return True


def _drop_old_stores(newest: Path) -> None:
    """Deletes stores of other builds but the newest; where another process does so too, or something fails, they stay."""
    import shutil

    with suppress(OSError):
        others = [folder for folder in newest.parent.iterdir() if folder != newest and _is_store(folder)]
        others.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
        for folder in others[_KEPT_STORES - 1 :]:
            shutil.rmtree(folder, ignore_errors=True)


def _is_store(folder: Path) -> bool:
    """Whether a folder is certainly ours: named as a store is, and in it our files or those of numba's own cache, no others."""
    if len(folder.name) != 16 or not set(folder.name) <= set("0123456789abcdef"):
        return False
    names = [name for _, _, names in os.walk(folder) for name in names]
    return bool(names) and all(name.startswith("svmkit.") or name.endswith((".nbi", ".nbc")) for name in names)
