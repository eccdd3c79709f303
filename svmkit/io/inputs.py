"""Inputs: a file, a pipe or ``-`` (standard input), plain or compressed, in one pass; compression is known by its first bytes,
not by a name.
"""

from __future__ import annotations

import io
import mmap
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmkit.errors import DataError, reason_of
from svmkit.io.descriptors import read_some, ready

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
#: What undoes one stream, of the modules whose own files end, without an error, before any damaged stream but the first.
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
