"""Frames of a host that is in no job, and what becomes of them: what each is counted by, or what
leaves for it. Alike for every program that forwards (p4/include/forwarding.p4)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from conversations import Step
from frames import (
    AGGREGATOR,
    AGGREGATOR_MAC,
    checksum,
    ipv4,
    worker_address,
    worker_mac,
)

TAG_TYPES = (0x8100, 0x88A8, 0x9100)
MAX_TAGS = 4
CONTROL = 5
NO_NEXT_HEADER = 59


def tagged(tags: Sequence[int], body: bytes, to: bytes, port: int) -> bytes:
    """A frame of IPv4, of the host at `port`, behind tags of these types."""
    types = [*tags, 0x0800]
    inner = b"".join(struct.pack("!HH", CONTROL, following) for following in types[1:])
    return to + worker_mac(port) + struct.pack("!H", types[0]) + inner + body


def deep_and_short(port: int) -> Iterator[tuple[str, bytes]]:
    """(what it is counted by, frame): up to six tags of every type, and frames cut at every
    length."""
    there = worker_address(1), worker_mac(1)
    plain = ipv4(b"", worker_address(port), there[0])
    forged = [ipv4(b"", source, there[0]) for source in (AGGREGATOR, worker_address(2))]
    options = bytearray(plain + bytes(4))
    options[0] = 0x46
    for depth in range(MAX_TAGS + 3):
        tags = [TAG_TYPES[(depth + place) % 3] for place in range(depth)]
        deep = depth > MAX_TAGS
        for packet in (plain, bytes(options)):
            yield "malformed" if deep else "forwarded", tagged(tags, packet, there[1], port)
        for packet in forged:
            yield "malformed" if deep else "forged", tagged(tags, packet, there[1], port)
    for tags in ([0x8100], []):
        yield "unroutable", tagged(tags, plain, AGGREGATOR_MAC, port)
        whole = tagged(tags, plain, there[1], port)
        for length in range(1, len(whole)):
            yield "malformed", whole[:length]


def forwarded(port: int) -> Iterator[Step]:
    """To a host whose MAC address is known (3, at port 3) and to those there are routes to (2, at
    port 2, and 9, behind the port by which the packet came); a packet with a damaged header, which
    nobody corrects; ICMP to the aggregator, a forged one, and a packet whose life is over; then
    packets by another port, whose host is known only if it is a worker of a job."""
    message = struct.pack("!BBHI", 3, 3, checksum(struct.pack("!BBHI", 3, 3, 0, 0)), 0)
    own, there = worker_address(port), worker_address(2)
    error = ipv4(message, own, AGGREGATOR, protocol=1)
    forged = ipv4(message, AGGREGATOR, AGGREGATOR, protocol=1)
    for body in (error, forged, ipv4(b"x", own, there, ttl=1)):
        yield Step(port, tagged([], body, AGGREGATOR_MAC, port))
    packet, routed = (ipv4(b"x", own, there, ttl=ttl) for ttl in (9, 8))
    out = worker_mac(2) + AGGREGATOR_MAC + b"\x08\0" + routed
    yield Step(port, tagged([], packet, AGGREGATOR_MAC, port), [(2, out)])
    back, routed_back = (ipv4(b"x", own, worker_address(9), ttl=ttl) for ttl in (9, 8))
    out = worker_mac(9) + AGGREGATOR_MAC + b"\x08\0" + routed_back
    yield Step(port, tagged([], back, AGGREGATOR_MAC, port), [(port, out)])
    known = tagged([], packet, worker_mac(3), port)
    damaged = known[:24] + b"\x12\x34" + known[26:]
    for frame in (known, damaged):
        yield Step(port, frame, [(3, frame)])
    yield from at_a_port_that_leads_to_a_switch(3)


def at_a_port_that_leads_to_a_switch(port: int) -> Iterator[Step]:
    """Unless a job has a worker at this port. The aggregator's address is forged here too, also as
    an IPv6 address; one that only ends like it, and the host's own, are not."""
    source, there, mac = worker_address(port), worker_address(2), worker_mac(port)
    yield Step(port, tagged([], ipv4(b"x", AGGREGATOR, there), worker_mac(2), port))
    packet, routed = (ipv4(b"x", source, there, ttl=ttl) for ttl in (9, 8))
    out = worker_mac(2) + AGGREGATOR_MAC + b"\x08\0" + routed
    yield Step(port, tagged([], packet, AGGREGATOR_MAC, port), [(2, out)])
    mapped, private, other = bytes(10) + b"\xff\xff", b"\xfd" + bytes(9) + b"\xff\xff", bytes(12)
    for prefix in (mapped, private, other):
        ipv6 = b"\x60" + bytes(5) + bytes([NO_NEXT_HEADER, 9]) + prefix + AGGREGATOR + bytes(16)
        frame = mac + mac + b"\x86\xdd" + ipv6
        yield Step(port, frame, [] if prefix == mapped else [(port, frame)])
