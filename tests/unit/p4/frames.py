"""Frames of docs/protocol.md, built and read with struct alone."""

from __future__ import annotations

import struct
from typing import NamedTuple

from aggregation_model import OPENING, RESULT, Contribution

AGGREGATOR_MAC = bytes.fromhex("02000000fffe")
AGGREGATOR = bytes([10, 0, 255, 254])
AGGREGATOR_PORT = 48864
SHAPE_BYTES = 18
ETHERNET, IPV4, UDP, AGGREGATION = "!6s6sH", "!BBHHHBBH4s4s", "!HHHH", "!BBHHBBI"


def checksum(data: bytes) -> int:
    """RFC 1071."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def udp_checksum(source: bytes, to: bytes, datagram: bytes) -> int:
    """RFC 768; a sum of 0 is sent as 0xffff."""
    return checksum(source + to + struct.pack("!HH", 17, len(datagram)) + datagram) or 0xFFFF


def worker_mac(port: int) -> bytes:
    return bytes([2, 0, 0, 0, 0, port])


def worker_address(port: int) -> bytes:
    return bytes([10, 0, 0, port])


def ipv4(payload: bytes, source: bytes, to: bytes, protocol: int = 17, ttl: int = 64) -> bytes:
    fields = [0x45, 0, 20 + len(payload), 7, 0x4000, ttl, protocol, 0, source, to]
    fields[7] = checksum(struct.pack(IPV4, *fields))
    return struct.pack(IPV4, *fields) + payload


def to_aggregator(port: int, job: int, body: bytes) -> bytes:
    """The Ethernet frame by which the worker at `port` sends this to the switches of its job."""
    source = worker_address(port)
    head = [48865 + job, AGGREGATOR_PORT, 8 + len(body)]
    check = udp_checksum(source, AGGREGATOR, struct.pack(UDP, *head, 0) + body)
    datagram = struct.pack(UDP, *head, check) + body
    ethernet = struct.pack(ETHERNET, AGGREGATOR_MAC, worker_mac(port), 0x0800)
    return ethernet + ipv4(datagram, source, AGGREGATOR)


class Receiver(NamedTuple):
    """Whom a switch sends to."""

    mac: bytes
    address: bytes
    udp_port: int


ANOTHER_SWITCH = Receiver(AGGREGATOR_MAC, AGGREGATOR, AGGREGATOR_PORT)


def worker(port: int, job: int) -> Receiver:
    """The worker at `port`."""
    return Receiver(worker_mac(port), worker_address(port), 48865 + job)


def from_aggregator(to: Receiver, body: bytes) -> bytes:
    """The frame by which a switch sends this. A checksum of 0xffff it writes as 0: none."""
    head = AGGREGATOR_PORT, to.udp_port, 8 + len(body)
    check = udp_checksum(AGGREGATOR, to.address, struct.pack(UDP, *head, 0) + body) % 0xFFFF
    datagram = struct.pack(UDP, *head, check) + body
    return to.mac + AGGREGATOR_MAC + b"\x08\0" + ipv4(datagram, AGGREGATOR, to.address)


def opened(frame: bytes) -> tuple[Receiver, bytes]:
    """Whom a switch sent this to, and the UDP payload; all that is the same in each such frame is
    asserted."""
    to, source, ethertype = struct.unpack_from(ETHERNET, frame)
    assert (source, ethertype) == (AGGREGATOR_MAC, 0x0800)
    assert checksum(frame[14:34]) == 0
    _, _, total, _, _, ttl, protocol, _, sender, address = struct.unpack(IPV4, frame[14:34])
    assert (total, ttl, protocol, sender) == (len(frame) - 14, 64, 17, AGGREGATOR)
    source_port, udp_port, length, check = struct.unpack_from(UDP, frame, 34)
    assert (source_port, length) == (AGGREGATOR_PORT, total - 20)
    wanted = udp_checksum(sender, address, frame[34:40] + b"\0\0" + frame[42:])
    assert check in (0, wanted) and (check == 0) == (wanted == 0xFFFF)
    return Receiver(to, address, udp_port), frame[42:]


def aggregation(packet: Contribution, version: int = 1) -> bytes:
    head = (version, packet.kind, packet.job, packet.slot, packet.exponent, 0, packet.tag)
    shapes = b"".join(shape.to_bytes(SHAPE_BYTES, "big") for shape in packet.shapes)
    values = struct.pack(f"!{len(packet.values)}I", *packet.values)
    return struct.pack(AGGREGATION, *head) + shapes + values


def contribution(port: int, packet: Contribution, version: int = 1) -> bytes:
    """The Ethernet frame by which the worker at `port` contributes."""
    return to_aggregator(port, packet.job, aggregation(packet, version))


class Result(NamedTuple):
    mac: bytes
    address: bytes
    udp_port: int
    packet: Contribution


def parse(body: bytes) -> Contribution:
    """The packet in a UDP payload of a switch."""
    version, kind, job, slot, exponent, reserved, tag = struct.unpack_from(AGGREGATION, body)
    assert (version, reserved) == (1, 0)
    values, shapes = (), ()
    if kind == OPENING | RESULT:
        assert len(body) == 12 + 2 * SHAPE_BYTES
        ends = body[12 : 12 + SHAPE_BYTES], body[12 + SHAPE_BYTES :]
        shapes = tuple(int.from_bytes(end, "big") for end in ends)
    else:
        values = struct.unpack(f"!{(len(body) - 12) // 4}I", body[12:])
    return Contribution(job, slot, tag, kind, exponent, values, shapes)


def result(frame: bytes) -> Result:
    """Reads a result and asserts all that is the same in each of them."""
    to, body = opened(frame)
    return Result(*to, parse(body))
