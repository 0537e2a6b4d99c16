"""The aggregating switch of docs/protocol.md in plain Python, and a network in virtual time around
it.

Written from the document alone: it shares no code with `hosts` and spells the packet layout out
again. A guard can be taken away (`check_tags=False`), so that tests can show what it is good for.
"""

from __future__ import annotations

import heapq
import random
import struct
from collections import Counter
from dataclasses import dataclass, field

HEADER = struct.Struct("!BBHHBBI")
INT32, SCALED, OPENING = 0, 1, 2
SHAPE_BYTES = 18


@dataclass
class Copy:
    """One of a slot's two sets."""

    tag: int = 0
    kind: int = 0
    bitmap: int = 0
    exponent: int = 0
    values: list[int] = field(default_factory=list)
    shapes: list[bytes] = field(default_factory=list)


@dataclass
class JobEntry:
    """What the `workers` table says about a job."""

    workers: int
    slots: int


class SwitchModel:
    """`process(port, job's worker bit from the port, payload)` gives (port, payload) pairs."""

    def __init__(self, lanes: int, jobs: dict[int, JobEntry], check_tags: bool = True) -> None:
        self.lanes, self.jobs, self.check_tags = lanes, jobs, check_tags
        self.copies: dict[tuple[int, int, int], Copy] = {}
        self.counters: Counter[str] = Counter()

    def process(self, port: int, payload: bytes) -> list[tuple[int, bytes]]:
        """A contribution from the worker whose rank in its job is `port`."""
        if len(payload) < HEADER.size:
            return self._count("refused")
        version, kind, job, slot, exponent, attempt, tag = HEADER.unpack_from(payload)
        length = HEADER.size + (2 * SHAPE_BYTES if kind == OPENING else 4 * self.lanes)
        entry = self.jobs.get(job)
        if (
            entry is None
            or port >= entry.workers
            or slot >= entry.slots
            or version != 1
            or kind > OPENING
            or len(payload) != length
        ):
            return self._count("refused")
        values, shapes = [], []
        if kind == OPENING:
            middle = HEADER.size + SHAPE_BYTES
            shapes = [payload[HEADER.size : middle], payload[middle:]]
        else:
            values = list(struct.unpack_from(f"!{self.lanes}I", payload, HEADER.size))
        copy = self.copies.setdefault((job, slot, tag % 2), Copy())
        complete = (1 << entry.workers) - 1
        bit = 1 << port
        ahead = (tag - copy.tag + 2**31) % 2**32 - 2**31
        if self.check_tags and copy.bitmap and ahead < 0:
            return self._count("stale")
        # Without the guard a set is recycled by whoever comes first after it was completed.
        unchecked = copy.bitmap == complete and tag != copy.tag
        if not copy.bitmap or (ahead > 0 if self.check_tags else unchecked):
            copy.tag, copy.kind, copy.bitmap = tag, kind, bit
            copy.values, copy.exponent, copy.shapes = values, exponent, shapes
        elif copy.kind != kind:
            return self._count("refused")
        elif copy.bitmap & bit:
            self._count("duplicate")
            if copy.bitmap != complete:
                return []
            return [(port, self._result(job, slot, copy, attempt))]
        else:
            copy.bitmap |= bit
            copy.values = [(a + b) % 2**32 for a, b in zip(copy.values, values, strict=True)]
            copy.exponent = max(copy.exponent, exponent)
            if shapes:
                copy.shapes = [min(copy.shapes[0], shapes[0]), max(copy.shapes[1], shapes[1])]
        self._count("new")
        if copy.bitmap != complete:
            return []
        self._count("complete")
        return [(rank, self._result(job, slot, copy, attempt)) for rank in range(entry.workers)]

    def _result(self, job: int, slot: int, copy: Copy, attempt: int) -> bytes:
        header = HEADER.pack(1, copy.kind | 0x80, job, slot, copy.exponent, attempt, copy.tag)
        return header + b"".join(copy.shapes) + struct.pack(f"!{len(copy.values)}I", *copy.values)

    def _count(self, name: str) -> list[tuple[int, bytes]]:
        self.counters[name] += 1
        return []


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
