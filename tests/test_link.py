"""The loader of object files: it runs what LLVM's own loader runs, and declines what it does not understand."""

from __future__ import annotations

import ctypes
import platform
from functools import cache

import numpy as np
import pytest

from svmkit import _link, _llvm
from svmkit._jit import compiled

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="elsewhere LLVM loads the objects")

TEXT = """
@table = internal constant [4 x i64] [i64 3, i64 5, i64 7, i64 11], align 32
@later = internal global [600 x double] zeroinitializer, align 64
declare double @exp(double)
declare i64 @strlen(ptr)
declare double @CALLED(double)
define double @"our.function"(i64 %i, double %x) {
  %place = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
  %prime = load i64, ptr %place
  %zero_at = getelementptr [600 x double], ptr @later, i64 0, i64 599
  %zero = load double, ptr %zero_at
  %power = call double @exp(double %x)
  %called = call double @CALLED(double %x)
  %real = sitofp i64 %prime to double
  %product = fmul double %real, %power
  %sum = fadd double %product, %zero
  %all = fadd double %sum, %called
  %scaled = fmul double %all, 1.25
  ret double %scaled
}
"""


@cache
def made(called: str = "cos", large: bool = True) -> bytes:
    binding = _llvm.llvm()
    if large:
        machine = _llvm.target_machine()
    else:
        machine = binding.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="small")
    code: bytes = machine.emit_object(binding.parse_assembly(TEXT.replace("CALLED", called)))
    return code


def result(address: int) -> float:
    return float(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_double)(address)(2, 0.5))


def test_constants_zeros_and_libraries_are_found() -> None:
    address = _link.load(made(), "our.function")
    assert address is not None
    assert result(address) == (7 * np.exp(0.5) + np.cos(0.5)) * 1.25


def test_what_it_declines_llvm_loads() -> None:
    small = made(large=False)
    assert _link.load(small, "our.function") is None
    assert result(_llvm.link(small, "our.function")) == (7 * np.exp(0.5) + np.cos(0.5)) * 1.25


def test_unknown_names_and_foreign_machines_are_declined() -> None:
    assert _link.load(made(), "our.other_function") is None
    assert _link.load(made("nowhere_defined"), "our.function") is None
    arm = bytearray(made())
    arm[18] = 183
    assert _link.load(bytes(arm), "our.function") is None


def test_cut_off_objects_are_declined() -> None:
    code = made()
    assert all(_link.load(code[:length], "our.function") is None for length in range(0, len(code), 7))


def test_every_compiled_function_is_loaded_without_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    def engine() -> None:
        raise AssertionError("LLVM's loader was asked for")

    monkeypatch.setattr(_llvm, "_engine", engine)

    @compiled("f8(f8[:], u1[:])")
    def everything(values: np.ndarray, flags: np.ndarray) -> float:
        total = 0.0
        for i in range(len(values)):
            flags[i] = 0
            total += np.exp(values[i]) + np.tanh(values[i]) + np.log(values[i]) + values[i] ** 1.5
        return total

    values, flags = np.array([0.5, 2.0]), np.ones(2, np.uint8)
    expected = (np.exp(values) + np.tanh(values) + np.log(values) + values**1.5).sum()
    assert everything(values, flags) == pytest.approx(expected, rel=1e-14)
    assert flags.tolist() == [0, 0]
