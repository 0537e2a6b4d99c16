"""The hash functions of v1model's `hash`, by which a host computes the same places as a P4 program.
If the program calls `hash(place, HashAlgorithm.crc32, base, { a, b }, limit)`, the place is
`hash_place("crc32", [(a, 16), (b, 16)], base, limit)`, where `a` and `b` have 16 bits. This module
imports nothing of `hosts`."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Mapping

CRC16_REFLECTED = 0xA001


def hash_place(
    algorithm: str, fields: Iterable[tuple[int, int]], base: int = 0, limit: int = 1 << 32
) -> int:
    """Returns the number that `hash` computes: base + H mod limit, where H is the hash of the
    fields. The P4 program may then cut this number to the width of its variable.

    algorithm: one of ALGORITHMS. fields: (value, bits) of each field or constant, in order, with
    the values that the program sees. The headers of all fields must be valid. Raises KeyError for
    another algorithm.
    """
    return base + ALGORITHMS[algorithm](packed(fields)) % max(1, limit)


def packed(fields: Iterable[tuple[int, int]]) -> bytes:
    """Returns the bits of all fields one after the other, with zeros up to the end of the last
    byte."""
    bits, value = 0, 0
    for field, width in fields:
        value, bits = value << width | field & (1 << width) - 1, bits + width
    size = -(-bits // 8)
    return (value << 8 * size - bits).to_bytes(size, "big")


def crc16(data: bytes) -> int:
    """Returns the CRC-16/ARC of the data."""
    remainder = 0
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (CRC16_REFLECTED if remainder & 1 else 0)
    return remainder


def csum16(data: bytes) -> int:
    """Returns the checksum of RFC 1071. An odd last byte is the high half of a word."""
    even = data + bytes(len(data) % 2)
    total = sum(int.from_bytes(even[at : at + 2], "big") for at in range(0, len(even), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def xor16(data: bytes) -> int:
    """Returns the exclusive or of all 16-bit words. An odd last byte is the high half of a word."""
    even, total = data + bytes(len(data) % 2), 0
    for at in range(0, len(even), 2):
        total ^= int.from_bytes(even[at : at + 2], "big")
    return total


def identity(data: bytes) -> int:
    """Returns the first eight bytes as a big-endian number."""
    return int.from_bytes(data[:8], "big")


ALGORITHMS: Mapping[str, Callable[[bytes], int]] = {
    "crc32": binascii.crc32,
    "crc16": crc16,
    "csum16": csum16,
    "xor16": xor16,
    "identity": identity,
}
"""The algorithms, by their names in v1model's HashAlgorithm."""
