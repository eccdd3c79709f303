"""LIBSVM's data files: what is accepted and what is refused, exact numbers, and Datasets that come back as they went."""

from __future__ import annotations

import math
import mmap
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from data_files import read, refused, write_dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from svmkit import parallel
from svmkit.data import Dataset, Rows
from svmkit.io import sparse_text
from svmkit.io.libsvm_data import line_heads, parse_dataset, read_dataset
from svmkit.io.sparse_text import TextError, parse


def unlabelled(content: bytes) -> Dataset:
    return parse_dataset(np.frombuffer(content, dtype=np.uint8), "data", unknown_labels=True)


def pairs(data: Dataset, row: int = 0) -> list[tuple[int, float]]:
    part = slice(data.rows.indptr[row], data.rows.indptr[row + 1])
    return list(zip(data.rows.indices[part].tolist(), data.rows.data[part].tolist(), strict=True))


ACCEPTED = [
    (b"1", 1, []),
    (b"1 ", 1, []),
    (b"1\r", 1, []),
    (b"1 0:1 1:2", 1, [(0, 1), (1, 2)]),
    (b"1 1: 3", 1, [(1, 3)]),
    (b"1 1:\t3\v\f 2:4\f", 1, [(1, 3), (2, 4)]),
    (b"\t 1 \t 2:3\t 5:4  ", 1, [(2, 3), (5, 4)]),
    (b"-1 1:3\r", -1, [(1, 3)]),
    (b"+1 1:0x1.8p3 2:0XA 3:+1 4:1e0 5:1. 6:.5", 1, [(1, 12), (2, 10), (3, 1), (4, 1), (5, 1), (6, 0.5)]),
    (b"1 +1:3 02:4 00000000009:5", 1, [(1, 3), (2, 4), (9, 5)]),
    (b"1 -0:3", 1, [(0, 3)]),
    (b"1 1:0e-400 2:-0 3:0x0", 1, [(1, 0), (2, 0), (3, 0)]),
    (b"1 1:2.2250738585072014e-308", 1, [(1, 2.0**-1022)]),
    (b"1e-320 1:1", 1e-320, [(1, 1)]),
    (b"1 12345678:1 2147483647:2", 1, [(12345678, 1), (2147483647, 2)]),
    (b"1 1:3 # words", 1, [(1, 3)]),
    (b"1 1:3 # a:b", 1, [(1, 3)]),
    (b"1 # a:b", 1, []),
    (b"# 1:2\n  # again\n1 1:3", 1, [(1, 3)]),
]

DROPPED = [
    (b"1 :3", []),
    (b"1 foo", []),
    (b"1 1:3 2", [(1, 3)]),
    (b"1 1:3 two words", [(1, 3)]),
    (b"1 1:3 two # a:b", [(1, 3)]),
]

REFUSED = [
    (b"", 1, "", "empty"),
    (b" \t", 1, "", "empty"),
    (b"pos 1:1", 1, "pos", "begins with its label"),
    (b"1,2 1:1", 1, "1,2", "begins with its label"),
    (b"? 1:1", 1, "?", "begins with its label"),
    (b"1:3", 1, "1:3", "begins with its label"),
    (b"1# 1:3", 1, "1#", "begins with its label"),
    (b"qid:1 1:3", 1, "qid:1", "begins with its label"),
    (b"1 -1:3", 3, "-1:3", "negative"),
    (b"1 2:1 1:1", 7, "1:1", "ascend"),
    (b"1 2:1 2:1", 7, "2:1", "twice"),
    (b"1 a:1", 3, "a:1", "whole number"),
    (b"1 1.0:2", 3, "1.0:2", "whole number"),
    (b"1 :1:2", 3, ":1:2", "whole number"),
    (b"1 1:", 3, "1:", "missing"),
    (b"1 1:\r", 3, "1:", "missing"),
    (b"1 1:a", 5, "a", "not a number"),
    (b"1 1:3x", 5, "3x", "not a number"),
    (b"1 1:1_0", 5, "1_0", "not a number"),
    (b"1 1:0x", 5, "0x", "not a number"),
    (b"1 1:1e", 5, "1e", "not a number"),
    (b"1 1:-", 5, "-", "not a number"),
    (b"1 1:.", 5, ".", "not a number"),
    (b"1 1:0,5", 5, "0,5", "point"),
    (b"1 1:2:3", 5, "2:3", "not a number"),
    (b"1 1 :3", 3, "1", "colon"),
    (b"1 1 2:3", 3, "1", "colon"),
    (b"1 1:3 foo 3:4", 7, "foo", "colon"),
    (b"1 1:nan", 5, "nan", "finite"),
    (b"1 1:-Infinity", 5, "-Infinity", "finite"),
    (b"nan 1:1", 1, "nan", "finite"),
    (b"1e400 1:1", 1, "1e400", "too large"),
    (b"1 1:1e400", 5, "1e400", "too large"),
    (b"1 1:0x1p1024", 5, "0x1p1024", "too large"),
    (b"1 1:1e-320", 5, "1e-320", "too small"),
    (b"1 1:1e-400", 5, "1e-400", "too small"),
    (b"1 1:0x1p-1080", 5, "0x1p-1080", "too small"),
    (b"1 2147483648:1", 3, "2147483648:1", "below 2147483648"),
    (b"1 99999999999999999999999:1", 3, "99999999999999999999999:1", "below 2147483648"),
    (b"1 1:2\0", 5, "2\\x00", "NUL"),
    (b"1 1:3\r2:4", 6, "", "control character"),
    (b"1 1:3\v2:4", 5, "3\\x0b2:4", "not a number"),
    (b"1 qid:a 1:1", 3, "qid:a", "whole number"),
    (b"1 qid:1 qid:1", 9, "qid:1", "once"),
    (b"1 cost:1 1:2 cost:1", 14, "cost:1", "once"),
    (b"1 cost: 1:2", 3, "cost:", "missing"),
    (b"1 cost:-1 1:2", 3, "cost:-1", "negative"),
    (b"1 cost:x 1:2", 8, "x", "not a number"),
]


@pytest.mark.parametrize(("line", "label", "expected"), ACCEPTED)
@pytest.mark.parametrize("end", [b"", b"\n", b"\n-1 1:1\n"])
def test_accepted_lines(tmp_path: Path, line: bytes, label: float, expected: list[tuple[int, float]], end: bytes) -> None:
    data, warnings = read(tmp_path, line + end)
    assert (data.y[0], pairs(data), warnings) == (label, expected, [])


@pytest.mark.parametrize(("line", "expected"), DROPPED)
def test_words_after_the_pairs_are_left_out_with_one_warning(
    tmp_path: Path, line: bytes, expected: list[tuple[int, float]]
) -> None:
    data, warnings = read(tmp_path, b"1 1:1\n" + line + b"\n")
    assert pairs(data, 1) == expected
    assert warnings == [f"{tmp_path}/data: words after the last index:value pair were left out on line 2"]
    data, warnings = read(tmp_path, (line + b"\n") * 3)
    assert warnings == [
        f"{tmp_path}/data: words after the last index:value pair were left out on 3 lines (line 1 is the first)"
    ]


def test_lines_that_are_read_again_for_want_of_room_are_counted_once(tmp_path: Path) -> None:
    """Numbers of so many digits that they are settled later, in room of their own."""
    line = b"1 " + b" ".join(b"%d:0.12345678901234567890123" % (k + 1) for k in range(5)) + b" x\n"
    _, warnings = read(tmp_path, line * 2000)
    assert warnings == [
        f"{tmp_path}/data: words after the last index:value pair were left out on 2000 lines (line 1 is the first)"
    ]


@pytest.mark.parametrize(("line", "column", "token", "reason"), REFUSED)
@pytest.mark.parametrize("before", [b"1 1:1\n", b"# comment\n1 1:1\n\t-1 2:1 9:0.25\r\n"])
def test_refused_lines_are_named(tmp_path: Path, line: bytes, column: int, token: str, reason: str, before: bytes) -> None:
    error = refused(tmp_path, before + line + b"\n1 1:1\n")
    number = before.count(b"\n") + 1
    column = len(line) + 1 if token == "" and reason == "empty" else column
    assert error.summary == f"Wrong input format at line {number}"
    word = f" '{token}':" if token else ""
    assert error.detail.startswith(f"{tmp_path}/data, line {number}, column {column}:{word} ")
    assert reason in error.detail


def test_refused_files(tmp_path: Path) -> None:
    assert "no example" in refused(tmp_path, b"").detail
    assert "no example" in refused(tmp_path, b"# only words\n").detail
    assert "byte-order mark" in refused(tmp_path, b"\xef\xbb\xbf1 1:1\n").detail
    assert "UTF-16" in refused(tmp_path, "1 1:1\n".encode("utf-16")).detail
    assert refused(tmp_path, b"1 1:1\n\n").summary == "Wrong input format at line 2"
    assert refused(tmp_path, b"1 1:1\n ").summary == "Wrong input format at line 2"
    assert len(refused(tmp_path, b"1 1:" + b"x" * 10**6).detail) < 200 + len(str(tmp_path))


def test_notes_and_unknown_labels(tmp_path: Path) -> None:
    data, _ = read(tmp_path, b"1 qid:7 cost:0.5 1:1\n-1 1:2\n1 3:1 cost:0x2 qid:0\n")
    assert data.weight is not None
    assert data.qid is not None
    assert (data.weight.tolist(), data.qid.tolist(), data.n_features) == ([0.5, 1, 2], [7, 0, 0], 3)
    plain, _ = read(tmp_path, b"1 1:1\n")
    assert (plain.weight, plain.qid, plain.source) == (None, None, f"{tmp_path}/data")
    pool = unlabelled(b"? 1:1\n+1 1:2\n")
    assert math.isnan(pool.y[0])
    assert pool.y[1] == 1


# --- numbers ----------------------------------------------------------------------------------------------------------------

HARD_NUMBERS = [
    f"0.{'0' * 100_300}1e100330",  # a fraction longer than most exponents are large
    f"{'1' + '0' * 100_300}e-100290",
    "9007199254740993",  # halfway between two doubles: to even
    "9007199254740992.9999999999999999",
    "9007199254740991.4999999999999999999999999999999995",
    "1.7976931348623157e308",
    "1.7976931348623158e308",
    "2.2250738585072014e-308",
    "2.2250738585072013831e-308",
    "8.41e21",
    "9.5367431640625e-7",
    "6.929001713869936e+236",
    "7.2057594037927933e16",
    "3.5844466002796428e+298",
    "0.000000000000000000000000000000000000012345678901234567",
    "100000000000000000000000000000000000000",
    "12345678901234567890123456789e-10",
    "0" * 400 + "1." + "0" * 400 + "1",
    "5e-324",
    "0.5",
]


def parse_values(texts: list[str]) -> np.ndarray:
    line = "1 " + " ".join(f"{k}:{text}" for k, text in enumerate(texts)) + "\n"
    return parse(np.frombuffer(line.encode(), dtype=np.uint8), subnormal=True).data


@given(
    digits=st.text("0123456789", min_size=1, max_size=25),
    point=st.integers(0, 25),
    exponent=st.none() | st.integers(-340, 300) | st.integers(-30, 30),
    sign=st.sampled_from(["", "-", "+"]),
)
@settings(max_examples=400, deadline=None)
def test_every_decimal_equals_pythons_float(digits: str, point: int, exponent: int | None, sign: str) -> None:
    mantissa = digits[:point] + "." + digits[point:] if point <= len(digits) else digits
    text = sign + mantissa + ("" if exponent is None else f"e{exponent}")
    if math.isfinite(float(text)):
        assert parse_values([text]).view(np.uint64)[0] == np.float64(float(text)).view(np.uint64)


@pytest.mark.parametrize("text", HARD_NUMBERS)
def test_hard_numbers(text: str) -> None:
    assert parse_values([text, "-" + text]).tolist() == [float(text), -float(text)]


@pytest.mark.parametrize("form", ["{!r}", "{:.17g}", "{:.16e}", "{:.18e}", "{:.15f}", "{:.8g}", "{:.3f}"])
def test_many_numbers_of_any_bits(form: str) -> None:
    bits = np.random.default_rng(0).integers(0, 2**63, 20000, dtype=np.uint64)
    values = bits.view(np.float64)
    normal = values[np.isfinite(values)].tolist() + np.random.default_rng(1).normal(size=20000).tolist()
    texts = [form.format(value) for value in normal if "f" not in form or abs(value) < 1e15]
    expected = np.array([float(text) for text in texts])
    assert np.array_equal(parse_values(texts).view(np.uint64), expected.view(np.uint64))


@pytest.mark.parametrize("size", range(1, 30))
def test_numbers_at_the_very_end_of_the_text(size: int) -> None:
    """Compiled code reads eight bytes at a time; the text may end anywhere in them."""
    number = "1234567890123456789.25".zfill(30)[-size:]
    assert parse_values_of(f"1 1:{number}") == [float(number)]
    assert parse_values_of(f"1 {'7' * min(size, 9)}:1") == [1]


def parse_values_of(text: str) -> list[float]:
    values: list[float] = parse(np.frombuffer(text.encode(), dtype=np.uint8)).data.tolist()
    return values


@pytest.mark.parametrize("pages", [1, 2])
def test_file_that_ends_with_its_page(tmp_path: Path, pages: int) -> None:
    """A mapped file may be followed by memory that must not be touched."""
    lines = b"1 1:0.5 2:12345678\n" * 100
    text = b"#" + b"x" * (4096 * pages - len(lines) - 1) + b"\n" + lines[:-1]
    assert len(text) == 4096 * pages
    data, _ = read(tmp_path, text)
    assert (data.n, pairs(data, 99)) == (100, [(1, 0.5), (2, 12345678)])


# --- any number of threads, pieces and unsettled numbers ----------------------------------------------------------------------


def test_nothing_behind_the_text_is_touched(tmp_path: Path) -> None:
    """The page behind it is gone from the file: to read there is a fatal error. Pairs begin at every place near the end."""
    page, path = mmap.PAGESIZE, tmp_path / "data"
    for line in ("1:1", "12:34", "1:-1.5", "1234567:1.23456789012"):
        for zeros in range(1, 16):
            words = [line.replace(":", f"{k}:") for k in range(10, 90)]
            ending = ("1" + "0" * zeros + " " + " ".join(words)).encode()
            path.write_bytes(b"#" + b"x" * (page - len(ending) - 2) + b"\n" + ending + b"\n" * page)
            with path.open("r+b") as file:
                text = np.frombuffer(mmap.mmap(file.fileno(), 2 * page), dtype=np.uint8)
                file.truncate(page)
            values = parse(text[:page]).data
            assert values.tolist() == [float(word.partition(":")[2]) for word in words]


def long_text(n_lines: int, odd: bool) -> bytes:
    rng = np.random.default_rng(3)
    lines = []
    for i in range(n_lines):
        words = [f"{j}:{v:.12g}" for j, v in zip(sorted(rng.choice(500, 12, replace=False)), rng.normal(size=12), strict=True)]
        if odd and i % 5 == 0:
            lines.append("# comment 1:2 3:4")
            words[3] = words[3].split(":")[0] + ":0x1.8p1"
            words.insert(0, f"qid:{i} cost:{i / 7}")
        lines.append(" ".join(["1", *words]))
    return "\n".join(lines).encode() + b"\n"


@pytest.mark.parametrize("odd", [False, True])
def test_same_arrays_for_any_number_of_threads(tmp_path: Path, two_threads: None, odd: bool) -> None:
    text = long_text(8000, odd)
    assert len(text) > 1_000_000
    many, _ = read(tmp_path, text)
    parallel.use_threads(1)
    one, _ = read(tmp_path, text)
    assert_equal(many, one)
    lines = [line.split(b"#")[0].split() for line in text.splitlines()]
    expected = [[p for p in line[1:] if p[:1].isdigit()] for line in lines if line]
    assert one.rows.indptr.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    flat = [pair.split(b":") for line in expected for pair in line]
    assert one.rows.indices.tolist() == [int(index) for index, _ in flat]
    values = [float.fromhex(v.decode()) if b"x" in v else float(v) for _, v in flat]
    assert one.rows.data.tolist() == values


@pytest.mark.parametrize("threads", [1, 2])
def test_first_bad_line_is_reported(tmp_path: Path, two_threads: None, threads: int) -> None:
    parallel.use_threads(threads)
    lines = long_text(8000, odd=True).splitlines()
    for bad in (7900, 5011, 5003, 17):
        lines[bad] = lines[bad] + b" 1:oops"
        assert refused(tmp_path, b"\n".join(lines)).summary == f"Wrong input format at line {bad + 1}"


def test_pieces_that_turn_out_wrong_together(two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever thread finds its piece wrong while others look whether one of theirs is: the error is the first one."""
    parallel.use_threads(8)
    monkeypatch.setattr(sparse_text, "_PIECE_BYTES", 1)
    text, interval = np.frombuffer(b"1 1:1\n" + b"1 1:oops\n" * 20, dtype=np.uint8), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            with pytest.raises(TextError, match=r"line 2, column 5: 'oops': not a number"):
                parse(text)
    finally:
        sys.setswitchinterval(interval)


def test_line_with_more_unsettled_numbers_than_the_list_holds(tmp_path: Path) -> None:
    line = b"1 qid:3 " + b" ".join(b"%d:0x%x" % (i, i) for i in range(20000)) + b"\n"
    data, _ = read(tmp_path, b"1 1:0x7\n" + line + b"1 1:1\n" + line)
    assert data.qid is not None
    assert data.qid.tolist() == [0, 3, 0, 3]
    assert data.rows.data.tolist() == [7, *range(20000), 1, *range(20000)]


# --- round trips -------------------------------------------------------------------------------------------------------------


def assert_equal(a: Dataset, b: Dataset) -> None:
    """Bit for bit."""
    assert a.n_features == b.n_features
    for x, y in [*zip(a.rows, b.rows, strict=True), (a.y, b.y), (a.weight, b.weight), (a.qid, b.qid)]:
        if isinstance(x, np.ndarray):
            assert isinstance(y, np.ndarray)
            assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())
        else:
            assert x == y


def without_empty_notes(data: Dataset) -> Dataset:
    """What groups 0 and weights 1, of which nothing is written, leave."""
    weight = None if data.weight is None or (data.weight == 1).all() else data.weight
    return replace(data, weight=weight, qid=None if data.qid is None or not data.qid.any() else data.qid)


doubles = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False) | st.integers(-1000, 1000).map(float)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    rows = draw(
        st.lists(st.dictionaries(st.integers(0, 2**31 - 1) | st.integers(0, 20), doubles, max_size=6), min_size=1, max_size=8)
    )
    n = len(rows)
    ordered = [sorted(row.items()) for row in rows]
    flat = [pair for row in ordered for pair in row]
    indices = np.array([index for index, _ in flat], dtype=np.int32)
    labels = draw(st.lists(doubles, min_size=n, max_size=n))
    costs = draw(st.none() | st.lists(doubles.map(abs), min_size=n, max_size=n))
    qids = draw(st.none() | st.lists(st.integers(0, 10**18 - 1), min_size=n, max_size=n))
    return Dataset(
        rows=Rows(
            np.array([value for _, value in flat], dtype=np.float64),
            indices,
            np.cumsum([0, *map(len, rows)], dtype=np.int64),
            int(indices.max(initial=0)),
        ),
        y=np.array(labels, dtype=np.float64),
        weight=None if costs is None else np.array(costs, dtype=np.float64),
        qid=None if qids is None else np.array(qids, dtype=np.int64),
    )


@given(data=datasets())
@settings(max_examples=200, deadline=None)
def test_any_dataset_comes_back_equal(tmp_path_factory: pytest.TempPathFactory, data: Dataset) -> None:
    path = tmp_path_factory.getbasetemp() / "round-trip"
    write_dataset(path, data)
    assert_equal(read_dataset(str(path)), without_empty_notes(data))


def test_heads_of_lines_are_the_shortest() -> None:
    heads = ["1 qid:3 cost:0.5", "-2.5", "? qid:1 cost:1e-05"]
    data = unlabelled("\n".join(heads).encode())
    assert line_heads(data, 0, 3).tolist() == heads
    assert line_heads(data, 1, 2).tolist() == heads[1:2]
