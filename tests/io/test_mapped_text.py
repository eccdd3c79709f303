"""Text of a mapped file: what has been parsed gives back its memory, and can be read once more all the same."""

from __future__ import annotations

import re
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_array_equal

from svmkit.data import Dataset
from svmkit.errors import DataError
from svmkit.io import chunks, sparse_text
from svmkit.io.chunks import read_parts
from svmkit.io.inputs import map_bytes
from svmkit.io.libsvm_data import parse_dataset, read_dataset
from svmkit.io.model_libsvm import read_model
from svmkit.io.sparse_text import parse

LINE = "1 " + " ".join(f"{i}:{i / 7:.6f}" for i in range(1, 200))
LINES = 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_text(f"{LINE}\n" * LINES)
    return path


def resident_kb(path: Path) -> int:
    """What the process holds of the mapped file."""
    found = re.search(rf"{re.escape(str(path))}\n(?:.*\n)*?Rss: +(\d+) kB", Path("/proc/self/smaps").read_text())
    assert found is not None
    return int(found[1])


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's account of a process's pages")
def test_what_has_been_parsed_takes_no_memory(path: Path) -> None:
    text = map_bytes(str(path))
    text.sum()
    assert resident_kb(path) > 1000
    parse(text)
    assert resident_kb(path) < 100
    assert text.tobytes() == path.read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's account of a process's pages")
def test_nor_does_what_stands_behind_a_beginning(path: Path) -> None:
    text = map_bytes(str(path))
    begin = 300 * (len(LINE) + 1)
    text.sum()
    parse(text[begin:])
    assert resident_kb(path) < begin / 1000 + 100


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's account of a process's pages")
def test_nor_does_what_has_been_counted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before it is parsed: numbers of many digits are shorter in memory than in a file."""
    path.write_bytes(path.read_bytes() * 10)
    held: list[int] = []

    class Filling(sparse_text._Filling):
        def __init__(self, *args: Any) -> None:
            held.append(resident_kb(path))
            super().__init__(*args)

    monkeypatch.setattr(sparse_text, "_Filling", Filling)
    parse(map_bytes(str(path)))
    assert len(held) == 1
    assert held[0] < 6000


def test_a_model_takes_no_room_for_its_text(tmp_path: Path) -> None:
    """Memory for numbers alone, 12 bytes each; their text is mapped, and takes twice as much."""
    path, line = tmp_path / "m", LINE.partition(" ")[2]
    head = f"svm_type one_class\nkernel_type linear\nnr_class 2\ntotal_sv {LINES}\nrho 0\nSV\n"
    path.write_text(head + "".join(f"{k} {line}\n" for k in range(1, LINES + 1)))
    numbers = 12 * LINES * line.count(":")
    tracemalloc.start()
    model = read_model(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.rows.n == LINES
    assert peak < 1.2 * numbers


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's account of a process's pages")
def test_parts_that_have_been_used_take_no_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though Linux may bring in pages before those that are looked at, 2 MB of them."""
    monkeypatch.setattr(chunks, "PART_BYTES", 1 << 20)
    path.write_bytes(path.read_bytes() * 10)
    held = [resident_kb(path) for _ in read_parts(str(path))]
    assert len(held) > 20
    assert max(held) < 6000


def test_it_is_read_as_any_text(path: Path) -> None:
    mapped, copied = read_dataset(str(path)), parse_dataset(map_bytes(str(path)).copy(), "data")
    assert isinstance(mapped, Dataset)
    for one, other in zip((mapped.y, *mapped.rows), (copied.y, *copied.rows), strict=True):
        assert_array_equal(one, other)


def test_a_late_fault_is_found_where_it_stands(path: Path) -> None:
    with path.open("a") as file:
        file.write("1 3:4 2:5\n")
    with pytest.raises(DataError, match=rf"line {LINES + 1}, column 7: '2:5'"):
        read_dataset(str(path))
