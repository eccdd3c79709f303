"""``svmkit warmup`` fills the store, so that nothing is compiled afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import process, svmkit, write_blobs


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


def test_quiet_says_nothing() -> None:
    done = svmkit("warmup", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
