"""Frames with which an outsider attacks Libra: those of spoofing.py, and additional ones that
attack the sums in switches."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from agglab.hosts.part import SERVER
from agglab.systems.libra import wire
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems import spoofing
from agglab.testbed.systems.base import Agent
from agglab.testbed.systems.frames import End, ethernet, ipv4, udp
from agglab.testbed.systems.spoofing import (
    AGGREGATOR,
    FORGED,
    FORWARDED,
    AttackContext,
    Kind,
    Make,
)

REFUSED = "refused"
NEAR_ITEMS = 3


def forged(job: Job, chance: random.Random, agent: Agent) -> bytes:
    """Returns a packet that an agent would accept from a peer in the current round: an answer for a
    worker, and a request or a sum for a server."""
    own, serves = agent.configuration["settings"], agent.role == SERVER
    kinds = [kind for kind in wire.Kind if (kind < wire.FIRST_ANSWER) == serves]
    return _packet(chance, job, own["lanes"], own["session"], chance.choice(kinds))


def _packet(chance: random.Random, job: Job, lanes: int, session: int, kind: int) -> bytes:
    header = np.zeros(1, wire.HEADER)
    header["version"], header["kind"] = wire.VERSION, kind
    header["job"], header["session"] = job.number, session
    header["round"] = chance.randrange(job.rounds)
    header["digest"] = chance.randrange(2**32)
    header["server"] = chance.randrange(max(1, len(job.servers)))
    header["items"] = header["item"] = chance.randrange(NEAR_ITEMS)
    header["items"] += 1
    header["pairs"] = lanes
    named = kind >= wire.Kind.SUM
    header["workers"] = (1 << len(job.hosts)) - 1 if named else 0
    keys = kind in (wire.Kind.HOT, wire.Kind.SUM, wire.Kind.PUSH, wire.Kind.HOT_KEYS)
    return header.tobytes() + chance.randbytes((wire.KEY_BYTES * keys + wire.VALUE_BYTES) * lanes)


def _to_aggregator(spoofed: bool) -> Make:
    """Returns a maker of requests. spoofed: whether their source is a victim's address and not the
    attacker's own."""

    def make(context: AttackContext) -> list[bytes]:
        source = replace(context.agent, port=context.own.port) if spoofed else context.own
        packet = ipv4(source.ip, AGGREGATOR.ip, udp(source, AGGREGATOR, context.payload))
        return [ethernet(AGGREGATOR.mac, source.mac, packet)]

    return make


def _result_for_all(spoofed: bool) -> Make:
    """Returns a maker of packets that a switch would copy to all workers if a server had sent them.
    spoofed: whether their source is the server's address."""

    def make(context: AttackContext) -> list[bytes]:
        source = context.peer if spoofed else context.own
        to = End(context.agent.mac, context.agent.ip, AGGREGATOR.port)
        packet = ipv4(source.ip, to.ip, udp(source, to, context.payload))
        return [ethernet(to.mac, context.own.mac, packet)]

    return make


KINDS: Mapping[str, Kind] = {
    **spoofing.KINDS,
    "request": Kind(REFUSED, _to_aggregator(spoofed=False)),
    "request_spoofed": Kind(REFUSED, _to_aggregator(spoofed=True)),
    "result_for_all": Kind(FORWARDED, _result_for_all(spoofed=False)),
    "result_for_all_of_server": Kind(FORGED, _result_for_all(spoofed=True)),
}
"""The kinds of attack, in the order in which they are sent."""
