"""Wide words: lane-wise addition in its fast form and near it, registers, bitwise operations."""

from __future__ import annotations

import random
from typing import Any

import pytest
from switch_builder import Builder, call, extract, field, hexstr, op, ref, transition

from agglab.switch import Pipeline, Program
from agglab.switch.translate import translate

A, B = field("in", "a"), field("in", "b")


def masks(bits: int, lane: int) -> tuple[int, int]:
    """(all bits of a lane but its top one, the top one) in every lane."""
    low = sum(((1 << lane - 1) - 1) << at for at in range(0, bits, lane))
    return low, ((1 << bits) - 1) ^ low


def lane_sum(a: int, b: int, bits: int, lane: int) -> int:
    """The definition: every lane by itself, modulo 2^lane."""
    ones = (1 << lane) - 1
    return sum(((a >> at & ones) + (b >> at & ones) & ones) << at for at in range(0, bits, lane))


def written(bits: int, low: int, top: int, swapped: bool, cut: bool) -> Any:
    """The expression as a compiler writes it."""
    added = op("+", op("&", A, hexstr(low)), op("&", hexstr(low), B))
    if cut:
        added = op("&", added, hexstr((1 << bits) - 1))
    carried = op("&", op("^", B, A) if swapped else op("^", A, B), hexstr(top))
    return op("^", carried, added) if swapped else op("^", added, carried)


def program(bits: int, value: Any) -> str:
    """in.a becomes `value`, which a register of the same width then holds too."""
    builder = Builder()
    padding = -2 * bits % 8
    fields = [["a", bits], ["b", bits]] + ([["pad", padding]] if padding else [])
    builder.packet_header("in", fields)
    builder.register("kept", bits, 3)
    builder.state("start", [extract("in")], [], [transition(None, 0, None)])
    steps = [
        call("assign", A, {"type": "expression", "value": value}),
        call("register_write", ref("register_array", "kept"), hexstr(2), A),
    ]
    builder.run("t", builder.action("a", steps))
    return builder.json()


def check(bits: int, value: Any, expected: Any) -> str:
    """Run edge and random operands; returns the C text."""
    parsed = Program.parse(program(bits, value))
    padding = -2 * bits % 8
    rng = random.Random(bits)
    ones = (1 << bits) - 1
    pairs = [(0, 0), (ones, 1), (ones, ones), (1 << bits - 1, 1 << bits - 1)]
    pairs += [(rng.getrandbits(bits), rng.getrandbits(bits)) for _ in range(20)]
    with Pipeline.of(parsed) as pipeline:
        for a, b in pairs:
            number = (a << bits | b) << padding
            frame = number.to_bytes((2 * bits + padding) // 8, "big")
            [(_, out)] = pipeline.process(1, frame)
            want = expected(a, b) % (1 << bits)
            assert int.from_bytes(out, "big") == (want << bits | b) << padding
            assert pipeline.registers.read("kept", 2) == want
    return translate(parsed)


@pytest.mark.parametrize(
    ("bits", "lane", "swapped", "cut"),
    [(2048, 32, False, True), (128, 8, True, False), (96, 16, True, True), (192, 64, False, False)],
)
def test_lane_addition_is_recognised(bits: int, lane: int, swapped: bool, cut: bool) -> None:
    low, top = masks(bits, lane)
    value = written(bits, low, top, swapped, cut)
    text = check(bits, value, lambda a, b: lane_sum(a, b, bits, lane))
    assert f"lanes_add_{lane}(" in text


def test_addition_with_other_masks_is_computed_as_written() -> None:
    """One bit of a mask differs: not lanes, and still right."""
    low, top = masks(128, 32)
    low ^= 1 << 40
    value = written(128, low, top, False, False)
    text = check(128, value, lambda a, b: ((a & low) + (b & low)) ^ ((a ^ b) & top))
    assert "lanes_add" not in text


@pytest.mark.parametrize("bits", [65, 100, 129])
def test_bitwise_operations_of_widths_that_are_not_bytes(bits: int) -> None:
    constant = random.Random(bits).getrandbits(bits)
    value = op("^", op("&", op("~", None, A), B), op("|", A, hexstr(constant)))
    check(bits, value, lambda a, b: (~a & b) ^ (a | constant))


@pytest.mark.parametrize("bits", [64, 65, 2048])
def test_carries_go_through_the_whole_word(bits: int) -> None:
    check(bits, op("-", op("+", A, B), hexstr(1)), lambda a, b: a + b - 1)
