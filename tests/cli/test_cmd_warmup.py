"""``svmkit warmup`` fills the store, so that nothing is compiled afterwards."""

from __future__ import annotations

import re
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from shell import process, svmkit, write_blobs

from svmkit import _ahead, _store, fit


@pytest.mark.slow
def test_nothing_is_compiled_after_it(tmp_path: Path) -> None:
    store = tmp_path / "store"
    done = process("warmup", SVMKIT_CACHE=str(store))
    assert (done.returncode, done.stdout) == (0, "")
    (folder,) = store.iterdir()
    assert done.stderr.rstrip().endswith(str(folder))
    made = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert made
    data = write_blobs(tmp_path / "d", classes=(1, 2, 3))
    assert process("train", "-q", data, tmp_path / "m", SVMKIT_CACHE=str(store)).returncode == 0
    assert process("predict", "-q", data, tmp_path / "m", SVMKIT_CACHE=str(store)).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == made


def test_what_is_ready_and_where_it_is_kept_is_told() -> None:
    done = svmkit("warmup")
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(
        rf"svmkit: [1-9][0-9]+ functions ready after \d+\.\d s, kept in {_store.store()}", done.stderr.splitlines()[-1]
    )


def test_quiet_says_nothing_and_byte_code_is_there() -> None:
    done = svmkit("warmup", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert Path(cache_from_source(fit.__file__)).exists()


def test_a_store_that_cannot_be_written_is_refused_before_minutes_of_compiling(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = process("warmup", "-q", SVMKIT_CACHE=str(tmp_path / "file" / "store"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"svmkit: what is compiled could not be kept: can't write {tmp_path}/file/store/")
    assert done.stderr.endswith(": Not a directory; let SVMKIT_CACHE name a folder that can be written\n")


def test_what_a_full_disk_did_not_keep_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_store, "has", lambda name: False)
    monkeypatch.setattr("svmkit._jit.Compiled.is_ready", lambda function: False)
    monkeypatch.setattr(_ahead, "start", lambda modules, processes: None)
    done = svmkit("warmup", "-q")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"svmkit: not all of what was compiled could be kept: is there room left in {_store.store()}?\n"
