"""Arguments and numbers are read as the C programs read them; C itself is asked where there is one."""

from __future__ import annotations

import ctypes
import math
import platform
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shell import svmkit, write_blobs

from svmkit.cli.compat import svm_train
from svmkit.cli.compat.argv import Arguments, Usage, atof, atoi

NUMBERS = [
    "",
    " ",
    "abc",
    "1.9",
    "-3",
    "+7x",
    ".5",
    "-.",
    "5.",
    "1e3",
    "1e",
    "1e+",
    "2E-2x",
    "0x10",
    "0x",
    "0x.8p1",
    "0x1p",
    "-0",
]
NUMBERS += ["inf", "-INFINITY", "nan", "infin", "1e400", "-1e400", "1e-400", "1_000", "1,5", " \t\n12", "0x1.8", "--1", "+-1"]
NUMBERS += ["99999999999", "-99999999999", "9" * 40, "-" + "9" * 40, "0" * 30 + "12", "4294967297", "2147483648", "\xa01", "١"]


def test_options_end_at_the_first_word_without_a_dash() -> None:
    arguments = Arguments(["-c", "-1", "-q", "data", "-g", "2"])
    assert arguments.next_option() == "c"
    assert arguments.value() == "-1"
    assert arguments.next_option() == "q"
    assert arguments.next_option() is None
    assert arguments.rest == ["data", "-g", "2"]


def test_a_dash_alone_is_a_file() -> None:
    arguments = Arguments(["-", "model"])
    assert arguments.next_option() is None
    assert arguments.rest == ["-", "model"]


def test_a_missing_value_is_a_usage_error() -> None:
    arguments = Arguments(["-c"])
    assert arguments.next_option() == "c"
    with pytest.raises(Usage):
        arguments.value()


def test_known_numbers() -> None:
    assert [atof(text) for text in ("abc", "0x10", "1.5x", " 2", "1e400")] == [0.0, 16.0, 1.5, 2.0, math.inf]
    assert [atoi(text) for text in ("abc", "0x10", "1.9", " 2", "99999999999")] == [0, 0, 1, 2, 1215752191]


def _bits(value: float) -> str:
    return "nan" if math.isnan(value) else value.hex()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="C libraries differ")
@given(st.one_of(st.sampled_from(NUMBERS), st.text("0123456789+-.eExXpPinfa \t_", max_size=12)))
def test_numbers_are_c_s_numbers(text: str) -> None:
    c = ctypes.CDLL(None)
    c.atof.restype = ctypes.c_double
    assert _bits(atof(text)) == _bits(c.atof(text.encode()))
    assert atoi(text) == c.atoi(text.encode())


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="C libraries differ")
@pytest.mark.parametrize("text", NUMBERS)
def test_odd_numbers_are_c_s_numbers(text: str) -> None:
    test_numbers_are_c_s_numbers.hypothesis.inner_test(text)  # type: ignore[attr-defined]


def test_svm_train_s_memory_reaches_the_training() -> None:
    assert svm_train._config(svm_train.parse(["-m", "7", "d"]), 5).cache_mb == 7.0


@pytest.mark.parametrize("kernel", ["1", "2", "3"])
def test_a_negative_gamma_is_refused_in_svm_train_s_words(kernel: str, tmp_path: Path) -> None:
    done = svmkit("svm-train", "-t", kernel, "-g", "-1", write_blobs(tmp_path / "d"), tmp_path / "m")
    assert (done.returncode, done.stderr) == (1, "ERROR: gamma < 0\n")
