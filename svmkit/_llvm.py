"""LLVM for this CPU: what the CPU can do, machine code of LLVM's modules, loading it. llvmlite is imported only if need be."""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

from svmkit import _link

#: Lines of /proc/cpuinfo that tell what a CPU can do, on x86 and on ARM.
_CPU_LINES = {"vendor_id", "cpu family", "model", "stepping", "flags"} | {
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features",
}  # fmt: skip


def link(code: bytes, symbol: str) -> int:
    """Loads object code into the process; the address of ``symbol`` in it."""
    address = _link.load(code, symbol)
    if address is None:
        engine = _engine()
        engine.add_object_file(llvm().ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = int(engine.get_function_address(symbol))
    return address


@cache
def llvm() -> Any:
    """llvmlite's binding, with the host's target ready."""
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@cache
def target_machine() -> Any:
    """LLVM's code generator for this CPU."""
    binding = llvm()
    x86 = platform.machine() in ("x86_64", "i686")
    # LLVM thinks that full AVX-512 registers slow Intel's CPUs down; those of today gain an eighth in steps inside a block.
    features = [_host_features(), "-prefer-256-bit"] if x86 else [_host_features()]
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=",".join(filter(None, features)),
        opt=3,
        reloc="static" if x86 else "default",  # where MCJIT mislinks position-independent objects
        codemodel="jitdefault",
    )


def machine_code(module: Any) -> bytes:
    """The object code of an LLVM module, which it optimises."""
    binding, machine = llvm(), target_machine()
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(3))
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


@cache
def _engine() -> Any:
    binding = llvm()
    return binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())


def _host_features() -> str:
    try:
        features: str = llvm().get_host_cpu_features().flatten()
    except RuntimeError:
        return ""
    return features


def cpu_has(feature: str) -> bool:
    """Whether this machine's CPU has ``feature``, by Linux's name for it (``avx512f``, ``asimd``)."""
    return feature in cpu().split()


@cache
def cpu() -> str:
    """What decides the code for this CPU: Linux's words, which are had without loading LLVM, else LLVM's."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            lines = file.read(1 << 14).split("\n\n")[0].splitlines()
    except OSError:
        lines = []
    words = "\n".join(line for line in lines if line.partition(":")[0].strip() in _CPU_LINES)
    return words or f"{llvm().get_host_cpu_name()} {_host_features()}"
