"""Compile-time values against arithmetic done here by other means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Check = Callable[[str], Any]
fast = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def bits(value: int, width: int) -> int:
    """value as unsigned number of width bits, by text rather than by masks."""
    return int(format(value % (2**width), f"0{width}b")[-width:], 2)


def signed(value: int, width: int) -> int:
    unsigned = value % 2**width
    return unsigned - 2**width if unsigned >= 2 ** (width - 1) else unsigned


WRAPPING: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}


@fast
@given(
    operator=st.sampled_from(sorted(WRAPPING)),
    width=st.integers(1, 130),
    left=st.integers(0, 2**130),
    right=st.integers(0, 2**130),
)
def test_unsigned_operators_wrap(
    check: Check, operator: str, width: int, left: int, right: int
) -> None:
    left, right = bits(left, width), bits(right, width)
    checked = check(f"const bit<{width}> k = {width}w{left} {operator} {width}w{right};")
    assert checked.constant("k") == bits(WRAPPING[operator](left, right), width)


@fast
@given(
    operator=st.sampled_from(["+", "-", "*"]),
    width=st.integers(2, 70),
    left=st.integers(-(2**70), 2**70),
    right=st.integers(-(2**70), 2**70),
)
def test_signed_operators_wrap(
    check: Check, operator: str, width: int, left: int, right: int
) -> None:
    left, right = signed(left, width), signed(right, width)
    text = f"const int<{width}> k = (int<{width}>) ({left}) {operator} (int<{width}>) ({right});"
    assert check(text).constant("k") == signed(WRAPPING[operator](left, right), width)


@fast
@given(width=st.integers(1, 40), left=st.integers(0, 2**40), right=st.integers(0, 2**40))
def test_saturation(check: Check, width: int, left: int, right: int) -> None:
    left, right = bits(left, width), bits(right, width)
    checked = check(
        f"const bit<{width}> up = {width}w{left} |+| {width}w{right};"
        f"const bit<{width}> down = {width}w{left} |-| {width}w{right};"
    )
    assert checked.constant("up") == min(left + right, 2**width - 1)
    assert checked.constant("down") == max(left - right, 0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4s7 |+| 4s7", 7),
        ("(int<4>) (-8) |-| 4s1", -8),
        ("(int<4>) (-8) >> 1", -4),
        ("(int<4>) (-8) << 1", 0),
        ("-4s7", -7),
        ("~4s7", -8),
        ("4s5 ++ 4w3 == (int<8>) 83 ? 4s1 : 4s0", 1),
        ("(int<4>) (-5) ++ 4w3 == (int<8>) (-77) ? 4s1 : 4s0", 1),
        ("4w11 ++ 4s3 == 8w179 ? 4s1 : 4s0", 1),
    ],
)
def test_signed_cases(check: Check, text: str, value: int) -> None:
    assert check(f"const int<4> k = {text};").constant("k") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10 / 3", 3),
        ("10 % 3", 1),
        ("-5 + 3 * 4", 7),
        ("1 << 100", 2**100),
        ("(1 << 16384) >> 16380", 16),
        ("(1 << 100) >> 98", 4),
        ("6 & 3 | 8", 10),
        ("true ? 4 : 5", 4),
        ("7 > 3 && !(2 == 3) ? 1 : 0", 1),
        ("(int) 8w255 + 1", 256),
        ("0xF0[7:4]", 15),
    ],
)
def test_arbitrary_precision(check: Check, text: str, value: int) -> None:
    assert check(f"const int k = {text};").constant("k") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(bit<8>) 300", 44),
        ("(bit<8>) 16w0x1234", 0x34),
        ("(bit<8>) (int<8>) (-1)", 255),
        ("(bit<8>) (bit<1>) true", 1),
        ("16w0xABCD[15:8]", 0xAB),
        ("16w0xABCD[4 +: 8]", 0xBC),
        ("4w0xA ++ 4w0xB", 0xAB),
        ("8w1 << 9", 0),
        ("8w255 << 64w0xFFFF_FFFF_FFFF_FFFF", 0),
        ("8w200 >> 3", 25),
        ("~8w0x0F", 0xF0),
        ("-8w1", 255),
        ("{ 8w1, 8w2, 8w3 }[1]", 2),
        ("s.b", 7),
        ("inner", 9),
        ("(bit<8>) e.high", 200),
        ("e.high + 1", 201),
    ],
)
def test_values_of_eight_bits(check: Check, text: str, value: int) -> None:
    before = (
        "struct t { bit<4> a; bit<8> b; } const t s = { b = 7, a = 1 };"
        "const bit<8> inner = s.b + 2; enum bit<8> e { low = 1, high = 200 }"
    )
    assert check(f"{before} const bit<8> k = {text};").constant("k") == value


def test_widths_from_constants(check: Check) -> None:
    text = "const int N = 4; header h { bit<(N * 32)> a; varbit<(1 << 13)> b; int<N> c; }"
    checked = check(text)
    declared = checked.declaration("h")
    types = [str(checked.program.type_of_declaration[f]) for f in declared.fields]
    assert types == ["bit<128>", "varbit<8192>", "int<4>"]


def test_enum_values_may_use_earlier_members(check: Check) -> None:
    checked = check("enum bit<8> e { a = 3, b = a + 1, c = e.b * 2 }")
    values = {m.name: v for m, v in checked.program.enum_values.items()}
    assert values == {"a": 3, "b": 4, "c": 8}


def test_cast_to_enum_finds_the_member(check: Check) -> None:
    checked = check("enum bit<8> e { a = 3, b = 4 } const e k = (e) 8w4;")
    assert checked.constant("k").name == "b"


def test_error_codes_count_across_declarations(check: Check) -> None:
    checked = check("error { NoError, One } error { Two }")
    codes = {m.name: code for m, code in checked.program.error_codes.items()}
    assert codes == {"NoError": 0, "One": 1, "Two": 2}


@pytest.mark.parametrize(
    ("width", "value"), [(8, 256), (8, 1000), (1, 2), (16, 1 << 16), (8, -300)]
)
def test_overflow_is_a_warning_at_the_literal(
    check: Check, warnings_of: Callable[[str], list[tuple[int, str]]], width: int, value: int
) -> None:
    text = f"const bit<{width}> k =\n{value};"
    assert warnings_of(text)[0][0] == 2
    assert check(text).constant("k") == bits(value, width)


@pytest.mark.parametrize("value", [255, -1, -255])
def test_values_that_fit_are_silent(
    warnings_of: Callable[[str], list[tuple[int, str]]], value: int
) -> None:
    assert warnings_of(f"const bit<8> k = {value};") == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulo by zero"),
        ("(0 - 4) / 2", "negative"),
        ("1 << -1", "negative"),
        ("1 << 16385", "more than"),
        ("1 << 1000000000", "more than"),
        ("(1 << 16000) * (1 << 16000)" + " * (1 << 16000)" * 8, "more than"),
    ],
)
def test_impossible_constants(
    errors_of: Callable[[str], list[tuple[int, str]]], text: str, problem: str
) -> None:
    ((_, message),) = errors_of(f"const int k = {text};")
    assert problem in message


def test_sizes_of_types(check: Check) -> None:
    checked = check(
        "header g { bit<40> a; } header h { bit<9> a; varbit<20> v; }"
        "struct s { h x; h[3] y; } header_union u { h a; g b; }"
        "const int a = s.minSizeInBits(); const int b = s.maxSizeInBits();"
        "const int c = h.minSizeInBytes(); const int d = h.maxSizeInBytes();"
        "const int e = u.minSizeInBits(); const int f = u.maxSizeInBits();"
    )
    values = [checked.constant(name) for name in "abcdef"]
    assert values == [36, 116, 2, 4, 9, 40]
