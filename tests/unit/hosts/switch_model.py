"""The aggregating switch of docs/protocol.md as its workers meet it, and a network in virtual time
around it.

What the switch does with a contribution, aggregation_model.py says. This module spells the packet
layout out again: it shares no code with `hosts`. A guard can be taken away (`check_tags=False`), so
that tests can show what it is good for.
"""

from __future__ import annotations

import heapq
import random
import struct
from collections import Counter
from dataclasses import dataclass

from aggregation_model import INT32, OPENING, SCALED, Contribution, Member, Model

__all__ = ["HEADER", "INT32", "OPENING", "SCALED", "Faults", "JobEntry", "Network", "SwitchModel"]
HEADER = struct.Struct("!BBHHBBI")
VERSION = 1
SHAPE_BYTES = 18


@dataclass
class JobEntry:
    """What the `workers` table says about a job."""

    workers: int
    slots: int


class SwitchModel:
    """`process(port, payload)` gives (port, payload) pairs. A port is a worker's rank in a job."""

    def __init__(self, lanes: int, jobs: dict[int, JobEntry], check_tags: bool = True) -> None:
        self.lanes, self._slots = lanes, 0
        self._model = Model({}, checks_tags=check_tags)
        for job, entry in jobs.items():
            self.admit(job, entry)

    @property
    def counters(self) -> Counter[str]:
        """How many packets of all jobs were counted, by counter."""
        counted: Counter[str] = Counter()
        for (name, _), count in self._model.counts.items():
            counted[name] += count
        return counted

    def admit(self, job: int, entry: JobEntry) -> None:
        """Gives a job slots of its own."""
        everybody = (1 << entry.workers) - 1
        for rank in range(entry.workers):
            member = Member(job, 1 << rank, everybody, self._slots, entry.slots)
            self._model.members[rank, job] = member
        self._slots += entry.slots

    def process(self, port: int, payload: bytes) -> list[tuple[int, bytes]]:
        """A contribution from the worker whose rank in its job is `port`."""
        packet = self._read(payload)
        if packet is None:
            self._model.count("refused", 0)
            return []
        answer = self._model.receive(port, packet)
        if answer is None:
            return []
        receivers, result = answer
        _, _, _, _, _, attempt, _ = HEADER.unpack_from(payload)
        return [(rank, written(result, attempt)) for rank in sorted(receivers)]

    def _read(self, payload: bytes) -> Contribution | None:
        """The packet that a payload holds; None if it is malformed."""
        if len(payload) < HEADER.size:
            return None
        version, kind, job, slot, exponent, _, tag = HEADER.unpack_from(payload)
        body = payload[HEADER.size :]
        if version != VERSION or len(body) != self._body_bytes(kind):
            return None
        head = job, slot, tag, kind, exponent
        if kind != OPENING:
            return Contribution(*head, struct.unpack(f"!{self.lanes}I", body))
        shapes = (body[:SHAPE_BYTES], body[SHAPE_BYTES:])
        return Contribution(*head, shapes=tuple(int.from_bytes(shape, "big") for shape in shapes))

    def _body_bytes(self, kind: int) -> int:
        return 2 * SHAPE_BYTES if kind == OPENING else 4 * self.lanes


def written(result: Contribution, attempt: int) -> bytes:
    """The payload of a result, which names the attempt that it answers."""
    head = (VERSION, result.kind, result.job, result.slot, result.exponent, attempt, result.tag)
    shapes = b"".join(shape.to_bytes(SHAPE_BYTES, "big") for shape in result.shapes)
    return HEADER.pack(*head) + shapes + struct.pack(f"!{len(result.values)}I", *result.values)


@dataclass(frozen=True)
class Faults:
    """Chances per packet and direction, and delays in ns."""

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    delay_ns: int = 1_000_000
    jitter_ns: int = 0
    extra_ns: int = 0  # how much later a reordered packet comes, at most


class Network:
    """Event queue in virtual time between one switch and the workers of one job (rank = port)."""

    def __init__(self, switch: SwitchModel, faults: Faults, seed: int) -> None:
        self.switch, self.faults, self.random = switch, faults, random.Random(seed)
        self.now_ns = 0
        self._events: list[tuple[int, int, bool, int, bytes]] = []
        self._number = 0

    def send(self, up: bool, port: int, payload: bytes) -> None:
        """Put a packet on the link of `port`, towards the switch if `up`."""
        chance, faults = self.random.random, self.faults
        if chance() < faults.loss:
            return
        for _ in range(2 if chance() < faults.duplicate else 1):
            delay = faults.delay_ns + self.random.randrange(faults.jitter_ns + 1)
            if chance() < faults.reorder:
                delay += self.random.randrange(faults.extra_ns + 1)
            self._number += 1
            heapq.heappush(self._events, (self.now_ns + delay, self._number, up, port, payload))

    def next_ns(self) -> int:
        """When the next packet arrives; the largest int64 if none does."""
        return self._events[0][0] if self._events else 2**63 - 1

    def step(self, gather_ns: int = 0) -> dict[int, list[bytes]]:
        """Deliver the next packet and all that arrive within `gather_ns` of it; the clock moves to
        the last. Gives what came to each worker."""
        arrived: dict[int, list[bytes]] = {}
        until = self.next_ns() + gather_ns
        while self._events and self.next_ns() <= until:
            self.now_ns, _, up, port, payload = heapq.heappop(self._events)
            if up:
                for target, result in self.switch.process(port, payload):
                    self.send(False, target, result)
            else:
                arrived.setdefault(port, []).append(payload)
        return arrived
