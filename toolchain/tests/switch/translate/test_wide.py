"""Wide words: lane-wise addition in its fast form and near it, registers, bitwise operations."""

from __future__ import annotations

import random
from typing import Any

import pytest
from switch_builder import Builder, call, extract, field, hexstr, op, ref, transition

from p4native.switch import Detail, Pipeline, Program
from p4native.switch.translate import translate

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


def written_plainly(bits: int, lane: int) -> Any:
    return written(bits, *masks(bits, lane), False, False)


def program(bits: int, value: Any, steps: list[Any] | None = None) -> str:
    """in.a becomes `value`, which a register of the same width then holds too; or the steps do
    something else."""
    builder = Builder()
    padding = -2 * bits % 8
    fields = [["a", bits], ["b", bits]] + ([["pad", padding]] if padding else [])
    builder.packet_header("in", fields)
    builder.register("kept", bits, 3)
    builder.state("start", [extract("in")], [], [transition(None, 0, None)])
    steps = steps or [assigned(value), kept(hexstr(2))]
    builder.run("t", builder.action("a", steps))
    return builder.json()


def assigned(value: Any) -> Any:
    return call("assign", A, {"type": "expression", "value": value})


def kept(index: Any, value: Any = A) -> Any:
    return call("register_write", ref("register_array", "kept"), index, value)


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
    [
        (2048, 32, False, True),
        (128, 8, True, False),
        (96, 16, True, True),
        (192, 64, False, False),
        (352, 16, False, True),
        (328, 8, False, False),
        (480, 32, True, True),
        (576, 64, True, False),
    ],
)
def test_lane_addition_is_recognised(bits: int, lane: int, swapped: bool, cut: bool) -> None:
    low, top = masks(bits, lane)
    value = written(bits, low, top, swapped, cut)
    text = check(bits, value, lambda a, b: lane_sum(a, b, bits, lane))
    assert f"lanes_add_{lane}(" in text
    assert "copy_wide" not in text


def after(steps: list[Any], a: int, b: int) -> tuple[int, list[int], str]:
    """What steps with 128 bits leave in in.a and in the three cells of the register; the C text."""
    parsed = Program.parse(program(128, None, steps))
    with Pipeline.of(parsed) as pipeline:
        [(_, out)] = pipeline.process(1, (a << 128 | b).to_bytes(32, "big"))
        cells = [int(pipeline.registers.read("kept", index)) for index in range(3)]
    return int.from_bytes(out[:16], "big"), cells, translate(parsed)


SUM = assigned(written_plainly(128, 32))


def test_a_sum_for_a_cell_outside_the_register_stays_in_its_field() -> None:
    assert after([SUM, kept(hexstr(3))], 5, 6)[:2] == (11, [0, 0, 0])


def test_a_sum_may_be_the_index_of_its_own_cell() -> None:
    """The index is what the field is after the sum, so the two are translated one by one."""
    assert after([SUM, kept(A)], 1, 1)[:2] == (2, [0, 0, 2])


def test_another_field_than_the_sum_may_be_written_after_it() -> None:
    assert after([SUM, kept(hexstr(1), B)], 5, 6)[:2] == (11, [0, 6, 0])


def test_a_jump_may_lead_between_a_sum_and_its_register() -> None:
    steps = [call("_jump_if_zero", B, hexstr(2)), SUM, kept(hexstr(0))]
    assert after(steps, 5, 6)[:2] == (11, [11, 0, 0])
    assert after(steps, 5, 0)[:2] == (5, [5, 0, 0])


def test_sums_are_traced_one_by_one() -> None:
    parsed = Program.parse(program(128, None, [SUM, kept(hexstr(1))]))
    with Pipeline.of(parsed, detail=Detail.TRACE) as pipeline:
        pipeline.process(1, (5 << 128 | 6).to_bytes(32, "big"))
        text = "".join(pipeline.take_messages())
    assert "register kept[1]" in text
    assert "written: " in text


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
