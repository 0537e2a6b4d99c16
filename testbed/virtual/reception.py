"""Processes a frame as Linux does before a UDP socket receives it.

VLAN tags with the number 0 are removed, options are skipped, fragments are put together, and ICMP
errors are reported to the socket that they concern. tests/root/test_reception.py compares each rule
with a kernel.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field, replace

from agglab.testbed.base.checksum import is_zero_sum

NS_PER_S = 1_000_000_000
FRAGMENTS_NS = 30 * NS_PER_S
"""How long the kernel keeps the fragments of an incomplete datagram."""

ETHERTYPE_IPV4 = 0x0800
TAGS_TAKEN_OFF = (0x8100, 0x88A8)
VLAN_MASK = 0x0FFF
GROUP_BIT = 1
ICMP, UDP = 1, 17
CHECKED_AT_ONCE = 76
"""Up to this length of a UDP datagram, Linux checks the checksum before it looks for the socket
(CHECKSUM_BREAK)."""
ECN_BITS = 3
MORE_FRAGMENTS, OFFSET_MASK = 0x2000, 0x1FFF
IPV4_MAX_BYTES = 65535

END, NOP, TIMESTAMP = 0, 1, 0x44
RECORD_ROUTE, LOOSE_ROUTE, STRICT_ROUTE, CIPSO = 0x07, 0x83, 0x89, 0x86

UNREACHABLE, PARAMETER_PROBLEM = 3, 12
HARD_CODES = (2, 3, 4, 6, 7, 8, 9, 10, 13, 14, 15)
"""The codes of ICMP's `unreachable` that are reported to a connected socket (icmp_err_convert in
Linux)."""


@dataclass(frozen=True)
class Datagram:
    """A UDP datagram for this host. ports: the source and the destination port."""

    source: bytes
    ports: tuple[int, int]
    payload: bytes


@dataclass(frozen=True)
class WrongSum:
    """A UDP datagram for this host whose checksum is wrong. The kernel drops it. If the datagram is
    long, the kernel counts it at the socket that it was meant for."""

    source: bytes
    ports: tuple[int, int]


@dataclass(frozen=True)
class NetworkError:
    """An ICMP message about a datagram that this host sent. ports: the ports of that datagram."""

    target: bytes
    ports: tuple[int, int]


@dataclass(frozen=True)
class Packet:
    """An IPv4 packet with a correct header. body: what follows the options. marked: whether one of
    the ECN bits is set."""

    source: bytes
    target: bytes
    protocol: int
    marked: bool
    number: int
    flags: int
    body: bytes


@dataclass
class _Fragments:
    """The fragments of one datagram that have arrived. parts: their contents by offset, none of
    which overlap. runs: begin and end of each range of parts that adjoin and arrived in order.
    markings: which values of `marked` the fragments have; all must have the same (RFC 3168, 5.3).
    total: the datagram's length, once the last fragment has arrived."""

    since_ns: int
    markings: set[bool] = field(default_factory=set)
    parts: dict[int, bytes] = field(default_factory=dict)
    runs: list[tuple[int, int]] = field(default_factory=list)
    total: int | None = None


class Reception:
    """What one host's network stack does with the frames that it receives. mac, ip: the host's own
    addresses."""

    def __init__(self, mac: str, ip: str) -> None:
        self._mac = bytes.fromhex(mac.replace(":", ""))
        self._ip = ipaddress.IPv4Address(ip).packed
        self._waiting: dict[tuple[bytes, int, int], _Fragments] = {}

    def receive(self, frame: bytes, now_ns: int) -> Datagram | WrongSum | NetworkError | None:
        """Returns what a socket receives or counts because of this frame. Returns None if no socket
        learns of it: the kernel drops the frame, or keeps it because it is a fragment."""
        if not self._is_for_us(frame):
            return None
        packet = _ipv4(_without_tags(frame))
        if packet is None or packet.target != self._ip or packet.source == self._ip:
            return None
        if packet.flags & (MORE_FRAGMENTS | OFFSET_MASK):
            packet = self._put_together(packet, now_ns)
        if packet is None:
            return None
        if packet.protocol == UDP:
            return _datagram(packet)
        return self._icmp(packet) if packet.protocol == ICMP else None

    def _is_for_us(self, frame: bytes) -> bool:
        """Returns whether the frame is for this host's address or for a group. A unicast packet in
        a broadcast frame is accepted."""
        return len(frame) > 14 and (frame[:6] == self._mac or bool(frame[0] & GROUP_BIT))

    def _put_together(self, packet: Packet, now_ns: int) -> Packet | None:
        """Returns the whole packet if this was its last missing fragment; otherwise None.

        A fragment that lies within a run is ignored. If a fragment overlaps others in another way,
        or contradicts the datagram's end, all of the datagram's fragments are dropped.
        """
        key = (packet.source, packet.number, packet.protocol)
        known = self._waiting.get(key)
        if known is None or now_ns - known.since_ns > FRAGMENTS_NS:
            known = self._waiting[key] = _Fragments(now_ns)
        offset = 8 * (packet.flags & OFFSET_MASK)
        body = packet.body
        if packet.flags & MORE_FRAGMENTS:
            body = body[: len(body) & ~7]
        end = offset + len(body)
        agrees = _agrees_on_the_end(known, end, bool(packet.flags & MORE_FRAGMENTS)) and body
        if agrees and any(first <= offset and end <= last for first, last in known.runs):
            return None
        if not agrees or any(offset < last and first < end for first, last in known.runs):
            del self._waiting[key]
            return None
        known.runs = _with_part(known.runs, offset, end)
        known.parts[offset] = body
        known.markings.add(packet.marked)
        if known.total is None or sum(map(len, known.parts.values())) < known.total:
            return None
        del self._waiting[key]
        if len(known.markings) > 1:
            return None
        whole = b"".join(known.parts[at] for at in sorted(known.parts))
        return replace(packet, flags=0, body=whole)

    def _icmp(self, packet: Packet) -> NetworkError | None:
        """Returns the error that a connected socket gets from an ICMP message about a datagram that
        this host sent; None if the socket gets no error."""
        message = packet.body
        if len(message) < 8 or not is_zero_sum(message):
            return None
        kind, code, quoted = message[0], message[1], message[8:]
        if kind != PARAMETER_PROBLEM and (kind != UNREACHABLE or code not in HARD_CODES):
            return None
        size = 4 * (quoted[0] & 0x0F) if quoted else 0
        if size < 20 or len(quoted) < size + 8 or quoted[9] != UDP or quoted[12:16] != self._ip:
            return None
        return NetworkError(quoted[16:20], struct.unpack_from("!HH", quoted, size))


def _without_tags(frame: bytes) -> bytes | None:
    """Returns what follows the Ethernet header and its VLAN tags, if it is IPv4. Returns None for a
    tag of a VLAN other than 0, because the host has no interface for it."""
    at = 12
    while len(frame) >= at + 4 and int.from_bytes(frame[at : at + 2], "big") in TAGS_TAKEN_OFF:
        if int.from_bytes(frame[at + 2 : at + 4], "big") & VLAN_MASK:
            return None
        at += 4
    ethertype = int.from_bytes(frame[at : at + 2], "big")
    return frame[at + 2 :] if ethertype == ETHERTYPE_IPV4 else None


def _ipv4(data: bytes | None) -> Packet | None:
    """Returns an IPv4 packet without the padding that follows it in the frame; None if the header
    is wrong."""
    if data is None or len(data) < 20 or data[0] >> 4 != 4:
        return None
    size, total = 4 * (data[0] & 0x0F), int.from_bytes(data[2:4], "big")
    if not 20 <= size <= total <= len(data) or not is_zero_sum(data[:size]):
        return None
    if not _options_are_taken(data[20:size]):
        return None
    number, flags = struct.unpack_from("!HH", data, 4)
    marked = bool(data[1] & ECN_BITS)
    return Packet(data[12:16], data[16:20], data[9], marked, number, flags, data[size:total])


def _options_are_taken(options: bytes) -> bool:
    """Returns whether the kernel accepts the options. They must be well formed. A source route is
    not accepted (Linux refuses it by default), nor a security label (none is known)."""
    at, routes = 0, 0
    while at < len(options) and options[at] != END:
        kind = options[at]
        if kind == NOP:
            at += 1
            continue
        size = options[at + 1] if at + 1 < len(options) else 0
        if size < 2 or at + size > len(options) or kind in (LOOSE_ROUTE, STRICT_ROUTE, CIPSO):
            return False
        if kind in (RECORD_ROUTE, TIMESTAMP):
            routes += kind == RECORD_ROUTE
            if not _has_room(options[at : at + size]) or routes > 1:
                return False
        at += size
    return True


def _has_room(option: bytes) -> bool:
    """Returns whether the pointer of a recorded route, or of time stamps, points to a place where
    an entry may be."""
    smallest = 4 if option[0] == TIMESTAMP else 3
    if len(option) < smallest or option[2] < smallest + 1:
        return False
    free = len(option) + 1 - option[2]
    return free <= 0 or free >= 4


def _datagram(packet: Packet) -> Datagram | WrongSum | None:
    """Returns the datagram; None if the UDP header is wrong."""
    data = packet.body
    if len(data) < 8:
        return None
    source, target, size, checksum = struct.unpack_from("!HHHH", data)
    if not 8 <= size <= len(data):
        return None
    pseudo = packet.source + packet.target + struct.pack("!HH", UDP, size)
    if checksum and not is_zero_sum(pseudo + data[:size]):
        return WrongSum(packet.source, (source, target)) if size > CHECKED_AT_ONCE else None
    return Datagram(packet.source, (source, target), data[8:size])


def _agrees_on_the_end(known: _Fragments, end: int, more: bool) -> bool:
    """Returns whether this fragment agrees with those before it on where the datagram ends. Only
    the last fragment states the end. more: whether this is not the last fragment."""
    if end + 20 > IPV4_MAX_BYTES or (known.total is not None and end > known.total):
        return False
    if not more:
        furthest = max((at + len(part) for at, part in known.parts.items()), default=0)
        if known.total not in (None, end) or furthest > end:
            return False
        known.total = end
    return True


def _with_part(runs: list[tuple[int, int]], offset: int, end: int) -> list[tuple[int, int]]:
    """Returns the runs with one more fragment. As in the kernel, only the last run can grow."""
    if runs and offset == runs[-1][1]:
        return [*runs[:-1], (runs[-1][0], end)]
    return sorted([*runs, (offset, end)])
