"""What systems/netrpc/README.md says the switch that executes a job's calls does with a packet, in
plain Python; its frames. `receive` returns what leaves: (ports, packet)."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, field, replace

from frames import (
    AGGREGATION,
    AGGREGATOR,
    AGGREGATOR_MAC,
    AGGREGATOR_PORT,
    ETHERNET,
    UDP,
    ipv4,
    udp_checksum,
    worker_address,
    worker_mac,
)

NOTHING, ARRAY, MAP, RESULT = 0x40, 0x41, 0x42, 0x80
CALL = "!IHH"
PAIRS, NO_PLACE, POSITIONS, COUNT_MAX = 32, 0xFFFF, 256, 0xFFFF
Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Packet:
    """pairs: (place, value) of each pair."""

    job: int
    position: int
    sequence: int
    method: int
    epoch: int = 0
    word: int = 0
    count: int = 0
    values: tuple[int, ...] | None = None
    pairs: Pairs | None = None
    result: bool = False
    attempt: int = 0

    @property
    def kind(self) -> int:
        return ARRAY if self.values is not None else MAP if self.pairs is not None else NOTHING

    def payload(self) -> bytes:
        kind = self.kind | (RESULT if self.result else 0)
        head = (1, kind, self.job, self.position, self.word, self.attempt, self.sequence)
        values = struct.pack(f"!{len(self.values or ())}I", *(self.values or ()))
        pairs = b"".join(struct.pack("!HI", *pair) for pair in self.pairs or ())
        call = struct.pack(CALL, self.epoch, self.method, self.count)
        return struct.pack(AGGREGATION, *head) + call + values + pairs


def frame(port: int, packet: Packet) -> bytes:
    """As the worker at `port` sends it."""
    body, source = packet.payload(), worker_address(port)
    head = [48865 + packet.job, AGGREGATOR_PORT, 8 + len(body)]
    check = udp_checksum(source, AGGREGATOR, struct.pack(UDP, *head, 0) + body)
    datagram = struct.pack(UDP, *head, check) + body
    ethernet = struct.pack(ETHERNET, AGGREGATOR_MAC, worker_mac(port), 0x0800)
    return ethernet + ipv4(datagram, source, AGGREGATOR)


def read(port: int, got: bytes) -> Packet:
    """The packet in a frame that a switch sent to the worker at `port`; all that such a frame must
    say is asserted."""
    target, source, ethertype = struct.unpack_from(ETHERNET, got)
    assert (target, source, ethertype) == (worker_mac(port), AGGREGATOR_MAC, 0x0800)
    total, address = struct.unpack_from("!H", got, 16)[0], got[30:34]
    assert (total, got[26:30], address) == (len(got) - 14, AGGREGATOR, worker_address(port))
    source_port, to_port, length, check = struct.unpack_from(UDP, got, 34)
    assert (source_port, length) == (AGGREGATOR_PORT, total - 20)
    assert check == udp_checksum(AGGREGATOR, address, got[34:40] + b"\0\0" + got[42:])
    found = parse(got[42:])
    assert to_port == 48865 + found.job
    return found


def parse(payload: bytes) -> Packet:
    """The packet in a UDP payload."""
    version, kind, job, position, word, attempt, sequence = struct.unpack_from(AGGREGATION, payload)
    epoch, method, count = struct.unpack_from(CALL, payload, 12)
    assert version == 1
    body, values, pairs = payload[20:], None, None
    if kind & ~RESULT == ARRAY:
        values = struct.unpack(f"!{len(body) // 4}I", body)
    elif kind & ~RESULT == MAP:
        assert len(body) == PAIRS * 6
        pairs = tuple(struct.iter_unpack("!HI", body))
    else:
        assert kind & ~RESULT == NOTHING and not body
    result = bool(kind & RESULT)
    return Packet(
        job, position, sequence, method, epoch, word, count, values, pairs, result, attempt
    )


@dataclass(frozen=True)
class Method:
    argument: int
    opens: bool = False
    gathers: bool = False
    adds: bool = False
    gets: bool = False
    clears: bool = False
    counts: bool = False


@dataclass
class Gather:
    turn: int = 0
    arrived: int = 0
    method: int = 0
    word: int = 0
    values: tuple[int, ...] | None = None


@dataclass
class Switch:
    """The root of one job: its workers' ports, by rank."""

    job: int
    workers: tuple[int, ...]
    methods: dict[int, Method]
    slots: int
    window: int
    cells: int
    epoch: int = 0
    sequences: dict[tuple[int, int], int] = field(default_factory=dict)
    outcomes: dict[tuple[int, int], int] = field(default_factory=dict)
    gathers: dict[tuple[int, int], Gather] = field(default_factory=dict)
    values: dict[tuple[int, int], int] = field(default_factory=dict)
    tallies: dict[int, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def receive(self, port: int, packet: Packet, now_us: int) -> tuple[set[int], Packet] | None:
        method = self.methods.get(packet.method)
        if port not in self.workers or packet.job != self.job or packet.result or method is None:
            return self._count("refused")
        if not self._legal(method, packet):
            return self._count("refused")
        if not method.opens and (self.epoch == 0 or packet.epoch != self.epoch):
            return self._count("lost")
        at = port, packet.position
        last = self.sequences.get(at, 0)
        ahead = (packet.sequence - last) % 2**32
        if last and ahead >= 2**31:
            return self._count("stale")
        if last and ahead > 1 and packet.sequence >> 20 == last >> 20:
            return self._count("refused")
        if last and ahead == 0:
            return self._again(port, method, packet)
        self.sequences[at] = packet.sequence
        if method.gathers:
            return self._gather(method, packet, now_us)
        self._count("new")
        self._count("single")
        return {port}, self._touched(method, packet, at)

    def _legal(self, method: Method, packet: Packet) -> bool:
        used = [place for place, _ in packet.pairs or () if place != NO_PLACE]
        return (
            packet.kind == method.argument
            and packet.sequence != 0
            and packet.position < min(self.window, POSITIONS)
            and not (method.gathers and packet.position >= self.slots)
            and all(place < self.cells for place in used)
            and not (method.counts and (packet.pairs or ((NO_PLACE, 0),))[0][0] >= self.cells)
        )

    def _count(self, what: str) -> None:
        self.counts[what] += 1

    def _answer(self, method: Method, packet: Packet, **more: object) -> Packet:
        kept = replace(packet, result=True, epoch=self.epoch, count=0)
        if not method.gets:
            kept = replace(kept, values=None, pairs=None)
        return replace(kept, **more)

    def _gather(
        self, method: Method, packet: Packet, now_us: int
    ) -> tuple[set[int], Packet] | None:
        cell = self.gathers.setdefault((packet.position, packet.sequence % 2), Gather())
        ahead = (packet.sequence - cell.turn) % 2**32
        if cell.turn and ahead >= 2**31:
            return self._count("stale")
        if not cell.turn or ahead:
            cell.__init__(packet.sequence, 0, packet.method)
        elif cell.method != packet.method:
            return self._count("refused")
        self._count("new")
        cell.arrived += 1
        cell.word = max(cell.word, packet.word)
        if packet.values is not None:
            so_far = cell.values or (0,) * len(packet.values)
            pairs = zip(so_far, packet.values, strict=True)
            cell.values = tuple((a + b) % 2**32 for a, b in pairs)
        if cell.arrived < len(self.workers):
            return None
        self._count("complete")
        if method.opens:
            self.epoch = now_us % 2**32 | 1
            self.values, self.tallies = {}, {}
        values = cell.values if method.gets else None
        return set(self.workers), self._answer(method, packet, word=cell.word, values=values)

    def _again(self, port: int, method: Method, packet: Packet) -> tuple[set[int], Packet] | None:
        self._count("duplicate")
        if method.gathers:
            cell = self.gathers.get((packet.position, packet.sequence % 2), Gather())
            if (cell.turn, cell.method) != (packet.sequence, packet.method):
                return None
            if cell.arrived < len(self.workers):
                return None
            values = cell.values if method.gets else None
            found = self._answer(method, packet, word=cell.word, values=values)
        elif method.counts:
            found = self._answer(
                method, packet, count=self.outcomes.get((port, packet.position), 0)
            )
        else:
            found = self._answer(method, packet, **self._got(method, packet))
        self._count("single")
        return {port}, found

    def _got(self, method: Method, packet: Packet) -> dict[str, Pairs]:
        """What the method gets of the pairs; one that is not used shows its register's first."""
        if not method.gets:
            return {}
        assert packet.pairs is not None
        places = [place for place, _ in packet.pairs]
        held = [self.values.get((i, 0 if p == NO_PLACE else p), 0) for i, p in enumerate(places)]
        return {"pairs": tuple(zip(places, held, strict=True))}

    def _touched(self, method: Method, packet: Packet, at: tuple[int, int]) -> Packet:
        assert packet.pairs is not None
        if method.counts:
            place = packet.pairs[0][0]
            held = min(COUNT_MAX, self.tallies.get(place, 0) + 1)
            self.tallies[place] = self.outcomes[at] = 0 if method.clears else held
            return self._answer(method, packet, count=self.tallies[place])
        for pair, (place, value) in enumerate(packet.pairs):
            if place != NO_PLACE and method.adds:
                self.values[pair, place] = (self.values.get((pair, place), 0) + value) % 2**32
            if place != NO_PLACE and method.clears:
                self.values[pair, place] = 0
        return self._answer(method, packet, **self._got(method, packet))
