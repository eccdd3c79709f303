"""The inner loops that numba cannot write: a row, or two, against a block of columns, their kernel values, and sums of these.

A block of up to 128 columns (64 in float64) stands in a table ``W`` with one line a feature, so a row of sparse data is worked
through nonzero by nonzero: broadcast the value, one fused multiply-add a register against the feature's line. The sums stay in
registers through the kernel function (vector.py).

A pair's value depends only on the two rows and on how the rows are packed: products are added in ascending order of the packed
feature numbers whichever row is the column, absent features add an exact zero, and the same instructions run for every block
width. So K(x, z) = K(z, x) to the bit, on every path.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import intrinsic
from svmkit.engine.llvm import for_widths, length_of_lines, opened
from svmkit.engine.vector import Vectors


def _row_values(registers: int) -> Any:
    """``f(W, indices, data, k0, k1, h_x, h, kind, coef0, degree, out)``: out = K(row, columns), so many registers wide.

    The row's nonzeros are ``indices[k0:k1], data[k0:k1]``; ``W`` (features, columns), ``h`` (columns,), ``out`` (columns,) and
    ``data`` share one float type; ``kind`` as in problem.py.
    """
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    @numba_intrinsic
    def row_values(
        _ctx: Any, W: Any, indices: Any, data: Any, k0: Any, k1: Any, hx: Any, h: Any, kind: Any, coef0: Any, degree: Any,
        out: Any,
    ) -> Any:  # fmt: skip
        real = data.dtype
        signature = types.void(W, indices, data, types.int64, types.int64, real, h, types.int64, real, types.int64, out)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            vec = Vectors(builder, real.bitwidth, registers)
            table, features, values, norms, target = opened(context, builder, sig, args, (0, 1, 2, 6, 10))
            line_length = length_of_lines(builder, table)
            zeros = [vec.splat(0.0)] * registers
            _, sums = vec.inner_products(table.data, line_length, features.data, values.data, args[3], args[4], None, zeros)
            vec.store(vec.kernel(sums, hx=args[5], h=norms.data, kind=args[7], coef0=args[8], degree=args[9]), target.data)
            return context.get_dummy_value()

        return signature, generate

    return row_values


def _pair_values(registers: int, differences: bool = False) -> Any:
    """``f(W, dense, indices, data, k0, k1, h_x, l0, l1, h_y, h, kind, coef0, degree, out_x, out_y)``: two ``_row_values``.

    The first ``dense`` entries of both rows are of features 0 … dense−1; with ``differences`` rbf takes the squares of theirs
    in place of products. The other features come first then: where both rows have the same of them, these leave nothing, and
    squares lose no digits to them.
    """
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    @numba_intrinsic
    def pair_values(
        _ctx: Any, W: Any, dense: Any, indices: Any, data: Any, k0: Any, k1: Any, hx: Any, l0: Any, l1: Any, hy: Any,
        h: Any, kind: Any, coef0: Any, degree: Any, out_x: Any, out_y: Any,
    ) -> Any:  # fmt: skip
        real, i8 = data.dtype, types.int64
        signature = types.void(W, i8, indices, data, i8, i8, real, i8, i8, real, h, i8, real, i8, out_x, out_y)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            vec = Vectors(builder, real.bitwidth, registers)
            table, features, values, norms, first, second = opened(context, builder, sig, args, (0, 2, 3, 10, 14, 15))
            line_length = length_of_lines(builder, table)
            starts = [builder.gep(values.data, [args[i]]) for i in (4, 7)]
            zeros = [vec.splat(0.0)] * registers

            def with_others(row: Any, begun: list[Any]) -> list[Any]:
                """``begun``, the other features' products added."""
                k = builder.add(row[0], args[1])
                return vec.inner_products(table.data, line_length, features.data, values.data, k, row[1], None, begun)[1]

            rows = args[4:7], args[7:10]
            if differences:
                begun = [vec.exponents(with_others(row, zeros), row[2], norms.data) for row in rows]
                exponents = vec.products_of_two(table.data, line_length, starts, args[1], begun, differences=True)
                for target, found in zip((first, second), exponents, strict=True):
                    vec.store([vec.exp2(t) for t in found], target.data)
                return context.get_dummy_value()
            begun = vec.products_of_two(table.data, line_length, starts, args[1], [zeros, zeros])
            for row, target, sums in zip(rows, (first, second), begun, strict=True):
                products = with_others(row, sums)
                found = vec.kernel(products, hx=row[2], h=norms.data, kind=args[11], coef0=args[12], degree=args[13])
                vec.store(found, target.data)
            return context.get_dummy_value()

        return signature, generate

    return pair_values


def _pair_products(registers: int, differences: bool = False) -> Any:
    """``f(W, first, count, data, k, l, sums, x, y)``: adds features first … first+count−1 of two rows, whose values begin at
    data[k] and data[l], to their inner products at ``x`` and ``y``, their own sum first; or takes off squared differences.
    """
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    @numba_intrinsic
    def pair_products(_ctx: Any, W: Any, first: Any, count: Any, data: Any, k: Any, l: Any, sums: Any, x: Any, y: Any) -> Any:
        i8 = types.int64
        signature = types.void(W, i8, i8, data, i8, i8, sums, i8, i8)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            vec = Vectors(builder, sums.dtype.bitwidth, registers)
            table, values, buffer = opened(context, builder, sig, args, (0, 3, 6))
            line_length = length_of_lines(builder, table)
            start = builder.gep(table.data, [builder.mul(args[1], line_length)])
            starts = [builder.gep(values.data, [args[i]]) for i in (4, 5)]
            zeros = [vec.splat(0.0)] * registers
            added = vec.products_of_two(start, line_length, starts, args[2], [zeros, zeros], differences)
            for i, sums_of_one in zip((7, 8), added, strict=True):
                vec.add_to(builder.gep(buffer.data, [args[i]]), sums_of_one)
            return context.get_dummy_value()

        return signature, generate

    return pair_products


def _row_products(registers: int) -> Any:
    """``f(W, indices, data, k0, k1, limit, sums, place) -> k``: adds a row's nonzeros from k0 on, while their feature is below
    ``limit``, to its inner products at ``place``, their own sum first; returns where it stopped, at most k1.
    """
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    @numba_intrinsic
    def row_products(_ctx: Any, W: Any, indices: Any, data: Any, k0: Any, k1: Any, limit: Any, sums: Any, place: Any) -> Any:
        signature = types.int64(W, indices, data, types.int64, types.int64, types.int64, sums, types.int64)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            vec = Vectors(builder, sums.dtype.bitwidth, registers)
            table, features, values, buffer = opened(context, builder, sig, args, (0, 1, 2, 6))
            line_length = length_of_lines(builder, table)
            mine = builder.gep(buffer.data, [args[7]])
            zeros = [vec.splat(0.0)] * registers
            stopped, added = vec.inner_products(
                table.data, line_length, features.data, values.data, args[3], args[4], args[5], zeros
            )
            vec.add_to(mine, added)
            return stopped

        return signature, generate

    return row_products


def _kernel_values() -> Any:
    """``f(products, place, c, h_x, h, kind, coef0, degree)``: a register of inner products, columns from c, made values."""
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    @numba_intrinsic
    def kernel_values(
        _ctx: Any, products: Any, place: Any, column: Any, hx: Any, h: Any, kind: Any, coef0: Any, degree: Any
    ) -> Any:
        real = products.dtype
        signature = types.void(products, types.int64, types.int64, real, h, types.int64, real, types.int64)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            vec = Vectors(builder, real.bitwidth, 1)
            values, halves = opened(context, builder, sig, args, (0, 4))
            data, norms = builder.gep(values.data, [args[1]]), builder.gep(halves.data, [args[2]])
            sums = [vec.load(data, i) for i in range(vec.count)]
            vec.store(vec.kernel(sums, hx=args[3], h=norms, kind=args[5], coef0=args[6], degree=args[7]), data)
            return context.get_dummy_value()

        return signature, generate

    return kernel_values


def _weighted_sum(registers: int) -> Any:
    """``f(values, weights, w0) -> f8``: Σ_c values[c] · weights[w0 + c] over so many registers, all in float64."""
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    @numba_intrinsic
    def weighted_sum(_ctx: Any, values: Any, weights: Any, w0: Any) -> Any:
        signature = types.float64(values, weights, types.int64)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            vec = Vectors(builder, values.dtype.bitwidth, registers)
            data, factors = opened(context, builder, sig, args, (0, 1))
            return vec.dot64(data.data, builder.gep(factors.data, [args[2]]))

        return signature, generate

    return weighted_sum


#: Registers to a line of a table.
WIDTHS = (1, 2, 4, 8)
row_values = for_widths(_row_values, WIDTHS)
pair_values_8 = intrinsic(lambda: _pair_values(8))
pair_distances = for_widths(_pair_values, WIDTHS, differences=True)
pair_products = for_widths(_pair_products, WIDTHS)
pair_squares = for_widths(_pair_products, WIDTHS, differences=True)
row_products = for_widths(_row_products, WIDTHS)
kernel_values = intrinsic(_kernel_values)
weighted_sum = for_widths(_weighted_sum, WIDTHS)
