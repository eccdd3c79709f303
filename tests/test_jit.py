"""The store of compiled code: hits without numba, survives rubbish, needs no home, and gives numba's own results."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from svmkit import _ahead, _jit, _native, _store
from svmkit._jit import compiled, helper
from svmkit.engine import qp, rng  # noqa: F401  (rng: for the registry)

PROGRAM = """
import platform, sys
import numpy as np
from svmkit.engine import qp
out = np.empty(2)
qp.extremes(np.array([3.0, -1.0, 2.0]), np.zeros(3), np.array([0.0, -1.0, -1.0]), np.array([1.0, 0.0, 1.0]), out)
print(out.tolist(), "numba" in sys.modules or (platform.machine() == "x86_64" and "llvmlite" in sys.modules))
"""


def run(folder: Path | str, **extra: str) -> str:
    env = {k: v for k, v in os.environ.items() if k != "SVMKIT_JIT"} | {"SVMKIT_CACHE": str(folder)} | extra
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_second_process_loads_the_stored_code_without_numba_or_llvm(tmp_path: Path) -> None:
    assert run(tmp_path) == "[3.0, -1.0] True"
    (stored,) = tmp_path.rglob("*.o")
    assert run(tmp_path) == "[3.0, -1.0] False"
    stored.write_bytes(b"")  # as a crash before the rename could never leave it, but a full disk might
    assert run(tmp_path) == "[3.0, -1.0] True"
    assert stored.stat().st_size > 0


def test_code_is_compiled_in_memory_where_the_store_cannot_be_written() -> None:
    assert run("/proc/nowhere") == "[3.0, -1.0] True"


def test_plain_numba_gives_the_same(tmp_path: Path) -> None:
    assert run(tmp_path, SVMKIT_JIT="numba") == "[3.0, -1.0] True"


def test_processes_starting_cold_together_all_work(tmp_path: Path) -> None:
    env = os.environ | {"SVMKIT_CACHE": str(tmp_path)}
    together = [subprocess.Popen([sys.executable, "-c", PROGRAM], env=env, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [p.communicate()[0].strip() for p in together]
    assert {text.rpartition(" ")[0] for text in said} == {"[3.0, -1.0]"}
    assert "[3.0, -1.0] True" in said  # one has compiled; others had no need to, unless they waited for too long
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".o"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store for this process."""
    monkeypatch.setattr(_store, "store", lambda: tmp_path)
    return tmp_path


def test_code_is_compiled_in_memory_where_the_way_to_the_store_may_not_be_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a service whose home belongs to somebody else: then Path.is_dir raises, before Python 3.13."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    _store.store.cache_clear()
    monkeypatch.setattr(_store, "_folder", lambda: Path("/nowhere/svmkit"))
    monkeypatch.setattr(Path, "is_dir", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert _store.store() is None
    _store.store.cache_clear()


def test_code_is_compiled_in_memory_where_the_store_is_read_only_by_now(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container's image: there nothing can be unlinked, not even what is not there."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", refuse)
    with _store.claimed("f", 0.0) as mine:
        assert mine
    monkeypatch.setattr(Path, "write_bytes", refuse)
    _store.put("f", b"machine code")
    assert not _store.get("f")


def test_a_user_without_a_home_has_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SVMKIT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as where HOME is not set, and the user has no entry
    for cached in (_store._folder, _store.store):
        cached.cache_clear()
    assert _store.store() is None
    assert "let SVMKIT_CACHE name a folder" in (_store.unwritable() or "")
    for cached in (_store._folder, _store.store):
        cached.cache_clear()


def test_numba_takes_over_where_its_inner_works_are_others(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(*_: object) -> None:
        raise AttributeError("'CPUCodeLibrary' object has no attribute '_final_module'")

    monkeypatch.setattr(_jit, "_compile", changed)
    add = _adder(_twice)
    assert add(np.array([1.0, 2.0]), 2) == 6.0


def test_numbas_variables_do_not_change_what_is_stored(tmp_path: Path) -> None:
    found = []
    for number, more in enumerate(({}, {"NUMBA_BOUNDSCHECK": "1", "NUMBA_DEBUGINFO": "1"}, {"NUMBA_DISABLE_JIT": "1"})):
        assert run(tmp_path / str(number), **more) == "[3.0, -1.0] True"
        (stored,) = (tmp_path / str(number)).rglob("*.o")
        found.append(stored.read_bytes())
    assert found[0] == found[1] == found[2]


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """As of users that services run as."""
    assert run("", HOME=str(tmp_path / "none"), XDG_CACHE_HOME="") == "[3.0, -1.0] True"
    assert not list(tmp_path.iterdir())


def test_a_store_that_may_not_be_listed_is_not_called_empty(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _store.is_empty()

    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert not _store.is_empty()


def test_byte_code_in_place_of_sources_has_stores_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one version would run the code of another. In a zip neither can be read."""
    found = []
    for content in (b"one", b"two", None):
        monkeypatch.setattr(_store, "__file__", str(tmp_path / str(content) / "_store.pyc"))
        if content is not None:
            (tmp_path / str(content) / "engine").mkdir(parents=True)
            (tmp_path / str(content) / "engine" / "qp.pyc").write_bytes(content)
        found.append(_store._fingerprint())
    assert None not in found[:2]
    assert found[0] != found[1]
    assert found[2] is None
    _store._folder.cache_clear()
    assert _store._folder() is None
    assert "cannot be read" in (_store.unwritable() or "")
    _store._folder.cache_clear()


def test_a_function_is_claimed_by_one_at_a_time(store: Path) -> None:
    with _store.claimed("f", 0.0) as first:
        assert first
        with _store.claimed("f", 0.02) as second, _store.claimed("g", 0.0) as other:
            assert not second
            assert other
    assert not list(store.iterdir())
    with _store.claimed("f", 0.0) as again:
        assert again


def test_claims_end_with_their_holder(store: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from svmkit import _store; _store.store = lambda: Path(sys.argv[1])\n"
        "with _store.claimed('f', 0.0) as mine: print(mine, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program, store], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with _store.claimed("f", 0.0) as mine:
            assert not mine
        holder.kill()
    with _store.claimed("f", 0.0) as mine:
        assert mine


@pytest.mark.parametrize("folder", [None, Path("/proc/nowhere")])
def test_without_a_place_for_claims_all_succeed(folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_store, "store", lambda: folder)
    with _store.claimed("f", 0.0) as first, _store.claimed("f", 0.0) as second:
        assert first
        assert second


@pytest.mark.parametrize("damage", ["cut by a byte", "a byte changed", "cut to nothing", "other text"])
def test_damaged_code_is_none(store: Path, damage: str) -> None:
    _store.put("f", b"machine code")
    assert _store.get("f") == b"machine code"
    whole = (store / "f.o").read_bytes()
    damaged = {
        "cut by a byte": whole[:-1],
        "a byte changed": b"M" + whole[1:],
        "cut to nothing": b"",
        "other text": b"hello, world",
    }
    (store / "f.o").write_bytes(damaged[damage])
    assert _store.get("f") == b""
    _store.put("f", b"machine code")
    assert _store.get("f") == b"machine code"


def test_code_that_another_process_compiles_is_waited_for(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function = compiled("i8(i8)", name="waited_for")(_increment)
    function.__module__ = "svmkit.tests"
    code = _jit._compile(function)
    monkeypatch.setattr(_jit, "_compile", lambda function: pytest.fail("compiled once more"))
    with _store.claimed(function.name, 0.0):
        assert function.load(wait=False) is None
        assert not function.is_ready()
        threading.Timer(0.1, _store.put, (function.name, code)).start()
        threading.Timer(0.2, (store / f"{function.name}.lock").unlink).start()
        done: list[int] = []
        waiting = threading.Thread(target=lambda: done.append(function(41)))
        waiting.start()
        waiting.join(0.3)
        assert not done
    waiting.join(20)
    assert done == [42]
    assert function.is_ready()


def test_what_is_made_ahead_first_is_there() -> None:
    for name in _ahead.FIRST:
        importlib.import_module(name.rpartition(".")[0])
    assert {*_ahead.FIRST} <= {function.name for function in _jit.registry()}


def test_what_this_cpu_cannot_run_is_not_made_ahead() -> None:
    """LLVM ends the process over an instruction that is not there."""
    marked = _jit.compiled("i8(i8)", name="never", needs="no such feature")(_increment)
    try:
        assert marked not in set(_jit.registry())
        assert _jit.compiled("i8(i8)", name="always")(_increment) in set(_jit.registry())
    finally:
        _jit._REGISTRY[:] = [function for function in _jit._REGISTRY if function.function is not _increment]


def _increment(i: int) -> int:
    return i + 1


@pytest.mark.parametrize("stdin", [subprocess.PIPE, subprocess.DEVNULL], ids=["open", "closed"])
def test_a_second_process_compiles_ahead_while_the_first_lives(stdin: int, tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "SVMKIT_JIT"} | {"SVMKIT_CACHE": str(tmp_path)}
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "numpy.py").write_text("raise SystemExit('a file of the user was run')\n")
    with subprocess.Popen(_ahead.command(["svmkit.engine.rng"]), stdin=stdin, env=env, cwd=tmp_path / "here") as second:
        assert second.wait() == 0
    names = {path.stem for path in tmp_path.rglob("*.o")}
    imported = ("svmkit.engine.rng.", "svmkit.gather.")
    expected = {function.name for function in _jit.registry() if function.name.startswith(imported)}
    assert names == (expected if stdin == subprocess.PIPE else set())


def folder_of_age(folder: Path, age: int, file: str) -> Path:
    """A folder with one file, the older the smaller ``age``."""
    (folder / file).parent.mkdir(parents=True)
    (folder / file).write_bytes(b"")
    os.utime(folder, (1_000_000 + age, 1_000_000 + age))
    return folder


def test_stores_that_were_not_used_for_longest_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ("svmkit.engine.qp.f.o", "engine_0/qp.f-1.py311.nbi", "svmkit.engine.qp.f.o.17.18", "svmkit.a.o", "svmkit.a.o")
    stores = [folder_of_age(tmp_path / f"{age:016x}", age, file) for age, file in enumerate(files)]
    monkeypatch.setattr(_store, "_KEPT_STORES", 3)
    _store._drop_old_stores(tmp_path / "newest")
    assert [store.exists() for store in stores] == [False, False, False, True, True]


def test_a_store_in_use_is_not_an_old_one(tmp_path: Path) -> None:
    """Nothing is written into it any more."""
    assert run(tmp_path) == "[3.0, -1.0] True"
    (folder,) = tmp_path.iterdir()
    an_hour_ago = time.time() - 3600
    os.utime(folder, (an_hour_ago, an_hour_ago))
    assert run(tmp_path) == "[3.0, -1.0] False"
    assert time.time() - folder.stat().st_mtime < 1000


def test_stores_that_another_process_drops_meanwhile_end_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for age in range(4):
        folder_of_age(tmp_path / f"{age:016x}", age, "svmkit.a.o")
    monkeypatch.setattr(_store, "_is_store", lambda folder: shutil.rmtree(folder) is None)
    _store._drop_old_stores(tmp_path / "newest")


@helper()
def _twice(x: float) -> float:
    return 2.0 * x


def _adder(function: object) -> object:
    @compiled("f8(f8[:], i8)")
    def add(values: np.ndarray, n: int) -> float:
        total = 0.0
        for i in range(n):
            total += function(values[i])  # type: ignore[operator]
        return total

    return add


def test_helpers_are_seen_through_globals_and_closures() -> None:
    add = _adder(_twice)
    assert add(np.array([1.0, 2.5, 10.0]), 2) == 7.0  # type: ignore[operator]


@pytest.mark.parametrize(
    "wrong", [np.zeros(3, np.float32), np.zeros((3, 1)), np.zeros(6)[::2]], ids=["dtype", "dimensions", "strides"]
)
def test_arrays_of_another_type_or_layout_are_refused(wrong: np.ndarray) -> None:
    right = np.zeros(3)
    with pytest.raises(TypeError, match="C-contiguous float64"):
        qp.extremes(wrong, right, right, right, right)
    with pytest.raises(TypeError, match="takes 5 arguments"):
        qp.extremes(right)


def test_unknown_types_in_a_signature_are_refused() -> None:
    with pytest.raises(TypeError, match="unknown type 'f2"):
        compiled("void(f2[:])")(lambda x: None)


INTERRUPTED = """
import os, signal, threading
import numpy as np
from svmkit import _jit
from svmkit.engine import qp
_jit.on_compile(lambda name: threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start())
try:
    qp.extremes(*[np.zeros(2)] * 5)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_while_compiling_is_held_and_not_lost(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "SVMKIT_JIT"} | {"SVMKIT_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


def test_time_spent_compiling_counts_from_its_begin_and_once() -> None:
    before = _jit.seconds_compiling()
    with _jit._counted():
        time.sleep(0.01)
        during = _jit.seconds_compiling()
        assert during >= before + 0.01
    after = _jit.seconds_compiling()
    assert after >= during
    assert _jit.seconds_compiling() == after


def test_the_address_of_an_array_is_what_numpy_says_it_is() -> None:
    whole = np.arange(12.0)
    frozen = whole.copy()
    frozen.flags.writeable = False
    for array in (whole, whole[5:], frozen, np.empty(0), np.zeros((3, 4), np.float32), np.zeros(2, np.uint8)):
        assert _native._address(array) == _native._described_address(array) == array.ctypes.data
