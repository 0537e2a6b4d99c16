"""Frames of a host that attacks jobs it has no part in; every one of them must be refused.

They spoof job, worker (addresses and port), slot, set, tag, kind and exponent, and the aggregator
itself. All are well-formed enough to be counted by the switch they reach, as refused or malformed.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence

from hosts import wire
from testbed.scenario.jobs import Tenant
from testbed.virtual.frames import Address, Framing
from topologies import Topology

HEADER = struct.Struct("!BBHHBBI")
AGGREGATOR = Address(wire.AGGREGATOR_MAC, wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_PORT)
NO_JOB, JOB_MAX = 1000, 0xFFFF
SESSION = 1 << 20


def frames(
    key: str, graph: Topology, host: str, victims: Sequence[Tenant], lanes: int
) -> Iterator[bytes]:
    """Without end; the same key gives the same frames. host: the attacker, of none of `victims`."""
    chance = random.Random(key)
    own = graph.host(host)
    while True:
        victim = chance.choice(victims)
        worker = graph.host(chance.choice(victim.hosts))
        port = wire.WORKER_PORT_BASE + victim.number
        spoofed = Address(worker.mac, worker.ip, port)
        honest = Address(own.mac, own.ip, port)
        if chance.random() < 0.2:
            way = Framing(Address(own.mac, AGGREGATOR.ip, AGGREGATOR.port), spoofed)
        else:
            way = Framing(chance.choice((honest, spoofed)), AGGREGATOR)
        yield way.frame(_payload(chance, victim, lanes))


def _payload(chance: random.Random, victim: Tenant, lanes: int) -> bytes:
    """A contribution or a result as some worker of the job, or of no job, could have sent it."""
    kind = chance.choice(list(wire.Kind)) | chance.choice((0, wire.RESULT))
    job = victim.number if chance.random() < 0.9 else chance.randrange(NO_JOB, JOB_MAX)
    slot = chance.choice((chance.randrange(victim.slots), chance.randrange(1 << 16)))
    near = chance.randrange(1, 200)
    tag = chance.choice((near, SESSION + near, chance.randrange(1 << 32)))
    header = HEADER.pack(wire.VERSION, kind, job, slot, chance.randrange(256), 0, tag)
    if kind & ~wire.RESULT == wire.Kind.EXPONENTS:
        return header
    return header + chance.randbytes(wire.VALUE_BYTES * lanes)
