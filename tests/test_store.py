"""Where compiled code is kept: whose folder that is, what its name depends on, and what is left when something fails."""

from __future__ import annotations

import errno
import fcntl
import os
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


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store for this process."""
    monkeypatch.setattr(_store, "store", lambda: tmp_path)
    return tmp_path


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
    monkeypatch.setattr(_store, "_cpu", lambda: "another")
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
