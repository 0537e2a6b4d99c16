"""Builds frames of a host that pretends to be an agent of a job in which it has no part. They
attack systems whose agents send packets to each other. None of these frames may change a sum or end
a job.

Kinds of frames take turns. Agents accept packets by their source address, so most kinds have a
peer's address as their source, in every encapsulation that a host removes. The switch to which the
attacker is attached has to recognize these frames.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import Agent, AttackKind, ResolvedScenario
from agglab.testbed.systems.frames import (
    AGGREGATOR,
    IPV6,
    NO_OPERATIONS,
    OVER_UDP,
    PORT,
    TAGS_READ_MAX,
    TOO_BIG,
    UNREACHABLE,
    VLAN,
    End,
    Transport,
    datagram,
    end_of,
    ethernet,
    fragments,
    icmp_about,
    in_snap,
    mapped,
)
from agglab.topologies import Topology

FORGED, MALFORMED, FORWARDED = "forged", "malformed", "forwarded"
"""The switch's counters for these frames. A host ignores the frames that are forwarded."""

Forge = Callable[[random.Random, Agent], bytes]
"""A function that returns a payload that the agent would accept from a peer."""


@dataclass(frozen=True)
class AttackContext:
    """The attacker, the victim and the payload for the frames that are built next. own: the
    attacker's address, with the peer's port. agent: an agent of the victim. peer: one of the
    agent's peers. payload: a payload that the agent would accept from the peer. over: the transport
    protocol of the payload."""

    chance: random.Random
    own: End
    agent: End
    peer: End
    payload: bytes
    over: Transport


Make = Callable[[AttackContext], list[bytes]]


@dataclass(frozen=True)
class Kind(AttackKind):
    """A kind of attack. make: a function that returns frames of this kind for an AttackContext."""

    make: Make


def frames(
    key: str,
    resolved: ResolvedScenario,
    host: str,
    agents: Callable[[Job], Sequence[Agent]],
    forge: Callable[[Job], Forge],
    over: Transport = OVER_UDP,
    kinds: Mapping[str, Kind] | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Yields frames (see System.attack). agents: returns a job's agents. forge: returns the
    function that forges payloads for a job. kinds: the kinds of frames; by default, those of all
    systems."""
    chance, graph = random.Random(key), resolved.graph
    victims = [
        (agent, forge(job))
        for job in resolved.jobs
        if host not in job.hosts
        for agent in agents(job)
        if _others(agent, host, graph)
    ]
    headers = IPV6.size + over.header_bytes + 4 * (TAGS_READ_MAX + 1)
    room = min(link.mtu for link in graph.links) - headers
    for name, kind in cycle((KINDS if kinds is None else kinds).items()):
        agent, forged = chance.choice(victims)
        peer = chance.choice(_others(agent, host, graph))
        own = end_of(graph.host(host), peer.port)
        target = end_of(graph.host(agent.host), agent.configuration["bind"][1])
        payload = forged(chance, agent)[:room]
        context = AttackContext(chance, own, target, peer, payload, over)
        yield from ((name, frame) for frame in kind.make(context))


def _others(agent: Agent, host: str, graph: Topology) -> list[End]:
    """Returns the agent's peers, without those on the attacker's host. Peers on the agent's own
    host are also left out, because no link leads to them."""
    hosts = {known.ip: known for known in graph.hosts if known.name not in (host, agent.host)}
    peers: list[Any] = agent.configuration["settings"]["peers"]
    return [end_of(hosts[ip], port) for ip, port in peers if ip in hosts]


# Kinds.


def _under(source: Callable[[AttackContext], End], tags: int = 0, options: bytes = b"") -> Make:
    """Returns a maker of frames with a given source address, VLAN tags and options."""

    def make(context: AttackContext) -> list[bytes]:
        packet = datagram(source(context), context.agent, context.payload, options, context.over)
        return [ethernet(context.agent.mac, context.own.mac, packet, [(VLAN, 0)] * tags)]

    return make


def _fragments(context: AttackContext) -> list[bytes]:
    number = context.chance.randrange(1 << 16)
    packets = fragments(context.peer, context.agent, context.payload, number, context.over)
    return [ethernet(context.agent.mac, context.own.mac, packet) for packet in packets]


def _routed(context: AttackContext) -> list[bytes]:
    """Returns frames to the switch's own MAC address, which the switch routes."""
    packet = datagram(context.peer, context.agent, context.payload, over=context.over)
    return [ethernet(AGGREGATOR.mac, context.own.mac, packet)]


def _mapped(context: AttackContext) -> list[bytes]:
    packet = mapped(context.peer, context.agent, context.payload, context.over)
    return [ethernet(context.agent.mac, context.own.mac, packet)]


def _in_snap(context: AttackContext) -> list[bytes]:
    packet = datagram(context.peer, context.agent, context.payload, over=context.over)
    return [in_snap(context.agent.mac, context.own.mac, packet)]


def _changed(change: Callable[[random.Random, bytes], bytes]) -> Make:
    """Returns a maker of frames with the peer's address. Their payload differs from what the agent
    would accept."""

    def make(context: AttackContext) -> list[bytes]:
        return _under(_peer)(replace(context, payload=change(context.chance, context.payload)))

    return make


def _message(code: int, rest: bytes, source: Callable[[AttackContext], End]) -> Make:
    """Returns a maker of ICMP messages about a packet that the agent could have sent to the peer.
    source: returns the sender of the message."""

    def make(context: AttackContext) -> list[bytes]:
        sent = datagram(context.agent, context.peer, context.payload, over=context.over)
        packet = icmp_about(sent, source(context).ip, UNREACHABLE, code, rest)
        return [ethernet(context.agent.mac, context.own.mac, packet)]

    return make


def _peer(context: AttackContext) -> End:
    return context.peer


def _own(context: AttackContext) -> End:
    return context.own


def _receiver(context: AttackContext) -> End:
    return context.agent


def _aggregator(context: AttackContext) -> End:
    return AGGREGATOR


def _own_at_any_port(context: AttackContext) -> End:
    return replace(context.own, port=context.chance.randrange(1, 1 << 16))


def _of_another(at: int, size: int) -> Callable[[random.Random, bytes], bytes]:
    """Returns a function that replaces a number in the header by a random one."""

    def change(chance: random.Random, payload: bytes) -> bytes:
        return payload[:at] + chance.randbytes(size) + payload[at + size :]

    return change


def _of_another_length(chance: random.Random, payload: bytes) -> bytes:
    return payload[: chance.randrange(len(payload))]


JOB_AT, SESSION_AT = (2, 2), (4, 4)
"""The position and length of the job and of the session in the headers of the systems that come
with Agglab. In other headers, these are just some bytes."""

KINDS: Mapping[str, Kind] = {
    "peer": Kind(FORGED, _under(_peer)),
    "peer_tagged": Kind(FORGED, _under(_peer, tags=1)),
    "peer_stacked": Kind(FORGED, _under(_peer, tags=TAGS_READ_MAX)),
    "peer_too_deep": Kind(MALFORMED, _under(_peer, tags=TAGS_READ_MAX + 1)),
    "peer_options": Kind(FORGED, _under(_peer, options=NO_OPERATIONS)),
    "peer_fragments": Kind(FORGED, _fragments),
    "peer_routed": Kind(FORGED, _routed),
    "peer_mapped": Kind(FORGED, _mapped),
    "peer_snap": Kind(FORWARDED, _in_snap),
    "peer_other_job": Kind(FORGED, _changed(_of_another(*JOB_AT))),
    "peer_other_session": Kind(FORGED, _changed(_of_another(*SESSION_AT))),
    "peer_other_length": Kind(FORGED, _changed(_of_another_length)),
    "itself": Kind(FORGED, _under(_receiver)),
    "aggregator": Kind(FORGED, _under(_aggregator)),
    "unspoofed": Kind(FORWARDED, _under(_own)),
    "unspoofed_any_port": Kind(FORWARDED, _under(_own_at_any_port)),
    "icmp_unreachable": Kind(FORWARDED, _message(PORT, bytes(4), _own)),
    "icmp_too_big": Kind(FORWARDED, _message(TOO_BIG, bytes(3) + b"\x44", _own)),
    "icmp_of_peer": Kind(FORGED, _message(PORT, bytes(4), _peer)),
}
