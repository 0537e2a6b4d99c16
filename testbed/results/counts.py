"""The counts of a run's agents, switches and links, in the form of metrics.json."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from agglab.testbed.base.traffic_counters import NetworkStatistics, SwitchStatistics
from agglab.testbed.base.worker_id import Event
from agglab.testbed.judge.queue_losses import LostFrames
from agglab.testbed.run.measurements import Measurements
from agglab.testbed.run.outcome import JobResult
from agglab.testbed.run.programs.program_state import ProgramState
from agglab.testbed.schema.faults import Fault, Impair
from agglab.testbed.schema.job_metrics import COUNTS_OF_AGENTS
from agglab.testbed.schema.run_metrics import OF_DIRECTIONS
from agglab.testbed.systems.base import System
from agglab.topologies import Direction, Topology

AGENT_COUNTS = tuple(metric.name for metric in COUNTS_OF_AGENTS)
SWITCH_DROPS = ("ring_drops", "queue_drops", "port_errors")
NOTHING_LOST = LostFrames(0, 0)
PORT_ERRORS = ("rx_truncated", "rx_gso_drops", "tx_oversize", "tx_errors")


def workers(system: System, result: JobResult) -> dict[str, dict[str, Any]]:
    """Returns the workers' metrics by rank."""
    workers: dict[str, dict[str, Any]] = {}
    names = (*AGENT_COUNTS, *system.host_counters)
    reports: defaultdict[int, list[Event]] = defaultdict(list)
    for report in result.reports:
        reports[report["rank"]].append(report)
    for rank in range(len(result.job.hosts)):
        events = reports[rank]
        counts = {k: sum(event["stats"].get(k, 0) for event in events) for k in names}
        workers[str(rank)] = {**counts, "cpu_s": sum(event.get("cpu_s", 0.0) for event in events)}
    return workers


def servers(system: System, result: JobResult) -> dict[str, dict[str, Any]]:
    """Returns the servers' metrics by number, from 0."""
    names = (*AGENT_COUNTS, *system.host_counters)
    servers: dict[str, dict[str, Any]] = {}
    for number, rank in enumerate(sorted(result.servers)):
        counted = [event["stats"] for event in result.served if event["rank"] == rank]
        servers[str(number)] = {name: sum(s.get(name, 0) for s in counted) for name in names}
    return servers


def switches(measured: Measurements, lost: Mapping[str, LostFrames]) -> dict[str, dict[str, Any]]:
    """Returns the metrics of each switch. lost: the frames that it lost inside."""
    names = [result.job.name for result in measured.outcome.jobs]
    return {
        switch.name: {
            "packets": {
                kind: sum(packets for packets, _ in cells.values())
                for kind, cells in measured.counters[switch.name].items()
            },
            "jobs": {
                name: {
                    kind: cells.get(index, (0, 0))[0]
                    for kind, cells in measured.counters[switch.name].items()
                    if len(cells) > 1
                }
                for index, name in enumerate(names)
            },
            **_own_counts(measured.programs.get(switch.name)),
            "ring_drops": max(switch.ring_drops, lost.get(switch.name, NOTHING_LOST).before),
            "queue_drops": lost.get(switch.name, NOTHING_LOST).after,
            "port_errors": _port_errors(switch),
            "register_bits": measured.register_bits[switch.name],
            "cpu_s": measured.outcome.usage.cpu_s.get(switch.name, 0.0),
        }
        for switch in measured.statistics.switches
    }


def _own_counts(state: ProgramState | None) -> dict[str, Any]:
    """Returns the counts of a program's own counters, under the key that they have in the metrics;
    nothing if there are none."""
    return {"program": state.totals} if state and state.counters else {}


def _port_errors(switch: SwitchStatistics) -> int:
    """Returns the number of frames that the switch's ports lost and no link counts. Frames that a
    link's queue refused (tx_drops) are not included, because the link's `queue_drops` counts
    them."""
    ports = switch.details.get("ports", {})
    assert isinstance(ports, Mapping)
    return sum(port.get(name, 0) for port in ports.values() for name in PORT_ERRORS)


def links(
    statistics: NetworkStatistics, graph: Topology, begun: Sequence[Fault]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Returns what each direction counted and what the scenario asks of it, by link and direction.
    begun: the faults that began."""
    asked = {name: way for link in graph.links for name, _, _, way in link.directions()}
    links: dict[str, dict[str, dict[str, Any]]] = {}
    for way in statistics.directions:
        counts = {metric.name: getattr(way, metric.counter) for metric in OF_DIRECTIONS}
        resolved = _resolved(asked[way.direction], way.direction, begun)
        links.setdefault(way.link, {})[way.direction] = {**counts, **resolved}
    return links


def _resolved(way: Direction, name: str, begun: Sequence[Fault]) -> dict[str, Any]:
    actions = (fault.action for fault in begun)
    of_faults = [a.impairment for a in actions if isinstance(a, Impair) and name in a.directions]
    return {
        "rate_bps": way.rate_bps,
        "delay_s": way.delay_us / 1e6,
        "queue_bytes": way.queue_bytes,
        "queue_packets": way.queue_packets,
        "impairments": [
            {"kind": each.kind, **asdict(each)} for each in (*way.impairments, *of_faults)
        ],
    }


def totals(
    system: System, jobs: Mapping[str, Any], switches: Mapping[str, Any], links: Mapping[str, Any]
) -> dict[str, int]:
    """Returns the counts of all agents, switches and links together."""
    ways = [way for link in links.values() for way in link.values()]
    tallies = {kind: counter.tally for kind, counter in system.counters.items()}

    def tally(name: str) -> int:
        counted = (switch["packets"].items() for switch in switches.values())
        return sum(n for kinds in counted for kind, n in kinds if tallies[kind] == name)

    agents = [job[role] for job in jobs.values() for role in ("workers", "servers") if role in job]
    servers = [server for job in jobs.values() for server in job.get("servers", {}).values()]
    workers = [agent for by_number in agents for agent in by_number.values()]
    return {
        "sent": sum(worker["sent"] for worker in workers),
        "retransmitted": sum(worker["retransmitted"] for worker in workers),
        "injected_drops": sum(way["dropped"] for way in ways),
        "lost_down": sum(way["lost_down"] for way in ways),
        "other_drops": sum(way["queue_drops"] for way in ways)
        + sum(switch[name] for switch in switches.values() for name in SWITCH_DROPS)
        + sum(worker["kernel_drops"] for worker in workers),
        "malformed": sum(worker["malformed"] for worker in workers) + tally("malformed"),
        "forged": tally("forged"),
        "network_errors": sum(worker["network_errors"] for worker in workers),
        "server_bytes": sum(server["bytes_received"] for server in servers),
    }
