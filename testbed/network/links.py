"""Links as lines for `ip -batch` and `tc -batch`: what a topology becomes in the kernel, as text.

Pure functions of the topology; `mininet_network.py` runs the lines, one program a namespace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topologies import Direction, Link, Topology
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


def queue_lines(topology: Topology, node: str) -> list[str]:
    """`tc -batch` lines that shape what leaves each interface of a node."""
    return [
        line
        for link in topology.links
        for _, sender, _, direction in link.directions()
        if sender.node == node
        for line in _shape(sender.interface, direction, link)
    ]


def _shape(interface: str, direction: Direction, link: Link) -> list[str]:
    """A token bucket (handle 1:), under it the queue with its limit (10:) or the delay (20:)."""
    lines = []
    parent = "root"
    if direction.rate_bps is not None:
        burst = burst_bytes(direction.rate_bps, link.frame_bytes)
        # The limit is of the queue TBF brings along, which the child replaces.
        lines.append(
            f"qdisc add dev {interface} root handle 1: "
            f"tbf rate {direction.rate_bps}bit burst {burst} limit {burst}"
        )
        parent = "parent 1:1"
    if direction.delay_us:
        limit = _delay_line_packets(direction, link.frame_bytes)
        lines.append(
            f"qdisc add dev {interface} {parent} handle 20: "
            f"netem delay {direction.delay_us}us limit {limit}"
        )
    elif direction.rate_bps is not None:
        lines.append(f"qdisc add dev {interface} {parent} handle 10: {_queue(direction)}")
    return lines


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
    # Unshaped, a veth end moves less than a million frames a second.
    rate = 1_000_000 if direction.rate_bps is None else direction.rate_bps // (8 * smallest_frame)
    return queue + rate * direction.delay_us // 1_000_000 + 1
