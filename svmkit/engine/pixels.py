"""The loops of table.py for rows of small whole numbers, such as pixels: four products to an instruction, added up exactly.

Where every value is one of 0 … 255 times one unit, four features' numbers fit a word (words.py). AVX-512's VNNI multiplies the
four bytes of a word with those of 16 columns, and adds the products to 16 sums, in one instruction; so a row goes through its
words, not its nonzeros, and the table is a quarter as large. One factor of such a product must be a signed byte: the table has
each column's numbers less 128, and what a row lacks by that, 128 s_x for every column, is put right at the end. From whole
numbers n_x = Σ_k x_k², s_x = Σ_k x_k and the products p = Σ_k x_k (z_k − 128) they come to

    D = ‖x − z‖² = (n_x − 256 s_x) + n_z − 2 p        or        −2 x·z = −256 s_x − 2 p,

exactly, in units squared. The value is 2^(f D) in rbf, and elsewhere the kernel's function of f·(−2 x·z): a few roundings of
the result, whatever gamma.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import ORDERED, both_precisions, helper, intrinsic
from svmkit.engine.columns import weighted
from svmkit.engine.vector import REGISTER_BYTES, Vectors

#: The CPU feature without which there are no such loops.
NEEDED = "avx512_vnni"
#: Columns to a register of sums.
SUMS = REGISTER_BYTES // 4


def _pixel_values(registers: int) -> Any:
    """``f(W, starts, groups, words, k0, k1, start, factor, kind, coef0, degree, out)``: out = K(row, columns), so many
    registers of 16 columns wide.

    The row has the words ``words[k0:k1]`` at ``groups[k0:k1]``; ``W`` i4 (groups, columns), ``starts`` i4 (columns,); ``out``
    (columns,) of any float type; ``start``, ``factor`` and so on as in ``Words`` (words.py).
    """
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic as numba_intrinsic

    @numba_intrinsic
    def pixel_values(
        _ctx: Any, W: Any, starts: Any, groups: Any, words: Any, k0: Any, k1: Any, start: Any, factor: Any, kind: Any,
        coef0: Any, degree: Any, out: Any,
    ) -> Any:  # fmt: skip
        i8, real = types.int64, out.dtype
        signature = types.void(W, starts, groups, words, i8, i8, types.int32, real, i8, real, i8, out)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            table, begun, places, bytes_, target = (
                context.make_array(sig.args[i])(context, builder, args[i]) for i in (0, 1, 2, 3, 11)
            )
            line_length = cgutils.unpack_tuple(builder, table.shape)[1]  # type: ignore[no-untyped-call]
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

    def _splat(self, number: Any) -> Any:
        undefined = self.ir.Constant(self.type, self.ir.Undefined)
        first = self.b.insert_element(undefined, number, self.ir.Constant(self.i32, 0))
        return self.b.shuffle_vector(first, undefined, self.ir.Constant(self.type, None))

    def _load(self, pointer: Any, register: int) -> Any:
        base = self.b.bitcast(pointer, self.type.as_pointer())
        return self.b.load(self.b.gep(base, [self.ir.Constant(self.i64, register)]), align=4)

    def products(self, W: Any, line_length: Any, groups: Any, words: Any, k0: Any, k1: Any) -> list[Any]:
        """Σ_k words[k] · W[groups[k], :] over k0 ≤ k < k1, by bytes."""
        from numba.core import cgutils

        b, ir = self.b, self.ir
        kind = ir.FunctionType(self.type, [self.type] * 3)
        add = cgutils.get_or_insert_function(b.module, kind, "llvm.x86.avx512.vpdpbusd.512")  # type: ignore[no-untyped-call]
        before = b.block
        head, loop, after = (b.append_basic_block(name) for name in ("word", "add", "summed"))
        b.branch(head)
        b.position_at_end(head)
        k = b.phi(self.i64)
        k.add_incoming(k0, before)
        sums = [b.phi(self.type) for _ in range(self.count)]
        for old in sums:
            old.add_incoming(ir.Constant(self.type, None), before)
        b.cbranch(b.icmp_signed("<", k, k1), loop, after)
        b.position_at_end(loop)
        group = b.sext(b.load(b.gep(groups, [k])), self.i64)
        word = self._splat(b.load(b.gep(words, [k])))
        line = b.gep(W, [b.mul(group, line_length)])
        for r, old in enumerate(sums):
            old.add_incoming(b.call(add, [old, word, self._load(line, r)]), loop)
        k.add_incoming(b.add(k, ir.Constant(self.i64, 1)), loop)
        b.branch(head)
        b.position_at_end(after)
        return sums

    def finish(self, products: list[Any], start: Any, starts: Any) -> list[Any]:
        """start + starts − 2 products."""
        b, own = self.b, self._splat(start)
        one = self.ir.Constant(self.type, [self.ir.Constant(self.i32, 1)] * SUMS)
        return [b.sub(b.add(own, self._load(starts, r)), b.shl(p, one)) for r, p in enumerate(products)]

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


pixel_values_1 = intrinsic(lambda: _pixel_values(1))
pixel_values_2 = intrinsic(lambda: _pixel_values(2))
pixel_values_4 = intrinsic(lambda: _pixel_values(4))
pixel_values_8 = intrinsic(lambda: _pixel_values(8))

#: The word of four absent features, as a column has it.
_NONE = -2139062144  # 0x80808080


@helper(ORDERED)
def _spread(
    b_indptr: Any, b_groups: Any, b_words: Any, b_starts: Any, columns: Any, c0: Any, c1: Any, W: Any, starts: Any
) -> None:
    """Columns c0 … c1−1 of the list into the table, each number less 128."""
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
    if n_columns > 4 * SUMS:
        pixel_values_8(W, starts, groups, words, k0, k1, start, factor, kind, coef0, degree, values)
    elif n_columns > 2 * SUMS:
        pixel_values_4(W, starts, groups, words, k0, k1, start, factor, kind, coef0, degree, values)
    elif n_columns > SUMS:
        pixel_values_2(W, starts, groups, words, k0, k1, start, factor, kind, coef0, degree, values)
    else:
        pixel_values_1(W, starts, groups, words, k0, k1, start, factor, kind, coef0, degree, values)


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
    kind: Any, coef0: Any, degree: Any, lanes: Any, factor: Any,
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


_HEAD = "void(i8, R, i8, i8, R, "
_PACKED = "i8[:], i4[:], i4[:], i4[:, :], "
_TABLE = "i4[:, :], i4[:], R[:])"
apply_pixels = both_precisions(
    _apply_pixels,
    _HEAD + _PACKED + "i8, i8, " + _PACKED + "i8[:], f8[:], i8, f8[:, :], " + _TABLE,
    needs=NEEDED,
)
block_pixels = both_precisions(
    _block_pixels,
    _HEAD + _PACKED + "i8[:], i8, i8, " + _PACKED + "i8[:], i8, i8, R[:, :], " + _TABLE,
    needs=NEEDED,
)
