"""Frames as a host's kernel makes and takes them, checked by scapy's arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from agglab.testbed.base.checksum import is_zero_sum
from agglab.testbed.run.impairments import flip
from agglab.testbed.virtual.frames import Address, Framing

HOST = Address("02:00:00:00:00:03", "10.0.0.3", 48866)
SWITCH = Address("02:00:00:00:ff:fe", "10.0.255.254", 48864)
UP, DOWN = Framing(HOST, SWITCH), Framing(SWITCH, HOST)


@given(st.binary(max_size=300))
def test_frames_are_what_scapy_makes(payload: bytes) -> None:
    expected = (
        Ether(src=HOST.mac, dst=SWITCH.mac)
        / IP(src=HOST.ip, dst=SWITCH.ip, id=0, flags="DF", ttl=64)
        / UDP(sport=HOST.port, dport=SWITCH.port)
        / payload
    )
    frame = UP.frame(payload)
    assert frame == bytes(expected)


def test_a_header_whose_words_sum_to_nothing_has_a_checksum_of_zero() -> None:
    """As kernels write it, and as switches compute it. Of 65,535 hosts, one has this address."""
    frame = Framing(Address("02:00:00:00:21:13", "10.0.33.19", 48866), SWITCH).frame(bytes(1472))
    assert frame[24:26] == b"\0\0" and is_zero_sum(frame[14:34])


@given(st.binary(max_size=300))
def test_the_other_end_takes_them(payload: bytes) -> None:
    assert UP.payload(DOWN.frame(payload)) == payload


@given(st.binary(min_size=12, max_size=60), st.data())
def test_one_wrong_bit_is_noticed(payload: bytes, data: st.DataObject) -> None:
    """But for the sender's MAC, which no checksum covers."""
    frame = DOWN.frame(payload)
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    taken = UP.payload(flip(frame, bit))
    if 48 <= bit < 96:
        assert taken == payload
    else:
        assert taken is None or taken == payload


def test_padding_and_unchecked_datagrams_are_taken() -> None:
    frame = DOWN.frame(b"abc")
    assert UP.payload(frame + bytes(20)) == b"abc"
    assert UP.payload(frame[:40] + b"\0\0" + b"xyz") == b"xyz"


@pytest.mark.parametrize(
    "foreign",
    [
        Address("02:00:00:00:00:04", "10.0.0.3", 48866),
        Address("02:00:00:00:00:03", "10.0.0.4", 48866),
        Address("02:00:00:00:00:03", "10.0.0.3", 48867),
    ],
)
def test_frames_for_others_are_not(foreign: Address) -> None:
    assert UP.payload(Framing(SWITCH, foreign).frame(b"abc")) is None


@given(st.binary(max_size=80))
def test_nothing_is_taken_for_a_frame(noise: bytes) -> None:
    assert UP.payload(noise) is None
