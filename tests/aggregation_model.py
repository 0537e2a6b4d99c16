"""What docs/protocol.md says the switch does with a contribution, in plain Python: for the tests of
the program (unit/p4) and of the workers (unit/hosts/switch_model.py)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

INT32, SCALED, OPENING, RESULT = 0, 1, 2, 0x80


@dataclass(frozen=True)
class Contribution:
    """One packet's aggregation header and its values, or the shapes of an OPENING."""

    job: int
    slot: int
    tag: int
    kind: int = INT32
    exponent: int = 0
    values: tuple[int, ...] = ()
    shapes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Member:
    """One entry of the switch's `workers` table."""

    job_index: int
    bit: int
    everybody: int
    first_slot: int
    slots: int


@dataclass
class Cell:
    tag: int = 0
    kind: int = 0
    present: int = 0
    exponent: int = 0
    values: tuple[int, ...] = ()
    shapes: tuple[int, ...] = ()


@dataclass
class Model:
    """members is keyed by (port, job). `receive` returns (receiving ports, result) or None.
    checks_tags: without, a set is taken by whoever comes first after it was completed."""

    members: dict[tuple[int, int], Member]
    checks_tags: bool = True
    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)
    counts: Counter[tuple[str, int]] = field(default_factory=Counter)

    def receive(self, port: int, packet: Contribution) -> tuple[set[int], Contribution] | None:
        member = self.members.get((port, packet.job))
        if member is None:
            return self.count("refused", 16)
        job = member.job_index
        if packet.slot >= member.slots or packet.kind > OPENING:
            return self.count("refused", job)
        cell = self.cells.setdefault((member.first_slot + packet.slot, packet.tag % 2), Cell())
        ahead = self.ahead(packet, cell, member.everybody) if cell.present else 1
        if ahead >= 2**31:
            return self.count("stale", job)
        if ahead == 0 and cell.kind != packet.kind:
            return self.count("refused", job)
        if ahead == 0 and cell.present & member.bit:
            self.count("duplicate", job)
            if cell.present != member.everybody:
                return None
            self.count("repeated", job)
            return {port}, self.result(packet, cell)
        self.count("new", job)
        self.add(cell, packet, member.bit, is_first=ahead != 0)
        if cell.present != member.everybody:
            return None
        self.count("complete", job)
        receivers = {p for (p, j) in self.members if j == packet.job}
        return receivers, self.result(packet, cell)

    def ahead(self, packet: Contribution, cell: Cell, everybody: int) -> int:
        """By how many tags the packet is ahead of what its cell holds, modulo 2^32."""
        if self.checks_tags:
            return (packet.tag - cell.tag) % 2**32
        return int(cell.present == everybody and packet.tag != cell.tag)

    def count(self, what: str, job: int) -> None:
        self.counts[what, job] += 1

    def add(self, cell: Cell, packet: Contribution, bit: int, is_first: bool) -> None:
        if is_first:
            cell.tag, cell.kind, cell.present = packet.tag, packet.kind, 0
            cell.exponent, cell.values = packet.exponent, packet.values
            cell.shapes = packet.shapes
        else:
            cell.exponent = max(cell.exponent, packet.exponent)
            cell.values = tuple(
                (a + b) % 2**32 for a, b in zip(cell.values, packet.values, strict=True)
            )
            if cell.shapes:
                (least, most), (smallest, largest) = cell.shapes, packet.shapes
                cell.shapes = min(least, smallest), max(most, largest)
        cell.present |= bit

    def result(self, packet: Contribution, cell: Cell) -> Contribution:
        head = packet.job, packet.slot, packet.tag, packet.kind | RESULT
        return Contribution(*head, cell.exponent, cell.values, cell.shapes)
