"""Files in and out: input in one pass from anything that can be read, output that is whole or not there at all.

Input may be a file, a pipe or ``-`` (standard input), plain or compressed; compression is known by its first bytes, not by a
name. Output goes to a temporary name in the same folder and takes the place of the old file by one rename.
"""

from __future__ import annotations

import errno
import io
import mmap
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from svmkit.errors import DataError, OutputError, reason_of
from svmkit.io.descriptors import Patient, named, read_some, ready

_STDIN = 0

#: What has come from a pipe is handed on after this time, even if it is less than was asked for.
_PIPE_WAIT_S = 0.5

#: First bytes, what they mean, and the module that undoes it.
_COMPRESSIONS = (
    (b"\x1f\x8b", "gzip", "gzip"),
    (b"BZh", "bzip2", "bz2"),
    (b"\xfd7zXZ\0", "xz", "lzma"),
    (b"\x28\xb5\x2f\xfd", "zstd", "compression.zstd"),
)
#: What undoes one stream, of the modules whose own files take a stream that is damaged, but for the first, for the end.
_ONE_STREAM = {"bz2": "BZ2Decompressor", "lzma": "LZMADecompressor"}
#: Bytes that are decompressed in one go.
_CHUNK = 1 << 20


def read_bytes(path: str) -> bytes:
    """All of ``path``, as ``map_bytes`` but copied."""
    return map_bytes(path).tobytes()


def map_bytes(path: str) -> NDArray[np.uint8]:
    """All of ``path`` (``-`` is standard input), decompressed if need be, as an array of bytes.

    A plain file is mapped, not copied. Raises DataError where it cannot be opened or read, or where compressed data are
    damaged.
    """
    try:
        if path == "-":
            raw = _read_all(_STDIN)
        else:
            with open(path, "rb", buffering=0) as file:
                raw = _read_all(file.fileno())
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        raise DataError(f"can't open input file {path}", reason_of(error)) from None
    content = memoryview(raw)
    for magic, name, module in _COMPRESSIONS:
        if content[: len(magic)] == magic:
            content = memoryview(_decompress(content, path, name, module))
            break
    return np.frombuffer(content, dtype=np.uint8)


def map_plain(path: str) -> NDArray[np.uint8] | None:
    """What ``map_bytes`` gives, of a file that it maps; else None, and nothing has been read."""
    if path != "-" and not os.path.isfile(path):  # a named pipe that is let go would lose its writer
        return None
    try:
        with open(_STDIN if path == "-" else path, "rb", buffering=0, closefd=path != "-") as file:
            mapped = _mapped(file.fileno())
    except (OSError, ValueError):
        return None
    if mapped is None or any(mapped[: len(magic)] == magic for magic, _, _ in _COMPRESSIONS):
        return None
    return np.frombuffer(memoryview(mapped), dtype=np.uint8)


def _mapped(descriptor: int) -> mmap.mmap | None:
    """A plain file at its beginning, mapped."""
    status = os.fstat(descriptor)
    # Files under /proc say they are regular and empty, and yet have content.
    if stat.S_ISREG(status.st_mode) and status.st_size and os.lseek(descriptor, 0, os.SEEK_CUR) == 0:
        with suppress(OSError):  # some file systems map nothing
            return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    return None


def _read_all(descriptor: int) -> bytearray | mmap.mmap:
    if (mapped := _mapped(descriptor)) is not None:
        return mapped
    content = bytearray()
    while part := read_some(descriptor, _CHUNK):
        content += part
    return content


def _decompress(content: memoryview, path: str, name: str, module: str) -> bytes | bytearray:
    undo = _imported(path, name, module)
    try:
        if module in _ONE_STREAM:
            chunks = (bytes(content[place : place + _CHUNK]) for place in range(0, len(content), _CHUNK))
            streams = _Streams(lambda n: next(chunks, b""), getattr(undo, _ONE_STREAM[module]))
            some = bytearray()
            while part := streams.some(_CHUNK):
                some += part
            return some
        return bytes(undo.decompress(content))
    except MemoryError:
        raise DataError(f"can't open input file {path}", "its decompressed content does not fit into memory") from None
    except Exception as error:  # each module has errors of its own
        raise _damaged(path, name, error) from None


def _imported(path: str, name: str, module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise DataError(
            f"can't open input file {path}", f"it is compressed with {name}, which this Python cannot read; decompress it first"
        ) from None


def _damaged(path: str, name: str, error: Exception) -> DataError:
    reason = f"its {name} data are damaged or cut short ({error}); get the file again, or decompress it and see what is left"
    return DataError(f"can't open input file {path}", reason)


@contextmanager
def open_bytes(path: str) -> Iterator[Callable[[int], bytes]]:
    """Yields ``read(n)``, the next bytes of ``path`` (``-`` is standard input), decompressed if need be: n of them, fewer at
    the end or where a pipe pauses, none after the end. Raises DataError as ``map_bytes``, after the bytes before the damage.
    """
    try:
        descriptor = (
            _STDIN if path == "-" else os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        )
    except (OSError, ValueError) as error:
        raise DataError(f"can't open input file {path}", reason_of(error)) from None
    try:
        raw = _Raw(descriptor)
        raw.look_ahead(max(len(magic) for magic, _, _ in _COMPRESSIONS))
        for magic, name, module in _COMPRESSIONS:
            if raw.head.startswith(magic):
                undo = _imported(path, name, module)
                one = _ONE_STREAM.get(module)
                some = _Streams(raw.some, getattr(undo, one)).some if one else undo.open(raw).read1
                yield _reader(path, raw, some, name)
                return
        yield _reader(path, raw, raw.some, "")
    except OSError as error:
        raise DataError(f"can't open input file {path}", reason_of(error)) from None
    finally:
        if path != "-":
            os.close(descriptor)


def _reader(path: str, raw: _Raw, some: Callable[[int], bytes], compression: str) -> Callable[[int], bytes]:
    """``some(n)``, at most n bytes, until there are n or ``raw`` pauses; its error, in words, after what it gave before."""
    failure: DataError | None = None

    def read(n: int) -> bytes:
        nonlocal failure
        parts: list[bytes] = []
        size, until = 0, 0.0
        while failure is None and size < n and not (parts and raw.pauses(until)):
            try:
                more = some(n - size)
            except Exception as error:  # each module that decompresses has errors of its own
                cannot = DataError(f"can't read input file {path}", reason_of(error))
                failure = _damaged(path, compression, error) if compression else cannot
                break
            if not more:
                break
            until = until or time.monotonic() + _PIPE_WAIT_S
            parts.append(more)
            size += len(more)
        if failure is not None and not parts:
            raise failure
        return b"".join(parts)

    return read


class _Streams:
    """Compressed streams one after another, as parallel compressors write them, zeros between them; nothing else may follow."""

    def __init__(self, raw: Callable[[int], bytes], begin: Callable[[], Any]) -> None:
        """``raw(n)`` gives at most n compressed bytes, none at the end; ``begin()`` what undoes a stream."""
        self._raw, self._begin, self._stream = raw, begin, begin()

    def some(self, n: int) -> bytes:
        """At most n bytes, none at the end. Raises EOFError where a stream is cut short, and what the module raises."""
        while True:
            more = b""
            if self._stream.eof:
                more = self._stream.unused_data.lstrip(b"\0")
                while not more and (raw := self._raw(_CHUNK)):
                    more = raw.lstrip(b"\0")
                if not more:
                    return b""
                self._stream = self._begin()
            elif self._stream.needs_input:
                more = self._raw(_CHUNK)
                if not more:
                    raise EOFError("compressed data ended before the end of a stream")
            found: bytes = self._stream.decompress(more, n)
            if found:
                return found


class _Raw(io.RawIOBase):
    """A descriptor's bytes, of which the first, ``head``, may have been looked at; reading gives what is there."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._may_pause = os.name == "posix" and not stat.S_ISREG(os.fstat(descriptor).st_mode)  # else select is for sockets
        self.head = b""

    def look_ahead(self, n: int) -> None:
        """Makes ``head`` at least n bytes, if there are so many."""
        while len(self.head) < n and (more := read_some(self._descriptor, 4096)):
            self.head += more

    def pauses(self, until: float) -> bool:
        """Whether nothing comes before ``until``, by the clock of ``time.monotonic``."""
        return self._may_pause and not ready(self._descriptor, max(0.0, until - time.monotonic()))

    def some(self, n: int) -> bytes:
        """At most n bytes, none at the end."""
        content, self.head = self.head[:n], self.head[n:]
        return content or read_some(self._descriptor, n)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.some(len(buffer))
        buffer[: len(content)] = content
        return len(content)


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
