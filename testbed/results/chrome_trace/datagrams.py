"""Finds the UDP payload of a frame."""

from __future__ import annotations

import struct
from typing import NamedTuple

ETHERNET_BYTES, TAG_BYTES, UDP_BYTES = 14, 4, 8
VLANS = (0x8100, 0x88A8)
IPV4, UDP = 0x0800, 17
Socket = tuple[bytes, int]
"""An IPv4 address and a UDP port."""


class Datagram(NamedTuple):
    sender: Socket
    receiver: Socket
    payload: bytes


def datagram_of(frame: bytes) -> Datagram | None:
    """Returns the UDP datagram in an Ethernet frame with IPv4, with or without VLAN tags (IEEE
    802.1Q); None if the frame is anything else."""
    try:
        at = ETHERNET_BYTES
        kind = _u16(frame, at - 2)
        while kind in VLANS:
            at += TAG_BYTES
            kind = _u16(frame, at - 2)
        if kind != IPV4 or frame[at + 9] != UDP:
            return None
        udp = at + (frame[at] & 0xF) * 4
        ports, length = (_u16(frame, udp), _u16(frame, udp + 2)), _u16(frame, udp + 4)
    except (IndexError, struct.error):
        return None
    source, target = frame[at + 12 : at + 16], frame[at + 16 : at + 20]
    payload = frame[udp + UDP_BYTES : udp + length]
    return Datagram((source, ports[0]), (target, ports[1]), payload)


def _u16(frame: bytes, at: int) -> int:
    value: int = struct.unpack_from(">H", frame, at)[0]
    return value
