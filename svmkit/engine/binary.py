"""The loops of table.py for rows of ones and zeros and the rbf kernel: squared distances counted in bytes, 64 to a register.

A distance ‖x − z‖² between such rows is a whole number, n_x + n_z less 2 for each feature both have. Here a feature's line of
the table says −2 for the columns that have it, so a row adds up its features' lines, modulo 256, and knows its distance D ≤ 255
to every column, in a quarter of the instructions that float32 takes. The value e^(−gamma D), D = 16 i + j, is then a product
of two numbers from tables of 16: no polynomial, and no rounding but the tables' and the product's. With AVX-512 a table fits a
register or two, and so do places to look up; with AVX2 float32 tables are two registers of 8 numbers, of which bit 3 of a place
says one, and float64 numbers are loaded one by one. Other CPUs keep to table.py.
"""

from __future__ import annotations

from typing import Any

from svmkit._jit import ORDERED, both_precisions, helper, intrinsic
from svmkit._store import cpu_has
from svmkit.engine.columns import weighted
from svmkit.engine.vector import REGISTER_BYTES

#: The CPU feature without which there are no such loops.
NEEDED = "avx2"
#: Columns to a register of bytes; a table is 1, 2 or 4 registers wide.
BYTES = REGISTER_BYTES
#: Features a row may have, so that a distance stays below 256.
MOST_ONES = 127


def _byte_values(registers: int) -> Any:
    """``f(W, ones, indices, k0, k1, powers, out)``: out = K(row, columns), so many registers of 64 columns wide.

    The row has the features ``indices[k0:k1]``; ``W`` u1 (features, columns), ``ones`` u1 (columns,) each column's number of
    features, ``powers`` (32,) and ``out`` (columns,) of one float type.
    """
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic as numba_intrinsic

    @numba_intrinsic
    def byte_values(_ctx: Any, W: Any, ones: Any, indices: Any, k0: Any, k1: Any, powers: Any, out: Any) -> Any:
        signature = types.void(W, ones, indices, types.int64, types.int64, powers, out)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            table, counts, features, factors, target = (
                context.make_array(sig.args[i])(context, builder, args[i]) for i in (0, 1, 2, 5, 6)
            )
            line_length = cgutils.unpack_tuple(builder, table.shape)[1]  # type: ignore[no-untyped-call]
            vec = _Bytes(builder, powers.dtype.bitwidth)
            sums = vec.own_counts(counts.data, builder.sub(args[4], args[3]), registers)
            sums = vec.add_lines(table.data, line_length, features.data, args[3], args[4], sums)
            vec.store_powers(sums, factors.data, target.data)
            return context.get_dummy_value()

        return signature, generate

    return byte_values


class _Bytes:
    """Writes LLVM IR for registers of 64 bytes, and of as many powers of ``bits`` bits as one of the CPU's holds."""

    def __init__(self, builder: Any, bits: int) -> None:
        from llvmlite import ir

        self.ir, self.b, self.bits = ir, builder, bits
        self.wide = cpu_has("avx512bw")
        self.lanes = 8 * (REGISTER_BYTES if self.wide else REGISTER_BYTES // 2) // bits
        self.i8, self.i32, self.i64 = (ir.IntType(n) for n in (8, 32, 64))
        self.line = ir.VectorType(self.i8, BYTES)
        self.places = ir.VectorType(ir.IntType(bits), self.lanes)
        self.powers = ir.VectorType(ir.FloatType() if bits == 32 else ir.DoubleType(), self.lanes)

    def _at(self, pointer: Any, kind: Any, number: int) -> Any:
        """The address of a vector of ``kind``, so many of them behind ``pointer``."""
        return self.b.gep(self.b.bitcast(pointer, kind.as_pointer()), [self.ir.Constant(self.i64, number)])

    def own_counts(self, counts: Any, n_ones: Any, registers: int) -> list[Any]:
        """n_x + n_z for each column z."""
        b, ir = self.b, self.ir
        undefined = ir.Constant(self.line, ir.Undefined)
        first = b.insert_element(undefined, b.trunc(n_ones, self.i8), ir.Constant(self.i32, 0))
        own = b.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(self.i32, BYTES), None))
        return [b.add(own, b.load(self._at(counts, self.line, r), align=1)) for r in range(registers)]

    def add_lines(self, W: Any, line_length: Any, indices: Any, k0: Any, k1: Any, begun: list[Any]) -> list[Any]:
        """``begun`` + Σ_k W[indices[k], :] over k0 ≤ k < k1, modulo 256."""
        b, ir = self.b, self.ir
        before = b.block
        head, loop, after = (b.append_basic_block(name) for name in ("feature", "add", "added"))
        b.branch(head)
        b.position_at_end(head)
        k = b.phi(self.i64)
        k.add_incoming(k0, before)
        sums = [b.phi(self.line) for _ in begun]
        for old, first in zip(sums, begun, strict=True):
            old.add_incoming(first, before)
        b.cbranch(b.icmp_signed("<", k, k1), loop, after)
        b.position_at_end(loop)
        feature = b.sext(b.load(b.gep(indices, [k])), self.i64)
        start = b.gep(W, [b.mul(feature, line_length)])
        for r, old in enumerate(sums):
            old.add_incoming(b.add(old, b.load(self._at(start, self.line, r), align=1)), loop)
        k.add_incoming(b.add(k, ir.Constant(self.i64, 1)), loop)
        b.branch(head)
        b.position_at_end(after)
        return sums

    def store_powers(self, distances: list[Any], powers: Any, out: Any) -> None:
        """powers[D mod 16] · powers[16 + ⌊D/16⌋] for each byte D, in order."""
        b, ir = self.b, self.ir
        pick = self._pick_wide if self.wide else self._pick_of_two if self.bits == 32 else self._load_each
        low, high = powers, b.gep(powers, [ir.Constant(self.i64, 16)])
        four = self._splat(4)
        for r, bytes_ in enumerate(distances):
            for first in range(0, BYTES, self.lanes):
                some = ir.Constant(
                    ir.VectorType(self.i32, self.lanes), [ir.Constant(self.i32, first + i) for i in range(self.lanes)]
                )
                D = b.zext(b.shuffle_vector(bytes_, ir.Constant(self.line, ir.Undefined), some), self.places)
                value = b.fmul(pick(low, D), pick(high, b.lshr(D, four)))
                b.store(value, self._at(out, self.powers, (r * BYTES + first) // self.lanes), align=4)

    def _splat(self, number: int) -> Any:
        return self.ir.Constant(self.places, [self.ir.Constant(self.places.element, number)] * self.lanes)

    def _tables(self, table: Any) -> list[Any]:
        """The 16 numbers of a table, in registers."""
        return [self.b.load(self._at(table, self.powers, i), align=4) for i in range(16 // self.lanes)]

    def _pick_wide(self, table: Any, places: Any) -> Any:
        """The numbers at ``places`` mod 16, of one register of floats or two of doubles."""
        registers = self._tables(table)
        if len(registers) == 1:
            return self._call("avx512.permvar.sf.512", [registers[0], places])
        return self._call("avx512.vpermi2var.pd.512", [registers[0], places, registers[1]])

    def _pick_of_two(self, table: Any, places: Any) -> Any:
        """The numbers at ``places`` mod 16, of two registers of floats: bit 3, as a sign, says of which."""
        first, second = (self._call("avx2.permps", [register, places]) for register in self._tables(table))
        sign = self.b.shl(places, self._splat(self.bits - 4))
        return self.b.select(self.b.icmp_signed("<", sign, self._splat(0)), second, first)

    def _load_each(self, table: Any, places: Any) -> Any:
        """The numbers at ``places`` mod 16, from memory."""
        b, ir = self.b, self.ir
        places = b.and_(places, self._splat(15))
        found = ir.Constant(self.powers, ir.Undefined)
        for lane in range(self.lanes):
            number = ir.Constant(self.i32, lane)
            found = b.insert_element(found, b.load(b.gep(table, [b.extract_element(places, number)])), number)
        return found

    def _call(self, name: str, arguments: list[Any]) -> Any:
        """The CPU's own instruction."""
        from numba.core import cgutils

        kind = self.ir.FunctionType(self.powers, [argument.type for argument in arguments])
        instruction = cgutils.get_or_insert_function(self.b.module, kind, f"llvm.x86.{name}")  # type: ignore[no-untyped-call]
        return self.b.call(instruction, arguments)


byte_values_1 = intrinsic(lambda: _byte_values(1))
byte_values_2 = intrinsic(lambda: _byte_values(2))
byte_values_4 = intrinsic(lambda: _byte_values(4))


@helper(ORDERED)
def _spread(b_indptr: Any, b_indices: Any, columns: Any, c0: Any, c1: Any, W: Any, ones: Any) -> None:
    """Columns c0 … c1−1 of the list into the table: −2, as a byte, where they have a feature."""
    W[:] = 0
    ones[:] = 0
    for c in range(c0, c1):
        row = columns[c]
        ones[c - c0] = b_indptr[row + 1] - b_indptr[row]
        for k in range(b_indptr[row], b_indptr[row + 1]):
            W[b_indices[k], c - c0] = 254


@helper(ORDERED)
def _values(indptr: Any, indices: Any, r: Any, powers: Any, W: Any, ones: Any, n_columns: Any, values: Any) -> None:
    """K(row r, columns) into ``values``: as many registers as hold ``n_columns``."""
    if n_columns > 2 * BYTES:
        byte_values_4(W, ones, indices, indptr[r], indptr[r + 1], powers, values)
    elif n_columns > BYTES:
        byte_values_2(W, ones, indices, indptr[r], indptr[r + 1], powers, values)
    else:
        byte_values_1(W, ones, indices, indptr[r], indptr[r + 1], powers, values)


def _apply_binary(
    lanes: Any, indptr: Any, indices: Any, r0: Any, r1: Any, b_indptr: Any, b_indices: Any, columns: Any,
    weights: Any, stride: Any, out: Any, powers: Any, W: Any, ones: Any, values: Any,
) -> None:  # fmt: skip
    """As ``_apply_table``."""
    width = W.shape[1]
    for c in range(0, len(columns), width):
        n_columns = min(width, len(columns) - c)
        _spread(b_indptr, b_indices, columns, c, c + n_columns, W, ones)
        for r in range(r0, r1):
            _values(indptr, indices, r, powers, W, ones, n_columns, values)
            for j in range(out.shape[1]):
                out[r, j] += weighted(lanes, values, n_columns, weights, j * stride + c)


def _block_binary(
    indptr: Any, indices: Any, rows: Any, r0: Any, r1: Any, b_indptr: Any, b_indices: Any, columns: Any,
    c_begin: Any, c_end: Any, out: Any, powers: Any, W: Any, ones: Any, values: Any,
) -> None:  # fmt: skip
    """As ``_block_table``."""
    width = W.shape[1]
    for c0 in range(c_begin, c_end, width):
        c1 = min(c0 + width, c_end)
        _spread(b_indptr, b_indices, columns, c0, c1, W, ones)
        for i in range(r0, r1):
            line = out[i, c0:c1]
            full = len(line) == width
            _values(indptr, indices, rows[i], powers, W, ones, len(line), line if full else values)
            if not full:
                for c in range(len(line)):
                    line[c] = values[c]


_TABLE = "R[:], u1[:, :], u1[:], R[:])"
apply_binary = both_precisions(
    _apply_binary,
    "void(i8, i8[:], i4[:], i8, i8, i8[:], i4[:], i8[:], f8[:], i8, f8[:, :], " + _TABLE,
    needs=NEEDED,
)
block_binary = both_precisions(
    _block_binary,
    "void(i8[:], i4[:], i8[:], i8, i8, i8[:], i4[:], i8[:], i8, i8, R[:, :], " + _TABLE,
    needs=NEEDED,
)
