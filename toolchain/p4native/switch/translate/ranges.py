"""Computes the range of values that an expression can have.

BMv2 computes with unbounded integers, but C code must know how many bits are enough.
"""

from __future__ import annotations

from dataclasses import dataclass

from p4native.switch.errors import ProgramError
from p4native.switch.expression import (
    Arithmetic,
    BoolToData,
    ChooseData,
    Complement,
    Const,
    Data,
    FieldOf,
    Local,
    Lookahead,
    RegisterCell,
    StackCount,
)

MAX_BITS = 32768


@dataclass(frozen=True)
class Range:
    """The range of values from `low` to `high`, both included."""

    low: int
    high: int

    @property
    def unsigned64(self) -> bool:
        return self.low >= 0 and self.high < 1 << 64

    @property
    def signed64(self) -> bool:
        return self.low >= -(1 << 63) and self.high < 1 << 63

    @property
    def fits64(self) -> bool:
        return self.unsigned64 or self.signed64

    @property
    def limbs(self) -> int:
        """The number of 64-bit limbs that hold every value in two's complement."""
        bits = max(self.high.bit_length(), (-self.low - 1).bit_length() if self.low < 0 else 0)
        return (bits + 1 + 63) // 64

    def join(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


def of_bits(bits: int, signed: bool = False) -> Range:
    return Range(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else Range(0, (1 << bits) - 1)


@dataclass(frozen=True, eq=False)
class Text(Data):
    """A C expression that the translator itself made, with the range of its values."""

    text: str
    range: Range


class Ranges:
    """The ranges of expressions, each of which is computed once."""

    def __init__(self) -> None:
        self.known: dict[Data, Range] = {}

    def of(self, data: Data) -> Range:
        found = self.known.get(data)
        if found is None:
            found = self.known[data] = saturate(self.compute(data))
        return found

    def compute(self, data: Data) -> Range:
        if isinstance(data, Const):
            return Range(data.value, data.value)
        if isinstance(data, FieldOf):
            return of_bits(data.field.bits, data.field.signed) if data.field else Range(0, 1)
        if isinstance(data, Local | Lookahead):
            return of_bits(data.bits)
        if isinstance(data, RegisterCell):
            return of_bits(data.register.bits)
        if isinstance(data, Text):
            return data.range
        if isinstance(data, BoolToData):
            return Range(0, 1)
        if isinstance(data, StackCount):
            return of_bits(64)
        if isinstance(data, ChooseData):
            return self.of(data.yes).join(self.of(data.no))
        if isinstance(data, Complement):
            inner = self.of(data.value)
            return Range(-inner.high - 1, -inner.low - 1)
        assert isinstance(data, Arithmetic)
        return OPERATORS[data.op](self.of(data.left), self.of(data.right))


def saturate(found: Range) -> Range:
    """Returns the range, cut to a limit far beyond what `check_size` accepts. Without the cut, a
    hostile program could make the computation of ranges take very long."""
    most = 1 << 2 * MAX_BITS
    return Range(max(found.low, -most), min(found.high, most))


def check_size(data: Data, found: Range) -> Range:
    """Returns the range unchanged. Raises ProgramError if it contains values that no register or
    field could ever hold."""
    if found.limbs * 64 > MAX_BITS:
        raise ProgramError(data.path, f"has values of more than {MAX_BITS} bits; cut it with '&'")
    return found


def corners(left: Range, right: Range) -> Range:
    products = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    return Range(min(products), max(products))


def bits_of(*ranges: Range) -> int:
    """Returns the width in bits of the largest magnitude, without the sign."""
    return max(
        max(r.high.bit_length(), (-r.low - 1).bit_length() if r.low < 0 else 0) for r in ranges
    )


def bitwise(left: Range, right: Range) -> Range:
    bits = bits_of(left, right)
    low = 0 if left.low >= 0 and right.low >= 0 else -(1 << bits)
    return Range(low, (1 << bits) - 1)


def bit_and(left: Range, right: Range) -> Range:
    positive = [r.high for r in (left, right) if r.low >= 0]
    return Range(0, min(positive)) if positive else bitwise(left, right)


def amounts(right: Range) -> tuple[int, int]:
    """Returns the lowest and the highest amount of a shift. BMv2 uses the lowest 32 bits of the
    right operand."""
    if right.low >= 0 and right.high < 1 << 32:
        return right.low, right.high
    return 0, (1 << 32) - 1


def shift_left(left: Range, right: Range) -> Range:
    most = min(amounts(right)[1], MAX_BITS)
    return Range(min(left.low << most, left.low), max(left.high << most, left.high))


def shift_right(left: Range, right: Range) -> Range:
    least = min(amounts(right)[0], MAX_BITS)
    low = left.low >> least if left.low < 0 else 0
    return Range(low, left.high >> least if left.high >= 0 else -1)


def divide(left: Range, right: Range) -> Range:
    if left.low >= 0 and right.low >= 0:
        return Range(0, left.high)
    most = max(abs(left.low), abs(left.high))
    return Range(-most, most)


def modulo(left: Range, right: Range) -> Range:
    most = max(abs(right.low), abs(right.high), 1) - 1
    most = min(most, max(abs(left.low), abs(left.high)))
    return Range(0 if left.low >= 0 else -most, most if left.high > 0 else 0)


def clamp(left: Range, limits: Range) -> Range:
    low, high = max(left.low, limits.low), min(left.high, limits.high)
    return Range(min(low, limits.high), max(high, limits.low))


OPERATORS = {
    "+": lambda a, b: Range(a.low + b.low, a.high + b.high),
    "-": lambda a, b: Range(a.low - b.high, a.high - b.low),
    "*": corners,
    "/": divide,
    "%": modulo,
    "&": bit_and,
    "|": bitwise,
    "^": bitwise,
    "<<": shift_left,
    ">>": shift_right,
    "two_comp_mod": lambda a, w: of_bits(w.high, signed=True),
    "usat_cast": lambda a, w: clamp(a, of_bits(w.high)),
    "sat_cast": lambda a, w: clamp(a, of_bits(w.high, signed=True)),
}
