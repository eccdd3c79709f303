"""Vectors of numbers in the CPU's registers: inner products, kernel values and sums, written as LLVM IR.

numba will not keep an array of sums in registers. So the loops over rows of kernel values (inner.py, pixels.py) are written on
registers of 16 floats or 8 doubles, which LLVM maps to AVX-512, or to several AVX2 or NEON registers, as the CPU has them.

Rows come scaled (packed.py): s = √(2 gamma log₂e) for rbf, √gamma for polynomial and sigmoid, with h = s²‖x‖²/2:

    linear  t        rbf  2^(t − (h_x + h_z))        polynomial  (t + coef0)^degree        sigmoid  tanh(t + coef0)

where t is the inner product of the scaled rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, log
from typing import Any

from svmkit.engine.llvm import loop, splat

#: Bytes to a register; a block is 1, 2, 4 or 8 registers wide.
REGISTER_BYTES = 64
_KEEP_ORDER = ("contract", "nnan", "ninf", "nsz", "arcp")
_REORDER = (*_KEEP_ORDER, "reassoc")


def _exp2_coefficients(bits: int) -> list[float]:
    """A polynomial for 2^f, |f| ≤ ½, lowest power first."""
    if bits == 64:
        return [log(2.0) ** k / factorial(k) for k in range(14)]
    from numpy import exp2
    from numpy.polynomial import Chebyshev, Polynomial

    return list(Chebyshev.interpolate(exp2, 6, [-0.5, 0.5]).convert(kind=Polynomial).coef)


class Vectors:
    """Writes LLVM IR for ``count`` registers of 16 floats or 8 doubles."""

    def __init__(self, builder: Any, bits: int, count: int) -> None:
        from llvmlite import ir

        self.ir, self.b, self.bits = ir, builder, bits
        self.lanes = 8 * REGISTER_BYTES // bits
        self.count = count
        self.real = ir.FloatType() if bits == 32 else ir.DoubleType()
        self.type = ir.VectorType(self.real, self.lanes)
        self.int_type = ir.VectorType(ir.IntType(bits), self.lanes)
        self.i64 = ir.IntType(64)

    def splat(self, scalar: Any) -> Any:
        """A register with ``scalar`` (an IR value or a number) in every lane."""
        ir = self.ir
        if not hasattr(scalar, "type"):
            return ir.Constant(self.type, [ir.Constant(self.real, float(scalar))] * self.lanes)
        return splat(self.b, scalar, self.type)

    def load(self, pointer: Any, register: int) -> Any:
        base = self.b.bitcast(pointer, self.type.as_pointer())
        return self.b.load(self.b.gep(base, [self.ir.Constant(self.i64, register)]), align=self.bits // 8)

    def store(self, values: Sequence[Any], pointer: Any) -> None:
        base = self.b.bitcast(pointer, self.type.as_pointer())
        for register, value in enumerate(values):
            self.b.store(value, self.b.gep(base, [self.ir.Constant(self.i64, register)]), align=self.bits // 8)

    def add_to(self, pointer: Any, values: Sequence[Any]) -> None:
        """What stands at ``pointer`` plus ``values``, in its place."""
        so_far = [self.load(pointer, i) for i in range(len(values))]
        self.store([self.b.fadd(old, new, flags=_KEEP_ORDER) for old, new in zip(so_far, values, strict=True)], pointer)

    def mul_add(self, x: Any, y: Any, z: Any) -> Any:
        """x·y + z, one instruction where the CPU has it."""
        return self.b.fadd(self.b.fmul(x, y, flags=_KEEP_ORDER), z, flags=_KEEP_ORDER)

    def inner_products(
        self, W: Any, line_length: Any, indices: Any, data: Any, k0: Any, k1: Any, limit: Any, begun: list[Any]
    ) -> tuple[Any, list[Any]]:
        """``begun`` + Σ_k data[k] · W[indices[k], :] over k0 ≤ k < k1, as long as indices[k] < ``limit`` (None: no limit).

        Returns the k it stopped at and a register for every 16 (8) columns.
        """
        b = self.b

        def feature(k: Any) -> Any:
            return b.sext(b.load(b.gep(indices, [k])), self.i64)

        def add(k: Any, sums: list[Any]) -> list[Any]:
            line = b.gep(W, [b.mul(feature(k), line_length)])
            value = self.splat(b.load(b.gep(data, [k])))
            return [self.mul_add(value, self.load(line, i), old) for i, old in enumerate(sums)]

        return loop(b, k0, k1, begun, add, None if limit is None else lambda k: b.icmp_signed("<", feature(k), limit))

    def products_of_two(
        self, W: Any, line_length: Any, starts: list[Any], count: Any, begun: list[list[Any]], differences: bool = False
    ) -> list[list[Any]]:
        """``begun`` + Σ_j x[j] · W[j, :] over j < count for two rows x, whose values begin at ``starts``: registers as
        ``inner_products``; or − Σ_j (x[j] − W[j, :])².

        A line of the table is loaded once for both: a multiply-add that loads takes a third longer than one that does not.
        """
        b = self.b

        def add(j: Any, sums: list[Any]) -> list[Any]:
            line = b.gep(W, [b.mul(j, line_length)])
            columns = [self.load(line, i) for i in range(self.count)]
            more = []
            for start, row in zip(starts, (sums[: self.count], sums[self.count :]), strict=True):
                value = self.splat(b.load(b.gep(start, [j])))
                more += [self._with_term(total, value, column, differences) for total, column in zip(row, columns, strict=True)]
            return more

        _, sums = loop(b, self.ir.Constant(self.i64, 0), count, [*begun[0], *begun[1]], add)
        return [sums[: self.count], sums[self.count :]]

    def _with_term(self, total: Any, value: Any, column: Any, differences: bool) -> Any:
        """``total`` + value·column, or − (value − column)²."""
        if not differences:
            return self.mul_add(value, column, total)
        apart = self.b.fsub(value, column, flags=_KEEP_ORDER)
        return self.b.fsub(total, self.b.fmul(apart, apart, flags=_KEEP_ORDER), flags=_KEEP_ORDER)

    def kernel(self, sums: list[Any], hx: Any, h: Any, kind: Any, coef0: Any, degree: Any) -> list[Any]:
        """The kernel values from the inner products, by ``kind`` (0 linear, 1 polynomial, 2 rbf, 3 sigmoid).

        Without halves, ``hx`` and ``h`` None, the sums are rbf's exponents already.
        """
        b, ir = self.b, self.ir
        start = b.block
        done = b.append_basic_block("values")
        results = []
        outcomes: list[tuple[Any, list[Any]]] = []
        cases = []
        for number, make in ((1, self._polynomial), (2, self._rbf), (3, self._sigmoid)):
            block = b.append_basic_block(f"kind{number}")
            b.position_at_end(block)
            values = make(sums, hx, h, coef0, degree)
            outcomes.append((b.block, values))
            b.branch(done)
            cases.append((number, block))
        b.position_at_end(start)
        switch = b.switch(kind, done)
        for number, block in cases:
            switch.add_case(ir.Constant(self.i64, number), block)
        b.position_at_end(done)
        for i, linear in enumerate(sums):
            value = b.phi(self.type)
            value.add_incoming(linear, start)
            for block, values in outcomes:
                value.add_incoming(values[i], block)
            results.append(value)
        return results

    def _rbf(self, sums: list[Any], hx: Any, h: Any, _coef0: Any, _degree: Any) -> list[Any]:
        return [self.exp2(t) for t in (sums if h is None else self.exponents(sums, hx, h))]

    def exponents(self, sums: list[Any], hx: Any, h: Any) -> list[Any]:
        """Of rbf, from the inner products."""
        half = self.splat(hx)
        norms = [self.b.fadd(half, self.load(h, i), flags=_KEEP_ORDER) for i in range(self.count)]
        return [self.b.fsub(t, n, flags=("nsz",)) for t, n in zip(sums, norms, strict=True)]

    def _polynomial(self, sums: list[Any], _hx: Any, _h: Any, coef0: Any, degree: Any) -> list[Any]:
        """(t + coef0)^degree by repeated squaring: the product times the base for each bit of the degree that is set."""
        b, ir = self.b, self.ir
        shift, one = self.splat(coef0), self.splat(1.0)
        first = [b.fadd(t, shift, flags=_KEEP_ORDER) for t in sums]
        before = b.block
        power_block, after = b.append_basic_block("power"), b.append_basic_block("powered")
        b.branch(power_block)
        b.position_at_end(power_block)
        left = b.phi(self.i64)
        powers, bases = ([b.phi(self.type) for _ in sums] for _ in range(2))
        odd = b.trunc(left, ir.IntType(1))
        raised = [b.select(odd, b.fmul(p, x), p) for p, x in zip(powers, bases, strict=True)]
        squares = [b.fmul(x, x) for x in bases]
        halved = b.lshr(left, ir.Constant(self.i64, 1))
        left.add_incoming(degree, before)
        left.add_incoming(halved, power_block)
        for power, new, base, start, square in zip(powers, raised, bases, first, squares, strict=True):
            power.add_incoming(one, before)
            power.add_incoming(new, power_block)
            base.add_incoming(start, before)
            base.add_incoming(square, power_block)
        b.cbranch(b.icmp_signed(">", halved, ir.Constant(self.i64, 0)), power_block, after)
        b.position_at_end(after)
        return raised

    def _sigmoid(self, sums: list[Any], _hx: Any, _h: Any, coef0: Any, _degree: Any) -> list[Any]:
        """tanh u = −d/(2 + d)·sign u with d = 2^(−2|u| log₂e) − 1, which of a small u keeps all its digits."""
        b = self.b
        shift, two, zero = self.splat(coef0), self.splat(2.0), self.splat(0.0)
        rate = self.splat(2.0 / log(2.0))
        out = []
        for t in sums:
            u = b.fadd(t, shift, flags=_KEEP_ORDER)
            minus = b.fsub(zero, u, flags=("nsz",))
            below = b.fcmp_ordered("<", u, zero)
            d = self.exp2_less_1(b.fmul(b.select(below, u, minus), rate, flags=_KEEP_ORDER))
            size = b.fdiv(d, b.fadd(two, d))  # −|tanh u|
            out.append(b.select(below, size, b.fsub(zero, size, flags=("nsz",))))
        return out

    def exp2(self, t: Any) -> Any:
        """2^t for t not much above 0: t = n + f with |f| ≤ ½, a polynomial for 2^f, and n added to its exponent bits.

        Adding 1.5·2^23 (2^52) rounds t to n and leaves n in the low bits. Below 2^−125 a float32 stays there. Below 2^−1023 a
        float64 is 0, all of whose bits are those of 1.0 and n = −1023 added up: far from all support vectors f is −rho, as
        svm-predict has it. The polynomial is off by 3e-9 in float32 (Chebyshev, degree 6), by less than rounding in float64
        (Taylor, degree 13).
        """
        f, (first, *rest), exponent = self._exponent_and_rest(t)
        p = self.mul_add(self._polynomial_of(f, rest), f, first)
        return self.b.bitcast(self.b.add(self.b.bitcast(p, self.int_type), exponent), self.type)

    def exp2_less_1(self, t: Any) -> Any:
        """2^t − 1 for t ≤ 0, to the last digits of its own where that is near 0: 2^n·(2^f − 1) + (2^n − 1)."""
        f, (_, *rest), exponent = self._exponent_and_rest(t)
        one = self.splat(1.0)
        power = self.b.bitcast(self.b.add(self.b.bitcast(one, self.int_type), exponent), self.type)
        part = self.b.fmul(self._polynomial_of(f, rest), f)
        return self.mul_add(power, part, self.b.fsub(power, one))

    def _polynomial_of(self, f: Any, coefficients: Sequence[Any]) -> Any:
        """Σ_k coefficients[k]·f^k."""
        *rest, p = coefficients
        for coefficient in reversed(rest):
            p = self.mul_add(p, f, coefficient)
        return p

    def _exponent_and_rest(self, t: Any) -> tuple[Any, list[Any], Any]:
        """f and, for 2^f, the polynomial's coefficients; n in its place among the bits of a float."""
        b, ir = self.b, self.ir
        mantissa, lowest = (23, -125.0) if self.bits == 32 else (52, -1023.0)
        floor = self.splat(lowest)
        t = b.select(b.fcmp_ordered(">", t, floor), t, floor)
        shift = self.splat(1.5 * 2.0**mantissa)
        shifted = b.fadd(t, shift)
        f = b.fsub(t, b.fsub(shifted, shift))
        places = ir.Constant(self.int_type, [ir.Constant(self.int_type.element, mantissa)] * self.lanes)
        exponent = b.shl(b.bitcast(shifted, self.int_type), places)
        return f, [self.splat(c) for c in _exp2_coefficients(self.bits)], exponent

    def dot64(self, values: Any, weights: Any) -> Any:
        """Σ values·weights with float64 products, in four running sums of eight, folded at the end."""
        b, ir = self.b, self.ir
        eight = ir.VectorType(ir.DoubleType(), 8)
        totals = [ir.Constant(eight, None)] * 4
        base = b.bitcast(weights, eight.as_pointer())
        part_type = ir.VectorType(self.real, 8)
        parts = b.bitcast(values, part_type.as_pointer())
        for i in range(self.count * self.lanes // 8):
            place = [ir.Constant(self.i64, i)]
            value = b.load(b.gep(parts, place), align=self.bits // 8)
            wide = b.fpext(value, eight) if self.bits == 32 else value
            factor = b.load(b.gep(base, place), align=8)
            totals[i % 4] = b.fadd(b.fmul(wide, factor, flags=_KEEP_ORDER), totals[i % 4], flags=_KEEP_ORDER)
        first, second = (b.fadd(totals[i], totals[i + 2], flags=_KEEP_ORDER) for i in range(2))
        total = b.fadd(first, second, flags=_KEEP_ORDER)
        kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType(), eight])
        fold = b.module.declare_intrinsic("llvm.vector.reduce.fadd.v8f64", (), kind)
        return b.call(fold, [ir.Constant(ir.DoubleType(), 0.0), total], fastmath=_REORDER)
