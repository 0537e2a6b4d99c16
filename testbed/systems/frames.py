"""Builds Ethernet frames layer by layer, as an outsider could. They are used for attacks and in
tests of attacks."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agglab.hosts import wire
from agglab.testbed.base.checksum import ONES, word_sum
from agglab.topologies import Host

ETHERNET = struct.Struct("!6s6sH")
IPV4 = struct.Struct("!BBHHHBBH4s4s")
IPV6 = struct.Struct("!IHBB16s16s")
IPV4_TYPE, IPV6_TYPE = 0x0800, 0x86DD
ICMP, TCP, UDP = 1, 6, 17
DONT_FRAGMENT, MORE_FRAGMENTS = 0x4000, 0x2000
VLAN, SERVICE_VLAN, OLD_SERVICE_VLAN = 0x8100, 0x88A8, 0x9100
TAGS_READ_MAX = 4
"""The number of VLAN tags that switches read, which is MAX_TAGS of p4/include/lower_headers.p4."""
FIRST_BYTES = 16
"""The number of bytes of the UDP datagram that the first fragment has."""
NO_OPERATIONS = b"\1\1\1\0"
"""IPv4 options without any effect."""
MAPPED = bytes(10) + b"\xff\xff"
"""The prefix of an IPv6 address that holds an IPv4 address."""
SNAP = bytes.fromhex("aaaa03000000")
UNREACHABLE, QUENCH, REDIRECT, EXPIRED, PARAMETER = 3, 4, 5, 11, 12
"""The types of ICMP messages."""
PORT, TOO_BIG = 3, 4
"""Two codes of `UNREACHABLE`."""


@dataclass(frozen=True)
class End:
    """An address of UDP or TCP, in packed form."""

    mac: bytes
    ip: bytes
    port: int


AGGREGATOR = End(
    bytes.fromhex(wire.AGGREGATOR_MAC.replace(":", "")),
    ipaddress.IPv4Address(wire.AGGREGATOR_ADDRESS).packed,
    wire.AGGREGATOR_PORT,
)


def end_of(host: Host, port: int) -> End:
    """Returns the End for a port of a host."""
    mac = bytes.fromhex(host.mac.replace(":", ""))
    return End(mac, ipaddress.IPv4Address(host.ip).packed, port)


def ethernet(to: bytes, source: bytes, body: bytes, tags: Sequence[tuple[int, int]] = ()) -> bytes:
    """Returns a frame. tags: (ethertype, priority and VLAN) of each tag, the outermost first."""
    ethertype = IPV6_TYPE if body[0] >> 4 == 6 else IPV4_TYPE
    types = [kind for kind, _ in tags] + [ethertype]
    inner = b"".join(
        struct.pack("!HH", control, following)
        for (_, control), following in zip(tags, types[1:], strict=True)
    )
    return ETHERNET.pack(to, source, types[0]) + inner + body


def ipv4(
    source: bytes,
    to: bytes,
    body: bytes,
    protocol: int = UDP,
    options: bytes = b"",
    flags: int = DONT_FRAGMENT,
    number: int = 0,
) -> bytes:
    """Returns an IPv4 packet. flags: the fragment flags and offset."""
    size = IPV4.size + len(options)
    fields = (0x40 | size // 4, 0, size + len(body), number, flags, 64, protocol)
    blank = IPV4.pack(*fields, 0, source, to) + options
    return IPV4.pack(*fields, ONES - word_sum(blank), source, to) + options + body


def udp(source: End, to: End, payload: bytes) -> bytes:
    """Returns a UDP header and the payload, with a checksum that covers IPv4's addresses."""
    size = 8 + len(payload)
    head = struct.pack("!HHH", source.port, to.port, size)
    pseudo = source.ip + to.ip + struct.pack("!HH", UDP, size)
    checksum = ONES - word_sum(pseudo + head + b"\0\0" + payload)
    return head + checksum.to_bytes(2, "big") + payload


def tcp(source: End, to: End, payload: bytes) -> bytes:
    """Returns a TCP segment, with a checksum that covers IPv4's addresses. The payload must begin
    with the fields that no outsider can know for a connection: sequence number (4 bytes),
    acknowledgement number (4) and flags (1)."""
    numbers, data = payload[:9].ljust(9, b"\0"), payload[9:]
    ports = struct.pack("!HH", source.port, to.port)
    head = ports + numbers[:8] + bytes([5 << 4, numbers[8]]) + struct.pack("!H", ONES)
    pseudo = source.ip + to.ip + struct.pack("!HH", TCP, len(head) + 4 + len(data))
    checksum = ONES - word_sum(pseudo + head + bytes(4) + data)
    return head + checksum.to_bytes(2, "big") + bytes(2) + data


def icmp(kind: int, code: int, rest: bytes, quoted: bytes) -> bytes:
    """Returns an ICMP message about a packet. rest: the second word of the ICMP header. quoted: the
    beginning of that packet."""
    head, tail = bytes([kind, code]), rest + quoted
    checksum = ONES - word_sum(head + b"\0\0" + tail)
    return head + checksum.to_bytes(2, "big") + tail


@dataclass(frozen=True)
class Transport:
    """The protocol that carries agents' packets. segment: a function that builds a segment from
    (source, target, payload)."""

    protocol: int
    header_bytes: int
    segment: Callable[[End, End, bytes], bytes]


OVER_UDP, OVER_TCP = Transport(UDP, 8, udp), Transport(TCP, 20, tcp)


def datagram(
    source: End, to: End, payload: bytes, options: bytes = b"", over: Transport = OVER_UDP
) -> bytes:
    """Returns an IPv4 packet that holds a whole datagram or segment."""
    return ipv4(source.ip, to.ip, over.segment(source, to, payload), over.protocol, options)


def fragments(
    source: End, to: End, payload: bytes, number: int, over: Transport = OVER_UDP
) -> list[bytes]:
    """Returns the two IPv4 packets that hold one datagram; the second has no UDP header."""
    whole = over.segment(source, to, payload)
    parts = ((MORE_FRAGMENTS, whole[:FIRST_BYTES]), (FIRST_BYTES // 8, whole[FIRST_BYTES:]))
    return [
        ipv4(source.ip, to.ip, part, over.protocol, flags=flags, number=number)
        for flags, part in parts
    ]


def mapped(source: End, to: End, payload: bytes, over: Transport = OVER_UDP) -> bytes:
    """Returns an IPv6 packet with a datagram or segment between IPv4-mapped addresses. Its checksum
    is the same as over IPv4, because the two address prefixes add 0 in one's complement."""
    whole, addresses = over.segment(source, to, payload), (MAPPED + source.ip, MAPPED + to.ip)
    return IPV6.pack(6 << 28, len(whole), over.protocol, 64, *addresses) + whole


def in_snap(to: bytes, source: bytes, packet: bytes) -> bytes:
    """Returns an IEEE 802.3 frame with LLC and SNAP, which has a length where other frames have a
    type. The type, IPv4, follows after the SNAP header's beginning. Hosts do not accept such a
    frame as IP."""
    body = SNAP + struct.pack("!H", IPV4_TYPE) + packet
    return ETHERNET.pack(to, source, len(body)) + body


def icmp_about(sent: bytes, source: bytes, kind: int, code: int, rest: bytes) -> bytes:
    """Returns a packet with an ICMP message about an IPv4 packet without options, addressed to that
    packet's sender. source: the address from which the message comes."""
    sender = sent[12:16]
    return ipv4(source, sender, icmp(kind, code, rest, sent[: IPV4.size + 8]), ICMP)
