"""Reading from anything that can be read."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from svmkit.errors import DataError
from svmkit.io import inputs
from svmkit.io.inputs import map_plain, open_bytes, read_bytes

TEXT = b"1 1:0.5 3:2\n-1 2:1\n" * 500
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("content", [b"", b"x", TEXT], ids=["empty", "one byte", "text"])
def test_plain_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data").write_bytes(content)
    assert read_bytes(str(tmp_path / "data")) == content


@pytest.mark.parametrize("name", COMPRESSORS)
def test_compression_is_known_by_content_and_members_are_joined(tmp_path: Path, name: str) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(COMPRESSORS[name](TEXT) + COMPRESSORS[name](b"1 1:1\n"))
    assert read_bytes(str(path)) == TEXT + b"1 1:1\n"


def test_a_file_is_closed_behind_its_last_byte(tmp_path: Path) -> None:
    path = tmp_path / "data"
    for content in (TEXT, gzip.compress(TEXT), lzma.compress(TEXT)):
        path.write_bytes(content)
        free = os.dup(0)
        os.close(free)
        with open_bytes(str(path)) as read:
            assert read(len(TEXT)) == TEXT
        again = os.dup(0)
        os.close(again)
        assert again == free


def test_standard_input_that_is_a_plain_file_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").write_bytes(TEXT)
    with (tmp_path / "data").open("rb") as file:
        monkeypatch.setattr(inputs, "_STDIN", file.fileno())
        found = map_plain("-")
    assert found is not None
    assert found.tobytes() == TEXT
    assert not found.flags.writeable


@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_damaged_compressed_data_are_refused_with_a_reason(tmp_path: Path, name: str, damage: str) -> None:
    packed = bytearray(COMPRESSORS[name](TEXT))
    if damage == "cut":
        del packed[-10:]
    else:
        packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / "data.gz"
    path.write_bytes(packed)
    with pytest.raises(DataError, match=f"its {name} data are damaged or cut short") as caught:
        read_bytes(str(path))
    assert caught.value.summary == f"can't open input file {path}"


@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.parametrize("damage", ["cut", "flipped", "junk"])
def test_a_later_stream_that_is_damaged_is_no_end(tmp_path: Path, name: str, damage: str) -> None:
    first, second = COMPRESSORS[name](TEXT), bytearray(COMPRESSORS[name](TEXT))
    if damage == "cut":
        del second[-10:]
    elif damage == "flipped":
        second[len(second) // 2] ^= 0xFF
    else:
        second += b"junk"
    path = tmp_path / "data"
    path.write_bytes(first + second)
    with pytest.raises(DataError, match=f"its {name} data are damaged or cut short"):
        read_bytes(str(path))
    with pytest.raises(DataError, match=f"its {name} data are damaged or cut short"), open_bytes(str(path)) as read:
        list(iter(lambda: read(1000), b""))


def test_zeros_between_xz_streams_and_behind_them_are_nothing(tmp_path: Path) -> None:
    path, padding = tmp_path / "data", bytes(8)
    path.write_bytes(lzma.compress(TEXT) + padding + lzma.compress(b"1 1:1\n") + padding)
    assert read_bytes(str(path)) == TEXT + b"1 1:1\n"
    with open_bytes(str(path)) as read:
        assert b"".join(iter(lambda: read(1000), b"")) == TEXT + b"1 1:1\n"


def test_zstd_is_read_or_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "data.zst"
    path.write_bytes(bytes.fromhex("28b52ffd2004210000") + b"1 1\n")
    if sys.version_info >= (3, 14):
        assert read_bytes(str(path)) == b"1 1\n"
        return
    with pytest.raises(DataError, match="zstd"):
        read_bytes(str(path))


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_bytes(str(tmp_path / "none"))
    assert (caught.value.summary, caught.value.detail) == (
        f"can't open input file {tmp_path}/none",
        "No such file or directory",
    )
    with pytest.raises(DataError, match="directory"):
        read_bytes(str(tmp_path))
    with pytest.raises(DataError, match="can't open input file"):
        read_bytes("a\0b")


@pytest.mark.parametrize("path", ["-", "/dev/stdin"])
@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_through_a_pipe(path: str, packed: bool) -> None:
    code = "import sys; from svmkit.io.inputs import read_bytes; sys.stdout.buffer.write(read_bytes(sys.argv[1]))"
    content = gzip.compress(TEXT) if packed else TEXT
    done = subprocess.run([sys.executable, "-c", code, path], input=content, capture_output=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == (TEXT, b"")


def test_standard_input_from_a_file_goes_on_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"skipped\n" + TEXT)
    code = "import sys; from svmkit.io.inputs import read_bytes; sys.stdout.buffer.write(read_bytes('-'))"
    shell = f'(read line; "{sys.executable}" -c "{code}") < "{tmp_path}/data"'
    assert subprocess.run(["bash", "-c", shell], capture_output=True, timeout=60, check=True).stdout == TEXT


def in_parts(path: str) -> bytes:
    with open_bytes(path) as read:
        return b"".join(iter(lambda: read(64), b""))


@pytest.mark.parametrize("how", ["whole", "in parts"])
def test_a_pipe_that_does_not_block_is_read_to_its_end(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As somebody who shares it may have made it: nothing there is not the end."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    monkeypatch.setattr("svmkit.io.inputs._STDIN", reading)
    read = {"whole": read_bytes, "in parts": in_parts}[how]

    def write() -> None:
        with open(writing, "wb", buffering=0) as file:
            for part in (TEXT[:50], TEXT[50:]):
                time.sleep(0.2)
                file.write(part)

    writer = threading.Thread(target=write)
    writer.start()
    assert read("-") == TEXT
    writer.join()
    os.close(reading)


def test_a_file_that_cannot_be_mapped_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr("mmap.mmap", refuse)
    (tmp_path / "data").write_bytes(TEXT)
    assert read_bytes(str(tmp_path / "data")) == TEXT


def test_fifo_and_process_substitution(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(TEXT,))
    writer.start()
    assert read_bytes(str(fifo)) == TEXT
    writer.join()


def test_zeros_between_xz_streams_may_come_by_themselves() -> None:
    """From a pipe, in pieces of any size."""
    pieces = iter([lzma.compress(TEXT), b"\0\0", b"\0\0", lzma.compress(b"more"), b"\0\0\0\0"])
    streams = inputs._Streams(lambda n: next(pieces, b""), lzma.LZMADecompressor)
    assert b"".join(iter(lambda: streams.some(1 << 20), b"")) == TEXT + b"more"


def test_what_trickles_in_is_handed_on_half_a_second_after_its_first_byte() -> None:
    """Not after the last, which may never come."""
    asked: list[float] = []

    class Trickle:
        def pauses(self, until: float) -> bool:
            asked.append(until)
            return len(asked) == 5

    read = inputs._reader("-", Trickle(), lambda n: b"x", "")  # type: ignore[arg-type]
    assert read(100) == b"x" * 5
    assert len(set(asked)) == 1


def test_content_that_does_not_fit_into_memory_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(content: object) -> bytes:
        raise MemoryError

    (tmp_path / "data").write_bytes(gzip.compress(TEXT))
    monkeypatch.setattr(gzip, "decompress", refuse)
    with pytest.raises(DataError, match="its decompressed content does not fit into memory"):
        read_bytes(str(tmp_path / "data"))
