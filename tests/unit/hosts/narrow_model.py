"""docs/numbers.md, "Fewer bits on the wire", in whole numbers: nothing is shared with `hosts` or
with the P4 program. A unit is twice as wide as a value."""

from __future__ import annotations

from collections.abc import Sequence

WORD_LANES = 64


def values_of(lanes: int, bits: int) -> int:
    """Values in a packet."""
    return lanes * 32 // (2 * bits)


def groups(lanes: int, bits: int) -> list[int]:
    """The number of values of each of a packet's words."""
    words = [min(WORD_LANES, lanes - first) for first in range(0, lanes, WORD_LANES)]
    return [values_of(word, bits) for word in words]


def contribution(integers: Sequence[int], lanes: int, bits: int) -> bytes:
    """The body of a packet: values that are missing at the end are 0 on the wire."""
    zero = 2 ** (bits - 1)
    missing = values_of(lanes, bits) - len(integers)
    fields = [value + zero for value in integers] + [0] * missing
    body = b""
    for values in groups(lanes, bits):
        word, fields = fields[:values], fields[values:]
        pairs = zip(word[: values // 2], word[values // 2 :], strict=True)
        body += b"".join((up << bits | low).to_bytes(bits // 4, "big") for up, low in pairs)
    return body


def summed(bodies: Sequence[bytes], lanes: int, bits: int) -> bytes:
    """The body of the result, as a switch has to make it of contributions."""
    totals = [0] * values_of(lanes, bits)
    for body in bodies:
        for index, field in enumerate(_fields(body, lanes, bits)):
            totals[index] += field
    return b"".join(total.to_bytes(bits // 4, "big") for total in totals)


def _fields(body: bytes, lanes: int, bits: int) -> list[int]:
    found: list[int] = []
    size, at = bits // 4, 0
    for values in groups(lanes, bits):
        units = [
            int.from_bytes(body[at + size * i : at + size * (i + 1)], "big")
            for i in range(values // 2)
        ]
        found += [unit >> bits for unit in units] + [unit & (1 << bits) - 1 for unit in units]
        at += size * (values // 2)
    assert at == len(body)
    return found
