"""Links as lines for `ip -batch` and `tc -batch`: what a topology becomes in the kernel, as text.

Pure functions of the topology; `mininet_network.py` runs the lines, one program a namespace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topologies import Direction, Jitter, Reorder, Topology
from topologies.graph import (
    AGGREGATOR_IP,
    AGGREGATOR_MAC,
    DEFAULT_QUEUE_PACKETS,
    PREFIX_LENGTH,
    LinkEnd,
)

# What a late timer loses beyond the bucket is lost for good: on a machine whose processors others
# kept busy, quickstart's ratio was 1.09 with 0.5 ms and 1.055 with 2 ms (medians of 5). Deeper, and
# the first frames of a round would leave faster than the rate by a visible share.
BURST_US = 2000


def burst_bytes(rate_bps: int, frame_bytes: int) -> int:
    """Token bucket's depth: BURST_US at the rate, and never less than two full frames.

    TBF drops, for ever, a frame larger than its bucket.
    """
    return max(2 * frame_bytes, rate_bps * BURST_US // 8_000_000)


def interface_mac(topology: Topology, end: LinkEnd) -> str:
    """A host's own MAC, or for switch number s port p (from 1) 02:01:<s>:<p>, two bytes each."""
    number = topology.switch_number(end.node)
    if number is None:
        return topology.host(end.node).mac
    return ":".join(f"{byte:02x}" for byte in (2, 1, *divmod(number, 256), *divmod(end.port, 256)))


def create_lines(topology: Topology, pids: Mapping[str, int]) -> list[str]:
    """`ip -batch` lines that make every veth pair straight in its two nodes' namespaces.

    pids: a process of each node. No interface is ever in the namespace the lines run in.
    """
    return [
        f"link add name {link.a.interface} netns {pids[link.a.node]} mtu {link.mtu} "
        f"address {interface_mac(topology, link.a)} type veth "
        f"peer name {link.b.interface} netns {pids[link.b.node]} mtu {link.mtu} "
        f"address {interface_mac(topology, link.b)}"
        for link in topology.links
    ]


def node_lines(topology: Topology, node: str) -> list[str]:
    """`ip -batch` lines for inside a node: addresses, static neighbours, everything up."""
    lines = ["link set dev lo up"]
    for port in topology.ports(node):
        lines.append(f"link set dev {LinkEnd(node, port).interface} up")
    if any(host.name == node for host in topology.hosts):
        lines += _host_lines(topology, node)
    return lines


def _host_lines(topology: Topology, name: str) -> list[str]:
    interface = LinkEnd(name, min(topology.ports(name))).interface
    others = [(host.ip, host.mac) for host in topology.hosts if host.name != name]
    return [
        f"address add {topology.host(name).ip}/{PREFIX_LENGTH} dev {interface}",
        *(
            f"neighbour add {ip} lladdr {mac} dev {interface} nud permanent"
            for ip, mac in [*others, (AGGREGATOR_IP, AGGREGATOR_MAC)]
        ),
    ]


def first_ends(topology: Topology, order: Sequence[str]) -> dict[str, list[str]]:
    """Of every cable the end that is set up first, when nodes are in that order: by node."""
    ends: dict[str, list[str]] = {node: [] for node in order}
    for link in topology.links:
        first = min((link.a, link.b), key=lambda end: order.index(end.node))
        ends[first.node].append(first.interface)
    return ends


def rate_lines(interface: str, direction: Direction, frame_bytes: int, rate_bps: int) -> list[str]:
    """`tc -batch` lines that give a shaped or unshaped interface another rate; no frame is lost."""
    if direction.rate_bps is None:
        changed = replace(direction, rate_bps=rate_bps)
        return [f"qdisc del dev {interface} root"] * bool(direction.delay_us) + _shape(
            interface, changed, frame_bytes
        )
    lines = [f"qdisc change dev {interface} root handle 1: {_bucket(rate_bps, frame_bytes)}"]
    if not _held_by_netem(direction):
        # A bucket that is changed gives its limit, in bytes, to whatever fifo is under it.
        lines.append(f"qdisc change dev {interface} parent 1:1 handle 10: {_queue(direction)}")
    return lines


def own_rate_lines(interface: str, direction: Direction, frame_bytes: int) -> list[str]:
    """`tc -batch` lines that undo `rate_lines`."""
    if direction.rate_bps is not None:
        return rate_lines(interface, direction, frame_bytes, direction.rate_bps)
    return [f"qdisc del dev {interface} root", *_shape(interface, direction, frame_bytes)]


def queue_lines(topology: Topology, node: str) -> list[str]:
    """`tc -batch` lines that shape what leaves each interface of a node."""
    return [
        line
        for link in topology.links
        for _, sender, _, direction in link.directions()
        if sender.node == node
        for line in _shape(sender.interface, direction, link.frame_bytes)
    ]


def _shape(interface: str, direction: Direction, frame_bytes: int) -> list[str]:
    """A token bucket (handle 1:), under it the queue with its limit (10:) or the delay (20:)."""
    lines = []
    parent = "root"
    if direction.rate_bps is not None:
        bucket = _bucket(direction.rate_bps, frame_bytes)
        lines.append(f"qdisc add dev {interface} root handle 1: {bucket}")
        parent = "parent 1:1"
    if _held_by_netem(direction):
        limit = _delay_line_packets(direction, frame_bytes)
        lines.append(
            f"qdisc add dev {interface} {parent} handle 20: netem {_delay(direction)} limit {limit}"
        )
    elif direction.rate_bps is not None:
        lines.append(f"qdisc add dev {interface} {parent} handle 10: {_queue(direction)}")
    return lines


def _bucket(rate_bps: int, frame_bytes: int) -> str:
    burst = burst_bytes(rate_bps, frame_bytes)
    # The limit is of the queue TBF brings along, which the child replaces.
    return f"tbf rate {rate_bps}bit burst {burst} limit {burst}"


def netem_impairments(direction: Direction) -> tuple[Jitter | Reorder, ...]:
    """Those that netem makes, by chance of its own."""
    return tuple(each for each in direction.impairments if isinstance(each, (Jitter, Reorder)))


def _held_by_netem(direction: Direction) -> bool:
    return bool(direction.delay_us or netem_impairments(direction))


def _delay(direction: Direction) -> str:
    """netem's jitter is even, to both sides of the delay. Its `reorder P%` sends that share at once
    and the others after the delay."""
    words = [f"delay {direction.delay_us}us"]
    for each in netem_impairments(direction):
        if isinstance(each, Jitter):
            half = each.max_us / 2
            words = [f"delay {direction.delay_us + half:g}us {half:g}us"]
        else:
            words = [f"delay {each.delay_us}us reorder {100 * (1 - each.probability):g}%"]
    return words[0]


def _queue(direction: Direction) -> str:
    if direction.queue_bytes is not None:
        return f"bfifo limit {direction.queue_bytes}"
    return f"pfifo limit {direction.queue_packets or DEFAULT_QUEUE_PACKETS}"


def _delay_line_packets(direction: Direction, frame_bytes: int) -> int:
    """netem holds the queue and the frames under way: as many as the delay holds at the rate."""
    smallest_frame = 60
    queue = direction.queue_packets or DEFAULT_QUEUE_PACKETS
    if direction.queue_bytes is not None:
        queue = max(1, direction.queue_bytes // frame_bytes)
    others = netem_impairments(direction)
    # Unshaped, a veth end moves less than a million frames a second.
    rate = 1_000_000 if direction.rate_bps is None else direction.rate_bps // (8 * smallest_frame)
    held = (each.max_us if isinstance(each, Jitter) else each.delay_us for each in others)
    return queue + rate * (direction.delay_us + sum(held)) // 1_000_000 + 1
