"""A model of what a switch does with every packet, according to docs/protocol.md."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from agglab.systems.switchml.verification import packets
from agglab.systems.switchml.verification.forwarding_model import Forwarding, Out
from agglab.systems.switchml.verification.packets import (
    AGGREGATOR,
    OPENING,
    RESULT,
    VERSION,
    End,
    FrameClass,
)

NO_JOB = 16
"""The index at which packets of no job are counted."""


@dataclass(frozen=True)
class Member:
    """The role of a port in a job. bit: the bit of a child; 0 for the parent. receiver: the End to
    which the port leads."""

    bit: int
    receiver: End


@dataclass(frozen=True)
class JobRole:
    """A switch's part in a job. number: the job's number on the wire. index: its position in
    counters. first_slot, slots: its slots. members: the role of each port. parent: the port to the
    switch above; None at the root."""

    number: int
    index: int
    first_slot: int
    slots: int
    members: Mapping[int, Member]
    parent: int | None

    @property
    def all_children(self) -> int:
        return sum(member.bit for member in self.members.values())


@dataclass
class Cell:
    """The state of one set of a slot. exponent, body: the aggregate of all packets that have
    arrived, or the result that the cell holds."""

    tag: int = 0
    kind: int = 0
    present: int = 0
    holds_result: bool = False
    exponent: int = 0
    body: bytes = b""


class Decision(enum.Enum):
    """What a switch does with one packet."""

    FORGED = enum.auto()
    HOST_ERROR = enum.auto()
    MALFORMED = enum.auto()
    FORWARDED = enum.auto()
    UNROUTABLE = enum.auto()
    REFUSED = enum.auto()
    STALE = enum.auto()
    FRESH = enum.auto()
    ADDED = enum.auto()
    WAITS = enum.auto()
    REPEATED = enum.auto()
    PARTIAL_REPEATED = enum.auto()
    FINAL = enum.auto()
    UNNEEDED = enum.auto()


COUNTED = {
    Decision.FORGED: ("forged",),
    Decision.HOST_ERROR: ("host_errors",),
    Decision.MALFORMED: ("malformed",),
    Decision.FORWARDED: ("forwarded",),
    Decision.UNROUTABLE: ("unroutable",),
    Decision.REFUSED: ("contribution_refused",),
    Decision.STALE: ("contribution_stale",),
    Decision.FRESH: ("contribution_new",),
    Decision.ADDED: ("contribution_new",),
    Decision.WAITS: ("contribution_duplicate",),
    Decision.REPEATED: ("contribution_duplicate", "result_repeated"),
    Decision.PARTIAL_REPEATED: ("contribution_duplicate", "partial_repeated"),
    Decision.FINAL: ("final_new",),
    Decision.UNNEEDED: ("final_unneeded",),
}
COUNTERS = sorted({*(name for names in COUNTED.values() for name in names), "chunk_complete"})
OF_FRAMES = ("forged", "host_errors", "malformed", "forwarded", "unroutable")
"""The counters of packets that do not belong to an aggregation. All other counters have an index
for each job."""
HARMLESS = {
    Decision.FORGED,
    Decision.HOST_ERROR,
    Decision.MALFORMED,
    Decision.UNROUTABLE,
    Decision.REFUSED,
    Decision.STALE,
    Decision.UNNEEDED,
    Decision.WAITS,
}
"""The decisions that change nothing and send nothing."""


class SwitchModel:
    """One switch. slots: how many slots its program has."""

    def __init__(self, lanes: int, slots: int, forwarding: Forwarding) -> None:
        self._lanes, self._slots, self._forwarding = lanes, slots, forwarding
        self.roles: dict[int, JobRole] = {}
        self._cells: dict[tuple[int, int], Cell] = {}
        self.counted: Counter[tuple[str, int]] = Counter()
        self.counted_bytes: Counter[tuple[str, int]] = Counter()

    def empty(self) -> None:
        """Empties the state, as at the start of a switch."""
        self._cells.clear()
        self.counted.clear()
        self.counted_bytes.clear()

    def cell(self, role: JobRole, slot: int, tag: int) -> Cell:
        """Returns the cell of a slot and of the set to which this tag belongs."""
        return self._cells.setdefault((role.first_slot + slot, tag & 1), Cell())

    def decide(self, port: int, frame: bytes) -> Decision:
        """Returns the decision about a frame, without changing any state."""
        return self._decide(port, packets.read(frame, self._lanes), frame)

    def process(self, port: int, frame: bytes) -> tuple[Decision, list[Out]]:
        """Handles a frame. Returns its decision, and the frames that leave."""
        parsed = packets.read(frame, self._lanes)
        decision = self._decide(port, parsed, frame)
        index = 0
        role = None
        if parsed.message is not None:
            role = self._role(port, parsed.message.job)
            index = NO_JOB if role is None else role.index
        self._count(COUNTED[decision], index, len(frame))
        outs: list[Out] = []
        if decision is Decision.FORWARDED:
            return decision, self._forwarding.outs(port, frame)
        if decision not in HARMLESS:
            assert role is not None
            outs = self._act(decision, role, port, parsed, frame)
        if role is not None and role.parent is None and self._proper(role, port, parsed):
            self._complete_at_new_root(role, parsed)
        return decision, outs

    def _complete_at_new_root(self, role: JobRole, parsed: packets.ParsedFrame) -> None:
        """Settles cells of an old session. If members were lost, such a cell may be complete at a
        switch that was not the root then. It holds the result after the next contribution, whatever
        that is."""
        assert parsed.message is not None
        cell = self.cell(role, parsed.message.slot, parsed.message.tag)
        cell.holds_result = cell.holds_result or cell.present == role.all_children

    def _role(self, port: int, job: int) -> JobRole | None:
        role = self.roles.get(job)
        return role if role is not None and port in role.members else None

    def _count(self, names: tuple[str, ...], index: int, size: int) -> None:
        for name in names:
            self.counted[name, index] += 1
            self.counted_bytes[name, index] += size

    def _decide_plain(self, port: int, frame_class: FrameClass, frame: bytes) -> Decision:
        if self._forwarding.forged(port, frame):
            return Decision.FORGED
        if frame_class is not FrameClass.PLAIN:
            return Decision[frame_class.name]
        routable = self._forwarding.routable(frame)
        return Decision.FORWARDED if routable else Decision.UNROUTABLE

    def _decide(self, port: int, parsed: packets.ParsedFrame, frame: bytes) -> Decision:
        if parsed.frame_class is not FrameClass.AGGREGATION:
            return self._decide_plain(port, parsed.frame_class, frame)
        message = parsed.message
        assert message is not None
        role = self._role(port, message.job)
        if role is None or not self._proper(role, port, parsed):
            return Decision.REFUSED
        cell = self.cell(role, message.slot, message.tag)
        if role.members[port].bit == 0:
            awaited = cell.present == role.all_children and not cell.holds_result
            same = cell.tag == message.tag and cell.kind == message.kind & ~RESULT
            return Decision.FINAL if awaited and same else Decision.UNNEEDED
        return self._decide_contribution(role, role.members[port].bit, message, cell)

    def _proper(self, role: JobRole, port: int, parsed: packets.ParsedFrame) -> bool:
        message = parsed.message
        assert message is not None
        from_parent = role.members[port].bit == 0
        return (
            parsed.sound
            and message.version == VERSION
            and message.kind & ~RESULT <= OPENING
            and bool(message.kind & RESULT) == from_parent
            and message.slot < role.slots
            and role.first_slot + message.slot < self._slots
        )

    def _decide_contribution(
        self, role: JobRole, bit: int, message: packets.Message, cell: Cell
    ) -> Decision:
        ahead = (message.tag - cell.tag) % 2**32
        if not cell.present:
            return Decision.FRESH
        if ahead:
            return Decision.STALE if ahead >= 2**31 else Decision.FRESH
        if message.kind != cell.kind:
            return Decision.REFUSED
        if not cell.present & bit:
            return Decision.ADDED
        if cell.present != role.all_children:
            return Decision.WAITS
        if cell.holds_result:
            return Decision.REPEATED
        first = role.all_children & -role.all_children
        return Decision.PARTIAL_REPEATED if bit == first else Decision.WAITS

    def _act(
        self,
        decision: Decision,
        role: JobRole,
        port: int,
        parsed: packets.ParsedFrame,
        frame: bytes,
    ) -> list[Out]:
        message = parsed.message
        assert message is not None
        cell = self.cell(role, message.slot, message.tag)
        bit = role.members[port].bit
        if decision is Decision.FINAL:
            cell.holds_result, cell.exponent, cell.body = True, message.exponent, message.body
            return self._answers(role, cell, parsed, frame)
        if decision is Decision.REPEATED:
            return [self._sent(role, port, cell, RESULT, parsed, frame)]
        if decision is Decision.PARTIAL_REPEATED:
            return self._upwards(role, cell, parsed, frame)
        if decision is Decision.FRESH:
            cell.tag, cell.kind = message.tag, message.kind
            cell.present, cell.holds_result = bit, False
            cell.exponent, cell.body = message.exponent, message.body
        else:
            cell.present |= bit
            cell.exponent = max(cell.exponent, message.exponent)
            cell.body = packets.merged(cell.kind, cell.body, message.body)
        if cell.present != role.all_children:
            return []
        self._count(("chunk_complete",), role.index, len(frame))
        if role.parent is not None:
            return self._upwards(role, cell, parsed, frame)
        cell.holds_result = True
        return self._answers(role, cell, parsed, frame)

    def _answers(
        self, role: JobRole, cell: Cell, parsed: packets.ParsedFrame, frame: bytes
    ) -> list[Out]:
        children = [port for port, member in role.members.items() if member.bit]
        return [self._sent(role, port, cell, RESULT, parsed, frame) for port in children]

    def _upwards(
        self, role: JobRole, cell: Cell, parsed: packets.ParsedFrame, frame: bytes
    ) -> list[Out]:
        if role.parent is None:
            return []
        return [self._sent(role, role.parent, cell, 0, parsed, frame)]

    def _sent(
        self,
        role: JobRole,
        port: int,
        cell: Cell,
        result: int,
        parsed: packets.ParsedFrame,
        frame: bytes,
    ) -> Out:
        """Returns a frame with the cell's contents. It has the attempt of the packet because of
        which the switch sends it. All other fields, except addresses and checksums, are those of
        that packet's frame."""
        message = parsed.message
        assert message is not None
        fields = (VERSION, cell.kind | result, message.job, message.slot)
        held = packets.Message(*fields, cell.exponent, message.attempt, cell.tag, cell.body)
        receiver = role.members[port].receiver
        made = packets.make(AGGREGATOR, receiver, held.datagram(), like=frame)
        return port, made + parsed.rest


def same(made: bytes, expected: bytes) -> bool:
    """Returns whether a switch sent what it must send. A UDP checksum of 0xffff may also be 0."""
    if made == expected:
        return True
    other = expected[:40] + b"\0\0" + expected[42:]
    return expected[40:42] == b"\xff\xff" and made == other
