"""Hashes by their published check values; stacks of wide headers; headers of variable length."""

from __future__ import annotations

from typing import Any

import pytest
from switch_builder import Builder, call, extract, field, hexstr, op, ref, transition
from switch_interpreter import Interpreter
from switch_sanitized import Sanitized

from p4native.switch import Pipeline, Program

CHECKS = {
    # algorithm: result on b"123456789" (catalogue of parametrised CRC algorithms; RFC 1071)
    "crc32": 0xCBF43926,
    "crc32_custom": 0xCBF43926,
    "crc16": 0xBB3D,
    "crc16_custom": 0xBB3D,
    "crcCCITT": 0x29B1,
    "crc8_custom": 0xF4,
    "csum16": 0xF62A,
    "cksum16": 0xF62A,
    "xor16": 0x3908,
    "identity": int.from_bytes(b"12345678", "big"),
}


def hash_program(algorithm: str) -> Pipeline:
    """h.out becomes the hash of the nine bytes h.data."""
    b = Builder()
    b.packet_header("h", [["data", 72], ["out", 64]])
    b.state("start", [extract("h")], [], [transition(None, 0, None)])
    b.add("calculations", name="sum", algo=algorithm, input=[field("h", "data")])
    size = hexstr((1 << 64) - 1)
    calculation = ref("calculation", "sum")
    target = field("h", "out")
    step = call("modify_field_with_hash_based_offset", target, hexstr(0), calculation, size)
    b.run("t", b.action("a", [step]))
    return Pipeline.of(Program.parse(b.json()))


@pytest.mark.parametrize("algorithm", CHECKS)
def test_hashes_have_their_published_check_values(algorithm: str) -> None:
    [(_, frame)] = hash_program(algorithm).process(0, b"123456789" + bytes(8))
    assert int.from_bytes(frame[9:], "big") == CHECKS[algorithm]


def test_xor32_pads_its_last_word() -> None:
    words = (b"1234", b"5678", b"9\0\0\0")
    expected = 0
    for word in words:
        expected ^= int.from_bytes(word, "big")
    [(_, frame)] = hash_program("xor32").process(0, b"123456789" + bytes(8))
    assert int.from_bytes(frame[9:], "big") == expected


def stack_program(*steps: Any) -> Builder:
    """Elements of a byte (lowest bit: another follows) and a 100-bit word that is no byte."""
    b = Builder(a=8)
    b.header_type("e_t", [["more", 8], ["word", 100], ["pad", 4]])
    b.stack("s", "e_t", 3)
    key = [{"type": "stack_field", "value": ["s", "more"]}]
    branches = [transition(1, 1, "start", 1), transition(None, 0, None)]
    b.state("start", [call("extract", ref("stack", "s"))], key, branches)
    b.run("t", b.action("a", list(steps)))
    return b


STACK = ref("header_stack", "s")
CHANGE = call(
    "assign",
    field("s[0]", "word"),
    {"type": "expression", "value": op("+", field("s[1]", "word"), hexstr(3))},
)
SHIFTS = {
    "push": [call("push", STACK, hexstr(1))],
    "pop": [call("pop", STACK, hexstr(1))],
    "change then push": [CHANGE, call("push", STACK, hexstr(1)), CHANGE],
    "change then pop": [CHANGE, call("pop", STACK, hexstr(2)), CHANGE],
    "out and in again": [
        CHANGE,
        call("push", STACK, hexstr(2)),
        call("pop", STACK, hexstr(2)),
        CHANGE,
    ],
    "more than there are": [call("push", STACK, hexstr(9)), call("pop", STACK, hexstr(9))],
}


@pytest.mark.parametrize("name", SHIFTS)
def test_stacks_of_wide_headers_move_as_in_the_interpreter(name: str) -> None:
    b = stack_program(*SHIFTS[name])
    native, model = Sanitized(b.json()), Interpreter(b.document)
    element = [bytes([n & 1]) + bytes(range(n, n + 13)) for n in (1, 33, 64)]
    frames = [b"".join(element)[:length] + b"!" for length in range(44)]
    for frame in frames:
        native.process(0, frame)
    for frame, copies in zip(frames, native.finish(), strict=True):
        assert copies == model.process(0, frame), frame.hex()


def test_headers_of_variable_length_at_every_length() -> None:
    """n bytes follow, 11 at most; the error goes out in the last byte of what is left."""
    b = Builder()
    b.packet_header("v", [["n", 8], ["data", "*"], ["end", 8]], max_length=13)
    b.packet_header("error", [["code", 8]])
    bits = {"type": "expression", "value": op("*", field("v", "n"), hexstr(8))}
    look = {"op": "set", "parameters": [field("v", "n"), ref("lookahead", [0, 8])]}  # type: ignore[arg-type]
    b.state("start", [look, call("extract_VL", ref("regular", "v"), bits)])
    code = field("standard_metadata", "parser_error")
    steps = [
        call("add_header", ref("header", "error")),
        call("assign", field("error", "code"), code),
    ]
    b.run("t", b.action("a", steps))
    native, model = Sanitized(b.json()), Interpreter(b.document)
    frames = [
        bytes([n]) + bytes(range(length)) for n in (0, 1, 5, 11, 12, 255) for length in range(20)
    ]
    for frame in frames:
        native.process(0, frame)
    codes = set()
    for frame, copies in zip(frames, native.finish(), strict=True):
        assert copies == model.process(0, frame), frame.hex()
        codes.add(model.last_error)
    assert {b.document["errors"][code][0] for code in codes} == {
        "NoError",
        "PacketTooShort",
        "HeaderTooShort",
    }
