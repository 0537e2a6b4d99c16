"""p4/omnireduce.p4 against systems/omnireduce/README.md."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from conversations import Conversation, Step
from frames import ANOTHER_SWITCH, Receiver, from_aggregator, worker
from omnireduce_model import (
    INT32,
    NONE,
    OPENING,
    RESULT,
    SCALED,
    UPLINK,
    Packet,
    Switch,
    frame,
    parse,
)
from tables import COUNTERS as SUMMING
from tables import NO_PARENT, Setup, Slots, summing
from trees import Node, kept, place_of, planted

from p4native.switch import Pipeline
from rules import Rules

LANES, SLOTS, JOB, INDEX, GROUP = 5, 4, 3, 2, 9
PORTS = (1, 2, 3)
OUTSIDERS = 16
"""The index of counters of what is in no job."""


COUNTERS = {**SUMMING, "taken_apart": "taken_apart"}
TAKING_APART = Setup(copies={0x7FFF: ((510, 2), (510, 3))})
"""The two copies of a fused packet, which leave by no port."""


def job_at(children: Sequence[int] = PORTS, parent: int = NO_PARENT, slots: int = SLOTS) -> Setup:
    """The job at a switch whose children are workers."""
    return summing(Slots(JOB, INDEX, children, 0, slots, GROUP, parent)) + TAKING_APART


def at_node(node: Node) -> Setup:
    """The job at a switch of a tree."""
    return place_of(node, JOB, INDEX, SLOTS, GROUP) + TAKING_APART


def random_packet(chance: random.Random, step: int) -> tuple[int, Packet]:
    """Around a slowly advancing tag; one packet in eight is odd in each way."""

    def odd() -> bool:
        return chance.random() < 1 / 8

    tag = max(1, 1 + step // 20 + chance.choice((-3, -1, 0, 0, 0, 0, 0, 1)))
    kind = (INT32, OPENING, SCALED)[(tag + odd()) % 3]
    kind |= RESULT if odd() else 0
    slot = chance.choice((SLOTS - 1, SLOTS, 65535)) if odd() else 0
    block = tag * 4 + odd()
    following = chance.choice((block + 4, block + 8, NONE))
    packet = Packet(JOB + odd(), slot, tag, kind, block, following, chance.randrange(256))
    if kind & ~RESULT == OPENING:
        ends = sorted(chance.getrandbits(144) for _ in range(2))
        packet = replace(packet, shapes=(ends[0], ends[1]))
    elif chance.random() < 1 / 2:
        drawn = tuple(chance.getrandbits(32) for _ in range(LANES))
        packet = replace(packet, values=drawn)
    port = chance.choice((4, UPLINK)) if odd() else chance.choice(PORTS)
    return port, packet


def random_entries(chance: random.Random, step: int, port: int, first: Packet) -> Iterator[Packet]:
    """What comes with it; nothing with what is refused, for that is refused with it."""
    taken = first.job == JOB and port in PORTS and first.slot < SLOTS and not first.kind & RESULT
    for _ in range(chance.randrange(6) if taken and chance.random() < 1 / 3 else 0):
        _, drawn = random_packet(chance, step)
        ahead = {"block": drawn.block, "next": drawn.next, "exponent": drawn.exponent}
        yield replace(first, slot=chance.randrange(5), tag=drawn.tag, values=None, **ahead)


def schedule(chance: random.Random, length: int, top: bool) -> list[tuple[int, list[Packet]]]:
    """(port, packets that came as one), many of them sent again; top: nothing comes from a
    parent."""
    kept: list[tuple[int, Packet]] = []
    schedule = []
    for step in range(length):
        port, packet = random_packet(chance, step)
        if kept and chance.random() < 1 / 3:
            port, packet = chance.choice(kept[-12:])  # sent again
        elif not packet.kind & RESULT and not top and chance.random() < 1 / 3:
            port, packet = UPLINK, replace(packet, kind=packet.kind | RESULT)
        kept.append((port, packet))
        schedule.append((port, [*random_entries(chance, step, port, packet), packet]))
    return schedule


def receiver_at(port: int) -> Receiver:
    return ANOTHER_SWITCH if port == UPLINK else worker(port, JOB)


def at_random(chance: random.Random, top: bool, length: int = 250) -> Conversation:
    """What leaves is what the model says."""
    model, steps = Switch(JOB, PORTS, SLOTS, has_parent=not top), []
    outsiders = 0
    for port, packets in schedule(chance, length, top):
        answers = model.receive_all(port, packets)
        known = port in PORTS or (port == UPLINK and not top)
        outsiders += not known or packets[-1].job != JOB
        out = [(p, from_aggregator(receiver_at(p), answer.payload())) for p, answer in answers]
        steps.append(Step(port, frame(port, *packets), out, comes_again=len(packets) > 1))
    setup = job_at(parent=NO_PARENT if top else UPLINK)
    return Conversation(setup, steps, counters(model.counts, outsiders))


def counters(counts: Mapping[str, int], outsiders: int) -> dict[str, int]:
    """Of the program's counters, what the model counted; outsiders: of no job, and refused."""
    of_job = Counter(counts)
    of_job["refused"] -= outsiders
    known = {f"aggregation.{name}({INDEX})": of_job[what] for what, name in COUNTERS.items()}
    return {**known, f"aggregation.{COUNTERS['refused']}({OUTSIDERS})": outsiders}


@dataclass
class Walker:
    """Walks column after column as the page says; own: the blocks it has, by number."""

    own: dict[int, tuple[int, ...]]
    slots: int
    tags: list[int] = field(init=False)
    blocks: list[int | None] = field(init=False)
    sums: dict[int, tuple[int, ...] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tags = [1] * self.slots
        self.blocks = [None] * self.slots  # None: the opening is in flight
        self.ended = [False] * self.slots

    def waiting(self) -> list[int]:
        return [slot for slot in range(self.slots) if not self.ended[slot]]

    def frame(self, port: int, slot: int) -> bytes:
        return frame(port, self.packet(slot))

    def packet(self, slot: int) -> Packet:
        block = self.blocks[slot]
        after = -1 if block is None else block
        mine = [b for b in self.own if b % self.slots == slot and b > after]
        following = min(mine, default=NONE)
        exponent = following * 37 % 256 if mine else 0
        if block is None:
            pair = (5, 5)
            return Packet(JOB, slot, self.tags[slot], OPENING, 0, following, exponent, shapes=pair)
        found = self.own.get(block)
        return Packet(JOB, slot, self.tags[slot], INT32, block, following, exponent, found)

    def take(self, payload: bytes) -> int | None:
        packet = parse(payload)
        slot = packet.slot
        if self.ended[slot] or packet.tag != self.tags[slot]:
            return None
        if self.blocks[slot] is not None:
            assert self.blocks[slot] == packet.block
            self.sums[packet.block] = packet.values
        self.ended[slot] = packet.next == NONE
        if self.ended[slot]:
            return None
        self.tags[slot] += 1
        self.blocks[slot] = packet.next
        assert packet.exponent == packet.next * 37 % 256
        return slot


def tree(load: Callable[[], Pipeline], chance: random.Random) -> list[Conversation]:
    """Of a switch with a worker and a switch below, which has two."""
    tree = planted(load, [1, [2]], at_node)
    drawn = lambda: tuple(chance.getrandbits(32) for _ in range(LANES))  # noqa: E731
    workers = []
    for _ in tree.places:
        workers.append(Walker({b: drawn() for b in range(24) if chance.random() < 0.3}, SLOTS))
    said = kept(tree, at_node, workers, chance, at_once=1)
    union = {block for worker in workers for block in worker.own}
    assert all(worker.sums.keys() == union for worker in workers)
    return said


RULES = Rules(
    "omnireduce",
    {"LANES": LANES, "SLOTS": SLOTS},
    {"root": partial(at_random, top=True), "leaf": partial(at_random, top=False)},
    tree=tree,
    systems=("omnireduce",),
    members=job_at(),
    refused=f"contribution_refused({OUTSIDERS})",
)
