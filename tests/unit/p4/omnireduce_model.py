"""What systems/omnireduce/README.md says a switch does with a packet, in plain Python; its frames.

A switch without a parent is a job's root. `receive` returns what leaves: (ports, packet)."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from frames import (
    AGGREGATION,
    AGGREGATOR,
    AGGREGATOR_MAC,
    AGGREGATOR_PORT,
    ETHERNET,
    SHAPE_BYTES,
    UDP,
    ipv4,
    udp_checksum,
    worker_address,
    worker_mac,
)

INT32, SCALED, OPENING, BARE, RESULT = 0x30, 0x31, 0x32, 0x40, 0x80
FUSED, NOTHING_AHEAD = 0x08, 2**16 - 1
NONE = 2**32 - 1
ENTRY = struct.Struct("!HIIHB")
COLUMN = "!II"
UPLINK = 100


@dataclass(frozen=True)
class Packet:
    """values: None where there are headers alone; kind without BARE, which follows from that."""

    job: int
    slot: int
    tag: int
    kind: int
    block: int
    next: int = NONE
    exponent: int = 0
    values: tuple[int, ...] | None = None
    shapes: tuple[int, int] | None = None

    def payload(self) -> bytes:
        bare = BARE if self.values is None and self.shapes is None else 0
        head = (1, self.kind | bare, self.job, self.slot, self.exponent, 0, self.tag)
        shapes = b"".join(shape.to_bytes(SHAPE_BYTES, "big") for shape in self.shapes or ())
        values = struct.pack(f"!{len(self.values or ())}I", *(self.values or ()))
        return (
            struct.pack(AGGREGATION, *head)
            + struct.pack(COLUMN, self.block, self.next)
            + shapes
            + values
        )


def fused(packets: Sequence[Packet]) -> bytes:
    """The UDP payload with all of these: all but the last have no values, and are entries."""
    *entries, first = packets
    whole = bytearray(first.payload())
    whole[1] |= FUSED if entries else 0
    for p in entries:
        ahead = NOTHING_AHEAD if p.next == NONE else p.next - p.block
        whole += ENTRY.pack(p.slot, p.tag, p.block, ahead, p.exponent)
    return bytes(whole)


def frame(port: int, *packets: Packet) -> bytes:
    """As the worker at `port` sends it, or them."""
    return frame_of(port, packets[0].job, fused(packets))


def frame_of(port: int, job: int, body: bytes) -> bytes:
    """Any payload of a worker of the job."""
    source = worker_address(port)
    head = [48865 + job, AGGREGATOR_PORT, 8 + len(body)]
    check = udp_checksum(source, AGGREGATOR, struct.pack(UDP, *head, 0) + body)
    datagram = struct.pack(UDP, *head, check) + body
    ethernet = struct.pack(ETHERNET, AGGREGATOR_MAC, worker_mac(port), 0x0800)
    return ethernet + ipv4(datagram, source, AGGREGATOR)


def read(got: bytes) -> Packet:
    """The packet in a frame that a switch sent; all that such a frame must say is asserted."""
    _, source, ethertype = struct.unpack_from(ETHERNET, got)
    assert (source, ethertype) == (AGGREGATOR_MAC, 0x0800)
    total, address = struct.unpack_from("!H", got, 16)[0], got[30:34]
    assert (total, got[26:30]) == (len(got) - 14, AGGREGATOR)
    source_port, _, length, check = struct.unpack_from(UDP, got, 34)
    assert (source_port, length) == (AGGREGATOR_PORT, total - 20)
    assert check == udp_checksum(AGGREGATOR, address, got[34:40] + b"\0\0" + got[42:])
    return parse(got[42:])


def parse_all(payload: bytes, lanes: int) -> list[Packet]:
    """The packets in a UDP payload, in the order in which a switch takes them."""
    if not payload[1] & FUSED:
        return [parse(payload)]
    is_opening = payload[1] & ~(FUSED | RESULT) == OPENING
    size = 20 + (2 * SHAPE_BYTES if is_opening else 0 if payload[1] & BARE else 4 * lanes)
    first = parse(bytes([payload[0], payload[1] & ~FUSED]) + payload[2:size])
    packets = []
    for slot, tag, block, ahead, exponent in ENTRY.iter_unpack(payload[size:]):
        following = NONE if ahead == NOTHING_AHEAD else block + ahead
        changed = {"slot": slot, "tag": tag, "block": block, "exponent": exponent}
        packets.append(replace(first, next=following, values=None, **changed))
    return [*packets, first]


def parse(payload: bytes) -> Packet:
    """The packet in a UDP payload that is not fused."""
    version, kind, job, slot, exponent, _, tag = struct.unpack_from(AGGREGATION, payload)
    block, following = struct.unpack_from(COLUMN, payload, 12)
    assert version == 1
    body, values, shapes = payload[20:], None, None
    if kind & 0x3F == OPENING & 0x3F:
        assert len(body) == 2 * SHAPE_BYTES and not kind & BARE
        shapes = tuple(int.from_bytes(body[at : at + SHAPE_BYTES], "big") for at in (0, 18))
    elif kind & BARE:
        assert not body
    else:
        values = struct.unpack(f"!{len(body) // 4}I", body)
    return Packet(job, slot, tag, kind & ~BARE, block, following, exponent, values, shapes)


@dataclass
class Cell:
    tag: int = 0
    kind: int = 0
    block: int = 0
    present: set[int] = field(default_factory=set)
    next: int = NONE
    exponent: int = 0
    values: tuple[int, ...] | None = None
    shapes: tuple[int, int] | None = None
    holds_result: bool = False


@dataclass
class Switch:
    """One job of one switch: its children's ports, the first of them first."""

    job: int
    children: tuple[int, ...]
    slots: int
    has_parent: bool = False
    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def receive(self, port: int, packet: Packet) -> tuple[set[int], Packet] | None:
        from_parent = self.has_parent and port == UPLINK
        known = from_parent or port in self.children
        if not known or packet.job != self.job or packet.slot >= self.slots:
            return self._count("refused")
        if bool(packet.kind & RESULT) != from_parent:
            return self._count("refused")
        cell = self.cells.setdefault((packet.slot, packet.tag % 2), Cell())
        return self._conclude(cell, packet) if from_parent else self._child(port, cell, packet)

    def receive_all(self, port: int, packets: Sequence[Packet]) -> list[tuple[int, Packet]]:
        """What leaves, by which port, of packets that came as one."""
        self.counts["taken_apart"] += len(packets) - 1
        out = []
        for ports, answer in filter(None, (self.receive(port, packet) for packet in packets)):
            out += [(to, answer) for to in sorted(ports)]
        return out

    def _count(self, what: str) -> None:
        self.counts[what] += 1

    def _conclude(self, cell: Cell, packet: Packet) -> tuple[set[int], Packet] | None:
        whole = len(cell.present) == len(self.children) and not cell.holds_result
        same = (cell.tag, cell.kind | RESULT, cell.block) == (packet.tag, packet.kind, packet.block)
        if not (whole and same):
            return self._count("final_unneeded")
        self._count("final_new")
        cell.next, cell.exponent, cell.holds_result = packet.next, packet.exponent, True
        cell.values, cell.shapes = packet.values, packet.shapes
        return set(self.children), packet

    def _child(self, port: int, cell: Cell, packet: Packet) -> tuple[set[int], Packet] | None:
        ahead = (packet.tag - cell.tag) % 2**32 if cell.present else 1
        if ahead >= 2**31:
            return self._count("stale")
        if ahead:
            cell.__init__(packet.tag, packet.kind, packet.block)
        if (cell.kind, cell.block) != (packet.kind, packet.block):
            return self._count("refused")
        if port in cell.present:
            return self._again(port, cell, packet)
        self._count("new")
        self._add(port, cell, packet)
        if len(cell.present) < len(self.children):
            return None
        self._count("complete")
        cell.holds_result = not self.has_parent
        return self._answer(set(self.children), cell, packet)

    def _again(self, port: int, cell: Cell, packet: Packet) -> tuple[set[int], Packet] | None:
        self._count("duplicate")
        if len(cell.present) < len(self.children):
            return None
        if not cell.holds_result and port != self.children[0]:
            return None
        self._count("repeated" if cell.holds_result else "partial_repeated")
        return self._answer({port}, cell, packet)

    def _add(self, port: int, cell: Cell, packet: Packet) -> None:
        cell.present.add(port)
        if packet.next < cell.next or len(cell.present) == 1:
            cell.next, cell.exponent = packet.next, packet.exponent
        elif packet.next == cell.next:
            cell.exponent = max(cell.exponent, packet.exponent)
        if packet.values is not None and cell.values is not None:
            pairs = zip(cell.values, packet.values, strict=True)
            cell.values = tuple((a + b) % 2**32 for a, b in pairs)
        elif packet.values is not None:
            cell.values = packet.values
        if packet.shapes is not None:
            shapes = (*(cell.shapes or ()), *packet.shapes)
            cell.shapes = min(shapes), max(shapes)

    def _answer(self, ports: set[int], cell: Cell, packet: Packet) -> tuple[set[int], Packet]:
        found = replace(
            packet,
            next=cell.next,
            exponent=cell.exponent,
            values=cell.values,
            shapes=cell.shapes,
        )
        if cell.holds_result:
            return ports, replace(found, kind=packet.kind | RESULT)
        return {UPLINK}, found
