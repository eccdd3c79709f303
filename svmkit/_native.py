"""Calls of machine code: what types a compiled function may take, and how ctypes passes them.

Machine code keeps to numba's native convention: ``i32 f(result *, exception **, arguments)``, an array passed as (meminfo,
parent, item count, item size, data, shape…, strides…), of which the first two only matter to reference counts. ctypes releases
the GIL during a call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CTYPES: dict[str, Any] = {
    "f8": ctypes.c_double,
    "f4": ctypes.c_float,
    "i8": ctypes.c_int64,
    "i4": ctypes.c_int32,
    "u8": ctypes.c_uint64,
    "u4": ctypes.c_uint32,
    "u1": ctypes.c_uint8,
    "void": ctypes.c_int64,
}
#: Bytes of an array's object before NumPy's own fields, and an array to look at them in.
_ARRAY_HEAD, _PROBE = object.__basicsize__, np.zeros(1)


def parse_signature(signature: str) -> tuple[str, list[tuple[str, int]]]:
    """The result's type, and type and number of dimensions (0 for a number) of each argument. TypeError for other types."""
    result, _, rest = signature.partition("(")
    arguments = []
    for part in rest.rstrip(") ").replace("[:, :]", "[2]").replace("[:,:]", "[2]").replace("[:]", "[1]").split(","):
        code, _, ndim = part.strip().partition("[")
        if code not in _CTYPES or code == "void":
            raise TypeError(f"unknown type {part.strip()!r} in signature {signature!r}")
        arguments.append((code, int(ndim.rstrip("]") or 0)))
    return result.strip(), arguments


def bind(address: int, name: str, result: str, arguments: Sequence[tuple[str, int]]) -> Callable[..., Any]:
    """The machine code at ``address`` as a function of NumPy arrays and numbers, of the types that ``parse_signature`` found.

    The function raises TypeError for arrays of other types, other numbers of dimensions or rows apart, and RuntimeError where
    the code fails.
    """
    flat: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
    for kind, ndim in arguments:
        if ndim:
            flat += [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_void_p] + [ctypes.c_int64] * (2 * ndim)
        else:
            flat.append(_CTYPES[kind])
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, *flat)(address)
    plan = [(np.dtype(kind), ndim) for kind, ndim in arguments]
    result_type, returns = _CTYPES[result], result != "void"
    address_of = _address if _address(_PROBE) == _described_address(_PROBE) else _described_address

    def call(*args: Any) -> Any:
        if len(args) != len(plan):
            raise TypeError(f"{name} takes {len(plan)} arguments, not {len(args)}")
        values: list[Any] = []
        for (dtype, ndim), arg in zip(plan, args, strict=True):
            if not ndim:
                values.append(arg)
                continue
            if arg.dtype != dtype or arg.ndim != ndim or not arg.flags.c_contiguous:
                raise TypeError(f"{name} wants a C-contiguous {dtype} array of {ndim} dimensions, not {arg.dtype} {arg.shape}")
            values += (None, None, arg.size, arg.itemsize, address_of(arg), *arg.shape, *arg.strides)
        found = result_type()
        exception = ctypes.c_void_p()
        status = entry(ctypes.addressof(found), ctypes.addressof(exception), *values)
        if status not in (0, -2):  # -2: the result is None
            raise RuntimeError(f"{name} failed inside compiled code (status {status})")
        return found.value if returns else None

    return call


def _address(array: NDArray[Any]) -> int:
    """Where the data begin, by the layout that NumPy's PyArray_DATA has compiled into every extension: the first field.

    With it the many short calls of small machines take two thirds of the time.
    """
    return ctypes.c_size_t.from_address(id(array) + _ARRAY_HEAD).value


def _described_address(array: NDArray[Any]) -> int:
    """The same, should arrays be laid out otherwise."""
    address: int = array.__array_interface__["data"][0]
    return address
