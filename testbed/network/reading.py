"""Reading the counters of links: interfaces through `ip`, queues through `tc`, the rest by eBPF."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from testbed.network.impaired import Counts, ImpairedDirection
from testbed.network.kernel import network_namespace
from testbed.statistics import DirectionStatistics
from topologies import Topology


def read_directions(
    topology: Topology, pids: Mapping[str, int], impaired: Mapping[str, ImpairedDirection]
) -> tuple[DirectionStatistics, ...]:
    """Counters of every direction. pids: a process of each node; impaired: by direction name."""
    nodes = {node: _read_node(pid) for node, pid in pids.items()}
    result = []
    for link in topology.links:
        for name, sender, receiver, _ in link.directions():
            sent = nodes[sender.node][sender.interface]
            counts = impaired[name].counts() if name in impaired else None
            arrived = nodes[receiver.node][receiver.interface]["rx"]["packets"]
            result.append(_direction(link.name, name, sent, counts or Counts(arrived)))
    return tuple(result)


def _direction(
    link: str, name: str, sender: Mapping[str, Any], counts: Counts
) -> DirectionStatistics:
    return DirectionStatistics(
        link=link,
        direction=name,
        packets=sender["tx"]["packets"],
        bytes=sender["tx"]["bytes"],
        seen=counts.seen,
        dropped_injected=counts.dropped,
        dropped_by_queue=sender["queue_drops"] + sender["tx"]["dropped"],
        dropped_numbers=counts.numbers,
        corrupted=counts.corrupted,
        lost_link_down=counts.lost,
    )


def _read_node(pid: int) -> dict[str, dict[str, Any]]:
    """interface -> {"rx", "tx": counters of `ip -s`, "queue_drops": of its root queue}."""
    with network_namespace(pid):
        devices = _json("ip", "-s", "-j", "link", "show", "type", "veth")
        queues = _json("tc", "-s", "-j", "qdisc", "show")
    drops = {queue["dev"]: queue["drops"] for queue in queues if queue.get("root")}
    return {
        device["ifname"]: {
            "rx": device["stats64"]["rx"],
            "tx": device["stats64"]["tx"],
            "queue_drops": drops.get(device["ifname"], 0),
        }
        for device in devices
    }


def _json(*command: str) -> Any:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout or "[]")
