"""What systems/pooling/README.md and systems/esa/README.md say a switch does with a packet, in
plain Python; its frames. `receive` returns what leaves: (port, packet)."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from frames import AGGREGATION, to_aggregator

INT32, SCALED, FLOAT32, MISMATCH, RESULT = 0x50, 0x51, 0x52, 0x53, 0x80
RESEND, COLLISION, OVERFLOW, CONGESTED, EVICTED = 1, 2, 4, 8, 16
POOLED = "!IIIIBBH"
PACKED = 12 + 20


@dataclass(frozen=True)
class Packet:
    """Fields as in systems/pooling/README.md; values: none in a MISMATCH."""

    job: int
    slot: int
    tag: int
    kind: int = INT32
    values: tuple[int, ...] = ()
    session: int = 1
    digest: int = 7
    oldest: int = 0
    members: int = 0
    flags: int = 0
    priority: int = 0
    attempt: int = 0
    exponent: int = 0
    version: int = 1
    zero: int = 0

    @property
    def chunk(self) -> tuple[int, int, int, int]:
        return self.job, self.session, self.digest, self.tag

    @property
    def sent_before(self) -> bool:
        return bool(self.flags & (RESEND | EVICTED))

    def payload(self) -> bytes:
        head = (self.version, self.kind, self.job, self.slot, self.exponent, self.attempt, self.tag)
        pooled = (self.session, self.digest, self.oldest, self.members, self.flags, self.priority)
        values = struct.pack(f"!{len(self.values)}I", *self.values)
        return struct.pack(AGGREGATION, *head) + struct.pack(POOLED, *pooled, self.zero) + values


def frame(port: int, packet: Packet) -> bytes:
    """As whoever is at `port` sends it to switches."""
    return to_aggregator(port, packet.job, packet.payload())


def parse(payload: bytes) -> Packet:
    """The packet in a UDP payload."""
    version, kind, job, slot, exponent, attempt, tag = struct.unpack_from(AGGREGATION, payload)
    *pooled, zero = struct.unpack_from(POOLED, payload, 12)
    values = struct.unpack(f"!{(len(payload) - PACKED) // 4}I", payload[PACKED:])
    rest = (attempt, exponent, version, zero)
    return Packet(job, slot, tag, kind, values, *pooled, *rest)


@dataclass(frozen=True)
class Place:
    """A job at a switch. workers: port -> its bit; switches: port -> the bits of the workers below;
    up: the port towards its server."""

    job: int
    index: int
    workers: Mapping[int, int]
    switches: Mapping[int, int]
    up: int
    group: int

    @property
    def below(self) -> dict[int, int]:
        return {**self.workers, **self.switches}

    @property
    def everybody(self) -> int:
        return sum(self.below.values())


@dataclass
class Slot:
    chunk: tuple[int, int, int, int]
    members: int
    values: tuple[int, ...]
    kind: int
    overflow: int = 0
    priority: int = 0
    spent: bool = False
    displaced: int | None = None
    """The kind of the chunk from which this one took the slot over, if it did."""


def total(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple((x + y) % 2**32 for x, y in zip(a, b, strict=True))


def is_before(a: int, b: int) -> bool:
    """Of numbers that go around."""
    return (a - b) % 2**32 >= 2**31


@dataclass
class Switch:
    """preempts: as ESA does it. lanes: of a packet. taken: by number of slot; counts: (what, index
    of a job, None for no job). reached: how often each rare state was."""

    places: list[Place]
    slots: int
    lanes: int
    preempts: bool = False
    taken: dict[int, Slot] = field(default_factory=dict)
    counts: Counter[tuple[str, int | None]] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)

    def receive(self, port: int, packet: Packet) -> list[tuple[int, Packet]]:
        place = self._place(packet.job)
        known = self._admit(place, port, packet)
        if place is None or known is None:
            self.counts["refused", place.index if place else None] += 1
            return []
        if packet.kind & RESULT:
            return self._result(place, known)
        if packet.kind == FLOAT32:
            return self._up(place, known, "passed")
        slot = self.taken.get(packet.slot)
        if slot and slot.chunk == known.chunk:
            return self._own(place, slot, known)
        if known.sent_before:
            return self._up(place, known, "passed")
        if slot is None or slot.spent or self._is_over(slot, known):
            self.reached["claims a spent slot"] += slot is not None and slot.spent
            self.reached["claims a slot of a chunk that is over"] += bool(slot and not slot.spent)
            return self._claim(place, known)
        if self.preempts and known.priority > slot.priority:
            return self._take_over(place, slot, known)
        if self.preempts:
            slot.priority = max(0, slot.priority - 1)
        return self._collide(place, known)

    def _place(self, job: int) -> Place | None:
        return next((place for place in self.places if place.job == job), None)

    def _admit(self, place: Place | None, port: int, packet: Packet) -> Packet | None:
        """The packet with what the switch knows of its sender; None if it is refused."""
        kind = packet.kind & ~RESULT
        if place is None or kind not in (INT32, SCALED, FLOAT32, MISMATCH):
            return None
        wrong = packet.version != 1 or packet.zero or not packet.session
        length = 0 if kind == MISMATCH else self.lanes
        if wrong or packet.slot >= self.slots or len(packet.values) != length:
            return None
        if packet.kind & RESULT:
            return packet if port == place.up else None
        if kind == MISMATCH:
            return None
        if port in place.workers:
            flags = packet.flags & (RESEND | OVERFLOW)
            return replace(packet, members=place.workers[port], flags=flags)
        if packet.members and not packet.members & ~place.switches.get(port, 0):
            return packet
        return None

    def _is_over(self, slot: Slot, packet: Packet) -> bool:
        """The packet's sender knows that nobody waits for the slot's chunk."""
        job, session, _, tag = slot.chunk
        if job != packet.job:
            return False
        if session != packet.session:
            return is_before(session, packet.session)
        return is_before(tag, packet.oldest)

    def _up(self, place: Place, packet: Packet, what: str) -> list[tuple[int, Packet]]:
        self.counts[what, place.index] += 1
        return [(place.up, packet)]

    def _collide(self, place: Place, packet: Packet) -> list[tuple[int, Packet]]:
        return self._up(place, replace(packet, flags=packet.flags | COLLISION), "collided")

    def _result(self, place: Place, packet: Packet) -> list[tuple[int, Packet]]:
        slot = self.taken.get(packet.slot)
        if slot and slot.chunk == packet.chunk:
            del self.taken[packet.slot]
        for port, bits in place.below.items():
            if packet.members & bits and packet.members.bit_count() == 1:
                self.counts["to_one", place.index] += 1
                return [(port, packet)]
        self.counts["to_all", place.index] += 1
        return [(port, packet) for port in place.below]

    def _claim(self, place: Place, packet: Packet) -> list[tuple[int, Packet]]:
        self._hold(packet)
        self.reached["complete with its first packet"] += packet.members == place.everybody
        return self._contributed(place, packet)

    def _hold(self, packet: Packet) -> None:
        self.taken[packet.slot] = Slot(
            packet.chunk,
            packet.members,
            packet.values,
            packet.kind,
            packet.flags & OVERFLOW,
            packet.priority,
        )

    def _own(self, place: Place, slot: Slot, packet: Packet) -> list[tuple[int, Packet]]:
        """The packet's chunk has the slot."""
        both = slot.members & packet.members
        if slot.spent:
            return self._up(place, packet, "passed")
        if packet.sent_before:
            if both not in (0, packet.members):
                return self._up(place, packet, "passed")
            if not both:
                self._add(slot, packet)
            self.reached["released with its values" if both else "released and merged"] += 1
            self.reached["released after a take-over"] += slot.displaced is not None
            slot.spent = True
            return self._up(place, self._sum(slot, packet), "released")
        if not both:
            self._add(slot, packet)
            return self._contributed(place, packet)
        if both == packet.members:
            self.counts["duplicate", place.index] += 1
            return []
        return self._collide(place, packet)

    def _add(self, slot: Slot, packet: Packet) -> None:
        slot.values = total(slot.values, packet.values)
        slot.members |= packet.members
        slot.overflow |= packet.flags & OVERFLOW

    def _contributed(self, place: Place, packet: Packet) -> list[tuple[int, Packet]]:
        self.counts["new", place.index] += 1
        slot = self.taken[packet.slot]
        if slot.members != place.everybody:
            return []
        if self.preempts:
            del self.taken[packet.slot]
        return self._up(place, self._sum(slot, packet), "complete")

    def _sum(self, slot: Slot, packet: Packet) -> Packet:
        flags = packet.flags | slot.overflow
        return replace(packet, members=slot.members, values=slot.values, flags=flags)

    def _reach(self, slot: Slot, packet: Packet) -> None:
        """Counts the rare states in which a chunk takes over a slot."""
        states = {
            "another kind": slot.kind != packet.kind,
            "a chunk that took over from another kind": slot.displaced not in (None, slot.kind),
            "several members": slot.members.bit_count() > 1,
            "overflow": bool(slot.overflow),
            "its own job": slot.chunk[0] == packet.job,
        }
        self.reached.update(f"takes over from {name}" for name, is_so in states.items() if is_so)

    def _take_over(self, place: Place, slot: Slot, packet: Packet) -> list[tuple[int, Packet]]:
        self.counts["new", place.index] += 1
        self._reach(slot, packet)
        self._hold(packet)
        self.taken[packet.slot].displaced = slot.kind
        job, session, digest, tag = slot.chunk
        evicted = replace(
            packet,
            job=job,
            session=session,
            digest=digest,
            tag=tag,
            oldest=tag,
            kind=slot.kind,
            members=slot.members,
            values=slot.values,
            attempt=0,
            flags=EVICTED | slot.overflow,
        )
        whose = self._place(job)
        assert whose
        return self._up(whose, evicted, "evicted")
