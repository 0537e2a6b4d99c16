"""Builds frames of a host that attacks jobs in which it has no part. None of them may change a sum
or end a job.

Kinds of frames take turns. They forge contributions (job, worker, slot, set, tag, kind, exponent),
results of the aggregator in every encapsulation that a host removes, and ICMP messages about
packets that workers sent.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import ceil

from agglab.hosts import wire
from agglab.testbed.schema.jobs import Job
from agglab.testbed.systems.base import AttackKind, ResolvedScenario
from agglab.testbed.systems.frames import (
    AGGREGATOR,
    EXPIRED,
    FIRST_BYTES,
    IPV4,
    IPV6,
    MORE_FRAGMENTS,
    NO_OPERATIONS,
    OLD_SERVICE_VLAN,
    PARAMETER,
    QUENCH,
    REDIRECT,
    SERVICE_VLAN,
    SNAP,
    TAGS_READ_MAX,
    TOO_BIG,
    UNREACHABLE,
    VLAN,
    End,
    datagram,
    end_of,
    ethernet,
    fragments,
    icmp_about,
    in_snap,
    ipv4,
    mapped,
    udp,
)

HEADER = struct.Struct("!BBHHBBI")
NO_JOB, JOB_MAX = 1000, 0xFFFF
AIMED = 0.85
SESSION = 1 << 20
OPTIONS = (NO_OPERATIONS, b"\7\7\4\0\0\0\0\0", b"\x94\4\0\0", b"\x44\x0c\5\0" + bytes(8))
"""IPv4 options that hosts accept: options without effect, a recorded route, a router alert, and
time stamps."""
BROADCAST_MAC, GROUP_MAC = b"\xff" * 6, bytes.fromhex("01005e000001")
NOBODY_MAC = bytes.fromhex("020000ffff01")
SMALLEST_MTU = 68
REDIRECT_CODES, UNREACHABLE_CODES = 4, 16

REFUSED, FORGED, MALFORMED, FORWARDED = "refused", "forged", "malformed", "forwarded"
"""The switch's counters (counters.py) for these frames. A host ignores the frames that are
forwarded, or counts them among its `network_errors`."""


@dataclass(frozen=True)
class AttackContext:
    """The attacker and the victim of the frames that are built next. own: the attacker's address.
    worker: the address of a worker of the victim. victim: the attacked job. member_of: a job in
    which the attacker takes part; None if there is none. slots: how many slots each job has, by its
    number. room: the length of the longest IPv4 packet. forge: a function that builds payloads."""

    chance: random.Random
    own: End
    worker: End
    victim: Job
    member_of: Job | None
    slots: Mapping[int, int]
    lanes: int
    room: int

    forge: Forge

    def contribution(self, overhead: int = 0) -> bytes:
        """Returns a contribution, or a result, which only a switch may send to another switch."""
        return self.forge(self, self.chance.choice((0, wire.RESULT)), overhead)

    def contribution_beyond(self) -> bytes:
        """Returns a contribution of a member to slots that follow those of its own job. These
        belong to another job. If the attacker is a member of no job, the contribution has the
        victim's number."""
        job = self.member_of or self.victim
        whole = self.forge(self, 0, 0)
        version, kind, _, _, exponent, attempt, tag = HEADER.unpack_from(whole)
        slot = self.slots[job.number] + self.chance.randrange(self.slots[self.victim.number])
        header = HEADER.pack(version, kind, job.number, slot, exponent, attempt, tag)
        return header + whole[HEADER.size :]

    def result(self, overhead: int = 0) -> bytes:
        """Returns a result that the worker would accept if it received it."""
        return self.forge(self, wire.RESULT, overhead)

    def aims(self) -> bool:
        """Returns whether a field gets a value that the victim is using now. It does with
        probability AIMED."""
        return self.chance.random() < AIMED

    def fits(self, payload_bytes: int, overhead: int) -> bool:
        """Returns whether an IPv4 packet can hold this payload."""
        return IPV4.size + 8 + overhead + payload_bytes <= self.room

    def header(self, kind: int) -> bytes:
        """Returns a header of docs/protocol.md that a packet of the victim's job may have at this
        time."""
        chance, victim = self.chance, self.victim
        slots = self.slots[victim.number]
        job = victim.number if self.aims() else chance.randrange(NO_JOB, JOB_MAX)
        slot = chance.randrange(slots if self.aims() else 1 << 16)
        tags_a_round = 1 + ceil(victim.elements / self.lanes) // slots
        near = chance.randrange(1, 2 + tags_a_round)
        tag = near if self.aims() else chance.choice((SESSION + near, chance.randrange(1 << 32)))
        return HEADER.pack(wire.VERSION, kind, job, slot, chance.randrange(256), 0, tag)


Forge = Callable[[AttackContext, int, int], bytes]
"""A function that takes a context, the bit of a result or 0, and the number of additional bytes of
the frame. It returns a payload in the system's own format."""
Make = Callable[[AttackContext], list[bytes]]


@dataclass(frozen=True)
class Kind(AttackKind):
    """A kind of attack. make: a function that returns frames of this kind for an AttackContext."""

    make: Make


def frames(
    key: str, resolved: ResolvedScenario, host: str, forge: Forge
) -> Iterator[tuple[str, bytes]]:
    """Yields frames (see System.attack)."""
    victims = [job for job in resolved.jobs if host not in job.hosts]
    member_of = next((job for job in resolved.jobs if host in job.hosts), None)
    chance, graph = random.Random(key), resolved.graph
    slots = {job.number: job.slots for job in resolved.jobs}
    room = min(link.mtu for link in graph.links)
    for name, kind in cycle(KINDS.items()):
        victim = chance.choice(victims)
        port = wire.WORKER_PORT_BASE + victim.number
        worker = end_of(graph.host(chance.choice(victim.hosts)), port)
        own = end_of(graph.host(host), port)
        context = AttackContext(
            chance, own, worker, victim, member_of, slots, resolved.lanes, room, forge
        )
        yield from ((name, frame) for frame in kind.make(context))


# Kinds.


def _contribution(spoofed: bool, tags: Sequence[tuple[int, int]] = ()) -> Make:
    def make(context: AttackContext) -> list[bytes]:
        source = context.worker if spoofed else context.own
        packet = datagram(source, AGGREGATOR, context.contribution(4 * len(tags)))
        return [ethernet(AGGREGATOR.mac, source.mac, packet, tags)]

    return make


def _contribution_beyond(context: AttackContext) -> list[bytes]:
    packet = datagram(context.own, AGGREGATOR, context.contribution_beyond())
    return [ethernet(AGGREGATOR.mac, context.own.mac, packet)]


def _contribution_with_options(context: AttackContext) -> list[bytes]:
    packet = datagram(context.own, AGGREGATOR, context.contribution(4), OPTIONS[0])
    return [ethernet(AGGREGATOR.mac, context.own.mac, packet)]


def _contribution_fragment(context: AttackContext) -> list[bytes]:
    part = udp(context.own, AGGREGATOR, context.contribution())[:FIRST_BYTES]
    packet = ipv4(context.own.ip, AGGREGATOR.ip, part, flags=MORE_FRAGMENTS)
    return [ethernet(AGGREGATOR.mac, context.own.mac, packet)]


def _result(
    to_mac: bytes | None = None,
    source_mac: bytes | None = None,
    tags: Sequence[tuple[int, int]] = (),
) -> Make:
    def make(context: AttackContext) -> list[bytes]:
        packet = datagram(AGGREGATOR, context.worker, context.result(4 * len(tags)))
        return [ethernet(to_mac or context.worker.mac, source_mac or context.own.mac, packet, tags)]

    return make


def _result_stacked(least: int, most: int) -> Make:
    """Returns a maker of frames with several tags of VLAN 0, which a host removes one by one."""

    def make(context: AttackContext) -> list[bytes]:
        count = context.chance.randint(least, most)
        tags = [(context.chance.choice((VLAN, SERVICE_VLAN)), 0) for _ in range(count)]
        packet = datagram(AGGREGATOR, context.worker, context.result(4 * count))
        return [ethernet(context.worker.mac, context.own.mac, packet, tags)]

    return make


def _result_with_options(context: AttackContext) -> list[bytes]:
    options = context.chance.choice(OPTIONS)
    packet = datagram(AGGREGATOR, context.worker, context.result(len(options)), options)
    return [ethernet(context.worker.mac, context.own.mac, packet)]


def _result_fragments(tags: Sequence[tuple[int, int]] = ()) -> Make:
    """Returns a maker of the two fragments of one datagram. The second has no UDP header."""

    def make(context: AttackContext) -> list[bytes]:
        result = context.result(4 * len(tags))
        packets = fragments(AGGREGATOR, context.worker, result, context.chance.randrange(1 << 16))
        return [ethernet(context.worker.mac, context.own.mac, packet, tags) for packet in packets]

    return make


def _result_to_broadcast(context: AttackContext) -> list[bytes]:
    everybody = End(BROADCAST_MAC, context.worker.ip[:2] + b"\xff\xff", context.worker.port)
    packet = datagram(AGGREGATOR, everybody, context.result())
    return [ethernet(BROADCAST_MAC, context.own.mac, packet)]


def _result_mapped(context: AttackContext) -> list[bytes]:
    packet = mapped(AGGREGATOR, context.worker, context.result(IPV6.size - IPV4.size))
    return [ethernet(context.worker.mac, context.own.mac, packet)]


def _result_in_snap(context: AttackContext) -> list[bytes]:
    packet = datagram(AGGREGATOR, context.worker, context.result(len(SNAP) + 2))
    return [in_snap(context.worker.mac, context.own.mac, packet)]


def _result_of_host(own: bool) -> Make:
    """Returns a maker of results whose source is not the aggregator. own: whether the source is the
    receiver's own address and not the attacker's."""

    def make(context: AttackContext) -> list[bytes]:
        claimed = context.worker if own else context.own
        source = End(claimed.mac, claimed.ip, AGGREGATOR.port)
        packet = datagram(source, context.worker, context.result())
        return [ethernet(context.worker.mac, context.own.mac, packet)]

    return make


def _message(kind: int, codes: Sequence[int], rest: bytes, from_aggregator: bool = False) -> Make:
    """Returns a maker of ICMP messages about a packet that the worker could have sent."""

    def make(context: AttackContext) -> list[bytes]:
        sent = datagram(context.worker, AGGREGATOR, context.contribution())
        source = AGGREGATOR.ip if from_aggregator else context.own.ip
        packet = icmp_about(sent, source, kind, context.chance.choice(codes), rest)
        return [ethernet(context.worker.mac, context.own.mac, packet)]

    return make


NO_REST = bytes(4)
SMALL_MTU = struct.pack("!HH", 0, SMALLEST_MTU)
PRIORITY_TAG, TAG_OF_VLAN_5 = (VLAN, 0), (VLAN, 5)

KINDS: Mapping[str, Kind] = {
    "contribution": Kind(REFUSED, _contribution(spoofed=False)),
    "contribution_spoofed": Kind(REFUSED, _contribution(spoofed=True)),
    "contribution_beyond": Kind(REFUSED, _contribution_beyond),
    "contribution_tagged": Kind(MALFORMED, _contribution(False, [PRIORITY_TAG])),
    "contribution_options": Kind(MALFORMED, _contribution_with_options),
    "contribution_fragment": Kind(MALFORMED, _contribution_fragment),
    "result": Kind(FORGED, _result()),
    "result_switch_mac": Kind(FORGED, _result(source_mac=AGGREGATOR.mac)),
    "result_broadcast_mac": Kind(FORGED, _result(to_mac=BROADCAST_MAC)),
    "result_multicast_mac": Kind(FORGED, _result(to_mac=GROUP_MAC)),
    "result_wrong_mac": Kind(FORGED, _result(to_mac=NOBODY_MAC)),
    "result_routed": Kind(FORGED, _result(to_mac=AGGREGATOR.mac)),
    "result_broadcast": Kind(FORGED, _result_to_broadcast),
    "result_priority_tag": Kind(FORGED, _result(tags=[PRIORITY_TAG])),
    "result_vlan": Kind(FORGED, _result(tags=[TAG_OF_VLAN_5])),
    "result_service_tag": Kind(FORGED, _result(tags=[(SERVICE_VLAN, 0)])),
    "result_old_service_tag": Kind(FORGED, _result(tags=[(OLD_SERVICE_VLAN, 0)])),
    "result_stacked": Kind(FORGED, _result_stacked(2, TAGS_READ_MAX)),
    "result_too_deep": Kind(MALFORMED, _result_stacked(TAGS_READ_MAX + 1, 8)),
    "result_options": Kind(FORGED, _result_with_options),
    "result_fragments": Kind(FORGED, _result_fragments()),
    "result_tagged_fragments": Kind(FORGED, _result_fragments([PRIORITY_TAG])),
    "result_mapped": Kind(FORGED, _result_mapped),
    "result_snap": Kind(FORWARDED, _result_in_snap),
    "result_of_another": Kind(FORWARDED, _result_of_host(own=False)),
    "result_of_itself": Kind(FORGED, _result_of_host(own=True)),
    "icmp_too_big": Kind(FORWARDED, _message(UNREACHABLE, [TOO_BIG], SMALL_MTU)),
    "icmp_unreachable": Kind(FORWARDED, _message(UNREACHABLE, range(UNREACHABLE_CODES), NO_REST)),
    "icmp_quench": Kind(FORWARDED, _message(QUENCH, [0], NO_REST)),
    "icmp_redirect": Kind(FORWARDED, _message(REDIRECT, range(REDIRECT_CODES), b"\x0a\0\0\1")),
    "icmp_expired": Kind(FORWARDED, _message(EXPIRED, [0, 1], NO_REST)),
    "icmp_parameter": Kind(FORWARDED, _message(PARAMETER, [0, 1, 2], b"\x14\0\0\0")),
    "icmp_of_aggregator": Kind(FORGED, _message(UNREACHABLE, [TOO_BIG], SMALL_MTU, True)),
}
"""The kinds of attack, in the order in which they are sent."""
