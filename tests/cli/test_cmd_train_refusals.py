"""What ``svmkit train`` refuses, and what it leaves as it was where it cannot write."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from shell import process, svmkit, write_blobs


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["nosuchfile"], 1, "nosuchfile"),
        (["."], 1, "."),
        (["bad"], 1, "Wrong input format at line 2"),
        (["empty"], 1, "empty"),
        (["good", "no/such/folder/m"], 1, "no/such/folder"),
        (["good", "good"], 2, "overwritten"),
        (["good", "."], 1, "."),
        (["-"], 2, "name the MODEL"),
        (["good", "-", "--json"], 2, "--json"),
        (["good", "m", "--json", "--trace", "-"], 2, "--trace -"),
        (["good", "-", "--trace", "-"], 2, "--trace -"),
        (["-", "m", "--holdout", "-"], 2, "--holdout"),
        (["good", "m", "-v", "5"], 2, "-v"),
        (["good", "-v", "0", "--time-limit", "5"], 2, "-v 0"),
        (["good", "m", "-m", "1e303"], 2, "-m: cache of 1e+303 MB"),
        (["good", "m", "--solver", "lasvm", "-O", "cache_mb=1e303"], 2, "cache_mb=1e303"),
        (["good", "-v", "1"], 2, "-v 1"),
        (["good", "m", "-s", "3"], 2, "epsilon_svr"),
        (["good", "m", "-b", "1"], 2, "-b 1"),
        (["good", "m", "-O", "colour=blue"], 2, "colour"),
        (["good", "m", "--holdout", "1.5"], 2, "--holdout"),
        (["good", "m", "--patience", "3"], 2, "--holdout"),
        (["good", "m", "--patience", "3", "--holdout", "0.2"], 2, "exact"),
        (["good", "m", "--patience", "0", "--holdout", "0.2"], 2, "--patience: 0"),
        (["good", "m", "--budget-evals", "0"], 2, "--budget-evals: 0"),
        (["good", "m", "--solver", "pair", "--bias", "none"], 2, "--solver pair: it trains with a bias only: use --bias free"),
        (
            ["good", "m", "--solver", "lasvm", "--stream", "-g", "1", "--no-bias"],
            2,
            "--solver lasvm: it trains with a bias only",
        ),
        (
            ["good", "m", "--solver", "perceptron", "--stream", "-g", "1", "--bias", "free"],
            2,
            "--solver perceptron: it trains without",
        ),
        (["good", "m", "--holdout", "0.000001"], 2, "--holdout"),
        (["good", "m", "--holdout", "nosuchfile"], 1, "nosuchfile"),
        (["good", "m", "--trace", "no/such/t"], 1, "no/such"),
        (["good", "m", "--trace", "m"], 2, "overwritten"),
        (["bad", "good", "--holdout", "good"], 2, "overwritten"),
        (["bad", "m", "--holdout", "good", "--trace", "good"], 2, "overwritten"),
        (["bad", "m", "--init", "good", "--trace", "good"], 2, "overwritten"),
        (["good", "m", "--dim", "512"], 2, "--dim goes with a feature map"),
        (["good", "m", "--certificate-of", "kernel"], 2, "--certificate-of goes with a feature map"),
        (["good", "m", "--solver", "sdca", "--map", "fourier", "--cut", "0"], 2, "--cut goes with --map nystroem"),
        (["good", "m", "--solver", "sdca", "--map", "nystroem", "--orthogonal"], 2, "--orthogonal goes with --map fourier"),
        (["good", "m", "--solver", "lasvm", "-O", "budget=99999999999999999999"], 2, "-O budget="),
        (["good", "m", "--solver", "lasvm", "-O", "epochs=1.5"], 2, "-O epochs=1.5: '1.5' is not an integer"),
        (["good", "m", "--solver", "lasvm", "-O", "finish=maybe"], 2, "-O finish=maybe: 'maybe' is not 1 or 0"),
        (["good", "m", "--solver", "lasvm", "-O", "candidates=1_0"], 2, "-O candidates=1_0: '1_0' is not an integer"),
        (["good", "m", "--solver", "lasvm", "-O", "cache_mb=١"], 2, "-O cache_mb=١: '١' is not a number"),
        (["good", "m", "--solver", "lasvm", "-O", "cache_mb=much"], 2, "-O cache_mb=much: 'much' is not a number"),
        (["good", "m", "--solver", "lasvm", "-O", "cache_mb=nan"], 2, "-O cache_mb=nan: is no number"),
        (["good", "m", "--solver", "lasvm", "-O", "cache_mb=0"], 2, "-O cache_mb=0: must be greater than 0"),
        (["good", "m", "--solver", "asset", "-t", "0", "-O", "bound=1e300"], 2, "-O bound=1e+300: must lie in"),
        (["good", "m", "--solver", "pegasos", "-t", "0", "-O", "bias=1e300"], 2, "-O bias=1e+300: must be"),
        (["good", "m", "--solver", "sdca", "--map", "fourier", "--constant", "1e300"], 2, "--constant: 1e+300 must lie in"),
        (["good", "m", "-c", "1e90", "-w1", "1e300"], 1, "is above 1e+100: its square"),
        (["good", "m", "-w1", "1e300", "-w1", "1e300"], 1, "is above 1e+100: its square"),
        (["good", "m", "-t", "0", "-c", "1e-100", "-w1", "1e-300", "--solver", "sbp"], 1, "is below 1e-150: its square"),
        (["good", "m", "-w1", "1e-200", "-w1", "1e-200"], 1, "is below 1e-150: its square"),  # the product is 0
        (
            ["good", "m", "-w1", "1e-200", "--solver", "lasvm", "--stream", "-g", "1", "-c", "1"],
            1,
            "is below 1e-150: its square",
        ),
        (
            ["good", "m", "--stream", "--solver", "lasvm", "-g", "1", "-c", "1e9", "-w1", "1e99"],
            1,
            "is above 1e+100: its square",
        ),
        (["good", "m", "-c", "1e154", "--solver", "pegasos"], 2, "-c: C 1e+154 must lie in 1e-100 … 1e100"),
        (
            ["good", "m", "--lambda", "1e-308", "--rows", "9", "--stream", "--solver", "asset"],
            2,
            "--lambda: 1e-308 must lie in",
        ),
        (["good", "m", "--solver", "newton", "-t", "1"], 2, "in front: --map nystroem; or use -t 0"),
        (["good", "m", "--solver", "asset"], 2, "in front: --map nystroem or --map fourier; or use -t 0"),
        (["good", "m", "-t", "4"], 1, "serial"),
        (["good", "m", "-c", "1", "--lambda", "1"], 2, "--lambda"),
        (["good", "m", "-t", "1", "-d", "2147483648"], 2, "-d"),
        (["huge", "m"], 1, "huge: example 2 has -2e+150 for feature 7: values above 1e+150"),
        (["kernel", "m", "-t", "4", "--holdout", "narrow"], 1, "narrow: has kernel values against training rows up to 1"),
        (["huge-kernel", "m", "-t", "4"], 1, "huge-kernel: example 1 has 1e+200 for feature 2: values above 1e+150"),
    ],
)
def test_refusals_say_why_and_write_nothing(args: list[str], code: int, words: str, tmp_path: Path) -> None:
    write_blobs(tmp_path / "good")
    (tmp_path / "bad").write_text("1 1:2\n1 1:x\n")
    (tmp_path / "huge").write_text("1 1:1e150\n-1 1:1 7:-2e150\n")
    (tmp_path / "huge-kernel").write_text("1 0:1 1:1 2:1e200\n-1 0:2 1:1e200 2:1\n")
    (tmp_path / "kernel").write_text("1 0:1 1:1 2:0\n-1 0:2 1:0 2:1\n")
    (tmp_path / "narrow").write_text("1 0:1 1:1\n-1 0:2 1:0\n")
    (tmp_path / "empty").write_text("")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = svmkit("train", *args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_full_disk_leaves_the_old_model(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    model.write_text("the old model\n")
    svmkit("train", "-q", data, tmp_path / "warm")  # whatever must be compiled is, before files are limited

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

    done = process("train", data, model, before=limit, PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 1
    assert str(model) in done.stderr
    assert model.read_text() == "the old model\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blobs", "m", "warm"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_device_is_one_line(data: Path) -> None:
    for args in (["train", data, "/dev/full"], ["train", "--trace", "/dev/full", data, "/dev/null"]):
        done = process(*args)
        assert done.returncode == 1
        assert "No space left on device" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "args",
    [("-s", "1"), ("--map", "nystroem"), ("-O", "colour=1"), ("--solver", "pair", "--no-bias"), ("-v", "3", "-O", "colour=1")],
    ids=str,
)  # fmt: skip
def test_wrong_usage_is_found_before_all_of_a_pipe_has_come(args: tuple[str, ...], tmp_path: Path) -> None:
    model = () if "-v" in args else (str(tmp_path / "m"),)
    command = [sys.executable, "-m", "svmkit", "train", *args, "-", *model]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.wait(timeout=60) == 2  # nothing has come, nor has its end
