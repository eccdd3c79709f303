"""Asking the CPU for rows that a loop in random order will come to: main memory is as slow as several steps.

Nothing waits for what is asked for, and results do not depend on it.
"""

from __future__ import annotations

from typing import Any

from numpy import uint64

from svmkit._jit import helper, intrinsic

_ONE = uint64(1)
#: Elements of a row of single precision to a cache line. Rows of at most so many are asked for whole, which takes a quarter
#: less time than asking for their begin; of longer ones the begin, a quarter less than nothing: the CPU has seen by then that
#: the row is read in order, and all of several rows to come would leave w no room next to the core (1024 features, a fifth
#: slower).
_LINE, _WHOLE, _BEGIN = uint64(16), uint64(512), uint64(128)


def _make_prefetch() -> Any:
    """``f(array, offset)``: asks the CPU to bring that element's cache line in; nothing waits for it."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    @numba_intrinsic
    def prefetch(_ctx: Any, array: Any, offset: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            start = context.make_array(sig.args[0])(context, builder, args[0]).data
            address = builder.bitcast(builder.gep(start, [args[1]]), ir.IntType(8).as_pointer())
            kind = ir.FunctionType(ir.VoidType(), [address.type] + [ir.IntType(32)] * 3)
            ask = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
            builder.call(ask, [address, *(ir.Constant(ir.IntType(32), flag) for flag in (0, 3, 1))])  # to read, to keep, data
            return context.get_dummy_value()

        return types.void(array, offset), generate

    return prefetch


prefetch = intrinsic(_make_prefetch)


@helper()
def _ask_for_sparse(far: Any, near: Any, indptr: Any, indices: Any, data: Any) -> None:
    """Where the row ``far`` begins, and the begin of the row ``near``."""
    prefetch(indptr, uint64(far))
    k = uint64(indptr[uint64(near)])
    prefetch(indices, k)
    prefetch(data, k)
    prefetch(data, k + uint64(8))


@helper()
def _ask_for_dense(far: Any, near: Any, indptr: Any, indices: Any, data: Any) -> None:
    """The row ``near`` or its begin, in a place known without looking."""
    width = uint64(indptr[_ONE]) - uint64(indptr[uint64(0)])
    k = uint64(indptr[uint64(0)]) + uint64(near) * width
    end = k + (width if width <= _WHOLE else _BEGIN)
    while k < end:
        prefetch(data, k)
        k += _LINE


#: ``f(far, near, indptr, indices, data)`` for rows in either form (linear.py), ``far`` to be used after ``near``.
ASK_FOR_ROW = {"sparse": _ask_for_sparse, "dense": _ask_for_dense}
