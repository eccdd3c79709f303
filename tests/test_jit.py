"""Compiled code: loaded without numba where it is stored, made once by processes starting together, as numba itself would."""

from __future__ import annotations

import importlib
import os
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


def test_a_store_in_use_is_not_an_old_one(tmp_path: Path) -> None:
    """Nothing is written into it any more."""
    assert run(tmp_path) == "[3.0, -1.0] True"
    (folder,) = tmp_path.iterdir()
    an_hour_ago = time.time() - 3600
    os.utime(folder, (an_hour_ago, an_hour_ago))
    assert run(tmp_path) == "[3.0, -1.0] False"
    assert time.time() - folder.stat().st_mtime < 1000


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
