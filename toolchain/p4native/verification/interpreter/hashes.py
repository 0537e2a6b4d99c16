"""The algorithms of v1model's HashAlgorithm over bytes, as BMv2 computes them."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator, Mapping


def _words(data: bytes) -> Iterator[int]:
    """Returns the data as 16-bit numbers, with the first byte in the upper half of a number. For an
    odd length, the last byte is the upper half of the last number."""
    padded = data + bytes(len(data) % 2)
    return (int.from_bytes(padded[i : i + 2], "big") for i in range(0, len(padded), 2))


def csum16(data: bytes) -> int:
    """Returns the checksum of IP and UDP (RFC 1071)."""
    total = sum(_words(data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def xor16(data: bytes) -> int:
    """Returns the exclusive or of all words of 16 bits."""
    result = 0
    for word in _words(data):
        result ^= word
    return result


def crc16(data: bytes) -> int:
    """Returns CRC-16/ARC: polynomial 0x8005 with reflected bits."""
    remainder = 0
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            odd, remainder = remainder & 1, remainder >> 1
            remainder ^= 0xA001 * odd
    return remainder


def identity(data: bytes) -> int:
    """Returns the first eight bytes as a number."""
    return int.from_bytes(data[:8], "big")


ALGORITHMS: Mapping[str, Callable[[bytes], int]] = {
    "csum16": csum16,
    "xor16": xor16,
    "crc16": crc16,
    "crc16_custom": crc16,
    "crc32": binascii.crc32,
    "crc32_custom": binascii.crc32,
    "identity": identity,
}
"""The algorithms by name. The custom CRCs start with the parameters of the usual ones."""
