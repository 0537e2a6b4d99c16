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


def aggregation(packet: Contribution, version: int = 1) -> bytes:
    head = (version, packet.kind, packet.job, packet.slot, packet.exponent, 0, packet.tag)
    shapes = b"".join(shape.to_bytes(SHAPE_BYTES, "big") for shape in packet.shapes)
    values = struct.pack(f"!{len(packet.values)}I", *packet.values)
    return struct.pack(AGGREGATION, *head) + shapes + values


def contribution(port: int, packet: Contribution, version: int = 1) -> bytes:
    """The Ethernet frame by which the worker at `port` contributes."""
    body = aggregation(packet, version)
    source = worker_address(port)
    head = [48865 + packet.job, AGGREGATOR_PORT, 8 + len(body)]
    check = udp_checksum(source, AGGREGATOR, struct.pack(UDP, *head, 0) + body)
    datagram = struct.pack(UDP, *head, check) + body
    head = struct.pack(ETHERNET, AGGREGATOR_MAC, worker_mac(port), 0x0800)
    return head + ipv4(datagram, source, AGGREGATOR)


class Result(NamedTuple):
    mac: bytes
    address: bytes
    udp_port: int
    packet: Contribution


def result(frame: bytes) -> Result:
    """Reads a result and asserts all that is the same in each of them."""
    to, source, ethertype = struct.unpack_from(ETHERNET, frame)
    assert (source, ethertype) == (AGGREGATOR_MAC, 0x0800)
    head = frame[14:34]
    assert checksum(head) == 0
    _, _, total, _, _, ttl, protocol, _, sender, address = struct.unpack(IPV4, head)
    assert (total, ttl, protocol, sender) == (len(frame) - 14, 64, 17, AGGREGATOR)
    source_port, udp_port, length, check = struct.unpack_from(UDP, frame, 34)
    assert (source_port, length) == (AGGREGATOR_PORT, total - 20)
    without = frame[34:40] + b"\0\0" + frame[42:]
    assert check in (0, udp_checksum(sender, address, without))
    assert (check == 0) == (udp_checksum(sender, address, without) == 0xFFFF)
    version, kind, job, slot, exponent, reserved, tag = struct.unpack_from(AGGREGATION, frame, 42)
    assert (version, reserved) == (1, 0)
    values, shapes = (), ()
    if kind == OPENING | RESULT:
        assert len(frame) == 54 + 2 * SHAPE_BYTES
        ends = frame[54 : 54 + SHAPE_BYTES], frame[54 + SHAPE_BYTES :]
        shapes = tuple(int.from_bytes(end, "big") for end in ends)
    else:
        values = struct.unpack(f"!{(len(frame) - 54) // 4}I", frame[54:])
    packet = Contribution(job, slot, tag, kind, exponent, values, shapes)
    return Result(to, address, udp_port, packet)
