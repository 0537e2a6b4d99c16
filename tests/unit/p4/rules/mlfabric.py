"""p4/mlfabric.p4 against systems/mlfabric/README.md."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from conversations import Conversation, Step
from frames import ETHERNET, UDP, ipv4, udp_checksum, worker_address, worker_mac
from tables import Entry, Setup, neighbour, number, owner

from rules import Rules

LANES, SLOTS, JOB, INDEX = 5, 6, 3, 2
FIRST_CELL, CELLS = 2, 3
OTHER_CELLS = (0, FIRST_CELL - 1, FIRST_CELL + CELLS, SLOTS, 65535)
WORKERS, SERVER, SERVER_PORT = (1, 2, 3, 4), 7, 0xB000 + 4 * JOB
SUMMED, PUSH = 0x55, 0x54
MESSAGE, HEAD = "!BBHIHBBII", "!IIIHH"
COUNTERS = {
    "new": "push_new",
    "duplicate": "push_duplicate",
    "stale": "push_stale",
    "refused": "push_refused",
    "complete": "chunk_complete",
}


@dataclass(frozen=True)
class Push:
    """What a worker sends to be summed. present: None for its own bit."""

    port: int
    group: int
    members: int
    values: tuple[int, ...]
    chunk: int = 0
    cell: int = FIRST_CELL
    present: int | None = None
    kind: int = SUMMED
    version: int = 1
    job: int = JOB

    @property
    def bit(self) -> int:
        return 1 << WORKERS.index(self.port)

    @property
    def fits(self) -> bool:
        """Whether a member of its group sends such."""
        in_room = FIRST_CELL <= self.cell < FIRST_CELL + CELLS
        own = self.present in (None, self.bit) and self.members & self.bit != 0
        return own and in_room and self.version == 1


def frame(push: Push, checked: bool = True, padding: bytes = b"") -> bytes:
    present = push.bit if push.present is None else push.present
    body = struct.pack(MESSAGE, push.version, push.kind, push.job, 1, 1, 0, 0, 77, 0)
    body += struct.pack(HEAD, push.group, push.members, present, push.cell, push.chunk)
    body += struct.pack(f"!{LANES}I", *push.values) + padding
    source, to = worker_address(push.port), worker_address(SERVER)
    head = [48865 + JOB, SERVER_PORT, 8 + len(body)]
    check = udp_checksum(source, to, struct.pack(UDP, *head, 0) + body) if checked else 0
    ethernet = struct.pack(ETHERNET, worker_mac(SERVER), worker_mac(push.port), 0x0800)
    return ethernet + ipv4(struct.pack(UDP, *head, check) + body, source, to)


@dataclass
class Cell:
    """What the program's registers hold, by the rules of the page."""

    group: int = 0
    chunk: int = 0
    members: int = 0
    values: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def take(self, push: Push) -> tuple[str, tuple[int, ...] | None]:
        """What is counted, and the sum if one leaves."""
        ahead = (push.group - self.group) % 2**32
        if self.values and ahead >= 2**31:
            return "stale", None
        if not self.values or ahead or push.chunk != self.chunk:
            self.group, self.chunk, self.members = push.group, push.chunk, push.members
            self.values = {}
        elif push.members != self.members:
            return "refused", None
        if push.bit in self.values:
            return "duplicate", None
        self.values[push.bit] = push.values
        if sum(self.values) != self.members:
            return "new", None
        columns = zip(*self.values.values(), strict=True)
        return "complete", tuple(sum(column) % 2**32 for column in columns)


def job_at_server(workers: Sequence[int] = WORKERS) -> Setup:
    """The workers by port, and the server's own."""
    setup = Setup(entries=[neighbour(worker_mac(SERVER), SERVER)])
    for rank, port in enumerate(workers):
        key: dict[str, int | tuple[int, int]] = {
            "ingress_port": port,
            "hdr.ipv4.src": number(worker_address(port)),
            "hdr.ipv4.dst": number(worker_address(SERVER)),
            "hdr.udp.dst_port": SERVER_PORT,
            "hdr.message.job": JOB,
        }
        room = {"first_cell": FIRST_CELL, "cells": CELLS}
        arguments = {"job_index": INDEX, "worker": 1 << rank, **room}
        setup.entries.append(Entry("members", key, "contribute", arguments))
        setup.entries.append(owner(port, worker_address(port)))
    return setup


def random_push(chance: random.Random, base: int) -> Push:
    """Of a few groups, which share cells; one in eight is what no member of its group sends."""
    push = Push(
        chance.choice(WORKERS),
        (base + chance.randrange(4)) % 2**32,
        chance.randrange(1, 16),
        tuple(chance.randrange(2**32) for _ in range(LANES)),
        chunk=chance.randrange(2),
        cell=FIRST_CELL + chance.randrange(CELLS),
    )
    push = replace(push, members=push.members | push.bit)
    if chance.random() >= 1 / 8:
        return push
    return chance.choice(
        (
            replace(push, members=push.members & ~push.bit),
            replace(push, present=push.members ^ push.bit),
            replace(push, cell=chance.choice(OTHER_CELLS)),
            replace(push, version=2),
        )
    )


def at_random(chance: random.Random, length: int = 250) -> Conversation:
    """What leaves is what the model of a cell says, or what came if it is not to be summed."""
    cells = {cell: Cell() for cell in range(FIRST_CELL, FIRST_CELL + CELLS)}
    base = chance.choice((1, 2**31 - 2, 2**32 - 2))
    counts: Counter[str] = Counter()
    steps = []
    for _ in range(length):
        push, checked = random_push(chance, base), chance.random() < 7 / 8
        sent, out = frame(push, checked), []
        if chance.random() < 1 / 16:
            sent = frame(replace(push, kind=PUSH), checked)
            out = [(SERVER, sent)]
        elif checked and chance.random() < 1 / 16:
            sent = sent[:-1] + bytes([sent[-1] ^ 1])  # the checksum is another's
            counts["refused"] += 1
        elif not push.fits:
            counts["refused"] += 1
        else:
            what, total = cells[push.cell].take(push)
            counts.update(("new", "complete") if what == "complete" else (what,))
            if total is not None:
                whole = replace(push, values=total, present=push.members)
                out = [(SERVER, frame(whole))]
        steps.append(Step(push.port, sent, out))
    known = {f"aggregation.{name}({INDEX})": counts[what] for what, name in COUNTERS.items()}
    return Conversation(job_at_server(), steps, known)


RULES = Rules(
    "mlfabric",
    {"LANES": LANES, "SLOTS": SLOTS},
    {"cells": at_random},
    members=job_at_server(WORKERS[:3]),
)
