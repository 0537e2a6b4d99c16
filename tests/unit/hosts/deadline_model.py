"""What docs/partial-sums.md says the switch does with a contribution, in plain Python. Values are
lists of numbers modulo 2^32; an OPENING has shapes, as numbers, in the place of values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

OPENING = 2


@dataclass(frozen=True)
class Packet:
    """A contribution, or, with `present`, a result."""

    slot: int
    tag: int
    kind: int
    exponent: int
    values: tuple[int, ...] = ()
    shapes: tuple[int, ...] = ()
    present: frozenset[int] = frozenset()


@dataclass
class Chunk:
    """What a cell holds."""

    tag: int
    kind: int
    begun_us: int
    parts: dict[int, Packet] = field(default_factory=dict)
    informed: set[int] = field(default_factory=set)
    closed: bool = False

    def result(self, slot: int) -> Packet:
        parts = list(self.parts.values())
        values = tuple(sum(lane) % 2**32 for lane in zip(*(p.values for p in parts), strict=True))
        shapes = [shape for part in parts for shape in part.shapes]
        return Packet(
            slot,
            self.tag,
            self.kind,
            max(part.exponent for part in parts),
            values,
            (min(shapes), max(shapes)) if shapes else (),
            frozenset(self.parts),
        )


@dataclass
class DeadlineModel:
    """One job at one switch. `receive` returns who gets which result, or None."""

    workers: int
    sets: int
    deadline_us: int
    chunks: dict[tuple[int, int], Chunk] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def receive(self, worker: int, packet: Packet, now_us: int) -> tuple[set[int], Packet] | None:
        """The sender has the result of the tag before."""
        before = self._at(packet.slot, packet.tag - 1)
        if before is not None:
            before.informed.add(worker)
        place = packet.slot, packet.tag % self.sets
        old = self.chunks.get(place)
        if old is None or packet.tag > old.tag:
            if old is not None and old.tag == packet.tag - self.sets and self._lacking(old, packet):
                return self._count("held")
            self.chunks[place] = Chunk(packet.tag, packet.kind, now_us)
        elif packet.tag < old.tag:
            return self._count("stale")
        elif packet.kind != old.kind:
            return self._count("refused")
        follows = before is not None and before.closed
        return self._take(worker, packet, self.chunks[place], follows, now_us)

    def lose_everything(self) -> None:
        """What a restart does."""
        self.chunks.clear()

    def _take(
        self, worker: int, packet: Packet, chunk: Chunk, follows: bool, now_us: int
    ) -> tuple[set[int], Packet] | None:
        """follows: whether the switch holds the result of the tag before."""
        if chunk.closed:
            self._count("duplicate" if worker in chunk.parts else "late")
            self._count("repeated")
            return {worker}, chunk.result(packet.slot)
        self._count("duplicate" if worker in chunk.parts else "new")
        chunk.parts.setdefault(worker, packet)
        whole = len(chunk.parts) == self.workers
        old = now_us - chunk.begun_us >= self.deadline_us and packet.kind != OPENING
        if not whole and not (old and follows):
            return None
        chunk.closed = True
        self._count("complete" if whole else "closed_early")
        return set(range(self.workers)), chunk.result(packet.slot)

    def _at(self, slot: int, tag: int) -> Chunk | None:
        found = self.chunks.get((slot, tag % self.sets))
        return found if found is not None and found.tag == tag else None

    def _lacking(self, old: Chunk, packet: Packet) -> bool:
        """Whether some worker is not known to have the result of the oldest chunk."""
        later = [self._at(packet.slot, tag) for tag in range(old.tag, packet.tag)]
        informed = {worker for chunk in later if chunk for worker in chunk.informed}
        return len(informed) < self.workers

    def _count(self, what: str) -> None:
        self.counts[what] += 1
