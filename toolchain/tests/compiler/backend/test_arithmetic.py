"""Fixed-width arithmetic on BMv2's integers: every result in range, and equal to P4's."""

from __future__ import annotations

import pytest
from bmv2_arithmetic import evaluate
from hypothesis import given, settings
from hypothesis import strategies as st

from p4native.compiler import types
from p4native.compiler.backend import arithmetic, ir
from p4native.compiler.backend.ranges import width_range

WIDTHS = st.sampled_from([1, 2, 3, 7, 8, 9, 16, 31, 32, 33, 48, 64, 65, 128, 257])
PLAIN = {
    "+": lambda a, b, w: a + b,
    "-": lambda a, b, w: a - b,
    "*": lambda a, b, w: a * b,
    "&": lambda a, b, w: a & b,
    "|": lambda a, b, w: a | b,
    "^": lambda a, b, w: a ^ b,
}


def to_type(value: int, width: int, signed: bool) -> int:
    """The value of width bits congruent to value, as P4 reads it."""
    value %= 1 << width
    return value - (1 << width) if signed and value >> (width - 1) else value


@st.composite
def typed_pair(draw: st.DrawFn) -> tuple[types.Bits, int, int]:
    width = draw(WIDTHS)
    signed = draw(st.booleans()) and width > 1
    low, high = width_range(width, signed)
    numbers = st.one_of(st.integers(low, high), st.sampled_from([low, high, 0]))
    return types.Bits(width, signed), draw(numbers), draw(numbers)


def field(name: str, shape: types.Bits) -> ir.FieldRef:
    return ir.FieldRef("h", name, shape.width, shape.signed)


def within(expr: ir.Expr, value: int) -> bool:
    low, high = expr.range
    return (low is None or low <= value) and (high is None or value <= high)


@settings(deadline=None)
@given(typed_pair(), st.sampled_from(sorted(PLAIN)), st.sampled_from(["field", "constant"]))
def test_operators_wrap_to_the_type(
    pair: tuple[types.Bits, int, int], operator: str, right_as: str
) -> None:
    shape, a, b = pair
    right = field("b", shape) if right_as == "field" else ir.Const(b, shape.width)
    expr = arithmetic.binary(operator, field("a", shape), right, shape)
    got = evaluate(expr, {"a": a, "b": b})
    assert got == to_type(PLAIN[operator](a, b, shape.width), shape.width, shape.signed)
    assert within(expr, got)


@settings(deadline=None)
@given(typed_pair(), st.sampled_from(["+", "*", "-"]), st.sampled_from(["+", "-", "^"]))
def test_nested_operators(pair: tuple[types.Bits, int, int], inner: str, outer: str) -> None:
    shape, a, b = pair
    first = arithmetic.binary(inner, field("a", shape), field("b", shape), shape)
    expr = arithmetic.binary(outer, first, field("a", shape), shape)
    step = to_type(PLAIN[inner](a, b, 0), shape.width, shape.signed)
    expected = to_type(PLAIN[outer](step, a, 0), shape.width, shape.signed)
    assert evaluate(expr, {"a": a, "b": b}) == expected


@settings(deadline=None)
@given(typed_pair(), st.sampled_from(["<<", ">>"]), st.integers(0, 300), st.booleans())
def test_shifts(
    pair: tuple[types.Bits, int, int], operator: str, count: int, constant: bool
) -> None:
    shape, a, _ = pair
    right = ir.Const(count, 16) if constant else ir.FieldRef("h", "n", 32)
    expr = arithmetic.binary(operator, field("a", shape), right, shape)
    shifted = a << count if operator == "<<" else a >> count
    expected = to_type(shifted, shape.width, shape.signed)
    assert evaluate(expr, {"a": a, "n": count}) == expected


def test_a_huge_shift_count_is_never_given_to_bmv2() -> None:
    """BMv2 would allocate 2^32 bits."""
    shape = types.Bits(8)
    expr = arithmetic.binary("<<", field("a", shape), ir.FieldRef("h", "n", 32), shape)
    assert isinstance(expr, ir.Op)
    assert expr.op == "?"
    assert evaluate(expr, {"a": 255, "n": 1 << 31}) == 0


@settings(deadline=None)
@given(typed_pair(), st.sampled_from(["|+|", "|-|"]))
def test_saturation(pair: tuple[types.Bits, int, int], operator: str) -> None:
    shape, a, b = pair
    expr = arithmetic.binary(operator, field("a", shape), field("b", shape), shape)
    low, high = width_range(shape.width, shape.signed)
    exact = a + b if operator == "|+|" else a - b
    assert evaluate(expr, {"a": a, "b": b}) == max(low, min(high, exact))


@settings(deadline=None)
@given(typed_pair(), st.sampled_from(["-", "~", "+"]))
def test_unary(pair: tuple[types.Bits, int, int], operator: str) -> None:
    shape, a, _ = pair
    expr = arithmetic.unary(operator, field("a", shape), shape)
    exact = {"-": -a, "~": ~a, "+": a}[operator]
    assert evaluate(expr, {"a": a}) == to_type(exact, shape.width, shape.signed)


@settings(deadline=None)
@given(typed_pair(), typed_pair())
def test_concatenation(
    left: tuple[types.Bits, int, int], right: tuple[types.Bits, int, int]
) -> None:
    (high, a, _), (low, _, b) = left, right
    expr = arithmetic.concatenate(field("a", high), high.width, field("b", low), low.width)
    expected = a % (1 << high.width) << low.width | b % (1 << low.width)
    assert evaluate(expr, {"a": a, "b": b}) == expected


@settings(deadline=None)
@given(st.data(), WIDTHS)
def test_slices_on_both_sides(data: st.DataObject, width: int) -> None:
    shape = types.Bits(width)
    whole = data.draw(st.integers(0, (1 << width) - 1))
    low = data.draw(st.integers(0, width - 1))
    high = data.draw(st.integers(low, width - 1))
    part = data.draw(st.integers(0, (1 << (high - low + 1)) - 1))
    bits = f"{whole:0{width}b}"
    read = arithmetic.slice_bits(field("a", shape), high, low)
    assert evaluate(read, {"a": whole}) == int(bits[width - 1 - high : width - low], 2)
    part_field = ir.FieldRef("h", "p", high - low + 1)
    written = arithmetic.replace_bits(field("a", shape), width, high, low, part_field)
    text = bits[: width - 1 - high] + f"{part:0{high - low + 1}b}" + bits[width - low :]
    assert evaluate(written, {"a": whole, "p": part}) == int(text, 2)


@settings(deadline=None)
@given(typed_pair(), WIDTHS, st.booleans())
def test_casts(pair: tuple[types.Bits, int, int], width: int, signed: bool) -> None:
    source, a, _ = pair
    target = types.Bits(width, signed and width > 1)
    expr = arithmetic.convert(field("a", source), source, target)
    assert evaluate(expr, {"a": a}) == to_type(a, target.width, target.signed)


@pytest.mark.parametrize("value", [0, 1])
def test_booleans_and_bits(value: int) -> None:
    bit = types.Bits(1)
    as_bool = arithmetic.convert(field("a", bit), bit, types.BOOLEAN)
    assert evaluate(as_bool, {"a": value}) is bool(value)
    back = arithmetic.convert(as_bool, types.BOOLEAN, types.Bits(8))
    assert evaluate(back, {"a": value}) == value


def test_no_mask_where_nothing_can_overflow() -> None:
    """The lane-wise addition of wide words: clearing the lanes' top bits leaves room to add."""
    shape = types.Bits(2048)
    lows = ir.Const(int("7fffffff" * 64, 16), 2048)
    a = arithmetic.binary("&", field("a", shape), lows, shape)
    b = arithmetic.binary("&", field("b", shape), lows, shape)
    assert arithmetic.binary("+", a, b, shape) == ir.Op("+", a, b)


def test_stores_need_no_outer_mask() -> None:
    shape = types.Bits(8)
    total = arithmetic.binary("+", field("a", shape), field("b", shape), shape)
    assert arithmetic.unwrap(total, 8) == ir.Op("+", field("a", shape), field("b", shape))
    assert arithmetic.unwrap(total, 16) == total
