"""Output that is whole or not there at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from svmkit.cli import files
from svmkit.errors import OutputError
from svmkit.io.outputs import atomic_output, check_writable, would_overwrite


def run_python(code: str, *args: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", code, *args], input=stdin, capture_output=True, timeout=60, check=False)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(path: Path | str, content: bytes) -> None:
    with atomic_output(str(path)) as output:
        output.write(content)


def test_file_appears_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with atomic_output(str(path)) as output:
        output.write(b"one\n")
        output.write(b"two\n")
        assert not path.exists()
    assert (path.read_bytes(), names(tmp_path)) == (b"one\ntwo\n", ["model"])


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no /dev/shm")
def test_a_file_in_memory_is_a_file_like_others() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        test_file_appears_only_at_the_end(Path(folder))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_old_file_stays_whatever_goes_wrong(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"old")

    def fail() -> None:
        with atomic_output(str(path)) as output:
            output.write(b"new" * 100000)
            raise error

    with pytest.raises(error):
        fail()
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["model"])


@pytest.mark.parametrize("size", [100_000, 10_000_000])
def test_full_disk_leaves_the_old_file(tmp_path: Path, size: int) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"old")
    code = """if True:
        import resource, sys
        from svmkit.errors import OutputError
        from svmkit.io.outputs import atomic_output
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        try:
            with atomic_output(sys.argv[1]) as output:
                for _ in range(10):
                    output.write(b"x" * (int(sys.argv[2]) // 10))
        except OutputError as error:
            print(error)
    """
    done = run_python(code, str(path), str(size))
    assert done.stdout.decode() == f"can't write {path}: File too large; nothing was overwritten\n"
    assert (done.stderr, path.read_bytes(), names(tmp_path)) == (b"", b"old", ["model"])


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_full_device(size: int) -> None:
    with pytest.raises(OutputError) as caught:
        write("/dev/full", b"x" * size)
    assert str(caught.value) == "can't write /dev/full: No space left on device"


def test_permissions_are_kept_or_follow_the_umask(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"")
    old.chmod(0o640)
    umask = os.umask(0o027)
    try:
        write(old, b"a")
        write(new, b"b")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    old.chmod(0o755)
    write(old, b"a")
    assert stat.S_IMODE(old.stat().st_mode) == 0o755


def test_a_new_content_has_no_right_to_run_as_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"")
    path.chmod(0o4755)
    write(path, b"a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("refused", "asked", "mode"),
    [
        ([], [(12, 34)], 0o664),
        ([12], [(12, 34), (-1, 34)], 0o664),
        ([12, -1], [(12, 34), (-1, 34)], 0o604),
    ],
)
def test_owner_and_group_are_kept_or_no_other_group_gets_their_permissions(
    refused: list[int], asked: list[tuple[int, int]], mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what is asked for: to give files away takes rights that tests need not have."""
    path, given = tmp_path / "model", list[tuple[int, int]]()
    path.write_bytes(b"")
    path.chmod(0o664)
    real = os.stat

    def of_others(name: str, **options: Any) -> Any:
        found = real(name, **options)
        return SimpleNamespace(st_mode=found.st_mode, st_uid=12, st_gid=34) if str(name) == str(path) else found

    def give(name: str, owner: int, group: int) -> None:
        given.append((owner, group))
        if owner in refused:
            raise PermissionError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", of_others)
        patched.setattr(os, "chown", give)
        write(path, b"a")
    assert given == asked
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("exists", [True, False])
def test_symbolic_link_stays_and_its_target_is_written(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target", tmp_path / "link"
    if exists:
        target.write_bytes(b"old")
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink()
    assert (target.read_bytes(), names(target.parent)) == (b"new", ["target"])


def test_devices_and_fifos_are_written_directly(tmp_path: Path) -> None:
    text = b"1 1:0.5 3:2\n-1 2:1\n" * 500
    write("/dev/null", text)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    fifo, got = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    write(fifo, text)
    reader.join()
    assert got == [text]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


@pytest.mark.parametrize("path", ["-", "/dev/stdout", "/dev/fd/1"])
@pytest.mark.parametrize("into", ["pipe", "file", "end of a file"])
def test_standard_output(tmp_path: Path, path: str, into: str) -> None:
    """Which is written to as it stands: what the shell appends to keeps what it has."""
    code = "import sys; from svmkit.io.outputs import atomic_output\nwith atomic_output(sys.argv[1]) as f: f.write(b'text')"
    before = b"before\n" if into == "end of a file" else b""
    (tmp_path / "out").write_bytes(before)
    with open(tmp_path / "out", "ab" if before else "wb") as file:
        stdout = subprocess.PIPE if into == "pipe" else file
        done = subprocess.run(
            [sys.executable, "-c", code, path], stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.stderr == b""
    assert (done.stdout if into == "pipe" else (tmp_path / "out").read_bytes()) == before + b"text"
    assert names(tmp_path) == ["out"]


def test_reader_of_a_pipe_that_has_gone_is_no_output_error() -> None:
    read, wrote = os.pipe()
    os.close(read)
    code = """if True:
        from svmkit.io.outputs import atomic_output
        try:
            with atomic_output("-") as output:
                output.write(b"x")
        except BrokenPipeError:
            raise SystemExit(7)
    """
    done = subprocess.run([sys.executable, "-c", code], stdout=wrote, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(wrote)
    assert (done.returncode, done.stderr) == (7, b"")


def test_check_writable_says_why_not(tmp_path: Path) -> None:
    check_writable(str(tmp_path / "new"))
    check_writable("-")
    check_writable("/dev/null")
    assert names(tmp_path) == []
    (tmp_path / "file").write_bytes(b"")
    cases = [
        (tmp_path, "it is a folder"),
        (tmp_path / "none" / "model", f"there is no folder {tmp_path}/none"),
        (tmp_path / "file" / "model", "there is no folder"),
        (tmp_path / "loop", "leads back to itself"),
        (tmp_path / ("x" * 256), os.strerror(errno.ENAMETOOLONG)),
        ("", "no file name"),
    ]
    (tmp_path / "loop").symlink_to("loop")
    for path, why in cases:
        with pytest.raises(OutputError, match=why):
            check_writable(str(path))
        with pytest.raises(OutputError, match=why):
            write(path, b"")


def test_nothing_can_be_written_to_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for check in (check_writable, lambda path: files.check_output(path, str(tmp_path / "data"), "other")):
        with pytest.raises(OutputError, match="can't write new: the current folder no longer exists"):
            check("new")


def test_a_name_that_ends_like_a_folders_is_none_of_a_file(tmp_path: Path) -> None:
    for path in (f"{tmp_path}/new/", f"{tmp_path}/old/"):
        (tmp_path / "old").write_bytes(b"old")
        with pytest.raises(OutputError, match="it is a folder; name a file in it"):
            check_writable(path)
    assert (tmp_path / "old").read_bytes() == b"old"


def test_a_file_may_be_written_where_none_may_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As LIBSVM's tools write it: in place, since a folder that is write-protected takes no new file to rename."""
    (tmp_path / "m").write_bytes(b"the old model")
    before, access = (tmp_path / "m").stat().st_ino, os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path and access(path, mode))
    with atomic_output(str(tmp_path / "m")) as output:
        output.write(b"new")
    assert ((tmp_path / "m").read_bytes(), (tmp_path / "m").stat().st_ino) == (b"new", before)
    with pytest.raises(OutputError, match="permission denied; no file may be made in"):
        check_writable(str(tmp_path / "other"))


def test_check_writable_sees_permissions(tmp_path: Path) -> None:
    """Permissions bind everyone but root, so the check runs as nobody where the tests run as root."""
    locked, file = tmp_path / "locked", tmp_path / "file"
    locked.mkdir(mode=0o555)
    file.write_bytes(b"old")
    file.chmod(0o444)
    tmp_path.chmod(0o777)
    code = """if True:
        import os, sys
        from svmkit.errors import OutputError
        from svmkit.io.outputs import check_writable
        if os.geteuid() == 0:
            os.setuid(65534)
        for path in sys.argv[1:]:
            try:
                check_writable(path)
            except OutputError as error:
                print(error)
    """
    for folder in list(tmp_path.parents)[:2]:  # pytest's own folders keep others out
        folder.chmod(0o755)
    done = run_python(code, str(locked / "model"), str(file), str(tmp_path / "new"))
    assert done.stdout.decode().splitlines() == [
        f"can't write {locked}/model: permission denied; no file may be made in {locked}",
        f"can't write {file}: permission denied; the file is write-protected",
    ]


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EPERM])
def test_a_file_that_may_be_written_and_not_replaced(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is mounted by itself, into a container, or another's in a folder such as /tmp."""
    path = tmp_path / "model"
    path.write_bytes(b"old and longer than the new one")
    inode = path.stat().st_ino

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.replace", refuse)
    with atomic_output(str(path)) as file:
        file.write(b"new")
    assert (path.read_bytes(), path.stat().st_ino, os.listdir(tmp_path)) == (b"new", inode, ["model"])


def test_what_cannot_be_copied_there_is_left_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"old")

    def refusing(number: int) -> Callable[..., None]:
        def refuse(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        return refuse

    monkeypatch.setattr("os.replace", refusing(errno.EBUSY))
    monkeypatch.setattr("shutil.copyfile", refusing(errno.ENOSPC))
    said = "No space left on device; all of it is in .*model.svmkit"
    with pytest.raises(OutputError, match=said), atomic_output(str(path)) as file:
        file.write(b"new")
    assert (tmp_path / "model.svmkit").read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == ["model", "model.svmkit"]


def test_another_spelling_of_a_name_is_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where capitals make no difference; a hard link is another file once the first is replaced."""
    one, two = tmp_path / "data", tmp_path / "DATA"
    one.write_bytes(b"x")
    two.hardlink_to(one)
    assert not would_overwrite(str(two), str(one))
    two.unlink()
    two.write_bytes(b"x")
    assert not would_overwrite(str(two), str(one))
    monkeypatch.setattr(os.path, "samefile", lambda path, other: True)
    assert would_overwrite(str(two), str(one))


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/stderr"])
def test_a_name_for_an_open_file_is_that_file(path: str, tmp_path: Path) -> None:
    """What follows comes behind it; a new file in its place would lose that."""
    code = "import sys; from svmkit.io.outputs import atomic_output\nwith atomic_output(sys.argv[1]) as f: f.write(b'text')"
    with open(tmp_path / "out", "wb") as file:
        subprocess.run([sys.executable, "-c", code, path], stdout=file, stderr=file, timeout=60, check=True)
        assert os.fstat(file.fileno()).st_ino == (tmp_path / "out").stat().st_ino
    assert (tmp_path / "out").read_bytes() == b"text"


def test_a_file_may_be_written_in_a_folder_that_may_not_be_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m").write_bytes(b"the old model")
    before, access = (tmp_path / "m").stat().st_ino, os.access
    searched = {tmp_path: os.X_OK}
    monkeypatch.setattr(os, "access", lambda path, mode: not searched.get(Path(path), 0) & mode and access(path, mode))
    write(tmp_path / "m", b"new")
    assert ((tmp_path / "m").read_bytes(), (tmp_path / "m").stat().st_ino) == (b"new", before)


def test_nobody_else_may_read_what_is_to_be_a_private_file(tmp_path: Path) -> None:
    """Not even while it is made."""
    path, umask = tmp_path / "model", os.umask(0)
    path.write_bytes(b"old")
    path.chmod(0o600)
    real, seen = os.open, list[int]()

    def noted(name: Any, flags: int, *mode: int, **more: Any) -> int:
        descriptor = real(name, flags, *mode, **more)
        seen.extend([stat.S_IMODE(os.fstat(descriptor).st_mode)] if ".svmkit-" in str(name) else [])
        return descriptor

    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, "open", noted)
            write(path, b"new")
    finally:
        os.umask(umask)
    assert seen == [0o600]
