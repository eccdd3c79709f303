"""The loops of table.py for rows of small whole numbers, such as pixels: several products to an instruction, added up exactly.

Where every value is one of 0 … 255 times one unit, some features' numbers fit a word (words.py): a row goes through its words,
not its nonzeros, and the table is as much smaller. AVX-512's VNNI multiplies the four bytes of a word with those of 16 columns,
and adds the products to 16 sums, in one instruction; AVX2 takes two for a word of two numbers and 8 columns. One factor of a
product of bytes must be signed: there the table has each column's numbers less o = 128, and what a row lacks by that, o s_x for
every column, is put right at the end; elsewhere o = 0. From whole numbers n_x = Σ_k x_k², s_x = Σ_k x_k and the products
p = Σ_k x_k (z_k − o) they come to

    D = ‖x − z‖² = (n_x − 2o s_x) + n_z − 2 p        or        −2 x·z = −2o s_x − 2 p,

exactly, in units squared. The value is 2^(f D) in rbf, and elsewhere the kernel's function of f·(−2 x·z): a few roundings of
the result, whatever gamma.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import ORDERED, both_precisions, helper
from svmkit.engine.columns import weighted
from svmkit.engine.llvm import for_widths, instruction, length_of_lines, loop, opened, splat
from svmkit.engine.vector import REGISTER_BYTES, Vectors
from svmkit.engine.words import BYTES

#: The CPU feature without which there are no such loops.
NEEDED = "avx2"
#: Columns to a register of sums; and to a table, whose sums stay in the CPU's registers.
SUMS = REGISTER_BYTES // 4
COLUMNS = (8 if BYTES else 4) * SUMS


def _pixel_values(registers: int) -> Any:
    """``f(W, starts, groups, words, k0, k1, start, factor, kind, coef0, degree, out)``: out = K(row, columns), so many
    registers of 16 columns wide.

    The row has the words ``words[k0:k1]`` at ``groups[k0:k1]``; ``W`` i4 (groups, columns), ``starts`` i4 (columns,);
    ``out`` (columns,) of any float type; ``start``, ``factor`` and so on as in ``Words`` (words.py).
    """
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    @numba_intrinsic
    def pixel_values(
        _ctx: Any, W: Any, starts: Any, groups: Any, words: Any, k0: Any, k1: Any, start: Any, factor: Any, kind: Any,
        coef0: Any, degree: Any, out: Any,
    ) -> Any:  # fmt: skip
        i8, real = types.int64, out.dtype
        signature = types.void(W, starts, groups, words, i8, i8, types.int32, real, i8, real, i8, out)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            table, begun, places, bytes_, target = opened(context, builder, sig, args, (0, 1, 2, 3, 11))
            line_length = length_of_lines(builder, table)
            vec = Vectors(builder, real.bitwidth, registers * real.bitwidth // 32)
            sums = _Sums(builder, registers)
            products = sums.products(table.data, line_length, places.data, bytes_.data, args[4], args[5])
            whole = sums.finish(products, args[6], begun.data)
            f = vec.splat(args[7])
            exponents = [builder.fmul(number, f) for number in sums.as_floats(whole, vec)]
            vec.store(vec.kernel(exponents, None, None, kind=args[8], coef0=args[9], degree=args[10]), target.data)
            return context.get_dummy_value()

        return signature, generate

    return pixel_values


class _Sums:
    """Writes LLVM IR for ``count`` registers of 16 whole numbers."""

    def __init__(self, builder: Any, count: int) -> None:
        from llvmlite import ir

        self.ir, self.b, self.count = ir, builder, count
        self.i32, self.i64 = ir.IntType(32), ir.IntType(64)
        self.type = ir.VectorType(self.i32, SUMS)

    def _load(self, pointer: Any, kind: Any, number: int) -> Any:
        base = self.b.bitcast(pointer, kind.as_pointer())
        return self.b.load(self.b.gep(base, [self.ir.Constant(self.i64, number)]), align=4)

    def products(self, W: Any, line_length: Any, groups: Any, words: Any, k0: Any, k1: Any) -> list[Any]:
        """Σ_k words[k] · W[groups[k], :] over k0 ≤ k < k1, number by number."""
        b, ir = self.b, self.ir
        kind = self.type if BYTES else ir.VectorType(self.i32, SUMS // 2)

        def add(k: Any, sums: list[Any]) -> list[Any]:
            group = b.sext(b.load(b.gep(groups, [k])), self.i64)
            word = splat(b, b.load(b.gep(words, [k])), kind)
            line = b.gep(W, [b.mul(group, line_length)])
            return [self._add_products(old, word, self._load(line, kind, i)) for i, old in enumerate(sums)]

        _, sums = loop(b, k0, k1, [ir.Constant(kind, None)] * (self.count * SUMS // kind.count), add)
        if BYTES:
            return sums
        both = ir.Constant(ir.VectorType(self.i32, SUMS), [ir.Constant(self.i32, i) for i in range(SUMS)])
        return [b.shuffle_vector(low, high, both) for low, high in zip(sums[::2], sums[1::2], strict=True)]

    def _add_products(self, total: Any, word: Any, columns: Any) -> Any:
        """``total`` + the products of a word's numbers with those of each column."""
        if BYTES:
            return instruction(self.b, "avx512.vpdpbusd.512", total.type, [total, word, columns])
        b, numbers = self.b, self.ir.VectorType(self.ir.IntType(16), 2 * total.type.count)
        pairs = [b.bitcast(word, numbers), b.bitcast(columns, numbers)]
        return b.add(total, instruction(b, "avx2.pmadd.wd", total.type, pairs))

    def finish(self, products: list[Any], start: Any, starts: Any) -> list[Any]:
        """start + starts − 2 products."""
        b, own = self.b, splat(self.b, start, self.type)
        one = self.ir.Constant(self.type, [self.ir.Constant(self.i32, 1)] * SUMS)
        return [b.sub(b.add(own, self._load(starts, self.type, r)), b.shl(p, one)) for r, p in enumerate(products)]

    def as_floats(self, numbers: list[Any], vec: Any) -> list[Any]:
        """The same in the registers of ``vec``: one of floats for each, or two of doubles."""
        b, ir = self.b, self.ir
        found = []
        for whole in numbers:
            for first in range(0, SUMS, vec.lanes):
                some = ir.Constant(
                    ir.VectorType(self.i32, vec.lanes), [ir.Constant(self.i32, first + i) for i in range(vec.lanes)]
                )
                found.append(b.sitofp(b.shuffle_vector(whole, ir.Constant(self.type, ir.Undefined), some), vec.type))
        return found


_values_1, _values_2, _values_4, _values_8 = for_widths(_pixel_values, (1, 2, 4, 8)).values()

#: The word of absent features, as a column has it: each number less o.
_NONE = -0x7F7F7F80 if BYTES else 0


@helper(ORDERED)
def _spread(
    b_indptr: Any, b_groups: Any, b_words: Any, b_starts: Any, columns: Any, c0: Any, c1: Any, W: Any, starts: Any
) -> None:
    """Columns c0 … c1−1 of the list into the table, each number less o."""
    W[:] = _NONE
    starts[:] = 0
    for c in range(c0, c1):
        row = columns[c]
        starts[c - c0] = b_starts[row, 1]
        for k in range(b_indptr[row], b_indptr[row + 1]):
            W[b_groups[k], c - c0] = b_words[k] ^ _NONE


@helper(ORDERED)
def _values(
    kind: Any, coef0: Any, degree: Any, factor: Any, indptr: Any, groups: Any, words: Any, own: Any, r: Any,
    W: Any, starts: Any, n_columns: Any, values: Any,
) -> None:  # fmt: skip
    """K(row r, columns) into ``values``: as many registers as hold ``n_columns``."""
    k0, k1, start = indptr[r], indptr[r + 1], own[r, 0]
    if BYTES and n_columns > 4 * SUMS:
        _values_8(W, starts, groups, words, k0, k1, start, factor, kind, coef0, degree, values)
    elif n_columns > 2 * SUMS:
        _values_4(W, starts, groups, words, k0, k1, start, factor, kind, coef0, degree, values)
    elif n_columns > SUMS:
        _values_2(W, starts, groups, words, k0, k1, start, factor, kind, coef0, degree, values)
    else:
        _values_1(W, starts, groups, words, k0, k1, start, factor, kind, coef0, degree, values)


def _apply_pixels(
    kind: Any, coef0: Any, degree: Any, lanes: Any, factor: Any,
    indptr: Any, groups: Any, words: Any, own: Any, r0: Any, r1: Any,
    b_indptr: Any, b_groups: Any, b_words: Any, b_own: Any, columns: Any,
    weights: Any, stride: Any, out: Any, W: Any, starts: Any, values: Any,
) -> None:  # fmt: skip
    """As ``apply_table``."""
    width = W.shape[1]
    for c in range(0, len(columns), width):
        n_columns = min(width, len(columns) - c)
        _spread(b_indptr, b_groups, b_words, b_own, columns, c, c + n_columns, W, starts)
        for r in range(r0, r1):
            _values(kind, coef0, degree, factor, indptr, groups, words, own, r, W, starts, n_columns, values)
            for j in range(out.shape[1]):
                out[r, j] += weighted(lanes, values, n_columns, weights, j * stride + c)


def _block_pixels(
    kind: Any, coef0: Any, degree: Any, factor: Any,
    indptr: Any, groups: Any, words: Any, own: Any, rows: Any, r0: Any, r1: Any,
    b_indptr: Any, b_groups: Any, b_words: Any, b_own: Any, columns: Any, c_begin: Any, c_end: Any, out: Any,
    W: Any, starts: Any, values: Any,
) -> None:  # fmt: skip
    """As ``block_table``."""
    width = W.shape[1]
    for c0 in range(c_begin, c_end, width):
        c1 = min(c0 + width, c_end)
        _spread(b_indptr, b_groups, b_words, b_own, columns, c0, c1, W, starts)
        for i in range(r0, r1):
            line = out[i, c0:c1]
            full = len(line) == width
            target = line if full else values
            _values(kind, coef0, degree, factor, indptr, groups, words, own, rows[i], W, starts, len(line), target)
            if not full:
                for c in range(len(line)):
                    line[c] = values[c]


_HEAD = "void(i8, R, i8, "
_PACKED = "i8[:], i4[:], i4[:], i4[:, :], "
_TABLE = "i4[:, :], i4[:], R[:])"
apply_pixels = both_precisions(
    _apply_pixels,
    _HEAD + "i8, R, " + _PACKED + "i8, i8, " + _PACKED + "i8[:], f8[:], i8, f8[:, :], " + _TABLE,
    needs=NEEDED,
)
block_pixels = both_precisions(
    _block_pixels,
    _HEAD + "R, " + _PACKED + "i8[:], i8, i8, " + _PACKED + "i8[:], i8, i8, R[:, :], " + _TABLE,
    needs=NEEDED,
)
