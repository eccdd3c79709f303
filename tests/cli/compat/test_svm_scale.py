"""svm-scale: the same words, codes and bytes as LIBSVM's, and where we differ on purpose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from golden_data import needs_tools
from old_tools import Outcome, genuine, ours, start
from shell import svmkit

from svmkit.cli.compat import svm_scale
from svmkit.io import chunks

FILES = {
    "plain": "1 1:2 3:4 5:1e-3\n-1 1:3 3:4\n",
    "sparse": "1 2:5 7:1\n2 7:3\n3\n4 1:-2 9:4 11:1e5\n",
    "non_negative": "1 1:1 3:2\n2 2:1\n3 3:1\n",
    "constant": "1 1:3 2:5\n2 1:3 2:6\n",
    "zero_based": "1 0:5 1:2\n2 0:7 1:2.5 2:3\n",
    "zero_kept": "1 1:0 2:3\n2 1:1 2:0\n",
    "no_newline": "1 1:1 2:3\n2 1:2",
    "tail": "1 1:2 2:3 x 5:7\n2 1:4 2:1\n",
    "crlf": "1 1:2 2:3\r\n2 1:4 2:1\r\n",
    "blanks": "  1\t 1:2   2: 3 \n2 1:4 2:1  \n",
    "label_words": "1,2 1:1\n2abc 1:2\n0x10 1:4\n",
    "unsorted": "1 2:1 1:3\n2 1:2 3:4\n3 4:1 4:2\n",
    "long_index": "1 2:1 000000000001:3\n2 1:2 3:4\n",
    "half_number": "1 1:3x 2:1\n2 1:4 2:2\n",
    "labels": "1.5 1:1\n-2.25 1:2\n1e10 1:3\n",
    "same_label": "3 1:1\n3 1:2\n",
    "wide": "1 1:0.1 2:123456789 3:1e-7\n2 1:0.3 2:1.5 3:1e300\n3 1:-1e300 2:-0.000123456 3:5\n",
    "empty": "",
    "label_only": "1\n2\n",
    "blank": "1 1:2\n\n2 1:3\n",
    "word": "a 1:2\n",
    "accent": "é 1:2\n",
    "bare_hex_label": "0x 1:2\n",
    "ranges": "x\n-1 1\n1 0 10\n2 5 5\n12 0 5\n",
    "label_ranges": "y\n0 1\n-2 2\nx\n0 2\n1 0 10\n3 -1 1\n",
    "range_of_0": "x\n-1 1\n0 0 10\n1 0 5\n",
    "bad_label_ranges": "y\n-1 1\n0\n",
    "short_ranges": "x\n-1\n",
    "other_ranges": "x\n1 2\n3 4 5 6\n",
}
SCALED = [name for name in FILES if "range" not in name and name != "empty"]
OPTIONS = ["", "-l 0", "-l 0 -u 2.5", "-u 3 -l -2", "-y 0 1", "-y -1 1 -l 0", "-s kept", "-s kept -y 5 7", "-lower 0.5"]
OPTIONS += ["-r ranges", "-r label_ranges", "-r range_of_0", "-r ranges -y 0 1", "-l 3 -u 4 -r ranges"]
FAILING = ["", "plain plain", "-x 1 plain", "-l 1 plain", "-l 1 -u 1 plain", "-y 1 0 plain", "-s a -r ranges plain", "nofile"]
FAILING += ["-r nofile plain", "-r short_ranges plain", "-r bad_label_ranges plain", "-s no/where plain", "blank", "word"]
FAILING += ["-l 3 -u 2 nofile", "-r nofile nofile"]


@pytest.fixture(scope="module")
def scale_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("scale") / "data"
    made.mkdir()
    for name, text in FILES.items():
        (made / name).write_bytes(text.encode())
    return made


def _without_tails(outcome: Outcome) -> str:
    """stderr less the lines that we have over svm-scale: words left out are told, and what svm-train would refuse."""
    over = ("were left out on", "svm-train would refuse")
    return "".join(line for line in outcome.err.splitlines(keepends=True) if not any(words in line for words in over))


@needs_tools
@pytest.mark.parametrize("options", OPTIONS)
def test_output_is_svm_scale_s_to_the_byte(options: str, scale_folder: Path) -> None:
    for name in SCALED:
        argv = [*options.split(), name]
        theirs, mine = genuine("svm-scale", argv, scale_folder), ours("svm-scale", argv, scale_folder)
        if theirs.code == 255:
            assert (mine.code, mine.first_error) == (1, theirs.first_error), argv
            continue
        assert (mine.code, mine.out, mine.files) == (theirs.code, theirs.out, theirs.files), argv
        assert _without_tails(mine) == theirs.err, argv


@needs_tools
@pytest.mark.parametrize("call", FAILING)
def test_failures_are_svm_scale_s(call: str, scale_folder: Path) -> None:
    theirs, mine = genuine("svm-scale", call.split(), scale_folder), ours("svm-scale", call.split(), scale_folder)
    assert mine.code == 1
    assert theirs.code in (1, 255)
    assert mine.first_error == theirs.first_error
    assert mine.out.partition("\n")[0].split(" data_filename")[0] == theirs.out.partition("\n")[0].split(" data_filename")[0]


GOLDEN = {
    "plain": ("1 1:-1 5:1 \n-1 1:1 5:-1 \n", ""),
    "-l 0 non_negative": ("1 1:1 3:1 \n2 2:1 \n3 3:0.5 \n", ""),
    "constant": ("1 2:-1 \n2 2:1 \n", ""),
    "-y 0 1 plain": ("1 1:-1 5:1 \n0 1:1 5:-1 \n", ""),
    "-r ranges plain": (
        "1 1:-0.6 12:-1 \n-1 1:-0.4 12:-1 \n",
        "WARNING: feature index 5 appeared in file plain was not seen in the scaling factor file ranges. "
        "The feature is scaled to 0.\n",
    ),
    "zero_based": (
        "1 0:-1 1:-1 2:-1 \n2 0:1 1:1 2:1 \n",
        "WARNING: minimal feature index is 0, but indices should start from 1\n"
        "WARNING: original #nonzeros 5\n       > new      #nonzeros 6\n"
        "If feature values are non-negative and sparse, use -l 0 rather than the default -l -1\n",
    ),
}


@pytest.mark.parametrize("call", GOLDEN)
def test_output_by_heart(call: str, scale_folder: Path) -> None:
    outcome = ours("svm-scale", call.split(), scale_folder)
    assert (outcome.code, outcome.out, outcome.err) == (0, *GOLDEN[call])


def test_saved_ranges_by_heart(scale_folder: Path) -> None:
    outcome = ours("svm-scale", ["-s", "kept", "-y", "0", "1", "-l", "0", "sparse"], scale_folder)
    ranges = b"y\n0 1\n1 4\nx\n0 1\n1 -2 0\n2 0 5\n7 0 3\n9 0 4\n11 0 100000\n"
    assert outcome.files == {"kept": ranges}


@pytest.mark.parametrize(
    ("call", "first", "second"),
    [
        ("bare_hex_label", "ERROR: failed to read labels", "bare_hex_label, line 1: '0x 1:2' is no label"),
        ("word", "ERROR: failed to read labels", "word, line 1: 'a 1:2' is no label"),
        ("accent", "ERROR: failed to read labels", "accent, line 1: 'é 1:2' is no label"),
        ("-u inf plain", "ERROR: the limit inf is not a finite number", ""),
        ("-y 0 1e400 plain", "ERROR: the limit inf is not a finite number", ""),
        ("-r short_ranges plain", "ERROR: failed to read scaling parameters", "short_ranges, line 2: must be"),
        ("-r other_ranges plain", "ERROR: failed to read scaling parameters", "other_ranges, line 3: must be"),
        ("-r plain plain", "ERROR: failed to read scaling parameters", "plain, line 1: must be `x` or `y`"),
        ("nofile", "can't open file nofile", "No such file"),
        ("-s - plain", "cannot save ranges to standard output (-s -): the scaled data go there", ""),
        ("-s nofolder/kept plain", "can't open file nofolder/kept", "can't write nofolder/kept: there is no folder"),
    ],
)
def test_failures_by_heart(call: str, first: str, second: str, scale_folder: Path) -> None:
    outcome = ours("svm-scale", call.split(), scale_folder)
    assert (outcome.code, outcome.out, outcome.files) == (1, "", {})
    lines = outcome.err.splitlines()
    assert lines[0] == first
    assert "".join(lines[1:]).startswith(second)


@pytest.mark.parametrize("text", ["1 1:nan\n2 1:2\n", "1 1:2\n2 1:inf\n", "nan 1:1\n", "1 -1:2\n", "1 4294967297:2\n"])
def test_what_no_scaling_can_take_is_refused(text: str, scale_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "odd").write_text(text)
    outcome = ours("svm-scale", ["-s", "kept", "odd"], folder)
    assert (outcome.code, outcome.out, outcome.files) == (1, "", {})
    assert outcome.first_error.startswith("Wrong input format at line")


@pytest.mark.parametrize(
    ("last", "word", "reason"),
    [
        ("1 2:inf", "2:inf", "not a finite number"),
        ("1 2: 1e400", "1e400", "not a finite number"),
        ("-nan 2:1", "-nan", "not a finite number"),
        ("1 -2:1", "-2:1", "a feature index must not be negative"),
        ("1 4294967297:1", "4294967297:1", "a feature index must be below 2147483648"),
        ("1 99999999999:1", "99999999999:1", "a feature index must be below 2147483648"),
        pytest.param(f"1 {'9' * 5000}:1", "9" * 40, "a feature index must be below 2147483648", id="5000 digits"),
    ],
)
def test_the_line_named_is_that_which_no_scaling_can_take(last: str, word: str, reason: str, tmp_path: Path) -> None:
    """Not one before it that svm-scale takes, though svm-train would not."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "odd").write_text(f"1 1:1 2:1\n2 1:2 1:3\n{last}\n")
    outcome = ours("svm-scale", ["odd"], folder)
    assert (outcome.code, outcome.first_error) == (1, "Wrong input format at line 3")
    assert outcome.err.splitlines()[1].startswith(f"odd, line 3: {word!r}: {reason}")


@pytest.mark.parametrize(
    ("line", "word", "reason"),
    [
        ("1 1:0,5 2:3", "column 5: '0,5'", "not a number (decimals take a point)"),
        ("1 1:2 2:3 x 5:7", "column 11: 'x'", "a pair is written index:value"),
        ("1 2:3 1:2", "column 7: '1:2'", "feature indices must ascend"),
    ],
)
def test_what_is_scaled_of_a_file_that_svm_train_refuses_is_told(line: str, word: str, reason: str, tmp_path: Path) -> None:
    """svm-scale takes 0 for 0,5, and drops what follows a word that it does not know, in silence."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "d").write_text(f"2 1:1\n{line}\n")
    outcome = ours("svm-scale", ["d"], folder)
    assert outcome.code == 0
    told = [said for said in outcome.err.splitlines() if "svm-train would refuse" in said]
    assert len(told) == 1
    assert f"d, line 2, {word}: {reason}" in told[0]


def test_the_data_are_no_range_file(scale_folder: Path) -> None:
    outcome = ours("svm-scale", ["-s", "./plain", "plain"], scale_folder)
    reason = "./plain: names one file for two purposes, and would be overwritten"
    assert outcome == Outcome(1, "", f"can't open file ./plain\n{reason}\n", {})


def test_labels_beside_a_range_of_one_point_are_told(tmp_path: Path) -> None:
    """svm-scale makes infinities of them."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "d").write_text("1 1:1\n3 1:2\n5 1:3\n")
    (folder / "r").write_text("y\n0 1\n3 3\nx\n-1 1\n1 1 3\n")
    said = "r: its range of labels is one point, 3; 2 other labels become 0 as well\n"
    assert ours("svm-scale", ["-r", "r", "d"], folder) == Outcome(0, "0 1:-1 \n0 \n0 1:1 \n", f"WARNING: {said}", {})
    assert svmkit("scale", "-q", "-r", "r", "d", "o", cwd=folder).stderr == f"svmkit: warning: {said}"
    (folder / "d").write_text("3 1:1\n")
    assert ours("svm-scale", ["-r", "r", "d"], folder) == Outcome(0, "0 1:-1 \n", "", {})


def test_notes_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "noted").write_text("1 qid:3 1:1 # words\n2 1:3\n3 qid:4 cost:0.5 1:2\n")
    assert ours("svm-scale", ["noted"], folder).out == "1 qid:3 1:-1 \n2 1:1 \n3 qid:4 cost:0.5 1:0 \n".replace(" 1:0", "")


@pytest.mark.parametrize("size", [8, 1 << 23])
def test_a_part_of_comments_scales_to_nothing(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "PART_BYTES", size)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "noted").write_text("# first words\n1 1:1\n2 1:3\n# last words")
    assert ours("svm-scale", ["noted"], folder) == Outcome(0, "1 1:-1 \n2 1:1 \n", "", {})
    (folder / "notes").write_text("# first words\n# last words")
    assert ours("svm-scale", ["notes"], folder).err == "Wrong input format at line 1\nnotes: the file holds no example\n"


def test_an_empty_file_scales_to_nothing(scale_folder: Path) -> None:
    assert ours("svm-scale", ["empty"], scale_folder) == Outcome(0, "", "", {})
    assert ours("svm-scale", ["-s", "kept", "-y", "0", "1", "empty"], scale_folder).files == {"kept": b"x\n-1 1\n"}
    assert ours("svm-scale", ["-r", "ranges", "empty"], scale_folder) == Outcome(0, "", "", {})


def test_a_missing_value_is_a_usage_error(scale_folder: Path) -> None:
    for argv in (["-l"], ["-y", "1"], ["-l", "0"]):
        assert ours("svm-scale", argv, scale_folder).out == svm_scale.USAGE


def test_standard_input(scale_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "-").touch()  # a file of that name is another thing
    process = start("svm-scale", ["-"], tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, _ = process.communicate(FILES["plain"].encode())
    assert (process.returncode, out.decode()) == (0, GOLDEN["plain"][0])
    outcome = ours("svm-scale", ["-r", "-", "-"], scale_folder)
    assert (outcome.code, outcome.files) == (1, {})
    assert outcome.first_error.startswith("two of the files are standard input (-), which can be read only once")


def test_many_pieces_make_the_same_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "long").write_text("".join(f"{r} {1 + r % 7}:{r % 11} {8 + r % 5}:{r / 7}\n" for r in range(500)))
    whole = ours("svm-scale", ["long"], folder)
    monkeypatch.setattr("svmkit.cli.scaled_text._PAIRS_A_PIECE", 13)
    assert ours("svm-scale", ["long"], folder) == whole
    monkeypatch.setattr("svmkit.cli.scaled_text._BYTES_A_GROUP", 1)
    assert ours("svm-scale", ["long"], folder) == whole


@pytest.mark.parametrize("options", OPTIONS)
def test_parts_of_a_file_are_scaled_as_the_whole(options: str, scale_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line by itself here; of lines that svm-train refuses the first is told either way."""
    for name in SCALED:
        whole = ours("svm-scale", [*options.split(), name], scale_folder)
        with monkeypatch.context() as patch:
            patch.setattr(chunks, "PART_BYTES", 1)
            assert ours("svm-scale", [*options.split(), name], scale_folder) == whole, name


def test_parts_of_a_pipe_are_kept_for_the_second_look(scale_folder: Path) -> None:
    code = "from svmkit.cli.compat import svm_scale; from svmkit.io import chunks; chunks.PART_BYTES = 1; svm_scale.main()"
    argv = [sys.executable, "-c", code, "-"]
    done = subprocess.run(argv, input=FILES["plain"].encode(), cwd=scale_folder, capture_output=True, check=True)
    assert done.stdout.decode() == GOLDEN["plain"][0]
