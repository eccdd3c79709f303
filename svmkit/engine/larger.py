"""The larger and the smaller of two floats, in a form that LLVM turns a loop over into vector instructions.

A comparison and a choice, as Python code compiles to, stay one element at a time where the loop looks for an extreme.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import intrinsic


def _of_two(name: str) -> Any:
    """LLVM's ``name`` of two floats that are numbers."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    @numba_intrinsic
    def of_two(_ctx: Any, first: Any, second: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            kind = args[0].type
            function = builder.module.declare_intrinsic(f"llvm.{name}", [kind], ir.FunctionType(kind, [kind, kind]))
            return builder.call(function, args, fastmath=("nnan", "nsz"))

        return types.float64(types.float64, types.float64), generate

    return of_two


larger = intrinsic(lambda: _of_two("maxnum"))
smaller = intrinsic(lambda: _of_two("minnum"))
