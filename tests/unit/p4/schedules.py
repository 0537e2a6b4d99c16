"""Two jobs on one switch, and random schedules of contributions to them."""

from __future__ import annotations

import random

from aggregation_model import INT32, OPENING, SCALED, Contribution, Member, Model
from tables import FLOOD_GROUP, Setup, Slots, summing

SLOTS = 8
# (job, its index, its ports, first slot, slots); ports 2 and 3 belong to both
JOBS = [(1, 0, (1, 2, 3), 0, 4), (7, 5, (2, 3), 4, 3)]
FLOOD_PORTS = (1, 2, 3, 4)
KINDS = (INT32, OPENING, SCALED)


def jobs_model() -> Model:
    """The model with JOBS in its tables."""
    return Model(
        {
            (port, job): Member(index, 1 << rank, (1 << len(ports)) - 1, first_slot, slots)
            for job, index, ports, first_slot, slots in JOBS
            for rank, port in enumerate(ports)
        }
    )


def two_jobs() -> Setup:
    """What a switch with JOBS is given."""
    setup = Setup({FLOOD_GROUP: FLOOD_PORTS})
    for job, index, ports, first_slot, slots in JOBS:
        setup += summing(Slots(job, index, ports, first_slot, slots, group=10 + index))
    return setup


def schedule(rng: random.Random, length: int, lanes: int) -> list[tuple[int, Contribution]]:
    """(port, packet) around a slowly advancing tag: every rule meets every other. Mostly what the
    job's workers would send; one packet in eight each has a stray port, job, slot or kind."""

    def stray() -> bool:
        return rng.random() < 1 / 8

    packets = []
    for step in range(length):
        job, _, ports, _, slots = rng.choice(JOBS)
        port = rng.randrange(1, 5) if stray() else rng.choice(ports)
        slot = rng.choice((slots - 1, slots, 65535)) if stray() else 0
        tag = max(1, 1 + step // 25 + rng.choice((-3, -1, 0, 0, 0, 0, 0, 1)))
        kind = rng.choice(KINDS) if stray() else KINDS[tag % len(KINDS)]
        values: tuple[int, ...] = tuple(rng.getrandbits(32) for _ in range(lanes))
        shapes: tuple[int, ...] = ()
        if kind == OPENING:
            values, shapes = (), tuple(sorted(rng.getrandbits(144) for _ in range(2)))
        exponent, number = rng.randrange(256), 2 if stray() else job
        packets.append((port, Contribution(number, slot, tag, kind, exponent, values, shapes)))
    return packets
