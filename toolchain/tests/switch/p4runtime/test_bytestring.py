"""Binary strings of P4Runtime."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
from p4native.switch.p4runtime.bytestring import decode, decode_signed, encode, encode_signed
from p4native.switch.p4runtime.status import Code, StatusError

assert p4native.switch.p4runtime

# (bits, text, value): the specification's tables of valid and invalid strings
VALID = [(8, "63", 99), (16, "0063", 99), (16, "63", 99), (16, "3064", 12388), (12, "000063", 99)]
INVALID = [(8, "0163"), (8, ""), (16, "010063"), (12, "1063"), (12, "010063"), (12, "004063")]
VALID_SIGNED = [(8, "63", 99), (8, "9d", -99), (8, "ff9d", -99), (12, "fd1d", -739), (16, "00", 0)]
INVALID_SIGNED = [(8, "009d"), (12, "8d1d"), (16, "")]


@pytest.mark.parametrize(("bits", "text", "value"), VALID)
def test_valid(bits: int, text: str, value: int) -> None:
    assert decode(bytes.fromhex(text), bits, "x") == value


@pytest.mark.parametrize(("bits", "text"), INVALID)
def test_invalid(bits: int, text: str) -> None:
    with pytest.raises(StatusError, match=r"field q: ") as caught:
        decode(bytes.fromhex(text), bits, "field q")
    assert caught.value.code == Code.INVALID_ARGUMENT


@pytest.mark.parametrize(("bits", "text", "value"), VALID_SIGNED)
def test_valid_signed(bits: int, text: str, value: int) -> None:
    assert decode_signed(bytes.fromhex(text), bits, "x") == value % (1 << bits)


@pytest.mark.parametrize(("bits", "text"), INVALID_SIGNED)
def test_invalid_signed(bits: int, text: str) -> None:
    with pytest.raises(StatusError):
        decode_signed(bytes.fromhex(text), bits, "x")


@given(st.integers(0, (1 << 2048) - 1))
def test_shortest_form(value: int) -> None:
    text = encode(value)
    assert decode(text, max(1, value.bit_length()), "x") == value
    assert len(text) == 1 or text[0] != 0


@given(
    st.integers(1, 128).flatmap(lambda bits: st.tuples(st.just(bits), st.integers(0, 2**bits - 1)))
)
def test_signed_round_trip(case: tuple[int, int]) -> None:
    bits, content = case
    text = encode_signed(content, bits)
    assert decode_signed(text, bits, "x") == content
    if len(text) > 1:
        shorter = int.from_bytes(text[1:], "big", signed=True)
        assert shorter != int.from_bytes(text, "big", signed=True), "a shorter form exists"
