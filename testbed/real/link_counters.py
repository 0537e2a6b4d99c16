"""Reads the counters of links: those of interfaces with `ip`, those of queues with `tc`, and the
others from the maps of eBPF programs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agglab.testbed.base.kernel import network_namespace
from agglab.testbed.base.traffic_counters import DirectionStatistics, SwitchStatistics
from agglab.testbed.real.impaired import Counts
from agglab.testbed.real.rules import PortDrop
from agglab.topologies import Topology

NO_QUEUE = {"drops": 0, "packets": 0, "bytes": 0}


@dataclass(frozen=True)
class Sent:
    """How many frames were put on a link, and how many bytes they have."""

    packets: int
    bytes: int


def read_directions(
    topology: Topology,
    pids: Mapping[str, int],
    counts: Mapping[str, Counts],
    buffered: Container[str] = (),
    by_switches: Mapping[str, Sent] | None = None,
) -> tuple[DirectionStatistics, ...]:
    """Returns the counters of every direction. pids: a process of each node. counts: what eBPF or
    native switches have counted, by direction name.

    buffered: names of links whose interfaces count a buffer of several frames as one packet. For
    frames that hosts sent on these links, the count of the queue is used, which counts single
    frames. by_switches: what switches sent on these links, by direction name. It is needed because
    before Linux 6.19, a queue does not count the frames in a packet socket's buffer.
    """
    nodes = {node: _read_node(pid) for node, pid in pids.items()}
    result = []
    for link in topology.links:
        for name, sender, receiver, _ in link.directions():
            own = nodes[sender.node][sender.interface]
            arrived = nodes[receiver.node][receiver.interface]["rx"]["packets"]
            if link.name in buffered:
                frames = (by_switches or {}).get(name) or Sent(**own["queue"])
                own = {**own, "tx": {**own["tx"], **asdict(frames)}}
                arrived = frames.packets
            result.append(_direction(link.name, name, own, counts.get(name, Counts(arrived))))
    return tuple(result)


def sent_by_switches(
    topology: Topology, buffered: Container[str], switches: Sequence[SwitchStatistics]
) -> dict[str, Sent]:
    """Returns by direction name what native switches sent on the buffered links. The switches
    counted this themselves."""
    details = {switch.name: switch.details for switch in switches}
    found = {}
    for link in topology.links:
        for name, sender, _, _ in link.directions():
            ports: Any = details.get(sender.node, {}).get("ports", {})
            told = ports.get(str(sender.port))
            if link.name in buffered and told is not None:
                found[name] = Sent(told["tx_packets"], told["tx_bytes"])
    return found


def carried_bytes(
    topology: Topology, pids: Mapping[str, int], proc: Path = Path("/proc")
) -> dict[str, int]:
    """Returns the bytes that each direction's sender has put on the link. They are in
    /proc/PID/net/dev, which shows the interfaces of the process's namespace to any reader."""
    sent = {
        node: _sent_bytes((proc / str(pid) / "net/dev").read_text()) for node, pid in pids.items()
    }
    return {
        name: sent[sender.node][sender.interface]
        for link in topology.links
        for name, sender, _, _ in link.directions()
    }


def _sent_bytes(table: str) -> dict[str, int]:
    """Returns the bytes sent by each interface. table: the content of /proc/PID/net/dev, in which
    this is the ninth number of a line."""
    lines = (line.partition(":") for line in table.splitlines()[2:])
    return {name.strip(): int(numbers.split()[8]) for name, _, numbers in lines}


def port_counts(
    drops: Mapping[str, PortDrop], switches: Sequence[SwitchStatistics]
) -> dict[str, Counts]:
    """Returns by direction which frames switches lost at their ports. Frames that were lost before
    they were sent are also counted as sent, as if they had been lost at the far end."""
    details = {switch.name: switch.details for switch in switches}
    counts = {}
    for direction, drop in drops.items():
        ports: Any = details.get(drop.switch, {}).get("ports", {})
        told = ports.get(str(drop.port), {}).get(drop.statistics)
        if told is not None:
            counts[direction] = Counts(
                seen=told["seen"],
                dropped=told["dropped"],
                numbers=tuple(told["numbers"]),
                unsent=told["dropped"] if drop.outgoing else 0,
                unsent_bytes=told["dropped_bytes"] if drop.outgoing else 0,
            )
    return counts


def _direction(
    link: str, name: str, sender: Mapping[str, Any], counts: Counts
) -> DirectionStatistics:
    return DirectionStatistics(
        link=link,
        direction=name,
        packets=sender["tx"]["packets"] + counts.unsent,
        bytes=sender["tx"]["bytes"] + counts.unsent_bytes,
        seen=counts.seen,
        dropped_injected=counts.dropped,
        dropped_by_queue=sender["queue_drops"] + sender["tx"]["dropped"],
        dropped_numbers=counts.numbers,
        corrupted=counts.corrupted,
        lost_link_down=counts.lost,
        duplicated=counts.copied,
    )


def _read_node(pid: int) -> dict[str, dict[str, Any]]:
    """Returns the counters of each interface of a node: {"rx", "tx": counters of `ip -s`,
    "queue_drops", "queue": counters of its root queue}."""
    with network_namespace(pid):
        devices = _json("ip", "-s", "-j", "link", "show", "type", "veth")
        queues = _json("tc", "-s", "-j", "qdisc", "show")
    roots = {queue["dev"]: queue for queue in queues if queue.get("root")}
    return {
        device["ifname"]: {
            "rx": device["stats64"]["rx"],
            "tx": device["stats64"]["tx"],
            "queue_drops": roots.get(device["ifname"], NO_QUEUE)["drops"],
            "queue": {
                count: roots.get(device["ifname"], NO_QUEUE)[count]
                for count in ("packets", "bytes")
            },
        }
        for device in devices
    }


def _json(*command: str) -> Any:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout or "[]")
