"""The package's one way to compiled code: numba makes it once, later runs load the stored machine code.

Importing numba and its caches costs 0.4 s in every process, more than many whole trainings. So a function marked
``@compiled("i8(f8[:], i8)")`` is compiled by numba the first time it is ever called, its machine code is stored, and later
processes load that code, with neither numba nor LLVM, and call it through ctypes (_native.py). Rules for such a function:

* the signature names every type: ``f8 f4 i8 i4 u8 u4 u1`` and C-contiguous arrays of them, ``f8[:]`` or ``f4[:, :]``;
  the result is one number or ``void``; results in bulk go into array arguments;
* it allocates nothing, raises nothing, and calls only ``@helper`` functions that it names directly (not ``module.name``);
* division follows IEEE (``error_model="numpy"``), nothing checks bounds.

Where the store (_store.py) cannot be written, code is compiled in memory for this process alone. Off Linux, or with
``SVMKIT_JIT=numba``, numba calls the functions itself, with its own cache in the store's folder.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType
from typing import Any

from svmkit import _llvm, _native, _store
from svmkit.signals import STOPPING

FastMath = set[str] | bool

#: Fast-math flags that keep the order of operations: sums come out the same on every code path.
ORDERED = {"contract", "nnan", "ninf", "nsz", "arcp"}
#: The same with sums free to be reordered (several accumulators): for reductions whose order no other path repeats.
REASSOCIATED = ORDERED | {"reassoc"}

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
_NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
#: How long to wait for another process that is compiling the same function, before compiling it once more.
_WAIT_S = 30.0
_compiling: list[tuple[float, float | None]] = [(0.0, None)]
_REGISTRY: list[Compiled] = []
_lock = threading.RLock()
_notice: list[Callable[[str], None]] = []


class Helper:
    """A function that compiled code may call; numba sees it only when something that uses it is compiled."""

    def __init__(self, function: Callable[..., Any], fastmath: FastMath, intrinsic: bool, inline: bool = False) -> None:
        self.function = function
        self.fastmath = fastmath
        self.intrinsic = intrinsic
        self.inline = inline
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._resolved: Any = None

    def resolve(self) -> Any:
        """What numba is to see in place of this object."""
        if self._resolved is None:
            import numba

            if self.intrinsic:
                self._resolved = self.function()
            else:
                options = {"fastmath": self.fastmath, "forceinline": self.inline, **_OPTIONS, **_NO_WRAPPERS}
                self._resolved = numba.njit(**options)(_with_helpers(self.function))
        return self._resolved


class Compiled:
    """A compiled function; call it with NumPy arrays and numbers of exactly the types in its signature."""

    def __init__(
        self, function: Callable[..., Any], signature: str, fastmath: FastMath, name: str | None, needs: str | None
    ) -> None:
        self.function = function
        self.fastmath = fastmath
        self.needs = needs
        self.__name__ = name or function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.result, self.arguments = _native.parse_signature(signature)
        self._call: Callable[..., Any] | None = None
        _REGISTRY.append(self)

    @property
    def name(self) -> str:
        return f"{self.__module__}.{self.__name__}"

    def __call__(self, *args: Any) -> Any:
        call = self._call or self.load()
        assert call is not None
        return call(*args)

    def load(self, wait: bool = True) -> Callable[..., Any] | None:
        """Finds the function in the store or compiles it; returns what is to be called.

        Where another process is compiling it, waits for that; without ``wait`` returns None.
        """
        with _lock:
            if self._call is None:
                with _counted():
                    self._call = _numba_call(self) if plain_numba() else self._native(_WAIT_S if wait else 0.0)
        return self._call

    def _native(self, wait_s: float) -> Callable[..., Any] | None:
        try:
            return _native_call(self, wait_s)
        except AttributeError:  # of numba's inner works, which a newer one may have changed
            return _numba_call(self)

    def is_ready(self) -> bool:
        """Whether ``load`` has nothing to compile."""
        return self._call is not None or _store.has(self.name)

    def dispatcher(self, **options: Any) -> Any:
        """numba's own dispatcher for this function, compiled for the signature alone."""
        import numba

        for name in ("DISABLE_JIT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT"):  # NUMBA_* variables: what is stored is for all runs
            setattr(numba.config, name, 0)
        made = numba.njit(fastmath=self.fastmath, **_OPTIONS, **options)(_with_helpers(self.function))
        made.compile(tuple(_numba_type(code, ndim) for code, ndim in self.arguments))
        return made


def compiled(
    signature: str, fastmath: FastMath = False, name: str | None = None, needs: str | None = None
) -> Callable[[Callable[..., Any]], Compiled]:
    """Marks an entry into compiled code; see the rules at the top of this file.

    ``name`` is for one function body compiled under several signatures. Only where the CPU has ``needs`` (``_llvm.cpu_has``)
    may it be called: elsewhere LLVM cannot make its code, and ends the process.
    """
    return lambda function: Compiled(function, signature, fastmath, name, needs)


def both_precisions(
    body: Callable[..., Any], signature: str, fastmath: FastMath = ORDERED, needs: str | None = None, name: str | None = None
) -> dict[str, Compiled]:
    """``body`` compiled for float32 and float64: f4 and f8 in place of R in its signature."""
    name = name or body.__name__
    return {real: compiled(signature.replace("R", real), fastmath, f"{name}_{real}", needs)(body) for real in ("f4", "f8")}


def helper(fastmath: FastMath = False, inline: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Marks a function that compiled code calls; typed by its callers, inlined where LLVM sees fit or, with ``inline``, always.

    A call that stays one passes seven words for each array, more than a short function takes.
    """
    return lambda function: Helper(function, fastmath, intrinsic=False, inline=inline)


def intrinsic(factory: Callable[[], Any]) -> Any:
    """Marks a function of no arguments that imports numba and returns a ``numba.extending.intrinsic``."""
    return Helper(factory, False, intrinsic=True)


def on_compile(listener: Callable[[str], None]) -> None:
    """Calls ``listener(name)`` before each function that is really compiled, so that a cold start can say what it does."""
    _notice.append(listener)


def registry() -> list[Compiled]:
    """Every compiled function of the modules imported so far that this CPU can run."""
    return [function for function in _REGISTRY if function.needs is None or _llvm.cpu_has(function.needs)]


def seconds_compiling() -> float:
    """Wall time this process has spent finding and compiling code so far, on any thread; solvers' clocks leave it out."""
    seconds, since = _compiling[0]
    return seconds if since is None else seconds + time.perf_counter() - since


def is_compiling() -> bool:
    """Whether some thread is finding or compiling code at this moment."""
    return _compiling[0][1] is not None


@contextmanager
def _counted() -> Iterator[None]:
    """Counts the block's time as spent compiling, from its begin on: other threads' clocks stand still meanwhile."""
    seconds, _ = _compiling[0]
    began = time.perf_counter()
    _compiling[0] = (seconds, began)
    try:
        yield
    finally:
        _compiling[0] = (seconds + time.perf_counter() - began, None)


def _numba_type(code: str, ndim: int) -> Any:
    from numba import types

    names = {"f8": "float64", "f4": "float32", "i8": "int64", "i4": "int32", "u8": "uint64", "u4": "uint32", "u1": "uint8"}
    scalar = getattr(types, names[code])
    return types.Array(scalar, ndim, "C") if ndim else scalar


def _with_helpers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of ``function`` whose globals hold numba's objects in place of our Helpers (numba cannot see through those)."""
    assert isinstance(function, FunctionType)
    known = dict(function.__globals__)
    for name in _global_names(function.__code__):
        if name in known:
            known[name] = _resolved(known[name])
    cells = tuple(CellType(_resolved(cell.cell_contents)) for cell in function.__closure__ or ())
    copy = FunctionType(function.__code__, known, function.__name__, function.__defaults__, cells)
    copy.__module__ = function.__module__
    return copy


def _resolved(value: Any) -> Any:
    return value.resolve() if isinstance(value, Helper) else value


def _global_names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def plain_numba() -> bool:
    """Whether numba itself calls the functions, in place of stored machine code."""
    return os.environ.get("SVMKIT_JIT") == "numba" or not sys.platform.startswith("linux")


def _numba_call(function: Compiled) -> Callable[..., Any]:
    import numba

    folder = _store.store()
    if folder is not None:
        os.environ["NUMBA_CACHE_DIR"] = str(folder)
        numba.config.reload_config()  # type: ignore[no-untyped-call]
    dispatcher: Callable[..., Any] = function.dispatcher(cache=folder is not None)
    return dispatcher


def _native_call(function: Compiled, wait_s: float) -> Callable[..., Any] | None:
    """Binds the stored object code, making and storing it first where it is missing; None if another process still makes it."""
    code = _object_code(function, wait_s)
    if not code:
        return None
    return _native.bind(_llvm.link(code, function.name), function.name, function.result, function.arguments)


def _object_code(function: Compiled, wait_s: float) -> bytes:
    """The function's machine code, from the store or made now; empty if another process is at it and ``wait_s`` is 0."""
    if not function.name.startswith("svmkit."):  # the store's name covers our sources alone
        return _compile(function)
    code = _store.get(function.name)
    if not code:
        with _store.claimed(function.name, wait_s) as mine:
            code = _store.get(function.name)
            if not code and (mine or wait_s):
                code = _compile(function)
                _store.put(function.name, code)
    return code


def _compile(function: Compiled) -> bytes:
    """Machine code of ``function`` under its plain name, by way of numba's LLVM IR."""
    for listener in _notice:
        listener(function.name)
    with _signals_held(), _plain_ir():
        made = function.dispatcher(**_NO_WRAPPERS)
    (overload,) = made.overloads.values()
    symbol = overload.fndesc.llvm_func_name
    module = _llvm.llvm().parse_assembly(f'source_filename = "{function.name}"')
    for library in _with_callees(overload.library):
        module.link_in(library._final_module, preserve=True)
    for other in [*module.functions, *module.global_variables]:
        if other.name == symbol:
            other.name = function.name
        elif not other.is_declaration:
            other.linkage = "internal"  # objects loaded side by side must not share one another's helpers
    return _llvm.machine_code(module)


def _with_callees(library: Any) -> list[Any]:
    """numba's library of a function and those of all that it calls, each once."""
    found = [library]
    for one in found:
        found += [other for other in dict.fromkeys(one._linking_libraries) if other not in found]
    return found


@contextmanager
def _plain_ir() -> Iterator[None]:
    """Has numba stop at unoptimised IR: it would link, optimise and emit each helper by itself, and again in each caller.

    An entry with all it calls is optimised once instead, afterwards: that takes a third off a cold start.
    """
    from numba.core.registry import cpu_target

    codegen = cpu_target.target_context.codegen()

    class PlainLibrary(codegen._library_class):  # type: ignore[misc, name-defined]
        def add_llvm_module(self, module: Any) -> None:
            module.data_layout = self._codegen._data_layout
            self._final_module.link_in(module)

        def finalize(self) -> None:
            self._finalized = True

    codegen._library_class = PlainLibrary
    codegen.set_env = lambda name, env: None  # what Python objects the code uses: none
    try:
        yield
    finally:
        del codegen._library_class, codegen.set_env


@contextmanager
def _signals_held() -> Iterator[None]:
    """Puts the signals that end a command off to the end: raised inside one of LLVM's callbacks they would be lost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    usual = {number: signal.getsignal(number) for number in STOPPING}
    for number in usual:
        signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        for held in came:
            signal.raise_signal(held)
