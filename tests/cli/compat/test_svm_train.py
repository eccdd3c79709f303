"""svm-train: the same words, codes and files as LIBSVM's, and where we differ on purpose."""

from __future__ import annotations

import gzip
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from golden_data import GOLDEN, needs_tools
from old_tools import Outcome, genuine, ours, start, without_compiling
from zoo import points

from svmkit.cli.compat import svm_train
from svmkit.cli.compat.argv import Usage
from svmkit.config import TrainConfig
from svmkit.fit import fit
from svmkit.io.libsvm_data import read_dataset
from svmkit.io.model_libsvm import read_model
from svmkit.model import decision_values

#: Calls that train. Their numbers are exact in single precision, to which Debian's 3.24 rounds the values of options.
TRAINING = [
    "two",
    "two m",
    "-t 0 two m",
    "-t 1 -d 2 -r 1 two m",
    "-t 3 -g 0.125 two m",
    "-t 4 gram m",
    "-t 4 -v 4 gram",
    "three m",
    "-c 10 -g 0.5 three m",
    "one m",
    "-v 2 one",
    "-v 5 two",
    "-v 3 three",
    "-v 70 three",
    "-v 99 -q three",
    "-q -v 2 two",
    "-v 8 eleven",
    "-v 10 -w1 2 eleven",
    "-v 2 own",
    "-v 2 -w1 2 -w7 2 own",
    "-v 3 own",
    "-v 3 single",
    "-q -v 2 single",
    "-q two m",
    "-w1 2 two m",
    "-w-1 0.25 -w1 2 -w1 3 -w7 5 two m",
    "-w3 2 -w2 2 three m",
    "-w1 2 -w-1 2 two m",
    "-gamma 0.5 -cost 5 two m",
    "-c 1 -c 7 two m",
    "-h 0 -t 0 -c 100 two m",
    "-h 1 -t 0 -c 1000 two m",
    "-e 9.5367431640625e-07 two m",
    "-m 0.0009765625 three m",
    "-c 0x10 two m",
    "-n 0.25 -p 3 two m",
    "-r -1 -t 1 -g 1 two m",
    "two m -c 5 nonsense",
    "-b 0 -s 0 two m",
    "-t 0 -g -1 two m",
    "-t 2 -d -1 two m",
]
#: Calls that fail.
FAILING = [
    "",
    "-q",
    "-c 1",
    "-c",
    "-x",
    "-x 1 two",
    "--help",
    "-h",
    "-c10 two",
    "-v 1 two",
    "-v 1 -x 1 two",
    "nofile",
    "-s 9 -t 9 two",
    "-t 7 -c 0 two",
    "-g -1 two",
    "-t 1 -d -1 two",
    "-m 0 two",
    "-e 0 two",
    "-e -1 -c 0 two",
    "-c 0 two",
    "-c -1 -h 3 two",
    "-h 2 two",
    "-b 2 two",
    "bad m",
    "blank m",
    "-t 4 two m",
    "-c -1 bad",
]


def _words(call: str) -> list[str]:
    return call.split()


def _first_error(outcome: Outcome) -> str:
    """3.24 does not say how many folds and examples there are."""
    return re.sub(r"# (folds|data) \(\d+\)", r"# \1", outcome.first_error)


def _shape(text: str) -> list[str]:
    """The lines with every number taken out, the dots, and advice that only svm-train's own steps call for."""
    text = re.sub(r"(?m)^[.*]+$", "*", text.replace("\nWARNING: using -h 0 may be faster\n", ""))
    return [re.sub(r"[-+]?(\d+(\.\d+)?|inf|nan)", "#", line) for line in text.splitlines()]


def _objectives(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"obj = (\S+),", text)]


@needs_tools
@pytest.mark.parametrize("call", TRAINING)
def test_exact_mode_is_svm_train_to_the_byte(call: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVMKIT_EXACT", "1")
    theirs, mine = genuine("svm-train", _words(call), folder), ours("svm-train", _words(call), folder)
    assert (mine.code, mine.out) == (theirs.code, theirs.out)
    assert _first_error(mine) == _first_error(theirs)
    assert mine.files == theirs.files


@needs_tools
@pytest.mark.parametrize("call", TRAINING)
def test_default_solver_tells_the_same_in_its_own_figures(call: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SVMKIT_EXACT", raising=False)
    theirs, mine = genuine("svm-train", _words(call), folder), ours("svm-train", _words(call), folder)
    assert (mine.code, _shape(mine.out)) == (theirs.code, _shape(theirs.out))
    assert _objectives(mine.out) == pytest.approx(_objectives(theirs.out), rel=1e-4, abs=1e-4)
    assert _first_error(mine) == _first_error(theirs)
    assert mine.files.keys() == theirs.files.keys()
    assert [line for line in mine.out.splitlines() if "Cross" in line] == [
        line for line in theirs.out.splitlines() if "Cross" in line
    ]


@needs_tools
@pytest.mark.parametrize("call", FAILING)
def test_failures_are_svm_train_s(call: str, folder: Path) -> None:
    theirs, mine = genuine("svm-train", _words(call), folder), ours("svm-train", _words(call), folder)
    assert (mine.code, mine.files) == (theirs.code, theirs.files) == (1, {})
    assert mine.first_error == theirs.first_error
    assert mine.out.partition("\n")[0] == theirs.out.partition("\n")[0]


WRITTEN = {
    "": ("Usage: svm-train [options] training_set_file [model_file]", ""),
    "-x 1 two": ("Usage: svm-train [options] training_set_file [model_file]", "Unknown option: -x"),
    "-v 1 two": ("Usage: svm-train [options] training_set_file [model_file]", "n-fold cross validation: n must >= 2"),
    "nofile": ("", "can't open input file nofile"),
    "-c abc two": ("", "ERROR: C <= 0"),
    "-s 5 two": ("", "ERROR: unknown svm type"),
    "-t 5 two": ("", "ERROR: unknown kernel type"),
    "-g -1 two": ("", "ERROR: gamma < 0"),
    "-t 1 -d -1 two": ("", "ERROR: degree of polynomial kernel < 0"),
    "-m 0 two": ("", "ERROR: cache_size <= 0"),
    "-e 0 two": ("", "ERROR: eps <= 0"),
    "-h 2 two": ("", "ERROR: shrinking != 0 and shrinking != 1"),
    "-b 2 two": ("", "ERROR: probability != 0 and probability != 1"),
    "blank": ("", "Wrong input format at line 2"),
    "-t 4 two": ("", "Wrong input format: first column must be 0:sample_serial_number"),
    "-c inf two": ("", "ERROR: -c: inf is not a finite number"),
    "-w1 0 two": ("", "ERROR: -w1: weight 0 must be greater than 0"),
    "-w1 1e400 two": ("", "ERROR: -w1: weight inf is not a finite number"),
    "two folder/sub/m": ("", "can't save model to file folder/sub/m"),
    "folder": ("", "can't open input file folder"),
    "empty": ("", "Wrong input format at line 1"),
}


@pytest.mark.parametrize("call", WRITTEN)
def test_failures_by_heart(call: str, folder: Path) -> None:
    outcome = ours("svm-train", _words(call), folder)
    assert (outcome.code, outcome.files) == (1, {})
    assert (outcome.out.partition("\n")[0], outcome.first_error) == WRITTEN[call]


def test_text_by_heart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVMKIT_EXACT", "1")
    (folder / "tiny").write_text("1 1:2\n-1 1:3\n2 1:9\n")
    try:
        outcome = ours("svm-train", ["tiny"], folder)
    finally:
        (folder / "tiny").unlink()
    block = "*\noptimization finished, #iter = 1\nnu = 1.000000\nobj = -{}, rho = {}\nnSV = 2, nBSV = 2\n"
    expected = block.format("1.367879", "0.000000") + 2 * block.format("1.000000", "0.000000") + "Total nSV = 3\n"
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == expected
    assert list(outcome.files) == ["tiny.model"]


def test_one_class(folder: Path) -> None:
    outcome = ours("svm-train", ["one", "m"], folder)
    assert outcome.out == "WARNING: training data in only one class. See README for details.\nTotal nSV = 0\n"
    header = b"svm_type c_svc\nkernel_type rbf\ngamma 0.20000000000000001\nnr_class 1\ntotal_sv 0\nrho\nlabel 4\nnr_sv 0\nSV\n"
    assert outcome.files == {"m": header}


@pytest.mark.parametrize("call", ["-s 1 two", "-s 2 two", "-s 3 value", "-s 4 value", "-b 1 two"])
def test_what_is_missing_is_refused_in_one_line(call: str, folder: Path) -> None:
    outcome = ours("svm-train", _words(call), folder)
    assert (outcome.code, outcome.out, outcome.files) == (1, "", {})
    assert outcome.err.startswith(call[:4])
    assert outcome.err.count("\n") == 1


def test_usage_names_every_option(folder: Path) -> None:
    usage = ours("svm-train", [], folder).out
    assert re.findall(r"^-(\w+)", usage, re.MULTILINE) == [*"stdgrcnpmehb", "wi", "v", "q"]


def test_parsing_to_the_letter() -> None:
    call = svm_train.parse(["-shrinking", "0", "-w", "2", "-w-3", "5", "-c", "1.9x", "-d", "2.9", "dir/data", "m", "more"])
    assert (call.svm_type, call.shrinking, call.C, call.degree) == (0, 1, 1.9, 2)
    assert call.weights == [(0, 2.0), (-3, 5.0)]
    assert (call.data, call.model) == ("dir/data", "m")
    assert svm_train.parse(["dir/data"]).model == "data.model"
    with pytest.raises(Usage):
        svm_train.parse(["-c10", "data"])


def test_folds_are_svm_train_s(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Golden last lines, which wrong folds would hardly meet."""
    given = ["-g", "0.25", "-e", "1e-9", "-w7", "2", "-w4", "0.5", "-q"]
    for folds in (2, 5, 24):
        outcome = ours("svm-train", [*given, "-v", str(folds), str(GOLDEN / "three")], folder)
        assert outcome.out == (GOLDEN / f"three.v{folds}").read_text()


def test_every_fold_is_trained_and_told(folder: Path) -> None:
    """Eight folds of eleven examples: one holds nothing out. Two of classes of one example: the last holds everything out."""
    assert ours("svm-train", ["-v", "8", "eleven"], folder).out.count("optimization finished") == 8
    totals = [line for line in ours("svm-train", ["-v", "2", "own"], folder).out.splitlines() if "Total" in line]
    assert totals == ["Total nSV = 3", "Total nSV = 0"]
    single = ours("svm-train", ["-v", "3", "single"], folder)
    assert (single.code, single.out) == (0, "Total nSV = 0\nCross Validation Accuracy = 0%\n")
    assert single.err.startswith("WARNING: # folds (3) > # data (1). Will use # folds = # data instead")
    assert single.err.count("\n") == 1


def test_the_line_grid_searches_look_for(folder: Path) -> None:
    """They take the last word of the line with ``Cross``, less its last character."""
    lines = [line for line in ours("svm-train", ["-v", "5", "two"], folder).out.splitlines() if "Cross" in line]
    assert len(lines) == 1
    assert 0 <= float(lines[0].split()[-1][:-1]) <= 100


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(packed: bool, folder: Path, tmp_path: Path) -> None:
    content = (folder / "two").read_bytes()
    process = start("svm-train", ["-q", "-", "m"], tmp_path, stdin=subprocess.PIPE)
    process.communicate(gzip.compress(content) if packed else content)
    assert process.returncode == 0
    assert (tmp_path / "m").read_bytes() == ours("svm-train", ["two", "m"], folder).files["m"]


def test_a_model_on_standard_output_stands_there_alone(folder: Path) -> None:
    out, _ = start("svm-train", ["two", "-"], folder, stdout=subprocess.PIPE).communicate()
    assert out == ours("svm-train", ["two", "m"], folder).files["m"]


def test_an_unwritable_model_is_refused_before_training(folder: Path) -> None:
    outcome = ours("svm-train", ["two", "folder"], folder)
    assert (outcome.code, outcome.out, outcome.first_error) == (1, "", "can't save model to file folder")


def test_a_model_over_its_own_data_is_refused_before_training(folder: Path) -> None:
    text = "can't save model to file ./two\n./two: names one file for two purposes, and would be overwritten\n"
    assert ours("svm-train", ["two", "./two"], folder) == Outcome(1, "", text, {})


def test_a_full_disk_is_svm_trains_first_line(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "two").write_bytes((folder / "two").read_bytes())
    assert ours("svm-train", ["two", "m"], folder).code == 0  # whatever must be compiled is, before files are limited
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))}
    process = start("svm-train", ["-q", "two", "m"], tmp_path, stderr=subprocess.PIPE, **limit)
    _, err = process.communicate(timeout=60)
    text = "can't save model to file m\ncan't write m: File too large; nothing was overwritten\n"
    assert (process.returncode, without_compiling(err.decode())) == (1, text)


def endless(folder: Path) -> list[str]:
    """Arguments of a training that takes long, whose data it writes."""
    rows = "".join(
        f"{1 if (r * 7919) % 13 < 6 else -1} 1:{(r * 37) % 101 / 101} 2:{(r * 59) % 211 / 211}\n" for r in range(3000)
    )
    (folder / "hard").write_text(rows)
    return ["-t", "0", "-c", "1e7", "-e", "1e-9", "hard", "m"]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_signals_save_nothing(signum: int, tmp_path: Path) -> None:
    process = start("svm-train", endless(tmp_path), tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.read(1) == b"."
    process.send_signal(signum)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, without_compiling(err.decode())) == (1, "\nsvm-train: interrupted before it was done\n")
    assert [path.name for path in tmp_path.iterdir()] == ["hard"]


@pytest.mark.parametrize("exact", ["0", "1"])
def test_dots_come_while_it_trains(exact: str, tmp_path: Path) -> None:
    """A reader of the pipe sees them at once; this is what tells a live run from a dead one."""
    environment = {**os.environ, "SVMKIT_EXACT": exact}
    process = start("svm-train", endless(tmp_path), tmp_path, stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 1) == b"."
    assert process.poll() is None
    process.kill()
    process.communicate()


@pytest.mark.parametrize("tool", ["svm-train", "svm-predict", "svm-scale"])
def test_a_reader_that_left_costs_no_model(tool: str, folder: Path, tmp_path: Path) -> None:
    """Training and prediction go on without it; scaled data have nowhere to go."""
    argv = {"svm-train": ["two", "o"], "svm-scale": ["two"], "svm-predict": ["two", "m", "o"]}[tool]
    for name, content in {"two": (folder / "two").read_bytes(), **ours("svm-train", ["two", "m"], folder).files}.items():
        (tmp_path / name).write_bytes(content)
    reading, writing = os.pipe()
    os.close(reading)
    process = start(tool, argv, tmp_path, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    _, err = process.communicate()
    said = f"{tool}: standard output was closed by its reader before all was written\n"
    lost = (1, said) if tool == "svm-scale" else (0, "")
    assert (process.returncode, without_compiling(err.decode())) == lost
    assert (tmp_path / "o").exists() == (tool != "svm-scale")


def _with_a_lost_stream(tool: str, argv: list[str], lost: str, folder: Path) -> tuple[int, str]:
    """Exit code and stderr of a run whose output is closed, or goes to a full disk."""
    number, name = (2, "stderr") if lost.startswith("2") else (1, "stdout")
    with open("/dev/full", "wb") as full:
        stream = {"preexec_fn": lambda: os.close(number)} if lost.endswith("closed") else {name: full}
        process = start(tool, argv, folder, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **stream})
        _, err = process.communicate(timeout=60)
    return process.returncode, without_compiling((err or b"").decode())


@pytest.mark.parametrize("lost", ["closed", "full", "2 closed", "2 full"])
@pytest.mark.parametrize("call", ["svm-train -w7 2 two made", "svm-predict two.t m made"])
def test_text_that_cannot_be_written_costs_nothing_else(call: str, lost: str, folder: Path, tmp_path: Path) -> None:
    """A lost stream is no reason to throw the training away: its model is what was asked for."""
    tool, *argv = call.split()
    model = ours("svm-train", ["two", "m"], folder).files
    for name, content in {"two": (folder / "two").read_bytes(), "two.t": (folder / "two.t").read_bytes(), **model}.items():
        (tmp_path / name).write_bytes(content)
    warning = "WARNING: class label 7 specified in weight is not found\n" * (tool == "svm-train" and lost[0] != "2")
    made = ours(tool, argv, tmp_path).files["made"]
    assert _with_a_lost_stream(tool, argv, lost, tmp_path) == (0, warning)
    assert (tmp_path / "made").read_bytes() == made


@pytest.mark.parametrize("call", ["svm-train -v 3 two", "svm-train -q -v 3 two", "svm-scale two"])
@pytest.mark.parametrize(("lost", "why"), [("closed", "can't write to standard output: it is closed"), ("full", "No space")])
def test_a_result_that_cannot_be_written_is_one_line(call: str, lost: str, why: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "two").write_bytes((folder / "two").read_bytes())
    tool, *argv = call.split()
    code, err = _with_a_lost_stream(tool, argv, lost, tmp_path)
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith(f"{tool}: ")
    assert why in err


def test_the_usage_is_no_error_of_its_own(tmp_path: Path) -> None:
    assert _with_a_lost_stream("svm-train", [], "closed", tmp_path) == (1, "")


def test_a_usage_error_imports_nothing_heavy(tmp_path: Path) -> None:
    look = "import sys; from svmkit.cli.compat.svm_train import main; main(['-x', '1']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    modules = done.stdout.splitlines()[-1].split()
    assert not {"numpy", "numba", "scipy", "click"} & set(modules)


def test_a_model_that_carries_w_in_its_rows_keeps_them_whole(tmp_path: Path) -> None:
    """Cut to 8 digits, as the rows of other models are, they would say nothing of w: 48 % in place of 64."""
    X, y = points(300, 4, seed=4, noise=0.2)
    X = np.abs(X) * np.array([0.1, 150.0, 3.0, 300.0])
    values = [" ".join(f"{i}:{value:.17g}" for i, value in enumerate(row, 1)) for row in X]
    (tmp_path / "data").write_text("".join(f"{label:.0f} {line}\n" for label, line in zip(y, values, strict=True)))
    argv = ["-q", "-t", "1", "-g", "0.25", "-r", "1", "data", "m"]
    (tmp_path / "m").write_bytes(ours("svm-train", argv, tmp_path).files["m"])
    dataset = read_dataset(str(tmp_path / "data"))
    trained = decision_values(fit(dataset, TrainConfig(kernel="polynomial", gamma=0.25, coef0=1.0)).model, dataset.rows)
    assert decision_values(read_model(str(tmp_path / "m")), dataset.rows) == pytest.approx(trained)
