"""The loops of table.py for rows of ones and zeros and the rbf kernel: squared distances counted in bytes, 64 to a register.

A distance ‖x − z‖² between such rows is a whole number, n_x + n_z less 2 for each feature both have. Here a feature's line of
the table says −2 for the columns that have it, so a row adds up its features' lines, modulo 256, and knows its distance D ≤ 255
to every column, in a quarter of the instructions that float32 takes. The value e^(−gamma D), D = 16 i + j, is then a product
of two numbers from tables of 16: no polynomial, and no rounding but the tables' and the product's. With AVX-512 a table fits a
register or two, and so do places to look up; with AVX2 float32 tables are two registers of 8 numbers, of which bit 3 of a place
says one, and float64 numbers are loaded one by one. Other CPUs keep to table.py.

Where rows are so short that D < 32, two registers of AVX-512 hold the float32 values of all distances: one table, no product.

Looking up reads the lowest bits of a lane and no others, so a lane of four (eight) counts serves as it is, shifted by a byte
each time. One look-up takes every fourth (eighth) byte of a register: columns' bytes lie in the lines in an order that makes
its results those of neighbouring columns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from svmkit._jit import ORDERED, both_precisions, compiled, helper
from svmkit._llvm import cpu_has
from svmkit.data import Ints
from svmkit.engine.columns import weighted
from svmkit.engine.llvm import for_widths, instruction, length_of_lines, loop, opened, splat
from svmkit.engine.vector import REGISTER_BYTES

#: The CPU feature without which there are no such loops.
NEEDED = "avx2"
#: The one that makes registers of 64 bytes.
WIDE = "avx512bw"
#: Columns to a register of bytes; a table is 1, 2 or 4 registers wide.
BYTES = REGISTER_BYTES
#: Features a row may have, so that a distance stays below 256.
MOST_ONES = 127
#: Features a row may have, so that a distance stays below 32.
FEW_ONES = 15


def _byte_values(registers: int, few: bool = False) -> Any:
    """``f(W, ones, indices, k0, k1, powers, out)``: out = K(row, columns), so many registers of 64 columns wide; ``few``: all
    distances are below 32.

    The row has the features ``indices[k0:k1]``; ``W`` u1 (features, columns), ``ones`` u1 (columns,) each column's number of
    features, ``powers`` (32,) and ``out`` (columns,) of one float type.
    """
    from numba import types
    from numba.extending import intrinsic as numba_intrinsic

    @numba_intrinsic
    def byte_values(_ctx: Any, W: Any, ones: Any, indices: Any, k0: Any, k1: Any, powers: Any, out: Any) -> Any:
        signature = types.void(W, ones, indices, types.int64, types.int64, powers, out)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            table, counts, features, factors, target = opened(context, builder, sig, args, (0, 1, 2, 5, 6))
            line_length = length_of_lines(builder, table)
            vec = _Bytes(builder, powers.dtype.bitwidth)
            sums = vec.own_counts(counts.data, builder.sub(args[4], args[3]), registers)
            sums = vec.add_lines(table.data, line_length, features.data, args[3], args[4], sums)
            look_up = (vec.powers_of_few if few else vec.products_of_two)(factors.data)
            vec.store_powers(sums, look_up, target.data)
            return context.get_dummy_value()

        return signature, generate

    return byte_values


class _Bytes:
    """Writes LLVM IR for registers of 64 bytes, and of as many powers of ``bits`` bits as one of the CPU's holds."""

    def __init__(self, builder: Any, bits: int) -> None:
        from llvmlite import ir

        self.ir, self.b, self.bits = ir, builder, bits
        self.wide = cpu_has(WIDE)
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
        b = self.b
        own = splat(b, b.trunc(n_ones, self.i8), self.line)
        return [b.add(own, b.load(self._at(counts, self.line, r), align=1)) for r in range(registers)]

    def add_lines(self, W: Any, line_length: Any, indices: Any, k0: Any, k1: Any, begun: list[Any]) -> list[Any]:
        """``begun`` + Σ_k W[indices[k], :] over k0 ≤ k < k1, modulo 256."""
        b = self.b

        def add(k: Any, sums: list[Any]) -> list[Any]:
            feature = b.sext(b.load(b.gep(indices, [k])), self.i64)
            start = b.gep(W, [b.mul(feature, line_length)])
            return [b.add(old, b.load(self._at(start, self.line, r), align=1)) for r, old in enumerate(sums)]

        return loop(b, k0, k1, begun, add)[1]

    def store_powers(self, distances: list[Any], look_up: Any, out: Any) -> None:
        """The values of all bytes, by ``look_up`` for the lowest of each lane; every byte comes to be that in turn."""
        b, ir = self.b, self.ir
        undefined = ir.Constant(self.line, ir.Undefined)
        size = self.lanes * self.bits // 8
        for r, bytes_ in enumerate(distances):
            for first in range(0, BYTES, size):
                some = ir.Constant(ir.VectorType(self.i32, size), [ir.Constant(self.i32, first + i) for i in range(size)])
                lanes = b.bitcast(b.shuffle_vector(bytes_, undefined, some), self.places)
                for bit in range(0, self.bits, 8):
                    values = look_up(b.lshr(lanes, self._splat(bit)))
                    b.store(values, self._at(out, self.powers, (r * BYTES + first) // self.lanes + bit // 8), align=4)

    def products_of_two(self, powers: Any) -> Callable[[Any], Any]:
        """Looks up powers[D mod 16] · powers[16 + ⌊D/16⌋], D the lowest byte of a lane."""
        b = self.b
        table = self._table_wide if self.wide else self._table_of_two if self.bits == 32 else self._table_in_memory
        low, high = table(powers), table(b.gep(powers, [self.ir.Constant(self.i64, 16)]))
        return lambda places: b.fmul(low(places), high(b.lshr(places, self._splat(4))))

    def powers_of_few(self, powers: Any) -> Callable[[Any], Any]:
        """Looks up powers[D], D < 32 the lowest byte of a lane."""
        first, second = self._registers(powers, 32)
        return lambda places: self._call("avx512.vpermi2var.ps.512", [first, places, second])

    def _splat(self, number: int) -> Any:
        return self.ir.Constant(self.places, [self.ir.Constant(self.places.element, number)] * self.lanes)

    def _registers(self, table: Any, count: int) -> list[Any]:
        """So many numbers of a table, in registers: loaded once, since LLVM would not see that no store changes them."""
        return [self.b.load(self._at(table, self.powers, i), align=4) for i in range(count // self.lanes)]

    def _table_wide(self, table: Any) -> Callable[[Any], Any]:
        """Looks up places mod 16, in one register of floats or two of doubles."""
        registers = self._registers(table, 16)
        if len(registers) == 1:
            return lambda places: self._call("avx512.permvar.sf.512", [registers[0], places])
        return lambda places: self._call("avx512.vpermi2var.pd.512", [registers[0], places, registers[1]])

    def _table_of_two(self, table: Any) -> Callable[[Any], Any]:
        """Looks up places mod 16, in two registers of floats: bit 3, as a sign, says which."""
        registers = self._registers(table, 16)

        def look_up(places: Any) -> Any:
            first, second = (self._call("avx2.permps", [register, places]) for register in registers)
            sign = self.b.shl(places, self._splat(self.bits - 4))
            return self.b.select(self.b.icmp_signed("<", sign, self._splat(0)), second, first)

        return look_up

    def _table_in_memory(self, table: Any) -> Callable[[Any], Any]:
        """Looks up places mod 16, number by number."""
        b, ir = self.b, self.ir

        def look_up(places: Any) -> Any:
            places = b.and_(places, self._splat(15))
            found = ir.Constant(self.powers, ir.Undefined)
            for lane in range(self.lanes):
                number = ir.Constant(self.i32, lane)
                found = b.insert_element(found, b.load(b.gep(table, [b.extract_element(places, number)])), number)
            return found

        return look_up

    def _call(self, name: str, arguments: list[Any]) -> Any:
        return instruction(self.b, name, self.powers, arguments)


@cache
def byte_places(real: str) -> Ints:
    """(256,): where in the table's lines the byte of each column lies."""
    size = np.dtype(real).itemsize
    lanes = (REGISTER_BYTES if cpu_has(WIDE) else REGISTER_BYTES // 2) // size
    return np.arange(4 * BYTES).reshape(-1, lanes, size).transpose(0, 2, 1).reshape(-1)


@helper(ORDERED)
def _spread(b_indptr: Any, b_indices: Any, columns: Any, c0: Any, c1: Any, places: Any, W: Any, ones: Any) -> None:
    """Columns c0 … c1−1 of the list into the table: −2, as a byte, where they have a feature."""
    W[:] = 0
    ones[:] = 0
    for c in range(c0, c1):
        row = columns[c]
        place = places[c - c0]
        ones[place] = b_indptr[row + 1] - b_indptr[row]
        for k in range(b_indptr[row], b_indptr[row + 1]):
            W[b_indices[k], place] = 254


def _values_of(one: Any, two: Any, four: Any) -> Any:
    """``values(indptr, indices, r, powers, W, ones, n_columns, out)``: K(row r, columns), as many registers as hold these."""

    @helper(ORDERED)
    def values(indptr: Any, indices: Any, r: Any, powers: Any, W: Any, ones: Any, n_columns: Any, out: Any) -> None:
        if n_columns > 2 * BYTES:
            four(W, ones, indices, indptr[r], indptr[r + 1], powers, out)
        elif n_columns > BYTES:
            two(W, ones, indices, indptr[r], indptr[r + 1], powers, out)
        else:
            one(W, ones, indices, indptr[r], indptr[r + 1], powers, out)

    return values


def _apply_of(row_values: Any) -> Any:
    def apply_binary(
        lanes: Any, indptr: Any, indices: Any, r0: Any, r1: Any, b_indptr: Any, b_indices: Any, columns: Any,
        weights: Any, stride: Any, out: Any, powers: Any, places: Any, W: Any, ones: Any, values: Any,
    ) -> None:  # fmt: skip
        """As ``apply_table``."""
        width = W.shape[1]
        for c in range(0, len(columns), width):
            n_columns = min(width, len(columns) - c)
            _spread(b_indptr, b_indices, columns, c, c + n_columns, places, W, ones)
            for r in range(r0, r1):
                row_values(indptr, indices, r, powers, W, ones, n_columns, values)
                for j in range(out.shape[1]):
                    out[r, j] += weighted(lanes, values, n_columns, weights, j * stride + c)

    return apply_binary


def _block_of(row_values: Any) -> Any:
    def block_binary(
        indptr: Any, indices: Any, rows: Any, r0: Any, r1: Any, b_indptr: Any, b_indices: Any, columns: Any,
        c_begin: Any, c_end: Any, out: Any, powers: Any, places: Any, W: Any, ones: Any, values: Any,
    ) -> None:  # fmt: skip
        """As ``block_table``."""
        width = W.shape[1]
        for c0 in range(c_begin, c_end, width):
            c1 = min(c0 + width, c_end)
            _spread(b_indptr, b_indices, columns, c0, c1, places, W, ones)
            for i in range(r0, r1):
                line = out[i, c0:c1]
                full = len(line) == width
                row_values(indptr, indices, rows[i], powers, W, ones, len(line), line if full else values)
                if not full:
                    for c in range(len(line)):
                        line[c] = values[c]

    return block_binary


_byte_row = _values_of(*for_widths(_byte_values, (1, 2, 4)).values())
_few_row = _values_of(*for_widths(_byte_values, (1, 2, 4), few=True).values())
_TABLE = "R[:], i8[:], u1[:, :], u1[:], R[:])"
_APPLY = "void(i8, i8[:], i4[:], i8, i8, i8[:], i4[:], i8[:], f8[:], i8, f8[:, :], " + _TABLE
_BLOCK = "void(i8[:], i4[:], i8[:], i8, i8, i8[:], i4[:], i8[:], i8, i8, R[:, :], " + _TABLE
apply_binary = both_precisions(_apply_of(_byte_row), _APPLY, needs=NEEDED)
block_binary = both_precisions(_block_of(_byte_row), _BLOCK, needs=NEEDED)
#: Of rows with FEW_ONES at most, in float32.
apply_few = compiled(_APPLY.replace("R", "f4"), ORDERED, "apply_few", WIDE)(_apply_of(_few_row))
block_few = compiled(_BLOCK.replace("R", "f4"), ORDERED, "block_few", WIDE)(_block_of(_few_row))
