"""p4/switchml.p4 against docs/protocol.md."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aggregation_model import INT32, OPENING, RESULT, Contribution
from conversations import Conversation, Step
from frames import ANOTHER_SWITCH, aggregation, contribution, from_aggregator, parse, worker
from schedules import JOBS, SLOTS, jobs_model, schedule, two_jobs
from tables import COUNTERS, Setup, Slots, summing
from trees import UPLINK, Node, kept, place_of, planted

from p4native.switch import Pipeline
from rules import Rules

LANES, JOB, GROUP = 5, 3, 9
JOB_COUNTERS = ("new", "duplicate", "stale", "refused", "complete", "repeated")
OUTSIDERS = 16
"""The index of counters of what is in no job."""
FIRST_TAG = 2**31 + 2
"""Further from 0 than any tag is ahead of another."""


def two_jobs_at_random(chance: random.Random, length: int = 250) -> Conversation:
    """Contributions to both jobs; what leaves is what the model says."""
    model, steps = jobs_model(), []
    for port, packet in schedule(chance, length, LANES):
        receivers, result = model.receive(port, packet) or (set(), None)
        out = [
            (to, from_aggregator(worker(to, packet.job), aggregation(result)))
            for to in sorted(receivers)
            if result
        ]
        steps.append(Step(port, contribution(port, packet), out))
    indices = (*(index for _, index, *_ in JOBS), OUTSIDERS)
    counters = {
        f"aggregation.{COUNTERS[what]}({index})": model.counts[what, index]
        for what in JOB_COUNTERS
        for index in indices
    }
    assert all(sum(model.counts[what, i] for i in indices) for what in JOB_COUNTERS) or length < 250
    return Conversation(two_jobs(), steps, counters)


def up_and_down(chance: random.Random) -> Conversation:
    """Chunks at a switch of two workers that has a parent, with every repetition there may be."""
    kinds = (OPENING, INT32, OPENING, OPENING, INT32)
    steps = [
        step for tag, kind in enumerate(kinds, FIRST_TAG) for step in _chunk(tag, kind, chance)
    ]
    often = {"complete": 1, "partial_repeated": 1, "final_new": 1, "final_unneeded": 2}
    counters = {f"{COUNTERS[what]}(0)": n * len(kinds) for what, n in often.items()}
    return Conversation(summing(Slots(JOB, 0, (1, 2), 0, SLOTS, GROUP, UPLINK)), steps, counters)


def _chunk(tag: int, kind: int, chance: random.Random) -> Iterator[Step]:
    def packet(result: bool = False) -> Contribution:
        values = tuple(chance.getrandbits(32) for _ in range(LANES))
        shapes = tuple(sorted(chance.getrandbits(144) for _ in range(2)))
        body = ((), shapes) if kind == OPENING else (values, ())
        return Contribution(JOB, 2, tag, kind | RESULT * result, chance.randrange(256), *body)

    first, second, final = packet(), packet(), packet(result=True)
    sums = tuple((a + b) % 2**32 for a, b in zip(first.values, second.values, strict=True))
    shapes = sorted((*first.shapes, *second.shapes))
    exponent = max(first.exponent, second.exponent)
    ends = (shapes[0], shapes[-1]) if shapes else ()
    partial = Contribution(JOB, 2, tag, kind, exponent, sums, ends)

    def answered(*ports: int) -> list[tuple[int, bytes]]:
        return [(p, from_aggregator(worker(p, JOB), aggregation(final))) for p in ports]

    up = [(UPLINK, from_aggregator(ANOTHER_SWITCH, aggregation(partial)))]
    down = from_aggregator(ANOTHER_SWITCH, aggregation(final))
    one, two = contribution(1, first), contribution(2, second)
    yield Step(UPLINK, down)  # a final sum that nobody awaits yet
    yield from (Step(1, one), Step(2, two, up))
    yield from (Step(1, one, up), Step(2, two))  # the first child speaks for both
    yield from (Step(UPLINK, down, answered(1, 2)), Step(UPLINK, down))
    yield from (Step(2, two, answered(2)), Step(1, one, answered(1)))


def value(rank: int, slot: int, tag: int) -> tuple[int, ...]:
    return tuple(
        (0x9E3779B9 * (rank + 2) + slot * 977 + tag * 31 + i) % 2**32 for i in range(LANES)
    )


def packet(rank: int, slot: int, tag: int) -> Contribution:
    """Every third chunk is an opening; largest exponent and both shapes are other workers' each
    time."""
    exponent = (rank * 53 + tag * 29) % 256
    if tag % 3 == 0:
        shape = (rank * 53 + tag * 29 + slot) % 256 << 120 | rank
        return Contribution(JOB, slot, tag, OPENING, exponent, shapes=(shape, shape))
    return Contribution(JOB, slot, tag, INT32, exponent, value(rank, slot, tag))


def expected(workers: int, slot: int, tag: int) -> Contribution:
    parts = [packet(rank, slot, tag) for rank in range(workers)]
    sums = tuple(sum(v) % 2**32 for v in zip(*(p.values for p in parts), strict=True))
    exponent = max(p.exponent for p in parts)
    shapes = [shape for p in parts for shape in p.shapes]
    ends = (min(shapes), max(shapes)) if shapes else ()
    return Contribution(JOB, slot, tag, parts[0].kind | RESULT, exponent, sums, ends)


@dataclass
class Walker:
    """A worker of so many chunks in each slot."""

    rank: int
    workers: int
    slots: int
    chunks: int

    def __post_init__(self) -> None:
        self.tags = [1] * self.slots

    def waiting(self) -> list[int]:
        return [slot for slot, tag in enumerate(self.tags) if tag <= self.chunks]

    def frame(self, port: int, slot: int) -> bytes:
        return contribution(port, packet(self.rank, slot, self.tags[slot]))

    def take(self, payload: bytes) -> int | None:
        got = parse(payload)
        assert got == expected(self.workers, got.slot, got.tag)
        if self.tags[got.slot] != got.tag:
            return None
        self.tags[got.slot] += 1
        return got.slot if got.tag < self.chunks else None


def tree(load: Callable[[], Pipeline], chance: random.Random) -> list[Conversation]:
    """Of a switch with a worker and a switch below, which has two."""

    def setup(node: Node) -> Setup:
        return place_of(node, JOB, 0, SLOTS, GROUP)

    tree = planted(load, [1, [2]], setup)
    count = len(tree.places)
    workers = [Walker(rank, count, 2, chunks=5) for rank in range(count)]
    return kept(tree, setup, workers, chance)


RULES = Rules(
    "switchml",
    {"LANES": LANES, "SLOTS": SLOTS},
    {"two jobs": two_jobs_at_random, "below another switch": up_and_down},
    tree=tree,
    systems=("switchml",),
    members=two_jobs(),
    refused=f"contribution_refused({OUTSIDERS})",
)
