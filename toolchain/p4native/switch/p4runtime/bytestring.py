"""Converts P4Runtime's binary strings, which are big endian. The server sends the shortest form. It
accepts strings of any length if the value fits."""

from __future__ import annotations

from p4native.switch.p4runtime.status import invalid

SHOWN_BYTES = 64
"""The largest number of bytes of a value that an error shows. There is a limit because the error's
text travels as a header of the answer."""


def decode(value: bytes, bits: int, what: str) -> int:
    """Returns the unsigned integer that a binary string holds. Refuses a value that is empty or
    wider than `bits`. what: the name of the field for the error message."""
    if not value:
        raise invalid(f"{what}: the value is empty; {bits} bits are expected")
    number = int.from_bytes(value, "big")
    if number.bit_length() > bits:
        raise invalid(f"{what}: {_shown(value)} does not fit {bits} bits")
    return number


def encode(number: int) -> bytes:
    """Returns the shortest string for a number. Zero takes one byte."""
    return number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big")


def decode_signed(value: bytes, bits: int, what: str) -> int:
    """Returns the register content for a signed value, which is given in two's complement. The
    content is an unsigned number of `bits` bits."""
    if not value:
        raise invalid(f"{what}: the value is empty; {bits} bits are expected")
    number = int.from_bytes(value, "big", signed=True)
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise invalid(f"{what}: {_shown(value)} does not fit {bits} signed bits")
    return number & ((1 << bits) - 1)


def encode_signed(content: int, bits: int) -> bytes:
    """Returns the shortest two's complement string for a register content, which is an unsigned
    number of `bits` bits."""
    number = content - (1 << bits) if content >> (bits - 1) else content
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _shown(value: bytes) -> str:
    cut = f"... ({len(value)} bytes)" if len(value) > SHOWN_BYTES else ""
    return f"0x{value[:SHOWN_BYTES].hex()}{cut}"
