"""Where compiled code is kept: whose folder that is, what its name depends on, and what is left when something fails."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from svmkit import _store


@pytest.fixture
def fresh() -> Iterator[None]:
    """The folders are looked for anew, during the test and behind it."""
    for cached in (_store._folder, _store.store):
        cached.cache_clear()
    yield
    for cached in (_store._folder, _store.store):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SVMKIT_CACHE": "{0}/own", "XDG_CACHE_HOME": "{0}/xdg"}, "own"),
        ({"XDG_CACHE_HOME": "{0}/xdg", "HOME": "{0}"}, "xdg/svmkit"),
        ({"HOME": "{0}"}, ".cache/svmkit"),
    ],
    ids=["SVMKIT_CACHE", "XDG_CACHE_HOME", "HOME"],
)
@pytest.mark.usefixtures("fresh")
def test_the_place_that_was_named_is_taken(
    variables: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SVMKIT_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text.format(tmp_path))
    folder = _store.store()
    assert folder is not None
    assert folder.parent == tmp_path / expected
    assert folder.is_dir()


def test_code_for_another_cpu_has_a_store_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A home may be on several machines, and what one of them cannot run ends the process."""
    here = _store._fingerprint()
    monkeypatch.setattr(_store, "cpu", lambda: "another")
    assert _store._fingerprint() != here


def test_the_command_line_compiles_nothing_and_has_no_part_in_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor has byte code beside sources, which appears as they are first run."""
    monkeypatch.setattr(_store, "__file__", str(tmp_path / "_store.py"))
    found = []
    for name in ("engine/qp.py", "cli/train.py", "__pycache__/qp.pyc", "engine/__pycache__/qp.pyc", "engine/water.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
        found.append(_store._fingerprint())
    assert found[0] == found[1] == found[2] == found[3] != found[4]


def test_folders_that_are_no_stores_are_never_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names a home of theirs as the place for compiled code keeps what is in it."""
    kept = [("Music", "svmkit.o"), ("0" * 16, "photo.jpg"), ("1" * 16, "in/photo.jpg"), ("2" * 15, "svmkit.a.o")]
    kept += [("x" * 16, "svmkit.a.o"), ("newest", "svmkit.a.o")]
    for name, file in [*kept, ("3" * 16, "svmkit.a.o")]:
        (tmp_path / name / file).parent.mkdir(parents=True)
        (tmp_path / name / file).write_bytes(b"")
    (tmp_path / ("4" * 16)).mkdir()
    monkeypatch.setattr(_store, "_KEPT_STORES", 1)
    _store._drop_old_stores(tmp_path / "newest")
    assert sorted(os.listdir(tmp_path)) == sorted([name for name, _ in kept] + ["4" * 16])


def test_the_newest_store_is_not_among_those_that_may_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though by its time it is older than others, as where clocks differ."""
    for number in range(3):
        folder = tmp_path / f"{number:016x}"
        folder.mkdir()
        (folder / "svmkit.a.o").write_bytes(b"")
        os.utime(folder, (1_000_000 + number, 1_000_000 + number))
    monkeypatch.setattr(_store, "_KEPT_STORES", 2)
    _store._drop_old_stores(tmp_path / f"{0:016x}")
    assert sorted(os.listdir(tmp_path)) == [f"{number:016x}" for number in (0, 2)]


def test_a_store_that_cannot_be_written_is_not_called_empty(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _store.is_empty()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not _store.is_empty()


def test_what_cannot_take_its_place_is_not_left_beside_it(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    _store.put("f", b"machine code")
    assert not list(store.iterdir())


def test_where_nothing_can_be_locked_every_claim_succeeds(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with _store.claimed("f", 60.0) as first, _store.claimed("f", 60.0) as second:
        assert first
        assert second


@pytest.mark.usefixtures("fresh")
def test_there_is_no_store_where_the_way_to_it_may_not_be_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a service whose home belongs to somebody else: then Path.is_dir raises, before Python 3.13."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(_store, "_folder", lambda: Path("/nowhere/svmkit"))
    monkeypatch.setattr(Path, "is_dir", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert _store.store() is None
    _store.store.cache_clear()


def test_a_store_that_is_read_only_by_now_takes_nothing_and_fails_nowhere(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container's image: there nothing can be unlinked, not even what is not there."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", refuse)
    with _store.claimed("f", 0.0) as mine:
        assert mine
    monkeypatch.setattr(Path, "write_bytes", refuse)
    _store.put("f", b"machine code")
    assert not _store.get("f")


@pytest.mark.usefixtures("fresh")
def test_a_user_without_a_home_has_no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SVMKIT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as where HOME is not set, and the user has no entry
    assert _store.store() is None
    assert "let SVMKIT_CACHE name a folder" in (_store.unwritable() or "")
    for cached in (_store._folder, _store.store):
        cached.cache_clear()


def test_a_store_that_may_not_be_listed_is_not_called_empty(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _store.is_empty()

    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert not _store.is_empty()


@pytest.mark.usefixtures("fresh")
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


def test_stores_that_another_process_drops_meanwhile_end_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for age in range(4):
        folder_of_age(tmp_path / f"{age:016x}", age, "svmkit.a.o")
    monkeypatch.setattr(_store, "_is_store", lambda folder: shutil.rmtree(folder) is None)
    _store._drop_old_stores(tmp_path / "newest")
