"""Pieces of LLVM IR that several files share: a number in every lane, a loop, an instruction, arrays, bits read anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from svmkit._jit import intrinsic


def splat(builder: Any, number: Any, kind: Any) -> Any:
    """A register of ``kind`` with the IR value ``number`` in every lane."""
    from llvmlite import ir

    i32, undefined = ir.IntType(32), ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(i32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(i32, kind.count), None))


def loop(
    builder: Any,
    first: Any,
    last: Any,
    begun: Sequence[Any],
    step: Callable[[Any, list[Any]], list[Any]],
    goes_on: Callable[[Any], Any] | None = None,
) -> tuple[Any, list[Any]]:
    """Values that are ``begun`` and then, for k = ``first`` … ``last`` − 1, what ``step(k, values)`` makes of them.

    Ends early at a k where ``goes_on(k)`` is not true. Returns the k it ended at, an i64 like the other two, and the values.
    """
    from llvmlite import ir

    b, i64 = builder, ir.IntType(64)
    before = b.block
    head, body, after = (b.append_basic_block(name) for name in ("head", "body", "after"))
    b.branch(head)
    b.position_at_end(head)
    k = b.phi(i64)
    k.add_incoming(first, before)
    values = [b.phi(value.type) for value in begun]
    for value, at_first in zip(values, begun, strict=True):
        value.add_incoming(at_first, before)
    more = b.icmp_signed("<", k, last)
    if goes_on is None:
        b.cbranch(more, body, after)
    else:
        inside = b.append_basic_block("inside")
        b.cbranch(more, inside, after)
        b.position_at_end(inside)
        b.cbranch(goes_on(k), body, after)
    b.position_at_end(body)
    for value, new in zip(values, step(k, values), strict=True):
        value.add_incoming(new, body)
    k.add_incoming(b.add(k, ir.Constant(i64, 1)), body)
    b.branch(head)
    b.position_at_end(after)
    return k, values


def instruction(builder: Any, name: str, kind: Any, arguments: list[Any]) -> Any:
    """The x86 CPU's own instruction of that name, with a result of ``kind``."""
    from llvmlite import ir

    name = f"llvm.x86.{name}"
    signature = ir.FunctionType(kind, [argument.type for argument in arguments])
    function = builder.module.globals.get(name) or ir.Function(builder.module, signature, name)
    return builder.call(function, arguments)


def opened(context: Any, builder: Any, sig: Any, args: Any, places: Sequence[int]) -> list[Any]:
    """An intrinsic's arguments at these places, which are arrays, as structures with ``data``, a pointer, and ``shape``."""
    return [context.make_array(sig.args[place])(context, builder, args[place]) for place in places]


def length_of_lines(builder: Any, table: Any) -> Any:
    """Numbers to a line of an array (lines, columns) that is ``opened``."""
    from numba.core import cgutils

    return cgutils.unpack_tuple(builder, table.shape)[1]  # type: ignore[no-untyped-call]


def for_widths(make: Callable[..., Any], widths: Sequence[int], **choices: Any) -> dict[int, Any]:
    """By their number of registers, the intrinsics that ``make(registers, **choices)`` makes."""

    def made(registers: int) -> Any:
        return intrinsic(lambda: make(registers, **choices))

    return {registers: made(registers) for registers in widths}


def reinterpret(source: str, target: str) -> Any:
    """An intrinsic ``f(value)``: the bits of one machine type read as another of the same size."""

    def make() -> Any:
        from numba import types
        from numba.extending import intrinsic as numba_intrinsic

        @numba_intrinsic
        def read_as(_ctx: Any, value: Any) -> Any:
            def generate(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
                return builder.bitcast(args[0], context.get_value_type(getattr(types, target)))

            return getattr(types, target)(getattr(types, source)), generate

        return read_as

    return intrinsic(make)
