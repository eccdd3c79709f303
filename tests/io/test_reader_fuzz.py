"""The reader against a slow, obvious one and against the genuine svm-train, on whatever text can be made up."""

from __future__ import annotations

import random
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from golden_data import TOOLS, needs_tools
from hypothesis import given, settings
from hypothesis import strategies as st

from svmkit.errors import DataError
from svmkit.io import sparse_lines
from svmkit.io.libsvm_data import read_dataset

Row = tuple[float, list[tuple[int, float]], float, int]

DECIMAL = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
HEXADECIMAL = re.compile(rb"[+-]?0[xX]([\da-fA-F]+(\.[\da-fA-F]*)?|\.[\da-fA-F]+)([pP][+-]?\d+)?")


class Bad(Exception):
    """A line that is to be refused."""


def number(word: bytes, least: float = 0.0) -> float:
    if DECIMAL.fullmatch(word):
        value = float(word)
    elif HEXADECIMAL.fullmatch(word):
        try:
            value = float.fromhex(word.decode())
        except OverflowError:
            raise Bad from None
    else:
        raise Bad
    mantissa = re.split(rb"[pP]" if b"x" in word.lower() else rb"[eE]", word)[0].lower().replace(b"0x", b"")
    if abs(value) == float("inf") or (abs(value) < least and re.search(rb"[1-9a-f]", mantissa)):
        raise Bad
    return value


def row_of(line: bytes) -> Row | None:
    """The example on a line, None for a comment; raises Bad."""
    line = re.sub(rb"(?<=\d):[ \t]+", b":", line.rstrip(b"\r"))
    words = re.split(rb"[ \t]+", line.strip(b" \t"))
    if words == [b""]:
        raise Bad
    if words[0].startswith(b"#"):
        return None
    label, found, cost, qid = number(words[0]), [], None, None
    for k, word in enumerate(words[1:], 1):
        pair = re.fullmatch(rb"([+-]?\d+):(.*)", word, re.DOTALL)
        if word.startswith(b"#"):
            break
        if pair:
            index = int(pair[1])
            if not 0 <= index < 2**31 or (found and index <= found[-1][0]):
                raise Bad
            found.append((index, number(pair[2], 2.0**-1022)))
        elif word.startswith(b"cost:") and cost is None:
            if word.startswith(b"cost:-"):
                raise Bad
            cost = number(word[5:])
        elif re.fullmatch(rb"qid:\d{1,18}", word) and qid is None:
            qid = int(word[4:])
        elif b":" in before_comment(words[k:]).lstrip(b":") or word.startswith(b"\r"):
            raise Bad
        else:
            break
    return label, found, 1.0 if cost is None else cost, qid or 0


def before_comment(words: list[bytes]) -> bytes:
    comments = [k for k, word in enumerate(words) if word.startswith(b"#")]
    return b" ".join(words[: comments[0]] if comments else words)


def expected_outcome(text: bytes) -> list[Row] | int:
    """Every example, or the number of the first line to refuse."""
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    rows = []
    for number_of_line, line in enumerate(lines, 1):
        try:
            row = row_of(line)
        except Bad:
            return number_of_line
        if row is not None:
            rows.append(row)
    return rows or 1


def bits(value: float) -> bytes:
    return struct.pack("d", value)


def refused_line(error: DataError, path: Path) -> int:
    found = re.fullmatch(r"Wrong input format at line (\d+)", error.summary)
    assert found
    assert error.detail.startswith(str(path))
    assert error.detail.isprintable()
    return int(found[1])


def outcome(path: Path, text: bytes) -> list[Row] | int:
    path.write_bytes(text)
    try:
        data = read_dataset(str(path))
    except DataError as error:
        return refused_line(error, path)
    rows = []
    for r in range(data.n):
        part = slice(data.rows.indptr[r], data.rows.indptr[r + 1])
        found_pairs = list(zip(data.rows.indices[part].tolist(), data.rows.data[part].tolist(), strict=True))
        qid = 0 if data.qid is None else int(data.qid[r])
        rows.append((float(data.y[r]), found_pairs, float(data.weights[r]), qid))
    return rows


#: The quick loop over plain pairs stays 72 bytes away from the end of the text.
MORE = b"\n1 " + b" ".join(b"%d:1" % k for k in range(1, 20)) + b"\n"


def assert_as_expected(path: Path, text: bytes) -> None:
    """Of the text as it is, and with another line behind it."""
    assert_outcome(path, text)
    assert_outcome(path, text + MORE)


def assert_outcome(path: Path, text: bytes) -> None:
    got, expected = outcome(path, text), expected_outcome(text)
    assert got == expected, text
    if isinstance(got, list) and isinstance(expected, list):  # 0 == −0, so look at the bits too
        for row, other in zip(got, expected, strict=True):
            assert [bits(v) for _, v in row[1]] == [bits(v) for _, v in other[1]], text
            assert bits(row[0]) == bits(other[0]), text


NUMBERS = [
    "1",
    "-1",
    "+1",
    "0",
    "-0",
    "0.5",
    ".5",
    "5.",
    "1e3",
    "1e400",
    "1e-320",
    "0x1.8p3",
    "nan",
    "inf",
    "1_0",
    "3x",
    "",
    ".",
]
NUMBERS += ["12345678", "123456789", "0.1234567890123456789", "1234567890123456789012", "1e-400", "0e-999", "-", "1e", "2:3"]
INDICES = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "12",
    "123",
    "12345678",
    "2147483647",
    "2147483648",
    "99999999999",
    "-1",
    "+4",
    "04",
    "a",
    "",
    "1.0",
]
OTHERS = [
    "# a:b",
    "#",
    "qid:1",
    "qid:",
    "qid:x",
    "cost:2",
    "cost:-1",
    "cost:",
    "words",
    ":",
    ":3",
    "\r",
    "\0",
    "\v",
    "\xa0",
    "1:\t3",
]
numbers, indices = st.sampled_from(NUMBERS), st.sampled_from(INDICES)
good_pairs = st.lists(st.integers(0, 300), unique=True, max_size=5).map(lambda ks: [f"{k}:{k / 7}" for k in sorted(ks)])
odd_words = st.lists(st.tuples(indices, numbers).map(":".join) | st.sampled_from(OTHERS), max_size=3)
words = st.tuples(numbers.map(lambda n: [n]), good_pairs, odd_words).map(lambda parts: [w for part in parts for w in part])
blanks = st.sampled_from([" ", " ", " ", "\t", "  "])
line_ends = st.sampled_from(["\n", "\n", "\n", "\r\n", " \n", "\r\r\n", "", "\r"])
lines = st.tuples(words, blanks, line_ends).map(lambda t: t[1].join(t[0]) + t[2])


@given(text=st.lists(lines, max_size=4).map(lambda parts: "".join(parts).encode("latin-1")))
@settings(max_examples=600, deadline=None)
def test_lines_from_odd_words_are_read_as_the_slow_reader_reads_them(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    assert_as_expected(tmp_path_factory.getbasetemp() / "fuzz", text)


@given(text=st.binary(max_size=60) | st.text("0123456789:. \t\r\n+-e#x", max_size=60).map(str.encode))
@settings(max_examples=600, deadline=None)
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz"
    if not text.startswith(COMPRESSED):
        assert_as_expected(path, text)


COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")


@given(magic=st.sampled_from(COMPRESSED), rest=st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_rubbish_behind_the_mark_of_a_compression_is_refused(
    tmp_path_factory: pytest.TempPathFactory, magic: bytes, rest: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz"
    path.write_bytes(magic + rest)
    with pytest.raises(DataError):
        read_dataset(str(path))


GOOD = b"".join(
    [
        b"+1 1:0.708333 2:1 3:1 4:-0.320755 5:-0.105023 12:1e-3\n",
        b"-1 2:-1 3:0.333333 4:-0.132075 8:1234567.25 13:1\r\n",
        b"+1 qid:3 cost:0.25 1:0.0416667 2:1 3:-0.333333 # a comment: here\n",
        b"# one of its own\n",
        b"-1 9:0.12345678901234567 10:-12345678901234567890 13:1 \n",
    ]
)


def mutated(rng: random.Random, text: bytes, alphabet: bytes) -> bytes:
    out = bytearray(text)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out))
        kind = rng.randrange(4)
        if kind == 0:
            out[at] = rng.choice(alphabet)
        elif kind == 1:
            out.insert(at, rng.choice(alphabet))
        elif kind == 2:
            del out[at : at + rng.randint(1, 3)]
        else:
            out[at:at] = out[at : at + rng.randint(1, 12)]
    return bytes(out)


def test_mutations_of_a_good_file(tmp_path: Path) -> None:
    rng = random.Random(11)
    counts = {list: 0, int: 0}
    for _ in range(1500):
        text = mutated(rng, GOOD, b"0123456789:. \t\r\n+-e#x\0a")
        assert_as_expected(tmp_path / "data", text)
        counts[type(expected_outcome(text))] += 1
    assert min(counts.values()) > 150  # both answers were tried


def test_damage_in_a_long_file_is_found_on_its_line(tmp_path: Path, two_threads: None) -> None:
    """Several pieces, two threads."""
    rng = random.Random(12)
    text = GOOD * 3000
    assert len(text) > 2 << 18
    for _ in range(8):
        at = rng.randrange(len(text) - 1000)
        damaged = text[:at] + mutated(rng, text[at : at + 300], b":. \n#x") + text[at + 300 :]
        assert outcome(tmp_path / "data", damaged) == expected_outcome(damaged)


def svm_train_accepts(path: Path) -> bool:
    command = [TOOLS / "svm-train", "-q", "-s", "2", "-t", "0", "-e", "1e30", str(path), str(path) + ".model"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0 or "Wrong input format" in done.stderr, done.stderr
    return done.returncode == 0


@needs_tools
def test_svm_train_accepts_and_refuses_the_same(tmp_path: Path) -> None:
    """Ours reads more (comments, notes, a lone label before CR LF), refuses what LIBSVM misreads; else they agree."""
    rng = random.Random(13)
    plain = b"+1 1:0.708333 2:1 4:-0.320755\n-1 2:-1 3:0.333333 13:1 \r\n+1\n-1 5:1 6:1e-3\n"
    rubbish = re.compile(rb"\r(?!\r*(\n|$))|[ \t]:|\d{10}|e[+-]?\d{3}|\A\n*\Z")
    more = re.compile(rb"#|^[ \t]*[-+.\dex]+[ \t]*\r+$", re.MULTILINE)
    agreed = {True: 0, False: 0}
    for _ in range(600):
        text = mutated(rng, plain, b"0123456789:. \t\r\n+-e#xa")
        if rubbish.search(text) or more.search(text):
            continue
        accepted = isinstance(outcome(tmp_path / "data", text), list)
        assert accepted == svm_train_accepts(tmp_path / "data"), text
        agreed[accepted] += 1
    assert min(agreed.values()) > 100
    assert np.sum([*agreed.values()]) > 300


def test_whole_numbers_of_every_length(tmp_path: Path) -> None:
    draw, rows, written = random.Random(5), [], []
    for _ in range(2000):
        indices = sorted({draw.randrange(10 ** draw.randint(1, 9)) for _ in range(draw.randint(1, 12))})
        pairs = [(index, draw.randrange(10 ** draw.randint(1, 9))) for index in indices]
        words = [f"{'0' * draw.randrange(3)}{index}:{'0' * draw.randrange(3)}{value}" for index, value in pairs]
        written.append("1 " + draw.choice([" ", " ", "  ", "\t"]).join(words) + draw.choice(["", " "]))
        rows.append([(index, float(value)) for index, value in pairs])
    found = outcome(tmp_path / "data", "\n".join(written).encode())
    assert isinstance(found, list)
    assert [pairs for _, pairs, _, _ in found] == rows


def test_plain_decimals_of_every_length(tmp_path: Path) -> None:
    """On both sides of what the quick loop takes: eight digits before and behind the point, 15 in all."""
    draw, rows, written = random.Random(7), [], []

    def digits(least: int, most: int) -> str:
        return "".join(draw.choices("0123456789", k=draw.randint(least, most)))

    for _ in range(3000):
        pairs = []
        for index in sorted({draw.randrange(10 ** draw.randint(1, 9)) for _ in range(draw.randint(1, 12))}):
            pairs.append((index, draw.choice(["", "", "-"]) + digits(1, 10) + draw.choice(["", ".", "." + digits(1, 10)])))
        written.append("1 " + " ".join(f"{index}:{value}" for index, value in pairs) + draw.choice(["", " "]))
        rows.append([(index, bits(float(value))) for index, value in pairs])
    found = outcome(tmp_path / "data", "\n".join(written).encode())
    assert isinstance(found, list)
    assert [[(index, bits(value)) for index, value in pairs] for _, pairs, _, _ in found] == rows


def test_count_takes_any_range_of_any_bytes() -> None:
    text = np.random.default_rng(6).choice(np.array([9, 10, 11, 57, 58, 59, 138, 186, 0, 255], dtype=np.uint8), 400)
    for start in (0, 1, 63, 64, 65, 130):
        for stop in range(start, 400, 7):
            counts = np.array([3, 4])
            sparse_lines.count(text, start, stop, counts)
            part = text[start:stop]
            assert counts.tolist() == [3 + (part == 10).sum(), 4 + (part == 58).sum()]
