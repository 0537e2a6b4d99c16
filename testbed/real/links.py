"""Writes the lines for `ip -batch` and `tc -batch` that create a topology's links in the kernel.

The lines depend on the topology alone. `mininet_network.py` runs them, with one program for each
namespace.
"""

from __future__ import annotations

import random
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agglab.hosts import wire
from agglab.testbed.base.token_bucket import burst_bytes
from agglab.testbed.systems.plan.forwarding import neighbours
from agglab.topologies import Direction, Jitter, Link, Reorder, Topology
from agglab.topologies.graph import (
    DEFAULT_QUEUE_PACKETS,
    PREFIX_LENGTH,
    LinkEnd,
)

# How many frames netem holds: more than one end of a veth pair moves in the time it holds them.
FRAMES_PER_S = 1_000_000
# A distribution for netem: its entries (tc's request holds less than 16,384), and the value that
# means the whole jitter.
TABLE_ENTRIES, TABLE_UNIT = 8192, 8192

# TCP cuts what it sends into frames before these are queued. With offloads off the kernel would cut
# behind the queue, where 64 kB count as one frame.
WHOLE_FRAMES = "gso_max_segs 1"
MANY_FRAMES = "gso_max_segs 64"

DELAYS = (Jitter, Reorder)
Delay: TypeAlias = "Jitter | Reorder"


def interface_mac(topology: Topology, end: LinkEnd) -> str:
    """Returns the MAC address of an interface. For a host this is the host's own. For port p of
    switch number s (from 1) it is 02:01:<s>:<p>, where <s> and <p> are two bytes each."""
    number = topology.switch_number(end.node)
    if number is None:
        return topology.host(end.node).mac
    return ":".join(f"{byte:02x}" for byte in (2, 1, *divmod(number, 256), *divmod(end.port, 256)))


def create_lines(
    topology: Topology, pids: Mapping[str, int], buffered: Container[str] = ()
) -> list[str]:
    """Returns `ip -batch` lines that create every veth pair directly in the namespaces of its two
    nodes.

    pids: a process of each node. No interface is ever in the namespace in which the lines run.
    buffered: names of the links that carry several frames as one buffer.
    """
    return [_create_line(topology, pids, link, link.name in buffered) for link in topology.links]


def _create_line(topology: Topology, pids: Mapping[str, int], link: Link, buffered: bool) -> str:
    frames = MANY_FRAMES if buffered else WHOLE_FRAMES
    return (
        f"link add name {link.a.interface} netns {pids[link.a.node]} mtu {link.mtu} "
        f"{frames} address {interface_mac(topology, link.a)} type veth "
        f"peer name {link.b.interface} netns {pids[link.b.node]} mtu {link.mtu} "
        f"{frames} address {interface_mac(topology, link.b)}"
    )


def node_lines(topology: Topology, node: str) -> list[str]:
    """Returns lines for `ip -batch` to run inside a node. The lines set addresses and static
    neighbors, and set all interfaces up."""
    lines = ["link set dev lo up"]
    for port in topology.ports(node):
        lines.append(f"link set dev {LinkEnd(node, port).interface} up")
    if any(host.name == node for host in topology.hosts):
        lines += _host_lines(topology, node)
    return lines


def _host_lines(topology: Topology, name: str) -> list[str]:
    interface = LinkEnd(name, min(topology.ports(name))).interface
    return [
        f"address add {topology.host(name).ip}/{PREFIX_LENGTH} dev {interface}",
        *(
            f"neighbour add {ip} lladdr {mac} dev {interface} nud permanent"
            for ip, mac in [
                *neighbours(topology, name),
                (wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_MAC),
            ]
        ),
    ]


def first_ends(topology: Topology, order: Sequence[str]) -> dict[str, list[str]]:
    """Returns by node the ends of cables that are set up before the cables' other ends. order: the
    order in which nodes are set up."""
    ends: dict[str, list[str]] = {node: [] for node in order}
    for link in topology.links:
        first = min((link.a, link.b), key=lambda end: order.index(end.node))
        ends[first.node].append(first.interface)
    return ends


@dataclass(frozen=True)
class Sender:
    """What shapes the frames that an interface sends: rate, queue and delay. at_times: delays that
    faults may add."""

    interface: str
    direction: Direction
    frame_bytes: int
    at_times: tuple[Delay, ...] = ()

    @property
    def delayed(self) -> bool:
        """Whether the interface has netem, which makes delays, as its root queueing discipline."""
        return bool(self.direction.delay_us or delays(self.direction) or self.at_times)

    @property
    def _parent(self) -> str:
        return "parent 20:1" if self.delayed else "root"

    def lines(self) -> list[str]:
        """Returns `tc -batch` lines that set up the delay (handle 20:), the token bucket (1:), and
        the bucket's queue (10:).

        A delay before the rate has the same effect as one after it. A netem after a bucket would be
        the bucket's queue, so the time that a frame waits there would count as delay.
        """
        shape = [self._netem("add", ())] if self.delayed else []
        rate_bps = self.direction.rate_bps
        return shape + ([] if rate_bps is None else self._rate("add", rate_bps))

    def rate_lines(self, rate_bps: int | None) -> list[str]:
        """Returns lines that set another rate, also if the interface had none; None restores the
        rate of the topology. No queued frame is lost, with one exception: if the topology gives the
        interface no rate, restoring removes the bucket with its queue."""
        own_bps = self.direction.rate_bps
        if own_bps is not None:
            return self._rate("change", own_bps if rate_bps is None else rate_bps)
        if rate_bps is None:
            return [f"qdisc del dev {self.interface} {self._parent}"]
        return self._rate("add", rate_bps)

    def _rate(self, verb: str, rate_bps: int) -> list[str]:
        """Returns lines that set the rate. When a bucket is changed, the kernel gives its limit, in
        bytes, to the fifo below it. Therefore the lines set the queue again."""
        burst = burst_bytes(rate_bps, self.frame_bytes)
        # The limit is of the queue TBF brings along, which the child replaces.
        bucket = f"tbf rate {rate_bps}bit burst {burst} limit {burst}"
        where = f"qdisc {verb} dev {self.interface}"
        queue = _queue(self.direction)
        return [
            f"{where} {self._parent} handle 1: {bucket}",
            f"{where} parent 1:1 handle 10: {queue}",
        ]

    def delay_lines(self, added: Sequence[Delay]) -> list[str]:
        """Returns lines that set the interface's constant delays plus those delays of `at_times`
        that are in `added`."""
        return [self._netem("change", added)]

    def _netem(self, verb: str, added: Sequence[Delay]) -> str:
        drawn = (*delays(self.direction), *added)
        longest_us = sum(_longest_us(each) for each in (*delays(self.direction), *self.at_times))
        held = FRAMES_PER_S * (self.direction.delay_us + longest_us) // 1_000_000
        words = f"delay {self.direction.delay_us}us"
        span_us = sum(map(_longest_us, drawn))
        if span_us:
            # The table's values are below zero: tc wants a delay beside a distribution.
            words = f"delay {self.direction.delay_us + span_us}us {span_us}us"
            words += f" distribution {distribution_name(drawn)}"
        where = f"qdisc {verb} dev {self.interface} root handle 20:"
        return f"{where} netem {words} limit {max(held, DEFAULT_QUEUE_PACKETS)}"

    def distribution(self, added: Sequence[Delay] = ()) -> dict[str, str]:
        """Returns the name and the text of the file that tc reads for the lines with these delays;
        empty if it needs none."""
        drawn = (*delays(self.direction), *added)
        return {f"{distribution_name(drawn)}.dist": distribution(drawn)} if drawn else {}


def senders(
    topology: Topology, at_times: Mapping[str, Sequence[Delay]]
) -> dict[str, tuple[str, Sender]]:
    """Returns by direction name the sending node and its Sender. at_times: the delays that faults
    may add, by direction name."""
    return {
        name: (
            end.node,
            Sender(end.interface, direction, link.frame_bytes, tuple(at_times.get(name, ()))),
        )
        for link in topology.links
        for name, end, _, direction in link.directions()
    }


def delays(direction: Direction) -> tuple[Delay, ...]:
    """Returns the impairments of a direction that netem makes because they are delays. netem's
    random numbers do not follow from the scenario's seed."""
    return tuple(each for each in direction.impairments if isinstance(each, DELAYS))


def distribution_name(drawn: Sequence[Delay]) -> str:
    """Returns the name of the file to which `distribution` is written."""
    return "-".join(
        f"jitter{each.max_us}"
        if isinstance(each, Jitter)
        else f"reorder{each.probability:g}x{each.delay_us}"
        for each in drawn
    )


def distribution(drawn: Sequence[Delay]) -> str:
    """Returns netem's table for the sum of these delays. For each frame, netem draws one of the
    table's entries, all with the same probability.

    An entry t means span * (1 + t / 8192), so the entries from -8192 to 0 run from no delay to the
    full span. A single delay is as uniform as the length of the table allows. Several delays are
    combined with a fixed seed.
    """
    span_us = sum(map(_longest_us, drawn)) or 1
    sums_us = [0.0] * TABLE_ENTRIES
    for place, each in enumerate(drawn):
        entries = list(_entries_us(each))
        if place:
            random.Random(place).shuffle(entries)
        sums_us = [total + entry for total, entry in zip(sums_us, entries, strict=True)]
    return "".join(f"{round(TABLE_UNIT * (total / span_us - 1))}\n" for total in sums_us)


def _entries_us(delay: Delay) -> Iterator[float]:
    late = round(TABLE_ENTRIES * delay.probability) if isinstance(delay, Reorder) else 0
    for n in range(TABLE_ENTRIES):
        if isinstance(delay, Jitter):
            yield delay.max_us * (n + 0.5) / TABLE_ENTRIES
        else:
            yield delay.delay_us if n < late else 0.0


def _longest_us(delay: Delay) -> int:
    return delay.max_us if isinstance(delay, Jitter) else delay.delay_us


def _queue(direction: Direction) -> str:
    if direction.queue_bytes is not None:
        return f"bfifo limit {direction.queue_bytes}"
    return f"pfifo limit {direction.queue_packets or DEFAULT_QUEUE_PACKETS}"
