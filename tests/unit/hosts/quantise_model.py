"""docs/protocol.md, "Integers and floats", in exact fractions: nothing is shared with `hosts`."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

FLOAT32_MAX = Fraction(2**24 - 1) * Fraction(2) ** 104


def exponent_field(value: float) -> int:
    """Bits 23 to 30 of a float32."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return bits >> 23 & 0xFF


def chunk_exponent(values: list[float]) -> int:
    return max((exponent_field(value) for value in values), default=0)


def bits_of(workers: int) -> int:
    return 31 - math.ceil(math.log2(workers))


def scale(exponent: int, workers: int) -> Fraction:
    return Fraction(2) ** (bits_of(workers) - (max(exponent, 1) - 126))


def quantise(value: float, exponent: int, workers: int) -> int:
    """rint(value * scale), clamped; Python's round of a Fraction is half to even."""
    if exponent == 255:
        return 0
    limit = 2 ** bits_of(workers) - 1
    return max(-limit, min(limit, round(Fraction(value) * scale(exponent, workers))))


def to_float32(exact: Fraction) -> float:
    """The nearest float32, half to even; Inf beyond the range."""
    if exact == 0:
        return 0.0
    magnitude = abs(exact)
    at_most = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    power = max(-149, at_most - 24)  # at most one too small, and never too large
    while magnitude >= Fraction(2) ** (power + 24):
        power += 1
    rounded = round(magnitude / Fraction(2) ** power) * Fraction(2) ** power
    sign = 1 if exact > 0 else -1
    return sign * (math.inf if rounded > FLOAT32_MAX else float(rounded))


def dequantise(total: int, exponent: int, workers: int) -> float:
    return to_float32(total / scale(exponent, workers))
