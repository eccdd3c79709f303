"""Outputs that are whole or not there at all: one goes to a temporary name in the same folder and takes the place of the old
file by one rename.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from svmkit.errors import OutputError, reason_of
from svmkit.io.descriptors import Patient, named


def would_overwrite(path: str, other: str) -> bool:
    """Whether an output ``path`` takes the place of the file ``other``; of devices and folders neither does.

    A second name of the other file (a hard link) is let go by a rename, but where names in capitals are the same names.
    """
    try:
        same = "-" not in (path, other) and os.path.realpath(path) == os.path.realpath(other)
        if not same and os.path.exists(path) and os.path.exists(other):
            same = os.path.samefile(path, other) and os.stat(path).st_nlink == 1
    except OSError:  # the current folder is gone, and what is named from it
        return False
    return same and (os.path.isfile(path) or not os.path.exists(path))


def check_writable(path: str) -> None:
    """Raises OutputError if ``atomic_output(path)`` is bound to fail: to be asked before long work."""
    if path == "-":
        return
    if not path or "\0" in path:
        raise OutputError(f"can't write {path!r}: this is no file name")
    try:
        target = os.path.realpath(path)
    except OSError:  # of a relative path, if anything
        raise OutputError(f"can't write {path}: the current folder no longer exists") from None
    folder = os.path.dirname(target)
    if os.path.islink(target):  # else the link would give way to a file
        raise OutputError(f"can't write {path}: it is a symbolic link that leads back to itself")
    if os.path.isdir(target) or path.endswith(os.sep):
        raise OutputError(f"can't write {path}: it is a folder; name a file in it")
    try:
        os.lstat(target)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise OutputError(f"can't write {path}: {reason_of(error)}") from None
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise OutputError(f"can't write {path}: permission denied; the file is write-protected")
    if _written_in_place(path):
        return
    if not os.path.isdir(folder):
        raise OutputError(f"can't write {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"can't write {path}: permission denied; no file may be made in {folder}")


@contextmanager
def atomic_output(path: str) -> Iterator[Output]:
    """Yields an Output for ``path``; the file appears, whole, when the block ends, and not at all if the block raises.

    An existing file keeps its permissions, a symbolic link stays one and its target is replaced. ``-`` (standard output), what
    is no regular file (a pipe, /dev/null) and a file in a folder that may not be written are written directly. Raises
    OutputError where the output cannot be written; BrokenPipeError passes, for then the reader has seen enough.
    """
    check_writable(path)
    if _written_in_place(path):
        with _opened(path, lambda: _open_in_place(path)) as output:
            yield output
        return
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".svmkit-{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        with _opened(path, lambda: _create(temporary, target)) as output:
            yield output
        _replace(path, temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _replace(path: str, temporary: str, target: str) -> None:
    """By a rename; a file that may be written but not replaced (mounted by itself, or another's in /tmp) gets the content.

    Where that fails on the way, all of it is left beside it. Raises OutputError.
    """
    try:
        os.replace(temporary, target)
        return
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EPERM):
            raise _failure(path, error) from None
    import shutil  # 2 ms, which short runs need not spend

    try:
        shutil.copyfile(temporary, target)
    except OSError as error:
        kept = f"{target}.svmkit"
        os.rename(temporary, kept)
        raise OutputError(f"can't write {path}: {reason_of(error)}; all of it is in {kept}") from None
    os.unlink(temporary)


class Output:
    """What ``atomic_output`` yields."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        self._path = path
        self._file = file

    def write(self, content: bytes) -> None:
        """Appends ``content``. Raises OutputError where there is no room."""
        try:
            self._file.write(content)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _failure(self._path, error) from None


@contextmanager
def _opened(path: str, opening: Callable[[], BinaryIO]) -> Iterator[Output]:
    """An Output on the file that ``opening`` opens, closed at the end; what fails in that is an OutputError too."""
    try:
        file = opening()
    except OSError as error:
        raise _failure(path, error) from None
    try:
        yield Output(path, file)
    except BaseException:
        with suppress(OSError):
            file.close()
        raise
    try:
        file.close()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _failure(path, error) from None


def _written_in_place(path: str) -> bool:
    """Whether a rename cannot or must not replace ``path``: a stream, a device, a name for an open file, or a file that may be
    written in a folder that may not.
    """
    if path == "-" or os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    folder = os.path.dirname(os.path.realpath(path))
    return os.path.exists(path) and not (os.path.isfile(path) and os.access(folder, os.W_OK | os.X_OK))


def _open_in_place(path: str) -> BinaryIO:
    descriptor = named(path)
    return open(path, "wb") if descriptor is None else io.BufferedWriter(Patient(descriptor))


def _create(temporary: str, target: str) -> BinaryIO:
    """The new file, with owner, group and permissions of ``target`` if that exists, else those that any new file has.

    Where the group cannot be kept no other one gets its permissions; a program's right to run as its owner is not kept.
    """
    mode = 0o600 if os.path.exists(target) else 0o666
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode)
    with suppress(OSError):  # no target, or a file system without permissions
        before, now = os.stat(target), os.stat(temporary)
        mode = before.st_mode & 0o777
        if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid) and not _given(temporary, before.st_uid, before.st_gid):
            mode &= 0o777 if _given(temporary, -1, before.st_gid) else 0o707
        os.chmod(temporary, mode)
    return open(descriptor, "wb")


def _given(path: str, owner: int, group: int) -> bool:
    """Whether the file could be given to them; −1 is whom it belongs to."""
    try:
        os.chown(path, owner, group)
    except OSError:
        return False
    return True


def _failure(path: str, error: OSError) -> OutputError:
    if _written_in_place(path):
        return OutputError(f"can't write {'to standard output' if path == '-' else path}: {reason_of(error)}")
    return OutputError(f"can't write {path}: {reason_of(error)}; nothing was overwritten")
