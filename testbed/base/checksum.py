"""The checksum of IPv4, UDP and ICMP (RFC 1071): 16-bit words in ones' complement."""

from __future__ import annotations

ONES = 0xFFFF
"""One's complement sums are sums modulo this number."""


def word_sum(data: bytes) -> int:
    """Returns the one's complement sum of big-endian words; a last odd byte is the upper half of a
    word."""
    value = int.from_bytes(data, "big")
    return (value << 8 if len(data) & 1 else value) % ONES


def is_zero_sum(data: bytes) -> bool:
    """Returns whether the data, which contains its own checksum, has the checksum that it should
    have."""
    return word_sum(data) == 0
