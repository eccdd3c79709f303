"""Files read part by part: the same examples as in one go, whatever the parts; pipes handed on as they come."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from svmkit.data import Dataset, stack
from svmkit.errors import DataError
from svmkit.io import chunks, inputs, sparse_text
from svmkit.io.chunks import passes_over, read_chunks, read_parts
from svmkit.io.libsvm_data import parse_dataset, read_dataset

TEXT = b"1 1:0.5 3:2\n# note\n-1 2:1 cost:2\n+1\n-1 7:1e-3 9:1\n" * 200
PACKED: dict[str, Callable[[bytes], bytes]] = {
    **{"plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress},
    "gzip in members": lambda text: gzip.compress(text[:1000]) + gzip.compress(text[1000:]),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("size", [1, 13, 1000, 10**7])
def test_parts_make_up_the_whole(path: Path, packed: str, size: int) -> None:
    path.write_bytes(PACKED[packed](TEXT.removesuffix(b"\n")))
    whole, parts = read_dataset(str(path)), list(read_chunks(str(path), chunk_bytes=size))
    rows = stack([part.dataset.rows for part in parts])
    for field in ("data", "indices", "indptr", "n_features"):
        assert np.array_equal(getattr(rows, field), getattr(whole.rows, field))
    assert np.array_equal(np.concatenate([part.dataset.y for part in parts]), whole.y)
    assert np.array_equal(np.concatenate([part.dataset.weights for part in parts]), whole.weights)
    assert all(part.dataset.n for part in parts)
    lines = [part.where(row) for part in parts for row in range(part.dataset.n)]
    examples = [i + 1 for i, line in enumerate(TEXT.splitlines()) if not line.startswith(b"#")]
    assert lines == [f"{path}, line {line}" for line in examples]


@pytest.mark.parametrize("packed", ["bzip2", "xz"])
def test_zeros_between_compressed_streams_may_come_in_parts(path: Path, packed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_CHUNK", 64)
    stream = PACKED[packed](TEXT)
    path.write_bytes(stream + bytes(400) + stream + bytes(80))
    assert read_dataset(str(path)).n == sum(part.dataset.n for part in read_chunks(str(path))) == 1600


@pytest.mark.parametrize("size", [1, 50, 10**7])
@pytest.mark.parametrize("bad", [1, 2, 37, 38, 1001])
def test_a_bad_line_comes_after_the_good_ones_before_it(path: Path, size: int, bad: int) -> None:
    lines = TEXT.split(b"\n")[:-1]
    lines.insert(bad - 1, b"1 3:1 2:1")
    path.write_bytes(b"\n".join(lines))
    seen = [0]
    with pytest.raises(DataError) as whole:
        read_dataset(str(path))
    with pytest.raises(DataError, match=f"{path}, line {bad}, column 7: '2:1': .*ascend") as caught:
        seen.extend(part.dataset.n for part in read_chunks(str(path), chunk_bytes=size))
    assert str(caught.value) == str(whole.value)
    assert sum(seen) == sum(not line.startswith(b"#") for line in lines[: bad - 1])


@pytest.mark.parametrize("text", [b"", b"\n", b"# nothing\n# at all"])
def test_a_file_without_an_example_is_refused(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    with pytest.raises(DataError) as whole:
        read_dataset(str(path))
    with pytest.raises(DataError) as caught:
        list(read_chunks(str(path)))
    assert str(caught.value) == str(whole.value)


def test_marks_of_other_encodings_are_named(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + TEXT)
    with pytest.raises(DataError, match="byte-order mark"):
        list(read_chunks(str(path)))


def test_marks_within_a_file_are_no_marks(path: Path) -> None:
    """As where files were put together; here a part begins there."""
    path.write_bytes(b"1 1:1\n\xef\xbb\xbf" + TEXT)
    with pytest.raises(DataError) as whole:
        read_dataset(str(path))
    with pytest.raises(DataError, match="line 2, column 1") as caught:
        list(read_chunks(str(path), chunk_bytes=6))
    assert str(caught.value) == str(whole.value)


def test_one_example_is_enough(path: Path) -> None:
    path.write_bytes(b"# alone\n1 1:1\n")
    for read in (read_chunks, read_parts):
        assert [part.dataset.n for part in read(str(path))] == [1]


def test_dropped_words_are_told_once(path: Path) -> None:
    path.write_bytes(b"1 1:1\n1 1:1 word\n" * 50)
    told: list[str] = []
    assert sum(part.dataset.n for part in read_chunks(str(path), chunk_bytes=20, on_warning=told.append)) == 100
    assert told == [f"{path}: words after the last index:value pair were left out on line 2"]


def test_what_cannot_be_opened_or_is_damaged(path: Path) -> None:
    with pytest.raises(DataError, match="can't open input file") as caught:
        list(read_chunks(str(path)))
    assert "No such file" in str(caught.value)
    with pytest.raises(DataError, match="can't open input file"):
        list(read_chunks(str(path.parent)))
    packed = gzip.compress(b"# " + os.urandom(5000).hex().encode() + b"\n" + TEXT)
    path.write_bytes(packed[:-20])
    with pytest.raises(DataError, match="gzip data are damaged or cut short"):
        list(read_chunks(str(path)))


def test_a_pipe_is_handed_on_before_it_ends(path: Path) -> None:
    os.mkfifo(path)
    more = threading.Event()

    def write() -> None:
        with path.open("wb") as pipe:
            pipe.write(b"1 1:1\n-1 1:")
            pipe.flush()
            assert more.wait(60)
            pipe.write(b"2\n")

    threading.Thread(target=write, daemon=True).start()
    parts = read_chunks(str(path))
    first = next(parts)
    more.set()
    rest = list(parts)
    assert first.dataset.y.tolist() == [1.0]
    assert [part.dataset.rows.data.tolist() for part in rest] == [[2.0]]


def test_a_compressed_pipe(path: Path) -> None:
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            for byte in gzip.compress(b"1 1:1\n-1 1:2\n"):
                pipe.write(bytes([byte]))
                time.sleep(0.001)

    threading.Thread(target=write, daemon=True).start()
    assert [part.dataset.y.tolist() for part in read_chunks(str(path))] == [[1.0, -1.0]]


@pytest.mark.parametrize("packed", ["gzip", "bzip2", "xz"])
def test_a_compressed_pipe_is_handed_on_before_it_ends(path: Path, packed: str) -> None:
    os.mkfifo(path)
    more = threading.Event()

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            pipe.write(PACKED[packed](b"1 1:1\n-1 1:"))
            assert more.wait(60)
            pipe.write(PACKED[packed](b"2\n"))

    threading.Thread(target=write, daemon=True).start()
    parts = read_chunks(str(path))
    first = next(parts)
    more.set()
    rest = list(parts)
    assert first.dataset.y.tolist() == [1.0]
    assert [part.dataset.rows.data.tolist() for part in rest] == [[2.0]]


@pytest.mark.parametrize("packed", ["gzip", "bzip2", "xz"])
def test_examples_before_the_damage_come_before_the_error(path: Path, packed: str) -> None:
    path.write_bytes(PACKED[packed](TEXT) + PACKED[packed](TEXT)[:-9])
    seen = []
    with pytest.raises(DataError, match=f"{packed} data are damaged or cut short"):
        seen.extend(part.dataset.n for part in read_chunks(str(path)))
    assert sum(seen) >= 800


def bytes_by(way: str, text: bytes, path: Path) -> None:
    """Puts ``text`` behind ``path``: a file, a packed one, or a pipe that delivers some bytes at a time."""
    if way != "pipe":
        path.write_bytes(PACKED[way](text))
        return
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            for first in range(0, len(text), 700):
                pipe.write(text[first : first + 700])
                time.sleep(0.002)

    threading.Thread(target=write, daemon=True).start()


@pytest.mark.parametrize("text", [TEXT, TEXT.removesuffix(b"\n"), b"1 1:1 # " + b"long " * 500 + b"\n" + TEXT], ids=len)
@pytest.mark.parametrize("size", [37, 1000, 10**7])
def test_parts_are_the_same_however_they_come(text: bytes, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "PART_BYTES", size)
    monkeypatch.setattr(inputs, "_PIPE_WAIT_S", 0.0)
    bytes_by("plain", text, tmp_path / "whole")
    whole, found = read_dataset(str(tmp_path / "whole")), []
    for way in ("plain", "pipe", "gzip in members", "xz"):
        bytes_by(way, text, tmp_path / way)
        parts = list(read_parts(str(tmp_path / way)))
        assert np.array_equal(np.concatenate([part.dataset.y for part in parts]), whole.y)
        rows = stack([part.dataset.rows for part in parts])
        assert all(np.array_equal(a, b) for a, b in zip(rows, whole.rows, strict=True))
        found.append([(part.dataset.n, part.where(0).removeprefix(f"{tmp_path / way}")) for part in parts])
    assert all(parts == found[0] for parts in found)
    assert len(found[0]) > 1 or size > len(text)


@pytest.mark.parametrize("way", ["plain", "gzip", "pipe"])
def test_a_last_line_without_a_newline_is_no_part_of_its_own(way: str, path: Path) -> None:
    """Else it would be judged apart from the others: kernel values for fewer columns, a comment alone."""
    lines = [f"1 0:{row} 1:1 2:1" for row in range(1, 5)]
    bytes_by(way, "\n".join([*lines, "1 0:5 1:1"]).encode(), path)
    with pytest.raises(DataError, match=f"{path}, line 5: .*every column"):
        read_parts(str(path), precomputed=True)


def test_a_long_line_is_looked_through_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "PART_BYTES", 1000)
    path.write_bytes(b"1 1:1 # " + b"long " * 20000 + b"\n1 1:1\n")
    looked: list[int] = []

    def line_start(text: NDArray[np.uint8], position: int) -> int:
        looked.append(position)
        return sparse_text.line_start(text, position)

    monkeypatch.setattr(chunks, "line_start", line_start)
    assert [part.dataset.n for part in read_parts(str(path))] == [2]
    assert sum(looked) <= path.stat().st_size


@pytest.mark.parametrize("way", ["plain", "gzip"])
def test_of_a_part_with_a_bad_line_nothing_is_handed_on(way: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "PART_BYTES", 1000)
    bytes_by(way, TEXT + b"1 1:1\n1 2:1 1:1\n", path)
    seen: list[int] = []
    with pytest.raises(DataError, match=f"{path}, line 1002, column 7"):
        seen.extend(part.dataset.n for part in read_parts(str(path)))
    assert sum(seen) == 4 * (len(TEXT) // 1000 * 1000 // 50)


def test_parts_of_a_kernel_matrix(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "PART_BYTES", 64)
    lines = [f"1 0:{row} 1:{row}.5 2:0 3:-{row}" for row in range(1, 31)]
    path.write_text("\n".join(lines))
    whole = read_dataset(str(path), precomputed=True)
    parts = [part.dataset.rows for part in read_parts(str(path), precomputed=True)]
    assert len(parts) > 5
    assert np.array_equal(np.concatenate([part.gram for part in parts]), whole.rows.gram)
    assert np.array_equal(np.concatenate([part.serial for part in parts]), whole.rows.serial)
    for bad, words in (("1 1:1", "begin with 0:serial"), ("1 0:1 1:1 2:1", "every column"), ("1 0:1 3:1", "every column")):
        path.write_text("\n".join([*lines[:25], bad, *lines[25:]]))
        with pytest.raises(DataError, match=f"{path}, line 26: .*{words}"):
            list(read_parts(str(path), precomputed=True))


def test_the_first_part_is_read_at_once(path: Path) -> None:
    """Before an output is opened that is written in place."""
    path.write_bytes(b"1 1:x\n")
    with pytest.raises(DataError, match="line 1"):
        read_parts(str(path))


@pytest.mark.parametrize("text", [b"", b"# nothing\n# at all"])
@pytest.mark.parametrize("may_be_empty", [False, True])
def test_no_part_has_an_example(text: bytes, may_be_empty: bool, path: Path) -> None:
    path.write_bytes(text)
    if may_be_empty and not text:
        assert list(read_parts(str(path), may_be_empty=True)) == []
        return
    with pytest.raises(DataError, match="the file holds no example"):
        list(read_parts(str(path), may_be_empty=may_be_empty))


def test_a_pipe_is_not_opened_twice(path: Path) -> None:
    """Its writer would be told that nobody reads."""
    os.mkfifo(path)
    assert inputs.map_plain(str(path)) is None


def strictly(text: NDArray[np.uint8], first_line: int) -> Dataset:
    return parse_dataset(text, "data", first_line=first_line)


@pytest.mark.parametrize("way", ["plain", "gzip", "pipe"])
def test_a_second_pass_is_the_first_again(way: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "PART_BYTES", 999)
    bytes_by(way, TEXT, path)
    passes = passes_over(str(path), strictly)
    first, second = ([part.rows for part in passes()] for _ in range(2))
    assert len(first) > 5
    assert all(np.array_equal(a, b) for a, b in zip(stack(first), stack(second), strict=True))


def test_of_a_pipe_examples_are_kept_but_no_text(path: Path) -> None:
    text = (b"1 1:1 # " + b"long " * 500 + b"\n") * 1000
    os.mkfifo(path)
    for _ in range(2):  # the first compiles what it needs
        threading.Thread(target=path.write_bytes, args=(text,), daemon=True).start()
        tracemalloc.start()
        passes = passes_over(str(path), strictly)
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert sum(part.n for part in passes()) == 1000
    assert kept < len(text) / 4


def test_a_file_that_changes_between_two_passes_is_refused(path: Path) -> None:
    path.write_bytes(TEXT)
    passes = passes_over(str(path), strictly)
    assert sum(part.n for part in passes()) == 800
    path.write_bytes(TEXT + b"1 1:1\n")
    with pytest.raises(DataError, match="changed meanwhile"):
        list(passes())
    parts = passes()
    next(parts)
    path.unlink()
    for rest, verb in ((parts, "read"), (passes(), "open")):  # it goes in the midst of a pass, and before one
        with pytest.raises(DataError, match="No such file") as refused:
            list(rest)
        assert refused.value.summary == f"can't {verb} input file {path}"
