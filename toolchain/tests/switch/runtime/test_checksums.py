"""Checksums over any mixture of fields, headers, constants and payload equal RFC 1071's."""

from __future__ import annotations

import random
from typing import Any

import pytest
from switch_builder import Builder, call, extract, field, hexstr, ref, transition

from p4native.switch import Pipeline, Program


def rfc1071(data: bytes) -> int:
    """The one's complement of the one's complement sum of 16-bit words."""
    data += bytes(len(data) % 2)
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


ALWAYS = [["a", 8], ["b", 16], ["n", 4], ["m", 12], ["wide", 264], ["long", 1032], ["c", 24]]
SOMETIMES = [["d", 8], ["e", 64], ["f", 72], ["g", 3], ["h", 13]]


def program(inputs: list[Any]) -> str:
    """`flag` tells whether the header `maybe` is there; the checksum goes to `out.sum`."""
    b = Builder(x=8)
    b.packet_header("out", [["flag", 8], ["sum", 16]])
    b.packet_header("always", ALWAYS, deparse=False)
    b.packet_header("maybe", SOMETIMES, deparse=False)
    b.state(
        "start",
        [extract("out"), extract("always")],
        [field("out", "flag")],
        [transition(1, 1, "more"), transition(None, 0, None)],
    )
    b.state("more", [extract("maybe")], [], [transition(None, 0, None)])
    b.add("calculations", name="calc", algo="csum16", input=inputs)
    target = field("out", "sum")
    steps = call(
        "modify_field_with_hash_based_offset",
        target,
        hexstr(0),
        ref("calculation", "calc"),
        hexstr(0x10000),
    )
    b.run("t", b.action("act", [steps]))
    return b.json()


def constant(bits: int, value: int) -> Any:
    return {"type": "hexstr", "value": hex(value), "bitwidth": bits}


INPUTS = {
    "aligned": [field("always", n) for n in ("b", "wide", "c", "a", "long")],
    "odd places": [field("always", "a"), field("always", "wide"), field("always", "b")],
    "a header that may be missing": [
        *(constant(8, 0), field("maybe", "d"), field("always", "b"), field("maybe", "e")),
        *(field("always", "long"), field("maybe", "f"), field("always", "c")),
    ],
    "parts of bytes": [*(field("maybe", "g"), field("maybe", "h")), field("always", "wide")],
    "whole headers": [ref("header", "maybe"), ref("header", "always"), constant(16, 0xFFFF)],
    "everything with the payload": [
        *(ref("header", "maybe"), field("always", "a"), field("always", "n")),
        *(field("always", "m"), {"type": "payload"}),
    ],
    "a long constant": [constant(520, (1 << 519) + 12345), field("always", "a"), constant(8, 7)],
}


def value_of(item: Any, frame: bytes) -> bytes | None:
    """The bytes of one input (as a string of bits), None where the header is missing."""
    kind = item["type"]
    present = frame[0] == 1
    if kind == "hexstr":
        return f"{int(item['value'], 16):0{item['bitwidth']}b}".encode()
    start = 3
    layouts = {
        "always": (start, ALWAYS),
        "maybe": (start + sum(b for _, b in ALWAYS) // 8, SOMETIMES),
    }
    if kind == "payload":
        start = layouts["maybe"][0] + (sum(b for _, b in SOMETIMES) // 8 if present else 0)
        return "".join(f"{byte:08b}" for byte in frame[start:]).encode()
    header, name = item["value"] if kind == "field" else (item["value"], None)
    if header == "maybe" and not present:
        return None
    at, fields = layouts[header]
    bits = "".join(f"{byte:08b}" for byte in frame[at : at + sum(b for _, b in fields) // 8])
    if name is None:
        return bits.encode()
    offset = sum(b for _, b in fields[: [n for n, _ in fields].index(name)])
    return bits[offset : offset + dict(fields)[name]].encode()


@pytest.mark.parametrize("inputs", INPUTS.values(), ids=INPUTS.keys())
def test_a_checksum_is_that_of_its_inputs_side_by_side(inputs: list[Any]) -> None:
    rng = random.Random(7)
    with Pipeline.of(Program.parse(program(inputs))) as p:
        for length in (0, 1, 63, 64, 65, 200):
            for fill in (None, 0, 0xFF):
                for flag in (0, 1):
                    body = bytes(
                        rng.randrange(256) if fill is None else fill for _ in range(190 + length)
                    )
                    frame = bytes([flag, 0, 0]) + body
                    parts = [v for i in inputs if (v := value_of(i, frame)) is not None]
                    bits = b"".join(parts).decode()
                    data = int(bits or "0", 2).to_bytes(len(bits) // 8, "big") if bits else b""
                    ((_, out),) = p.process(0, frame)
                    assert int.from_bytes(out[1:3], "big") == rfc1071(data), (length, fill, flag)
