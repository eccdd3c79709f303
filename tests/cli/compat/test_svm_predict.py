"""svm-predict: the same words, codes and bytes as LIBSVM's, and where we differ on purpose."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from golden_data import GOLDEN, TOOLS, needs_tools
from old_tools import Outcome, genuine, ours, start

from svmkit.cli.compat import svm_predict
from svmkit.io import chunks

#: Models by the options of svm-train that make them: data, options.
MODELS = {
    "m2": ("two", "-t 2"),
    "m2p": ("two", "-t 2 -b 1"),
    "m2lin": ("two", "-t 0"),
    "m3": ("three", "-t 1 -r 1"),
    "m3p": ("three", "-b 1 -g 0.5"),
    "nu": ("two", "-s 1 -n 0.25"),
    "nu3p": ("three", "-s 1 -n 0.25 -b 1"),
    "m1": ("one", ""),
    "gram.model": ("gram", "-t 4"),
    "oneclass": ("two", "-s 2"),
    "svr": ("value", "-s 3"),
    "svrp": ("value", "-s 3 -b 1"),
    "nusvr": ("value", "-s 4"),
}
TESTS = ["two.t", "three.t", "value", "one", "empty"]
FAILING = ["", "-q", "-b 1", "two.t m2", "-x two.t m2 o", "-v 1 two.t m2 o", "--help", "nofile m2 o", "two.t nofile o"]
FAILING += ["two.t m2 no/where", "-b 1 two.t m2 o", "-b 1 two.t svr o", "bad m2 o", "blank m2 o", "nofile nofile no/where"]


@pytest.fixture(scope="session")
def models(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of data with models of the genuine svm-train in it."""
    made = tmp_path_factory.mktemp("models") / "data"
    subprocess.run(["cp", "-r", folder, made], check=True)
    for name, (data, options) in MODELS.items():
        subprocess.run(
            [TOOLS / "svm-train", "-q", *options.split(), data, name], cwd=made, check=True, stdout=subprocess.DEVNULL
        )
    return made


def _numbers(outcome: Outcome) -> list[float]:
    return [float(line) for line in outcome.files["o"].decode().splitlines()]


@needs_tools
@pytest.mark.parametrize("flags", [[], ["-q"], ["-b", "1"], ["-b", "1", "-q"], ["-b", "2"], ["-binary", "0"]])
@pytest.mark.parametrize("model", [name for name in MODELS if name != "gram.model"])
def test_answers_are_svm_predict_s_to_the_byte(model: str, flags: list[str], models: Path) -> None:
    for test in TESTS:
        argv = [*flags, test, model, "o"]
        theirs, mine = genuine("svm-predict", argv, models), ours("svm-predict", argv, models)
        assert (mine.code, mine.out, mine.err) == (theirs.code, theirs.out, theirs.err), argv
        if theirs.code:
            assert mine.files == {}, argv  # they leave an empty file
        elif "svr" in model:  # seventeen digits, whose last depend on the order of sums
            assert _numbers(mine) == pytest.approx(_numbers(theirs), rel=1e-12, abs=1e-12), argv
        else:
            assert mine.files == theirs.files, argv


@needs_tools
def test_a_precomputed_kernel(models: Path) -> None:
    argv = ["gram", "gram.model", "o", "extra", "names"]
    theirs, mine = genuine("svm-predict", argv, models), ours("svm-predict", argv, models)
    assert mine == theirs


@needs_tools
@pytest.mark.parametrize("call", FAILING)
def test_failures_are_svm_predict_s(call: str, models: Path) -> None:
    mine = ours("svm-predict", call.split(), models)
    assert (mine.code, mine.files) == (1, {})
    if call not in ("-b 1",):  # theirs breaks down
        theirs = genuine("svm-predict", call.split(), models)
        assert theirs.code == 1
        assert mine.first_error == theirs.first_error
        assert mine.out.partition("\n")[0] == theirs.out.partition("\n")[0]


@pytest.mark.parametrize("part_bytes", [200, chunks.PART_BYTES])
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.out")) + sorted(GOLDEN.glob("*.prob")), ids=lambda path: path.name)
def test_golden_answers(path: Path, part_bytes: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "PART_BYTES", part_bytes)
    test = GOLDEN / f"{path.name.partition('.')[0]}.t"
    flags = ["-b", "1"] if path.suffix == ".prob" else []
    outcome = ours("svm-predict", ["-q", *flags, str(test), str(path.with_suffix(".model")), "o"], folder)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    if path.name.startswith(("value", "gram-value")):
        theirs = [float(line) for line in path.read_text().splitlines()]
        assert _numbers(outcome) == pytest.approx(theirs, rel=1e-12, abs=1e-12)
    else:
        assert outcome.files["o"] == path.read_bytes()


@pytest.mark.parametrize(
    ("call", "out", "error"),
    [
        ("", "Usage: svm-predict [options] test_file model_file output_file", ""),
        ("-x a b c", "Usage: svm-predict [options] test_file model_file output_file", "Unknown option: -x"),
        ("nofile m o", "", "can't open input file nofile"),
        ("two nofile o", "", "can't open model file nofile"),
        ("two nofile no/where", "", "can't open output file no/where"),
        ("two folder o", "", "can't open model file folder"),
        ("folder m o", "", "can't open input file folder"),
        ("two m folder", "", "can't open output file folder"),
    ],
)
def test_failures_by_heart(call: str, out: str, error: str, folder: Path) -> None:
    outcome = ours("svm-predict", call.split(), folder)
    assert (outcome.code, outcome.files) == (1, {})
    assert (outcome.out.partition("\n")[0], outcome.first_error) == (out, error)


def test_text_by_heart(folder: Path) -> None:
    argv = [str(GOLDEN / "two.t"), str(GOLDEN / "two.s0t2.b1.model"), "o"]
    given = [line.split()[0] for line in (GOLDEN / "two.t").read_text().splitlines()]
    answers = (GOLDEN / "two.s0t2.b1.out").read_text().split()
    right = sum(float(a) == float(b) for a, b in zip(given, answers, strict=True))
    assert ours("svm-predict", argv, folder).out == (
        "Model supports probability estimates, but disabled in prediction.\n"
        f"Accuracy = {100 * right / len(given):g}% ({right}/{len(given)}) (classification)\n"
    )
    assert ours("svm-predict", ["-b", "1", "two", str(GOLDEN / "two.s0t2.model"), "o"], folder) == Outcome(
        1, "", "Model does not support probabiliy estimates\n", {}
    )
    widths = ours("svm-predict", ["-b", "1", str(GOLDEN / "value.t"), str(GOLDEN / "value.s3t2.b1.model"), "o"], folder).out
    assert widths.startswith(
        "Prob. model for test data: target value = predicted value + z,\nz: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma="
    )
    assert ours("svm-predict", ["empty", str(GOLDEN / "value.s3t2.model"), "o"], folder) == Outcome(
        0, "Mean squared error = -nan (regression)\nSquared correlation coefficient = -nan (regression)\n", "", {"o": b""}
    )


@pytest.mark.parametrize("cut", ["svm_type c_svc\n", "svm_type c_svc\nkernel_type foo\n", "nonsense\n", ""])
def test_a_bad_model_leaves_the_old_output_alone(cut: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "m").write_text(cut)
    (folder / "o").write_text("precious\n")
    (folder / "t").write_text("1 1:1\n")
    outcome = ours("svm-predict", ["t", "m", "o"], folder)
    assert (outcome.code, outcome.out, outcome.files) == (1, "", {})
    assert outcome.err.splitlines()[-1] == "can't open model file m"


def test_bad_data_leave_the_old_output_alone(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "data"
    copy.mkdir()
    (copy / "o").write_text("precious\n")
    (copy / "bad").write_bytes((folder / "bad").read_bytes())
    outcome = ours("svm-predict", ["bad", str(GOLDEN / "two.s0t2.model"), "o"], copy)
    assert (outcome.code, outcome.files) == (1, {})
    assert outcome.first_error == "Wrong input format at line 3"


@pytest.mark.parametrize("output", ["t", "m", "./m"])
def test_an_input_is_no_output(output: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "t").write_bytes((GOLDEN / "two.t").read_bytes())
    (folder / "m").write_bytes((GOLDEN / "two.s0t2.model").read_bytes())
    outcome = ours("svm-predict", ["t", "m", output], folder)
    reason = f"{output}: names one file for two purposes, and would be overwritten"
    assert outcome == Outcome(1, "", f"can't open output file {output}\n{reason}\n", {})
    assert ours("svm-predict", ["-q", "t", "m", "/dev/null"], folder).code == 0


def test_streams(folder: Path) -> None:
    model = str(GOLDEN / "two.s0t2.model")
    process = start("svm-predict", ["-q", "-", model, "/dev/stdout"], folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, _ = process.communicate((GOLDEN / "two.t").read_bytes())
    assert (process.returncode, out) == (0, (GOLDEN / "two.s0t2.out").read_bytes())


def test_answers_on_standard_output_stand_there_alone(folder: Path) -> None:
    argv = [str(GOLDEN / "two.t"), str(GOLDEN / "two.s0t2.model"), "-"]
    out, _ = start("svm-predict", argv, folder, stdout=subprocess.PIPE).communicate()
    assert out == (GOLDEN / "two.s0t2.out").read_bytes()


def test_standard_input_is_read_once(folder: Path) -> None:
    outcome = ours("svm-predict", ["-", "-", "o"], folder)
    assert outcome == Outcome(
        1, "", "two of the files are standard input (-), which can be read only once; give one of them by name\n", {}
    )


def test_probabilities_of_a_one_class_model_have_their_names(tmp_path: Path) -> None:
    marks = " ".join(map(str, range(-5, 5)))
    (tmp_path / "m").write_text(
        f"svm_type one_class\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\nprob_density_marks {marks}\nSV\n1 1:1\n"
    )
    (tmp_path / "t").write_text("1 1:9\n-1 1:-9\n")
    assert svm_predict.main(["-q", "-b", "1", str(tmp_path / "t"), str(tmp_path / "m"), str(tmp_path / "o")]) == 0
    assert (tmp_path / "o").read_text() == "labels normal outlier\n1 0.999 0.001\n-1 0.001 0.999\n"


@needs_tools
@pytest.mark.parametrize("label", ["0.1", "0.7", "3"])
def test_the_correlation_with_a_constant_is_the_rounding_that_svm_predict_prints(label: str, tmp_path: Path) -> None:
    """inf, a number or 0/0, by the order of the sums."""
    for rho in ("-0.1", "-0.3", "0.87", "-2"):
        model = f"svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho {rho}\nSV\n1 1:1\n"
        (tmp_path / "m").write_text(model)
        (tmp_path / "t").write_text(f"{label}\n" * 7)
        theirs = genuine("svm-predict", ["t", "m", "o"], tmp_path)
        assert ours("svm-predict", ["t", "m", "o"], tmp_path).out == theirs.out
