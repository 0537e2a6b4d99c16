"""p4/atp.p4 against systems/pooling/README.md; the same of p4/esa.p4, which adds a little."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from conversations import Conversation, Step
from frames import ANOTHER_SWITCH, Receiver, from_aggregator, worker, worker_address, worker_mac
from pooling_model import (
    FLOAT32,
    INT32,
    MISMATCH,
    OVERFLOW,
    RESEND,
    RESULT,
    SCALED,
    Packet,
    Place,
    Switch,
    frame,
)
from tables import Entry, Setup, number

from rules import Rules

LANES, SLOTS, NO_JOB = 5, 4, 16
UPLINK, SERVER_BASE = 100, 40673
PRIORITIES = {3: 0, 5: 2}
"""What a job's priorities begin at; later chunks of a layer have others."""
DEFINES = {"LANES": LANES, "SLOTS": SLOTS, "ABANDONED_US": 2**40}
COUNTERS = {
    "new": "contribution_new",
    "duplicate": "contribution_duplicate",
    "collided": "contribution_collided",
    "passed": "contribution_passed",
    "refused": "contribution_refused",
    "released": "slot_released",
    "complete": "chunk_complete",
    "to_all": "result_to_all",
    "to_one": "result_to_one",
}
EVICTED = {"evicted": "slot_evicted"}
RARE = frozenset(
    {
        "claims a spent slot",
        "claims a slot of a chunk that is over",
        "released and merged",
        "released with its values",
        "complete with its first packet",
    }
)
PREEMPTING = frozenset(
    {
        "takes over from another kind",
        "takes over from a chunk that took over from another kind",
        "takes over from several members",
        "takes over from overflow",
        "takes over from its own job",
        "released after a take-over",
    }
)

ROOT = [
    Place(3, 1, {1: 1, 2: 2, 3: 4}, {}, 7, 8),
    Place(5, 2, {1: 1, 2: 2, 3: 4}, {}, 8, 9),
]
"""Two jobs with the same three hosts, whose servers are at ports 7 and 8."""
MIDDLE = [
    Place(3, 1, {1: 1}, {2: 6}, UPLINK, 8),
    Place(5, 2, {1: 2, 3: 1}, {2: 12}, UPLINK, 9),
]
"""A switch below port 2, with two workers of each; another one towards the servers."""
ALONE = [Place(3, 1, {1: 1}, {}, 7, 8), Place(5, 2, {}, {2: 12}, 8, 9)]
"""A job of one worker, and one whose workers are all below port 2, where sums are made already."""


def above(place: Place) -> Receiver:
    """Who takes what goes up."""
    if place.up == UPLINK:
        return ANOTHER_SWITCH
    return Receiver(worker_mac(place.up), worker_address(place.up), SERVER_BASE + place.job)


def receiver(place: Place, port: int) -> Receiver:
    if port == place.up:
        return above(place)
    return worker(port, place.job) if port in place.workers else ANOTHER_SWITCH


def job_at(place: Place, preempts: bool) -> Setup:
    """The groups and entries of one job."""
    of_job = {"job_index": place.index, "all": place.everybody, "parent": place.up}
    job = {"aggregation.job": place.job}
    entries = [Entry("jobs", job, "set_job", {**of_job, "group": place.group})]

    def sender(port: int, is_result: int, action: str, **arguments: int) -> None:
        key = {"ingress_port": port, **job, "is_result": is_result}
        entries.append(Entry("senders", key, action, arguments))
        to = receiver(place, port)
        key = {"egress_port": port, **job, "is_result": 1 - is_result}
        parts = {"mac": number(to.mac), "address": number(to.address), "udp_port": to.udp_port}
        entries.append(Entry("receivers", key, "to_receiver", parts))

    sender(place.up, 1, "from_above")
    for port, bits in place.below.items():
        known = {"worker": bits} if port in place.workers else {"below": bits}
        sender(port, 0, "from_worker" if port in place.workers else "from_switch", **known)
        for rank in range(bits.bit_length()):
            if bits >> rank & 1:
                key = {**job, "pooled.members": 1 << rank}
                entries.append(Entry("result_ports", key, "to_one", {"port": port}))
    if preempts:
        goes = {"job_index": place.index, "parent": place.up}
        entries.append(Entry("evicted", job, "forward_evicted", goes))
    return Setup({place.group: tuple(place.below)}, entries)


def jobs_at(places: list[Place], preempts: bool) -> Setup:
    return sum((job_at(place, preempts) for place in places), Setup())


def random_packet(chance: random.Random, step: int, places: list[Place]) -> tuple[int, Packet]:
    """(port, packet) around slowly advancing tags; one in thirty is odd in each way."""

    def odd(usual: int, *others: int) -> int:
        return chance.choice(others) if chance.random() < 1 / 30 else usual

    place = chance.choice(places)
    tag = max(0, step // 24 + chance.choice((-1, 0, 0, 0, 0, 0, 0, 1)))
    usual = INT32 if (tag + place.index) % 3 else SCALED
    kind = odd(usual, INT32, SCALED, FLOAT32, MISMATCH, 0x54, RESULT | INT32)
    port = chance.choice(tuple(place.below))
    below = place.below[port]
    members = below & chance.randrange(1, 16) or below
    flags = odd(chance.choice((0,) * 9 + (RESEND, OVERFLOW)), *range(32))
    if chance.random() < 1 / 8:
        port, kind, flags = place.up, kind | RESULT, odd(0, 8)
        alone = chance.randrange(4)
        members = chance.choice((place.everybody, place.everybody, 1 << alone))
    drawn = tuple(chance.getrandbits(32) for _ in range(LANES))
    return odd(port, 1, 4, place.up), Packet(
        odd(place.job, 9),
        odd((tag + 2 * place.index) % SLOTS, SLOTS - 1, SLOTS, 65535),
        tag,
        kind,
        drawn if kind & 0x7F in (INT32, SCALED, FLOAT32) else (),
        odd(1, 0, 2, 2**32 - 1),
        odd(7, 8),
        max(0, tag - chance.choice((1, 2, 3, 5, 9))),
        odd(members, 0, 1, 8, 15),
        flags,
        odd(PRIORITIES[place.job] + 2 * tag % 5, 1, 3, 255),
        chance.randrange(3),
        version=odd(1, 1, 1, 2),
        zero=odd(0, 0, 0, 1),
    )


def schedule(chance: random.Random, length: int, places: list[Place]) -> list[tuple[int, Packet]]:
    """Some of them are copies, and some are sent again."""
    sent: list[tuple[int, Packet]] = []
    for step in range(length):
        port, packet = random_packet(chance, step, places)
        if sent and chance.random() < 1 / 5:
            port, packet = chance.choice(sent[-12:])
            again = RESEND if not packet.kind & RESULT and chance.random() < 1 / 3 else 0
            packet = replace(packet, flags=packet.flags | again)
        sent.append((port, packet))
    return sent


def counters(counts: Mapping[tuple[str, int | None], int], places: list[Place]) -> dict[str, int]:
    """Of a program's counters, what a model counted."""
    found = Counter(counts)
    names = {**COUNTERS, **EVICTED} if any(what == "evicted" for what, _ in found) else COUNTERS
    known = {
        f"{name}({place.index})": found[what, place.index]
        for what, name in names.items()
        for place in places
    }
    return {**known, f"contribution_refused({NO_JOB})": found["refused", None]}


def at_random(
    chance: random.Random, places: list[Place], preempts: bool, length: int = 250
) -> Conversation:
    """What leaves is what the model says."""
    model, steps = Switch(places, SLOTS, LANES, preempts), []
    of_job = {place.job: place for place in places}
    for port, packet in schedule(chance, length, places):
        out = [
            (to, from_aggregator(receiver(of_job[answer.job], to), answer.payload()))
            for to, answer in model.receive(port, packet)
        ]
        steps.append(Step(port, frame(port, packet), out))
    reached = frozenset(state for state, times in model.reached.items() if times)
    counted = counters(model.counts, places)
    return Conversation(jobs_at(places, preempts), steps, counted, reached=reached)


def rules_of(program: str, preempts: bool) -> Rules:
    """Of a program that includes p4/include/pooling.p4."""
    return Rules(
        program,
        DEFINES,
        {
            "root": partial(at_random, places=ROOT, preempts=preempts),
            "middle": partial(at_random, places=MIDDLE, preempts=preempts),
            "alone": partial(at_random, places=ALONE, preempts=preempts),
        },
        systems=(program,),
        members=jobs_at(ROOT, preempts),
        refused=f"contribution_refused({NO_JOB})",
        rare=RARE | PREEMPTING if preempts else RARE,
    )


RULES = rules_of("atp", preempts=False)
