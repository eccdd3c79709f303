"""``svmkit warmup`` fills the store, so that nothing is compiled afterwards."""

from __future__ import annotations

from importlib.util import cache_from_source
from pathlib import Path

import pytest
from shell import process, svmkit, write_blobs

from svmkit import fit


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


def test_quiet_says_nothing_and_byte_code_is_there() -> None:
    done = svmkit("warmup", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert Path(cache_from_source(fit.__file__)).exists()
