"""The hashes of v1model's `hash`, so that a host finds the place that a P4 program will find: with
`hash(place, HashAlgorithm.crc32, base, { a, b }, limit)` in the program,
`hash_place("crc32", [(a, 16), (b, 16)], base, limit)` is that place. Imports nothing of `hosts`.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Mapping

CRC16_REFLECTED = 0xA001


def hash_place(
    algorithm: str, fields: Iterable[tuple[int, int]], base: int = 0, limit: int = 1 << 32
) -> int:
    """Returns the result of `hash`: base + H mod limit, before it is cut to the width of its
    target.

    algorithm: one of ALGORITHMS. fields: (value, bits) of each field or constant, in order; of
    headers that are valid, as the program sees them. KeyError for another algorithm.
    """
    return base + ALGORITHMS[algorithm](packed(fields)) % max(1, limit)


def packed(fields: Iterable[tuple[int, int]]) -> bytes:
    """The bits of all fields one after the other, and zeros to the end of the last byte."""
    bits, value = 0, 0
    for field, width in fields:
        value, bits = value << width | field & (1 << width) - 1, bits + width
    size = -(-bits // 8)
    return (value << 8 * size - bits).to_bytes(size, "big")


def crc16(data: bytes) -> int:
    """CRC-16/ARC."""
    remainder = 0
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (CRC16_REFLECTED if remainder & 1 else 0)
    return remainder


def csum16(data: bytes) -> int:
    """The checksum of RFC 1071; an odd last byte is the high half of a word."""
    even = data + bytes(len(data) % 2)
    total = sum(int.from_bytes(even[at : at + 2], "big") for at in range(0, len(even), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def xor16(data: bytes) -> int:
    """All words together; an odd last byte is the high half of a word."""
    even, total = data + bytes(len(data) % 2), 0
    for at in range(0, len(even), 2):
        total ^= int.from_bytes(even[at : at + 2], "big")
    return total


def identity(data: bytes) -> int:
    """The first eight bytes as a number."""
    return int.from_bytes(data[:8], "big")


ALGORITHMS: Mapping[str, Callable[[bytes], int]] = {
    "crc32": binascii.crc32,
    "crc16": crc16,
    "csum16": csum16,
    "xor16": xor16,
    "identity": identity,
}
"""The algorithms, by their names in v1model's HashAlgorithm."""
